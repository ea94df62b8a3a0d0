//! The model disk: what a volume may answer, given everything that was asked of it.
//!
//! Every block that is written gets contents made from a tag and its address, so that a block read
//! back names the write that made it, and a torn or misplaced block names nothing. The model keeps,
//! for every block, the set of tags that it may hold: operations in flight are not ordered (C3),
//! failed ones may be done (whole blocks), discards are advice, and a power cut keeps what was
//! stable and perhaps more.
//!
//! It judges one volume at the waist, where nothing is late and nobody outlives the node. Hosts
//! behind a network are judged by `proof::model_disk`, which says why it is not this one.
//!
//! **Contract.** `begin` before the operation is submitted, `end` after its answer; an operation
//! that is begun and never ended stays possible for ever.

mod conforms;
mod contents;
mod disk;

pub use conforms::{Plan, Tally, conforms, goes_on, verify};
pub use contents::{TAG_ZERO, Tag, fill, recognise};
pub use disk::{Begun, Model, Token, Wrong};

#[cfg(test)]
mod test;
