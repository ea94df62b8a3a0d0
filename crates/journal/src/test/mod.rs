//! The journal's machines on a disk of their own.

mod formats;
mod logs;
mod rings;
mod versions;
mod world;
