//! The history of a volume: numbers of its changes that have no gap, cuts, and which parts changed
//! since which cut.

mod changed;
mod file;
mod survey;

pub use file::bytes_for;
pub use survey::{HistorySurvey, survey_history};

pub(crate) use changed::changed;
pub(crate) use file::{FoundChange, HistoryFile, Turns, WeakTurns};
