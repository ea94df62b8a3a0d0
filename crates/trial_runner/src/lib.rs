//! Bench runs and lab beds that the daemon starts: what they would touch.

mod plan;

pub use plan::{Plan, plan};
