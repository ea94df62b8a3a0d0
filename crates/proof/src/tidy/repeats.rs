//! Comments of public items that say no more than the name does, or nothing at all ("What it is."):
//! a reader has read them for nothing.

use super::Finding;
use super::lexer::{self, Kind, Token};
use super::tree::Tree;
use std::collections::BTreeSet;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (name, line) in empty(&file.text) {
            findings.push(Finding {
                subject: "items".to_owned(),
                count: 1,
                complaint: format!(
                    "{}:{line}: the comment of `{name}` says no more than its name: say what nobody can guess, such \
                     as its unit, its bounds or why it is there",
                    file.path
                ),
            });
        }
    }
    findings
}

/// Names and lines of the public items and fields whose comments have no word that their names have
/// not, or no word but fillers.
fn empty(source: &str) -> Vec<(String, usize)> {
    let tokens = lexer::tokens(source);
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (words, after) = comment(&tokens, at);
        if after == at {
            at += 1;
            continue;
        }
        at = after;
        let is_filler = words.iter().all(|it| FILLERS.contains(&it.as_str()));
        let words: BTreeSet<String> = words.iter().map(|it| stem(it)).collect();
        if let Some(name) = public_name(&tokens[at..]) {
            let of_name: BTreeSet<String> =
                lexer::words(name.text).iter().map(|it| stem(it)).collect();
            if is_filler || words.is_subset(&of_name) {
                out.push((name.text.to_owned(), name.line));
            }
        }
    }
    out
}

/// The words that are not silent in the documentation that begins at `at`, and where it has ended.
fn comment(tokens: &[Token<'_>], at: usize) -> (BTreeSet<String>, usize) {
    let lines = tokens[at..]
        .iter()
        .take_while(|it| it.kind == Kind::Comment && it.text.starts_with("///"));
    let mut words = BTreeSet::new();
    let mut after = at;
    for line in lines {
        let chunks = line.text.split(|it: char| !lexer::is_of_word(it));
        for word in chunks.flat_map(lexer::words) {
            if !SILENT.contains(&word.as_str()) {
                words.insert(word);
            }
        }
        after += 1;
    }
    (words, after)
}

/// Words that say nothing by themselves, in order.
const SILENT: [&str; 38] = [
    "a", "an", "and", "are", "as", "at", "be", "been", "by", "for", "from", "get", "gets", "has",
    "have", "here", "if", "in", "into", "is", "it", "its", "of", "on", "or", "return", "returns",
    "s", "so", "that", "the", "there", "this", "to", "was", "which", "whose", "with",
];

/// Words that ask or point, in order: a comment of these alone leaves the reader with the question.
const FILLERS: [&str; 22] = [
    "all", "did", "do", "does", "done", "had", "he", "how", "kind", "one", "them", "these", "they",
    "thing", "those", "were", "what", "when", "where", "who", "whom", "why",
];

/// Words that may stand between `pub` and the name of an item.
const KEYWORDS: [&str; 14] = [
    "async", "const", "crate", "enum", "extern", "fn", "macro", "mod", "mut", "static", "struct",
    "trait", "type", "unsafe",
];

/// A word without what grammar adds to it, crudely.
fn stem(word: &str) -> String {
    let mut stem = word;
    for end in ["ing", "ed", "es", "s", "e"] {
        if let Some(shorter) = stem.strip_suffix(end).filter(|it| it.len() > 2) {
            stem = shorter;
        }
    }
    stem.to_owned()
}

/// The name of the public item or field that begins here, after its attributes.
fn public_name<'a>(tokens: &[Token<'a>]) -> Option<Token<'a>> {
    let mut rest = tokens;
    while rest.first()?.is("#") {
        rest = rest.get(after_brackets(rest, 1)..)?;
    }
    if !rest.first().is_some_and(|it| it.is_word("pub")) {
        return None;
    }
    rest = &rest[1..];
    if rest.first()?.is("(") {
        rest = rest.get(after_brackets(rest, 0)..)?;
    }
    let mut words = rest
        .iter()
        .take_while(|it| it.kind == Kind::Word || it.kind == Kind::Text);
    let is_before_name = |it: &&Token<'_>| it.kind == Kind::Text || KEYWORDS.contains(&it.text);
    words.find(|it| !is_before_name(it)).copied()
}

/// Where the brackets have closed that open at `at`.
fn after_brackets(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(at) {
        if token.is("(") || token.is("[") {
            depth += 1;
        } else if token.is(")") || token.is("]") {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod test {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        empty(source).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_comment_that_repeats_the_name_is_found_on_every_kind_of_item() {
        let source = [
            "/// The shard.\npub struct Shard {",
            "    /// Its sizes, in the shard's.\n    pub size_of_shard: u8 }",
            "/// Sets\n/// the size.\n#[x(\"y\")]\npub(crate) const unsafe fn set_size() {}",
            "/// \npub mod empty;",
            "/// An open shard.\npub type OpenShards = u8;",
        ];
        let source = source.join("\n");
        let wanted = ["Shard", "size_of_shard", "set_size", "empty", "OpenShards"];
        assert_eq!(names(&source), wanted);
        assert_eq!(empty(&source)[2].1, 8);
    }

    #[test]
    fn a_comment_of_fillers_is_found_where_one_word_that_says_something_is_enough() {
        let said = [
            "What.",
            "The kind.",
            "What it is.",
            "What there is.",
            "All of them.",
            "How they are.",
        ];
        for comment in said {
            let source = format!("/// {comment}\npub struct Shard;");
            assert_eq!(names(&source), ["Shard"], "{comment}");
        }
        for comment in ["What it costs.", "All of them, in order.", "How often."] {
            let source = format!("/// {comment}\npub struct Shard;");
            assert_eq!(names(&source), Vec::<String>::new(), "{comment}");
        }
    }

    #[test]
    fn one_word_more_is_enough_and_what_is_not_public_is_free() {
        let free = [
            "/// The shard of a core.\npub struct Shard;",
            "/// The size.\nfn size() {}",
            "// The size.\npub fn size() {}",
            "/// The size.\n///\n/// In bytes.\npub fn size() {}",
            "//! The a.\npub mod a;",
        ];
        for source in free {
            assert_eq!(names(source), Vec::<String>::new(), "{source}");
        }
    }
}
