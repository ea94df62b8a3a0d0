//! A text cut into single words, with what binds them together.

use crate::tidy::lexer::{self, Kind};

/// One word, in lower case; a name such as `LunState` or `lun_state` is two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) line: usize,
    /// The name that it is a part of, by its number in the text; `None` in a sentence.
    pub(super) name: Option<usize>,
    /// It follows the one before with nothing between but space: both may be of one phrase.
    pub(super) follows: bool,
    /// It stands in a string of a Rust source.
    pub(super) is_message: bool,
}

/// The words of a Rust source: of its names, comments and strings.
pub(super) fn of_rust(source: &str) -> Vec<Piece> {
    let mut cutter = Cutter::default();
    let mut before = Kind::Other;
    for token in lexer::tokens(source) {
        cutter.is_message = token.kind == Kind::Text;
        match token.kind {
            Kind::Word => cutter.name(token.text, token.line),
            Kind::Comment => {
                cutter.is_apart |= before != Kind::Comment;
                cutter.prose(token.text, token.line);
            }
            Kind::Text if token.text.chars().all(is_of_path) => cutter.path(token.text, token.line),
            Kind::Text => {
                cutter.is_apart = true;
                cutter.prose(token.text, token.line);
                cutter.is_apart = true;
            }
            Kind::Sign | Kind::Other => cutter.is_apart = true,
        }
        before = token.kind;
    }
    cutter.pieces
}

/// The words of any other text.
pub(super) fn of_text(text: &str) -> Vec<Piece> {
    let mut cutter = Cutter::default();
    cutter.prose(text, 1);
    cutter.pieces
}

/// The words of the path of a file.
pub(super) fn of_path(path: &str) -> Vec<Piece> {
    let mut cutter = Cutter::default();
    cutter.path(path, 1);
    cutter.pieces
}

/// What names of files are made of.
fn is_of_path(it: char) -> bool {
    lexer::is_of_word(it) || "/.-".contains(it)
}

#[derive(Default)]
struct Cutter {
    pieces: Vec<Piece>,
    names: usize,
    /// Something stands between the last word and the next.
    is_apart: bool,
    /// It cuts a string of a Rust source.
    is_message: bool,
}

impl Cutter {
    /// The path of a file, or any part of one: the words between two hyphens are of one name.
    fn path(&mut self, path: &str, line: usize) {
        for part in path.split(['/', '.']) {
            self.name(&part.replace('-', "_"), line);
        }
    }

    /// A name of code: nothing around it is of one phrase with it.
    fn name(&mut self, name: &str, line: usize) {
        self.is_apart = true;
        self.chunk(name, line, true);
        self.is_apart = true;
    }

    /// Sentences, with names in them. Marks of comments and quotes at the start of a line part
    /// nothing.
    fn prose(&mut self, text: &str, line: usize) {
        let mut line = line;
        let mut is_quoted = false;
        let mut is_start = true;
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if lexer::is_of_word(next) {
                let length = rest.find(|it| !lexer::is_of_word(it)).unwrap_or(rest.len());
                self.chunk(&rest[..length], line, is_quoted);
                is_start = false;
                rest = &rest[length..];
                continue;
            }
            is_quoted ^= next == '`';
            match next {
                '\n' => {
                    line += 1;
                    is_start = true;
                    is_quoted = false;
                }
                '-' => {}
                '/' | '!' | '#' | '*' | '>' if is_start => {}
                _ if next.is_whitespace() => {}
                _ => self.is_apart = true,
            }
            rest = &rest[next.len_utf8()..];
        }
    }

    fn chunk(&mut self, chunk: &str, line: usize, is_name: bool) {
        let words = lexer::words(chunk);
        let is_name = is_name || words.len() > 1;
        let name = is_name.then_some(self.names);
        self.names += usize::from(is_name);
        for text in words {
            let follows = !std::mem::take(&mut self.is_apart);
            self.pieces.push(Piece {
                text,
                line,
                name,
                follows,
                is_message: self.is_message,
            });
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn joined(pieces: &[Piece]) -> String {
        let mut out = String::new();
        for it in pieces {
            out.push(if it.follows { ' ' } else { '|' });
            out.push_str(&it.text);
            out.push_str(if it.name.is_some() { "!" } else { "" });
        }
        out
    }

    #[test]
    fn a_phrase_goes_on_over_lines_of_a_comment_and_ends_at_a_sign() {
        let source = "/// One two\n    /// three, four-five\nfn six_seven() { eight(\"nine\", \"ten `a_b` c\"); }";
        let wanted = "|one two three|four five|fn!|six! seven!|eight!|nine!|ten|a! b!|c";
        assert_eq!(joined(&of_rust(source)), wanted);
        let lines: Vec<_> = of_rust(source).iter().map(|it| it.line).collect();
        assert_eq!(lines[..6], [1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn documents_and_paths_are_cut_too() {
        let text = "# A\n- b `c` dE\n| f |";
        assert_eq!(joined(&of_text(text)), " a b|c!|d! e!|f");
        assert_eq!(joined(&of_path("ab/c_d/e-f.rs")), "|ab!|c! d!|e! f!|rs!");
    }

    #[test]
    fn the_name_of_a_file_in_a_string_is_a_name_and_a_sentence_is_none() {
        let source = "a(\"b/c_d.e\", \"f-g\", \"h i.\")";
        let pieces = of_rust(source);
        assert_eq!(joined(&pieces), "|a!|b!|c! d!|e!|f! g!|h i");
        assert!(pieces.iter().all(|it| it.is_message != (it.text == "a")));
    }
}
