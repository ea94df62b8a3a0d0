//! What to do with a command that did not simply succeed: one table, the inverse of the target's.
//!
//! **Contract.** A pure function of status and sense data. A verdict speaks of three things: the
//! command (done, fail, again and where), the path (what it says about it), and what has to be read
//! afresh before the command is repeated. How often and how long is [`Tries`]' part.
//!
//! A command that was *answered* has ended at the target: repeating it is safe, except after TASK
//! ABORTED, where another nexus ended it at an unknown point. Commands without an answer are
//! [`crate::stale`]'s part.
//!
//! Spec: SAM-5 5.3.1 "Status codes", SPC-4 4.5.6 "Sense key and sense code definitions", SPC-4 5.15
//! "Target port group access states".

use scsi::Status;
pub use scsi::{AdditionalSense, Sense, SenseKey};
use serde::Serialize;
use std::time::Duration;

/// What becomes of the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// It succeeded.
    Done,
    /// Its issuer gets the error: it would be the same on every path.
    Fail,
    /// Again on this path at once; after some tries on another.
    Same,
    /// Again on this path after a growing pause; after some tries on another.
    BackOff,
    /// Again on this path whenever the unit may be ready, for as long as the time without a path
    /// allows.
    Poll,
    /// Again at once on another path; with none, on this one after a pause.
    Other,
    /// Once more through another controller, then its issuer gets the error.
    OtherController,
    /// It waits until the access state has settled.
    Park,
    /// Nobody knows whether it was carried out: by the rules against stale writes.
    Uncertain,
}

/// What it says about the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathSays {
    /// It carried the command.
    Fine,
    /// The queue is too long.
    Congested,
    /// An error that counts towards marginal.
    Error,
    /// The port group does not serve the unit now.
    NotServing,
    /// Between two access states.
    Transition,
    /// This nexus lacks our registration, if another one has it.
    Conflict,
    /// The unit is not behind this path any more.
    UnitGone,
}

/// What to read afresh before the command is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Learn {
    /// Nothing.
    Nothing,
    /// REPORT TARGET PORT GROUPS.
    AccessStates,
    /// PERSISTENT RESERVE IN: our key, and who holds the reservation.
    Reservations,
    /// MODE SENSE.
    ModePages,
    /// INQUIRY pages, READ CAPACITY: size and identity.
    Identity,
    /// All of that: the nexus was reset.
    Everything,
    /// TEST UNIT READY until it is.
    Readiness,
    /// CLEAR ACA.
    ClearAca,
}

/// A row's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Verdict {
    /// The command.
    pub repeat: Repeat,
    /// What it says about the path that the command took.
    pub path: PathSays,
    /// The facts.
    pub learn: Learn,
}

const fn verdict(repeat: Repeat, path: PathSays, learn: Learn) -> Verdict {
    Verdict {
        repeat,
        path,
        learn,
    }
}

/// One row: status, key and codes as far as they matter, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// SENSE KEY.
    pub key: SenseKey,
    /// ADDITIONAL SENSE CODE; `None`: any.
    pub asc: Option<u8>,
    /// ADDITIONAL SENSE CODE QUALIFIER; `None`: any.
    pub ascq: Option<u8>,
    /// How the initiator reacts to such a sense.
    pub verdict: Verdict,
    /// In words.
    pub why: &'static str,
}

const fn row(key: SenseKey, asc: u8, ascq: u8, verdict: Verdict, why: &'static str) -> Row {
    Row {
        key,
        asc: Some(asc),
        ascq: Some(ascq),
        verdict,
        why,
    }
}

const fn group(key: SenseKey, asc: u8, verdict: Verdict, why: &'static str) -> Row {
    Row {
        key,
        asc: Some(asc),
        ascq: None,
        verdict,
        why,
    }
}

const fn any(key: SenseKey, verdict: Verdict, why: &'static str) -> Row {
    Row {
        key,
        asc: None,
        ascq: None,
        verdict,
        why,
    }
}

