//! `causeway target ...`.

use super::context::{Context, Patch, Step, Tolerate, object_path};
use crate::args::{Assigned, Deleted, Named, Renamed};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::objects::{MAINTENANCE_GRACE_SECONDS_MAX, Redirect, TargetSpec};
use manifest::problem::Problem;
use manifest::view::TargetView;
use output::assign::{Keys, boolean, number, usage};
use output::{Columns, Table, properties};
use serde_json::json;
use std::borrow::Cow;

/// What can be assigned, with the values where they are few.
pub(crate) const ASSIGNMENTS: &[&str] = &[
    "iqn=",
    "portal_group=",
    "redirect=",
    "maintenance=true",
    "maintenance=false",
    "maintenance_grace_seconds=",
    "name=",
];

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["target", "create"], "portal_group", Kind::PortalGroup),
    (&["target", "show"], "name", Kind::Name("target")),
    (&["target", "set"], "name", Kind::Name("target")),
    (&["target", "set"], "values", Kind::Assignment(ASSIGNMENTS)),
    (&["target", "rename"], "name", Kind::Name("target")),
    (&["target", "delete"], "name", Kind::Name("target")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["target", "ls"], When::Always, COLUMNS)];

#[derive(Subcommand, Debug)]
pub(crate) enum TargetVerb {
    /// Make a target
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        /// Its iSCSI name [default: derived from the name]
        #[arg(long)]
        iqn: Option<String>,
        /// Where it can be reached [default: the group called default, or the only one]
        #[arg(long, value_name = "GROUP")]
        portal_group: Option<String>,
        /// Succeed where a target of this name exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List targets
    #[command(alias = "list")]
    Ls,
    /// Show all of a target
    Show(Named),
    /// Change properties: iqn=..., portal_group=..., redirect=HOST:PORT[,permanent]|none,
    /// maintenance=true|false, maintenance_grace_seconds=30, name=NEW
    Set(Assigned),
    /// Change the name, not the iSCSI name
    Rename(Renamed),
    /// Remove a target with its grants
    #[command(alias = "rm")]
    Delete(Deleted),
}

const NOUN: &str = "target";

const KEYS: Keys = Keys {
    known: Cow::Borrowed(&[
        "iqn",
        "portal_group",
        "redirect",
        "maintenance",
        "maintenance_grace_seconds",
        "name",
    ]),
    fixed: &[
        (
            "portals",
            "they are the portal group's addresses: change listen in node.toml and restart",
        ),
        ("sessions", "`causeway session drop ID` ends one"),
    ],
    later: &[],
};

pub(crate) fn run(context: &Context<'_>, verb: &TargetVerb) -> Result<(), Problem> {
    match verb {
        TargetVerb::Create {
            name,
            iqn,
            portal_group,
            if_not_exists,
        } => {
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            let target = TargetSpec {
                iqn: iqn.clone(),
                portal_group: portal_group.clone(),
                ..TargetSpec::new(name)
            };
            let step = Step::new(Method::POST, "/api/v1/targets", &target);
            context.change_object(tolerate, &[step], |_| Ok(object_path(NOUN, name)))
        }
        TargetVerb::Ls => {
            let targets: Vec<TargetView> = context.client.get("/api/v1/targets")?;
            context.output.list(&targets, |targets| list(targets));
            Ok(())
        }
        TargetVerb::Show(Named { name }) => {
            let target: TargetView = context.client.get(&object_path(NOUN, name))?;
            context.output.show(&target, page);
            Ok(())
        }
        TargetVerb::Set(assigned) => context.assign(NOUN, assigned, &KEYS, patch),
        TargetVerb::Rename(renamed) => context.rename(NOUN, renamed),
        TargetVerb::Delete(deleted) => context.delete(NOUN, deleted),
    }
}

/// What was assigned, and only that, as the API takes it; and the new name.
fn patch<'a>(given: &[(&'a str, &'a str)]) -> Result<(Patch, Option<&'a str>), Problem> {
    let (mut patch, mut new_name) = (Patch::new(), None);
    for (key, value) in given.iter().copied() {
        let value = match key {
            "name" => {
                new_name = Some(value);
                continue;
            }
            "redirect" => json!(redirect(value)?),
            "maintenance" => json!(boolean(key, value)?),
            "maintenance_grace_seconds" => {
                json!(number(key, value, MAINTENANCE_GRACE_SECONDS_MAX)?)
            }
            _ => json!(value),
        };
        patch.insert(key.to_owned(), value);
    }
    Ok((patch, new_name))
}

/// `none`, `HOST:PORT` or `HOST:PORT,permanent`.
fn redirect(value: &str) -> Result<Option<Redirect>, Problem> {
    if value == "none" {
        return Ok(None);
    }
    let (to, permanent) = match value.split_once(',') {
        None => (value, false),
        Some((to, "permanent")) => (to, true),
        Some(_) => {
            let rule = "write none, HOST:PORT, or HOST:PORT,permanent";
            return Err(usage(format!("redirect={value}: {rule}")));
        }
    };
    Ok(Some(Redirect {
        to: to.to_owned(),
        permanent,
    }))
}

/// Whether logins are served.
fn logins(target: &TargetView) -> String {
    match (&target.redirect, target.maintenance) {
        (Some(redirect), _) => format!("sent to {redirect}"),
        (None, true) => "refused: maintenance".to_owned(),
        (None, false) => "served".to_owned(),
    }
}

const COLUMNS: Columns = Columns::new(&[
    "NAME",
    "IQN",
    "PORTAL GROUP",
    "PORTALS",
    "LOGINS",
    "SESSIONS",
]);

fn list(targets: &[TargetView]) -> Table {
    let rows: Vec<Vec<String>> = targets
        .iter()
        .map(|target| {
            vec![
                target.name.clone(),
                target.iqn.clone(),
                target.portal_group.clone(),
                target.portals.join(" "),
                logins(target),
                target.sessions.to_string(),
            ]
        })
        .collect();
    Table::new(COLUMNS, rows)
}

fn maintenance(target: &TargetView) -> String {
    let seconds = target.maintenance_grace_seconds;
    let on = if target.maintenance { "on" } else { "off" };
    format!("{on} (sessions have {seconds} s to log out)")
}

fn page(target: &TargetView) -> String {
    properties(&[
        ("name", target.name.clone()),
        ("iqn", target.iqn.clone()),
        ("portal group", target.portal_group.clone()),
        ("portals", target.portals.join("\n")),
        ("logins", logins(target)),
        ("maintenance", maintenance(target)),
        ("sessions", target.sessions.to_string()),
    ])
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn only_what_was_assigned_of_a_target_is_sent() {
        let sent = |given: &[(&str, &str)]| json!(patch(given).unwrap().0);
        assert_eq!(sent(&[("name", "b")]), json!({}));
        assert_eq!(
            sent(&[("maintenance", "true")]),
            json!({ "maintenance": true })
        );
        assert_eq!(sent(&[("redirect", "none")]), json!({ "redirect": null }));
        let away = sent(&[("redirect", "a:3260"), ("iqn", "iqn.2026-01.com.example:t")]);
        let expected =
            json!({ "redirect": { "to": "a:3260" }, "iqn": "iqn.2026-01.com.example:t" });
        assert_eq!(away, expected);
    }
}
