//! Disk images on the command line.

mod create;
mod here;
mod progress;
mod source;
