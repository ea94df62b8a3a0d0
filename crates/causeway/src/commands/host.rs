//! `causeway host ...`.

use super::context::{Context, Patch, Step, Tolerate, object_path};
use crate::args::{Assigned, Deleted, Named, Renamed};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::{Args, Subcommand};
use hyper::Method;
use manifest::code::Code;
use manifest::objects::{ChapSpec, HostSpec, SecretSpec};
use manifest::problem::Problem;
use manifest::view::HostView;
use output::assign::{Keys, limit, usage};
use output::{Columns, Table, most, properties};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What can be assigned, with the values where they are few.
pub(crate) const ASSIGNMENTS: &[&str] = &[
    "iqn=",
    "chap.user=",
    "chap.secret_file=",
    "chap.mutual_user=",
    "chap.mutual_secret_file=",
    "chap=none",
    "chap.mutual=none",
    "bytes_in_flight_max=",
    "name=",
];

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["host", "show"], "name", Kind::Name("host")),
    (&["host", "set"], "name", Kind::Name("host")),
    (&["host", "set"], "values", Kind::Assignment(ASSIGNMENTS)),
    (&["host", "rename"], "name", Kind::Name("host")),
    (&["host", "delete"], "name", Kind::Name("host")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["host", "ls"], When::Always, COLUMNS)];

/// A host's CHAP.
#[derive(Args, Debug)]
pub(crate) struct ChapFields {
    /// The user that the initiator names
    #[arg(long, value_name = "USER", requires = "chap_secret_file")]
    pub(crate) chap_user: Option<String>,
    /// File with its secret, at least 12 bytes
    #[arg(long, value_name = "FILE", requires = "chap_user")]
    pub(crate) chap_secret_file: Option<PathBuf>,
    /// The user that the target names where the initiator wants proof too
    #[arg(long, value_name = "USER", requires_all = ["mutual_secret_file", "chap_user"])]
    pub(crate) mutual_user: Option<String>,
    /// File with the target's secret
    #[arg(long, value_name = "FILE", requires = "mutual_user")]
    pub(crate) mutual_secret_file: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum HostVerb {
    /// Make a host
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        /// An initiator's iSCSI name; repeat for more; * is every initiator
        #[arg(long, required = true, value_delimiter = ',')]
        iqn: Vec<String>,
        #[command(flatten)]
        chap: ChapFields,
        /// Succeed where a host of this name exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List hosts
    #[command(alias = "list")]
    Ls,
    /// Show all of a host
    Show(Named),
    /// Change properties: iqn=A,B  chap.user=U chap.secret_file=F chap.mutual_user=U
    /// chap.mutual_secret_file=F  chap=none  chap.mutual=none  bytes_in_flight_max=32M|none (of
    /// each session)  name=NEW
    Set(Assigned),
    /// Change the name
    Rename(Renamed),
    /// Remove a host with its grants
    #[command(alias = "rm")]
    Delete(Deleted),
}

const NOUN: &str = "host";

const KEYS: Keys = Keys {
    known: Cow::Borrowed(&[
        "iqn",
        "chap",
        "chap.user",
        "chap.secret_file",
        "chap.mutual",
        "chap.mutual_user",
        "chap.mutual_secret_file",
        "bytes_in_flight_max",
        "name",
    ]),
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

pub(crate) fn run(context: &Context<'_>, verb: &HostVerb) -> Result<(), Problem> {
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
            context.output.list(&hosts, |hosts| list(hosts));
            Ok(())
        }
        HostVerb::Show(Named { name }) => {
            let host: HostView = context.client.get(&object_path(NOUN, name))?;
            context.output.show(&host, page);
            Ok(())
        }
        HostVerb::Set(assigned) => context.assign(NOUN, assigned, &KEYS, patch),
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
    let secret = crate::secret_file::secret(file)?;
    if secret.reveal_text().is_none() {
        return Err(usage(format!("{} is not UTF-8 text", file.display())));
    }
    Ok(SecretSpec::Value(secret))
}

/// What was assigned, and only that, as the API takes it; and the new name.
fn patch<'a>(given: &[(&'a str, &'a str)]) -> Result<(Patch, Option<&'a str>), Problem> {
    let (mut patch, mut new_name) = (Patch::new(), None);
    let mut parts = Patch::new();
    for (key, value) in given.iter().copied() {
        let value = match key {
            "name" => {
                new_name = Some(value);
                continue;
            }
            "bytes_in_flight_max" => json!(limit(value)?),
            "iqn" => json!(value.split(',').collect::<Vec<&str>>()),
            "chap" if value == "none" => Value::Null,
            "chap" => {
                return Err(usage(
                    "chap=none removes it; else set chap.user and chap.secret_file",
                ));
            }
            _ => {
                patch_chap(&mut parts, key, value)?;
                continue;
            }
        };
        patch.insert(key.to_owned(), value);
    }
    if !parts.is_empty() && patch.insert("chap".to_owned(), json!(parts)).is_some() {
        return Err(usage("chap=none stands beside a part of it"));
    }
    Ok((patch, new_name))
}

