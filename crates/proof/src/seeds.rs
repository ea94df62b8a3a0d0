//! Which seeds a test runs, where somebody wants others than it has.

use std::ops::Range;

/// The seeds: so many from 0 on, or `CAUSEWAY_SEEDS` from `CAUSEWAY_FIRST_SEED` on.
///
/// # Panics
/// If one of them is set and no number.
#[must_use]
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str, usual: u64| {
        let set = std::env::var(name).ok();
        set.map_or(usual, |it| it.parse().expect("a number of seeds"))
    };
    let first = number("CAUSEWAY_FIRST_SEED", 0);
    first..first + number("CAUSEWAY_SEEDS", usual)
}
