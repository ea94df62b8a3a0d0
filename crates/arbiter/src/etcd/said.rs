//! What etcd says in place of an answer, in words for whoever must mend it.

use crate::trouble::{Trouble, TroubleKind};
use serde::Deserialize;

/// Bytes of its words that are shown.
const SHOWN_MAX: usize = 160;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    error: String,
    message: String,
}

/// What an answer of this status means, which is no success; `at` is where it came from.
pub(super) fn trouble(at: &str, status: u16, body: &[u8]) -> Trouble {
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    let said = if problem.message.is_empty() {
        problem.error
    } else {
        problem.message
    };
    let words = if said.is_empty() {
        String::from_utf8_lossy(body).into_owned()
    } else {
        said
    };
    let (kind, next_step) = judge(status, &words);
    let cause = format!("{at} answers {status}: {}", shown(&words));
    Trouble::new(kind, cause, next_step)
}

fn judge(status: u16, said: &str) -> (TroubleKind, &'static str) {
    use TroubleKind::{Full, NotAllowed, NotReady, Refuses};
    let has = |words: &[&str]| words.iter().any(|it| said.contains(it));
    if has(&[
        "user name is empty",
        "CommonName of client",
        "permission denied",
        "auth",
        "user name not found",
    ]) || matches!(status, 401 | 403)
    {
        let next = "the gateway of etcd knows no users by their certificates: protect it by client certificates \
                    (--client-cert-auth), without `etcdctl auth enable`";
        return (NotAllowed, next);
    }
    if has(&["database space exceeded"]) {
        let next = "etcd is full: compact and defragment it, then `etcdctl alarm disarm`";
        return (Full, next);
    }
    if has(&["corrupt"]) {
        return (
            Refuses,
            "a member of etcd is damaged: replace it, see etcd's log",
        );
    }
    if has(&["too large", "too many operations"]) {
        let next = "start etcd with its usual --max-request-bytes (1.5 MiB) and --max-txn-ops (128), or more";
        return (Refuses, next);
    }
    match status {
        404 => (
            Refuses,
            "start etcd 3.4 or newer with its gateway (--enable-grpc-gateway)",
        ),
        400..=499 if status != 408 && status != 429 => (
            Refuses,
            "check that this is etcd 3.4 or newer; its log says more",
        ),
        _ => (
            NotReady,
            "a majority of etcd's members must be up and reach each other; wait, or see its log",
        ),
    }
}

/// The beginning of what was said, in one line.
fn shown(words: &str) -> String {
    let is_plain = |it: &char| !it.is_control();
    let line: String = words
        .trim()
        .chars()
        .filter(is_plain)
        .take(SHOWN_MAX)
        .collect();
    if line.is_empty() {
        "nothing more".to_owned()
    } else {
        line
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn each_refusal_is_distinguished_from_what_passes() {
        use TroubleKind::{Full, NotAllowed, NotReady, Refuses};
        for (status, said, kind) in [
            (400, "etcdserver: user name is empty", NotAllowed),
            (401, "etcdserver: invalid auth token", NotAllowed),
            (403, "etcdserver: permission denied", NotAllowed),
            (429, "etcdserver: mvcc: database space exceeded", Full),
            (400, "etcdserver: request is too large", Refuses),
            (
                400,
                "etcdserver: too many operations in txn request",
                Refuses,
            ),
            (404, "Not Found", Refuses),
            (429, "etcdserver: too many requests", NotReady),
            (500, "raft proposal dropped", NotReady),
            (503, "etcdserver: request timed out", NotReady),
            (503, "etcdserver: no leader", NotReady),
            (504, "context deadline exceeded", NotReady),
        ] {
            let body = format!(r#"{{"error":"{said}","message":"{said}","code":1}}"#);
            let trouble = trouble("https://10.0.0.5:2379", status, body.as_bytes());
            assert_eq!(trouble.kind, kind, "{said}");
            assert!(trouble.cause.contains(said), "{trouble}");
        }
    }

    #[test]
    fn whatever_answers_is_shown_shortly_and_in_one_line() {
        let page = format!("<html>\r\n\u{1b}[31m{}", "x".repeat(999));
        let trouble = trouble("at", 502, page.as_bytes());
        assert!(
            trouble.cause.len() < 200 && !trouble.cause.contains(char::is_control),
            "{trouble}"
        );
        assert!(
            super::trouble("at", 500, b"")
                .cause
                .contains("nothing more")
        );
    }
}
