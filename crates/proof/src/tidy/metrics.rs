//! Metrics and their reference name the same families. What the reference says of each is made from
//! the code by a test of `metrics`; here it is seen that no name is left out there, and that no old
//! one stays.

use super::Finding;
use super::lexer::Kind;
use super::product;
use super::tree::Tree;
use std::collections::BTreeMap;

/// The name of the page that lists them, wherever it stands below `docs`.
const REFERENCE: &str = "/metrics.md";

/// What every metric's name begins with.
const PREFIX: &str = "causeway_";

/// What a histogram adds to its name.
const ENDS: [&str; 3] = ["_bucket", "_sum", "_count"];

/// Where something stands: file and line.
type Place = (String, usize);

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (mut emitted, made) = emitted(tree);
    let described = described(tree);
    for end in ENDS {
        let names: Vec<String> = emitted.keys().cloned().collect();
        emitted.retain(|name, _| {
            let family = name.strip_suffix(end);
            family.is_none_or(|family| !names.iter().any(|it| it == family))
        });
    }
    let mut complaints = Vec::new();
    for (file, line) in made {
        complaints.push(format!(
            "{file}:{line}: the name of a metric is put together: write it out, so that it can be found"
        ));
    }
    for (name, (file, line)) in &emitted {
        if !described.contains_key(name) {
            complaints.push(format!(
                "{file}:{line}: the metric {name} is not in docs/metrics.md: give it a place in crates/metrics/src/page.rs"
            ));
        }
    }
    for (name, (file, line)) in &described {
        if !emitted.contains_key(name) {
            complaints.push(format!(
                "{file}:{line}: nothing emits the metric {name}: take it out"
            ));
        }
    }
    let findings = complaints.into_iter().map(|complaint| Finding {
        subject: "names".to_owned(),
        count: 1,
        complaint,
    });
    findings.collect()
}

/// The metrics that the product names as a whole, and the places where it puts a name together.
fn emitted(tree: &Tree) -> (BTreeMap<String, Place>, Vec<Place>) {
    let mut names = BTreeMap::new();
    let mut made = Vec::new();
    let product = tree.rust().filter(|it| is_product(&it.path));
    for file in product {
        for token in product::tokens(&file.text) {
            let rest = token.text.strip_prefix(PREFIX);
            let Some(rest) = rest.filter(|_| token.kind == Kind::Text) else {
                continue;
            };
            let place = (file.path.clone(), token.line);
            if is_name(rest) {
                names.entry(token.text.to_owned()).or_insert(place);
            } else if rest.starts_with('{') || rest.contains("_{") {
                made.push(place);
            }
        }
    }
    (names, made)
}

/// What `docs` says of metrics: the names in the first column of its tables.
fn described(tree: &Tree) -> BTreeMap<String, Place> {
    let mut names = BTreeMap::new();
    let is_reference = |path: &str| path.starts_with("docs/") && path.ends_with(REFERENCE);
    for file in tree.files.iter().filter(|it| is_reference(&it.path)) {
        for (at, line) in file.text.lines().enumerate() {
            let first = line.strip_prefix('|').and_then(|it| it.split('|').next());
            let quoted = first.unwrap_or_default().split('`').skip(1).step_by(2);
            let ours = quoted.filter(|it| it.strip_prefix(PREFIX).is_some_and(is_name));
            for name in ours {
                let place = (file.path.clone(), at + 1);
                names.entry(name.to_owned()).or_insert(place);
            }
        }
    }
    names
}

fn is_name(rest: &str) -> bool {
    let is_of_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    !rest.is_empty() && rest.chars().all(is_of_name)
}

/// What is built into the product: no test, and not what tests the product.
fn is_product(path: &str) -> bool {
    let is_source = path.starts_with("crates/") && path.contains("/src/");
    is_source && !path.starts_with("crates/proof/") && !product::is_test(path)
}

#[cfg(test)]
mod test {
    use super::*;

    const DOCUMENT: &str = "Text of `causeway_other`.\n| Metric | Kind |\n|---|---|\n\
        | `causeway_a_total`, `causeway_b` | counter |\n| `causeway_seconds` | histogram, `causeway_x` |\n";

    const CODE: &str = "fn f() { g(\"causeway_a_total\"); g(\"causeway_b\"); g(\"causeway_seconds\");\n\
        g(\"causeway_seconds_bucket\"); g(\"causeway_seconds_sum\"); g(\"causeway's\"); }\n\
        #[cfg(test)]\nmod test { const X: &str = \"causeway_of_test\"; }\n";

    fn complaints(code: &str, document: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/x/src/metrics.rs", code),
            (
                "crates/proof/src/x.rs",
                "const X: &str = \"causeway_of_proof\";",
            ),
            ("docs/metrics.md", document),
        ]);
        check(&tree).into_iter().map(|it| it.complaint).collect()
    }

    #[test]
    fn names_that_both_have_are_fine() {
        assert_eq!(complaints(CODE, DOCUMENT), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_one_side_lacks_is_reported_with_its_place() {
        let found = complaints(CODE, &DOCUMENT.replace("`causeway_a_total`, ", ""));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/x/src/metrics.rs:1:"),
            "{found:?}"
        );
        let found = complaints(&CODE.replace("g(\"causeway_b\");", ""), DOCUMENT);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("docs/metrics.md:4: nothing emits"),
            "{found:?}"
        );
    }

    #[test]
    fn a_sum_without_its_histogram_is_a_name_of_its_own() {
        let code = format!("{CODE} const X: &str = \"causeway_other_sum\";");
        assert_eq!(complaints(&code, DOCUMENT).len(), 1);
    }

    #[test]
    fn a_name_that_is_put_together_cannot_be_checked() {
        let code = format!("{CODE} fn h(end: &str) {{ format!(\"causeway_journal_{{end}}\"); }}");
        let found = complaints(&code, DOCUMENT);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("write it out"), "{found:?}");
    }
}
