//! Text for people: counts of things, and where a file is no text.

/// `1 session`, `2 sessions`; `one` is a word whose plural ends with an s.
#[must_use]
pub fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    }
}

/// Where bytes are no UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotText {
    /// The line, from 1.
    pub line: usize,
    /// The byte that cannot be there.
    pub byte: u8,
}

impl std::fmt::Display for NotText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the byte {:02X}h is not UTF-8, in which the file has to be written",
            self.byte
        )
    }
}

/// A file's bytes as text.
///
/// # Errors
/// The first byte that is none.
pub fn utf8(bytes: Vec<u8>) -> Result<String, NotText> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let before = bytes.get(..at).unwrap_or_default();
        NotText {
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            byte: bytes.get(at).copied().unwrap_or_default(),
        }
    })
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(0, "LUN"), "0 LUNs");
        assert_eq!(counted(1, "session"), "1 session");
        assert_eq!(counted(2, "session"), "2 sessions");
    }

    #[test]
    fn the_line_of_the_first_byte_that_is_no_text_is_reported() {
        assert_eq!(utf8("a\u{e4}\n".into()).unwrap(), "a\u{e4}\n");
        let found = utf8(b"a = 1\nb = 2\nname = \"B\xFCro\"\n".to_vec()).unwrap_err();
        assert_eq!((found.line, found.byte), (3, 0xFC));
        // Cut off in the middle of a character.
        assert_eq!(utf8(vec![b'\n', 0xE2, 0x82]).unwrap_err().line, 2);
    }
}
