//! One ring of a journal on its core: a machine that has the state, and what acts for it.

mod age;
mod answers;
mod backings;
mod batches;
mod changes;
mod counts;
mod destaging;
mod driver;
mod event;
mod extents;
mod failure;
mod grace;
mod log_read;
mod machine;
#[cfg(test)]
mod machine_test;
mod read;
mod read_back;
mod relocated;
mod requests;
mod rewrite;
mod segment_read;
mod serve;
mod status;
mod volumes;
mod waiting;
mod watches;
mod write_arounds;

pub use counts::RingCounts;
pub use read_back::{NotRead, Place, ReadBack};
pub use rewrite::{Contents, Rewritten};
pub use status::{LOST_MAX, RingStatus, RingWaiting};

pub(crate) use backings::{Backings, OpenBacking};
pub(crate) use batches::write_batches;
pub(crate) use destaging::{BareChange, Blocked, Job, Outcome};
pub(crate) use driver::{Device, JournalKey, OnCore, Ring, ring_of};
pub(crate) use event::{Append, BeginEpoch, Destage, Effect, Event, Follow, Wait};
pub(crate) use machine::Machine;
pub(crate) use segment_read::read_segment;
pub(crate) use volumes::DestageError;
pub(crate) use waiting::Condition;
