//! `tokens`: what programs send instead of a password.

use crate::account_parts::AccountChange;
use crate::answer::Answer;
use crate::auth::{Gate, TOKEN_FILE};
use crate::describe::Paths;
use crate::listing::{Listed, Listing, rows};
use crate::outside::{now, random};
use crate::parts::{Named, Wanted};
use accounts::{Accounts, Edit, Principal, Role, Token, TokenView, new_token, time};
use axum::extract::Extension;
use manifest::code::Code;
use manifest::ending::Ending;
use manifest::problem::Problem;
use manifest::time::parse;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

type TheGate = Extension<Arc<Gate>>;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get("/api/v1/tokens", "what programs log in with", tokens)
        .but(&[Code::NotFound, Code::LastAdmin], create)
        .get("/api/v1/tokens/{id}", "one token", token)
        .but(&[Code::AlreadyExists, Code::LastAdmin], delete)
        .or(&[Code::Immutable])
}

/// There are no passwords in it.
const OF_PASSWORDS: &[Code] = &[Code::InvalidObjects, Code::PasswordRule];

fn create(paths: Paths) -> Paths {
    paths.but(OF_PASSWORDS, |paths| {
        paths.post(
            "/api/v1/tokens",
            "makes a token: this answer has it, and no other",
            create_token,
        )
    })
}

fn delete(paths: Paths) -> Paths {
    paths.but(OF_PASSWORDS, |paths| {
        paths.delete("/api/v1/tokens/{id}", "ends it for good", delete_token)
    })
}

rows!(
    TokenView: "id" in [
        "id", "name", "role", "created_by", "created", "expires", "has_ended", "last_use",
    ], by "";
);

fn view(accounts: &Accounts, token: &Token) -> TokenView {
    TokenView::of(accounts, token, now().seconds())
}

/// The token of the file in the state directory, which whoever reads that has.
fn of_file(gate: &Gate) -> TokenView {
    let used = gate.store.lock().file_token_use();
    TokenView {
        id: TOKEN_FILE.to_owned(),
        name: TOKEN_FILE.to_owned(),
        role: Role::Admin,
        created_by: "the node".to_owned(),
        created: time(gate.token_made.unwrap_or_default()),
        expires: None,
        has_ended: false,
        last_use: used.map(time),
        token: None,
    }
}

/// Why that one is not deleted.
fn stays() -> Problem {
    let detail =
        format!("token {TOKEN_FILE} is the one of the file {TOKEN_FILE} in the state directory");
    Problem::new(Code::Immutable, detail).hint(
        "to replace it, remove the file and restart the daemon: it makes another one; the old one ends with that",
    )
}

fn find(accounts: &Accounts, id: &str) -> Result<TokenView, Problem> {
    let mut tokens = accounts.document().tokens.iter();
    let token = tokens.find(|token| token.id == id);
    let token = token.map(|token| view(accounts, token));
    token.ok_or_else(|| Problem::not_found("token", id))
}

/// As the audit log has a token, without what its holder sends; nothing where there is none.
pub(crate) fn shown(gate: &Gate, id: &str) -> serde_json::Value {
    let found = find(&gate.store.lock(), id).ok();
    serde_json::to_value(found).unwrap_or_default()
}

async fn tokens(Extension(gate): TheGate, listing: Listing<TokenView>) -> Listed<TokenView> {
    let list = || {
        gate.store.whole()?;
        let first = of_file(&gate);
        let accounts = gate.store.lock();
        let made = accounts.document().tokens.iter();
        let made = made.map(|token| view(&accounts, token));
        Ok(std::iter::once(first).chain(made).collect())
    };
    listing.show(list())
}

async fn token(Extension(gate): TheGate, Named(id): Named) -> Answer<TokenView> {
    if id == TOKEN_FILE {
        return Answer(Ok(of_file(&gate)));
    }
    let found = gate.store.whole();
    Answer(found.and_then(|()| find(&gate.store.lock(), &id)))
}

/// A token that is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewToken {
    /// What it is for.
    name: String,
    /// What its holder may do.
    role: Role,
    /// When it ends, as RFC 3339 has it.
    expires: Option<String>,
    /// In how many days it ends.
    days: Option<u64>,
}

impl NewToken {
    fn end(&self) -> Result<Option<u64>, Problem> {
        const DAYS_MAX: u64 = 36_500;
        let bad = |why: &str| Err(Problem::new(Code::BadRequest, why));
        match (&self.expires, self.days) {
            (None, None) => Ok(None),
            (None, Some(days)) if (1..=DAYS_MAX).contains(&days) => {
                Ok(Some(now().seconds() + days * 86_400))
            }
            (None, Some(_)) => bad("days: write 1 to 36500"),
            (Some(at), None) => match parse(at) {
                Some(at) => Ok(Some(at.0 / 1_000_000_000)),
                None => bad(
                    "expires: write a time as in 2027-01-31T00:00:00Z, or with an offset: 2027-01-31T00:00:00+02:00",
                ),
            },
            (Some(_), Some(_)) => bad("write either expires or days"),
        }
    }
}

async fn create_token(
    Extension(gate): TheGate,
    Extension(principal): Extension<Principal>,
    change: AccountChange,
    Wanted(wanted): Wanted<NewToken>,
) -> Answer<TokenView> {
    let run = async {
        let made = new_token(&mut random);
        let edit = Edit::CreateToken {
            id: made.id.clone(),
            expires: wanted.end()?,
            name: wanted.name,
            role: wanted.role,
            hash: made.hash,
            created_by: principal.name,
        };
        let after = gate.store.change(&edit, change.dry_run).await?;
        let mut answer = find(&Accounts::new(after), &made.id)?;
        answer.token = made
            .secret
            .reveal_text()
            .map(str::to_owned)
            .filter(|_| !change.dry_run);
        Ok(answer)
    };
    Answer(run.await)
}

async fn delete_token(
    Extension(gate): TheGate,
    Named(id): Named,
    change: AccountChange,
) -> Answer<Ending> {
    let run = async {
        if id == TOKEN_FILE {
            return Err(stays());
        }
        let token = find(&gate.store.lock(), &id);
        let edit = Edit::DeleteToken { id };
        gate.store.change(&edit, change.dry_run).await?;
        let mut ending = token?.ending();
        ending.changed = !change.dry_run;
        Ok(ending)
    };
    Answer(run.await)
}
