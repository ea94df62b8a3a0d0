//! `causeway target ...`.

use super::{Context, Tolerate};
use crate::assign::assignments;
use crate::cli::TargetVerb;
use crate::client::segment;
use crate::output::{properties, table};
use control::code::Code;
use control::objects::TargetSpec;
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
                name: name.clone(),
                iqn: iqn.clone(),
                portal_group: portal_group.clone(),
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
        TargetVerb::Set { name, values } => {
            let mut target = TargetSpec {
                name: name.clone(),
                iqn: None,
                portal_group: None,
            };
            let mut new_name = None;
            for (key, value) in assignments(values, &["iqn", "portal_group", "name"])? {
                match key {
                    "iqn" => target.iqn = Some(value.to_owned()),
                    "portal_group" => target.portal_group = Some(value.to_owned()),
                    _ => new_name = Some(value),
                }
            }
            if target.iqn.is_some() || target.portal_group.is_some() {
                context.change(Method::PUT, &of(name), &target)?;
            }
            match new_name {
                Some(to) => context.change(
                    Method::POST,
                    &format!("{}/rename", of(name)),
                    &json!({ "to": to }),
                ),
                None => Ok(()),
            }
        }
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

fn list(targets: &[TargetView]) -> String {
    let rows: Vec<Vec<String>> = targets
        .iter()
        .map(|target| {
            vec![
                target.name.clone(),
                target.iqn.clone(),
                target.portal_group.clone(),
                target.portals.join(" "),
                target.sessions.to_string(),
            ]
        })
        .collect();
    table(
        &["NAME", "IQN", "PORTAL GROUP", "PORTALS", "SESSIONS"],
        &rows,
    )
}

fn page(target: &TargetView) -> String {
    properties(&[
        ("name", target.name.clone()),
        ("iqn", target.iqn.clone()),
        ("portal group", target.portal_group.clone()),
        ("portals", target.portals.join("\n")),
        ("sessions", target.sessions.to_string()),
    ])
}
