//! No stale write, ever: when a command may be sent again, when it may be acknowledged, and what
//! has to wait meanwhile.
//!
//! A write that was sent on a path which then failed may still be carried out there, any time
//! later: a ghost. If its repetition on another path was acknowledged, and the issuer wrote
//! again, the ghost would bring the old data back. The rules:
//!
//! - R1 A command is unsent, sent (any byte of it was accepted by the kernel) or over, on each
//!   nexus by itself.
//! - R2 One that changes something is acknowledged only after a success *and* after every other
//!   nexus that it was sent on is over: answered, or fenced. Later commands of this host that
//!   overlap it wait, and so do those that overlap any command in flight: otherwise a repetition
//!   could bring back what a later one had replaced already. A unit that other hosts use too:
//!   fence, then send again. One that only this host uses: send again at once. What cannot be
//!   repeated blindly (COMPARE AND WRITE, PERSISTENT RESERVE OUT, copies): fence, then read what
//!   happened.
//! - R3 What counts as a fence: [`Evidence`].
//! - R5 What to do at a target that cannot fence: [`Mode`].
//! - R6 The caller keeps a command's buffers until [`Decide::Complete`], and calls
//!   [`PendingTable::lost`] only after the socket is destroyed, so that nothing more of them is
//!   sent or received.
//! - R7 A flush may be repeated at any time; a write-back cache per controller is the target's to
//!   keep coherent.
//!
//! R4 is the target's half, R8 (identity) is [`crate::health`]'s.
//!
//! **Contract.** The caller carries out every [`Decide`] in order, and reports what happens to each
//! copy. A command is decided [`Decide::Complete`] exactly once. A nexus is one session: a path
//! that logs in again is a new one.

mod held;

use held::{Held, Hold};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use units::{LbaRange, Now};

/// One session of one path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nexus {
    /// The path's number.
    pub path: u32,
    /// How many sessions it had before.
    pub session: u32,
}

/// A command in the pending table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(u64);

/// What a command does to the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing: reads, flushes, questions.
    Harmless,
    /// The same whenever it is repeated: WRITE, WRITE SAME, UNMAP.
    Write,
    /// It depends on what is there: COMPARE AND WRITE, PERSISTENT RESERVE OUT, EXTENDED COPY.
    Once,
}

/// Who uses the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sharing {
    /// Other hosts too, or nobody knows.
    #[default]
    Shared,
    /// This host alone.
    Alone,
}

/// What a target's answer to a failed nexus has to be worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Only proof counts.
    Strict,
    /// Proof, or the time after which the target promises, or is assumed, to have given up.
    #[default]
    Timed,
    /// Nothing is waited for: what Linux does. Unsafe, and to be called so wherever it shows.
    Fast,
}

/// What shows that nothing of a nexus is carried out any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// A login with the same ISID at the same portal group was accepted: it reinstated the session,
    /// whose tasks are over (RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout").
    Reinstated,
    /// Our target has fenced the nexus, asked through another path.
    NexusFence,
    /// LOGICAL UNIT RESET through another path; it hurts other hosts.
    UnitReset,
    /// PREEMPT AND ABORT through another path.
    Preempted,
    /// The target's time to notice and to come to rest has passed since the last byte.
    Quiesced,
}

impl Evidence {
    /// Whether it is enough.
    #[must_use]
    pub const fn suffices(self, mode: Mode) -> bool {
        match self {
            Self::Reinstated | Self::NexusFence | Self::UnitReset | Self::Preempted => true,
            Self::Quiesced => matches!(mode, Mode::Timed | Mode::Fast),
        }
    }
}

/// How a copy of a command was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// With success.
    Success,
    /// With an error that its issuer gets.
    Failure,
    /// Not carried out, and to be sent again ([`crate::verdict::Step::Same`] and others).
    NotDone,
    /// It is over, and nobody knows how far it came: TASK ABORTED, or ABORT TASK was answered
    /// "function complete".
    Ended,
}

