//! Writes that are acknowledged from a journal, and destaged later.
//!
//! ```text
//!   write --> ring of its address (one core) --> log: stable --> index --> acknowledged
//!                                                  |
//!   read  --> ring --> index: in the log? zeroes? in the backing volume?
//!         --> the log's device, or the volume below
//!                                                  |
//!             destage: oldest batches, by address --> the volume below --> flush
//!                   --> forgotten in the log
//! ```
//!
//! A journal serves the volumes of a pool. It is cut into rings, each of which belongs to one core;
//! an address of a volume belongs to one ring for ever, so that all changes of it have one order.
//! What waits for a ring's log is bounded in bytes and changes by permits, and what a volume has in
//! it by its share (`admission/`); who has neither waits its turn.
//!
//! The state of a ring is a machine (`ring/machine.rs`) that nothing else changes; its driver
//! (`ring/driver.rs`) does what it says, and has all who wait for that state (`ring/waiting.rs`).
//! What other layers have to know of a journal stands in `volume`: [`volume::UnverifiedBlocks`] for
//! a layer below, [`volume::Copies`] for one above.
//!
//! **Contract.** What is acknowledged is stable: there is no volatile cache above this layer,
//! whatever lies below. Reads find what was acknowledged last. Every change has a number of its
//! volume in its ring, without a gap.
//!
//! **Failure.** After a write to the journal that failed, changes are refused until it is opened
//! anew; what was acknowledged can still be read, but for blocks of changes that were under way.
//! What cannot be destaged is relocated in the log, is tried again, and may fill half of it. Damage
//! in the log is reported for exactly its blocks, until they are written again.

mod addresses;
mod admission;
mod append;
mod carrier;
mod copies;
mod cut;
mod destage;
mod exchange;
mod history;
mod journal_file;
mod lane;
mod mode;
mod replay;
mod rest;
mod rewrite;
mod ring;
mod since;
mod survey;
mod unverified;
mod verify;

pub use append::NotAppended;
pub use carrier::{Carrier, RingOrder};
pub use copies::NoEpoch;
pub use cut::RingHistory;
pub use history::{HistorySurvey, bytes_for as history_bytes, survey_history};
pub use journal::{
    Change, CopiesState, Damaged, Epoch, Kind, RingSurvey, Role, Sequence, Superblock, Survey,
    SurveyedVolume, VolumeId,
};
pub use journal_file::{CreateError, Journal, JournalSpec, SHARD_BYTES, bytes_min, is_journal_of};
pub use lane::WriteBack;
pub use mode::Mode;
pub use replay::{Accept, RingFound};
pub use rewrite::{Contents, Rewritten};
pub use ring::{LOST_MAX, NotRead, Place, ReadBack, RingCounts, RingStatus, RingWaiting};
pub use since::{ChangedSince, Committing};
pub use survey::{Kept, kept, survey};
pub use verify::Verified;
