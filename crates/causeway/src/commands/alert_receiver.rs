//! `causeway alert receiver ...`: who is sent alerts.

use super::context::Context;
use super::user::{existing, gone, send};
use crate::args::{Deleted, Named};
use crate::completion::{BOOLEANS, CompletedArgument, Kind};
use crate::listed::{Listed, When};
use crate::secret_file;
use alerts::{RULES, ReceiverView};
use clap::{Args, Subcommand};
use client::segment;
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use output::{Columns, Table, print, properties};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

pub(super) const SEVERITIES: &[&str] = &["info", "warning", "critical"];

const ENCRYPTIONS: &[&str] = &["starttls", "tls", "none"];
const KIND: Kind = Kind::Name("alerts/receiver");

pub(super) fn rule_names() -> Vec<String> {
    RULES.into_iter().map(|rule| rule.id.to_owned()).collect()
}

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["alert", "receiver", "show"], "name", KIND),
    (&["alert", "receiver", "set"], "name", KIND),
    (&["alert", "receiver", "delete"], "name", KIND),
    (&["alert", "receiver", "test"], "name", KIND),
    (
        &["alert", "receiver", "create"],
        "encryption",
        Kind::Words(ENCRYPTIONS),
    ),
    (
        &["alert", "receiver", "set"],
        "encryption",
        Kind::Words(ENCRYPTIONS),
    ),
    (
        &["alert", "receiver", "create"],
        "least",
        Kind::Words(SEVERITIES),
    ),
    (
        &["alert", "receiver", "set"],
        "least",
        Kind::Words(SEVERITIES),
    ),
    (
        &["alert", "receiver", "create"],
        "enabled",
        Kind::Words(BOOLEANS),
    ),
    (
        &["alert", "receiver", "set"],
        "enabled",
        Kind::Words(BOOLEANS),
    ),
    (
        &["alert", "receiver", "create"],
        "resolved",
        Kind::Words(BOOLEANS),
    ),
    (
        &["alert", "receiver", "set"],
        "resolved",
        Kind::Words(BOOLEANS),
    ),
    (
        &["alert", "receiver", "create"],
        "rules",
        Kind::AssignmentOf(rule_names),
    ),
    (
        &["alert", "receiver", "set"],
        "rules",
        Kind::AssignmentOf(rule_names),
    ),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["alert", "receiver", "ls"], When::Always, COLUMNS)];

/// Who is sent alerts.
#[derive(Subcommand, Debug)]
pub(crate) enum ReceiverVerb {
    /// List receivers, and whether messages to them arrive
    #[command(alias = "list")]
    Ls,
    /// Show all of a receiver, without its secrets
    Show(Named),
    /// Make a receiver: one of --url-file (webhook), --server (mail), --command (a program of
    /// node.toml)
    #[command(alias = "add")]
    Create {
        #[command(flatten)]
        flags: Box<ReceiverFlags>,
        /// Succeed where a receiver of this name exists; nothing of it is changed
        #[arg(long)]
        if_not_exists: bool,
    },
    /// Change a receiver; what is not named stays, also secrets
    Set(Box<ReceiverFlags>),
    /// Remove a receiver
    #[command(alias = "rm")]
    Delete(Deleted),
    /// Send it a message that says that nothing is wrong
    Test(Named),
}

/// What a receiver is to be.
#[derive(Args, Debug)]
pub(crate) struct ReceiverFlags {
    /// Its name
    name: String,
    /// Webhook: a file with the address that messages are posted to, http:// or https://; - is
    /// standard input. It is a secret with many services, so it is no argument
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "command"])]
    url_file: Option<PathBuf>,
    /// Webhook: a file with the token that is sent as Authorization: Bearer
    #[arg(long, value_name = "FILE")]
    bearer_file: Option<PathBuf>,
    /// Mail: the server, by name or address
    #[arg(long, value_name = "HOST", conflicts_with = "command")]
    server: Option<String>,
    /// Mail: its port [default: 587, with tls 465, with none 25]
    #[arg(long)]
    port: Option<u16>,
    /// Mail: starttls, tls or none [default: starttls]
    #[arg(long)]
    encryption: Option<String>,
    /// Mail: who logs in there; empty: nobody
    #[arg(long)]
    user: Option<String>,
    /// Mail: a file with the password; - is standard input
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Mail: the address that mails are from
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Mail: the addresses that they go to, with commas between
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    to: Vec<String>,
    /// Webhook and mail: a file with certificates (PEM) that are believed instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_of_receiver: Option<PathBuf>,
    /// Command: the name of an [[alert_command]] of node.toml
    #[arg(long, value_name = "NAME")]
    command: Option<String>,
    /// Whether it is sent anything
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    /// The mildest severity that it is sent: info, warning, critical [default: warning]
    #[arg(long, value_name = "SEVERITY")]
    least: Option<String>,
    /// Only alerts of these rules, with commas between; empty: of all
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    rules: Option<Vec<String>>,
    /// How long what happens together is gathered for one message [default: 10]
    #[arg(long, value_name = "SECONDS")]
    group_seconds: Option<u64>,
    /// How often it is reminded of what nobody has acknowledged; 0: never [default: 24]
    #[arg(long, value_name = "HOURS")]
    remind_hours: Option<u64>,
    /// Whether it is sent that alerts are over
    #[arg(long, value_name = "BOOL")]
    resolved: Option<bool>,
}

