//! VHDX images, and VHDs to be read: what of a file is read, written and synced, and in which
//! order, so that a disk is in it. Pure: no file, clock or thread.
//!
//! ```text
//!   file:  identifier | headers | region tables | log | metadata | table of blocks | blocks ...
//!
//!   image.write(at, bytes) -> Operation -> Step::Ask(Request) -> the driver does it -> ... -> Done
//! ```
//!
//! **Contract.** What was written before a [`flush`](Image::flush) that ended is there after any
//! crash, what was written later may be; other programs find the same once they replayed the log.
//! Payload never passes through here: an operation says where it [goes](Extent), or where it
//! [is](Piece). Tables are read page by page, so an image of 64 TiB takes no more memory than a
//! small one.
//!
//! **Failure model.** Nothing that stands in a file is believed: each offset, length and state is
//! checked, and what cannot be is refused by name. After an error of a write or a sync, an image is
//! used no more until it is opened again.
//!
//! What is written and accepted is described in `docs/formats/vhdx.md`.

mod check;
mod checked;
mod compact;
mod create;
mod entry;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod geometry;
mod guid;
mod header;
mod locator;
mod log;
mod merge;
mod metadata;
mod open;
mod pages;
mod read;
mod regions;
mod resize;
mod session;
mod space;
mod state;
mod step;
#[cfg(test)]
mod test;
mod vhd;
mod write;

pub use check::{Finding, Report, Severity};
pub use create::{Kind, New};
pub use entry::{Entry, State};
pub use error::{Error, ParentMismatch, Part};
pub use formats::Damage;
pub use geometry::{DISK_BYTES_MAX, EntryOf, Geometry};
pub use guid::{Guid, Guids};
pub use header::Header;
pub use locator::Locator;
pub use metadata::Metadata;
pub use open::Access;
pub use read::{Chain, Piece, Source};
pub use regions::Area;
pub use state::{Image, Resting};
pub use step::{Action, Answer, Extent, Operation, Request, Step};
pub use vhd::{Vhd, VhdChain, VhdKind};
