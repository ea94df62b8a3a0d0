//! `causeway status`.

use super::{Context, pool};
use crate::output::{properties, table};
use control::code::Code;
use control::problem::Problem;
use control::view::{Health, StatusView};

/// Prints how the node is. A node that exports nothing because its state is damaged is not ready.
pub(super) fn run(context: &Context<'_>) -> Result<(), Problem> {
    let status: StatusView = context.client.get("/api/v1/status")?;
    context.output.show(&status, page);
    match status.health {
        Health::Ok | Health::Degraded => Ok(()),
        Health::Damaged => {
            let detail = "the node exports nothing, see above".to_owned();
            Err(Problem::new(Code::StateDamaged, detail))
        }
    }
}

fn page(status: &StatusView) -> String {
    let health = match status.health {
        Health::Ok => "ok: everything serves",
        Health::Degraded => "degraded: something needs a look",
        Health::Damaged => "DAMAGED: nothing is exported",
    };
    let counts = &status.counts;
    let mut out = properties(&[
        ("node", format!("{} ({})", status.node, status.node_id)),
        ("health", health.to_owned()),
        (
            "luns",
            format!(
                "{} ({} offline, {} deleted with data kept)",
                counts.luns, counts.luns_offline, counts.luns_removed
            ),
        ),
        (
            "targets",
            format!(
                "{} ({} in maintenance, {} redirected)",
                counts.targets, counts.targets_in_maintenance, counts.targets_redirected
            ),
        ),
        (
            "hosts",
            format!("{} (grants: {})", counts.hosts, counts.grants),
        ),
        ("sessions", counts.sessions.to_string()),
        ("generation", status.generation.to_string()),
        (
            "version",
            format!("{}, up since {}", status.version, status.started),
        ),
        ("api", status.api.join("\n")),
    ]);
    if !status.problems.is_empty() {
        out.push_str("\nwhat needs a look:\n");
        for problem in &status.problems {
            out.push_str(&format!("  {}\n", problem.replace('\n', "\n    ")));
        }
    }
    if !status.notes.is_empty() {
        out.push_str("\nas asked for, and worth knowing:\n");
        for note in &status.notes {
            out.push_str(&format!("  {note}\n"));
        }
    }
    out.push_str(&portals(status));
    out.push_str(&pools(status));
    out
}

fn portals(status: &StatusView) -> String {
    let rows: Vec<Vec<String>> = status
        .portals
        .iter()
        .map(|portal| {
            vec![
                portal.group.clone(),
                portal.tag.to_string(),
                portal.address.clone(),
                portal.interface.clone().unwrap_or_default(),
                portal
                    .problem
                    .clone()
                    .unwrap_or_else(|| "listening".to_owned()),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}",
        table(
            &["PORTAL GROUP", "TAG", "ADDRESS", "INTERFACE", "STATE"],
            &rows
        )
    )
}

fn pools(status: &StatusView) -> String {
    if status.pools.is_empty() {
        return String::new();
    }
    format!("\n{}", pool::list(&status.pools))
}
