//! `causeway host ...`.

use super::{Context, Tolerate};
use crate::assign::{assignments, usage};
use crate::cli::{ChapFields, HostVerb};
use crate::client::segment;
use crate::output::{properties, table};
use control::code::Code;
use control::objects::{ChapSpec, HostSpec, SecretSpec};
use control::problem::Problem;
use control::secret::Secret;
use control::view::{ChapView, HostView};
use hyper::Method;
use serde_json::json;
use std::path::Path;

pub(super) fn run(context: &Context<'_>, verb: &HostVerb) -> Result<(), Problem> {
    let of = |name: &str| format!("/api/v1/hosts/{}", segment(name));
    match verb {
        HostVerb::Create {
            name,
            iqn,
            chap,
            if_not_exists,
        } => {
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            let host = HostSpec {
                name: name.clone(),
                iqn: iqn.clone(),
                chap: chap_spec(chap)?,
            };
            context.change_unless(tolerate, Method::POST, "/api/v1/hosts", &host)
        }
        HostVerb::Ls => {
            let hosts: Vec<HostView> = context.client.get("/api/v1/hosts")?;
            context.output.show(&hosts, |hosts| list(hosts));
            Ok(())
        }
        HostVerb::Show { name } => {
            let host: HostView = context.client.get(&of(name))?;
            context.output.show(&host, page);
            Ok(())
        }
        HostVerb::Set { name, values } => set(context, name, values),
        HostVerb::Rename { name, to } => context.change(
            Method::POST,
            &format!("{}/rename", of(name)),
            &json!({ "to": to }),
        ),
        HostVerb::Delete { name, if_exists } => {
            let tolerate = Tolerate::when(*if_exists, Code::NotFound);
            context.change_unless(tolerate, Method::DELETE, &of(name), &())
        }
    }
}

fn chap_spec(fields: &ChapFields) -> Result<Option<ChapSpec>, Problem> {
    let (Some(user), Some(file)) = (&fields.chap_user, &fields.chap_secret_file) else {
        return Ok(None);
    };
    let mutual_secret = fields.mutual_secret_file.as_deref().map(read_secret);
    Ok(Some(ChapSpec {
        user: user.clone(),
        secret: read_secret(file)?,
        mutual_user: fields.mutual_user.clone(),
        mutual_secret: mutual_secret.transpose()?,
    }))
}

fn read_secret(file: &Path) -> Result<SecretSpec, Problem> {
    let bytes = std::fs::read(file);
    let secret = bytes.map(Secret::from_file).map_err(|error| {
        Problem::new(
            Code::ConfigUnreadable,
            format!("{}: {error}", file.display()),
        )
    })?;
    if secret.reveal_text().is_none() {
        return Err(usage(format!("{} is not UTF-8 text", file.display())));
    }
    Ok(SecretSpec::Value(secret))
}

fn set(context: &Context<'_>, name: &str, values: &[String]) -> Result<(), Problem> {
    let known = [
        "iqn",
        "chap",
        "chap.user",
        "chap.secret_file",
        "chap.mutual_user",
        "chap.mutual_secret_file",
        "name",
    ];
    let given = assignments(values, &known)?;
    let path = format!("/api/v1/hosts/{}", segment(name));
    let now: HostView = context.client.get(&path)?;
    let mut host = HostSpec {
        name: now.name.clone(),
        iqn: now.iqn.clone(),
        chap: now.chap.as_ref().map(ChapView::to_spec),
    };
    let (mut new_name, mut changed) = (None, false);
    for (key, value) in given {
        if key == "name" {
            new_name = Some(value);
            continue;
        }
        changed = true;
        match key {
            "iqn" => host.iqn = value.split(',').map(ToOwned::to_owned).collect(),
            "chap" if value == "none" => host.chap = None,
            "chap" => {
                return Err(usage(
                    "chap=none removes it; else set chap.user and chap.secret_file",
                ));
            }
            _ => {
                let chap = host.chap.get_or_insert_with(|| ChapSpec {
                    user: String::new(),
                    secret: SecretSpec::Stored,
                    mutual_user: None,
                    mutual_secret: None,
                });
                set_chap(chap, key, value)?;
            }
        }
    }
    if changed {
        context.change(Method::PUT, &path, &host)?;
    }
    match new_name {
        Some(to) => context.change(
            Method::POST,
            &format!("{path}/rename"),
            &json!({ "to": to }),
        ),
        None => Ok(()),
    }
}

fn set_chap(chap: &mut ChapSpec, key: &str, value: &str) -> Result<(), Problem> {
    match key {
        "chap.user" => value.clone_into(&mut chap.user),
        "chap.secret_file" => chap.secret = read_secret(Path::new(value))?,
        "chap.mutual_user" => chap.mutual_user = Some(value.to_owned()),
        _ => chap.mutual_secret = Some(read_secret(Path::new(value))?),
    }
    Ok(())
}

fn chap_text(host: &HostView) -> String {
    match &host.chap {
        None => "none".to_owned(),
        Some(chap) => match &chap.mutual_user {
            None => format!("user {}", chap.user),
            Some(mutual) => format!("user {}, mutual user {mutual}", chap.user),
        },
    }
}

fn list(hosts: &[HostView]) -> String {
    let rows: Vec<Vec<String>> = hosts
        .iter()
        .map(|host| {
            vec![
                host.name.clone(),
                host.iqn.join(" "),
                chap_text(host),
                host.sessions.to_string(),
            ]
        })
        .collect();
    table(&["NAME", "INITIATORS", "CHAP", "SESSIONS"], &rows)
}

fn page(host: &HostView) -> String {
    properties(&[
        ("name", host.name.clone()),
        ("initiators", host.iqn.join("\n")),
        ("chap", chap_text(host)),
        ("sessions", host.sessions.to_string()),
    ])
}
