//! `causeway status`.

use super::context::Context;
use super::pool;
use crate::args::Common;
use manifest::code::Code;
use manifest::not_safe;
use manifest::problem::Problem;
use manifest::view::{AlertCounts, Health, StatusView};
use output::{Output, properties, table};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;
use units::text::counted;

/// Prints how the node is. A node that exports nothing because its state is damaged is not ready.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Problem> {
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

/// One line as monitoring systems read it (Monitoring Plugins Development Guidelines), and its exit
/// code: 0 healthy, 1 degraded, 2 not serving. A daemon that does not answer does not serve.
pub(crate) fn check(common: &Common, output: &Output) -> ExitCode {
    let asked = common.client();
    let asked = asked.and_then(|client| client.within(CHECK_MAX).get("/api/v1/status"));
    let (verdict, line) = match &asked {
        Ok(status) => verdict(status),
        Err(problem) => (Verdict::Critical, first_line(&problem.detail)),
    };
    let document = CheckView {
        state: verdict.word(),
        exit: verdict as u8,
        message: &line,
        status: asked.as_ref().ok(),
    };
    output.show(&document, |_| {
        format!("CAUSEWAY {} - {line}\n", verdict.word().to_uppercase())
    });
    ExitCode::from(verdict as u8)
}

/// The line for a program.
#[derive(Serialize)]
struct CheckView<'a> {
    state: &'static str,
    exit: u8,
    message: &'a str,
    status: Option<&'a StatusView>,
}

/// A monitoring system gives up after ten seconds, mostly.
const CHECK_MAX: Duration = Duration::from_secs(8);

/// What monitoring systems call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Verdict {
    Ok = 0,
    Warning = 1,
    Critical = 2,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// How the node is, and the line without its first words.
fn verdict(status: &StatusView) -> (Verdict, String) {
    let counts = &status.counts;
    let silent = !status.portals.is_empty() && status.portals.iter().all(|it| it.problem.is_some());
    let dark = counts.luns > 0 && counts.luns_offline == counts.luns;
    let number_of = |count: usize, word| counted(count as u64, word);
    let (verdict, what) = match status.health {
        Health::Damaged => (Verdict::Critical, "nothing is exported".to_owned()),
        _ if silent => (Verdict::Critical, "no portal listens".to_owned()),
        _ if dark => (Verdict::Critical, "every LUN is offline".to_owned()),
        Health::Degraded => {
            let more = match status.problems.len() {
                0 | 1 => String::new(),
                many => format!(" (and {} more)", many - 1),
            };
            let first = status.problems.first().map(|it| first_line(it));
            (
                Verdict::Warning,
                format!("{}{more}", first.unwrap_or_default()),
            )
        }
        Health::Ok => {
            let what = [
                number_of(counts.luns, "LUN"),
                number_of(counts.sessions, "session"),
            ];
            (
                Verdict::Ok,
                format!("{} serves {}", status.node, what.join(", ")),
            )
        }
    };
    // A bar begins the figures, so that none may stand before it.
    let line = format!(
        "{} | luns={} luns_offline={} sessions={} problems={}",
        what.replace('|', "/"),
        counts.luns,
        counts.luns_offline,
        counts.sessions,
        status.problems.len()
    );
    (verdict, line)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn page(status: &StatusView) -> String {
    let health = match status.health {
        Health::Ok => "ok: everything serves",
        Health::Degraded => "degraded: something needs attention",
        Health::Damaged => "DAMAGED: nothing is exported",
    };
    let counts = &status.counts;
    let mut out = properties(&[
        ("node", format!("{} ({})", status.node, status.node_id)),
        ("health", health.to_owned()),
        ("unsafe LUNs", not_safe::said(&status.not_safe)),
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
        ("alerts", alerts(&status.alerts)),
        ("api", status.api.join("\n")),
    ]);
    if !status.problems.is_empty() {
        out.push_str("\nwhat needs attention:\n");
        for problem in &status.problems {
            out.push_str(&format!("  {}\n", problem.replace('\n', "\n    ")));
        }
    }
    if !status.notes.is_empty() {
        out.push_str("\nworth knowing:\n");
        for note in &status.notes {
            out.push_str(&format!("  {note}\n"));
        }
    }
    out.push_str(&portals(status));
    out.push_str(&pools(status));
    out
}

/// How many alerts fire, and what else is known of others.
fn alerts(counts: &AlertCounts) -> String {
    let firing = [
        (counts.critical, "critical"),
        (counts.warning, "warning"),
        (counts.info, "info"),
        (counts.acknowledged, "acknowledged"),
        (counts.silenced, "silenced"),
    ];
    let some = firing.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match some.as_slice() {
        [] => "none".to_owned(),
        some => format!("{} (causeway alert ls)", some.join(", ")),
    }
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

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    fn status(health: &str, portals: &[Option<&str>], offline: usize) -> StatusView {
        let portal = |problem: &Option<&str>| json!({ "group": "default", "tag": 1, "address": "127.0.0.1:3260", "problem": problem });
        let portals: Vec<serde_json::Value> = portals.iter().map(portal).collect();
        let status = json!({
            "health": health, "problems": if health == "ok" { vec![] } else { vec!["pool a | b:\nis full", "x"] },
            "node": "san-a", "node_id": "1", "version": "0", "started": "s", "generation": 1, "portals": portals,
            "api": [], "pools": [],
            "counts": {
                "luns": 1, "luns_offline": offline, "luns_removed": 0, "targets": 1, "hosts": 1, "grants": 1, "sessions": 1,
            },
        });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_monitoring_system_is_reported_healthy_degraded_or_not_serving_in_one_line() {
        let (ok, line) = verdict(&status("ok", &[None], 0));
        assert_eq!(ok, Verdict::Ok);
        assert_eq!(
            line,
            "san-a serves 1 LUN, 1 session | luns=1 luns_offline=0 sessions=1 problems=0"
        );
        let (degraded, line) = verdict(&status("degraded", &[None, Some("in use")], 0));
        assert_eq!(degraded, Verdict::Warning);
        assert!(line.starts_with("pool a / b: (and 1 more) | "), "{line}");
        assert_eq!(line.lines().count(), 1);
        for none in [
            status("damaged", &[None], 0),
            status("degraded", &[Some("in use")], 0),
            status("degraded", &[None], 1),
        ] {
            assert_eq!(verdict(&none).0, Verdict::Critical);
        }
    }
}
