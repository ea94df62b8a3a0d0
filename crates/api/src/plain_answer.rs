//! A document, and a problem, as an HTTP answer.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use manifest::problem::Problem;
use serde::Serialize;

/// The largest request body, in bytes: several times a set of 10,000 LUNs with grants.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;

/// A problem as its HTTP answer.
pub(crate) fn problem_response(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = document(status, "application/problem+json", problem);
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

/// A document of this media type.
pub(crate) fn document(status: StatusCode, kind: &'static str, value: &impl Serialize) -> Response {
    let mut text = serde_json::to_vec_pretty(value).expect("documents are made of plain data");
    text.push(b'\n');
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}
