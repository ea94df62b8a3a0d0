//! Commands: from arrival to outcome.
//!
//! [`Nexus::arrive`] decides everything that needs no medium (is it a command, does a unit
//! attention or a reservation stand in the way, are the blocks there), in the same poll and in
//! order of arrival. What is left is a [`Task`] that says how many bytes of data it wants;
//! [`Task::run`] then does the work. A plain read or write whose lane answers at once is done
//! without a future.

mod block;
mod check;
mod copy;
mod mode;
mod modify;
mod provision;
mod report;
mod reserve;

pub use provision::LBA_STATUS_STEPS_MAX;

use crate::attribute::Attribute;
use crate::forwarder::ToForward;
use crate::outcome::{Outcome, Refusal, Response};
use crate::share::control::AbortedBy;
use crate::share::nexus::Nexus;
use crate::task::Task;
use crate::times::{Stopwatch, Transfer};
use env::Answer;
use scsi::cdb::BlockRange;
use scsi::opcode::Attention;
use scsi::unit_attention::Meeting;
use scsi::{Command, Status};
use std::rc::Rc;
use units::{BlockCount, Buf, Lba, Now};

/// A command as the front has it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The CDB, possibly padded.
    pub cdb: &'a [u8],
    /// Its order against others.
    pub attribute: Attribute,
    /// The initiator's tag, unique in the nexus while the command lives.
    pub tag: u32,
    /// Bytes of data that the host announces.
    pub data_out: u64,
    /// When its first byte was there.
    pub first_byte: Now,
    /// When all of it was there, but for its data.
    pub whole: Now,
    /// Where its time goes is measured exactly, for a sample in which it stands for so many; 0: it
    /// is not in the sample.
    pub stands_for: u8,
}

/// What became of a command that arrived.
pub enum Arrival {
    /// It has ended; `data_out` bytes were wanted from the host, and not read.
    Ended {
        /// How.
        response: Response,
        /// The bytes of data that the command would have had.
        data_out: u64,
    },
    /// It can run, once the host has sent `data_out` bytes (0: at once).
    Task {
        /// The command.
        task: Task,
        /// The bytes of data that it wants.
        data_out: u64,
    },
}

impl Nexus {
    /// Takes a command into the task set.
    #[must_use]
    pub fn arrive(self: &Rc<Self>, request: Request<'_>) -> Arrival {
        let parsed = Command::parse_with_opcode(request.cdb);
        let (command, row) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.refuse_unknown(error.sense()),
        };
        let unit = self.unit();
        let checked = unit.with_state(|state| check::arrival(self, state, request, &command, row));
        let data_out = match checked {
            Ok(data_out) => data_out,
            Err((refusal, data_out)) => {
                return Arrival::Ended {
                    response: self.response_of(&refusal),
                    data_out,
                };
            }
        };
        let forwards = unit.with_state(|state| self.forwards(state, row, &command));
        let to_forward = forwards.then(|| {
            let said = (request.attribute, request.data_out);
            ToForward::new(said, request.cdb, row)
        });
        let task_id = unit.arrive();
        let reported = transfer(&command);
        let came = (request.first_byte, request.whole);
        let stopwatch = Stopwatch::new(reported, request.stands_for, came);
        let task = Task::new(
            self,
            (command, row.writes_medium),
            (task_id, u64::from(request.tag)),
            request.attribute,
            stopwatch,
            to_forward,
        );
        Arrival::Task { task, data_out }
    }

    /// A CDB that is no command of ours. A unit attention goes first (SAM-5 "Unit attention
    /// conditions").
    fn refuse_unknown(&self, sense: scsi::Sense) -> Arrival {
        let meeting = self.attentions.borrow_mut().meet(Attention::Reports);
        let sense = if let Meeting::Report(attention) = meeting {
            attention
        } else {
            sense
        };
        Arrival::Ended {
            response: self.response_of(&sense.into()),
            data_out: 0,
        }
    }

    /// DATA PROTECT, WRITE PROTECTED.
    pub(crate) fn write_protected(&self) -> Response {
        self.response_of(&Refusal::write_protected())
    }

    pub(crate) fn response_of(&self, refusal: &Refusal) -> Response {
        let (status, sense) = match refusal {
            Refusal::Sense(sense) => (Status::CheckCondition, Some(*sense)),
            Refusal::Status(status) => (*status, None),
            Refusal::Aborted | Refusal::Fenced => (Status::TaskAborted, None),
        };
        self.unit().statuses().count(status, sense.as_ref());
        let format = self
            .unit()
            .with_state(|state| state.modes.current.sense_format());
        Response {
            status,
            sense: sense.map(|sense| sense.to_bytes(format).into()),
            data_in: Buf::empty(),
            latency_trace: None,
        }
    }
}

