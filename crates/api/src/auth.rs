//! Who asks, and whether they may.
//!
//! ```text
//!   Host, Origin -> who (socket, token, cookie, loopback) -> what it needs -> CSRF -> the body
//! ```

use crate::access::{Need, need, reads};
use crate::body;
use crate::describe::PROBES;
use crate::origin;
use crate::outside::now;
use crate::peer::{Peer, PeerAddress};
use crate::plain_answer::problem_response;
use crate::store::Store;
use crate::tls::Certificate;
use accounts::{Principal, Role, Via};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use env::{CoreHandle, durable};
use manifest::code::Code;
use manifest::config::Config;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::watch;

/// The file in the state directory that holds the token.
pub const TOKEN_FILE: &str = "api.token";

/// The cookie of a session.
pub(crate) const COOKIE: &str = "causeway-session";

/// What changes of a session with a cookie bring along.
const CSRF_HEADER: &str = "x-causeway-csrf";

/// What decides who may do what.
pub(crate) struct Gate {
    /// The commit that the program was built from; empty: nobody said it.
    pub(crate) commit: &'static str,
    pub(crate) store: Store,
    /// What https is served with, where it is served.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// The token of [`TOKEN_FILE`].
    pub(crate) token: Secret,
    /// When that was made, in seconds since 1970, where it is known.
    pub(crate) token_made: Option<u64>,
    /// The settings, with the live ones as they are by now.
    pub(crate) live: watch::Receiver<Arc<Config>>,
    /// Since the start.
    pub(crate) bad_proofs: BadProofs,
    /// Names by which the node may be asked for, in lower case.
    pub(crate) names: Vec<String>,
    /// How long a body may take.
    pub(crate) body_time: Duration,
    /// How often a stream checks whether its client may still read.
    pub(crate) heartbeat: Duration,
}

/// Whoever a request is from, beside its [`Principal`].
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// The cookie of the session, and what its changes bring along.
    pub(crate) session: Option<(Secret, Secret)>,
    /// They have to change the password first.
    pub(crate) must_change: bool,
}

impl Caller {
    pub(crate) fn new(name: &str, role: Role, via: Via) -> Self {
        let name = name.to_owned();
        Self {
            principal: Principal { name, role, via },
            session: None,
            must_change: false,
        }
    }
}

/// Reads the token, and makes it where there is none.
///
/// # Errors
/// The file can neither be read nor made.
pub async fn load_token(core: &CoreHandle, state_dir: &Path) -> Result<Secret, Problem> {
    let (files, path) = (core.files(), state_dir.join(TOKEN_FILE));
    let failed = |error: &io::Error| {
        Problem::new(
            Code::ConfigEnvironment,
            format!("{}: {error}", path.display()),
        )
    };
    match durable::read_file(&*files, &path, 4096).await {
        Ok(bytes) => {
            let token = Secret::from_file(bytes);
            if token.len() >= 32 {
                return Ok(token);
            }
            let why = io::Error::other("too short for a token; remove the file to get a new one");
            Err(failed(&why))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0_u8; 32];
            core.fill_random(&mut bytes);
            let mut text = units::hex(&bytes);
            text.push('\n');
            let written = durable::replace_file(&*files, &path, text.as_bytes()).await;
            written.map_err(|error| failed(&error))?;
            Ok(Secret::from_file(text.into_bytes()))
        }
        Err(error) => Err(failed(&error)),
    }
}

/// Lets through who may; the request gets its [`Principal`].
pub(super) async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match gate.admit(&parts) {
        Ok(caller) => caller,
        Err(NotAdmitted { why, problem }) => {
            let mut response = problem_response(&problem);
            match why {
                Why::Stranger => {}
                Why::Known(caller) => {
                    let turned_away = TurnedAway(*caller, *problem);
                    response.extensions_mut().insert(turned_away);
                }
                Why::BadToken(once) => {
                    gate.bad_proofs.tokens.fetch_add(1, Relaxed);
                    let bad = BadToken(Arc::new(parts), once);
                    response.extensions_mut().insert(bad);
                }
            }
            return response;
        }
    };
    let most = body::most(parts.uri.path(), caller.principal.via);
    parts.extensions.insert(caller.principal.clone());
    parts.extensions.insert(caller);
    match body::take(&parts, body, most, gate.body_time).await {
        Ok(body) => next.run(Request::from_parts(parts, body)).await,
        Err(problem) => problem_response(&problem),
    }
}

/// An answer to somebody who is known and may not do it has this.
#[derive(Clone)]
pub(crate) struct TurnedAway(pub(crate) Caller, pub(crate) Problem);

/// An answer to somebody whose token is none has this: the request, and, of a token that has ended,
/// its identifier and name.
#[derive(Clone)]
pub(crate) struct BadToken(pub(crate) Arc<Parts>, pub(crate) Option<(String, String)>);

/// How often something was sent as a proof that is none.
#[derive(Default)]
pub(crate) struct BadProofs {
    /// Names with passwords.
    pub(crate) logins: AtomicU64,
    pub(crate) tokens: AtomicU64,
}

/// Somebody is not let through.
pub(crate) struct NotAdmitted {
    why: Why,
    problem: Box<Problem>,
}

/// Who is not let through.
enum Why {
    Stranger,
    /// They are known, and may not do it.
    Known(Box<Caller>),
    /// As in [`BadToken`].
    BadToken(Option<(String, String)>),
}

impl From<Problem> for NotAdmitted {
    fn from(problem: Problem) -> Self {
        let (why, problem) = (Why::Stranger, Box::new(problem));
        Self { why, problem }
    }
}

