//! Many of something: idle sessions, and logical units.

use super::bar::{Bar, Limit};
use super::case::READ_4K;
use super::clock;
use super::figures::{Figures, Unit};
use super::load::{LoadClient, log_in};
use super::plan::Plan;
use super::rounds::{Variant, compare};
use super::servers::{self, Causeway};
use super::special::{Found, rates};
use super::usage::resident;
use env::CoreHandle;
use iscsi_initiator::Session;
use std::cell::RefCell;
use std::rc::Rc;

/// Sessions that do nothing.
const IDLE: u16 = 1000;
/// Logical units.
const UNITS: usize = 10_000;

/// Idle sessions that the client's core keeps.
#[derive(Default)]
struct Held(RefCell<Vec<Session>>);

async fn hold(core: CoreHandle, unit: Unit) -> Result<(), String> {
    let held: Rc<Held> = core.locals().get();
    for number in 0..IDLE {
        let connection = log_in(&core, &unit, 1000 + number, false).await;
        let connection = connection.map_err(|error| format!("session {number}: {error}"))?;
        held.0.borrow_mut().push(Session::new(&core, connection));
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "sizes of memory")]
fn each(bytes: u64, count: u16) -> f64 {
    bytes as f64 / f64::from(count)
}

/// A thousand idle sessions: memory, and what they cost a busy one.
///
/// # Errors
/// What failed, for people.
pub fn idle_sessions(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let of = |name| Causeway {
        name,
        ..Causeway::usual(plan.bytes)
    };
    let alone = servers::causeway(&plan.place, &of("alone"))?;
    let crowded = servers::causeway(&plan.place, &of("beside 1000 idle"))?;
    client.fill(&alone.unit)?;
    client.fill(&crowded.unit)?;
    let before = resident(crowded.process())?;
    let unit = crowded.unit.clone();
    client.on_core(move |core| Box::pin(hold(core, unit)))?;
    let after = resident(crowded.process())?;
    let mut found = Found::default();
    found.bars.push(Bar {
        what: format!("{IDLE} idle sessions, resident KiB each"),
        value: each(after.saturating_sub(before), IDLE) / 1024.0,
        limit: Limit::AtMost(64.0),
        detail: format!("{} MiB before, {} MiB with them", before >> 20, after >> 20),
    });
    let variants = [&alone, &crowded].map(|server| Variant {
        name: &server.name,
        unit: &server.unit,
        case: READ_4K,
    });
    let row = compare(client, &variants, plan.effort)?;
    found.bars.push(Bar {
        what: format!("a busy session beside {IDLE} idle : alone, processor time"),
        value: row.ratio(1, 0, |f: &Figures| f.server),
        limit: Limit::Within(0.05),
        detail: rates(&row),
    });
    found.rows.push(row);
    client.on_core(|core| {
        Box::pin(async move {
            let held: Rc<Held> = core.locals().get();
            held.0.borrow_mut().clear();
        })
    });
    Ok(found)
}

/// Ten thousand units: the time until the daemon answers, and the time of a listing.
///
/// # Errors
/// What failed, for people.
pub fn units(plan: &Plan) -> Result<Found, String> {
    let many = Causeway {
        name: "many units",
        more_units: UNITS - 1,
        ..Causeway::usual(1 << 20)
    };
    let server = servers::causeway(&plan.place, &many)?;
    drop(server);
    let begin = clock();
    let server = servers::again(&plan.place, &many)?;
    let start = begin.elapsed().as_secs_f64();
    let begin = clock();
    let listed = servers::list_units(&plan.place, &many)?;
    let listing = begin.elapsed().as_secs_f64();
    drop(server);
    let lines = listed.lines().count();
    let bar = |what: &str, value, limit| Bar {
        what: what.to_owned(),
        value,
        limit: Limit::AtMost(limit),
        detail: format!("{lines} lines listed, of {UNITS} units in memory"),
    };
    Ok(Found {
        bars: vec![
            bar("10,000 units, seconds to start", start, 5.0),
            bar("10,000 units, seconds to list", listing, 1.0),
        ],
        ..Found::default()
    })
}
