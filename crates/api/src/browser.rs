//! The page, for browsers: at every path over TCP that is none of the API's.

use crate::nowhere::nowhere;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Answers what no path knows.
///
/// Who asks does not matter: someone has to see the page to log in.
pub(super) async fn answer(request: Request) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read {
        return nowhere(request).await;
    }
    let text = |name| request.headers().get(name)?.to_str().ok();
    let reply = page::answer(page::Request {
        path: request.uri().path(),
        accept_encoding: text(header::ACCEPT_ENCODING),
        if_none_match: text(header::IF_NONE_MATCH),
    });
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, reply.body).into_response();
    for (name, value) in reply.headers {
        let name = HeaderName::from_static(name);
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
