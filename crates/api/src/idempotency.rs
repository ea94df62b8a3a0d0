//! `Idempotency-Key` of POST requests: what stands around [`Repeated`].

use crate::edit::APPLIED;
use crate::plain_answer::{BODY_BYTES_MAX, problem_response};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_parts::repeated::{Digest, KEY_BYTES_MAX, KEY_HEADER, Repeated, Sent, Verdict, is_secret};
use manifest::code::Code;
use manifest::problem::Problem;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// An answer that was given before has this one.
const REPLAYED: &str = "idempotency-replayed";

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What an answer says beside its body, also when it comes again.
const KEPT: [HeaderName; 4] = [
    header::CONTENT_TYPE,
    header::LOCATION,
    header::ETAG,
    HeaderName::from_static(APPLIED),
];

/// The keys that all addresses of a server know.
pub(super) struct Keys {
    known: Mutex<Repeated>,
    since: Instant,
}

impl Keys {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            known: Mutex::default(),
            since: Instant::now(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Repeated> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn value(headers: &HeaderMap, name: header::HeaderName) -> &[u8] {
    headers.get(name).map_or(&[], |value| value.as_bytes())
}

/// Answers a request that came before as it was answered then.
pub(super) async fn check(State(keys): State<Arc<Keys>>, request: Request, next: Next) -> Response {
    let key = request.headers().get(KEY_HEADER).cloned();
    match key {
        Some(key) if *request.method() == Method::POST && !is_secret(request.uri().path()) => {
            let done = keyed(keys, &key, request, next).await;
            done.unwrap_or_else(|problem| problem_response(&problem))
        }
        Some(_) | None => next.run(request).await,
    }
}

async fn keyed(
    keys: Arc<Keys>,
    key: &HeaderValue,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let wrong = |why: String| Problem::new(Code::BadRequest, why);
    let key = key.to_str().unwrap_or_default().to_owned();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(wrong(format!(
            "{KEY_HEADER}: write 1 to {KEY_BYTES_MAX} characters of ASCII"
        )));
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await;
    let body = body.map_err(|error| wrong(format!("the body: {error}")))?;
    let headers = &head.headers;
    let who = digest(&[
        value(headers, header::AUTHORIZATION),
        value(headers, header::COOKIE),
    ]);
    let asked = digest(&[
        head.uri.to_string().as_bytes(),
        value(headers, header::IF_MATCH),
        value(headers, PREFER),
        &body,
    ]);
    let arrived = keys.known().arrive(who, &key, asked, keys.since.elapsed());
    match arrived {
        Verdict::New => {}
        Verdict::Again(sent) => return Ok(again(sent)),
        Verdict::UnderWay => return Err(Problem::new(Code::KeyUnderWay, key)),
        Verdict::Another => return Err(Problem::new(Code::KeyReused, key)),
    }
    let request = Request::from_parts(head, Body::from(body));
    let (shared, its_key) = (Arc::clone(&keys), key.clone());
    // A client that goes away comes back with the key for the answer.
    let answer = tokio::spawn(async move {
        let (head, body) = next.run(request).await.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let headers = head.headers.iter().filter(|(name, _)| KEPT.contains(name));
        let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
        let sent = Sent {
            status: head.status.as_u16(),
            headers: headers.collect(),
            body: body.to_vec(),
        };
        // What the daemon could not do now it may be able to do later.
        let sent = (!head.status.is_server_error()).then_some(sent);
        shared.known().answered(who, &its_key, sent);
        Response::from_parts(head, Body::from(body))
    });
    answer.await.map_err(|_| {
        keys.known().answered(who, &key, None);
        Problem::new(
            Code::Internal,
            "the request was cut off by a fault inside the daemon",
        )
    })
}

fn again(sent: Sent) -> Response {
    let status = StatusCode::from_u16(sent.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, sent.body).into_response();
    let headers = response.headers_mut();
    headers.extend(sent.headers);
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