const PATH: &str = "/api/v1/alerts/receivers";

fn path(name: &str) -> String {
    format!("{PATH}/{}", segment(name))
}

pub(crate) fn run(context: &Context<'_>, verb: &ReceiverVerb) -> Result<(), Problem> {
    match verb {
        ReceiverVerb::Ls => {
            let all: Vec<ReceiverView> = context.client.get(PATH)?;
            context.output.list(&all, |all| list(all));
            Ok(())
        }
        ReceiverVerb::Show(Named { name }) => {
            let receiver: ReceiverView = context.client.get(&path(name))?;
            context.output.show(&receiver, page);
            Ok(())
        }
        ReceiverVerb::Create {
            flags,
            if_not_exists,
        } => {
            let path = path(&flags.name);
            if *if_not_exists && let Some(it) = existing::<ReceiverView>(context, &path)? {
                context.output.show(&it, page);
                return Ok(());
            }
            let mut body = body(flags)?;
            body.insert("name".to_owned(), json!(flags.name));
            let made: ReceiverView = send(context, Method::POST, PATH, &body)?;
            context.output.show(&made, page);
            Ok(())
        }
        ReceiverVerb::Set(flags) => {
            let body = body(flags)?;
            if body.is_empty() {
                let detail = "nothing to change was named";
                return Err(Problem::new(Code::CommandLine, detail)
                    .hint("causeway alert receiver set --help lists what can be changed"));
            }
            let set: ReceiverView = send(context, Method::PATCH, &path(&flags.name), &body)?;
            context.output.show(&set, page);
            Ok(())
        }
        ReceiverVerb::Delete(deleted) => gone(context, &path(&deleted.name), "receiver", deleted),
        ReceiverVerb::Test(Named { name }) => {
            send::<()>(context, Method::POST, &format!("{}/test", path(name)), &())?;
            said(context, &format!("receiver {name} took a test message"));
            Ok(())
        }
    }
}

/// Says what was done; a program gets `null`.
pub(super) fn said(context: &Context<'_>, text: &str) {
    if context.output.is_document() {
        context.output.show(&(), |()| String::new());
        return;
    }
    let would = if context.is_dry_run() {
        "(dry run) "
    } else {
        ""
    };
    print(&format!("{would}{text}\n"));
}

fn read(file: &Path) -> Result<Secret, Problem> {
    let failed = |error: std::io::Error| {
        let detail = format!("{}: {error}", file.display());
        Problem::new(Code::ConfigUnreadable, detail)
    };
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_line(&mut text).map_err(failed)?;
        return Ok(Secret::from_file(text.into_bytes()));
    }
    secret_file::secret(file)
}

fn text(file: &Path) -> Result<Value, Problem> {
    let secret = read(file)?;
    let text = secret.reveal_text().map(Value::from);
    text.ok_or_else(|| {
        let detail = format!("{}: not text as UTF-8 has it", file.display());
        Problem::new(Code::ConfigUnreadable, detail)
    })
}

/// Members that were named.
struct Members(Map<String, Value>);

impl Members {
    fn put(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value);
        }
    }
}

