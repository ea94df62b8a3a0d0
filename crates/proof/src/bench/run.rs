//! The whole run: starts servers, measures, writes the report.

use super::case::{PEER_CASES, PLAIN_CASES};
use super::load::LoadClient;
use super::machine;
use super::plan::Plan;
use super::report::{self, BenchReport};
use super::rounds::{Row, measure};
use super::servers::{self, Causeway, Place, Server};
use super::special::{self, Found};
use super::{
    cache, coalesce, disk, durable, foreign, integrity, layer, many, replay, scrub, steady,
};

/// The comparisons of Causeway with itself and with fio, by their short names.
const SPECIAL: [&str; 17] = [
    "cores",
    "poll",
    "sectors",
    "digests",
    "layer",
    "file",
    "cache",
    "durable",
    "flush",
    "steady",
    "replay",
    "integrity",
    "scrub",
    "idle",
    "units",
    "foreign",
    "coalesce",
];

fn start(plan: &Plan, name: &str) -> Result<Server, String> {
    match name {
        "null" => servers::null(&plan.place, plan.bytes),
        "causeway" => servers::causeway(&plan.place, &Causeway::usual(plan.bytes)),
        "before" => before(plan),
        "tgt" => servers::tgt(&plan.place, plan.bytes),
        "istgt" => servers::istgt(&plan.place, plan.bytes),
        other => Err(format!(
            "there is no server {other}: null, causeway, before, tgt, istgt"
        )),
    }
}

/// An older Causeway, so that a change is measured within the rounds of one run.
fn before(plan: &Plan) -> Result<Server, String> {
    let Some(causeway) = plan.before.clone() else {
        return Err("the server before is an older causeway: BEFORE=path/of/its/binary".to_owned());
    };
    let place = Place {
        causeway,
        ..plan.place.clone()
    };
    let how = Causeway {
        name: "before",
        ..Causeway::usual(plan.bytes)
    };
    servers::causeway(&place, &how)
}

/// The cases with every server.
fn peers(plan: &Plan, client: &LoadClient) -> Result<Vec<Row>, String> {
    let cases: Vec<_> = PEER_CASES
        .iter()
        .chain(&PLAIN_CASES)
        .filter(|case| plan.wants(case.id))
        .collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let mut running = Vec::new();
    for name in &plan.peers {
        let server = start(plan, name)?;
        if name != "null" {
            let filled = client.fill(&server.unit);
            filled.map_err(|error| format!("{name}: {error}"))?;
        }
        running.push(server);
    }
    let all: Vec<&Server> = running.iter().collect();
    println!("{}", report::head(&plan.peers));
    let mut rows = Vec::new();
    for case in cases {
        let row = measure(client, &all, case, plan.effort)?;
        println!("{}", report::line(&row));
        rows.push(row);
    }
    Ok(rows)
}

fn special(plan: &Plan, client: &LoadClient, id: &str) -> Result<Found, String> {
    match id {
        "cores" => special::two_cores(plan, client),
        "poll" => special::polling(plan, client),
        "sectors" => special::sectors(plan, client),
        "digests" => special::digests(plan, client),
        "layer" => layer::one_path(plan, client),
        "file" => disk::file(plan, client),
        "cache" => cache::read_cache(plan, client),
        "durable" => durable::durable(plan, client),
        "flush" => durable::slow_flush(plan, client),
        "steady" => steady::steady(plan, client),
        "replay" => replay::replay(plan),
        "integrity" => integrity::checksums(plan, client),
        "scrub" => scrub::scrub(plan, client),
        "idle" => many::idle_sessions(plan, client),
        "units" => many::units(plan),
        "foreign" => foreign::foreign(plan, client),
        "coalesce" => coalesce::coalescing(plan, client),
        other => Err(format!("there is no comparison {other}")),
    }
}

/// Measures everything that the plan asks for, and writes the report.
///
/// # Errors
/// What failed, for people. A comparison that this machine cannot make is left out, and the report
/// says why.
pub fn run(plan: &Plan) -> Result<(), String> {
    let client = LoadClient::start().map_err(|error| error.to_string())?;
    let rows = peers(plan, &client)?;
    let mut report = BenchReport {
        machine: machine::describe(),
        effort: plan.effort,
        unit_bytes: plan.bytes,
        bars: report::bars(&rows),
        peers: rows,
        special: Vec::new(),
        charts: Vec::new(),
        left_out: Vec::new(),
    };
    for id in SPECIAL.into_iter().filter(|id| plan.wants(id)) {
        match special(plan, &client, id) {
            Ok(found) => {
                found
                    .bars
                    .iter()
                    .for_each(|bar| println!("{}", report::bar_line(bar)));
                report.bars.extend(found.bars);
                report.special.extend(found.rows);
                report.charts.extend(found.charts);
            }
            Err(error) => {
                println!("{id} is left out: {error}");
                report.left_out.push(format!("{id}: {error}"));
            }
        }
    }
    report.write(&plan.out)
}