fn patch_chap(parts: &mut Patch, key: &str, value: &str) -> Result<(), Problem> {
    let mut put = |part: &str, value: Value| parts.insert(part.to_owned(), value);
    let twice = match key {
        "chap.user" => put("user", json!(value)),
        "chap.secret_file" => put("secret", json!(read_secret(Path::new(value))?)),
        "chap.mutual" if value == "none" => {
            let user = put("mutual_user", Value::Null);
            put("mutual_secret", Value::Null).or(user)
        }
        "chap.mutual" => {
            let rule = "chap.mutual=none removes it; else set chap.mutual_user and \
                        chap.mutual_secret_file";
            return Err(usage(rule));
        }
        "chap.mutual_user" => put("mutual_user", json!(value)),
        _ => put("mutual_secret", json!(read_secret(Path::new(value))?)),
    };
    match twice {
        None => Ok(()),
        Some(_) => Err(usage("chap.mutual=none stands beside a part of it")),
    }
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

const COLUMNS: Columns = Columns::new(&["NAME", "INITIATORS", "CHAP", "SESSIONS"]);

fn list(hosts: &[HostView]) -> Table {
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
    Table::new(COLUMNS, rows)
}

fn least_paths(host: &HostView) -> String {
    if !host.redundancy.connected {
        return "not connected".to_owned();
    }
    host.redundancy.least_paths.to_string()
}

fn page(host: &HostView) -> String {
    properties(&[
        ("name", host.name.clone()),
        ("initiators", host.iqn.join("\n")),
        ("chap", chap_text(host)),
        ("in flight at most", most(host.bytes_in_flight_max)),
        ("sessions", host.sessions.to_string()),
        ("least paths", least_paths(host)),
    ])
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn only_what_was_assigned_of_a_host_is_sent() {
        let sent = |given: &[(&str, &str)]| patch(given).map(|(patch, _)| json!(patch));
        let none = sent(&[("chap", "none"), ("bytes_in_flight_max", "none")]);
        assert_eq!(
            none.unwrap(),
            json!({ "chap": null, "bytes_in_flight_max": 0 })
        );
        let user = sent(&[("chap.user", "u"), ("chap.mutual", "none")]).unwrap();
        let parts = json!({ "user": "u", "mutual_user": null, "mutual_secret": null });
        assert_eq!(user, json!({ "chap": parts }));
        for both in [
            [("chap", "none"), ("chap.user", "u")],
            [("chap.mutual_user", "u"), ("chap.mutual", "none")],
        ] {
            let detail = sent(&both).unwrap_err().detail.clone();
            assert!(detail.contains("stands beside a part of it"), "{detail}");
        }
    }
}
