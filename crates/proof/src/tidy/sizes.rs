//! How large a crate may be: what one person can hold in mind, and no more than that.

use super::Finding;
use super::lexer::{Kind, Token};
use super::product;
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Product lines of a crate at most; `docs/adr/0019-floors-and-crates.md` says what they are.
const LINES_MAX: usize = 12_000;

/// It is no product: it has the model, the checkers and the simulator.
const FREE: &str = "proof";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let too_large = lines(tree)
        .into_iter()
        .filter(|(_, lines)| *lines > LINES_MAX);
    let findings = too_large.map(|(name, lines)| Finding {
        subject: name.to_owned(),
        count: lines - LINES_MAX,
        complaint: format!(
            "crates/{name} has {lines} product lines, {LINES_MAX} at most: make two crates of it, by what each knows"
        ),
    });
    findings.collect()
}

/// The product lines of each crate but [`FREE`].
fn lines(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut out = BTreeMap::new();
    for file in tree.rust() {
        let inside = file.path.strip_prefix("crates/");
        let Some((name, rest)) = inside.and_then(|it| it.split_once('/')) else {
            continue;
        };
        if name != FREE && rest.starts_with("src/") && !product::is_test(rest) {
            *out.entry(name).or_default() += lines_of(&product::tokens(&file.text));
        }
    }
    out
}

/// Lines with something on them; what is within a string of several is on each.
fn lines_of(tokens: &[Token<'_>]) -> usize {
    let mut lines = BTreeSet::new();
    for token in tokens {
        let more = match token.kind {
            Kind::Text => token.text.matches('\n').count(),
            Kind::Word | Kind::Comment | Kind::Sign | Kind::Other => 0,
        };
        lines.extend(token.line..=token.line + more);
    }
    lines.len()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let source = "//! A crate.\n\nuse a; // of b\n/* one\ntwo */\nconst A: &str = \"x\ny\nz\";\n\
            #[cfg(test)]\nmod test {\n    fn f() {}\n}\n#[cfg(test)]\nuse x;\nfn g() {\n    h();\n}\n";
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", source),
            ("crates/a/src/test.rs", source),
            ("crates/a/src/test/b.rs", source),
            ("crates/a/tests/c.rs", source),
            ("crates/b/src/x/y.rs", "fn f() {}"),
            ("crates/proof/src/lib.rs", source),
            ("fuzz/fuzz_targets/d.rs", source),
        ]);
        assert_eq!(lines(&tree), BTreeMap::from([("a", 7), ("b", 1)]));
    }

    #[test]
    fn a_crate_with_more_than_that_is_refused() {
        let most = "a;\n".repeat(LINES_MAX);
        let more = format!("{most}b;\n");
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", most.as_str()),
            ("crates/b/src/lib.rs", more.as_str()),
            ("crates/proof/src/lib.rs", more.as_str()),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].subject.as_str(), found[0].count), ("b", 1));
    }
}
