//! Writes that are acknowledged from a journal, and destaged later.
//!
//! ```text
//!   write --> shard of its address (one core) --> log: stable --> index --> acknowledged
//!                                                   |
//!   read  --> shard --> index: in the log? zeroes? at home? --> device of the log, or the volume below
//!                                                   |
//!             destage: oldest batches, by address --> the volume below --> flush --> forgotten in the log
//! ```
//!
//! A journal serves the volumes of a pool. It is cut into rings, each of which belongs to one core;
//! an address of a volume belongs to one ring for ever, so that all changes of it have one order.
//! What waits for a ring's log is bounded in bytes and changes by permits; who has none waits its
//! turn.
//!
//! **Contract.** What is acknowledged is stable: there is no volatile cache above this layer,
//! whatever lies below. Reads find what was acknowledged last. Every change has a number of its
//! volume in its shard, without a gap.
//!
//! **Failure.** After a write to the journal that failed, changes are refused until it is opened
//! anew; what was acknowledged can still be read, but for blocks of changes that were under way.
//! What cannot be destaged moves on in the log, is tried again, and may fill half of it. Damage
//! in the log is told for exactly its blocks, until they are written again.

mod age;
mod carry;
mod contents;
mod cut;
mod drain;
mod exchange;
mod extents;
mod failure;
mod grace;
mod history;
mod history_survey;
mod home;
mod journal_file;
mod lane;
mod log_read;
mod mode;
mod move_on;
mod pace;
mod parts;
mod permits;
mod pump;
mod read;
mod replay;
mod shard;
mod share;
mod status;
mod survey;
mod unverified;
mod verify;

pub use cut::RingHistory;
pub use history::bytes_for as history_bytes;
pub use history_survey::{HistorySurvey, survey_history};
pub use journal::{Damaged, Places, RingSurvey, Superblock, Survey, SurveyedVolume, VolumeId};
pub use journal_file::{CreateError, Journal, JournalSpec, SHARD_BYTES, bytes_min, is_journal_of};
pub use lane::WriteBack;
pub use mode::Mode;
pub use replay::{Accept, RingFound};
pub use status::{LOST_MAX, ShardStatus};
pub use survey::{Kept, kept, survey};
pub use verify::Verified;
