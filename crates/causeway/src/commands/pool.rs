//! `causeway pool ...`: the pools of the node, with their journals.

use super::config::{self, NewPool};
use super::context::{Context, object_path};
use crate::args::{Deleted, Named};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use client::segment;
use manifest::code::Code;
use manifest::facts::{HealthFacts, MemberFacts, PoolDisk, PoolFacts, PoolState};
use manifest::journal::{JournalFacts, JournalState};
use manifest::problem::Problem;
use manifest::time::about;
use manifest::view::LunView;
use output::{Columns, Table, properties, rounded, table};
use serde::Serialize;
use std::path::PathBuf;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["pool", "show"], "name", Kind::Name("pool")),
    (&["pool", "delete"], "name", Kind::Name("pool")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["pool", "ls"], When::Always, COLUMNS)];

/// What to ask of pools.
#[derive(Subcommand, Debug)]
pub(crate) enum PoolVerb {
    /// List them, with their journals
    #[command(alias = "list")]
    Ls,
    /// Show one with all that is known of its journal
    Show(Named),
    /// Add a pool to the node, from its next start on. As `causeway config add-pool`
    #[command(alias = "add")]
    Create(NewPool),
    /// Remove a pool from the node, from its next start on; refused while a LUN lies in it, and
    /// nothing on disk is deleted. As `causeway config remove-pool`
    #[command(alias = "rm")]
    Delete(Deleted),
    /// Report what stands on the members of a pool or in its directory, what of it can be used, and
    /// what is missing or damaged; or what a journal holds, and what in it is damaged; needs no
    /// daemon, changes nothing
    Check {
        /// The pool's directory, all of its members (files or block devices), or its journal
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The daemon's state_dir: it knows what members that are away were, and has the checksums
        /// and histories of LUNs on members
        #[arg(long, value_name = "DIR", default_value = "/var/lib/causeway")]
        state: PathBuf,
    },
}

const NOUN: &str = "pool";

pub(crate) fn run(context: &Context<'_>, verb: &PoolVerb) -> Result<(), Problem> {
    match verb {
        PoolVerb::Ls => {
            let pools: Vec<PoolFacts> = context.client.get("/api/v1/pools")?;
            context.output.list(&pools, |pools| list(pools));
        }
        PoolVerb::Show(named) => {
            let pool: PoolFacts = context.client.get(&object_path(NOUN, &named.name))?;
            let path = format!("/api/v1/luns?filter=pool:{}", segment(&pool.name));
            let asked = (!pool.members.is_empty()).then(|| context.client.get(&path));
            let luns: Vec<LunView> = asked.transpose()?.unwrap_or_default();
            context.output.show(&pool, |pool| page(pool, &luns));
        }
        PoolVerb::Create(pool) => config::create_pool(context, pool)?,
        PoolVerb::Delete(deleted) => config::delete_pool(context, deleted)?,
        PoolVerb::Check { .. } => unreachable!("needs no daemon, and was answered before"),
    }
    Ok(())
}

/// Bytes of a pool whose size is known.
fn space(pool: &PoolFacts, bytes: u64) -> String {
    if pool.total > 0 {
        rounded(bytes)
    } else {
        "?".to_owned()
    }
}

/// How it is, in a few words.
fn state(pool: &PoolFacts) -> String {
    match (&pool.problem, pool.age_seconds) {
        (Some(_), Some(age)) => format!("does not answer (figures {age} s old)"),
        (Some(problem), None) => problem.clone(),
        (None, _) => match pool.state {
            PoolState::Full => "FULL".to_owned(),
            PoolState::Low => "low".to_owned(),
            PoolState::Ok | PoolState::Missing | PoolState::Silent | PoolState::Unusable => {
                "ok".to_owned()
            }
        },
    }
}

const COLUMNS: Columns = Columns::new(&["POOL", "SIZE", "FREE", "PATH", "JOURNAL", "STATE"])
    .wide(&["LAYOUT", "USED", "PROVISIONED"]);