/// What reading back has shown of a command that cannot be repeated blindly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// It was carried out.
    Done,
    /// It was not.
    NotDone,
    /// Both are possible.
    Unknown,
}

/// What its issuer gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Success.
    Success,
    /// What the answer said.
    Failure,
    /// Nobody knows whether it was, or will be, carried out.
    Unknown,
}

/// What the pending table asks of its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decide {
    /// Choose a path, and send the command on it.
    Send(CommandId),
    /// See to it that nothing of this nexus is carried out any more: log in again with its ISID,
    /// ask another path for the fence.
    Fence(Nexus),
    /// Read what became of it, then [`PendingTable::resolved`].
    Resolve(CommandId),
    /// Answer its issuer.
    Complete(CommandId, Outcome),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CopyState {
    Unsent,
    Sent,
    /// Sent on a nexus that was lost afterwards, and not fenced yet.
    Ghost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Waits for a command that it overlaps.
    Waiting,
    /// To be sent, or on its way.
    Going,
    /// Waits for fences before it is sent again, or its blocks are read.
    Fencing,
    /// Its blocks are being read.
    Resolving,
    /// Waits for fences before this is reported.
    Known(Outcome),
    /// Its issuer has its answer; it holds its blocks until its ghosts are laid.
    Reported,
}

/// A command on its way of which the pending table knows no more than its blocks: it is on one
/// session that is not lost, and nothing that overlaps it is in flight. It goes back to
/// [`PendingTable::over`] or, where its end is not the answer to its issuer, to
/// [`PendingTable::enter`].
#[derive(Debug)]
#[must_use = "its blocks stay held until it comes back"]
pub struct Light {
    id: CommandId,
    kind: Kind,
    /// The blocks that it changes.
    hold: Option<Hold>,
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    range: Option<LbaRange>,
    hold: Option<Hold>,
    copies: Vec<(Nexus, CopyState)>,
    stage: Stage,
}

impl Entry {
    fn haunted(&self) -> bool {
        self.copies
            .iter()
            .any(|(_, copy)| *copy == CopyState::Ghost)
    }
}

/// All commands of one volume, and their copies. One table for all cores, or each core has blocks
/// of its own.
#[derive(Debug)]
pub struct PendingTable {
    mode: Mode,
    sharing: Sharing,
    quiesce: Duration,
    next: u64,
    entries: BTreeMap<CommandId, Entry>,
    held: Held,
    waiting: VecDeque<CommandId>,
    /// Lost and not fenced: when the target has come to rest by itself.
    lost: BTreeMap<Nexus, Now>,
}

impl PendingTable {
    /// An empty table. `quiesce`: how long a target may go on with what a lost nexus sent, at most.
    #[must_use]
    pub fn new(mode: Mode, sharing: Sharing, quiesce: Duration) -> Self {
        Self {
            mode,
            sharing,
            quiesce,
            next: 0,
            entries: BTreeMap::new(),
            held: Held::new(),
            waiting: VecDeque::new(),
            lost: BTreeMap::new(),
        }
    }

    /// A new command. `range`: its blocks, if it changes any.
    pub fn begin(&mut self, kind: Kind, range: Option<LbaRange>) -> (CommandId, Vec<Decide>) {
        let id = CommandId(self.next);
        self.next += 1;
        let range = range.filter(|range| kind != Kind::Harmless && range.start() < range.end());
        let entry = Entry {
            kind,
            range,
            hold: None,
            copies: Vec::new(),
            stage: Stage::Waiting,
        };
        self.entries.insert(id, entry);
        let mut out = Vec::new();
        if !self.go(id, self.waiting.len(), &mut out) {
            self.waiting.push_back(id);
        }
        (id, out)
    }

