//! The one place where changes get into the audit log: around everything that changes something,
//! whichever path, socket or command line it comes by.
//!
//! **Contract.** A change that was asked for is in the log with its result, also where its client
//! has gone away, and is answered after it is there (or [`PATIENCE`] later, where the log's disk
//! does not answer, which the daemon's log says). What only reports what would be done is none.
//! Nothing secret gets in: of requests about accounts only members that are none are kept, and of
//! all others [`events::without_secrets`] removes what is one.

mod entry;
mod subject;

use crate::access::reads;
use crate::auth::{Caller, Gate, TurnedAway};
use crate::outside::random;
use crate::peer::{Peer, PeerAddress};
use crate::records::Records;
use accounts::Via;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use controller::Handle;
use entry::{Few, asked, error_code, of_settings, path, result, several, who_tried};
use events::Entry;
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subject::Target;

/// How long an answer waits for its entry.
const PATIENCE: Duration = Duration::from_secs(2);

/// By what an answer and its entry are found together.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An answer that was given before has this header.
const REPLAYED: &str = "idempotency-replayed";

/// What is needed to write entries.
#[derive(Clone)]
pub(crate) struct Audit {
    records: Records,
    gate: Arc<Gate>,
    handle: Handle,
    /// Refused logins of the last minute.
    refused: Arc<Mutex<Few>>,
}

impl Audit {
    pub(crate) fn new(records: Records, gate: Arc<Gate>, handle: Handle) -> Self {
        Self {
            records,
            gate,
            handle,
            refused: Arc::default(),
        }
    }
}

/// Carries out a request, and enters it where it changes something.
pub(crate) async fn check(State(audit): State<Audit>, request: Request, next: Next) -> Response {
    if reads(request.method()) || !request.uri().path().starts_with("/api/") {
        return next.run(request).await;
    }
    // A client that goes away has changed something all the same.
    let done = tokio::spawn(async move { audit.carry_out(request, next).await });
    done.await.unwrap_or_else(|_| {
        let detail = "the request was cut off by a fault inside the daemon";
        crate::answer::problem_response(&Problem::new(Code::Internal, detail))
    })
}

/// Enters changes that somebody who is known was not allowed to make; stands around who decides.
pub(crate) async fn check_refused(
    State(audit): State<Audit>,
    request: Request,
    next: Next,
) -> Response {
    if reads(request.method()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let asked = parts.clone();
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let turned_away = response.extensions_mut().remove::<TurnedAway>();
    if let Some(TurnedAway(caller, problem)) = turned_away {
        let mut entry = head(&asked, &caller);
        entry.status = problem.status;
        entry.code = Some(problem.code.to_string());
        let target = Target::of(&asked.method, asked.uri.path(), &Value::Null);
        entry.object = target.object();
        audit.enter(entry).await;
    }
    response
}

/// Who asks for what, from where.
fn head(request: &Parts, caller: &Caller) -> Entry {
    let peer = request.extensions.get::<ConnectInfo<Peer>>();
    let from = peer.and_then(|ConnectInfo(peer)| match &peer.from {
        PeerAddress::Network { peer, .. } => Some(peer.ip().to_canonical().to_string()),
        PeerAddress::Local { .. } => None,
    });
    let mut id = [0; 8];
    random(&mut id);
    Entry {
        who: caller.principal.name.clone(),
        via: via(caller.principal.via).to_owned(),
        from,
        method: request.method.to_string(),
        path: path(&request.uri),
        object: None,
        before: Value::Null,
        after: Value::Null,
        asked: Value::Null,
        status: 0,
        code: None,
        request_id: units::hex(&id),
    }
}

fn via(via: Via) -> &'static str {
    match via {
        Via::Socket => "socket",
        Via::Session => "session",
        Via::Token => "token",
        Via::TokenFile => "token_file",
        Via::Loopback => "loopback",
        Via::Nobody => "nobody",
    }
}

impl Audit {
    async fn carry_out(&self, request: Request, next: Next) -> Response {
        let (parts, body) = request.into_parts();
        // It is in memory already, and bounded.
        let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let caller = parts.extensions.get::<Caller>().cloned();
        let (Some(caller), false) = (caller, is_dry(&parts, &document)) else {
            return next
                .run(Request::from_parts(parts, Body::from(bytes)))
                .await;
        };
        let target = Target::of(&parts.method, parts.uri.path(), &document);
        let mut entry = head(&parts, &caller);
        entry.before = target.see(&self.handle, &self.gate).await;
        let all_before = target.see_all(&self.handle).await;
        let renamed = parts.uri.path().ends_with("/rename");
        let new_name = renamed.then(|| document["to"].as_str().unwrap_or_default().to_owned());
        entry.asked = asked(parts.uri.path(), document);
        let is_login = parts.uri.path() == "/api/v1/login";
        let response = next
            .run(Request::from_parts(parts, Body::from(bytes)))
            .await;
        if response.headers().contains_key(REPLAYED) {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let Ok(bytes) = to_bytes(body, usize::MAX).await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        entry.status = parts.status.as_u16();
        if parts.status.is_success() {
            let target = target.after(new_name, &answer);
            entry.object = target.object();
            if target == Target::Settings {
                [entry.before, entry.after] = of_settings(&answer);
            } else if target.is_many() {
                let all_after = target.see_all(&self.handle).await;
                [entry.before, entry.after] = several(&answer, [&all_before, &all_after]);
            } else {
                entry.after = result(target.see(&self.handle, &self.gate).await);
            }
            if parts.status == StatusCode::ACCEPTED {
                // Nothing has changed yet: the job's end is an event.
                entry.after = json!({ "job": answer["id"] });
            }
        } else {
            entry.code = error_code(&answer);
            entry.object = target.object();
            // Nothing was changed.
            entry.before = Value::Null;
        }
        if let Ok(id) = HeaderValue::from_str(&entry.request_id) {
            parts.headers.insert(REQUEST_ID, id);
        }
        if is_login {
            self.enter_login(entry).await;
        } else {
            self.enter(entry).await;
        }
        Response::from_parts(parts, Body::from(bytes))
    }

    /// Strangers make as many of these as they like: what they do must not push out the rest.
    async fn enter_login(&self, mut entry: Entry) {
        let is_known = |name: &str| self.gate.store.lock().document().user(name).is_some();
        entry.who = who_tried(&entry.asked, is_known);
        entry.asked = Value::Null;
        if entry.status >= 400 {
            let now = crate::outside::now().steady;
            let mut few = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            match few.take(now) {
                Some(0) => {}
                Some(left_out) => entry.asked = json!({ "left_out_before": left_out }),
                None => return,
            }
        }
        self.enter(entry).await;
    }

    async fn enter(&self, entry: Entry) {
        let about = format!("{} {} by \"{}\"", entry.method, entry.path, entry.who);
        let written = self.records.events().audit(entry);
        let failed = match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(())) => return,
            Ok(Err(failed)) => failed.to_string(),
            Err(_) => format!("its disk has not answered for {} s", PATIENCE.as_secs()),
        };
        tracing::error!("the audit log lacks {about}: {failed}");
    }
}

/// It only asks what would be done.
fn is_dry(request: &Parts, document: &Value) -> bool {
    let query = request.uri.query().unwrap_or_default();
    let asks = query.split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
        name == "dry_run" && matches!(value, "true" | "1")
    });
    asks || document["dry_run"] == true
}

#[cfg(test)]
pub(crate) mod test;
