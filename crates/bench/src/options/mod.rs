//! What a run shall do: diskspd's options, and ours.

mod help;
mod model;
mod parse;
mod size;

pub use help::HELP;
pub use model::{Access, Form, Mistake, Options, Profile, Rate, Source, Zone, ZoneExtent};
pub use parse::{INITIATOR_FLAGS, INITIATOR_VALUES, parse, parse_over};
pub use size::{show_size, size};

#[cfg(test)]
mod test;
