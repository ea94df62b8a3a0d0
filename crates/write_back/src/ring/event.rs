//! What happens to a ring, and what is to be done about it.

use super::destaging::{Blocked, Outcome};
use super::volumes::{NotNow, OpenFacts};
use super::write_arounds::WriteAroundId;
use env::file::is_no_space;
use journal::{
    AppendRefused, BatchWrite, Change, CheckpointWrite, Epoch, EpochRefused, Kind, Lying, Sequence,
    Slot, Stable, Token, VolumeId,
};
use std::io;
use std::ops::Range;
use units::{Buf, LbaRange, Now};
use volume::{Fence, IoError};

/// A host changes blocks.
#[derive(Debug)]
pub(crate) struct HostChange {
    pub(crate) slot: Slot,
    pub(crate) range: LbaRange,
    pub(crate) kind: Kind,
    /// Of a write: as long as its blocks.
    pub(crate) data: Buf,
    pub(crate) around: MayGoAround,
    pub(crate) fence: Fence,
    /// Its writer has not lost its right.
    pub(crate) is_current: bool,
    pub(crate) now: Now,
}

/// How a change may go around the log, where the log has nothing of its blocks. What decides that
/// is shared by all cores.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MayGoAround {
    /// Into a cache: it is answered when the backing volume has it.
    pub(crate) volatile: bool,
    /// Stable in the backing volume, when the log knows of it.
    pub(crate) stable: bool,
}

/// How a change goes around the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Around {
    Stable,
    Volatile {
        /// After a crash a replay might bring back what the log has of other changes: it is
        /// answered when the log knows of it, too.
        brings_back: bool,
    },
}

/// What a ring says in its log of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    pub(crate) slot: Slot,
    pub(crate) range: LbaRange,
    /// A cut, or that the volume is gone.
    pub(crate) kind: Kind,
    pub(crate) now: Now,
}

/// A later epoch of a volume's owner begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginEpoch {
    pub(crate) slot: Slot,
    pub(crate) epoch: u64,
    /// The number that its record gets: what has this one or a higher one, and was not committed,
    /// is void.
    pub(crate) first: Sequence,
    pub(crate) now: Now,
}

/// The changes of a volume come from the owner of an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follow {
    pub(crate) slot: Slot,
    pub(crate) epoch: u64,
    /// What has this number or a higher one here is not that owner's, and void.
    pub(crate) from: Sequence,
    /// The copy is made anew: all that is not committed is void, and the owner's change with that
    /// number is taken next, whatever comes next here.
    pub(crate) anew: bool,
    pub(crate) now: Now,
}

/// A change that comes with its number.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) slot: Slot,
    /// Of its owner.
    pub(crate) epoch: u64,
    pub(crate) change: Change,
    pub(crate) data: Buf,
    pub(crate) now: Now,
}

/// What the history of a volume says that the log may no longer say.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct KnownByHistory {
    /// The number of its next change at least.
    pub(crate) next: Sequence,
    /// The newest epoch of its owner.
    pub(crate) epoch: Option<Epoch>,
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

/// Whether a writer of a volume still has its right. Other cores take it, in memory that all share.
pub(crate) type IsCurrent<'a> = &'a dyn Fn(Slot, Fence) -> bool;

