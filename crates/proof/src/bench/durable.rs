//! Durable writes: acknowledged from a journal, beside the same through the same session to where
//! they belong, and beside fio.
//!
//! All on one disk. Before each turn all that the journal has is destaged, so that nobody works
//! while another one is measured. The steady state begins when the journal has filled so far that
//! as much is destaged as comes.

use super::bar::{Bar, Limit};
use super::case::{Case, WRITE_4K};
use super::disk::{empty_pool, fio, largest};
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::{Effort, Row, take_turns};
use super::servers::{self, Causeway, Server, journal_facts, journal_of, pause};
use super::special::{Found, rates};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the units.
const BYTES: u64 = 1 << 30;

/// Of those whose flush takes a millisecond: all of it is written first.
const SLOW_BYTES: u64 = 128 << 20;

/// MiB of a journal of which a turn fills less than the part from which on hosts share the disk
/// with what is destaged.
const LARGE_MIB: u64 = 2048;

/// MiB of a journal that is in its steady state soon.
pub(super) const SMALL_MIB: u64 = 256;

/// How long it takes to be there, with a margin.
const STEADY_AFTER: Duration = Duration::from_secs(6);

/// How much longer a turn is there, so that many rounds of destaging are in it.
const STEADY_TURNS: u32 = 4;

/// How long all that a journal has may take to be destaged.
const DESTAGE_TIME_MAX: Duration = Duration::from_secs(60);

const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// The journal is write-back's; for every other way FUA says so.
const CASE: Case = Case {
    id: "w4k32stable",
    name: "4K random durable write, depth 32",
    ..WRITE_4K.with_fua()
};

const ONE: Case = Case {
    id: "w4k1stable",
    name: "4K random durable write, depth 1",
    depth: 1,
    ..CASE
};

const STEADY: Case = Case {
    id: "w4k32steady",
    name: "4K random durable write, depth 32, steady state",
    ..CASE
};

const SLOW: Case = Case {
    id: "w4k32flush",
    name: "4K random durable write, depth 32, flushes of 1 ms",
    ..CASE
};

/// A daemon with a pool of its own.
pub(super) struct Daemon {
    how: Causeway,
    pub(super) server: Server,
    /// Goes after the server.
    pool: Pool,
}

struct Pool(PathBuf);

impl Drop for Pool {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
        let _gone = fs::remove_file(journal_of(&self.0));
    }
}

impl Daemon {
    /// Starts it, and writes its unit.
    pub(super) fn start(
        plan: &Plan,
        client: &LoadClient,
        how: &Causeway,
        directory: &str,
    ) -> Result<Self, String> {
        let pool = empty_pool(plan, directory)?;
        let _none = fs::remove_file(journal_of(&pool));
        let pool = Pool(pool);
        let how = Causeway {
            pool: Some(pool.0.clone()),
            ..how.clone()
        };
        let server = servers::causeway(&plan.place, &how)?;
        client.fill(&server.unit)?;
        Ok(Self { how, server, pool })
    }

    /// Write-back, with a journal of so many MiB.
    pub(super) fn journaled(
        plan: &Plan,
        client: &LoadClient,
        how: &Causeway,
        journal_mib: u64,
    ) -> Result<Self, String> {
        let how = Causeway {
            journal_mib,
            ..how.clone()
        };
        let daemon = Self::start(plan, client, &how, "pool-journaled")?;
        daemon.is_destaged(plan)?;
        Ok(daemon)
    }

    fn through(plan: &Plan, client: &LoadClient, how: Causeway) -> Result<Self, String> {
        let unit_lines = "cache = \"write-through\"";
        let how = Causeway { unit_lines, ..how };
        Self::start(plan, client, &how, "pool-through")
    }

    /// Says something to it.
    pub(super) fn control(&self, plan: &Plan, words: &[&str]) -> Result<String, String> {
        servers::control(&plan.place, &self.how, words)
    }

    /// What its journal is like.
    pub(super) fn facts(&self, plan: &Plan) -> Result<serde_json::Value, String> {
        journal_facts(&plan.place, &self.how)
    }

    /// A number of its journal.
    pub(super) fn fact(&self, plan: &Plan, name: &str) -> Result<u64, String> {
        let facts = self.facts(plan)?;
        facts[name]
            .as_u64()
            .ok_or_else(|| format!("the journal reports no {name}: {facts}"))
    }

    /// Waits until its journal has nothing that is not destaged.
    pub(super) fn is_destaged(&self, plan: &Plan) -> Result<(), String> {
        let until = super::clock() + DESTAGE_TIME_MAX;
        while self.fact(plan, "pending_bytes")? > 0 {
            if super::clock() > until {
                return Err(format!(
                    "after {} s not all is destaged",
                    DESTAGE_TIME_MAX.as_secs()
                ));
            }
            pause(PROBE_INTERVAL);
        }
        Ok(())
    }

