//! Images of a real Ceph, of one OSD, which all tests of this file share and take in turns.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod bed;
mod ends;
mod faults;
mod images;
mod locks;
mod opening;
mod volumes;
