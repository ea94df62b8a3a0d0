//! What a change takes beside its path: nothing that it does not know is passed over, because
//! whoever wrote it believes that it does something.

use super::Operation;
use crate::plain_answer::{BODY_BYTES_MAX, problem_response};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use manifest::code::Code;
use manifest::problem::Problem;

/// Whether an operation takes anything of these.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    parameters: bool,
    body: bool,
    tag: bool,
}

impl Takes {
    pub(super) fn of(operation: &Operation) -> Self {
        Self {
            parameters: operation.parameters.iter().any(|it| it.place == "query"),
            body: operation.body.is_some(),
            tag: operation.parameters.iter().any(|it| it.name == "If-Match"),
        }
    }
}

/// Lets through what has nothing that is not taken. Handlers that take some say themselves which
/// they know.
pub(super) async fn check(State(takes): State<Takes>, request: Request, next: Next) -> Response {
    let refused = |detail: String, hint: &str| {
        problem_response(&Problem::new(Code::BadRequest, detail).hint(hint))
    };
    let query = request.uri().query().unwrap_or_default();
    if !takes.parameters && !query.is_empty() {
        let name = query.split(['=', '&']).next().unwrap_or_default();
        let detail = format!("unknown parameter \"{name}\"");
        return refused(detail, "this takes no parameters: leave out what follows ?");
    }
    if !takes.tag && request.headers().contains_key(header::IF_MATCH) {
        let detail = "If-Match, and what this changes has no tag".to_owned();
        return refused(
            detail,
            "leave If-Match out: what it names would not be checked",
        );
    }
    if takes.body {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_default();
    let says_nothing = [&b""[..], b"null", b"{}"].contains(&bytes.trim_ascii());
    if !says_nothing {
        let detail = "a body, where none is taken".to_owned();
        return refused(
            detail,
            "leave the body out; parameters such as dry_run stand behind the path",
        );
    }
    next.run(Request::from_parts(parts, Body::empty())).await
}
