//! `causeway target ...`.

use super::{Context, Tolerate};
use crate::assign::{assignments, boolean, usage};
use crate::cli::TargetVerb;
use crate::client::segment;
use crate::output::{properties, table};
use control::code::Code;
use control::objects::{Redirect, TargetSpec};
use control::problem::Problem;
use control::view::TargetView;
use hyper::Method;
use serde_json::json;

pub(super) fn run(context: &Context<'_>, verb: &TargetVerb) -> Result<(), Problem> {
    let of = |name: &str| format!("/api/v1/targets/{}", segment(name));
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
            context.change_unless(tolerate, Method::POST, "/api/v1/targets", &target)
        }
        TargetVerb::Ls => {
            let targets: Vec<TargetView> = context.client.get("/api/v1/targets")?;
            context.output.show(&targets, |targets| list(targets));
            Ok(())
        }
        TargetVerb::Show { name } => {
            let target: TargetView = context.client.get(&of(name))?;
            context.output.show(&target, page);
            Ok(())
        }
        TargetVerb::Set { name, values } => set(context, name, values),
        TargetVerb::Rename { name, to } => context.change(
            Method::POST,
            &format!("{}/rename", of(name)),
            &json!({ "to": to }),
        ),
        TargetVerb::Delete { name, if_exists } => {
            let tolerate = Tolerate::when(*if_exists, Code::NotFound);
            context.change_unless(tolerate, Method::DELETE, &of(name), &())
        }
    }
}

fn set(context: &Context<'_>, name: &str, values: &[String]) -> Result<(), Problem> {
    let path = format!("/api/v1/targets/{}", segment(name));
    let known = ["iqn", "portal_group", "redirect", "maintenance", "name"];
    let assignments = assignments(values, &known)?;
    let new_name = assignments.iter().find(|(key, _)| *key == "name");
    if assignments.iter().any(|(key, _)| *key != "name") {
        // What is not assigned stays.
        let target: TargetView = context.client.get(&path)?;
        let mut target = target.to_spec();
        for (key, value) in &assignments {
            match *key {
                "iqn" => target.iqn = Some((*value).to_owned()),
                "portal_group" => target.portal_group = Some((*value).to_owned()),
                "redirect" => target.redirect = redirect(value)?,
                "maintenance" => target.maintenance = boolean(key, value)?,
                _ => {}
            }
        }
        context.change(Method::PUT, &path, &target)?;
    }
    match new_name {
        Some((_, to)) => context.change(
            Method::POST,
            &format!("{path}/rename"),
            &json!({ "to": to }),
        ),
        None => Ok(()),
    }
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

fn page(target: &TargetView) -> String {
    properties(&[
        ("name", target.name.clone()),
        ("iqn", target.iqn.clone()),
        ("portal group", target.portal_group.clone()),
        ("portals", target.portals.join("\n")),
        ("logins", logins(target)),
        ("maintenance", target.maintenance.to_string()),
        ("sessions", target.sessions.to_string()),
    ])
}
