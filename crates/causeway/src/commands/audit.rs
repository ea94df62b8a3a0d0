//! `causeway audit ...`: who changed what.

use super::context::Context;
use super::recorded::{Asked, ORDERS, Order, object};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use events::Audited;
use manifest::problem::Problem;
use output::{Columns, Table, print};
use std::ops::ControlFlow;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] =
    &[(&["audit", "ls"], "sort", Kind::Words(ORDERS))];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["audit", "ls"], When::Always, COLUMNS)];

#[derive(Subcommand, Debug)]
pub(crate) enum AuditVerb {
    /// List changes and logins, the newest last
    #[command(alias = "list")]
    Ls {
        /// At most so many
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: u64,
        /// Only by this user, token or uid:NUMBER
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Only of this object: lun:vm01, host:esx01, user:vera
        #[arg(long, value_name = "KIND:NAME")]
        object: Option<String>,
        /// Only from this time on, or since so long: 2026-11-26T10:00:00Z, 2h, 3d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Order: time (the oldest first), -time (the newest first)
        #[arg(long, value_name = "ORDER", allow_hyphen_values = true)]
        sort: Option<Order>,
    },
    /// Print all entries, a JSON document a line, the oldest first
    Export {
        /// Only from this time on, or since so long: 2026-11-26T10:00:00Z, 2h, 3d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &AuditVerb) -> Result<(), Problem> {
    match verb {
        AuditVerb::Ls {
            limit,
            who,
            object: of,
            since,
            sort,
        } => {
            let mut asked = Asked::new("/api/v1/audit");
            asked.add("limit", &limit.to_string());
            if let Some(who) = who {
                asked.add("filter", &format!("who:{who}"));
            }
            if let Some(of) = of {
                let (kind, name) = object(of)?;
                asked.add("filter", &format!("kind:{kind}"));
                asked.add("filter", &format!("name:{name}"));
            }
            asked.since(since.as_deref());
            asked.sort(*sort);
            let mut entries: Vec<Audited> = context.client.get(asked.path())?;
            Order::arrange(*sort, &mut entries);
            context.output.list(&entries, |entries| list(entries));
        }
        AuditVerb::Export { since } => {
            let mut asked = Asked::new("/api/v1/audit/export");
            asked.since(since.as_deref());
            context.client.lines(asked.path(), |line| {
                print(&format!("{line}\n"));
                ControlFlow::Continue(())
            })?;
        }
    }
    Ok(())
}

const COLUMNS: Columns =
    Columns::new(&["TIME", "WHO", "FROM", "CHANGE", "RESULT"]).wide(&["REQUEST"]);

/// In the words of the page.
fn list(entries: &[Audited]) -> Table {
    let rows = entries.iter().map(|it| {
        let (words, entry) = (&it.words, &it.entry);
        let mut row = vec![it.time.clone(), entry.who.clone()];
        row.extend([words.from.clone(), words.change(), words.result.clone()]);
        row.push(format!(
            "{} {} ({})",
            entry.method, entry.path, entry.status
        ));
        row
    });
    Table::new(COLUMNS, rows.collect())
}
