//! What tests with the real binary share: the daemon as a process, foreign tools, and a host of our
//! own.

#![allow(
    dead_code,
    reason = "every test binary compiles this for itself and uses its part"
)]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

pub(crate) mod client;
pub(crate) mod daemon;
pub(crate) mod tools;
