//! The one place where changes get into the audit log: around everything that changes something,
//! whichever path, socket or command line it comes by.
//!
//! **Contract.** A change that was asked for is in the log with its result, also where its client
//! has gone away, and is answered after it is there (or [`PATIENCE`] later, where the log's disk
//! does not answer, which the daemon's log says). What only reports what would be done is none: the
//! handler says that ([`Note::dry`]), and nothing that a client writes stands for it.
//! Nothing secret gets in: of what was asked for those members are kept that the document of the
//! API knows and that are none ([`Known`]), of a request that was not understood nothing at all,
//! and [`events::without_secrets`] removes by name what is left. What is answered before it is done
//! has two entries, which one job and one identifier join: that it began, and how it ended.

mod entry;
mod interrupted;
mod known;
mod subject;

use crate::access::reads;
use crate::auth::{BadToken, Caller, Gate, TurnedAway};
use crate::noted::{Ending, Note};
use crate::outside::random;
use crate::peer::{Peer, PeerAddress};
use crate::records::Records;
use accounts::{Role, Via};
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use controller::Handle;
use entry::{Few, Seldom, error_code, objects, of_settings, one_of, several, short, who_tried};
use events::{Entry, Object};
pub(crate) use interrupted::enter_interrupted;
use known::Known;
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
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
    /// The document of the API.
    document: &'static Value,
    /// Refused logins of the last minute.
    refused: Arc<Mutex<Few>>,
    /// Tokens that are none, by where they come from.
    bad_tokens: Arc<Mutex<Seldom>>,
}

impl Audit {
    pub(crate) fn new(
        document: &'static Value,
        records: Records,
        gate: Arc<Gate>,
        handle: Handle,
    ) -> Self {
        Self {
            document,
            records,
            gate,
            handle,
            refused: Arc::default(),
            bad_tokens: Arc::default(),
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
        crate::plain_answer::problem_response(&Problem::new(Code::Internal, detail))
    })
}

/// Enters changes that somebody who is known was not allowed to make; stands around who decides.
pub(crate) async fn check_refused(
    State(audit): State<Audit>,
    request: Request,
    next: Next,
) -> Response {
    if reads(request.method()) {
        let mut response = next.run(request).await;
        if let Some(bad) = response.extensions_mut().remove() {
            audit.enter_bad_token(bad).await;
        }
        return response;
    }
    let (parts, body) = request.into_parts();
    let asked = parts.clone();
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(bad) = response.extensions_mut().remove() {
        audit.enter_bad_token(bad).await;
    }
    let turned_away = response.extensions_mut().remove::<TurnedAway>();
    if let Some(TurnedAway(caller, problem)) = turned_away {
        let mut entry = head(audit.document, &asked, &caller);
        entry.status = problem.status;
        entry.code = Some(problem.code.to_string());
        let target = Target::of(
            &asked.method,
            asked.uri.path(),
            &Value::Null,
            &caller.principal.name,
        );
        entry.object = target.object();
        audit.enter(entry).await;
    }
    response
}

/// Who asks for what, from where.
fn head(document: &Value, request: &Parts, caller: &Caller) -> Entry {
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
        path: known(document, request).path(&request.uri),
        object: None,
        before: Value::Null,
        after: Value::Null,
        objects: Vec::new(),
        asked: Value::Null,
        status: 0,
        code: None,
        job: None,
        bad_token: false,
        request_id: units::hex(&id),
    }
}