/// What happens.
pub(crate) enum Event<'a> {
    /// A host changes blocks. Answered by [`Effect::Waits`], [`Effect::Refused`], as many
    /// [`Effect::Submitted`] as it needs records, or [`Effect::Begun`] and one for its record.
    Change(HostChange),
    /// Answered by [`Effect::Submitted`] or [`Effect::Refused`].
    Note(Note),
    /// Answered by [`Effect::Submitted`] or [`Effect::EpochRefused`]. What waits for a batch gets
    /// into none: it came under the owner before.
    BeginEpoch(BeginEpoch),
    /// Answered by [`Effect::Followed`], behind [`Effect::Submitted`] where something is void by
    /// that, or by [`Effect::EpochRefused`]. What waits for a batch gets into none, but for what
    /// came from the same owner.
    Follow(Follow),
    /// Answered by [`Effect::Submitted`] or [`Effect::AppendRefused`].
    Append(Append),
    /// Nobody gives the volume's changes numbers from now on. What waits for a batch gets into
    /// none.
    Resign(Slot),
    /// All copies of a volume that are in sync have its changes below this number, as the owner of
    /// an epoch says.
    Commit {
        slot: Slot,
        epoch: u64,
        below: Sequence,
    },
    /// Somebody reads these blocks to write them again. Answered by [`Effect::Watched`].
    Watch(Slot, Range<u64>),
    /// What has this number is watched no more.
    EndWatch(u64),
    /// Somebody flushes a volume. Answered by [`Effect::Waits`], [`Effect::Refused`],
    /// [`Effect::AwaitsSyncPoint`], or by nothing: the log has nothing to wait for.
    Flush(Slot),
    /// What went around the log is answered by the backing volume and by the log.
    EndWriteAround(WriteAroundId),
    /// The next batch or checkpoint may be written.
    WriteNext(IsCurrent<'a>),
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
        /// Its history was opened, and knows this.
        history: Option<KnownByHistory>,
    },
    /// Nobody uses the volume any more.
    Leave(VolumeId),
    /// Who uses the volume has to wait, or need not any more.
    Wait(Slot, Wait),
    /// Something is destaged.
    Destage(Destage<'a>),
    /// The data of a write is damaged in the log.
    RecordLost { lying: &'a Lying, by: Sequence },
    /// The data of what waits for other copies is damaged in the log.
    HeldLost(&'a Stable),
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
    /// There is nothing to destage, or the destager tries again.
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
    /// A record waits for the log.
    Submitted {
        token: Token,
        /// Of its data.
        bytes: usize,
    },
    /// What was asked for is not done.
    Refused(IoError),
    /// The epoch does not begin.
    EpochRefused(EpochRefused),
    /// The owner is followed, and its change with this number is the next one.
    Followed(Sequence),
    /// The change that came with its number is not taken.
    AppendRefused(AppendRefused),
    /// The change goes around the log, and has this number there.
    Begun(WriteAroundId, Around),
    /// The blocks are watched, under this number.
    Watched(u64),
    /// The volume has this place.
    Opened(Slot),
    /// Who asked has to wait, and asks again.
    Waits,
    /// Who asked is answered when all changes of the volume that came before are:
    /// [`Effect::PassSyncPoint`] says so.
    AwaitsSyncPoint,
    /// What is to be relocated finds no place.
    Blocked(Blocked),
    /// A batch is to be written to the log.
    WriteBatch(BatchWrite),
    WriteCheckpoint(CheckpointWrite),
    /// Of a volume of several copies, all changes below this number are stable here.
    Stable {
        slot: Slot,
        below: Sequence,
    },
    /// A change is committed: the volume's history has to know it, before it is acknowledged.
    RecordHistory {
        slot: Slot,
        change: Change,
    },
    /// These sectors are about to change, and may be read before the log knows: so must the
    /// volume's history.
    TouchHistory {
        slot: Slot,
        sectors: Range<u64>,
    },
    /// The volume is no more.
    ForgetHistory(Slot),
    /// One of those who flush need not wait any more: the one at this place among them, in the
    /// order in which they came.
    PassSyncPoint(usize),
    /// The change with this token is stable, and waits for other copies.
    Held(Token),
    /// The change with this token is answered so.
    Answer {
        token: Token,
        result: Result<(), IoError>,
    },
    /// Something may be written to the log.
    WakeWriter,
    /// Something may be destaged.
    WakeDestager,
    /// Those who wait for something of the ring test their conditions again.
    WakeOthers,
}

impl From<NotNow> for Effect {
    fn from(not_now: NotNow) -> Self {
        match not_now {
            NotNow::Later => Self::Waits,
            NotNow::Refused(error) => Self::Refused(error),
        }
    }
}

/// What is to be done, in this order. The memory is used again.
pub(crate) type Effects = Vec<Effect>;
