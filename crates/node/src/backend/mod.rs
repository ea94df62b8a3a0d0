//! What LUNs stand on: one door, and one table of the kinds behind it.
//!
//! ```text
//!   lun, journal, scrub, state  -->  kinds (which one)  -->  door (Backend, Leaf, Pool)
//!                                                             ^
//!       memory, disk (devices), image     pool/directory   pool/members
//! ```
//!
//! Nobody above the door knows a kind by its name. A new kind is a file that opens the door, a line
//! in [`kinds`], and what node.toml or a LUN says of it in the crate `manifest`.

pub(crate) mod disk;
pub(crate) mod door;
pub(crate) mod image;
pub(crate) mod kinds;
pub(crate) mod memory;
pub(crate) mod pools;
