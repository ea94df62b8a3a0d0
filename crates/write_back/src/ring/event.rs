//! What happens to a ring, and what is to be done about it.

use super::destaging::{Blocked, Outcome};
use super::volumes::OpenFacts;
use super::write_arounds::WriteAroundId;
use env::file::is_no_space;
use journal::{Change, CheckpointWrite, Kind, Lying, Sequence, Slot, Token, VolumeId, Write};
use std::io;
use std::ops::Range;
use units::{Buf, LbaRange, Now};
use volume::{Fence, IoError};

/// A change that is to be made stable.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) slot: Slot,
    pub(crate) range: LbaRange,
    pub(crate) kind: Kind,
    pub(crate) data: Buf,
    pub(crate) fence: Fence,
    pub(crate) now: Now,
}

/// Why a log has failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// The write that found no space.
    pub(crate) refused: Option<Extent>,
}

/// Bytes of the journal's file or device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Failure {
    /// A write has failed.
    pub(crate) fn of_write(write: Extent, error: &io::Error) -> Self {
        Self {
            why: format!("a write to it failed: {error}"),
            refused: is_no_space(error).then_some(write),
        }
    }
}

/// What happens.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// Somebody changes blocks. Answered by [`Effect::Submitted`] or [`Effect::Refused`].
    Submit(Submission),
    /// Somebody flushes a volume. [`Effect::Waits`]: only when all changes that came before are
    /// answered, [`Effect::PassSyncPoint`] says so.
    Flush(Slot),
    /// A write goes to the backing volume around the log. Answered by [`Effect::Begun`].
    BeginWriteAround {
        slot: Slot,
        sectors: Range<u64>,
        /// It is answered when the backing volume has it, whether the log knows of it or not.
        is_volatile: bool,
    },
    EndWriteAround(WriteAroundId),
    /// The next batch or checkpoint may be written.
    WriteNext,
    /// Nothing has come for a while: the log may say that its last batch was stable.
    Seal,
    /// A batch was written, or not.
    BatchEnded {
        number: u64,
        result: Result<(), Failure>,
    },
    /// A checkpoint was written, or not.
    CheckpointEnded(Result<(), Failure>),
    /// Somebody opens a volume, or opens it again. Answered by [`Effect::Opened`] or
    /// [`Effect::Refused`].
    Open {
        id: VolumeId,
        facts: OpenFacts,
        /// Its history was opened; the number of its next change, as far as that knows.
        history: Option<Sequence>,
    },
    /// Nobody uses the volume any more.
    Leave(VolumeId),
    /// Who uses the volume has to wait, or need not any more.
    Wait(Slot, Wait),
    /// Something is destaged.
    Destage(Destage<'a>),
    /// The data of a write is damaged in the log.
    RecordLost {
        lying: &'a Lying,
        by: Sequence,
    },
    /// A batch is damaged with the list of what it held, in these sectors of the log.
    BatchLost(&'a Range<u32>),
    /// These changes are to be put into the log again, with the numbers that they have. Answered by
    /// [`Effect::WriteBatch`] or [`Effect::Blocked`].
    Relocate(&'a [(Change, Buf)]),
    /// Somebody waits for such a batch, or does not any more.
    AwaitRelocation(bool),
    /// What lay there lies at another sector of the log now.
    Relocated(&'a [(Lying, u32)]),
    /// Nothing new is begun.
    Close,
}

/// Who has to wait.
#[derive(Debug)]
pub(crate) enum Wait {
    /// Changes of the volume wait from now on.
    Hold,
    EndHold,
    /// Everything of the volume waits from now on.
    BeginExchange,
    /// Nothing of any volume is destaged from now on.
    Pause,
    /// The volume goes on, with another backing volume or with the one that it had.
    EndExchange(Option<OpenFacts>),
}

/// How far destaging is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Destage<'a> {
    /// Somebody waits until all is destaged.
    BeginDrain,
    EndDrain,
    /// There is nothing to destage, or the destager looks again.
    Rest(bool),
    BeginRound,
    EndRound(Option<Blocked>),
    /// The writes of a round have ended.
    Written(&'a Outcome),
    /// Nothing below this batch is needed any more.
    Release(u64),
}

/// What is to be done, in this order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// The change has this token.
    Submitted(Token),
    /// What was asked for is not done.
    Refused(IoError),
    /// The write around the log has this number.
    Begun(WriteAroundId),
    /// The volume has this place.
    Opened(Slot),
    /// Who asked has to wait.
    Waits,
    /// What is to be relocated finds no place.
    Blocked(Blocked),
    /// A batch is to be written to the log.
    WriteBatch(Write),
    WriteCheckpoint(CheckpointWrite),
    /// A change is stable: the volume's history has to know it, before it is acknowledged.
    RecordHistory {
        slot: Slot,
        change: Change,
    },
    /// The volume is no more.
    ForgetHistory(Slot),
    /// The first of those who flush need not wait any more.
    PassSyncPoint,
    /// The change with this token is answered so.
    Answer {
        token: Token,
        result: Result<(), IoError>,
    },
    /// Something may be written to the log.
    WakeWriter,
    /// Something may be destaged.
    WakeDestager,
    /// Those who wait for something of the ring look again.
    WakeOthers,
}

/// What is to be done, in this order. The memory is used again.
pub(crate) type Effects = Vec<Effect>;
