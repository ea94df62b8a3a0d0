//! Alternating rounds: every server takes its turn at a case, over and over, so that whatever else
//! the machine does falls on all of them. Ratios are taken within a round, and the median of them
//! is what counts.

use super::case::Case;
use super::figures::{Figures, Unit};
use super::load::LoadClient;
use super::servers::Server;
use std::fs;
use std::time::Duration;

/// Share of the machine that other programs may have in a measurement.
const OTHERS_MAX: f64 = 0.1;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often each server has its turn; figures are medians over them.
    pub rounds: usize,
    /// Time of one server in one round.
    pub time: Duration,
    /// Measure again where other programs had much of the machine. Pointless where they have only
    /// what is left over.
    pub again: bool,
}

/// A case with every server's rounds.
#[derive(Clone, Debug)]
pub struct Row {
    /// The load of its rounds.
    pub case: Case,
    /// Names of the servers.
    pub servers: Vec<String>,
    /// Rounds, each with one entry a server.
    pub rounds: Vec<Vec<Figures>>,
    /// The machine's load (mean of one minute) before each round, and after the last.
    pub loads: Vec<f64>,
}

/// The middle of these values; 0 where there is none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Row {
    /// Median of a figure of one server.
    #[must_use]
    pub fn of(&self, server: usize, figure: fn(&Figures) -> f64) -> f64 {
        median(
            self.rounds
                .iter()
                .map(|round| figure(&round[server]))
                .collect(),
        )
    }

    /// Median over the rounds of one server's figure divided by another's of the same round.
    #[must_use]
    pub fn ratio(&self, server: usize, to: usize, figure: fn(&Figures) -> f64) -> f64 {
        let ratios = self.rounds.iter();
        median(
            ratios
                .map(|round| figure(&round[server]) / figure(&round[to]))
                .collect(),
        )
    }

    /// The largest share of the machine that others had in a round, while it was measured.
    #[must_use]
    pub fn others(&self) -> f64 {
        let shares = self.rounds.iter().flatten().map(|figures| figures.others);
        shares.fold(0.0, f64::max)
    }

    /// The place of a server.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|server| server == name)
    }
}

/// The machine's load.
#[must_use]
pub fn load() -> f64 {
    let reported = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = reported.split_whitespace().next();
    first.and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// One of the things that take turns.
#[derive(Clone, Copy)]
pub struct Variant<'a> {
    /// For people.
    pub name: &'a str,
    /// The unit that is loaded.
    pub unit: &'a Unit,
    /// The load.
    pub case: Case,
}

/// Measures a case with every server.
///
/// # Errors
/// What failed, for people.
pub fn measure(
    client: &LoadClient,
    servers: &[&Server],
    case: &Case,
    effort: Effort,
) -> Result<Row, String> {
    let variants = servers.iter().map(|server| Variant {
        name: &server.name,
        unit: &server.unit,
        case: *case,
    });
    compare(client, &variants.collect::<Vec<_>>(), effort)
}

/// Measures variants of a case.
///
/// # Errors
/// What failed, for people.
pub fn compare(
    client: &LoadClient,
    variants: &[Variant<'_>],
    effort: Effort,
) -> Result<Row, String> {
    let names = variants.iter().map(|variant| variant.name.to_owned());
    let mut run = |at: usize, warm_up| {
        let Variant { unit, case, .. } = &variants[at];
        client.run(unit, case, warm_up, effort.time)
    };
    take_turns(variants[0].case, names.collect(), effort, &mut run)
}

/// Measures until others leave the machine alone, at most three times; the measurement that they
/// disturbed least counts, whatever it says.
fn quietest(
    again: bool,
    mut run: impl FnMut() -> Result<Figures, String>,
) -> Result<Figures, String> {
    let mut best = run()?;
    for _ in 0..2 {
        if !again || best.others <= OTHERS_MAX {
            break;
        }
        let again = run()?;
        if again.others < best.others {
            best = again;
        }
    }
    Ok(best)
}

/// Lets everyone have a turn in every round; who begins changes from round to round.
///
/// # Errors
/// What failed, for people.
pub fn take_turns(
    case: Case,
    names: Vec<String>,
    effort: Effort,
    run: &mut dyn FnMut(usize, Duration) -> Result<Figures, String>,
) -> Result<Row, String> {
    let mut row = Row {
        case,
        servers: names,
        rounds: Vec::new(),
        loads: vec![load()],
    };
    let count = row.servers.len();
    for round in 0..effort.rounds {
        let mut figures = vec![Figures::default(); count];
        for turn in 0..count {
            let at = (turn + round) % count;
            let done = quietest(effort.again, || run(at, effort.time / 5));
            figures[at] =
                done.map_err(|error| format!("{}, {}: {error}", row.servers[at], case.name))?;
        }
        row.rounds.push(figures);
        row.loads.push(load());
    }
    Ok(row)
}
