//! Allocation of blocks that lie on several parts by turns.
//!
//! **Cost.** One question to each part, and as many steps as the answer has runs, times the
//! columns: never as many as there are units.

use super::map::Turns;
use volume::{Extent, ExtentKind, ExtentList};

/// Runs of one answer at most.
const EXTENTS_MAX: usize = 256;

/// What a column's part has said of its blocks, and how far it has been used.
struct Reported {
    extents: ExtentList,
    next: usize,
    /// The first block of the column, as its part counts.
    start: u64,
}

impl Reported {
    /// What holds a block of the column, and the first block behind it; `None` where the part has
    /// not said it.
    fn at(&mut self, block: u64) -> Option<(ExtentKind, u64)> {
        while let Some(extent) = self.extents.get(self.next) {
            let end = extent.range.end().0 - self.start;
            if end > block {
                return Some((extent.kind, end));
            }
            self.next += 1;
        }
        None
    }
}

/// The runs of blocks `from..to` of a row, counted from its start, of which each column's part has
/// reported its own; as far as all that is needed was reported. They are reported in blocks of the
/// row.
pub(super) fn by_turns(
    turns: Turns,
    (from, to): (u64, u64),
    columns: Vec<(u64, ExtentList)>,
) -> Vec<(u64, u64, ExtentKind)> {
    let reported = columns.into_iter().map(|(start, extents)| Reported {
        extents,
        next: 0,
        start,
    });
    let mut reported: Vec<Reported> = reported.collect();
    let mut runs: Vec<(u64, u64, ExtentKind)> = Vec::new();
    let mut at = from;
    while at < to {
        let Some((kind, end)) = next_run(turns, (at, to), &mut reported) else {
            break;
        };
        let count = runs.len();
        match runs.last_mut() {
            Some((_, last, same)) if *same == kind => *last = end,
            _ if count == EXTENTS_MAX => break,
            _ => runs.push((at, end, kind)),
        }
        at = end;
    }
    runs
}

/// What is known of the row from a block on, and how far that goes.
fn next_run(
    turns: Turns,
    (at, to): (u64, u64),
    reported: &mut [Reported],
) -> Option<(ExtentKind, u64)> {
    let (column, block) = turns.column_of(at);
    let (kind, end) = reported.get_mut(column)?.at(block)?;
    // As far as this unit goes, whatever the other columns hold ...
    let in_unit = turns.row_block(column, end - 1) + 1;
    let mut reach = in_unit.min(turns.unit_end(at)).min(to);
    // ... or to the first block of any column that is of another kind.
    let mut common = to;
    for (number, column) in reported.iter_mut().enumerate() {
        let first = turns.before(number, at);
        if turns.before(number, to) == first {
            continue;
        }
        match column.at(first) {
            Some((other, end)) if other == kind => {
                if end < turns.before(number, to) {
                    common = common.min(turns.row_block(number, end));
                }
            }
            Some(_) | None => return Some((kind, reach)),
        }
    }
    reach = reach.max(common);
    Some((kind, reach))
}

/// An extent of the volume.
pub(super) fn extent(start: u64, end: u64, kind: ExtentKind) -> Extent {
    let range = units::LbaRange::between(units::Lba(start), units::Lba(end));
    Extent {
        range: range.expect("runs go forward"),
        kind,
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use env::sim::Rng;

    /// The kind of each block, from runs.
    fn kinds(runs: &[(u64, u64, ExtentKind)]) -> Vec<ExtentKind> {
        let each = |(start, end, kind): &(u64, u64, ExtentKind)| {
            let count = usize::try_from(end - start).unwrap();
            vec![*kind; count]
        };
        runs.iter().flat_map(each).collect()
    }

    fn list(start: u64, from: u64, of: &[ExtentKind]) -> ExtentList {
        let mut all: ExtentList = ExtentList::new();
        for (at, kind) in (start + from..).zip(of) {
            match all.last_mut() {
                Some(last) if last.kind == *kind => {
                    *last = extent(last.range.start().0, at + 1, *kind);
                }
                _ => all.push(extent(at, at + 1, *kind)),
            }
        }
        all
    }

    #[test]
    fn what_is_all_of_one_kind_takes_one_step_whatever_its_size() {
        let turns = Turns {
            unit: 16,
            columns: 3,
        };
        let most = 1_u64 << 60;
        let whole = |column| (7, list_of(7, turns.before(column, 3 * most)));
        let reported = (0..3).map(whole).collect();
        let runs = by_turns(turns, (5, 3 * most), reported);
        assert_eq!(runs, [(5, 3 * most, ExtentKind::Deallocated)]);
    }

    fn list_of(start: u64, blocks: u64) -> ExtentList {
        std::iter::once(extent(start, start + blocks, ExtentKind::Deallocated)).collect()
    }

    #[test]
    fn runs_are_what_block_by_block_would_say() {
        for seed in 0..4000 {
            let mut rng = Rng::new(seed);
            let columns = rng.between(1, 4);
            let turns = Turns {
                unit: rng.between(1, 4),
                columns,
            };
            let blocks = rng.between(1, 8) * turns.unit * columns;
            let from = rng.below(blocks);
            let to = rng.between(from + 1, blocks);
            let drawn: Vec<(u64, u64)> = (0..columns)
                .map(|_| (rng.between(1, 7), rng.below(9)))
                .collect();
            // A part says at least one block of what it is asked.
            let known: Vec<u64> = (0..columns).map(|_| rng.between(1, 20)).collect();
            let kind = |column: usize, block: u64| {
                let (period, shift) = drawn[column];
                if ((block + shift) / period).is_multiple_of(2) {
                    ExtentKind::Mapped
                } else {
                    ExtentKind::Deallocated
                }
            };
            let mut reported = Vec::new();
            for (column, known) in known.iter().enumerate() {
                let (first, end) = (turns.before(column, from), turns.before(column, to));
                let end = end.min(first + known);
                let of: Vec<ExtentKind> = (first..end).map(|block| kind(column, block)).collect();
                reported.push((100, list(100, first, &of)));
            }
            let expected: Vec<ExtentKind> = (from..to)
                .map(|at| turns.column_of(at))
                .take_while(|(column, block)| *block < turns.before(*column, from) + known[*column])
                .map(|(column, block)| kind(column, block))
                .collect();
            let runs = by_turns(turns, (from, to), reported);
            assert_eq!(runs.first().map(|run| run.0), Some(from), "seed {seed}");
            let joined =
                |two: &[(u64, u64, ExtentKind)]| two[0].1 == two[1].0 && two[0].2 != two[1].2;
            assert!(runs.windows(2).all(joined), "seed {seed}");
            assert_eq!(kinds(&runs), expected, "seed {seed}");
        }
    }

    #[test]
    fn an_answer_has_as_many_runs_as_it_may_have_and_no_more() {
        let turns = Turns {
            unit: 1,
            columns: 2,
        };
        // Each unit of the row is of another kind than the one before.
        let blocks = 1024;
        let kinds = [ExtentKind::Mapped, ExtentKind::Deallocated];
        let whole = |kind: ExtentKind| {
            let range = extent(0, blocks, kind);
            (0, std::iter::once(range).collect())
        };
        let runs = by_turns(turns, (0, 2 * blocks), kinds.map(whole).to_vec());
        assert_eq!(runs.len(), EXTENTS_MAX);
        assert!(runs.iter().all(|(start, end, _)| end - start == 1));
    }
}
