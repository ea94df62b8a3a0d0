//! Long answers to reads, compressed where the client takes gzip.
//!
//! **Contract.** Only what stands in [`COMPRESSED`] is compressed: lists and documents of the node,
//! none of which has a secret in it. An answer with a secret and with text that somebody else chose
//! would betray the secret by its length (BREACH); what is about the one who asks, logins, tokens
//! and streams are sent as they are. So are short answers, and those to whoever does not ask for
//! gzip. What is compressed says so to caches (`Vary`), and its tag is a weak one where it stands
//! for an object: the bytes are others, the object is the same.

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Shorter answers fit into a packet or two as they are.
const BYTES_MIN: u64 = 4 << 10;

/// Longer ones are compressed by a thread that holds up no other answer.
const BYTES_AT_ONCE: usize = 64 << 10;

/// A fast one, for lists repeat themselves: docs/performance/page.md has what it costs.
const LEVEL: u32 = 2;

const GZIP: &str = "gzip";

/// Below `/api/v1/`.
const COMPRESSED: &[&str] = &[
    "activity",
    "alerts",
    "audit",
    "bays",
    "disks",
    "events/log",
    "export",
    "grants",
    "history",
    "history/latency",
    "hosts",
    "jobs",
    "luns",
    "openapi.json",
    "pools",
    "refusals",
    "sessions",
    "status",
    "targets",
];

/// Whether this is an answer that may be compressed, and who asks takes it.
pub fn is_wanted(request: &Request) -> bool {
    let path = request.uri().path();
    let known = match path.strip_prefix("/api/v1/") {
        Some(path) => COMPRESSED.contains(&path),
        None => path == "/metrics",
    };
    *request.method() == Method::GET && known && accepts(request.headers())
}

/// Whether `Accept-Encoding` has gzip with a weight above 0
/// (spec: RFC 9110 12.5.3 "Accept-Encoding").
fn accepts(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(GZIP));
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok());
        named && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// The bytes, compressed; `None` where that does not shorten them.
fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut out = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::new(LEVEL));
    out.write_all(bytes).ok()?;
    let packed = out.finish().ok()?;
    (packed.len() < bytes.len()).then(|| packed.into())
}

/// The same, where it does not hold up others.
async fn gzip_aside(bytes: &Bytes) -> Option<Bytes> {
    if bytes.len() <= BYTES_AT_ONCE {
        return gzip(bytes);
    }
    let bytes = bytes.clone();
    let done = tokio::task::spawn_blocking(move || gzip(&bytes)).await;
    done.ok().flatten()
}

/// What the answer of a compressed body says.
fn mark(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(GZIP));
    headers.remove(header::CONTENT_LENGTH);
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    if let Some(tag) = tag.filter(|tag| !tag.starts_with("W/"))
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{tag}"))
    {
        headers.insert(header::ETAG, weak);
    }
}

/// Compresses what may be and is long enough.
pub async fn pack(request: Request, next: Next) -> Response {
    let wanted = is_wanted(&request);
    let mut response = next.run(request).await;
    let vary = HeaderValue::from_static("accept-encoding");
    let long = response.body().size_hint().lower() >= BYTES_MIN;
    let whole = response.status() == StatusCode::OK
        && !response.headers().contains_key(header::CONTENT_ENCODING);
    if !(wanted && long && whole) {
        if wanted {
            response.headers_mut().append(header::VARY, vary);
        }
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    head.headers.append(header::VARY, vary);
    match gzip_aside(&bytes).await {
        Some(packed) => {
            mark(&mut head.headers);
            Response::from_parts(head, Body::from(packed))
        }
        None => Response::from_parts(head, Body::from(bytes)),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use flate2::read::GzDecoder;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use std::io::Read;

    fn asks(method: Method, path: &str, accepted: &[&str]) -> bool {
        let mut request = Request::builder().method(method).uri(path);
        for one in accepted {
            request = request.header(header::ACCEPT_ENCODING, *one);
        }
        is_wanted(&request.body(Body::empty()).unwrap())
    }

    #[test]
    fn only_who_takes_gzip_gets_it() {
        for (accepted, is) in [
            (&["gzip"][..], true),
            (&["br", "deflate, GZIP;q=0.5"], true),
            (&["gzip;q=0"], false),
            (&["br, zstd", "identity"], false),
            (&["xgzip"], false),
            (&[], false),
        ] {
            assert_eq!(
                asks(Method::GET, "/api/v1/luns?limit=5", accepted),
                is,
                "{accepted:?}"
            );
        }
    }

    #[test]
    fn what_is_about_who_asks_and_what_has_secrets_is_sent_as_it_is() {
        for path in [
            "/api/v1/me",
            "/api/v1/me/sessions",
            "/api/v1/login",
            "/api/v1/tokens",
            "/api/v1/users",
            "/api/v1/events",
            "/api/v1/receivers",
            "/luns",
        ] {
            assert!(!asks(Method::GET, path, &["gzip"]), "{path}");
        }
        assert!(!asks(Method::POST, "/api/v1/luns", &["gzip"]));
        assert!(asks(Method::GET, "/metrics", &["gzip"]));
    }

    #[test]
    fn what_was_compressed_is_the_same_and_says_so() {
        let bytes = b"{ \"name\": \"vm01\" },\n".repeat(10_000);
        let packed = gzip(&bytes).unwrap();
        assert!(packed.len() * 20 < bytes.len(), "{}", packed.len());
        let mut out = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut out).unwrap();
        assert_eq!(out, bytes);
        assert_eq!(gzip(&bytes).unwrap(), packed, "the same bytes each time");
        assert!(gzip(b"x").is_none());
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, HeaderValue::from_static("\"a\""));
        mark(&mut headers);
        mark(&mut headers);
        assert_eq!(headers[header::ETAG], "W/\"a\"");
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
    }

    async fn answered(path: &str, accepted: &'static str) -> (HeaderMap, Bytes) {
        let long = async || ([(header::ETAG, "\"a\"")], "a list ".repeat(1_000));
        let app = Router::new()
            .route("/api/v1/luns", get(long))
            .route("/api/v1/me", get(long))
            .route("/api/v1/pools", get(async || "short"))
            .layer(from_fn(pack));
        let request = Request::get(path).header(header::ACCEPT_ENCODING, accepted);
        let app = TowerToHyperService::new(app);
        let response = app.call(request.body(Body::empty()).unwrap()).await;
        let (head, body) = response.unwrap().into_parts();
        (head.headers, to_bytes(body, 1 << 20).await.unwrap())
    }

    #[tokio::test]
    async fn a_long_list_is_compressed_and_nothing_else_is() {
        let (heads, body) = answered("/api/v1/luns", "gzip, deflate, br").await;
        assert_eq!(heads[header::CONTENT_ENCODING], "gzip");
        assert_eq!(heads[header::VARY], "accept-encoding");
        assert_eq!(heads[header::ETAG], "W/\"a\"", "other bytes, one object");
        let mut out = String::new();
        GzDecoder::new(&body[..]).read_to_string(&mut out).unwrap();
        assert_eq!(out, "a list ".repeat(1_000));
        for (path, accepted) in [
            ("/api/v1/luns", "br"),
            ("/api/v1/pools", "gzip"),
            ("/api/v1/me", "gzip"),
        ] {
            let (heads, body) = answered(path, accepted).await;
            assert!(!heads.contains_key(header::CONTENT_ENCODING), "{path}");
            assert!(body.starts_with(b"a list") || body == "short", "{path}");
        }
    }
}
