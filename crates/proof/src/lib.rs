//! The proving ground: what says whether the rest of the program is right.
//!
//! * [`model_disk`]: which values each block may hold now, and after a power cut.
//! * [`history`]: whether what several clients saw can have happened one command after the other.
//! * [`sim`]: volumes and targets with clients in a world made from one seed.
//! * [`seeds`]: which seeds a test runs.
//! * [`plain_pool`]: a pool with a journal and nothing else.
//! * [`forge`]: files as a kill or a failed sync leaves them.
//! * [`fuzz`]: mutated inputs for every parser, with the oracles that the crates offer.
//! * [`bench`]: what a hop and an I/O cost, beside generics and beside another target.
//! * [`hops`]: layers whose cost is measured.
//! * [`tidy`]: the laws of the source tree, checked.
//!
//! Nothing in the product depends on this crate.

#[cfg(feature = "simulator")]
pub mod bench;
#[cfg(feature = "simulator")]
pub mod forge;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(feature = "simulator")]
pub mod history;
#[cfg(any(feature = "paths", feature = "simulator"))]
pub mod hops;
#[cfg(feature = "simulator")]
pub mod model_disk;
#[cfg(feature = "simulator")]
pub mod plain_pool;
#[cfg(any(feature = "fuzz", feature = "simulator"))]
pub mod random;
#[cfg(feature = "simulator")]
pub mod seeds;
#[cfg(feature = "simulator")]
pub mod sim;
pub mod tidy;
