//! The kill loop: nodes and members of etcd are killed in turn, again and again, under one verified
//! load.

use super::load::Load;
use super::order::{Act, Order, Programs, Which};
use super::site::Site;
use crate::error::LabError;
use crate::rate::Rate;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often, over which links, and which draws.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KillsOptions {
    /// Rate of every link.
    pub rate: Rate,
    /// Buffer of a port of the switches, in KiB.
    pub buffer_kib: u32,
    /// How many kills.
    pub rounds: u32,
    /// Which draws: who is killed in turn is fixed, and how long it is away is drawn.
    pub seed: u64,
}

impl Default for KillsOptions {
    fn default() -> Self {
        Self {
            rate: Rate::megabits(250),
            buffer_kib: 64,
            rounds: 30,
            seed: 1,
        }
    }
}

const LOAD: &[&str] = &[
    "-b4K", "-t1", "-o4", "-r", "-w50", "-f64M", "-d86400", "-W0", "-C0", "-L", "-g250i",
    "--verify",
];

/// How long copies may take to be equal again.
const WHOLE_MAX: Duration = Duration::from_secs(60);

/// A generator of draws (SplitMix64), so that a seed names a run.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to below `high`, in milliseconds.
    fn span(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(low + self.next() % (high - low))
    }
}

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Owner,
    Other,
    Both,
    Member(usize),
    /// The owner together with a member.
    OwnerAnd(usize),
}

/// Nodes and members in turn: each member comes, each node does, as it owns the LUN and as it does
/// not.
fn victim(round: u32) -> Victim {
    let member = usize::try_from(round / 2 % 3).unwrap_or(0);
    match round % 10 {
        0 | 4 | 8 => Victim::Owner,
        2 => Victim::Other,
        6 => Victim::OwnerAnd(member),
        9 => Victim::Both,
        _ => Victim::Member(member),
    }
}

impl Victim {
    const fn word(self) -> &'static str {
        match self {
            Self::Owner => "the node that serves",
            Self::Other => "the other node",
            Self::Both => "both nodes",
            Self::Member(_) => "a member of etcd",
            Self::OwnerAnd(_) => "the node that serves and a member of etcd",
        }
    }

    /// The longest operation that is well, in milliseconds: what is away is added where nobody
    /// serves meanwhile.
    const fn bar_ms(self) -> f64 {
        match self {
            Self::Owner => 5_000.0,
            Self::Other => 2_500.0,
            // A new leader of etcd, and the takeover.
            Self::OwnerAnd(_) => 8_000.0,
            Self::Both => 8_000.0,
            Self::Member(_) => 1_000.0,
        }
    }

    fn programs(self) -> Vec<Programs> {
        let owner = Programs::Node(Which::Owner);
        match self {
            Self::Owner => vec![owner],
            Self::Other => vec![Programs::Node(Which::Other)],
            Self::Both => vec![Programs::Nodes],
            Self::Member(at) => vec![Programs::Member(at)],
            Self::OwnerAnd(at) => vec![Programs::Member(at), owner],
        }
    }
}

/// What the host saw of all of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KillsReport {
    /// Its name.
    pub lab: &'static str,
    /// With these it is done again.
    pub options: KillsOptions,
    /// By who was killed.
    pub rows: Vec<KillsRow>,
    /// How often another node came to serve.
    pub takeovers: u64,
    /// How long it took.
    pub seconds: f64,
    /// Operations of the host.
    pub operations: u64,
    /// Those that failed, or were never answered.
    pub errors: u64,
    /// Blocks that were verified.
    pub checked: u64,
    /// Blocks that were wrong.
    pub bad: u64,
    /// All of it is well.
    pub met: bool,
}

/// All kills of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KillsRow {
    /// Who was killed.
    pub killed: &'static str,
    /// How often.
    pub times: u32,
    /// The longest that any operation took then, in milliseconds.
    pub longest_ms: f64,
    /// What is well for that.
    pub bar_ms: f64,
    /// The longest time until both nodes had all of the LUN again, in seconds.
    pub whole_seconds: f64,
}

