//! `causeway target ...`.

use super::{Context, Step, Tolerate, object_path};
use crate::assign::{Keys, assignments, boolean, number, usage};
use crate::cli::{Assigned, Named, TargetVerb};
use crate::output::{properties, table};
use control::code::Code;
use control::objects::{MAINTENANCE_GRACE_SECONDS_MAX, Redirect, TargetSpec};
use control::problem::Problem;
use control::view::TargetView;
use hyper::Method;

const NOUN: &str = "target";

const KEYS: Keys = Keys {
    known: &[
        "iqn",
        "portal_group",
        "redirect",
        "maintenance",
        "maintenance_grace_seconds",
        "name",
    ],
    fixed: &[
        (
            "portals",
            "they are the portal group's addresses: change listen in node.toml and restart",
        ),
        ("sessions", "`causeway session drop ID` ends one"),
    ],
    later: &[],
};

pub(super) fn run(context: &Context<'_>, verb: &TargetVerb) -> Result<(), Problem> {
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
            context.output.show(&targets, |targets| list(targets));
            Ok(())
        }
        TargetVerb::Show(Named { name }) => {
            let target: TargetView = context.client.get(&object_path(NOUN, name))?;
            context.output.show(&target, page);
            Ok(())
        }
        TargetVerb::Set(assigned) => set(context, assigned),
        TargetVerb::Rename(renamed) => context.rename(NOUN, renamed),
        TargetVerb::Delete(deleted) => context.delete(NOUN, deleted),
    }
}

fn set(context: &Context<'_>, assigned: &Assigned) -> Result<(), Problem> {
    let path = object_path(NOUN, &assigned.name);
    let given = assignments(&assigned.values, &KEYS)?;
    let mut put = None;
    if given.iter().any(|(key, _)| *key != "name") {
        // What is not assigned stays.
        let target: TargetView = context.client.get(&path)?;
        let mut target = target.to_spec();
        for (key, value) in &given {
            match *key {
                "iqn" => target.iqn = Some((*value).to_owned()),
                "portal_group" => target.portal_group = Some((*value).to_owned()),
                "redirect" => target.redirect = redirect(value)?,
                "maintenance" => target.maintenance = boolean(key, value)?,
                "maintenance_grace_seconds" => {
                    let seconds = number(key, value, MAINTENANCE_GRACE_SECONDS_MAX)?;
                    target.maintenance_grace_seconds = Some(seconds);
                }
                _ => {}
            }
        }
        put = Some(Step::new(Method::PUT, path, &target));
    }
    let new_name = given.iter().find(|(key, _)| *key == "name");
    context.set(NOUN, &assigned.name, put, new_name.map(|(_, to)| *to))
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

fn list(targets: &[TargetView]) -> String {
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
    table(
        &[
            "NAME",
            "IQN",
            "PORTAL GROUP",
            "PORTALS",
            "LOGINS",
            "SESSIONS",
        ],
        &rows,
    )
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
