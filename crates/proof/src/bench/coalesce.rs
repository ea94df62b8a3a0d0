//! Connections that wait for several PDUs beside ones that take each as it comes: what must not
//! have become worse.

use super::bar::{Bar, Limit};
use super::case::{Case, PEER_CASES, PLAIN_CASES};
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::{Effort, Variant, compare};
use super::servers::{self, Causeway};
use super::special::{Found, rates};

/// What of a row is compared.
type Figure = fn(&Figures) -> f64;

/// Cases, and what of each may be worse by a hundredth at most than without waiting.
const CASES: [(&str, &str, Figure); 6] = [
    ("r4k32", "processor time", |f| f.server),
    ("w4k32", "processor time", |f| f.server),
    ("r4k1", "p50", |f| f.p50),
    ("w4k1", "p50", |f| f.p50),
    ("plain-r4k1", "p50", |f| f.p50),
    ("plain-w4k1", "p50", |f| f.p50),
];

fn of(id: &str) -> Option<Case> {
    let mut cases = PEER_CASES.into_iter().chain(PLAIN_CASES);
    cases.find(|case| case.id == id)
}

/// Bursts at depth 32 and single commands, with `coalesce_us` as it is by default and with 0.
///
/// # Errors
/// What failed, for people.
pub fn coalescing(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let waits = Causeway {
        name: "waits for several",
        ..Causeway::usual(plan.bytes)
    };
    let takes = Causeway {
        name: "takes each",
        node_lines: "coalesce_us = 0\n",
        ..Causeway::usual(plan.bytes)
    };
    let waits = servers::causeway(&plan.place, &waits)?;
    let takes = servers::causeway(&plan.place, &takes)?;
    client.fill(&waits.unit)?;
    client.fill(&takes.unit)?;
    // One percent is less than a median of few rounds can show.
    let effort = Effort {
        rounds: plan.effort.rounds * 2 + 1,
        ..plan.effort
    };
    let mut found = Found::default();
    for (id, what, figure) in CASES {
        let Some(case) = of(id) else { continue };
        let variants = [&waits, &takes].map(|server| Variant {
            name: &server.name,
            unit: &server.unit,
            case,
        });
        let row = compare(client, &variants, effort)?;
        found.bars.push(Bar {
            what: format!("waits for several : takes each, {}, {what}", case.name),
            value: row.ratio(0, 1, figure),
            limit: Limit::AtMost(1.01),
            detail: rates(&row),
        });
        found.rows.push(row);
    }
    Ok(found)
}
