//! `causeway token ...`: what programs send instead of a password.

use super::context::{Context, object_path};
use super::user::{ROLES, gone, send};
use crate::args::{Deleted, Named};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use accounts::TokenView;
use clap::Subcommand;
use hyper::Method;
use manifest::problem::Problem;
use output::{Columns, Table, properties};
use serde_json::json;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["token", "create"], "role", Kind::Words(ROLES)),
    (&["token", "show"], "name", Kind::Name("token")),
    (&["token", "delete"], "name", Kind::Name("token")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["token", "ls"], When::Always, COLUMNS)];

/// What programs may send.
#[derive(Subcommand, Debug)]
pub(crate) enum TokenVerb {
    /// Make a token; it is shown once, and kept by nobody
    #[command(alias = "add")]
    Create {
        /// What it is for
        name: String,
        /// viewer reads, operator changes objects, admin changes users and tokens as well
        #[arg(long)]
        role: String,
        /// In how many days it ends [default: never]
        #[arg(long, conflicts_with = "expires")]
        days: Option<u64>,
        /// When it ends, as in 2027-01-31T00:00:00.000Z
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// Succeed where a token of this name exists, which is not shown again
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List tokens, and when each was used last
    #[command(alias = "list")]
    Ls,
    /// Show all of a token but itself, by its name or its id
    Show(Named),
    /// Remove a token, by its name or its id; it works no more
    #[command(alias = "rm")]
    Delete(Deleted),
}

pub(crate) fn run(context: &Context<'_>, verb: &TokenVerb) -> Result<(), Problem> {
    match verb {
        TokenVerb::Create {
            name,
            role,
            days,
            expires,
            if_not_exists,
        } => {
            if *if_not_exists && let Some(token) = found(context, name)? {
                context.output.show(&token, page);
                return Ok(());
            }
            let body = json!({ "name": name, "role": role, "days": days, "expires": expires });
            let made: TokenView = send(context, Method::POST, "/api/v1/tokens", &body)?;
            context.output.show(&made, |made| match &made.token {
                Some(token) => format!("{token}\n"),
                None => format!("token {} can be made\n", made.name),
            });
            Ok(())
        }
        TokenVerb::Ls => {
            let tokens: Vec<TokenView> = context.client.get("/api/v1/tokens")?;
            context.output.list(&tokens, |tokens| list(tokens));
            Ok(())
        }
        TokenVerb::Show(Named { name }) => {
            let token = found(context, name)?;
            let token = token.ok_or_else(|| Problem::not_found("token", name))?;
            context.output.show(&token, page);
            Ok(())
        }
        TokenVerb::Delete(deleted) => {
            let found = found(context, &deleted.name)?;
            let id = found.as_ref().map_or(&deleted.name, |it| &it.id);
            gone(context, &object_path("token", id), "token", deleted)
        }
    }
}

/// By its name or its id.
fn found(context: &Context<'_>, name: &str) -> Result<Option<TokenView>, Problem> {
    let tokens: Vec<TokenView> = context.client.get("/api/v1/tokens")?;
    let of = |fits: fn(&TokenView, &str) -> bool| tokens.iter().position(|it| fits(it, name));
    let found = of(|it, name| it.name == name).or_else(|| of(|it, name| it.id == name));
    Ok(found.and_then(|at| tokens.into_iter().nth(at)))
}

fn page(token: &TokenView) -> String {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "never".to_owned());
    properties(&[
        ("id", token.id.clone()),
        ("name", token.name.clone()),
        ("role", token.role.to_string()),
        ("made by", token.created_by.clone()),
        ("expires", or(&token.expires)),
        ("has ended", token.has_ended.to_string()),
        ("last use", or(&token.last_use)),
    ])
}

const COLUMNS: Columns = Columns::new(&["ID", "NAME", "ROLE", "MADE BY", "EXPIRES", "LAST USE"]);

fn list(tokens: &[TokenView]) -> Table {
    let or = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
    let row = |token: &TokenView| {
        let mut expires = or(&token.expires, "never");
        if token.has_ended {
            expires.push_str(" (ended)");
        }
        let last = or(&token.last_use, "never");
        let (id, name, role) = (token.id.clone(), token.name.clone(), token.role.to_string());
        vec![id, name, role, token.created_by.clone(), expires, last]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    Table::new(COLUMNS, rows)
}
