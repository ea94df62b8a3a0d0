//! The statuses of the document that come, and a list of those that do not.

#![cfg(test)]

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

const HEAD: &str = "# Statuses that the document of the API has and that no test of the contract brings about; made anew\n\
                    # by UPDATE_GOLDEN=1. Faults of the program (500) are none of them.\n";

#[test]
fn each_status_of_the_document_comes_or_is_on_the_list() {
    let parts = [
        &*WHOLE, &*PROOFS, &*HEADERS, &*BODIES, &*AWAY, &*REFUSED, &*STOPPED, &*UNSAVED,
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
                never.push(format!("{status} {method} {path}"));
            }
        }
    }
    never.sort();
    golden::assert_page(NEVER, &format!("{HEAD}{}\n", never.join("\n")));
}