const DONE: Verdict = verdict(Repeat::Done, PathSays::Fine, Learn::Nothing);
const FAIL: Verdict = verdict(Repeat::Fail, PathSays::Fine, Learn::Nothing);
const AGAIN: Verdict = verdict(Repeat::Same, PathSays::Fine, Learn::Nothing);
const NOT_SERVING: Verdict = verdict(Repeat::Other, PathSays::NotServing, Learn::AccessStates);
const NOT_READY: Verdict = verdict(Repeat::Poll, PathSays::Fine, Learn::Readiness);
const TRANSITION: Verdict = verdict(Repeat::Park, PathSays::Transition, Learn::AccessStates);
const CHANGED: Verdict = verdict(Repeat::Same, PathSays::Fine, Learn::Identity);
const RESET: Verdict = verdict(Repeat::Same, PathSays::Fine, Learn::Everything);
const RESERVATIONS: Verdict = verdict(Repeat::Same, PathSays::Fine, Learn::Reservations);
const PATH_ERROR: Verdict = verdict(Repeat::Same, PathSays::Error, Learn::Nothing);
const ELSEWHERE: Verdict = verdict(Repeat::Other, PathSays::Error, Learn::Nothing);

/// What CHECK CONDITION means. The first row that fits counts; the last one of each key fits
/// everything.
pub const TABLE: &[Row] = {
    use SenseKey as K;
    &[
        any(K::NoSense, DONE, "nothing went wrong"),
        any(K::RecoveredError, DONE, "it succeeded after recovery"),
        any(K::Completed, DONE, "it is complete"),
        row(
            K::NotReady,
            0x04,
            0x00,
            ELSEWHERE,
            "the unit cannot be reached from there",
        ),
        row(
            K::NotReady,
            0x04,
            0x03,
            ELSEWHERE,
            "its backing is missing there",
        ),
        row(
            K::NotReady,
            0x04,
            0x0a,
            TRANSITION,
            "the port group changes its access state",
        ),
        row(
            K::NotReady,
            0x04,
            0x0b,
            NOT_SERVING,
            "the port group stands by",
        ),
        row(
            K::NotReady,
            0x04,
            0x0c,
            NOT_SERVING,
            "the port group is unavailable",
        ),
        row(
            K::NotReady,
            0x04,
            0x12,
            NOT_SERVING,
            "the port group is offline",
        ),
        any(
            K::NotReady,
            NOT_READY,
            "the unit is not ready, through whichever path",
        ),
        any(
            K::MediumError,
            FAIL,
            "the medium is the same through every path",
        ),
        row(
            K::HardwareError,
            0x08,
            0x00,
            ELSEWHERE,
            "the target cannot reach the unit from there",
        ),
        any(
            K::HardwareError,
            verdict(Repeat::OtherController, PathSays::Fine, Learn::Nothing),
            "another controller may do better",
        ),
        row(
            K::IllegalRequest,
            0x25,
            0x00,
            verdict(Repeat::Other, PathSays::UnitGone, Learn::Identity),
            "the unit is not behind this path any more",
        ),
        any(
            K::IllegalRequest,
            FAIL,
            "the command is wrong through every path",
        ),
        group(
            K::UnitAttention,
            0x29,
            RESET,
            "the nexus was reset: its commands are gone, settings may be",
        ),
        row(
            K::UnitAttention,
            0x2f,
            0x00,
            RESERVATIONS,
            "another initiator cleared the queue",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x01,
            verdict(Repeat::Same, PathSays::Fine, Learn::ModePages),
            "mode pages changed",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x02,
            AGAIN,
            "log parameters changed",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x03,
            RESERVATIONS,
            "our reservation was taken",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x04,
            RESERVATIONS,
            "a reservation was released",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x05,
            RESERVATIONS,
            "our registration was taken",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x06,
            verdict(Repeat::Same, PathSays::Fine, Learn::AccessStates),
            "the access state changed",
        ),
        row(
            K::UnitAttention,
            0x2a,
            0x07,
            TRANSITION,
            "a change of the access state failed",
        ),
        row(K::UnitAttention, 0x2a, 0x09, CHANGED, "the size changed"),
        row(
            K::UnitAttention,
            0x38,
            0x07,
            AGAIN,
            "the pool is filling up",
        ),
        row(
            K::UnitAttention,
            0x3f,
            0x00,
            CHANGED,
            "operating conditions changed",
        ),
        row(
            K::UnitAttention,
            0x3f,
            0x01,
            CHANGED,
            "the microcode changed",
        ),
        row(
            K::UnitAttention,
            0x3f,
            0x03,
            CHANGED,
            "identification changed",
        ),
        row(
            K::UnitAttention,
            0x3f,
            0x0e,
            CHANGED,
            "the list of units changed: this number may be another unit",
        ),
        any(
            K::UnitAttention,
            CHANGED,
            "something changed that is not known here",
        ),
        any(
            K::DataProtect,
            FAIL,
            "writing is not permitted, or there is no space",
        ),
        any(
            K::BlankCheck,
            FAIL,
            "the medium is the same through every path",
        ),
        any(K::VendorSpecific, FAIL, "nobody knows what it means"),
        any(K::CopyAborted, FAIL, "the copy ended in the middle"),
        row(
            K::AbortedCommand,
            0x08,
            0x00,
            ELSEWHERE,
            "the target cannot reach the unit from there",
        ),
        group(
            K::AbortedCommand,
            0x2e,
            verdict(Repeat::BackOff, PathSays::Fine, Learn::Nothing),
            "it took too long at the target: the store is slow, not the path",
        ),
        row(
            K::AbortedCommand,
            0x55,
            0x03,
            verdict(Repeat::BackOff, PathSays::Congested, Learn::Nothing),
            "the target lacks resources",
        ),
        group(
            K::AbortedCommand,
            0x10,
            FAIL,
            "protection information is wrong: another path carries the same",
        ),
        group(
            K::AbortedCommand,
            0x0c,
            PATH_ERROR,
            "data came other than agreed",
        ),
        group(K::AbortedCommand, 0x47, PATH_ERROR, "a digest was wrong"),
        group(
            K::AbortedCommand,
            0x4b,
            PATH_ERROR,
            "the data phase went wrong",
        ),
        any(K::AbortedCommand, AGAIN, "the target gave it up"),
        any(K::Reserved, FAIL, "nobody knows what it means"),
        any(
            K::VolumeOverflow,
            FAIL,
            "the medium is the same through every path",
        ),
        any(K::Miscompare, FAIL, "that is the answer"),
    ]
};

