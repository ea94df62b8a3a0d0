//! The host's side of multipath on real sockets: our own target in this process, foreign ones as
//! processes.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod bench;
mod foreign;
mod names;
mod own;
mod relay;
mod reported;
mod reset;
mod shared;
#[path = "../common/unit.rs"]
mod unit;
