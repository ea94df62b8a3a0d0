//! `login`, `logout`, `me`.

use crate::account_parts::SecretBody;
use crate::answer::Answer;
use crate::auth::{COOKIE, Caller, Gate};
use crate::describe::{Operation, Paths, Reply, Schemas};
use crate::noted::Note;
use crate::outside::{now, random};
use crate::peer::Peer;
use crate::plain_answer::problem_response;
use accounts::{Edit, LoggedIn, Opened, Principal, Role, Source, Via, password};
use axum::extract::{ConnectInfo, Extension};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

type TheGate = Extension<Arc<Gate>>;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .post(
            "/api/v1/login",
            "`user` and `password`: opens a session with a cookie",
            login,
        )
        .or(&OF_LOGIN)
        .post("/api/v1/logout", "ends the session", logout)
        .get("/api/v1/me", "who asks: `name`, `role`, `via`, `csrf`", me)
        .put(
            "/api/v1/me/password",
            "`old` and `new`; all sessions of the user end, and a new one begins",
            set_password,
        )
        .or(&OF_LOGIN)
        .or(&[
            Code::PasswordRule,
            Code::NotFound,
            Code::StateNotSaved,
            Code::Stopping,
        ])
}

/// What a password that is checked may be refused for.
const OF_LOGIN: [Code; 3] = [
    Code::LoginFailed,
    Code::LoginThrottled,
    Code::AccountsDamaged,
];

/// An answer that opens or ends a session of a browser.
struct WithCookie<T>(Response, PhantomData<T>);

impl<T> WithCookie<T> {
    fn new(response: Response) -> Self {
        Self(response, PhantomData)
    }
}

impl<T> IntoResponse for WithCookie<T> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<T: JsonSchema> Reply for WithCookie<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Answer::<T>::describe(operation, schemas);
        operation.heads(200, "Set-Cookie", "The session, or its end.");
    }
}

/// Who logs in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The user's name.
    user: String,
    /// It is nowhere stored.
    password: Secret,
}

/// The answer to a login.
#[derive(Serialize, JsonSchema)]
struct Entered {
    /// Who logged in.
    user: String,
    /// What that user may do.
    role: Role,
    /// What changes of this session send as `X-Causeway-CSRF`.
    csrf: String,
    /// The password must be changed before anything else.
    must_change: bool,
}

/// Why a login failed, and how long to wait before the next one.
struct Refused(Problem, Option<Duration>);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem, None)
    }
}