/// What a command moves, where its time is reported.
fn transfer(command: &Command) -> Option<Transfer> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "latency is reported of what moves data"
    )]
    match command {
        Command::Read(_) => Some(Transfer::Read),
        Command::Write(_) | Command::WriteAtomic { .. } => Some(Transfer::Write),
        _ => None,
    }
}

/// Runs a task whose data is there.
pub(crate) fn run(mut task: Task, mut data: Buf) -> Answer<Outcome> {
    if let Some(by) = task.control.aborted() {
        return Answer::ready(task.outcome_of_abort(by));
    }
    if let Some(what) = task.to_forward.take() {
        return Answer::wait(async move { task.forward(&what, data).await });
    }
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every other command is reported or waits"
    )]
    let begun = match &task.command {
        Command::Read(range) => task.try_read(*range),
        Command::Write(range) => task.try_write(*range, &mut data),
        _ => None,
    };
    let result = match begun.map(|begun| begun.map(Answer::now)) {
        Some(Ok(Ok(result))) => task.ended(result),
        Some(Ok(Err(rest))) => {
            return Answer::wait(async move {
                let result = task.ended(rest.await);
                task.outcome(result)
            });
        }
        Some(Err(refusal)) => Err(refusal),
        None => match task.reported() {
            Some(result) => result,
            None => {
                return Answer::wait(async move {
                    let result = task.execute(data).await;
                    task.outcome(result)
                });
            }
        },
    };
    let outcome = task.outcome(result);
    drop(task);
    Answer::ready(outcome)
}

impl Task {
    /// What a command reports that may report now.
    fn reported(&self) -> Option<Result<Buf, Refusal>> {
        let may = self.may_report(&self.command);
        may.then(|| self.report(&self.command)).flatten()
    }

    /// The command only reports something, and nothing stands in its way: no older ordered task, no
    /// change of the unit's state. INQUIRY, REPORT LUNS and REQUEST SENSE are answered whatever
    /// goes on (SAM-5 "Task set management").
    fn may_report(&self, command: &Command) -> bool {
        let prompt = matches!(
            command,
            Command::Inquiry { .. } | Command::RequestSense { .. }
        );
        prompt || (!self.waits(command) && !self.is_ordered() && self.try_admit(None))
    }

    /// The command does more than report something.
    fn waits(&self, command: &Command) -> bool {
        command.blocks().is_some()
            || matches!(
                command,
                Command::Unmap { .. }
                    | Command::GetLbaStatus { .. }
                    | Command::ModeSelect(_)
                    // It reports after changes that are under way.
                    | Command::PersistentReserveIn { .. }
                    | Command::PersistentReserveOut(_)
                    | Command::ExtendedCopy { .. }
                    | Command::Reserve
                    | Command::Release
            )
            || matches!(command, Command::StartStopUnit(start) if start.flushes())
    }

