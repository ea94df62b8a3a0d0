//! The whole run: starts servers, measures, writes the report.

use super::case::PEER_CASES;
use super::load::Client;
use super::report;
use super::rounds::{Effort, measure};
use super::servers::{self, Causeway, Place, Server};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where things are.
    pub place: Place,
    /// How much.
    pub effort: Effort,
    /// Bytes of the units.
    pub bytes: u64,
    /// Cases by their short names; all where empty.
    pub cases: Vec<String>,
    /// Servers beside Causeway.
    pub peers: Vec<String>,
}

fn start(plan: &Plan, name: &str) -> Result<Server, String> {
    match name {
        "null" => servers::null(&plan.place, plan.bytes),
        "causeway" => servers::causeway(&plan.place, &Causeway::usual(plan.bytes)),
        "tgt" => servers::tgt(&plan.place, plan.bytes),
        "istgt" => servers::istgt(&plan.place, plan.bytes),
        other => Err(format!(
            "there is no server {other}: null, causeway, tgt, istgt"
        )),
    }
}

/// Measures the cases with every server.
///
/// # Errors
/// What failed, for people.
pub fn run(plan: &Plan) -> Result<(), String> {
    let client = Client::start().map_err(|error| error.to_string())?;
    let mut running = Vec::new();
    for name in &plan.peers {
        let server = start(plan, name)?;
        if name != "null" {
            client
                .fill(&server.unit)
                .map_err(|error| format!("{name}: {error}"))?;
        }
        running.push(server);
    }
    let all: Vec<&Server> = running.iter().collect();
    println!("{}", report::head(&plan.peers));
    for case in &PEER_CASES {
        if plan.cases.is_empty() || plan.cases.iter().any(|id| id == case.id) {
            let row = measure(&client, &all, case, plan.effort)?;
            println!("{}", report::line(&row));
        }
    }
    Ok(())
}
