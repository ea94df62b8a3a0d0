//! What a node is meant to be, and how it is, as data alone: no file, clock, socket or task.
//!
//! ```text
//!   node.toml --config     objects.toml --objects --plan--> what changes
//!   stored state --document, orphan
//!   the API's answers --view, facts, disks, activity, journal, scrub
//!   what all of them say when something is wrong --code, problem
//! ```

pub mod activity;
pub mod code;
pub mod config;
pub mod document;
pub mod ending;
pub mod facts;
pub mod field;
pub mod fields;
pub mod forecast;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
#[cfg(any(test, feature = "test_support"))]
pub mod golden;
mod interface;
pub mod job;
pub mod journal;
pub mod list;
pub mod name;
pub mod not_safe;
pub mod objects;
pub mod orphan;
pub mod plan;
pub mod problem;
pub mod pulse;
pub mod redundancy;
mod schema;
pub mod scrub;
pub mod secret;
pub mod served;
pub mod size;
pub mod tag;
pub mod toml_table;
pub mod view;

pub use disk_documents as disks;
pub use latencies as latency;
pub use units::rfc3339 as time;