/// CHECK CONDITION with this sense data.
#[must_use]
pub fn of_sense(sense: &Sense) -> &'static Row {
    let fits = |row: &&Row| {
        let code = sense.code;
        row.key == sense.key
            && row.asc.is_none_or(|asc| asc == code.asc)
            && row.ascq.is_none_or(|ascq| ascq == code.ascq)
    };
    TABLE.iter().find(fits).unwrap_or(&NO_SENSE_DATA)
}

/// CHECK CONDITION whose sense data is missing or makes no sense.
const NO_SENSE_DATA: Row = any(SenseKey::NoSense, PATH_ERROR, "an error without a reason");

/// A deferred error speaks of an earlier command that was answered with success: whoever waits now
/// has to know.
const DEFERRED: Row = any(
    SenseKey::NoSense,
    FAIL,
    "a write that was acknowledged earlier has failed",
);

/// What to do after a status byte and, with CHECK CONDITION, sense data.
#[must_use]
pub fn of(status: u8, sense: Option<&Sense>) -> (Verdict, &'static str) {
    let Some(status) = Status::from_code(status) else {
        return (ELSEWHERE, "a status that does not exist");
    };
    match status {
        Status::Good | Status::ConditionMet => (DONE, "done"),
        Status::CheckCondition => {
            let row = match sense {
                Some(sense) if sense.deferred => &DEFERRED,
                Some(sense) => of_sense(sense),
                None => &NO_SENSE_DATA,
            };
            (row.verdict, row.why)
        }
        Status::Busy | Status::TaskSetFull => {
            let congested = verdict(Repeat::BackOff, PathSays::Congested, Learn::Nothing);
            (
                congested,
                "the queue is too long, or the access state changes",
            )
        }
        Status::ReservationConflict => {
            let conflict = verdict(Repeat::Fail, PathSays::Conflict, Learn::Reservations);
            (conflict, "another host has reserved the unit")
        }
        Status::AcaActive => {
            let clear = verdict(Repeat::Same, PathSays::Fine, Learn::ClearAca);
            (clear, "the queue is frozen until the condition is cleared")
        }
        Status::TaskAborted => {
            let uncertain = verdict(Repeat::Uncertain, PathSays::Fine, Learn::Reservations);
            (uncertain, "another initiator ended it")
        }
    }
}

