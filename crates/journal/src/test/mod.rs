//! The journal's machines on a disk of their own.

mod bytes;
mod damaged;
mod followed;
mod formats;
mod logs;
mod relocated;
mod rings;
pub(crate) mod rules;
mod uncommitted;
mod versions;
mod world;
