//! `causeway host ...`.

use super::{Context, Step, Tolerate, object_path};
use crate::assign::{Keys, assignments, limit, usage};
use crate::cli::{Assigned, ChapFields, HostVerb, Named};
use crate::output::{most, properties, table};
use control::code::Code;
use control::objects::{ChapSpec, HostSpec, SecretSpec};
use control::problem::Problem;
use control::secret::Secret;
use control::view::{ChapView, HostView};
use hyper::Method;
use std::path::Path;

const NOUN: &str = "host";

const KEYS: Keys = Keys {
    known: &[
        "iqn",
        "chap",
        "chap.user",
        "chap.secret_file",
        "chap.mutual",
        "chap.mutual_user",
        "chap.mutual_secret_file",
        "bytes_in_flight_max",
        "name",
    ],
    fixed: &[
        (
            "chap.secret",
            "put the secret into a file that only you can read: chap.secret_file=FILE",
        ),
        (
            "chap.mutual_secret",
            "put the secret into a file that only you can read: chap.mutual_secret_file=FILE",
        ),
        ("sessions", "`causeway session drop ID` ends one"),
    ],
    later: &[],
};

pub(super) fn run(context: &Context<'_>, verb: &HostVerb) -> Result<(), Problem> {
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
                bytes_in_flight_max: None,
            };
            let step = Step::new(Method::POST, "/api/v1/hosts", &host);
            context.change_object(tolerate, &[step], |_| Ok(object_path(NOUN, name)))
        }
        HostVerb::Ls => {
            let hosts: Vec<HostView> = context.client.get("/api/v1/hosts")?;
            context.output.show(&hosts, |hosts| list(hosts));
            Ok(())
        }
        HostVerb::Show(Named { name }) => {
            let host: HostView = context.client.get(&object_path(NOUN, name))?;
            context.output.show(&host, page);
            Ok(())
        }
        HostVerb::Set(assigned) => set(context, assigned),
        HostVerb::Rename(renamed) => context.rename(NOUN, renamed),
        HostVerb::Delete(deleted) => context.delete(NOUN, deleted),
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
    let bytes = crate::secret_file::read(file);
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

fn set(context: &Context<'_>, assigned: &Assigned) -> Result<(), Problem> {
    let given = assignments(&assigned.values, &KEYS)?;
    let path = object_path(NOUN, &assigned.name);
    let now: HostView = context.client.get(&path)?;
    let mut host = HostSpec {
        name: now.name.clone(),
        iqn: now.iqn.clone(),
        chap: now.chap.as_ref().map(ChapView::to_spec),
        bytes_in_flight_max: now.bytes_in_flight_max,
    };
    let (mut new_name, mut changed) = (None, false);
    for (key, value) in given {
        if key == "name" {
            new_name = Some(value);
            continue;
        }
        changed = true;
        match key {
            "bytes_in_flight_max" => host.bytes_in_flight_max = Some(limit(value)?),
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
    let put = changed.then(|| Step::new(Method::PUT, path, &host));
    context.set(NOUN, &assigned.name, put, new_name)
}

fn set_chap(chap: &mut ChapSpec, key: &str, value: &str) -> Result<(), Problem> {
    match key {
        "chap.user" => value.clone_into(&mut chap.user),
        "chap.secret_file" => chap.secret = read_secret(Path::new(value))?,
        "chap.mutual" if value == "none" => {
            chap.mutual_user = None;
            chap.mutual_secret = None;
        }
        "chap.mutual" => {
            let rule = "chap.mutual=none removes it; else set chap.mutual_user and \
                        chap.mutual_secret_file";
            return Err(usage(rule));
        }
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
        ("in flight at most", most(host.bytes_in_flight_max)),
        ("sessions", host.sessions.to_string()),
    ])
}