fn body(flags: &ReceiverFlags) -> Result<Map<String, Value>, Problem> {
    let file = |file: &Option<PathBuf>| file.as_deref().map(text).transpose();
    let mut all = Members(Map::new());
    all.put("enabled", flags.enabled.map(Value::from));
    all.put("least", flags.least.clone().map(Value::from));
    let named =
        |all: &Vec<String>| json!(all.iter().filter(|it| !it.is_empty()).collect::<Vec<_>>());
    all.put("rules", flags.rules.as_ref().map(named));
    all.put("group_seconds", flags.group_seconds.map(Value::from));
    all.put("remind_hours", flags.remind_hours.map(Value::from));
    all.put("resolved", flags.resolved.map(Value::from));
    let mut webhook = Members(Map::new());
    webhook.put("url", file(&flags.url_file)?);
    webhook.put("token", file(&flags.bearer_file)?);
    let mut mail = Members(Map::new());
    mail.put("server", flags.server.clone().map(Value::from));
    mail.put("port", flags.port.map(Value::from));
    mail.put("encryption", flags.encryption.clone().map(Value::from));
    let nobody = flags.user.as_deref() == Some("");
    mail.put(
        "user",
        flags
            .user
            .clone()
            .map(|user| if nobody { Value::Null } else { json!(user) }),
    );
    let password = file(&flags.password_file)?;
    mail.put("password", password.or(nobody.then_some(Value::Null)));
    mail.put("from", flags.from.clone().map(Value::from));
    mail.put("to", (!flags.to.is_empty()).then(|| json!(flags.to)));
    let ca = file(&flags.ca_of_receiver)?;
    if mail.0.is_empty() {
        webhook.put("ca", ca);
    } else {
        mail.put("ca", ca);
    }
    for (name, members) in [("webhook", webhook), ("mail", mail)] {
        if !members.0.is_empty() {
            all.0.insert(name.to_owned(), Value::Object(members.0));
        }
    }
    let command = flags.command.as_ref().map(|name| json!({ "name": name }));
    all.put("command", command);
    Ok(all.0)
}

const COLUMNS: Columns = Columns::new(&[
    "NAME",
    "KIND",
    "TO",
    "LEAST",
    "DELIVERED",
    "FAILED",
    "WAITING",
    "PROBLEM",
]);

fn list(all: &[ReceiverView]) -> Table {
    let row = |it: &ReceiverView| {
        let state = match (&it.problem, it.enabled) {
            (_, false) => "disabled".to_owned(),
            (Some(problem), true) => problem.clone(),
            (None, true) => String::new(),
        };
        vec![
            it.name.clone(),
            it.kind.clone(),
            to(it),
            it.least.name().to_owned(),
            it.delivered.to_string(),
            it.failed.to_string(),
            it.waiting.to_string(),
            state,
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    Table::new(COLUMNS, rows)
}

/// Whom it reaches, in a word or two.
fn to(receiver: &ReceiverView) -> String {
    if let Some(webhook) = &receiver.webhook {
        return webhook.at.clone();
    }
    if let Some(mail) = &receiver.mail {
        return mail.to.join(", ");
    }
    let command = receiver.command.as_ref();
    command.map_or_else(String::new, |command| command.name.clone())
}

fn page(it: &ReceiverView) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let mut rows = vec![
        ("receiver", it.name.clone()),
        ("kind", it.kind.clone()),
        ("enabled", yes(it.enabled)),
        ("least severity", it.least.name().to_owned()),
        (
            "rules",
            if it.rules.is_empty() {
                "all".to_owned()
            } else {
                it.rules.join(", ")
            },
        ),
        ("gathers for", format!("{} s", it.group_seconds)),
        (
            "reminded",
            match it.remind_hours {
                0 => "never".to_owned(),
                hours => format!("every {hours} h"),
            },
        ),
        ("is sent ends", yes(it.resolved)),
    ];
    if let Some(webhook) = &it.webhook {
        rows.push(("posts to", webhook.at.clone()));
        rows.push(("token", yes(webhook.has_token)));
        rows.push(("certificates of its own", yes(webhook.has_ca)));
    }
    if let Some(mail) = &it.mail {
        rows.push(("server", format!("{}:{}", mail.server, mail.port)));
        let encryption = serde_json::to_value(mail.encryption).unwrap_or_default();
        rows.push((
            "encryption",
            encryption.as_str().unwrap_or_default().to_owned(),
        ));
        rows.extend(mail.user.clone().map(|user| ("user", user)));
        rows.push(("password", yes(mail.has_password)));
        rows.push(("from", mail.from.clone()));
        rows.push(("to", mail.to.join("\n")));
    }
    rows.extend(
        it.command
            .as_ref()
            .map(|command| ("command", command.name.clone())),
    );
    rows.push(("delivered", it.delivered.to_string()));
    rows.push(("failed", it.failed.to_string()));
    rows.push(("waiting", it.waiting.to_string()));
    rows.extend(it.last_success.clone().map(|at| ("last success", at)));
    rows.extend(it.last_failure.clone().map(|at| ("last failure", at)));
    rows.extend(it.problem.clone().map(|why| ("problem", why)));
    properties(&rows)
}
