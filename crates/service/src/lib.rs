//! The daemon as a service: whoever manages it is notified how it is, and its process begins anew
//! where that is wanted.

mod notify;
mod restart;

pub use notify::notify;
pub use restart::{begin_anew, begins, is_over};
pub use sd_notify::NotifyState;
