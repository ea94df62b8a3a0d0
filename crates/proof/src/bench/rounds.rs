//! Alternating rounds: every server takes its turn at a case, over and over, so that whatever else the machine
//! does falls on all of them. Ratios are taken within a round, and the median of them is what counts.

use super::case::Case;
use super::load::{Client, Figures};
use super::servers::Server;
use std::fs;
use std::time::Duration;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds.
    pub rounds: usize,
    /// Time of one server in one round.
    pub time: Duration,
}

/// A case with every server's rounds.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was done.
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

    /// The place of a server.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|server| server == name)
    }
}

/// The machine's load.
#[must_use]
pub fn load() -> f64 {
    let told = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = told.split_whitespace().next();
    first.and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

/// Measures one case.
///
/// # Errors
/// What failed, for people.
pub fn measure(
    client: &Client,
    servers: &[&Server],
    case: &Case,
    effort: Effort,
) -> Result<Row, String> {
    let mut row = Row {
        case: *case,
        servers: servers.iter().map(|server| server.name.clone()).collect(),
        rounds: Vec::new(),
        loads: vec![load()],
    };
    let warm_up = effort.time / 5;
    for round in 0..effort.rounds {
        let mut figures = vec![Figures::default(); servers.len()];
        // Who begins changes from round to round.
        for turn in 0..servers.len() {
            let at = (turn + round) % servers.len();
            let server = servers[at];
            let done = client.run(&server.unit, case, warm_up, effort.time);
            figures[at] =
                done.map_err(|error| format!("{}, {}: {error}", server.name, case.name))?;
        }
        row.rounds.push(figures);
        row.loads.push(load());
    }
    Ok(row)
}