    pub(crate) fn outcome(&self, result: Result<Buf, Refusal>) -> Outcome {
        let aborted = match (self.control.aborted(), &result) {
            // The backend had it before the right to write was taken away, or it was given up: it
            // is answered as it ended.
            (Some(AbortedBy::ReadOnly), Ok(_) | Err(Refusal::Sense(_) | Refusal::Status(_)))
            | (Some(AbortedBy::GivenUp), Ok(_))
                if !self.control.is_answered() =>
            {
                None
            }
            (aborted, _) => aborted,
        };
        match (aborted, result) {
            (Some(by), _) => self.outcome_of_abort(by),
            (None, Err(Refusal::Aborted)) => Outcome::Silent,
            (None, Ok(data_in)) => Outcome::Respond(Response {
                latency_trace: self.latency_trace(),
                ..Response::good(data_in)
            }),
            (None, Err(Refusal::Fenced)) => Outcome::Disconnect,
            (None, Err(refusal)) => Outcome::Respond(Response {
                latency_trace: self.latency_trace(),
                ..self.nexus.response_of(&refusal)
            }),
        }
    }

    async fn execute(&self, data: Buf) -> Result<Buf, Refusal> {
        self.check_aborted()?;
        self.wait_for_order().await?;
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "what is not run here is reported, or refused"
        )]
        match &self.command {
            Command::Read(range) => self.read(*range).await,
            Command::Write(range) | Command::WriteAtomic { range, .. } => {
                self.write(*range, data).await
            }
            Command::WriteAndVerify { range, check } => {
                self.write_and_verify(*range, *check, data).await
            }
            Command::Verify { range, check } => self.verify(*range, *check, data).await,
            Command::WriteSame(same) => self.write_same(*same, data).await,
            Command::OrWrite(range) => self.or_write(*range, data).await,
            Command::CompareAndWrite(range) => self.compare_and_write(*range, data).await,
            Command::Unmap {
                anchor,
                parameter_list_length,
            } => self.unmap(*anchor, *parameter_list_length, &data).await,
            Command::SynchronizeCache { range, immediate } => {
                self.synchronize_cache(*range, *immediate).await
            }
            Command::StartStopUnit(start) if start.flushes() && self.unit().lane().is_some() => {
                let whole = BlockRange {
                    lba: Lba(0),
                    blocks: BlockCount(0),
                    fua: false,
                    dpo: false,
                };
                self.synchronize_cache(whole, start.immediate).await
            }
            Command::PreFetch { range, .. } => self.pre_fetch(*range).await,
            Command::GetLbaStatus {
                starting_lba,
                allocation_length,
            } => self.get_lba_status(*starting_lba, *allocation_length).await,
            Command::ModeSelect(select) => self.mode_select(*select, &data).await,
            Command::PersistentReserveOut(command) => {
                self.persistent_reserve_out(*command, &data).await
            }
            command @ Command::PersistentReserveIn { .. } => {
                self.persistent_reserve_in(command).await
            }
            Command::ExtendedCopy {
                parameter_list_length,
            } => self.extended_copy(*parameter_list_length, &data).await,
            Command::Reserve => self.reserve(reserve::Spc2::Reserve).await,
            Command::Release => self.reserve(reserve::Spc2::Release).await,
            command => {
                self.admit(None).await?;
                self.report(command)
                    .unwrap_or_else(|| Err(report::not_here()))
            }
        }
    }
}

impl Task {
    /// Runs the command with the data that the host sent: as many bytes as were asked for, or fewer
    /// where the host announced fewer. The answer is often there at once.
    #[must_use]
    pub fn run(self, data: Buf) -> Answer<Outcome> {
        self.control.stopwatch().has_data(self.unit().core());
        run(self, data)
    }
}

/// Cuts parameter data to the allocation length.
pub(crate) fn cut(mut bytes: Vec<u8>, allocation_length: u32) -> Buf {
    bytes.truncate(usize::try_from(allocation_length).unwrap_or(usize::MAX));
    Buf::copy_of(&bytes)
}
