//! VHD images, the older format: they are read, so that what is in them can become something else.
//!
//! spec: Virtual Hard Disk Image Format Specification, October 2006

mod footer;
mod header;
mod read;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "sizes in tests are small")]
mod test;

pub use footer::VhdKind;
pub use read::{Vhd, VhdChain};
