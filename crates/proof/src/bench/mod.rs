//! Figures: what a hop at the waist costs, and what an I/O costs beside the floor and beside other
//! targets, always in one run.
//!
//! ```text
//!   bench run --- servers: null | causeway | tgt | istgt     (their own, on processor 1)
//!        '------- load: sessions on one core (processor 0), over the `iscsi_initiator` crate
//!   rounds: null causeway tgt istgt, causeway tgt istgt null, ...   -> report: table.md, *.svg
//! ```

pub mod bar;
pub mod cache;
pub mod case;
pub mod cgroup;
pub mod chart;
pub mod coalesce;
pub mod disk;
pub mod durable;
pub mod figures;
pub mod foreign;
pub mod histogram;
pub mod integrity;
pub mod layer;
pub mod load;
pub mod machine;
pub mod many;
pub mod null_server;
pub mod plain;
pub mod plan;
pub mod replay;
pub mod report;
pub mod rounds;
pub mod run;
pub mod scrub;
pub mod servers;
pub mod special;
pub mod steady;
pub mod usage;
pub mod waist;

use std::time::Instant;

/// The real clock.
#[expect(clippy::disallowed_methods, reason = "figures are about real time")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}