/// The pools as `status` and `pool ls` show them.
pub(super) fn list(pools: &[PoolFacts]) -> Table {
    let row = |pool: &PoolFacts| {
        vec![
            pool.name.clone(),
            space(pool, pool.total),
            space(pool, pool.available),
            pool.path.clone(),
            pool.journal
                .as_ref()
                .map_or_else(|| "none".to_owned(), brief),
            state(pool),
            pool.layout.clone(),
            space(pool, pool.used),
            rounded(pool.provisioned_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = pools.iter().map(row).collect();
    let mut text = String::new();
    for pool in pools {
        let forecast = pool.forecast.as_ref();
        if let Some(dated) = forecast.filter(|it| it.full_at.is_some()) {
            text.push_str(&format!("pool {}: {}\n", pool.name, dated.text));
        }
    }
    Table::new(COLUMNS, rows).above(text)
}

/// Of `journal ls`.
pub(super) const JOURNALS: Columns = Columns::new(&[
    "POOL",
    "JOURNAL",
    "STATE",
    "FILLED",
    "SIZE",
    "NOT DESTAGED",
    "PROBLEM",
]);

/// `journal ls`: a document is the pool's journal with the pool's name.
pub(super) fn journals(context: &Context<'_>) -> Result<(), Problem> {
    let pools: Vec<PoolFacts> = context.client.get("/api/v1/pools")?;
    let all = pools.iter().filter_map(|pool| {
        let journal = pool.journal.as_ref()?;
        Some(PoolJournal {
            pool: &pool.name,
            journal,
        })
    });
    let all: Vec<PoolJournal<'_>> = all.collect();
    context.output.list(&all, |all| {
        let row = |PoolJournal { pool, journal }: &PoolJournal<'_>| {
            vec![
                (*pool).to_owned(),
                journal.path.clone(),
                journal.state.to_string(),
                fill(journal),
                rounded(journal.size_bytes),
                rounded(journal.pending_bytes),
                journal.problem.clone().unwrap_or_default(),
            ]
        };
        Table::new(JOURNALS, all.iter().map(row).collect())
    });
    Ok(())
}

/// `journal show`.
pub(super) fn journal(context: &Context<'_>, name: &str) -> Result<(), Problem> {
    let pool: PoolFacts = context.client.get(&object_path(NOUN, name))?;
    let Some(journal) = &pool.journal else {
        let detail = format!("pool \"{name}\" has no journal");
        return Err(Problem::new(Code::NotFound, detail)
            .hint("`causeway journal ls` shows which pools have one"));
    };
    let document = PoolJournal {
        pool: &pool.name,
        journal,
    };
    context.output.show(&document, |it| {
        let mut rows = vec![("pool", it.pool.to_owned())];
        rows.extend(of_journal(it.journal));
        properties(&rows)
    });
    Ok(())
}

/// A journal, and whose it is.
#[derive(Serialize)]
struct PoolJournal<'a> {
    pool: &'a str,
    #[serde(flatten)]
    journal: &'a JournalFacts,
}

fn fill(journal: &JournalFacts) -> String {
    let fill = journal.fill_permille();
    format!("{}.{} %", fill / 10, fill % 10)
}

/// A journal in a few words.
fn brief(journal: &JournalFacts) -> String {
    match journal.state {
        JournalState::Open => format!("{} of {}", fill(journal), rounded(journal.size_bytes)),
        JournalState::Failed => "FAILED".to_owned(),
        JournalState::Missing => "MISSING".to_owned(),
    }
}

fn page(pool: &PoolFacts, luns: &[LunView]) -> String {
    let mut rows = vec![
        ("name", pool.name.clone()),
        ("state", state(pool)),
        ("path", pool.path.clone()),
        ("layout", pool.layout.clone()),
        ("size", space(pool, pool.total)),
        ("free", space(pool, pool.available)),
        ("provisioned", provisioned(pool)),
    ];
    if !pool.shares_with.is_empty() {
        rows.push((
            "free for",
            format!("this one and {}", pool.shares_with.join(", ")),
        ));
    }
    rows.extend(pool.full_in_seconds.map(|it| {
        let when = format!("in about {}, at the rate of the last hour", about(it));
        ("full", when)
    }));
    let forecast = pool.forecast.as_ref();
    rows.extend(forecast.map(|it| ("forecast", it.text.clone())));
    match &pool.journal {
        None => rows.push(("journal", "none".to_owned())),
        Some(journal) => rows.extend(of_journal(journal)),
    }
    if !pool.disks.is_empty() {
        rows.push(("disks", disks(&pool.disks)));
    }
    rows.extend(pool.event.map(|event| ("event", event.to_string())));
    rows.extend(
        pool.health
            .as_ref()
            .map(|health| ("health", of_health(health))),
    );
    if !pool.notes.is_empty() {
        rows.push(("notes", pool.notes.join("\n")));
    }
    let mut out = properties(&rows);
    if !pool.members.is_empty() {
        out.push_str(&format!("\n{}", members(&pool.members, luns)));
    }
    out
}

/// The disks that it lies on, one a line, with their health.
fn disks(all: &[PoolDisk]) -> String {
    let line = |it: &PoolDisk| {
        let part = if it.is_journal { ", the journal" } else { "" };
        format!("{}: {}{part}", it.called, it.health.words())
    };
    all.iter().map(line).collect::<Vec<String>>().join("\n")
}

/// How the storage below is, and what is wrong with it.
fn of_health(health: &HealthFacts) -> String {
    let mut lines = vec![format!("{}: {}", health.system, health.severity.name())];
    lines.extend(health.checks.iter().cloned());
    lines.join("\n")
}

/// What its LUNs were given, and what of it is not there.
fn provisioned(pool: &PoolFacts) -> String {
    let all = rounded(pool.provisioned_bytes);
    match pool.overcommitted_bytes {
        0 => all,
        over => format!("{all}, {} more than there is room for", rounded(over)),
    }
}

fn members(all: &[MemberFacts], luns: &[LunView]) -> String {
    let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
    let row = |it: &MemberFacts| {
        let member = it
            .member
            .map_or_else(|| "-".to_owned(), |it| it.to_string());
        vec![
            member,
            it.path.clone(),
            it.serial.clone().unwrap_or_default(),
            number(it.event),
            it.last_event.to_string(),
            it.size_bytes.map(rounded).unwrap_or_default(),
            rounded(it.taken_bytes),
            it.state.clone(),
            LunView::names_on(it.member, luns),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let head = [
        "MEMBER",
        "PATH",
        "SERIAL",
        "EVENT",
        "LAST EVENT",
        "SIZE",
        "TAKEN",
        "STATE",
        "LUNS ON IT",
    ];
    table(&head, &rows)
}

fn misreads(journal: &JournalFacts) -> Option<(&'static str, String)> {
    let text = format!(
        "{} did not give what was written there at first: check its device",
        journal.misreads
    );
    (journal.misreads > 0).then_some(("reads of it", text))
}

fn of_journal(journal: &JournalFacts) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("journal", journal.path.clone()),
        ("journal state", journal.state.to_string()),
    ];
    rows.extend(journal.problem.clone().map(|why| ("journal problem", why)));
    if journal.state != JournalState::Missing {
        let (size, rings) = (rounded(journal.size_bytes), journal.rings);
        let oldest = journal.oldest_ms.map_or_else(
            || "all is destaged".to_owned(),
            |ms| format!("{}.{:03} s", ms / 1000, ms % 1000),
        );
        rows.extend([
            ("journal size", format!("{size}, rings: {rings}")),
            ("filled", fill(journal)),
            ("not destaged", rounded(journal.pending_bytes)),
            ("oldest change", oldest),
            (
                "destaged",
                format!(
                    "{}, lately {}/s",
                    rounded(journal.destaged_bytes),
                    rounded(journal.destaged_bytes_per_second)
                ),
            ),
            (
                "written",
                format!(
                    "{} in {} changes, {} batches",
                    rounded(journal.written_bytes),
                    journal.changes,
                    journal.batches
                ),
            ),
            (
                "waiting for it",
                format!(
                    "{} changes, {}; {} were throttled so far",
                    journal.waiting_changes,
                    rounded(journal.waiting_bytes),
                    journal.throttled
                ),
            ),
            ("written around", rounded(journal.write_around_bytes)),
            ("memory of its index", rounded(journal.index_bytes)),
            ("memory of histories", rounded(journal.history_bytes)),
        ]);
        rows.extend(misreads(journal));
    }
    let errors: Vec<String> = journal
        .destage_errors
        .iter()
        .map(|error| format!("LUN {}: {}", error.lun, error.reason))
        .collect();
    if !errors.is_empty() {
        rows.push(("cannot be destaged", errors.join("\n")));
    }
    let lost: Vec<String> = journal
        .lost
        .iter()
        .map(|lost| format!("LUN {}: {} blocks from {}", lost.lun, lost.blocks, lost.lba))
        .collect();
    if !lost.is_empty() {
        rows.push(("damaged", lost.join("\n")));
    }
    rows
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_pool_that_fills_up_is_shown_with_when_it_will_be_full() {
        let pool = |full_in_seconds: Option<u64>| -> PoolFacts {
            let mut document = serde_json::json!({"name": "p", "path": "/p", "total": 1_u64 << 40, "available": 1_u64 << 30});
            document["full_in_seconds"] = full_in_seconds.into();
            serde_json::from_value(document).unwrap()
        };
        let line = |page: &str| {
            let mut lines = page.lines();
            let line = lines.find(|line| line.trim_start().starts_with("full"));
            line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            line(&page(&pool(Some(7200)), &[])).as_deref(),
            Some("full in about 2 hours, at the rate of the last hour")
        );
        assert_eq!(line(&page(&pool(None), &[])), None);
    }

    #[test]
    fn a_list_names_the_pools_that_have_a_date_and_a_page_says_why_one_has_none() {
        let pool = |text: &str, full_at: Option<&str>| -> PoolFacts {
            let forecast = serde_json::json!({"trend": "fills", "text": text, "known_seconds": 1, "full_at": full_at});
            let document = serde_json::json!({"name": "p", "path": "/p", "total": 9, "available": 1, "forecast": forecast});
            serde_json::from_value(document).unwrap()
        };
        let dated = pool("full on about 14 March", Some("2027-03-14T00:00:00Z"));
        assert!(
            list(&[dated])
                .to_string()
                .ends_with("\npool p: full on about 14 March\n")
        );
        let steady = pool("does not fill up: no trend in 3 days", None);
        assert!(
            !list(std::slice::from_ref(&steady))
                .to_string()
                .contains("does not")
        );
        let lines = page(&steady, &[]);
        let line = lines
            .lines()
            .find(|line| line.trim_start().starts_with("forecast"));
        assert!(
            line.is_some_and(|line| line.ends_with("no trend in 3 days")),
            "{lines}"
        );
    }

    #[test]
    fn what_the_storage_below_says_of_itself_is_shown_line_by_line() {
        let pool: PoolFacts = serde_json::from_value(serde_json::json!({
            "name": "p", "path": "rbd", "total": 1_u64 << 40, "available": 1_u64 << 30,
            "health": {"system": "Ceph cluster 1f", "severity": "warning", "checks": ["OSD_NEARFULL: 1 nearfull osd(s)"]},
        }))
        .unwrap();
        let page = page(&pool, &[]);
        assert!(page.contains("Ceph cluster 1f: warning"), "{page}");
        assert!(page.contains("OSD_NEARFULL: 1 nearfull osd(s)"), "{page}");
    }
}
