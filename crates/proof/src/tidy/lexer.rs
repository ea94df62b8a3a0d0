//! The tokens of a Rust source, as far as the checks need them: words, strings, comments and signs,
//! each with its line.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// An identifier or a keyword; a raw one without its `r#`.
    Word,
    /// A string, without its quotes, as it stands in the source.
    Text,
    /// A comment, with its slashes.
    Comment,
    /// A sign; `::`, `->`, `=>` and `..` are one.
    Sign,
    /// A number, a character, a lifetime.
    Other,
}

/// A token, where it stands in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Of its first character, from 1.
    pub(super) line: usize,
}

impl Token<'_> {
    /// It is this sign.
    pub(super) fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// It is an identifier or keyword with just this text.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

/// The tokens of `source`. What is not Rust makes tokens, too, and no error.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
    };
    let mut out = Vec::new();
    while let Some(token) = lexer.token() {
        out.push(token);
    }
    out
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Option<Token<'a>> {
        let space = self.rest.len() - self.rest.trim_start().len();
        self.take(space);
        let first = self.rest.chars().next()?;
        let line = self.line;
        let (kind, text) = if self.rest.starts_with("//") {
            (Kind::Comment, self.take(line_length(self.rest)))
        } else if self.rest.starts_with("/*") {
            (Kind::Comment, self.take(block_length(self.rest)))
        } else if let Some((before, length, after)) = string(self.rest) {
            self.take(before);
            let text = self.take(length);
            self.take(after);
            (Kind::Text, text)
        } else if let Some(length) = character(self.rest) {
            (Kind::Other, self.take(length))
        } else if first.is_ascii_digit() {
            (Kind::Other, self.take(number_length(self.rest)))
        } else if is_of_word(first) {
            if self.rest.starts_with("r#") {
                self.take(2);
            }
            (Kind::Word, self.take(word_length(self.rest)))
        } else {
            let double = ["::", "->", "=>", ".."]
                .iter()
                .any(|it| self.rest.starts_with(it));
            let length = if double { 2 } else { first.len_utf8() };
            (Kind::Sign, self.take(length))
        };
        Some(Token { kind, text, line })
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        self.line += taken.bytes().filter(|it| *it == b'\n').count();
        taken
    }
}

pub(super) fn is_of_word(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

/// The words of a name: `HTTPServer_of2` is http, server, of2.
pub(super) fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, it) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1);
        let is_hump = it.is_ascii_uppercase()
            && before.is_some_and(|before| {
                let ends_capitals =
                    before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase);
                before.is_ascii_lowercase() || before.is_ascii_digit() || ends_capitals
            });
        if *it == '_' || is_hump {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| *it != '_') {
            word.push(it.to_ascii_lowercase());
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// Block comments nest.
fn block_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn word_length(text: &str) -> usize {
    text.find(|it| !is_of_word(it)).unwrap_or(text.len())
}

fn number_length(text: &str) -> usize {
    let whole = word_length(text);
    let rest = &text[whole..];
    let mut after = rest.chars();
    let is_fraction =
        after.next() == Some('.') && after.next().is_some_and(|it| it.is_ascii_digit());
    if is_fraction {
        whole + 1 + word_length(&rest[1..])
    } else {
        whole
    }
}

/// The lengths before, in and after the quotes of a string that begins here: `"`, `b"`, `c"`, `r#"`
/// and so on.
fn string(text: &str) -> Option<(usize, usize, usize)> {
    let prefix = text.find(|it| !matches!(it, 'b' | 'c' | 'r'))?;
    let is_raw = match &text[..prefix] {
        "" | "b" | "c" => false,
        "r" | "br" | "cr" => true,
        _ => return None,
    };
    let rest = &text[prefix..];
    let marks = rest.len() - rest.trim_start_matches('#').len();
    let inside = rest[marks..].strip_prefix('"')?;
    if marks > 0 && !is_raw {
        return None;
    }
    let length = if is_raw {
        let end = format!("\"{}", &rest[..marks]);
        inside.find(&end).unwrap_or(inside.len())
    } else {
        plain_length(inside)
    };
    Some((prefix + marks + 1, length, 1 + marks))
}

fn plain_length(inside: &str) -> usize {
    let mut is_escaped = false;
    for (at, it) in inside.char_indices() {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    inside.len()
}

/// The length of a character or a lifetime that begins here.
fn character(text: &str) -> Option<usize> {
    let prefix = usize::from(text.starts_with("b'"));
    let inside = text[prefix..].strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    let (_, first) = chars.next()?;
    let (second_at, second) = chars.next()?;
    if first == '\\' {
        let after = second_at + second.len_utf8();
        let end = inside[after..].find('\'')?;
        return Some(prefix + 1 + after + end + 1);
    }
    if second == '\'' {
        return Some(prefix + 1 + second_at + 1);
    }
    Some(prefix + 1 + word_length(inside))
}

#[cfg(test)]
mod test {
    use super::*;

    fn texts(source: &str) -> Vec<(Kind, &str)> {
        let all = tokens(source);
        all.iter().map(|it| (it.kind, it.text)).collect()
    }

    #[test]
    fn strings_comments_characters_and_lifetimes_are_kept_apart() {
        let source = r##"fn f<'a>(x: &'a str) -> char { /* a /* b */ c */ g("q\"'", r#"s"t"#, b'\'', '"') } // end"##;
        let all = texts(source);
        let strings: Vec<_> = all.iter().filter(|it| it.0 == Kind::Text).collect();
        assert_eq!(strings, [&(Kind::Text, "q\\\"'"), &(Kind::Text, "s\"t")]);
        let comments: Vec<_> = all.iter().filter(|it| it.0 == Kind::Comment).collect();
        assert_eq!(comments.len(), 2);
        assert_eq!(comments[1].1, "// end");
        let others: Vec<_> = all.iter().filter(|it| it.0 == Kind::Other).collect();
        assert_eq!(others.len(), 4, "{others:?}");
        assert!(all.contains(&(Kind::Sign, "->")));
    }

    #[test]
    fn lines_are_counted_through_what_spans_several() {
        let all = tokens("a /*\n*/ b \"x\ny\" c::d r#fn 1.5_f32 1..2");
        let lines: Vec<_> = all.iter().map(|it| (it.text, it.line)).collect();
        let wanted = [("a", 1), ("/*\n*/", 1), ("b", 2), ("x\ny", 2), ("c", 3)];
        assert_eq!(lines[..5], wanted);
        let rest: Vec<_> = lines[5..].iter().map(|it| it.0).collect();
        assert_eq!(rest, ["::", "d", "fn", "1.5_f32", "1", "..", "2"]);
    }

    #[test]
    fn names_are_cut_at_their_humps_and_underscores() {
        let cases = [
            ("LunState", "lun state"),
            ("lun_state", "lun state"),
            ("HTTPServer_of2", "http server of2"),
            ("LUN_STATE", "lun state"),
            ("Lun2State", "lun2 state"),
            ("__x", "x"),
        ];
        for (name, wanted) in cases {
            assert_eq!(words(name).join(" "), wanted);
        }
    }

    #[test]
    fn what_has_no_end_ends_with_the_source() {
        for source in ["\"abc", "/* abc", "r#\"abc", "'", "'\\", "b'", "é\"é"] {
            let length: usize = tokens(source).iter().map(|it| it.text.len()).sum();
            assert!(length <= source.len(), "{source}");
        }
    }
}
