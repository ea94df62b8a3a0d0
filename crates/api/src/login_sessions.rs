//! `me/sessions`: where somebody is logged in, and how all the others end.

use crate::answer::Answer;
use crate::auth::{Caller, Gate};
use crate::describe::Paths;
use crate::listing::{Listed, Listing, rows};
use crate::outside::now;
use crate::parts::DryRun;
use accounts::OpenSession;
use accounts::time;
use axum::extract::Extension;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/me/sessions",
            "where one is logged in with a password",
            own_sessions,
        )
        .delete(
            "/api/v1/me/sessions",
            "ends all of one's sessions but the one that asks",
            end_own_sessions,
        )
}

/// A session of a browser.
#[derive(Serialize, JsonSchema)]
struct LoginSession {
    /// When somebody logged in (RFC 3339).
    began: String,
    /// When it was used last (RFC 3339).
    used: String,
    /// It is the one that asks.
    is_this: bool,
}

rows!(LoginSession: "" in ["began", "used", "is_this"], by "-began";);

/// How many ended.
#[derive(Serialize, JsonSchema)]
struct Ended {
    /// So many sessions ended, or would.
    ended: usize,
}

async fn own_sessions(
    Extension(gate): Extension<Arc<Gate>>,
    Extension(caller): Extension<Caller>,
    listing: Listing<LoginSession>,
) -> Listed<LoginSession> {
    let Some((cookie, _)) = &caller.session else {
        return listing.show(Ok(Vec::new()));
    };
    let now = now();
    let wall = |at: units::Now| {
        let ago = now.steady.since(at).as_secs();
        time(now.seconds().saturating_sub(ago))
    };
    let all = gate.store.lock().sessions_with(cookie, now);
    let view = |it: OpenSession| LoginSession {
        began: wall(it.began),
        used: wall(it.used),
        is_this: it.is_this,
    };
    listing.show(Ok(all.into_iter().map(view).collect()))
}

async fn end_own_sessions(
    Extension(gate): Extension<Arc<Gate>>,
    Extension(caller): Extension<Caller>,
    DryRun(dry_run, note): DryRun,
) -> Answer<Ended> {
    let Some((cookie, _)) = &caller.session else {
        note.seen(json!({ "others": 0 }), json!({ "others": 0 }));
        return Answer(Ok(Ended { ended: 0 }));
    };
    let mut accounts = gate.store.lock();
    let ended = if dry_run {
        let all = accounts.sessions_with(cookie, now());
        all.iter().filter(|it| !it.is_this).count()
    } else {
        accounts.end_other_sessions(cookie)
    };
    note.seen(json!({ "others": ended }), json!({ "others": 0 }));
    Answer(Ok(Ended { ended }))
}
