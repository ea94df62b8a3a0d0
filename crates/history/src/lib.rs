//! What a node did: figures of its objects, second by second for an hour, in tens of seconds for
//! two days, in steps of five minutes for a year.
//!
//! ```text
//!   readings --> Recorder --rows--> History's file      pure: code, column, chunk, tier, track,
//!                   |                   |                     ids, recorder, query
//!                   +----> query <------+                shell: store
//! ```
//!
//! **Contract.** A second that nobody sampled is a gap in every tier, never a zero. A counter that
//! goes back (its program was started anew) gives a gap, never a negative figure. Figures up to 255
//! are exact, larger ones within 0.4 %. A crash loses a minute at most. The format of the file
//! stands in `docs/formats/history.md`.

mod chunk;
mod code;
mod column;
mod ids;
mod metric;
mod object;
mod point;
mod query;
mod recorder;
mod store;
#[cfg(test)]
mod test;
mod tier;
mod track;

pub use metric::{Behaviour, MAP_ROWS, METRICS, Metric, SLOW_EVERY, map_row};
pub use object::{Kind, Object};
pub use point::Point;
pub use query::{Asked, Line, Lines};
pub use recorder::Reading;
pub use store::{History, SCHEMA};
pub use tier::{TIERS, Tier};
