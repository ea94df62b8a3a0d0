//! Layers: volumes made of other volumes, and the model disk that all volumes are compared with.
//!
//! ```text
//!      logical unit
//!           |
//!   [Checked] [Meter] [Limit] [ReadCache] [WriteThrough] [StableWrite] [Emulate] [Faults]     each a Wrap over the one below
//!           |
//!         leaf (memory, file, block device)
//!
//!        [WriteBack]            over a volume and a journal: the journal crate decides, it acts
//!        [Integrity]            below it, over the volume and a map of checksums: the sums crate decides, it acts
//!        [Stripe]               over parts of several volumes, in turns or one after the other
//!        [Multipath]            over several sessions with one unit: the paths crate decides, it acts
//! ```
//!
//! **Contract.** A layer keeps all of the waist's promises for the shape that it announces, whatever the
//! shape below; [`model::conforms`] is the test of that, for layers and leaves alike. Work of several
//! steps goes on when its answer is dropped.

pub mod beside;
pub mod draw;
pub mod emulate;
pub mod fault;
pub mod integrity;
pub mod limit;
pub mod meter;
pub mod model;
pub mod multipath;
pub mod read_cache;
pub mod scrub;
pub mod shares;
mod space;
pub mod stable_write;
pub mod stripe;
pub mod write_back;
pub mod write_through;

pub use beside::Beside;
pub use emulate::Emulate;
pub use fault::{Action, FaultRule, Faults, Odds};
pub use integrity::Integrity;
pub use limit::Limit;
pub use meter::{Counters, Meter};
pub use multipath::Multipath;
pub use read_cache::ReadCache;
pub use shares::{Share, Shares};
pub use stable_write::StableWrite;
pub use stripe::Stripe;
pub use write_back::WriteBack;
pub use write_through::WriteThrough;

#[cfg(test)]
mod plain;
#[cfg(test)]
mod test;
