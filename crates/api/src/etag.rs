//! `ETag` of answers that no object's tag stands for: sessions, pools, status.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Stands for all of a document.
pub(super) fn tag_of(document: &impl Serialize) -> String {
    hash(&serde_json::to_vec(document).unwrap_or_default())
}

fn hash(bytes: &[u8]) -> String {
    units::hex(&Sha256::digest(bytes)[..16])
}

/// Gives documents that have no tag one of their bytes, and leaves out what the client has.
pub(super) async fn add(request: Request, next: Next) -> Response {
    let is_get = *request.method() == Method::GET;
    let has = request.headers().get(header::IF_NONE_MATCH).cloned();
    let response = next.run(request).await;
    let headers = response.headers();
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_document = is_get
        && response.status() == StatusCode::OK
        && kind == Some(&b"application/json"[..])
        && !headers.contains_key(header::ETAG);
    if !is_document {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let tag = format!("\"{}\"", hash(&body));
    let Ok(value) = HeaderValue::from_str(&tag) else {
        return Response::from_parts(head, Body::from(body));
    };
    head.headers.insert(header::ETAG, value.clone());
    let has = has
        .as_ref()
        .and_then(|has| has.to_str().ok())
        .unwrap_or_default();
    let mut known = has
        .split(',')
        .map(|tag| tag.trim().trim_start_matches("W/"));
    if known.any(|it| it == tag || it == "*") {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, value)]).into_response();
    }
    Response::from_parts(head, Body::from(body))
}
