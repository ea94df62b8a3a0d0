//! What a run is to measure.

use super::rounds::Effort;
use super::servers::Place;
use std::path::PathBuf;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where things are.
    pub place: Place,
    /// Where the report goes, and files of the file backend are made.
    pub out: PathBuf,
    /// How much.
    pub effort: Effort,
    /// Bytes of the units.
    pub bytes: u64,
    /// Cases by their short names; all where empty.
    pub cases: Vec<String>,
    /// Servers, Causeway among them.
    pub peers: Vec<String>,
    /// An older `causeway` binary, the server `before`.
    pub before: Option<PathBuf>,
}

impl Plan {
    pub(super) fn wants(&self, id: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|case| case == id)
    }
}
