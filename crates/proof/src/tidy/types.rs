//! Names of types: no two public ones of a crate share one, and none is called as one that is in
//! scope everywhere.

use super::Finding;
use super::lexer::{self, Kind, Token};
use super::product;
use super::tree::{File, Tree};
use std::collections::BTreeMap;

/// Types and traits that every source sees without importing them.
const PRELUDE: [&str; 33] = [
    "AsMut",
    "AsRef",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Hash",
    "Into",
    "IntoIterator",
    "Iterator",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "Vec",
];

/// Words that name a type.
const TYPES: [&str; 5] = ["enum", "struct", "trait", "type", "union"];

/// Words that may open a block; a `type` in one of those that are no module is somebody's own.
const BLOCKS: [&str; 8] = [
    "enum", "fn", "impl", "mod", "struct", "trait", "union", "unsafe",
];

/// A type, where it is named.
struct Named<'a> {
    name: &'a str,
    line: usize,
    is_public: bool,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut public: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut findings = Vec::new();
    for file in tree.rust() {
        for it in named(&lexer::tokens(&file.text)) {
            if PRELUDE.contains(&it.name) {
                findings.push(finding(
                    it.name,
                    format!(
                        "{}:{}: the type `{}` hides the one that every source sees: name it for what it is",
                        file.path, it.line, it.name
                    ),
                ));
            }
        }
        let Some(of) = crate_of(file) else { continue };
        let types = named(&product::tokens(&file.text)).into_iter();
        for it in types.filter(|it| it.is_public) {
            let places = public.entry((of, it.name)).or_default();
            places.push(format!("{}:{}", file.path, it.line));
        }
    }
    let twice = public.into_iter().filter(|(_, places)| places.len() > 1);
    findings.extend(twice.map(|((of, name), places)| {
        let places = places.join(" and ");
        let complaint = format!("{places}: {of} has several public types `{name}`: name each");
        finding(name, complaint)
    }));
    findings
}

fn finding(subject: &str, complaint: String) -> Finding {
    Finding {
        subject: subject.to_owned(),
        count: 1,
        complaint,
    }
}

/// The crate whose product a file belongs to.
fn crate_of(file: &File) -> Option<&str> {
    let (of, rest) = file.path.strip_prefix("crates/")?.split_once('/')?;
    (rest.starts_with("src/") && !product::is_test(rest)).then_some(of)
}

/// The types that these tokens name, those within impls, traits and functions left out.
fn named<'a>(tokens: &[Token<'a>]) -> Vec<Named<'a>> {
    let code: Vec<Token<'a>> = tokens
        .iter()
        .filter(|it| it.kind != Kind::Comment)
        .copied()
        .collect();
    let mut out = Vec::new();
    // Of each block that is open, whether it is a module's; and what began since the last end.
    let (mut open, mut begun) = (Vec::new(), None);
    for (at, token) in code.iter().enumerate() {
        match (token.kind, token.text) {
            (Kind::Sign, "{") => open.push(begun.take() == Some("mod")),
            (Kind::Sign, "}") => {
                open.pop();
                begun = None;
            }
            (Kind::Sign, ";") => begun = None,
            (Kind::Word, word) => {
                let is_first = begun.is_none();
                if is_first && BLOCKS.contains(&word) {
                    begun = Some(word);
                }
                let next = code.get(at + 1).filter(|it| it.kind == Kind::Word);
                let is_item = word != "type" || (is_first && open.iter().all(|it| *it));
                if let Some(name) = next.filter(|_| is_item && TYPES.contains(&word)) {
                    out.push(Named {
                        name: name.text,
                        line: name.line,
                        is_public: is_public(&code[..at]),
                    });
                }
            }
            _ => {}
        }
    }
    out
}

/// `pub` alone stands before an item, of which `unsafe` may be the beginning.
fn is_public(before: &[Token<'_>]) -> bool {
    let mut before = before.iter().rev().skip_while(|it| it.is_word("unsafe"));
    before.next().is_some_and(|it| it.is_word("pub"))
}

#[cfg(test)]
mod test {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let found = check(&Tree::of(files)).into_iter();
        found.map(|it| it.complaint).collect()
    }

    #[test]
    fn two_public_types_of_a_crate_do_not_share_a_name() {
        let one = ("crates/a/src/one.rs", "pub struct Found;\n");
        let other = ("crates/a/src/two.rs", "\npub unsafe trait Found {}\n");
        let found = complaints(&[one, other]);
        assert_eq!(found.len(), 1);
        let places = "crates/a/src/one.rs:1 and crates/a/src/two.rs:2: a has several";
        assert!(found[0].starts_with(places), "{found:?}");
    }

    #[test]
    fn what_is_private_in_another_crate_or_for_tests_may_have_the_name() {
        let files = [
            ("crates/a/src/one.rs", "pub struct Found;"),
            (
                "crates/a/src/two.rs",
                "pub(crate) struct Found; enum Found {}",
            ),
            (
                "crates/a/src/three.rs",
                "#[cfg(test)]\nmod x { pub struct Found; }\n// pub struct Found;\nconst A: &str = \"pub struct Found\";",
            ),
            ("crates/a/src/test.rs", "pub struct Found;"),
            ("crates/a/tests/b.rs", "pub struct Found;"),
            ("crates/b/src/one.rs", "pub struct Found;"),
            (
                "crates/a/src/four.rs",
                "impl X for Y { type Found = u8; } pub trait Z { type Found; fn f() { type Found = u8; } }",
            ),
        ];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }

    #[test]
    fn no_type_is_named_as_one_of_the_prelude() {
        let source = "mod x {\n type Result<T> = X<T>;\n}\nenum Copy {}\npub(crate) struct Sync;\n\
            impl A for B { type Result = u8; }\nfn f() -> Result<Vec<u8>> { use x::{Option}; }\nstruct Vector;";
        let found = complaints(&[("crates/a/tests/b.rs", source)]);
        let lines: Vec<&str> = found
            .iter()
            .filter_map(|it| it.split(": ").next())
            .collect();
        let wanted = [
            "crates/a/tests/b.rs:2",
            "crates/a/tests/b.rs:4",
            "crates/a/tests/b.rs:5",
        ];
        assert_eq!(lines, wanted, "{found:?}");
    }
}
