//! Work that takes long: what runs, how far it is, and what became of it.
//!
//! **Contract.** Pure: what happens and the time come in, documents and changes go out. Some work
//! is begun here and reports its end ([`Jobs::begin`]); other work goes on by itself and is seen
//! from time to time ([`Jobs::observe`]).
//!
//! **Invariants.** J1: a job's number is its own for ever, and numbers rise. J2: what has ended
//! stays as it is, but for work that goes on by itself where it was: then its job runs again. J3:
//! after a restart nothing runs that was begun here: it was interrupted. J4: what is kept is
//! bounded. J5: each beginning and each end is one [`Change`], in their order.

mod change;
mod document;
mod job;
mod jobs;
mod memory;
mod rate;
mod seen;

pub use change::{Change, What};
pub use document::{Document, Unread};
pub use job::{Ending, Job, NewJob};
pub use jobs::Jobs;
pub use rate::Rate;
pub use seen::Sighting;

#[cfg(test)]
mod test;
