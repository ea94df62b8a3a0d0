//! What hosts notice of a scrub: a unit with checksums in a pool with a journal, while it is
//! scrubbed and while it is not.

use super::bar::{Bar, Limit};
use super::case::{PEER_CASES, READ_4K, WRITE_4K};
use super::durable::{Daemon, SMALL_MIB};
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::{Effort, Row, take_turns};
use super::servers::Causeway;
use super::special::{Found, rates};

/// Bytes of the unit: more than is scrubbed in the moments in which no host works.
const BYTES: u64 = 2 << 30;

/// A turn with hosts that work, scrubbed or not.
fn turn(
    daemon: &Daemon,
    plan: &Plan,
    scrubbed: bool,
    work: impl FnOnce() -> Result<Figures, String>,
) -> Result<(Figures, u64), String> {
    daemon.is_destaged(plan)?;
    if !scrubbed {
        return Ok((work()?, 0));
    }
    daemon.control(plan, &["scrub", "start", "bench"])?;
    let before = done(daemon, plan)?;
    let figures = work()?;
    let after = done(daemon, plan)?;
    daemon.control(plan, &["scrub", "stop", "bench"])?;
    Ok((figures, after.saturating_sub(before)))
}

/// Bytes that the scrub has read, which must run.
fn done(daemon: &Daemon, plan: &Plan) -> Result<u64, String> {
    let reported = daemon.control(plan, &["-o", "json", "scrub", "status", "bench"])?;
    let status: serde_json::Value =
        serde_json::from_str(&reported).map_err(|error| format!("{error}: {reported}"))?;
    let done = status["done_bytes"].as_u64();
    done.filter(|_| status["state"] == "running")
        .ok_or_else(|| format!("the scrub does not run: {reported}"))
}

fn bars(row: &Row, found: &mut Found) {
    let name = row.case.name;
    let p50 = |at: usize| row.of(at, |figures| figures.p50);
    found.bars.push(Bar {
        what: format!("while it is scrubbed : not, {name}, IOPS"),
        value: row.ratio(1, 0, Figures::iops),
        limit: Limit::AtLeast(0.9),
        detail: rates(row),
    });
    found.bars.push(Bar {
        what: format!("while it is scrubbed : not, {name}, p50"),
        value: row.ratio(1, 0, |figures| figures.p50),
        limit: Limit::AtMost(1.2),
        detail: format!("{:.0} us; {:.0} us", p50(0), p50(1)),
    });
}

/// Random reads, writes and a mix.
///
/// # Errors
/// What failed, for people.
pub fn scrub(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let how = Causeway {
        name: "scrubbed",
        unit_lines: "integrity = true",
        ..Causeway::usual(BYTES)
    };
    let daemon = Daemon::journaled(plan, client, &how, SMALL_MIB)?;
    let effort = Effort {
        rounds: plan.effort.rounds * 2 + 1,
        ..plan.effort
    };
    let mut found = Found::default();
    let mixed = PEER_CASES.into_iter().find(|case| case.id == "m4k32");
    for case in [Some(READ_4K), Some(WRITE_4K), mixed].into_iter().flatten() {
        let names = ["not scrubbed", "scrubbed"].map(str::to_owned).to_vec();
        let mut read = Vec::new();
        let mut run = |at: usize, warm_up| {
            let work = || client.run(&daemon.server.unit, &case, warm_up, effort.time);
            let (figures, bytes) = turn(&daemon, plan, at == 1, work)?;
            if at == 1 {
                #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
                read.push(bytes as f64 / f64::from(1 << 20));
            }
            Ok(figures)
        };
        let row = take_turns(case, names, effort, &mut run)?;
        bars(&row, &mut found);
        found.bars.push(Bar {
            what: format!("MiB that the scrub reads in a turn beside {}", case.name),
            value: super::rounds::median(read),
            limit: Limit::Stated,
            detail: format!("turns of {:?}", effort.time),
        });
        found.rows.push(row);
    }
    Ok(found)
}
