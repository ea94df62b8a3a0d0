//! `causeway node ...`: the node that answers, and its settings.

use super::config::{self, Started, pair};
use super::context::Context;
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::{Args, Subcommand};
use engine::{DrainView, DrainedLun};
use hyper::Method;
use manifest::code::Code;
use manifest::config::SettingValue;
use manifest::problem::Problem;
use manifest::view::{Health, StatusView};
use output::assign::usage;
use output::{Columns, Table, properties, rounded};
use serde_json::{Map, Value, json};

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] =
    &[(&["node", "set"], "values", Kind::AssignmentOf(assignments))];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[
    (&["node", "ls"], When::Always, COLUMNS),
    (&["node", "drain"], When::Always, DRAINED),
];

const DRAINED: Columns = Columns::new(&["LUN", "NOW ON", "STAYS BECAUSE"]).wide(&["NAA"]);

const COLUMNS: Columns = Columns::new(&[
    "NODE", "HEALTH", "LUNS", "SESSIONS", "VERSION", "UP SINCE",
])
.wide(&["ID", "API", "GENERATION"]);

#[derive(Subcommand, Debug)]
pub(crate) enum NodeVerb {
    /// List the nodes: the one that answers
    #[command(alias = "list")]
    Ls,
    /// Show what the node is; `causeway status` says how it is
    Show {
        /// Its name, where somebody wants to be sure
        name: Option<String>,
    },
    /// Change settings of the node: name=NEW, scrub.every_days=N, and others by their key; KEY= is
    /// what node.toml says. As `causeway config set`
    Set(NodeSet),
    /// Before maintenance: give LUNs with copies that this node serves to nodes that have all of
    /// them. Hosts go on there; what stays is said, with the reason (exit code 6)
    Drain {
        /// Its name, where somebody wants to be sure
        name: Option<String>,
    },
}

/// What of the node shall change.
#[derive(Args, Debug)]
pub(crate) struct NodeSet {
    /// Its name first, where somebody wants to be sure; then what shall change
    #[arg(required = true, value_name = "[NAME] KEY=VALUE")]
    values: Vec<String>,
}

/// What can be assigned.
fn assignments() -> Vec<String> {
    let own = ["name=", "scrub.every_days="];
    let all = own.into_iter().chain(config::VALUES.iter().copied());
    all.map(str::to_owned).collect()
}

pub(crate) fn run(context: &Context<'_>, verb: &NodeVerb) -> Result<(), Problem> {
    match verb {
        NodeVerb::Ls => {
            let status: StatusView = context.client.get("/api/v1/status")?;
            context.output.list(&[status], |all| list(all));
            Ok(())
        }
        NodeVerb::Show { name } => {
            let status = named(context, name.as_deref())?;
            context.output.show(&status, page);
            Ok(())
        }
        NodeVerb::Set(NodeSet { values }) => {
            let (name, values) = match values.split_first() {
                Some((first, rest)) if !first.contains('=') => (Some(first.as_str()), rest),
                _ => (None, values.as_slice()),
            };
            let body = patch(values)?;
            if name.is_some() {
                named(context, name)?;
            }
            config::change(context, &Started::read(context)?, &body)
        }
        NodeVerb::Drain { name } => drain(context, name.as_deref()),
    }
}

/// Gives LUNs with copies to other nodes, or says what would become of them.
fn drain(context: &Context<'_>, name: Option<&str>) -> Result<(), Problem> {
    let node = named(context, name)?.node;
    let dry_run = context.is_dry_run();
    let path = format!("/api/v1/node/drain?dry_run={dry_run}");
    let view: DrainView = context.client.send(Method::POST, &path, &())?;
    context
        .output
        .list(&view, |view| drained(view, &node, dry_run));
    let staying = view.luns.iter().filter(|it| it.to.is_none());
    let staying: Vec<&str> = staying.map(|it| it.name.as_str()).collect();
    if staying.is_empty() {
        return Ok(());
    }
    let would = if dry_run {
        "would still own"
    } else {
        "still owns"
    };
    let detail = format!("{node} {would} {}", staying.join(", "));
    let hint = "see the reason of each; `causeway lun show` says when another node has all of it";
    Err(Problem::new(Code::PartlyDone, detail).hint(hint))
}

