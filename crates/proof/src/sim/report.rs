//! What a run did, and what it found.

use super::oracle::Counts;
use env::sim::Hits;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Faults that took place.
    pub hits: Hits,
    /// Commands that were judged.
    pub counts: Counts,
    /// Events of a story.
    pub marks: Marks,
    /// The hash of all its events.
    pub hash: u64,
    /// Steps that it took.
    pub steps: u64,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that shows it.
    pub seed: u64,
    /// What `sim --scene` takes to run it again.
    pub scene: &'static str,
    /// What went wrong.
    pub what: Vec<String>,
    /// The last events, and all commands.
    pub trace: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} of scene {}:", self.seed, self.scene)?;
        for what in &self.what {
            writeln!(f, "  {what}")?;
        }
        write!(
            f,
            "again: cargo run -p proof --bin sim -- --scene {} --seed {}",
            self.scene, self.seed
        )
    }
}

/// Makes a failure of a panic: what panics in a task unwinds to here; the world is then left as it
/// is.
pub(super) fn caught(
    scene: &'static str,
    seed: u64,
    running: impl FnOnce() -> Result<Report, Box<Failure>>,
) -> Result<Report, Box<Failure>> {
    catch_unwind(AssertUnwindSafe(running)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Box::new(Failure {
            seed,
            scene,
            what: vec![format!("panic: {}", text.unwrap_or("without words"))],
            trace: String::new(),
        }))
    })
}

/// How often each class of events of a story took place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Marks(BTreeMap<&'static str, u64>);

impl Marks {
    /// One more.
    pub fn count(&mut self, class: &'static str) {
        *self.0.entry(class).or_insert(0) += 1;
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (class, count) in &other.0 {
            *self.0.entry(class).or_insert(0) += count;
        }
    }

    /// How often this class took place.
    #[must_use]
    pub fn of(&self, class: &str) -> u64 {
        self.0.get(class).copied().unwrap_or(0)
    }

    /// The classes of `wanted` that never took place.
    #[must_use]
    pub fn missing(&self, wanted: &[&'static str]) -> Vec<&'static str> {
        let never = |class: &&&str| !self.0.contains_key(**class);
        wanted.iter().filter(never).copied().collect()
    }
}