impl From<Duration> for Refused {
    fn from(wait: Duration) -> Self {
        let seconds = wait.as_secs() + 1;
        let detail = format!("too many logins failed; try again in {seconds} s");
        Self(Problem::new(Code::LoginThrottled, detail), Some(wait))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = problem_response(&self.0);
        if let Some(wait) = self.1 {
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

/// The cookie: no script reads it, no foreign page sends it, and over TLS only TLS carries it.
fn cookie(value: &Secret, is_tls: bool, life: Duration) -> Option<HeaderValue> {
    let (value, seconds) = (value.reveal_text()?, life.as_secs());
    let secure = if is_tls { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn entered(principal: &Principal, must_change: bool, opened: &Opened, is_tls: bool) -> Response {
    let document = Entered {
        user: principal.name.clone(),
        role: principal.role,
        csrf: opened.csrf.reveal_text().unwrap_or_default().to_owned(),
        must_change,
    };
    let mut response = Answer(Ok(document)).into_response();
    if let Some(cookie) = cookie(&opened.cookie, is_tls, opened.life) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Whether the body is announced as JSON: what a form of a foreign page cannot do.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "a login has Content-Type: application/json";
    Err(Problem::new(Code::BadRequest, detail))
}

async fn login(
    Extension(gate): TheGate,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(before): Extension<Caller>,
    headers: HeaderMap,
    body: SecretBody<Login>,
) -> WithCookie<Entered> {
    let run = async {
        is_json(&headers)?;
        let Login { user, password } = body.read("\"user\" and \"password\"")?;
        let done = verify(&gate, &user, password, peer.source()).await?;
        // The session that the browser had ends: what knew its cookie is not logged in by this.
        if let Some((cookie, _)) = &before.session {
            gate.store.lock().logout(cookie);
        }
        tracing::info!(user = done.principal.name, "logged in");
        Ok::<_, Refused>(done)
    };
    WithCookie::new(match run.await {
        Ok(done) => entered(&done.principal, done.must_change, &done.opened, peer.is_tls),
        Err(refused) => refused.into_response(),
    })
}

/// A whole login: counted, verified, and a new session opened.
async fn verify(
    gate: &Gate,
    user: &str,
    password: Secret,
    source: Source,
) -> Result<LoggedIn, Refused> {
    gate.store.whole()?;
    let attempt = gate.store.lock().begin_login(user, source, now())?;
    let is_right = gate.store.verify(password, attempt.hash.clone()).await?;
    let mut accounts = gate.store.lock();
    let done = accounts.finish_login(&attempt, is_right, now(), &mut random);
    if done.is_err() {
        tracing::warn!(from = ?source, "a login failed");
    }
    Ok(done?)
}

async fn logout(
    Extension(gate): TheGate,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(caller): Extension<Caller>,
    Extension(note): Extension<Note>,
) -> WithCookie<()> {
    let was = json!({ "logged_in": caller.session.is_some() });
    note.seen(was, json!({ "logged_in": false }));
    if let Some((cookie, _)) = &caller.session {
        gate.store.lock().logout(cookie);
    }
    let mut response = Answer(Ok(())).into_response();
    if let Some(gone) = cookie(&Secret::default(), peer.is_tls, Duration::ZERO) {
        response.headers_mut().insert(header::SET_COOKIE, gone);
    }
    WithCookie::new(response)
}

/// Who asks.
#[derive(Serialize, JsonSchema)]
struct Me {
    /// The name of the user or the token.
    name: String,
    /// What they may do.
    role: Role,
    /// How they proved who they are.
    via: Via,
    /// What changes of this session send as `X-Causeway-CSRF`.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf: Option<String>,
    /// The password must be changed before anything else.
    must_change: bool,
}

async fn me(Extension(caller): Extension<Caller>) -> Answer<Me> {
    let csrf = caller.session.as_ref();
    let csrf = csrf
        .and_then(|(_, csrf)| csrf.reveal_text())
        .map(str::to_owned);
    let Principal { name, role, via } = caller.principal;
    let must_change = caller.must_change;
    Answer(Ok(Me {
        name,
        role,
        via,
        csrf,
        must_change,
    }))
}

/// A change of one's own password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    /// The one that is in force.
    old: Secret,
    /// The one that is wanted.
    new: Secret,
}

/// All sessions of the user end, and a new one begins.
async fn set_password(
    Extension(gate): TheGate,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(caller): Extension<Caller>,
    body: SecretBody<NewPassword>,
) -> WithCookie<Entered> {
    let name = caller.principal.name.clone();
    let run = async {
        if caller.session.is_none() {
            let detail = "only a user who has logged in has a password";
            return Err(Problem::new(Code::BadRequest, detail).into());
        }
        let NewPassword { old, new } = body.read("\"old\" and \"new\"")?;
        password::check(&name, &new)?;
        if old == new {
            let detail = "the new password is the old one";
            return Err(Problem::new(Code::PasswordRule, detail).into());
        }
        // Somebody who found an open page guesses as slowly as anybody else.
        verify(&gate, &name, old, peer.source()).await?;
        let change = Edit::SetUser {
            name: name.clone(),
            role: None,
            enabled: None,
            password: Some((gate.store.hash(new).await?, false)),
        };
        gate.store.change(&change, false).await?;
        let opened = gate.store.lock().open_session(&name, now(), &mut random);
        opened.ok_or_else(|| Refused::from(Problem::not_found("user", &name)))
    };
    WithCookie::new(match run.await {
        Ok(opened) => entered(&caller.principal, false, &opened, peer.is_tls),
        Err(refused) => Refused::into_response(refused),
    })
}
