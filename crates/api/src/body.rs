//! The body of a request: bounded in bytes and in time, before anybody reads it.

use crate::access::reads;
use accounts::Via;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header;
use axum::http::request::Parts;
use manifest::code::Code;
use manifest::problem::Problem;
use std::time::Duration;

/// The largest body, in bytes: several times a set of 10,000 LUNs with grants.
const BYTES_MAX: usize = 16 << 20;

/// The largest one of somebody who has proved nothing yet, or of names and passwords.
const SMALL_MAX: usize = 16 << 10;

/// How large a body may be at `path`, of somebody who came so.
pub(crate) fn most(path: &str, via: Via) -> usize {
    let small = ["/api/v1/login", "/api/v1/logout", "/api/v1/me/password"];
    if small.contains(&path) || matches!(via, Via::Nobody | Via::Loopback) {
        return SMALL_MAX;
    }
    BYTES_MAX
}

/// Takes the whole body in.
///
/// # Errors
/// It is too large, or did not come in time.
pub(crate) async fn take(
    request: &Parts,
    body: Body,
    most: usize,
    time: Duration,
) -> Result<Body, Problem> {
    if reads(&request.method) {
        // Nobody reads it: the connection ends where there is one.
        return Ok(Body::empty());
    }
    let announced = request.headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    let too_large = || {
        let detail = format!("more than {most} bytes for {}", request.uri.path());
        Problem::new(Code::BodyTooLarge, detail)
    };
    if announced.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |bytes| bytes > most)) {
        return Err(too_large());
    }
    match tokio::time::timeout(time, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(Body::from(bytes)),
        Ok(Err(error)) if is_too_large(&error) => Err(too_large()),
        Ok(Err(error)) => {
            let detail = format!("the body: {error}");
            Err(Problem::new(Code::BadRequest, detail))
        }
        Err(_) => {
            let detail = format!("not there within {} s", time.as_secs());
            Err(Problem::new(Code::BodyTooSlow, detail))
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    use std::error::Error as _;
    error
        .source()
        .is_some_and(|source| source.is::<http_body_util::LengthLimitError>())
}

/// A whole body that names and passwords are in: what is wrong with it is said without them.
///
/// # Errors
/// It is not the document that is wanted, which has `fields`.
pub(crate) fn read_quietly<T: serde::de::DeserializeOwned>(
    bytes: &Bytes,
    fields: &str,
) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let detail = format!("the body, line {line}, column {column}: a document has {fields}");
        Problem::new(Code::BadRequest, detail)
    })
}