impl Gate {
    /// Over loopback addresses, too, reading takes a login or a token.
    fn for_reads(&self) -> bool {
        self.live.borrow().api_settings.token_for_reads
    }

    /// Who asks, where they may.
    pub(crate) fn admit(&self, request: &Parts) -> Result<Caller, NotAdmitted> {
        let peer = request.extensions.get::<ConnectInfo<Peer>>();
        let Some(ConnectInfo(peer)) = peer else {
            let detail = "a request that came through no connection";
            return Err(Problem::new(Code::Internal, detail).into());
        };
        if matches!(peer.from, PeerAddress::Network { .. }) {
            let live = self.live.borrow();
            let more = &live.api_settings.names;
            origin::check(request, |name| {
                [&self.names, more]
                    .into_iter()
                    .flatten()
                    .any(|it| it == name)
            })?;
        }
        if reads(&request.method) && PROBES.contains(&request.uri.path()) {
            // A proof that has ended does not make the node one that is down.
            return Ok(Caller::new("", Role::Viewer, Via::Nobody));
        }
        let caller = self.identify(&request.headers, peer)?;
        let needed = need(&request.method, request.uri.path());
        let reads = reads(&request.method);
        let caller = match (caller, needed) {
            (Some(caller), _) => caller,
            (None, Need::Nothing) => return Ok(Caller::new("", Role::Viewer, Via::Nobody)),
            (None, Need::Role { free: true, .. }) if peer.is_loopback() && !self.for_reads() => {
                return Ok(Caller::new("", Role::Viewer, Via::Loopback));
            }
            (None, _) => {
                let (method, path) = (&request.method, request.uri.path());
                let detail = format!("{method} {path} without a login or a token");
                return Err(Problem::new(Code::TokenNeeded, detail).into());
            }
        };
        let allowed = match needed {
            Need::Role { least, .. } => may(&caller, least),
            Need::Nothing | Need::Anybody => Ok(()),
        };
        let allowed = allowed.and_then(|()| match &caller.session {
            Some((_, csrf)) if !reads && needed != Need::Nothing => {
                is_meant(&request.headers, csrf)
            }
            Some(_) | None => Ok(()),
        });
        match allowed {
            Ok(()) => Ok(caller),
            Err(problem) => Err(NotAdmitted {
                why: Why::Known(Box::new(caller)),
                problem: Box::new(problem),
            }),
        }
    }

    /// Who asks; `None`: they prove nothing.
    ///
    /// # Errors
    /// What they send as a proof is none.
    fn identify(&self, headers: &HeaderMap, peer: &Peer) -> Result<Option<Caller>, NotAdmitted> {
        if let Some(given) = headers.get(header::AUTHORIZATION) {
            let token = given.to_str().ok().and_then(bearer);
            let known = token.as_ref().and_then(|token| self.of_token(token));
            return known.map(Some).ok_or_else(|| {
                let detail = "the token is not known, or has ended";
                let problem = Box::new(Problem::new(Code::TokenNeeded, detail));
                let once = token.and_then(|token| self.store.ended_token(&token));
                let why = Why::BadToken(once);
                NotAdmitted { why, problem }
            });
        }
        if let PeerAddress::Local { user, is_trusted } = peer.from
            && is_trusted
        {
            let name = format!("uid:{user}");
            return Ok(Some(Caller::new(&name, Role::Admin, Via::Socket)));
        }
        let cookies = cookies(headers);
        Ok(cookies
            .into_iter()
            .find_map(|cookie| self.of_cookie(cookie)))
    }

    fn of_token(&self, token: &Secret) -> Option<Caller> {
        if *token == self.token {
            self.store.lock().use_file_token(now());
            return Some(Caller::new(TOKEN_FILE, Role::Admin, Via::TokenFile));
        }
        let principal = self.store.token(token, now())?;
        Some(Caller {
            principal,
            session: None,
            must_change: false,
        })
    }

    fn of_cookie(&self, cookie: Secret) -> Option<Caller> {
        let known = self.store.lock().session(&cookie, now())?;
        Some(Caller {
            principal: known.principal,
            session: Some((cookie, known.csrf)),
            must_change: known.must_change,
        })
    }
}

fn may(caller: &Caller, least: Role) -> Result<(), Problem> {
    let Principal { name, role, .. } = &caller.principal;
    if caller.must_change {
        let detail = format!("\"{name}\" has not changed the password yet");
        return Err(Problem::new(Code::PasswordMustChange, detail));
    }
    if *role < least {
        let detail = format!("\"{name}\" is {role}, and this takes {least}");
        return Err(Problem::new(Code::RoleTooLow, detail));
    }
    Ok(())
}

/// A stranger's page can have the browser send the cookie, and knows nothing of this header.
fn is_meant(headers: &HeaderMap, csrf: &Secret) -> Result<(), Problem> {
    let given = headers.get(CSRF_HEADER).map(|it| it.as_bytes().to_vec());
    if given.is_some_and(|given| Secret::new(given) == *csrf) {
        return Ok(());
    }
    let detail = "the header X-Causeway-CSRF is missing, or another session's";
    Err(Problem::new(Code::CsrfMissing, detail))
}

fn bearer(value: &str) -> Option<Secret> {
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| Secret::new(token.trim().as_bytes().to_vec()))
}

/// All values of our cookie: others of the same host may have set one of its name.
fn cookies(headers: &HeaderMap) -> Vec<Secret> {
    const TRIED_MAX: usize = 4;
    let all = headers.get_all(header::COOKIE).iter();
    let pairs = all
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(';'));
    let values = pairs.filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE).then(|| Secret::new(value.as_bytes().to_vec()))
    });
    values.take(TRIED_MAX).collect()
}
