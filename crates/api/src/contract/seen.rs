//! The statuses of the document that come, and a list of those that do not.

#![cfg(test)]

use super::everyday::EVERYDAY;
use super::refused::REFUSED;
use super::stopped::STOPPED;
use super::sweep::{AWAY, BODIES, HEADERS, PROOFS};
use super::unsaved::UNSAVED;
use super::{Seen, WHOLE, methods_of};
use crate::routes::DOCUMENT;
use manifest::golden;

/// What no test has brought about. A line goes when a test does; one that comes is a status that
/// a new operation says it may answer and nobody has seen.
const NEVER: &str = "crates/api/never_answered.txt";

const HEAD: &str = "# Statuses that the document of the API has and that no test of the contract brings about, each with\n\
                    # the reason; made anew by UPDATE_GOLDEN=1. Faults of the program (500) are none of them.\n";

/// Why no test brings these about: a status, with what its path begins with, or is.
const REASONS: [(&str, &str); 16] = [
    (
        "404 PUT /api/v1/me/password",
        "the user is deleted between two of its steps",
    ),
    (
        "404 POST /api/v1/lab/beds",
        "the program of the beds is not installed",
    ),
    (
        "404 POST /api/v1/orphans/adopt",
        "what it takes may be refused so elsewhere; nothing is known that does it here",
    ),
    (
        "409 POST /api/v1/alerts",
        "one `Idempotency-Key` twice at a time; repeated.rs tests the verdict",
    ),
    (
        "409 POST /api/v1/config/reload",
        "one `Idempotency-Key` twice at a time; repeated.rs tests the verdict",
    ),
    (
        "409 POST /api/v1/logout",
        "one `Idempotency-Key` twice at a time; repeated.rs tests the verdict",
    ),
    (
        "409 POST /api/v1/node/drain",
        "one `Idempotency-Key` twice at a time; repeated.rs tests the verdict",
    ),
    (
        "409 POST /api/v1/restart",
        "settings that would not start again: config/test.rs has that",
    ),
    (
        "409 POST /api/v1/luns/{name}/restore",
        "what it takes may be refused so elsewhere; nothing is known that does it here",
    ),
    (
        "409 POST /api/v1/luns/{name}/scrub",
        "a LUN that is offline, which the engine of these tests has not",
    ),
    (
        "409 POST /api/v1/orphans/adopt",
        "what it takes may be refused so elsewhere; nothing is known that does it here",
    ),
    (
        "409 POST /api/v1/generations/accept",
        "what it takes may be refused so elsewhere; nothing is known that does it here",
    ),
    (
        "422 DELETE",
        "an image that cannot be used, found where a LUN on it is opened: the daemon's tests of images have that",
    ),
    (
        "429 GET /api/v1/events",
        "128 streams of one address: attack_test.rs has that",
    ),
    (
        "503",
        "the node ends between two of its steps; stopped.rs asks after its end",
    ),
    (
        "507",
        "a disk that is full, which the engine of these tests has not",
    ),
];

fn reason(line: &str) -> &'static str {
    let found = REASONS.iter().find(|(of, _)| line.starts_with(of));
    found.map_or("no reason: bring it about, or write one", |(_, why)| why)
}

#[test]
fn each_status_of_the_document_comes_or_is_on_the_list() {
    let parts = [
        &*WHOLE, &*PROOFS, &*HEADERS, &*BODIES, &*AWAY, &*REFUSED, &*STOPPED, &*UNSAVED, &*EVERYDAY,
    ];
    let mut seen = Seen::new();
    for (operation, statuses) in parts.into_iter().flatten() {
        seen.entry(operation.clone()).or_default().extend(statuses);
    }
    let mut never = Vec::new();
    for (method, path, operation) in methods_of(&DOCUMENT) {
        let known = seen.get(&(method.clone(), path.clone()));
        for status in operation["responses"].as_object().unwrap().keys() {
            let came = known.is_some_and(|it| it.contains(&status.parse().unwrap()));
            if !came && status != "500" {
                let line = format!("{status} {method} {path}");
                never.push(format!("{line}: {}", reason(&line)));
            }
        }
    }
    never.sort();
    let bare = never.iter().find(|line| line.contains("no reason"));
    assert_eq!(bare, None, "{never:#?}");
    golden::assert_page(NEVER, &format!("{HEAD}{}\n", never.join("\n")));
}
