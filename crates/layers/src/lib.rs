//! Layers: volumes made of other volumes.
//!
//! ```text
//!      logical unit
//!           |
//!   [Meter] [Limit] [ReadCache] [WriteThrough] [StableWrite] [Emulate]     each a Wrap over it
//!           |
//!         leaf (memory, file, block device)
//!
//!        [Integrity]            over a volume and a map of checksums: `checksums` decides, it acts
//!        [Stripe]               over parts of several volumes, in turns or one after the other
//! ```
//!
//! **Contract.** A layer keeps all of the waist's promises for the shape that it announces,
//! whatever the shape below; `volume_test::model::conforms` is the test of that, for layers and
//! leaves alike. Work of several steps goes on when its answer is dropped.

pub mod emulate;
pub mod integrity;
pub mod limit;
pub mod meter;
pub mod read_cache;
pub mod scrub;
pub mod shares;
pub mod stable_write;
pub mod stripe;
pub mod write_through;

pub use emulate::Emulate;
pub use integrity::Integrity;
pub use limit::Limit;
pub use meter::{Brief, Counters, KindBrief, Meter};
pub use read_cache::ReadCache;
pub use shares::{Share, Shares};
pub use stable_write::StableWrite;
pub use stripe::Stripe;
pub use write_through::WriteThrough;

#[cfg(test)]
mod test;
