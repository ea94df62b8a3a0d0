//! What an HTTP server has beside its routes, and knows nothing of them.
//!
//! - [`compress`]: answers in fewer bytes, for who takes them.
//! - [`repeated`]: requests that are sent again. A pure core: time comes in.
//! - [`stall`]: connections whose other end reads nothing end.

pub mod compress;
pub mod repeated;
pub mod stall;
