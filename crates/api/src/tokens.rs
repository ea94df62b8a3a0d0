//! `tokens`: what programs send instead of a password.

use crate::answer::{Answer, read};
use crate::auth::Gate;
use crate::outside::{now, random};
use crate::users::{is_dry_run, time};
use accounts::{Accounts, Edit, Principal, Role, Token, new_token};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::routing::get;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::time::parse;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

type TheGate = State<Arc<Gate>>;

pub(super) fn paths<S>(gate: Arc<Gate>) -> Router<S> {
    Router::new()
        .route("/api/v1/tokens", get(tokens).post(create_token))
        .route("/api/v1/tokens/{id}", get(token).delete(delete_token))
        .with_state(gate)
}

/// A token, without what its holder sends.
#[derive(Serialize)]
struct TokenView {
    id: String,
    name: String,
    role: Role,
    created_by: String,
    created: String,
    expires: Option<String>,
    has_ended: bool,
    last_use: Option<String>,
    /// What its holder sends: in the answer to its making only.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

fn view(accounts: &Accounts, token: &Token) -> TokenView {
    TokenView {
        id: token.id.clone(),
        name: token.name.clone(),
        role: token.role,
        created_by: token.created_by.clone(),
        created: time(token.created),
        expires: token.expires.map(time),
        has_ended: token.expires.is_some_and(|end| end <= now().seconds()),
        last_use: accounts.last_use(token).map(time),
        token: None,
    }
}

fn find(accounts: &Accounts, id: &str) -> Result<TokenView, Problem> {
    let mut tokens = accounts.document().tokens.iter();
    let token = tokens.find(|token| token.id == id);
    let token = token.map(|token| view(accounts, token));
    token.ok_or_else(|| Problem::not_found("token", id))
}

async fn tokens(State(gate): TheGate) -> Answer<Vec<TokenView>> {
    let list = || {
        gate.store.whole()?;
        let accounts = gate.store.lock();
        let tokens = accounts.document().tokens.iter();
        Ok(tokens.map(|token| view(&accounts, token)).collect())
    };
    Answer(list())
}

async fn token(State(gate): TheGate, Path(id): Path<String>) -> Answer<TokenView> {
    let found = gate.store.whole();
    Answer(found.and_then(|()| find(&gate.store.lock(), &id)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    name: String,
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
                None => bad("expires: write a time as in 2027-01-31T00:00:00.000Z"),
            },
            (Some(_), Some(_)) => bad("write either expires or days"),
        }
    }
}

async fn create_token(
    State(gate): TheGate,
    Extension(principal): Extension<Principal>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Answer<TokenView> {
    let run = async {
        let dry_run = is_dry_run(query.as_deref())?;
        let wanted: NewToken = read(body).await?;
        let made = new_token(&mut random);
        let edit = Edit::CreateToken {
            id: made.id.clone(),
            expires: wanted.end()?,
            name: wanted.name,
            role: wanted.role,
            hash: made.hash,
            created_by: principal.name,
        };
        let after = gate.store.change(&edit, dry_run).await?;
        let mut answer = find(&Accounts::new(after), &made.id)?;
        answer.token = made
            .secret
            .reveal_text()
            .map(str::to_owned)
            .filter(|_| !dry_run);
        Ok(answer)
    };
    Answer(run.await)
}

async fn delete_token(
    State(gate): TheGate,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<()> {
    let run = async {
        let dry_run = is_dry_run(query.as_deref())?;
        let edit = Edit::DeleteToken { id };
        gate.store.change(&edit, dry_run).await.map(|_| ())
    };
    Answer(run.await)
}
