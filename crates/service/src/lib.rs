//! The daemon as a service: its log, what its manager is notified of, and how its process begins
//! anew where that is wanted.

mod log;
mod notify;
mod restart;

pub use log::{Log, Lost};
pub use notify::notify;
pub use restart::{begin_anew, begins, is_over};
pub use sd_notify::NotifyState;