/// Runs it; `report` is called with what is done.
///
/// # Errors
/// Where the cluster cannot be built, the load cannot run, or the copies do not come to be equal.
pub async fn kill_loop(
    program: &Path,
    options: KillsOptions,
    mut report: impl FnMut(&str),
) -> Result<KillsReport, LabError> {
    let mut site = Site::start(program, options.rate, options.buffer_kib).await?;
    let began = Instant::now();
    let load = Load::begin(&site, LOAD).await?;
    let mut rng = Draws(options.seed);
    let mut rows: Vec<KillsRow> = Vec::new();
    let first = site.epoch().await;
    for round in 0..options.rounds {
        let victim = victim(round);
        let from = load.seconds();
        let whole = one(&mut site, &load, victim, &mut rng)
            .await
            .map_err(|error| LabError {
                what: format!("kill {}, {}: {}", round + 1, victim.word(), error.what),
                ..error
            })?;
        let longest_ms = load.longest_ms(from);
        note(&mut rows, victim, longest_ms, whole);
        report(&format!(
            "{:>4}  {:<42} longest operation {longest_ms:6.0} ms, both copies whole after {whole:.1} s",
            round + 1,
            victim.word()
        ));
        if longest_ms > victim.bar_ms() {
            report(&load.account(from));
        }
    }
    let takeovers = site.epoch().await.saturating_sub(first);
    let figures = load.end().await?;
    let verified = figures.verify.clone().unwrap_or_default();
    let errors = figures.errors + figures.never_returned;
    let is_right = errors == 0 && verified.bad == 0 && verified.checked > 0;
    Ok(KillsReport {
        lab: "cluster kills",
        options,
        met: is_right && rows.iter().all(|it| it.longest_ms <= it.bar_ms),
        rows,
        takeovers,
        seconds: began.elapsed().as_secs_f64(),
        operations: figures.total.as_ref().map_or(0, |it| it.ios),
        errors,
        checked: verified.checked,
        bad: verified.bad,
    })
}

/// One kill: the time until all was as before, in seconds.
async fn one(
    site: &mut Site,
    load: &Load,
    victim: Victim,
    rng: &mut Draws,
) -> Result<f64, LabError> {
    sleep(rng.span(50, 400)).await;
    for programs in victim.programs() {
        site.obey(&Order::Program(Act::Kill, programs)).await?;
    }
    // Mostly it is back before the other one takes over, or soon after.
    let away = match rng.next() % 3 {
        0 => rng.span(0, 300),
        1 => rng.span(300, 2_500),
        _ => rng.span(2_500, 3_800),
    };
    sleep(away).await;
    site.obey(&Order::Program(Act::Start, Programs::All))
        .await?;
    site.etcd.well().await?;
    let Some(whole) = site.whole(WHOLE_MAX).await else {
        let said = site.mirrors().await.map(|it| it.map(|it| it.text));
        return Err(LabError::new(
            format!("the copies do not come to be equal: {said:?}"),
            "read the logs of both nodes",
        ));
    };
    works(load).await?;
    Ok(whole.as_secs_f64())
}

/// Waits until the host has worked for a whole second.
async fn works(load: &Load) -> Result<(), LabError> {
    let (now, until) = (load.seconds(), Instant::now() + Duration::from_secs(70));
    // What is under way began before, and what was held up ends in the next one.
    while load.seconds() < now + 2 || load.last().is_none_or(|it| it.iops == 0.0) {
        if load.is_over() || Instant::now() > until {
            let what = "the host does nothing any more, with both nodes well";
            return Err(LabError::new(what, "check the initiator's paths"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn note(rows: &mut Vec<KillsRow>, victim: Victim, longest_ms: f64, whole: f64) {
    let killed = victim.word();
    let at = rows.iter().position(|it| it.killed == killed);
    let at = at.unwrap_or_else(|| {
        rows.push(KillsRow {
            killed,
            times: 0,
            longest_ms: 0.0,
            bar_ms: victim.bar_ms(),
            whole_seconds: 0.0,
        });
        rows.len() - 1
    });
    let row = &mut rows[at];
    row.times += 1;
    row.longest_ms = row.longest_ms.max(longest_ms);
    row.whole_seconds = row.whole_seconds.max(whole);
}

impl KillsReport {
    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} kills in {:.0} s under one verified load: {} operations, {} errors, {} of {} blocks wrong, {} new epochs: {}\n\n\
             {:<42}{:>8}{:>12}{:>10}{:>10}\n",
            self.options.rounds,
            self.seconds,
            self.operations,
            self.errors,
            self.bad,
            self.checked,
            self.takeovers,
            if self.met { "met" } else { "NOT MET" },
            "killed",
            "times",
            "longest ms",
            "bar",
            "whole"
        );
        for row in &self.rows {
            let _fits = writeln!(
                out,
                "{:<42}{:>8}{:>12.0}{:>10.0}{:>8.1} s",
                row.killed, row.times, row.longest_ms, row.bar_ms, row.whole_seconds
            );
        }
        out
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn thirty_kills_take_every_kind_and_every_member() {
        let all: Vec<Victim> = (0..30).map(victim).collect();
        let kinds: BTreeSet<&str> = all.iter().map(|it| it.word()).collect();
        assert_eq!(kinds.len(), 5, "{kinds:?}");
        for member in 0..3 {
            assert!(all.contains(&Victim::Member(member)), "{member}");
        }
        let mut rows = Vec::new();
        note(&mut rows, Victim::Owner, 10.0, 2.0);
        note(&mut rows, Victim::Owner, 20.0, 1.0);
        assert_eq!((rows.len(), rows[0].times), (1, 2));
        assert_eq!((rows[0].longest_ms, rows[0].whole_seconds), (20.0, 2.0));
    }
}
