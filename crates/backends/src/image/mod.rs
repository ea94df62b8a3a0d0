//! Disk images in files: how they are opened, and how what their operations ask for is done.

mod drive;
mod opening;

pub use drive::{Drive, Failure, plain_sync};
pub use opening::{Opened, Purpose, open_alone, open_chain};
