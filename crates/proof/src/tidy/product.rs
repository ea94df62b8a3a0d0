//! The code of a source that is built into the product: comments and what is for tests alone are
//! left out.

use super::lexer::{self, Kind, Token};
use std::path::Path;

/// The tokens of `source` without comments, and without what `#[cfg(test)]` keeps for tests.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = lexer::tokens(source);
    tokens.retain(|it| it.kind != Kind::Comment);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = &tokens[at..];
        if token.is("#") && begins_with(rest, &["#", "!", "[", "cfg", "(", "test", ")"]) {
            return Vec::new();
        }
        let is_for_tests = begins_with(rest, &["#", "[", "cfg", "(", "test", ")", "]"])
            || begins_with(rest, &["#", "[", "cfg", "(", "all", "(", "test", ","]);
        if is_for_tests {
            at = after_item(&tokens, after_brackets(&tokens, at + 1));
        } else {
            out.push(*token);
            at += 1;
        }
    }
    out
}

/// A file that is a test as a whole, by its name or its place.
pub(super) fn is_test(path: &str) -> bool {
    let path = Path::new(path);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folders = path.parent().into_iter().flat_map(Path::iter);
    stem == "test"
        || stem.ends_with("_test")
        || stem.starts_with("test_")
        || folders.into_iter().any(|it| it == "test" || it == "tests")
}

fn begins_with(tokens: &[Token<'_>], texts: &[&str]) -> bool {
    let same = tokens.iter().zip(texts).filter(|(token, text)| {
        let is_code = token.kind == Kind::Sign || token.kind == Kind::Word;
        is_code && token.text == **text
    });
    same.count() == texts.len()
}

/// Where the brackets have closed that open at `at`.
pub(super) fn after_brackets(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            _ if token.kind != Kind::Sign => {}
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Words with which an item or a statement begins; a field, a variant or an arm begins with none.
const ITEMS: [&str; 16] = [
    "async", "const", "enum", "extern", "fn", "impl", "let", "mod", "pub", "static", "struct",
    "trait", "type", "union", "unsafe", "use",
];

/// Where the item, statement, field, variant or arm has ended that begins at `at`.
fn after_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|it| it.is("#")) {
        at = after_brackets(tokens, at + 1);
    }
    let first = tokens.get(at);
    let is_item = first.is_some_and(|it| it.kind == Kind::Word && ITEMS.contains(&it.text));
    while let Some(token) = tokens.get(at) {
        match token.text {
            _ if token.kind != Kind::Sign => at += 1,
            "{" => return after_brackets(tokens, at),
            "(" | "[" => at = after_brackets(tokens, at),
            ";" => return at + 1,
            "}" | ")" | "]" => return at,
            "," if !is_item => return at,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod test {
    use super::*;

    fn kept(source: &str) -> String {
        let kept: Vec<&str> = tokens(source).iter().map(|it| it.text).collect();
        kept.join(" ")
    }

    #[test]
    fn what_is_for_tests_ends_where_its_item_ends() {
        let cases = [
            ("#[cfg(test)] use a::b; c", "c"),
            ("#[cfg(test)]\n#[x(y)]\nmod test { use c; }\nd", "d"),
            (
                "#[cfg(all(test, unix))] fn f<A, B>() where A: X, B: Y {} e",
                "e",
            ),
            (
                "struct S { #[cfg(test)] h: I<K>, l: M }",
                "struct S { , l : M }",
            ),
            ("f(#[cfg(test)] x)", "f ( )"),
            ("#[cfg(test)] const A: [u8; 2] = [0; 2]; b", "b"),
            ("a #![cfg(test)] b", ""),
        ];
        for (source, wanted) in cases {
            assert_eq!(kept(source), wanted, "{source}");
        }
    }

    #[test]
    fn what_other_conditions_keep_stays() {
        for source in [
            "# [ cfg ( any ( test , unix ) ) ] mod a ;",
            "# [ test ] fn f ( ) { }",
        ] {
            assert_eq!(kept(source), source);
        }
    }

    #[test]
    fn tests_are_known_by_name_and_place() {
        for path in [
            "a/test.rs",
            "a/test/b.rs",
            "tests/c.rs",
            "a/b_test.rs",
            "a/test_b.rs",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "a/latest.rs",
            "a/tested/b.rs",
            "crates/volume_test/src/lib.rs",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }
}
