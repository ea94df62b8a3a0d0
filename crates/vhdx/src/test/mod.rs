//! Tests of whole images, over disks in memory.

#![expect(clippy::cast_possible_truncation, reason = "sizes in tests are small")]

mod chains;
mod changes;
mod crashes;
pub(crate) mod disk;
mod images;
pub(crate) mod world;
