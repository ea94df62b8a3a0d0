//! Ready-to-paste blocks that connect a client to a LUN.
//!
//! ```text
//!   LUN, grant, target, host as the API shows them --> Export --blocks--> commands by platform
//!                                                             --view----> a document for programs
//! ```
//!
//! **Contract.** Pure: views in, text out. A block can be pasted as it stands; what only the
//! client's administrator knows is said in a comment or stands in capitals. No secret is in it.
//!
//! **Failure model.** None: what cannot be set on a client is left out, or said.

mod blocks;
mod chap;
mod dead_path;
mod export;

pub use blocks::{Block, blocks, platforms};
pub use export::{Export, ExportView};

#[cfg(test)]
mod test;
