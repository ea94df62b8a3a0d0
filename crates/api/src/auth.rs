//! Who may change things.

use crate::answer::problem_response;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::Response;
use env::{CoreHandle, durable};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The file in the state directory that holds the token.
pub const TOKEN_FILE: &str = "api.token";

/// How a request came in.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Through a unix socket, whose permissions protect it.
    Unix,
    /// Through TCP: changes need this token, and reading where that is said.
    Tcp {
        /// The token.
        token: Arc<Secret>,
        /// Reading needs it, too.
        for_reads: bool,
    },
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

/// Lets reading through, and changing where the transport allows it.
pub(super) async fn check(
    State(transport): State<Transport>,
    request: Request,
    next: Next,
) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    // Whether it lives says nothing of what it has.
    let probes = ["/healthz", "/readyz"].contains(&request.uri().path());
    let allowed = match &transport {
        Transport::Unix => true,
        Transport::Tcp { token, for_reads } => {
            reads && (!for_reads || probes)
                || bearer(&request).is_some_and(|given| given == **token)
        }
    };
    if allowed {
        return next.run(request).await;
    }
    let detail = format!("{} {} over TCP", request.method(), request.uri().path());
    problem_response(&Problem::new(Code::TokenNeeded, detail))
}

fn bearer(request: &Request) -> Option<Secret> {
    let value = request.headers().get(header::AUTHORIZATION)?;
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| Secret::new(token.trim().as_bytes().to_vec()))
}