/// What the document of the API knows of a request.
fn known<'a>(document: &'a Value, request: &Parts) -> Known<'a> {
    let path = request.extensions.get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    Known::of(document, request.method.as_str(), path)
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
        let (mut parts, body) = request.into_parts();
        // It is in memory already, and bounded.
        let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let caller = parts.extensions.get::<Caller>().cloned();
        let Some(caller) = caller else {
            return next
                .run(Request::from_parts(parts, Body::from(bytes)))
                .await;
        };
        let note = Note::default();
        parts.extensions.insert(note.clone());
        let target = Target::of(
            &parts.method,
            parts.uri.path(),
            &document,
            &caller.principal.name,
        );
        let mut entry = head(self.document, &parts, &caller);
        let before = target.see(&self.handle, &self.gate).await;
        let asked = known(self.document, &parts).asked(document);
        let is_login = parts.uri.path() == "/api/v1/login";
        let response = next
            .run(Request::from_parts(parts, Body::from(bytes)))
            .await;
        let noted = note.take();
        if noted.is_dry || response.headers().contains_key(REPLAYED) {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let Ok(bytes) = to_bytes(body, usize::MAX).await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        entry.status = parts.status.as_u16();
        let mut ending = None;
        if parts.status == StatusCode::ACCEPTED {
            // Nothing has changed yet.
            // Of several objects the one that takes long.
            let of_job = || Some(Object::new("lun", answer["object"].as_str()?));
            (entry.object, entry.before) = (target.object().or_else(of_job), before.clone());
            entry.after = json!({ "job": answer["id"] });
            entry.job = answer["id"].as_u64();
            ending = noted.ending.map(|ending| (ending, before));
        } else if parts.status.is_success() {
            self.fill_in(&mut entry, &target, (before, noted.seen, &answer))
                .await;
        } else {
            // Nothing was changed.
            entry.code = error_code(&answer);
            entry.object = target.object();
        }
        if parts.status != StatusCode::BAD_REQUEST {
            // Else nobody knows what was meant by it.
            entry.asked = short(asked);
        }
        if let Ok(id) = HeaderValue::from_str(&entry.request_id) {
            parts.headers.insert(REQUEST_ID, id);
        }
        if is_login {
            self.enter_login(entry).await;
        } else if let Some(ending) = ending {
            self.enter(entry.clone()).await;
            let audit = self.clone();
            tokio::spawn(async move { audit.enter_end(entry, &target, ending).await });
        } else {
            self.enter(entry).await;
        }
        Response::from_parts(parts, Body::from(bytes))
    }

    /// Work that was `begun` comes to its end, which is entered as its answer would have been.
    async fn enter_end(&self, begun: Entry, target: &Target, (ending, before): (Ending, Value)) {
        let ended = ending.await;
        let mut entry = Entry {
            before: Value::Null,
            after: Value::Null,
            ..begun
        };
        match ended.answer {
            Ok(answer) => {
                entry.status = StatusCode::OK.as_u16();
                self.fill_in(&mut entry, target, (before, ended.seen, &answer))
                    .await;
            }
            Err(problem) => {
                entry.status = problem.status;
                entry.code = Some(problem.code.to_string());
            }
        }
        self.enter(entry).await;
    }

    /// What a change that was made was about, and what was there before and after it; `seen`: what
    /// the handler says of that, which is better than what there was a while before it.
    async fn fill_in(
        &self,
        entry: &mut Entry,
        target: &Target,
        (before, seen, answer): (Value, Option<[Value; 2]>, &Value),
    ) {
        entry.objects = match (&seen, target) {
            (Some(sets), Target::Objects) => objects(sets),
            (None | Some(_), _) => Vec::new(),
        };
        let target = target.after(answer);
        entry.object = entry.objects.first().cloned().or_else(|| target.object());
        if entry.objects.len() < 2 {
            entry.objects.clear();
        }
        [entry.before, entry.after] = match (seen, &target) {
            (Some(sets), Target::One(subject)) => one_of(sets, subject),
            (Some(sets), Target::Objects) => several(answer, sets),
            (None, Target::Settings) => of_settings(answer),
            (None, Target::Objects) => several(answer, [Value::Null, Value::Null]),
            (Some(seen), _) => seen,
            (None, Target::Other(..)) => [before, answer.clone()],
            (None, _) => [before, target.see(&self.handle, &self.gate).await],
        }
        .map(short);
    }

    /// Strangers make as many of these as they like: what they do must not push out the rest.
    async fn enter_login(&self, mut entry: Entry) {
        let is_known = |name: &str| self.gate.store.lock().document().user(name).is_some();
        entry.who = who_tried(&entry.asked, is_known);
        entry.asked = Value::Null;
        entry.object = is_known(&entry.who).then(|| Object::new("user", &entry.who));
        if entry.status >= 400 {
            self.gate.bad_proofs.logins.fetch_add(1, Relaxed);
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

    /// Something was sent as a token that is none. A program whose token has ended goes on sending
    /// it: of these one an hour is entered of each address.
    async fn enter_bad_token(&self, BadToken(asked, once): BadToken) {
        let who = once.as_ref().map_or("(unknown)", |(_, name)| name);
        let caller = Caller::new(who, Role::Viewer, Via::Token);
        let mut entry = head(self.document, &asked, &caller);
        let now = crate::outside::now().steady;
        let place = entry.from.clone().unwrap_or_default();
        let taken = {
            let seldom = self.bad_tokens.lock();
            let mut seldom = seldom.unwrap_or_else(PoisonError::into_inner);
            seldom.take(&format!("{place} {who}"), now)
        };
        let Some(left_out) = taken else { return };
        if left_out > 0 {
            entry.asked = json!({ "left_out_before": left_out });
        }
        let problem = Problem::new(Code::TokenNeeded, "");
        (entry.status, entry.bad_token) = (problem.status, true);
        entry.code = Some(problem.code.to_string());
        entry.object = once.map(|(_, name)| Object::new("token", &name));
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

#[cfg(test)]
pub(crate) mod test;
