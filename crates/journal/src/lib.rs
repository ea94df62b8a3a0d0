//! The log behind cached writes, as pure machines.
//!
//! ```text
//!   changes --> log (one a core) --> ring --> batches, each one write --> the journal's device
//!   the device after a crash --> replay --> the changes that are there, and those that are damaged
//!   changes --> index --> where the newest data of a block lies in the log,
//!         if it is not in the backing volume
//! ```
//!
//! A batch holds changes with their data, is written in one piece, and is stable as a whole. What
//! the log promises:
//!
//! - What was acknowledged is found again, in order, after any crash.
//! - What was never acknowledged is found whole or not at all, and never after something that is
//!   not there.
//! - Damage to what was acknowledged is named: which blocks of which volume, or, where even that is
//!   lost, that the log cannot be trusted from there on. It is never taken for the end of the log.
//!
//! **Contract.** No clock, device or thread: bytes and outcomes go in, writes and decisions come
//! out. The bytes are described in `docs/formats/journal.md`.

/// Whether a rule holds: tests break one at a time.
macro_rules! holds {
    ($rule:ident) => {{
        #[cfg(test)]
        let holds = !crate::test::rules::is_broken(crate::test::rules::Rule::$rule);
        #[cfg(not(test))]
        let holds = true;
        holds
    }};
}

mod batch;
mod blocks;
mod changes;
mod destage;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod index;
mod layout;
mod log;
mod replay;
mod ring;
mod segment;
mod stable;
mod survey;
mod table;
#[cfg(test)]
mod test;
mod uncommitted;

pub use batch::{
    BATCH_BLOCKS_MAX, Change, Commit, DATA_ALIGNMENT, DATA_BYTES_MAX, Header, Kind, RECORDS_MAX,
    Record, Sequence, VolumeId, data_at,
};
pub use blocks::{DataChecksums, block_checksum};
pub use changes::{CUTS_KEPT, CutPoint, History, HistoryId, HistoryWrite, PART_BYTES};
pub use destage::{Lying, Run, newest, runs};
pub use formats::{CopiesState, Damage};
pub use index::{Index, Piece, SECTOR, Slot, Source};
pub use layout::{
    BLOCK, BatchPosition, Checkpoint, JournalId, Layout, RING_BLOCKS_MIN, RINGS_MAX, Superblock,
    VERSION,
};
pub use log::{AppendRefused, EpochRefused, Followed, Log, Next, Role, Wanted, sequences};
pub use replay::{Found, Replay, Step, Stop};
pub use ring::{BatchWrite, CheckpointWrite, Refused, Ring};
pub use segment::{Again, Segment};
pub use stable::{Ended, Stable, Token};
pub use survey::{Damaged, RingSurvey, Survey, SurveyedVolume};
pub use uncommitted::{Epoch, Uncommitted};
