//! Policies: which of the paths that may be used takes the next command.
//!
//! **Contract.** A [`Selector`] belongs to one volume and one core. [`Selector::take`] decides and
//! books in O(paths) without allocating; the [`Booking`] that it gives comes back to
//! [`Selector::done`] exactly once, whatever happened and whichever policy rules by then: bookings
//! belong to the paths, so a policy can be switched at any time. A path keeps its number for as
//! long as the selector lives.
//!
//! Every policy chooses among active paths; only if there is none, among standbys. A path whose
//! queue window is full takes nothing. Formulas are those of the known systems, named at each.

mod adaptive;
mod estimate;
mod holds;
mod model;
mod selector;
mod slot;
mod streams;
#[cfg(test)]
mod test;
#[cfg(test)]
mod test_switch;

pub use model::{BadPolicy, Direction, Policy, Request, RotateAfter, Settings, Use};
pub use selector::{Booking, Ended, Refused, Selector, UNTIMED};