fn drained(view: &DrainView, node: &str, dry_run: bool) -> Table {
    let text = |of: &Option<String>| of.clone().unwrap_or_else(|| "-".to_owned());
    let row = |it: &DrainedLun| {
        vec![
            it.name.clone(),
            text(&it.to),
            text(&it.stays),
            it.naa.clone(),
        ]
    };
    let table = Table::new(DRAINED, view.luns.iter().map(row).collect());
    match (view.luns.is_empty(), dry_run) {
        (true, _) => table.instead(format!("{node} owns no LUN with copies: nothing to do\n")),
        (false, true) => table.above("(dry run: nothing was changed)\n".to_owned()),
        (false, false) => table,
    }
}

/// The node, where it has this name.
fn named(context: &Context<'_>, name: Option<&str>) -> Result<StatusView, Problem> {
    let status: StatusView = context.client.get("/api/v1/status")?;
    match name {
        Some(name) if name != status.node => {
            let hint = format!("the node that answers is {}", status.node);
            Err(Problem::not_found("node", name).hint(hint))
        }
        Some(_) | None => Ok(status),
    }
}

/// What was assigned, as the API takes it.
fn patch(values: &[String]) -> Result<Value, Problem> {
    let (mut body, mut others) = (Map::new(), Map::new());
    for text in values {
        let (key, value) = pair(text).map_err(usage)?;
        let before = match (key.as_str(), value) {
            ("name", Some(SettingValue::Text(name))) => {
                body.insert("node_name".to_owned(), json!(name))
            }
            ("name", Some(SettingValue::Number(name))) => {
                body.insert("node_name".to_owned(), json!(name.to_string()))
            }
            ("name", _) => return Err(usage("write a name, such as name=san-b")),
            ("scrub.every_days", Some(SettingValue::Number(days))) => {
                body.insert("scrub_every_days".to_owned(), json!(days))
            }
            ("scrub.every_days", _) => {
                return Err(usage(
                    "write a number of days, such as scrub.every_days=30; 0: never",
                ));
            }
            (_, value) => others.insert(key.clone(), json!(value)),
        };
        if before.is_some() {
            return Err(usage(format!("{key} is assigned twice")));
        }
    }
    if body.is_empty() && others.is_empty() {
        return Err(usage("nothing to change was named: write KEY=VALUE"));
    }
    if !others.is_empty() {
        body.insert("values".to_owned(), Value::Object(others));
    }
    Ok(Value::Object(body))
}

fn health(status: &StatusView) -> &'static str {
    match status.health {
        Health::Ok => "ok",
        Health::Degraded => "degraded",
        Health::Damaged => "DAMAGED",
    }
}

fn list(all: &[StatusView]) -> Table {
    let row = |it: &StatusView| {
        vec![
            it.node.clone(),
            health(it).to_owned(),
            it.counts.luns.to_string(),
            it.counts.sessions.to_string(),
            it.version.clone(),
            it.started.clone(),
            it.node_id.clone(),
            it.api.join(" "),
            it.generation.to_string(),
        ]
    };
    Table::new(COLUMNS, all.iter().map(row).collect())
}

fn page(status: &StatusView) -> String {
    let nics = status.nics.iter().map(|nic| {
        let addresses: Vec<String> = nic
            .addresses
            .iter()
            .map(|it| it.address.to_string())
            .collect();
        format!("{}: {}", nic.name, addresses.join(" "))
    });
    let portals = status.portals.iter().map(|it| it.address.clone());
    let memory = status.memory.total_bytes.map(rounded).unwrap_or_default();
    let all = |lines: Vec<String>| lines.join("\n");
    properties(&[
        ("node", status.node.clone()),
        ("id", status.node_id.clone()),
        ("health", health(status).to_owned()),
        ("version", status.version.clone()),
        ("up since", status.started.clone()),
        ("memory", memory),
        ("nics", all(nics.collect())),
        ("portals", all(portals.collect())),
        (
            "pools",
            all(status.pools.iter().map(|it| it.name.clone()).collect()),
        ),
        ("api", status.api.join("\n")),
    ])
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_assigned_of_a_node_is_sent_as_its_settings_take_it() {
        let of = |line: &str| {
            let values: Vec<String> = line.split(' ').map(str::to_owned).collect();
            patch(&values)
        };
        let sent = of("name=san-b scrub.every_days=7 history.max_bytes=2GiB log.format=").unwrap();
        let wanted = json!({
            "node_name": "san-b", "scrub_every_days": 7,
            "values": { "history.max_bytes": "2GiB", "log.format": null },
        });
        assert_eq!(sent, wanted);
        for wrong in ["name=", "scrub.every_days=often", "name", "name=a name=b"] {
            assert_eq!(of(wrong).unwrap_err().exit() as u8, 2, "{wrong}");
        }
        assert!(patch(&[]).is_err());
    }
}
