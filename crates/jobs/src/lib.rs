//! Work that takes long: what runs, how far it is, and what became of it.
//!
//! **Contract.** Pure: what happens and the time come in, documents and changes go out.
//!
//! **Invariants.** J1: a job's number is its own for ever, and numbers rise. J2: what has ended
//! stays as it is. J3: after a restart nothing runs that ran before: it was interrupted. J4: what is kept is
//! bounded. J5: each beginning and each end is one [`Change`], in their order.

mod change;
mod document;
mod job;
mod jobs;
mod rate;

pub use change::{Change, What};
pub use document::{Document, Unread};
pub use job::{Ending, Job, NewJob};
pub use jobs::Jobs;
pub use rate::Rate;

#[cfg(test)]
mod test;
