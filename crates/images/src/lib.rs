//! Disk images on the command line: `causeway image`.
//!
//! ```text
//!   verbs      the arguments, and what runs each
//!     create   a new image, under another name until it is whole
//!     facts    what an image is; what a check finds
//!     convert  raw, VHD and VHDX into raw and VHDX; others by qemu
//!     qemu     what qemu-img converts
//!     target   what a conversion makes
//!     change   resize, compact, merge
//!   progress   how far, how fast, how long yet, for a person who waits
//! ```
//!
//! **Contract.** No daemon is asked. Whoever changes an image has its lock, and closes it, so that
//! other programs need not replay a log. What is made has its name when it is whole and stable:
//! a run that was stopped, killed or cut leaves a file that ends in `.part`, or the image as it
//! was. A conversion reads what its source is said to be: a guest writes the bytes of a raw disk.

mod change;
mod convert;
mod create;
mod facts;
mod here;
mod progress;
mod qemu;
mod source;
mod target;
mod verbs;

pub use verbs::ImageVerb;
