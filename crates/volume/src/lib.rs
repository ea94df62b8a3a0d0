//! The narrow waist: one request type, one data method, two traits.
//!
//! Everything that stores blocks (memory, a file, a mirror, an initiator) is a [`Volume`] below
//! this line; everything that asks for blocks (a logical unit, a scrub, a backup) stands above it
//! and sees only [`Lane::submit`].
//!
//! **Contract.** C1. Reads produce buffers, writes consume them; a [`units::Buf`] never changes
//! once made. C2. *Stable* means: this operation's blocks are on stable media before it completes.
//! *Flush* means:
//!     every operation that **completed** before the flush was submitted is on stable media.
//! C3. No order is promised between operations in flight, overlapping ones included.
//! C4. Dropping an answer abandons the answer, never the work.
//! C5. A fence that was raised stops every operation of an older epoch at the last step before the
//!     medium, with [`IoError::Fenced`].
//! C6. [`IoError`] holds operating errors only; a caller's mistake is an assertion in [`Checked`].

mod checked;
mod copies;
mod fence;
mod followers;
mod io;
mod kind;
mod lane;
pub mod pieces;
mod shape;
mod unverified;
mod wrap;

pub use checked::{Checked, assert_shape};
pub use copies::Copies;
pub use fence::{Fence, FenceSlot, Fences};
pub use followers::Followers;
pub use io::{
    Class, Cut, Deadline, Done, Durability, Extent, ExtentKind, ExtentList, Io, IoError, Op,
    Origin, Provision, TraceId, Zeroing,
};
pub use kind::OpKind;
pub use lane::{
    Access, IoFuture, IoResult, Lane, OpenError, OpenErrorKind, Volume, VolumeEvent, VolumeEvents,
};
pub use shape::{Caps, Epoch, Limits, Shape, Support};
pub use unverified::UnverifiedBlocks;
pub use wrap::{Wrap, over};