    /// A new command that is sent at once, on a session that is not lost; costs next to nothing.
    /// `None` where something that it overlaps is in flight or waits: then it has to
    /// [`PendingTable::begin`].
    pub fn light(&mut self, kind: Kind, range: Option<LbaRange>) -> Option<Light> {
        let hold = match range.filter(|range| kind != Kind::Harmless && !range.is_empty()) {
            Some(range) if self.nobody_waits(range, self.waiting.len()) => {
                Some(self.held.hold(range)?)
            }
            Some(_) => return None,
            None => None,
        };
        let id = CommandId(self.next);
        self.next += 1;
        Some(Light { id, kind, hold })
    }

    /// A light command has ended with an answer for its issuer, or was not sent at all.
    #[inline]
    #[must_use = "others may have waited for its blocks"]
    pub fn over(&mut self, light: Light) -> Vec<Decide> {
        let mut out = Vec::new();
        if let Some(hold) = light.hold {
            self.held.release(hold);
            if !self.waiting.is_empty() {
                self.let_go(&mut out);
            }
        }
        out
    }

    /// The pending table takes a light command on, as one that began before and was placed on
    /// `nexus`.
    pub fn enter(&mut self, light: Light, nexus: Nexus) -> CommandId {
        let Light { id, kind, hold } = light;
        let range = hold.as_ref().and_then(|hold| self.held.range(hold));
        let entry = Entry {
            kind,
            range,
            hold,
            copies: vec![(nexus, CopyState::Unsent)],
            stage: Stage::Going,
        };
        self.entries.insert(id, entry);
        id
    }

    /// The command was handed to a session, of which no byte has left yet. False: that nexus is
    /// lost, choose another.
    #[must_use]
    pub fn placed(&mut self, id: CommandId, nexus: Nexus) -> bool {
        if self.lost.contains_key(&nexus) {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.copies.push((nexus, CopyState::Unsent));
        }
        true
    }

    /// The kernel has accepted a byte of it.
    pub fn sent(&mut self, id: CommandId, nexus: Nexus) {
        if let Some(copy) = self.copy(id, nexus) {
            *copy = if *copy == CopyState::Unsent {
                CopyState::Sent
            } else {
                *copy
            };
        }
    }

    /// A copy was answered, or is over for another reason.
    pub fn answered(&mut self, id: CommandId, nexus: Nexus, answer: Answer) -> Vec<Decide> {
        let mut out = Vec::new();
        let Some(entry) = self.entries.get_mut(&id) else {
            return out;
        };
        let before = entry.copies.len();
        entry
            .copies
            .retain(|(at, copy)| *at != nexus || *copy == CopyState::Ghost);
        if entry.copies.len() == before {
            return out;
        }
        if entry.stage != Stage::Going {
            self.settle(id, &mut out);
            return out;
        }
        match answer {
            Answer::Success => entry.stage = Stage::Known(Outcome::Success),
            Answer::Failure => self.complete(id, Outcome::Failure, &mut out),
            Answer::Ended if entry.kind == Kind::Once => entry.stage = Stage::Fencing,
            Answer::NotDone | Answer::Ended => out.push(Decide::Send(id)),
        }
        self.settle(id, &mut out);
        out
    }

    /// A session is over, or held to be dead, and its socket is destroyed.
    pub fn lost(&mut self, nexus: Nexus, now: Now) -> Vec<Decide> {
        let mut out = Vec::new();
        let on_it = |entry: &Entry| entry.copies.iter().any(|(at, _)| *at == nexus);
        let concerned: Vec<CommandId> = self
            .entries
            .iter()
            .filter(|(_, entry)| on_it(entry))
            .map(|(id, _)| *id)
            .collect();
        let mut haunted = false;
        for id in &concerned {
            haunted |= self.copy_lost(*id, nexus, &mut out);
        }
        if haunted && self.mode != Mode::Fast {
            self.lost.insert(nexus, now.after(self.quiesce));
            out.insert(0, Decide::Fence(nexus));
        }
        for id in concerned {
            self.settle(id, &mut out);
        }
        out
    }