/// Repetitions on the same path before another one is tried.
const SAME_MAX: u32 = 2;
/// The same for pauses: 8, 16 and 32 ms.
const BACK_OFF_MAX: u32 = 3;
const BACK_OFF: Duration = Duration::from_millis(8);
const BACK_OFF_LONGEST: Duration = Duration::from_secs(2);
/// The longest pause after BUSY: a unit that moves to another node says it, too, and is back within
/// seconds.
const PAUSE_LONGEST: Duration = Duration::from_millis(250);
const POLL: Duration = Duration::from_millis(500);
/// Repetitions because of errors before the issuer gets one.
const TOTAL_MAX: u32 = 20;

/// The next step for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It is over, and well.
    Done,
    /// It is over: report what the answer said.
    Fail,
    /// Once more on this path, after this time.
    Same(Duration),
    /// Once more by the policy's choice, this path excluded if there is another, after this time.
    Other(Duration),
    /// Once more through another controller; without one, fail.
    OtherController,
    /// When the access state has settled.
    Park,
    /// By the rules against stale writes.
    Uncertain,
}

/// How often a command was repeated, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tries {
    same: u32,
    pauses: u32,
    others: u32,
    controllers: u32,
}

impl Tries {
    /// The next step after `verdict`. `random` spreads hosts that were refused together: any byte.
    pub fn next(&mut self, verdict: Verdict, random: u8) -> Step {
        match verdict.repeat {
            Repeat::Done => Step::Done,
            Repeat::Fail => Step::Fail,
            Repeat::Uncertain => Step::Uncertain,
            Repeat::Park => Step::Park,
            Repeat::Poll => Step::Same(spread(POLL, random)),
            // Its path takes nothing before it says that it serves the unit again: that is the
            // pause, and how long a unit may move is no matter of tries.
            Repeat::Other if verdict.path == PathSays::NotServing => Step::Other(Duration::ZERO),
            Repeat::Same if self.same < SAME_MAX => {
                self.same += 1;
                Step::Same(Duration::ZERO)
            }
            Repeat::BackOff if self.pauses % (BACK_OFF_MAX + 1) < BACK_OFF_MAX => {
                Step::Same(self.pause(random))
            }
            Repeat::BackOff => Step::Other(self.pause(random)),
            Repeat::Same | Repeat::Other => {
                self.same = 0;
                self.others += 1;
                if self.others > TOTAL_MAX {
                    return Step::Fail;
                }
                // The first time round at once, then slower: every path may say the same.
                let round = self.others.saturating_sub(1).min(8);
                let wait = BACK_OFF.saturating_mul(1 << round).min(BACK_OFF_LONGEST);
                Step::Other(if self.others == 1 {
                    Duration::ZERO
                } else {
                    spread(wait, random)
                })
            }
            Repeat::OtherController => {
                self.controllers += 1;
                if self.controllers > 1 {
                    Step::Fail
                } else {
                    Step::OtherController
                }
            }
        }
    }

    fn pause(&mut self, random: u8) -> Duration {
        let wait = BACK_OFF
            .saturating_mul(1 << self.pauses.min(8))
            .min(PAUSE_LONGEST);
        self.pauses += 1;
        spread(wait, random)
    }
}

/// `span`, more or less by half.
fn spread(span: Duration, random: u8) -> Duration {
    span.mul_f64(0.5 + f64::from(random) / 255.0)
}

#[cfg(test)]
mod test;
