//! What the log holds is written to the backing volumes, and its room used again.

mod contents;
mod destager;
mod drain;
mod log_read;
mod pace;
mod relocate;
mod writes;

pub(crate) use destager::destage;
pub(crate) use drain::drained;