    /// Whether it left a ghost.
    fn copy_lost(&mut self, id: CommandId, nexus: Nexus, out: &mut Vec<Decide>) -> bool {
        let (mode, sharing) = (self.mode, self.sharing);
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        let was_sent = entry
            .copies
            .iter()
            .any(|(at, copy)| *at == nexus && *copy == CopyState::Sent);
        let ghost = was_sent && entry.kind != Kind::Harmless && mode != Mode::Fast;
        if ghost {
            let of_nexus = entry.copies.iter_mut().filter(|(at, _)| *at == nexus);
            of_nexus.for_each(|(_, copy)| *copy = CopyState::Ghost);
        } else {
            entry.copies.retain(|(at, _)| *at != nexus);
        }
        if entry.stage == Stage::Going {
            match entry.kind {
                Kind::Once if was_sent => entry.stage = Stage::Fencing,
                Kind::Write if ghost && sharing == Sharing::Shared => entry.stage = Stage::Fencing,
                Kind::Harmless | Kind::Write | Kind::Once => out.push(Decide::Send(id)),
            }
        }
        ghost
    }

    /// There is evidence that nothing of `nexus` is carried out any more. Nothing happens if it is
    /// not enough.
    pub fn fenced(&mut self, nexus: Nexus, evidence: Evidence) -> Vec<Decide> {
        let mut out = Vec::new();
        if !evidence.suffices(self.mode) || self.lost.remove(&nexus).is_none() {
            return out;
        }
        let mut laid = Vec::new();
        for (id, entry) in &mut self.entries {
            let before = entry.copies.len();
            entry
                .copies
                .retain(|(at, copy)| *at != nexus || *copy != CopyState::Ghost);
            if entry.copies.len() < before {
                laid.push(*id);
            }
        }
        for id in laid {
            self.settle(id, &mut out);
        }
        out
    }

    /// When to call [`PendingTable::tick`] next.
    #[must_use]
    pub fn deadline(&self) -> Option<Now> {
        let timed = self.mode == Mode::Timed;
        self.lost.values().min().copied().filter(|_| timed)
    }

    /// Time has come: targets that have had theirs are at rest.
    pub fn tick(&mut self, now: Now) -> Vec<Decide> {
        let due = self.lost.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Nexus> = due.map(|(nexus, _)| *nexus).collect();
        due.into_iter()
            .flat_map(|nexus| self.fenced(nexus, Evidence::Quiesced))
            .collect()
    }

    /// What reading back has shown.
    pub fn resolved(&mut self, id: CommandId, resolution: Resolution) -> Vec<Decide> {
        let mut out = Vec::new();
        let Some(entry) = self
            .entries
            .get_mut(&id)
            .filter(|entry| entry.stage == Stage::Resolving)
        else {
            return out;
        };
        match resolution {
            Resolution::Done => entry.stage = Stage::Known(Outcome::Success),
            Resolution::Unknown => entry.stage = Stage::Known(Outcome::Unknown),
            Resolution::NotDone => {
                entry.stage = Stage::Going;
                out.push(Decide::Send(id));
            }
        }
        self.settle(id, &mut out);
        out
    }

    /// Its issuer is not to wait any longer: answered at once, but its blocks stay held while a
    /// ghost is about.
    pub fn give_up(&mut self, id: CommandId) -> Vec<Decide> {
        let mut out = Vec::new();
        self.waiting.retain(|it| *it != id);
        let live = |entry: &Entry| entry.stage != Stage::Reported;
        if self.entries.get(&id).is_some_and(live) {
            self.complete(id, Outcome::Unknown, &mut out);
            self.settle(id, &mut out);
        }
        out
    }

    /// Sessions that are lost and not fenced.
    pub fn unfenced(&self) -> impl Iterator<Item = Nexus> {
        self.lost.keys().copied()
    }

    /// Commands whose issuers wait.
    #[must_use]
    pub fn open(&self) -> usize {
        self.entries
            .values()
            .filter(|entry| entry.stage != Stage::Reported)
            .count()
    }

