//! What the node does now, for people in front of a terminal: pure.
//!
//! ```text
//!   figures that only grow --frame--> rates between two samples
//!   rates --text, columns--> lines
//!   rates --screen, columns--> a view that keys change
//! ```

mod columns;
mod frame;
mod screen;
#[cfg(test)]
mod test;
mod text;

pub use frame::{Frame, Order, SortKey};
pub use screen::{Next, Screen};
pub use text::{mebibytes, page};
