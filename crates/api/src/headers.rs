//! What every answer says to browsers.

use axum::extract::{ConnectInfo, Request};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use crate::peer::Peer;

/// Nothing may guess a type, frame the page, keep an answer, or learn where it came from.
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Of answers that are no page: no script runs, whatever somebody makes of them.
const NO_PAGE: &str =
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// A browser that came by TLS once does not come without again.
const ONLY_TLS: &str = "max-age=31536000";

/// Adds them; what the answer says itself stays.
pub(crate) async fn add(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<Peer>>();
    let is_tls = peer.is_some_and(|ConnectInfo(peer)| peer.is_tls);
    let path = request.uri().path();
    let is_api = path.starts_with("/api/") || path == "/metrics";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| {
        let entry = headers.entry(name);
        entry.or_insert(HeaderValue::from_static(value));
    };
    for (name, value) in ALWAYS {
        say(name, value);
    }
    say(header::CONTENT_SECURITY_POLICY, NO_PAGE);
    if is_api {
        say(header::CACHE_CONTROL, "no-store");
    }
    if is_tls {
        say(header::STRICT_TRANSPORT_SECURITY, ONLY_TLS);
    }
    response
}
