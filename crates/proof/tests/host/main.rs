//! The host's side of multipath on real sockets: our own target in this process, foreign ones as processes.

mod bench;
mod own;
