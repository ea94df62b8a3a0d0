//! A real Linux host: Debian's kernel, open-iscsi and multipathd in a virtual machine, against the
//! daemon over two networks. What an application in the guest sees is judged by fio, which reads
//! back what it wrote.
//!
//! Needs root, namespaces, QEMU and the image that `scripts/linux-guest` makes; where one of them
//! is missing, a test says so and passes. `make test` runs some of the scenes, `make linux` all of
//! them, with both of Debian's kernels.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a guest runs in real time")]

mod bed;
mod faults;
mod guest;
mod journal;
mod load;
mod paths;
#[path = "../daemon/place.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod place;
mod units;
