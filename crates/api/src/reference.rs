//! The page of the REST paths, `docs/reference/rest.md`: what each does, and that none is left out.

use manifest::golden;
use manifest::page::{MarkdownTable, paragraph};
use std::collections::BTreeSet;

/// A path with a method, and what it does.
type Route = (&'static str, &'static str, &'static str);

const ROUTES: [Route; 52] = [
    ("GET", "/healthz", "`ok`, where the process lives"),
    ("GET", "/readyz", "200 where it serves, 503 where not yet"),
    (
        "GET",
        "/metrics",
        "[metrics](../metrics.md) in the Prometheus text format",
    ),
    ("GET", "/api/v1/status", "how the node is: `status`"),
    (
        "GET",
        "/api/v1/activity",
        "counts of LUNs, sessions and cores, which `top` reads",
    ),
    (
        "POST",
        "/api/v1/apply",
        "brings the objects to what the body says; `prune` removes others",
    ),
    (
        "POST",
        "/api/v1/objects",
        "makes all objects of the body, or none",
    ),
    (
        "GET",
        "/api/v1/export",
        "all objects, as `apply` takes them",
    ),
    (
        "GET",
        "/api/v1/refusals",
        "logins that were refused: `session ls --refused`",
    ),
    ("GET", "/api/v1/pools", "all pools"),
    ("GET", "/api/v1/pools/{name}", "one pool"),
    (
        "POST",
        "/api/v1/pools/{name}/journal",
        "`operation` (`reopen`, `discard`), `confirm`, `dry_run`",
    ),
    ("GET", "/api/v1/sessions", "all sessions"),
    ("GET", "/api/v1/sessions/{id}", "one session"),
    ("DELETE", "/api/v1/sessions/{id}", "ends it: `session drop`"),
    (
        "GET",
        "/api/v1/luns",
        "all LUNs; `removed` adds those that were deleted",
    ),
    ("POST", "/api/v1/luns", "makes a LUN"),
    ("GET", "/api/v1/luns/{name}", "one LUN"),
    (
        "PATCH",
        "/api/v1/luns/{name}",
        "changes the fields that are named: `lun set`",
    ),
    (
        "DELETE",
        "/api/v1/luns/{name}",
        "deletes it; its data waits for `restore`",
    ),
    ("POST", "/api/v1/luns/{name}/resize", "another size"),
    ("POST", "/api/v1/luns/{name}/rename", "another name"),
    (
        "POST",
        "/api/v1/luns/{name}/restore",
        "brings a deleted one back, with its grants",
    ),
    (
        "POST",
        "/api/v1/luns/{name}/purge",
        "gives the data of a deleted one up",
    ),
    ("GET", "/api/v1/luns/{name}/scrub", "its scrub"),
    (
        "POST",
        "/api/v1/luns/{name}/scrub",
        "`operation` (`start`, `stop`) of its scrub",
    ),
    ("GET", "/api/v1/targets", "all targets"),
    ("POST", "/api/v1/targets", "makes a target"),
    ("GET", "/api/v1/targets/{name}", "one target"),
    ("PUT", "/api/v1/targets/{name}", "the whole target anew"),
    (
        "PATCH",
        "/api/v1/targets/{name}",
        "changes the fields that are named",
    ),
    ("DELETE", "/api/v1/targets/{name}", "deletes it"),
    ("POST", "/api/v1/targets/{name}/rename", "another name"),
    ("GET", "/api/v1/hosts", "all hosts"),
    ("POST", "/api/v1/hosts", "makes a host"),
    ("GET", "/api/v1/hosts/{name}", "one host"),
    ("PUT", "/api/v1/hosts/{name}", "the whole host anew"),
    (
        "PATCH",
        "/api/v1/hosts/{name}",
        "changes the fields that are named",
    ),
    ("DELETE", "/api/v1/hosts/{name}", "deletes it"),
    ("POST", "/api/v1/hosts/{name}/rename", "another name"),
    ("GET", "/api/v1/grants", "all grants"),
    ("POST", "/api/v1/grants", "makes a grant"),
    (
        "GET",
        "/api/v1/grants/{name}",
        "one grant, named `HOST:TARGET:LUN`",
    ),
    ("PUT", "/api/v1/grants/{name}", "the whole grant anew"),
    (
        "PATCH",
        "/api/v1/grants/{name}",
        "changes the fields that are named",
    ),
    ("DELETE", "/api/v1/grants/{name}", "takes the right away"),
    (
        "GET",
        "/api/v1/orphans",
        "LUNs in the pools that no object names: `lun ls --orphans`",
    ),
    (
        "POST",
        "/api/v1/orphans/adopt",
        "takes them into service: `lun adopt`",
    ),
    (
        "GET",
        "/api/v1/generations",
        "kept generations of the objects: `state ls`",
    ),
    (
        "POST",
        "/api/v1/generations/accept",
        "the older objects are meant: `state accept`",
    ),
    (
        "GET",
        "/api/v1/generations/{number}",
        "the objects of one, as `export` has them: `state show`",
    ),
    (
        "POST",
        "/api/v1/generations/{number}/rollback",
        "back to a kept one: `state rollback`",
    ),
];

fn page() -> String {
    let mut out = String::from("# REST\n\n");
    for text in [
        "Made from the code; a test keeps both equal. Requests and answers are JSON; an error is a document of `code`, \
         `title`, `detail`, `cause` and `hint` (`application/problem+json`). What each document has is in \
         [the promised interface](../interface.md#json-documents).",
        "Through the unix socket everything is possible for whoever may open it. Over TCP reading is free unless \
         `token_for_reads` says otherwise, and changing takes the token: `Authorization: Bearer`, from `api.token` in the \
         state directory.",
        "Behind the path of a change may stand `?dry_run=true`, which only reports, and `?force=true`, which does it although \
         sessions are disturbed or data is lost.",
    ] {
        out.push_str(&paragraph(text, ""));
        out.push('\n');
    }
    let mut table = MarkdownTable::new(&["Method", "Path", "What it does"]);
    for (method, path, what) in ROUTES {
        table.row(&[method, &format!("`{path}`"), what]);
    }
    out.push_str(&table.into_text());
    out
}

/// Every path with each of its methods, as the sources of the router name them.
fn served() -> BTreeSet<(String, String)> {
    let mut out = BTreeSet::new();
    for source in [include_str!("routes.rs"), include_str!("generations.rs")] {
        for route in source.split(".route(").skip(1) {
            let mut quoted = route.splitn(3, '"');
            let path = quoted.nth(1).unwrap_or_default();
            let rest = quoted.next().unwrap_or_default();
            let end = rest
                .find(".route(")
                .or(rest.find(".merge("))
                .unwrap_or(rest.len());
            let rest = rest.get(..end).unwrap_or_default();
            let rest = rest.split("\n}").next().unwrap_or_default();
            for method in ["get", "post", "put", "patch", "delete"] {
                let called = |before: char| rest.contains(&format!("{before}{method}("));
                if [' ', '.', '\n'].into_iter().any(called) {
                    out.insert((method.to_uppercase(), path.to_owned()));
                }
            }
        }
    }
    out
}

#[test]
fn every_path_that_is_served_is_on_the_page_and_no_other() {
    let reported = ROUTES
        .iter()
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()));
    assert_eq!(reported.collect::<BTreeSet<_>>(), served());
}

#[test]
fn the_page_of_the_paths_is_this() {
    golden::assert_page("docs/reference/rest.md", &page());
}
