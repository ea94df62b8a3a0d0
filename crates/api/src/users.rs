//! `users`: who may log in.

use crate::account_parts::{AccountChange, LoginChange, SecretBody, SeenChange};
use crate::answer::{Answer, WithTag};
use crate::auth::Gate;
use crate::describe::Paths;
use crate::etag::tag_of;
use crate::listing::{Listed, Listing, rows};
use crate::outside::now;
use crate::parts::Named;
use accounts::{Document, Edit, PasswordHash, Role, UserView, password};
use axum::extract::Extension;
use manifest::code::Code;
use manifest::ending::Ending;
use manifest::problem::Problem;
use manifest::secret::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

type TheGate = Extension<Arc<Gate>>;

/// What may be wrong with a body.
const OF_BODIES: &[Code] = &[
    Code::AlreadyExists,
    Code::InvalidObjects,
    Code::PasswordRule,
];

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get("/api/v1/users", "who may log in", users)
        .but(&[Code::NotFound], |paths| {
            paths.post("/api/v1/users", "makes a user", create_user)
        })
        .get("/api/v1/users/{name}", "one user", user)
        .patch(
            "/api/v1/users/{name}",
            "changes role, password, or whether the user may log in",
            set_user,
        )
        .but(OF_BODIES, |paths| {
            paths.delete("/api/v1/users/{name}", "deletes the user", delete_user)
        })
        .delete(
            "/api/v1/users/{name}/sessions",
            "ends all logins of the user: `user end-sessions`",
            end_sessions,
        )
}

rows!(UserView: "name" in ["name", "role", "enabled", "must_change", "created"], by "";);

fn find(document: &Document, name: &str) -> Result<UserView, Problem> {
    let user = document.user(name).map(UserView::from);
    user.ok_or_else(|| Problem::not_found("user", name))
}

/// That the user is the one whom `change` was meant for.
fn seen(document: &Document, name: &str, change: &SeenChange) -> Result<(), Problem> {
    let found = document.user(name).map(UserView::from);
    let tag = found.as_ref().map(tag_of).unwrap_or_default();
    change.seen.check(&format!("user \"{name}\""), &tag)
}

/// As the audit log has a user; nothing where there is none.
pub(crate) fn shown(gate: &Gate, name: &str) -> serde_json::Value {
    let found = find(gate.store.lock().document(), name).ok();
    serde_json::to_value(found).unwrap_or_default()
}

async fn users(Extension(gate): TheGate, listing: Listing<UserView>) -> Listed<UserView> {
    let list = || {
        gate.store.whole()?;
        Ok(gate
            .store
            .lock()
            .document()
            .users
            .iter()
            .map(UserView::from)
            .collect())
    };
    listing.show(list())
}

async fn user(Extension(gate): TheGate, Named(name): Named) -> WithTag<UserView> {
    let found = gate.store.whole();
    let found = found.and_then(|()| find(gate.store.lock().document(), &name));
    WithTag(Ok(found.map(|user| (Some(tag_of(&user)), user))))
}

/// A user that is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewUser {
    /// By which the user logs in.
    name: String,
    /// What the user may do.
    role: Role,
    /// 12 characters at least; only a hash of it is stored.
    password: Secret,
    /// The user must change it at the first login.
    #[serde(default)]
    must_change: bool,
}

async fn hash(gate: &Gate, name: &str, password: Secret) -> Result<PasswordHash, Problem> {
    password::check(name, &password)?;
    gate.store.hash(password).await
}

async fn create_user(
    Extension(gate): TheGate,
    change: AccountChange,
    body: SecretBody<NewUser>,
) -> Answer<UserView> {
    let run = async {
        let fields = "\"name\", \"role\" (viewer, operator, admin), \"password\", and may have \"must_change\"";
        let new: NewUser = body.read(fields)?;
        let edit = Edit::CreateUser {
            hash: hash(&gate, &new.name, new.password).await?,
            name: new.name.clone(),
            role: new.role,
            must_change: new.must_change,
        };
        find(&gate.store.change(&edit, change.dry_run).await?, &new.name)
    };
    Answer(run.await)
}

/// What is changed of a user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetUser {
    /// What the user may do.
    role: Option<Role>,
    /// May log in.
    enabled: Option<bool>,
    /// 12 characters at least; only a hash of it is stored.
    password: Option<Secret>,
    /// The user must change it at the next login.
    #[serde(default)]
    must_change: bool,
}

async fn set_user(
    Extension(gate): TheGate,
    Named(name): Named,
    change: SeenChange,
    body: SecretBody<SetUser>,
) -> Answer<UserView> {
    let run = async {
        let fields = "some of \"role\", \"enabled\", \"password\", and with it \"must_change\"";
        let wanted: SetUser = body.read(fields)?;
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
        let mut before = None;
        let check = |document: &Document| {
            before = document.user(&name).map(UserView::from);
            seen(document, &name, &change)
        };
        let after = gate.store.change_if(&edit, change.dry_run, check).await?;
        let after = find(&after, &name)?;
        change.note.seen(json!(before), json!(after));
        Ok(after)
    };
    Answer(run.await)
}

async fn delete_user(
    Extension(gate): TheGate,
    Named(name): Named,
    change: SeenChange,
) -> Answer<Ending> {
    let run = async {
        let edit = Edit::DeleteUser { name: name.clone() };
        let mut ending = gate.store.lock().ending_of_user(&name, now());
        let check = |document: &Document| seen(document, &name, &change);
        let done = gate.store.change_if(&edit, change.dry_run, check).await;
        ending.changed = !change.dry_run;
        done.map(|_| ending)
    };
    Answer(run.await)
}

async fn end_sessions(
    Extension(gate): TheGate,
    Named(name): Named,
    change: LoginChange,
) -> Answer<Ending> {
    let run = async {
        gate.store.whole()?;
        let mut accounts = gate.store.lock();
        find(accounts.document(), &name)?;
        let mut ending = accounts.ending_of_logins(&name, now());
        if !change.dry_run {
            accounts.end_sessions_of(&name);
            ending.changed = !ending.hits.is_empty();
        }
        Ok(ending)
    };
    Answer(run.await)
}
