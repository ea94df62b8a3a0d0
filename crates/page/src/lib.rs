//! The command center: the page that the daemon serves from its own binary.
//!
//! ```text
//!   web/ --scripts/web--> web/dist --build.rs--> FILES
//!   Request { path, accept_encoding, if_none_match } --answer--> Reply { status, headers, body }
//! ```
//!
//! **Contract.** Pure: a request in, an answer out. Only what was built in is ever answered: paths
//! are compared with the table of its files and never reach a file system. Every answer forbids the
//! browser to load, run or send anything beyond this daemon ([`POLICY`]). A path that is no file is
//! answered with `index.html`, because the address is the page's own state.
//!
//! **Failure model.** A program that was built without the page says how to build it (503).

mod answer;
mod file;

pub use answer::{POLICY, Reply, Request, answer};

use file::File;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod test;
