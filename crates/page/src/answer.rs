//! From a request to the bytes of an answer.

use crate::FILES;
use crate::file::File;

/// What the browser may load and run: this daemon's own files, nothing inline.
pub const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

const INDEX: &str = "index.html";

/// What programs without the page answer.
const NOT_BUILT: &str = "This program was built without its page. To build it with the page: make build\n\
                         Everything else works: causeway status, or GET /api/v1/status\n";

/// What of a request matters.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The path of the URL, as it was sent.
    pub path: &'a str,
    /// What the browser can unpack, as it says it.
    pub accept_encoding: Option<&'a str>,
    /// The tags that it has already.
    pub if_none_match: Option<&'a str>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The bytes.
    pub body: &'static [u8],
}

/// The answer of the page that was built in.
#[must_use]
pub fn answer(request: Request<'_>) -> Reply {
    answer_of(FILES, request)
}

/// The answer of a page of `files`.
pub(crate) fn answer_of(files: &'static [File], request: Request<'_>) -> Reply {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let wanted = request.path.strip_prefix('/').unwrap_or(request.path);
    let Some(index) = find(INDEX) else {
        return plain(503, NOT_BUILT);
    };
    match find(wanted) {
        Some(file) => serve(file, request),
        // A file that another version of the page had must not become a page.
        None if wanted.starts_with("assets/") => plain(404, "no such file\n"),
        None => serve(index, request),
    }
}

fn serve(file: &'static File, request: Request<'_>) -> Reply {
    let (encoding, body) = encoded(file, request.accept_encoding.unwrap_or_default());
    let mut headers = vec![
        ("content-type", file.kind()),
        ("cache-control", file.caching()),
        ("etag", file.tag),
        ("vary", "accept-encoding"),
    ];
    headers.extend(security());
    if known(file.tag, request.if_none_match) {
        return Reply {
            status: 304,
            headers,
            body: b"",
        };
    }
    headers.extend(encoding.map(|encoding| ("content-encoding", encoding)));
    Reply {
        status: 200,
        headers,
        body,
    }
}

fn plain(status: u16, text: &'static str) -> Reply {
    let mut headers = vec![
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
    ];
    headers.extend(security());
    Reply {
        status,
        headers,
        body: text.as_bytes(),
    }
}

/// What every answer carries.
fn security() -> [(&'static str, &'static str); 5] {
    [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
    ]
}

/// The smallest form that the browser takes.
fn encoded(file: &'static File, accepted: &str) -> (Option<&'static str>, &'static [u8]) {
    let forms = [("br", file.br), ("gzip", file.gzip)];
    let form = forms
        .into_iter()
        .find_map(|(name, form)| form.filter(|_| accepts(accepted, name)).map(|f| (name, f)));
    form.map_or((None, file.plain), |(name, form)| (Some(name), form))
}

/// Whether `Accept-Encoding` has this coding with a weight above 0
/// (spec: RFC 9110 12.5.3 "Accept-Encoding").
fn accepts(accepted: &str, coding: &str) -> bool {
    accepted.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let refused = parts
            .find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok())
            .is_some_and(|weight| weight <= 0.0);
        named && !refused
    })
}

/// Whether the browser has this content already
/// (spec: RFC 9110 13.1.2 "If-None-Match").
fn known(tag: &str, if_none_match: Option<&str>) -> bool {
    let mut tags = if_none_match.unwrap_or_default().split(',').map(str::trim);
    tags.any(|given| given.strip_prefix("W/").unwrap_or(given) == tag)
}