    fn copy(&mut self, id: CommandId, nexus: Nexus) -> Option<&mut CopyState> {
        let entry = self.entries.get_mut(&id)?;
        entry
            .copies
            .iter_mut()
            .find(|(at, _)| *at == nexus)
            .map(|(_, copy)| copy)
    }

    /// Whether none of the first `ahead` that wait overlaps it.
    fn nobody_waits(&self, range: LbaRange, ahead: usize) -> bool {
        let mut ahead = self
            .waiting
            .iter()
            .take(ahead)
            .filter_map(|other| self.entries.get(other)?.range);
        !ahead.any(|other| other.start() < range.end() && range.start() < other.end())
    }

    /// Goes on its way, if nothing in flight and none of the first `ahead` that wait overlaps it.
    fn go(&mut self, id: CommandId, ahead: usize, out: &mut Vec<Decide>) -> bool {
        let range = self.entries.get(&id).and_then(|entry| entry.range);
        let hold = match range {
            None => None,
            Some(range) if !self.nobody_waits(range, ahead) => return false,
            Some(range) => match self.held.hold(range) {
                None => return false,
                hold => hold,
            },
        };
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.stage = Stage::Going;
            entry.hold = hold;
        }
        out.push(Decide::Send(id));
        true
    }

    fn complete(&mut self, id: CommandId, outcome: Outcome, out: &mut Vec<Decide>) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.stage = Stage::Reported;
            out.push(Decide::Complete(id, outcome));
        }
    }

    /// Goes on with a command as far as its copies let it.
    fn settle(&mut self, id: CommandId, out: &mut Vec<Decide>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if entry.haunted() {
            return;
        }
        match (entry.stage, entry.kind) {
            (Stage::Known(outcome), _) if entry.copies.is_empty() => {
                self.complete(id, outcome, out);
            }
            (Stage::Fencing, Kind::Once) => {
                entry.stage = Stage::Resolving;
                out.push(Decide::Resolve(id));
            }
            (Stage::Fencing, Kind::Harmless | Kind::Write) => {
                entry.stage = Stage::Going;
                out.push(Decide::Send(id));
            }
            (
                Stage::Waiting
                | Stage::Going
                | Stage::Resolving
                | Stage::Known(_)
                | Stage::Reported,
                _,
            ) => {}
        }
        let over = self
            .entries
            .get(&id)
            .is_some_and(|entry| entry.stage == Stage::Reported && entry.copies.is_empty());
        if over {
            self.forget(id, out);
        }
    }

    /// The command is over everywhere: who waited for its blocks may go.
    fn forget(&mut self, id: CommandId, out: &mut Vec<Decide>) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        if entry.range.is_none() {
            return;
        }
        if let Some(hold) = entry.hold {
            self.held.release(hold);
        }
        self.let_go(out);
    }

    /// Blocks are free again: who waited for them may go.
    fn let_go(&mut self, out: &mut Vec<Decide>) {
        let mut at = 0;
        while let Some(next) = self.waiting.get(at).copied() {
            if self.go(next, at, out) {
                self.waiting.remove(at);
            } else {
                at += 1;
            }
        }
    }
}

/// What a COMPARE AND WRITE did, by what is on the medium after the fence.
///
/// The expected data means that it was not carried out, as every initiator takes it; another host
/// that changed it back cannot be distinguished from that. The new data may be another host's who
/// wrote the same.
#[must_use]
pub fn resolve_compare_and_write(
    expected: &[u8],
    new: &[u8],
    found: &[u8],
    sharing: Sharing,
) -> Resolution {
    match sharing {
        Sharing::Alone | Sharing::Shared if found == expected && expected != new => {
            Resolution::NotDone
        }
        Sharing::Alone if found == new => Resolution::Done,
        Sharing::Alone | Sharing::Shared => Resolution::Unknown,
    }
}

#[cfg(test)]
mod test;
