//! The map against what devices do to it.

mod crashes;
mod formats;
