//! `causeway user ...`: who may log in to the page and the API.

use super::context::{Context, object_path};
use crate::args::{Deleted, Named};
use crate::completion::{BOOLEANS, CompletedArgument, Kind};
use crate::listed::{Listed, When};
use crate::password::new_password;
use accounts::UserView;
use clap::{Args, Subcommand};
use hyper::Method;
use manifest::code::Code;
use manifest::ending::Ending;
use manifest::problem::Problem;
use output::{Columns, Table, properties};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

pub(crate) const ROLES: &[&str] = &["viewer", "operator", "admin"];

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["user", "show"], "name", Kind::Name("user")),
    (&["user", "set"], "name", Kind::Name("user")),
    (&["user", "delete"], "name", Kind::Name("user")),
    (&["user", "end-sessions"], "name", Kind::Name("user")),
    (&["user", "create"], "role", Kind::Words(ROLES)),
    (&["user", "set"], "role", Kind::Words(ROLES)),
    (&["user", "set"], "enabled", Kind::Words(BOOLEANS)),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["user", "ls"], When::Always, COLUMNS)];

/// Who may log in.
#[derive(Subcommand, Debug)]
pub(crate) enum UserVerb {
    /// Make a user; the password is asked for, or read from a file
    #[command(alias = "add")]
    Create {
        /// Their name
        name: String,
        /// viewer reads, operator changes objects, admin changes users and tokens as well
        #[arg(long)]
        role: String,
        /// File with the password, at least 12 characters; - is standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// They have to change the password at the first login
        #[arg(long)]
        must_change: bool,
        /// Succeed where a user of this name exists; nothing of theirs is changed
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List users
    #[command(alias = "list")]
    Ls,
    /// Show all of a user
    Show(Named),
    /// Change role or password, or whether they may log in; a new password ends their sessions
    Set(UserSet),
    /// Remove a user; their sessions end
    #[command(alias = "rm")]
    Delete(Deleted),
    /// End all logins of a user to the page
    EndSessions(Named),
}

/// What of a user shall change.
#[derive(Args, Debug)]
pub(crate) struct UserSet {
    /// Who
    name: String,
    /// viewer, operator or admin
    #[arg(long)]
    role: Option<String>,
    /// They may log in
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    /// Ask for a new password
    #[arg(long, conflicts_with = "password_file")]
    password: bool,
    /// File with the new password; - is standard input
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// They have to change it at the next login
    #[arg(long)]
    must_change: bool,
}

pub(crate) fn run(context: &Context<'_>, verb: &UserVerb) -> Result<(), Problem> {
    match verb {
        UserVerb::Create {
            name,
            role,
            password_file,
            must_change,
            if_not_exists,
        } => {
            let path = object_path("user", name);
            if *if_not_exists && let Some(user) = existing::<UserView>(context, &path)? {
                context.output.show(&user, page);
                return Ok(());
            }
            let password = new_password(name, password_file.as_deref())?;
            let body = json!({
                "name": name,
                "role": role,
                "password": password.reveal_text(),
                "must_change": must_change,
            });
            let made: UserView = send(context, Method::POST, "/api/v1/users", &body)?;
            context.output.show(&made, page);
            Ok(())
        }
        UserVerb::Ls => {
            let users: Vec<UserView> = context.client.get("/api/v1/users")?;
            context.output.list(&users, |users| list(users));
            Ok(())
        }
        UserVerb::Show(Named { name }) => {
            let user: UserView = context.client.get(&object_path("user", name))?;
            context.output.show(&user, page);
            Ok(())
        }
        UserVerb::Set(set) => change(context, set),
        UserVerb::Delete(deleted) => {
            let path = object_path("user", &deleted.name);
            gone(context, &path, "user", deleted)
        }
        UserVerb::EndSessions(Named { name }) => {
            let path = format!("{}/sessions", object_path("user", name));
            let ending: Ending = send(context, Method::DELETE, &path, &())?;
            context.output.show(&ending, ToString::to_string);
            Ok(())
        }
    }
}

fn change(context: &Context<'_>, set: &UserSet) -> Result<(), Problem> {
    let mut body = serde_json::Map::new();
    if let Some(role) = &set.role {
        body.insert("role".to_owned(), json!(role));
    }
    if let Some(enabled) = set.enabled {
        body.insert("enabled".to_owned(), json!(enabled));
    }
    let has_password = set.password || set.password_file.is_some();
    if has_password {
        let password = new_password(&set.name, set.password_file.as_deref())?;
        body.insert("password".to_owned(), json!(password.reveal_text()));
        body.insert("must_change".to_owned(), json!(set.must_change));
    } else if set.must_change {
        let detail = "--must-change goes with a new password";
        return Err(
            Problem::new(Code::CommandLine, detail).hint("add --password or --password-file FILE")
        );
    }
    if body.is_empty() {
        let detail = "nothing to change was named";
        return Err(Problem::new(Code::CommandLine, detail)
            .hint("name some of --role, --enabled, --password, --password-file"));
    }
    let path = object_path("user", &set.name);
    let user: UserView = send(context, Method::PATCH, &path, &body)?;
    context.output.show(&user, page);
    Ok(())
}

/// Asks for a change, or with --dry-run whether it can be made.
pub(crate) fn send<T: serde::de::DeserializeOwned>(
    context: &Context<'_>,
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> Result<T, Problem> {
    let dry_run = context.is_dry_run();
    let path = format!("{path}?dry_run={dry_run}");
    context.client.send(method, &path, body)
}

/// What is at `path`, where there is something.
pub(super) fn existing<T: serde::de::DeserializeOwned>(
    context: &Context<'_>,
    path: &str,
) -> Result<Option<T>, Problem> {
    match context.client.get(path) {
        Ok(found) => Ok(Some(found)),
        Err(problem) if problem.code == Code::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Says what was done, or why nothing was; a program gets `null`.
pub(super) fn nothing(context: &Context<'_>, said: &str) {
    context.output.show(&(), |()| format!("{said}\n"));
}

/// What was asked for; `None`: there is no such thing, or it has ended, which was said and is fine
/// where `if_exists` was given.
pub(super) fn if_there<T>(
    context: &Context<'_>,
    if_exists: bool,
    asked: Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    match asked {
        Err(problem) if if_exists && [Code::NotFound, Code::JobOver].contains(&problem.code) => {
            nothing(context, &problem.detail);
            Ok(None)
        }
        asked => asked.map(Some),
    }
}

/// Deletes what is at `path`.
pub(crate) fn gone(
    context: &Context<'_>,
    path: &str,
    noun: &str,
    deleted: &Deleted,
) -> Result<(), Problem> {
    let name = &deleted.name;
    let said = match send::<Option<Ending>>(context, Method::DELETE, path, &()) {
        Err(problem) if problem.code == Code::NotFound && deleted.if_exists => {
            format!("there is no {noun} \"{name}\"")
        }
        Err(problem) => return Err(problem),
        Ok(Some(ending)) => {
            context.output.show(&ending, ToString::to_string);
            return Ok(());
        }
        Ok(None) if context.is_dry_run() => format!("{noun} {name} can be deleted"),
        Ok(None) => format!("{noun} {name} deleted"),
    };
    nothing(context, &said);
    Ok(())
}

fn state(user: &UserView) -> &'static str {
    match (user.enabled, user.must_change) {
        (false, _) => "disabled",
        (true, true) => "has to change the password",
        (true, false) => "",
    }
}

const COLUMNS: Columns = Columns::new(&["NAME", "ROLE", "PASSWORD SET", "STATE"]);

fn list(users: &[UserView]) -> Table {
    let row = |user: &UserView| {
        let state = state(user).to_owned();
        vec![
            user.name.clone(),
            user.role.to_string(),
            user.password_set.clone(),
            state,
        ]
    };
    let rows: Vec<Vec<String>> = users.iter().map(row).collect();
    Table::new(COLUMNS, rows)
}

fn page(user: &UserView) -> String {
    properties(&[
        ("name", user.name.clone()),
        ("role", user.role.to_string()),
        ("may log in", user.enabled.to_string()),
        ("must change the password", user.must_change.to_string()),
        ("made", user.created.clone()),
        ("password set", user.password_set.clone()),
    ])
}