    /// The file of its unit.
    fn file(&self) -> Result<PathBuf, String> {
        let (_, file) = largest(&self.pool.0).ok_or("the pool has no file")?;
        Ok(file)
    }
}

fn bar(row: &Row, to: usize, limit: f64) -> Bar {
    Bar {
        what: format!("write-back : {}, {}, IOPS", row.servers[to], row.case.name),
        value: row.ratio(0, to, Figures::iops),
        limit: Limit::AtLeast(limit),
        detail: rates(row),
    }
}

/// The three of them, and their bars.
struct Three<'a> {
    plan: &'a Plan,
    client: &'a LoadClient,
    journaled: &'a Daemon,
    through: &'a Daemon,
}

impl Three<'_> {
    /// One of them has its turn.
    fn turn(&self, at: usize, case: &Case, times: (Duration, Duration)) -> Result<Figures, String> {
        self.journaled.is_destaged(self.plan)?;
        let (warm_up, time) = times;
        let done = match at {
            0 => self
                .client
                .run(&self.journaled.server.unit, case, warm_up, time),
            1 => self
                .client
                .run(&self.through.server.unit, case, warm_up, time),
            _ => fio(&self.through.file()?, case, warm_up, time),
        };
        self.journaled.is_destaged(self.plan)?;
        done
    }

    fn row(&self, case: Case, effort: Effort, warm_up: Duration) -> Result<Row, String> {
        let names = ["write-back", "write-through", "fio"].map(str::to_owned);
        let mut run = |at, usual| self.turn(at, &case, (warm_up.max(usual), effort.time));
        take_turns(case, names.into(), effort, &mut run)
    }
}

/// Write-back beside write-through and fio: at rest, one at a time, and in the steady state.
///
/// # Errors
/// What failed, for people.
pub fn durable(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let mut found = Found::default();
    let usual = Causeway::usual(BYTES);
    let through = Causeway {
        name: "through",
        ..usual.clone()
    };
    let through = &Daemon::through(plan, client, through)?;
    let journaled = &Daemon::journaled(plan, client, &usual, LARGE_MIB)?;
    let three = Three {
        plan,
        client,
        journaled,
        through,
    };
    let row = three.row(CASE, plan.effort, Duration::ZERO)?;
    found.bars.push(bar(&row, 1, 1.3));
    found.bars.push(bar(&row, 2, 1.0));
    found.rows.push(row);
    let row = three.row(ONE, plan.effort, Duration::ZERO)?;
    let p50 = (0..2).map(|at| format!("{} {:.0} us", row.servers[at], row.of(at, |f| f.p50)));
    found.bars.push(Bar {
        what: format!("write-back : write-through, {}, p50", row.case.name),
        value: row.ratio(0, 1, |f| f.p50),
        limit: Limit::AtMost(1.1),
        detail: p50.collect::<Vec<_>>().join("; "),
    });
    found.rows.push(row);
    steady(&three, &mut found)?;
    Ok(found)
}

fn steady(three: &Three<'_>, found: &mut Found) -> Result<(), String> {
    let how = Causeway {
        name: "steady",
        ..Causeway::usual(BYTES)
    };
    let (plan, client) = (three.plan, three.client);
    let small = Causeway {
        journal_mib: SMALL_MIB,
        ..how
    };
    let journaled = &Daemon::start(plan, client, &small, "pool-steady")?;
    let effort = Effort {
        rounds: plan.effort.rounds.div_ceil(2),
        time: plan.effort.time * STEADY_TURNS,
        ..plan.effort
    };
    let steady = Three {
        journaled,
        ..*three
    };
    let row = steady.row(STEADY, effort, STEADY_AFTER)?;
    found.bars.push(Bar {
        limit: Limit::Stated,
        ..bar(&row, 1, 0.0)
    });
    found.bars.push(bar(&row, 2, 0.7));
    found.rows.push(row);
    Ok(())
}

/// Write-back beside write-through where each flush takes a millisecond, as it does on a disk with
/// a volatile cache.
///
/// # Errors
/// What failed, for people.
pub fn slow_flush(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let usual = Causeway {
        node_lines: "[testing]\nfiles = \"slow-flush\"\n",
        ..Causeway::usual(SLOW_BYTES)
    };
    let through = Causeway {
        name: "through",
        ..usual.clone()
    };
    let through = Daemon::through(plan, client, through)?;
    let journaled = Daemon::journaled(plan, client, &usual, LARGE_MIB)?;
    let names = ["write-back", "write-through"].map(str::to_owned);
    let mut run = |at: usize, warm_up| {
        let unit = &[&journaled, &through][at].server.unit;
        let done = client.run(unit, &SLOW, warm_up, plan.effort.time);
        journaled.is_destaged(plan)?;
        done
    };
    let row = take_turns(SLOW, names.into(), plan.effort, &mut run)?;
    Ok(Found {
        bars: vec![bar(&row, 1, 3.0)],
        rows: vec![row],
        ..Found::default()
    })
}
