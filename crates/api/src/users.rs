//! `users`: who may log in.

use crate::answer::{Answer, Switches};
use crate::auth::Gate;
use crate::body::read_quietly;
use accounts::{Document, Edit, PasswordHash, Role, User, password};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::routing::get;
use manifest::problem::Problem;
use manifest::secret::Secret;
use manifest::time::rfc3339;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use units::WallClock;

type TheGate = State<Arc<Gate>>;

pub(super) fn paths<S>(gate: Arc<Gate>) -> Router<S> {
    Router::new()
        .route("/api/v1/users", get(users).post(create_user))
        .route(
            "/api/v1/users/{name}",
            get(user).patch(set_user).delete(delete_user),
        )
        .with_state(gate)
}

/// Seconds since 1970 as RFC 3339 has them.
pub(crate) fn time(seconds: u64) -> String {
    rfc3339(WallClock(seconds.saturating_mul(1_000_000_000)))
}

/// A user, without anything secret.
#[derive(Serialize)]
struct UserView {
    name: String,
    role: Role,
    enabled: bool,
    must_change: bool,
    created: String,
    password_set: String,
}

fn view(user: &User) -> UserView {
    UserView {
        name: user.name.clone(),
        role: user.role,
        enabled: user.enabled,
        must_change: user.must_change,
        created: time(user.created),
        password_set: time(user.password_set),
    }
}

fn find(document: &Document, name: &str) -> Result<UserView, Problem> {
    let user = document.user(name).map(view);
    user.ok_or_else(|| Problem::not_found("user", name))
}

async fn users(State(gate): TheGate) -> Answer<Vec<UserView>> {
    let list = || {
        gate.store.whole()?;
        Ok(gate
            .store
            .lock()
            .document()
            .users
            .iter()
            .map(view)
            .collect())
    };
    Answer(list())
}

async fn user(State(gate): TheGate, Path(name): Path<String>) -> Answer<UserView> {
    let found = gate.store.whole();
    Answer(found.and_then(|()| find(gate.store.lock().document(), &name)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    name: String,
    role: Role,
    password: Secret,
    #[serde(default)]
    must_change: bool,
}

/// The switches of a change; `force` is taken as everywhere, and changes nothing here.
pub(crate) fn is_dry_run(query: Option<&str>) -> Result<bool, Problem> {
    Ok(Switches::read(query, &["dry_run", "force"])?.on("dry_run"))
}

async fn hash(gate: &Gate, name: &str, password: Secret) -> Result<PasswordHash, Problem> {
    password::check(name, &password)?;
    gate.store.hash(password).await
}

async fn create_user(
    State(gate): TheGate,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Answer<UserView> {
    let run = async {
        let dry_run = is_dry_run(query.as_deref())?;
        let fields = "\"name\", \"role\" (viewer, operator, admin), \"password\", and may have \"must_change\"";
        let new: NewUser = read_quietly(&body, fields)?;
        let edit = Edit::CreateUser {
            hash: hash(&gate, &new.name, new.password).await?,
            name: new.name.clone(),
            role: new.role,
            must_change: new.must_change,
        };
        find(&gate.store.change(&edit, dry_run).await?, &new.name)
    };
    Answer(run.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetUser {
    role: Option<Role>,
    enabled: Option<bool>,
    password: Option<Secret>,
    #[serde(default)]
    must_change: bool,
}

async fn set_user(
    State(gate): TheGate,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Answer<UserView> {
    let run = async {
        let dry_run = is_dry_run(query.as_deref())?;
        let fields = "some of \"role\", \"enabled\", \"password\", and with it \"must_change\"";
        let wanted: SetUser = read_quietly(&body, fields)?;
        let password = match wanted.password {
            Some(new) => Some((hash(&gate, &name, new).await?, wanted.must_change)),
            None => None,
        };
        let edit = Edit::SetUser {
            name: name.clone(),
            role: wanted.role,
            enabled: wanted.enabled,
            password,
        };
        find(&gate.store.change(&edit, dry_run).await?, &name)
    };
    Answer(run.await)
}

async fn delete_user(
    State(gate): TheGate,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<()> {
    let run = async {
        let dry_run = is_dry_run(query.as_deref())?;
        let edit = Edit::DeleteUser { name };
        gate.store.change(&edit, dry_run).await.map(|_| ())
    };
    Answer(run.await)
}
