//! Objects, their stored state, plans, the HTTP API and metrics, and the node that ties them
//! together.
//!
//! ```text
//!   node.toml --config        objects.toml --objects
//!        |                          |
//!        v                          v
//!      node <---- controller <--- plan      api (own thread) --- handle ---> controller
//!        |            |
//!     engine        state
//! ```

pub mod activity;
pub mod api;
pub mod code;
pub mod config;
pub mod controller;
pub mod disk;
pub mod engine;
pub mod fuzz;
mod in_time;
pub mod journal;
pub mod latency;
pub mod metrics;
pub mod name;
pub mod node;
pub mod objects;
pub mod orphan;
pub mod plan;
pub mod pool_file;
pub mod problem;
pub mod remembered;
pub mod scrub;
pub mod secret;
pub mod size;
pub mod state;
pub mod time;
pub mod toml_table;
pub mod view;
