//! Two nodes of a cluster in one process, each on a thread of its own, whose streams run over TLS:
//! real sockets, real files, and records in memory in the place of etcd.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod bed;
mod channel;
mod frames;
mod pair;
mod records;
mod throughput;
