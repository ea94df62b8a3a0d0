//! What a node did: figures of its objects, second by second for an hour, in tens of seconds for
//! two days, in steps of five minutes for a year.
//!
//! These are the points and how a file has them; the format stands in `docs/formats/history.md`.

#![allow(dead_code, reason = "who records and asks comes next")]

mod chunk;
mod code;
mod column;
mod metric;
mod point;
mod tier;

pub use metric::{Behaviour, METRICS, Metric};
pub use point::Point;
pub use tier::{TIERS, Tier};
