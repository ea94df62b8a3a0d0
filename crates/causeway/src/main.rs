//! The one binary: the daemon and its command line.

fn main() {}
