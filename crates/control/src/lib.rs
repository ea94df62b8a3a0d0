//! Objects, their stored state, plans, the HTTP API and metrics, and the node that ties them together.

pub mod code;
pub mod config;
pub mod name;
pub mod objects;
pub mod plan;
pub mod problem;
pub mod secret;
pub mod size;
pub mod state;
pub mod time;
pub mod toml_table;
