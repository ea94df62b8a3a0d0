//! What questions about recorded things have in common.

use crate::client::segment;
use manifest::code::Code;
use manifest::problem::Problem;

/// A path with parameters.
pub(super) struct Asked {
    path: String,
    joint: char,
}

impl Asked {
    pub(super) fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            joint: '?',
        }
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        let value = segment(value);
        self.path.push_str(&format!("{}{name}={value}", self.joint));
        self.joint = '&';
    }

    pub(super) fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// From a time on; `2h` is so long ago.
    pub(super) fn since(&mut self, since: Option<&str>) {
        self.maybe("from", since.map(moment).as_deref());
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// A time as the API takes it: an option cannot begin with a dash.
pub(super) fn moment(text: &str) -> String {
    let is_span = text.ends_with(['s', 'm', 'h', 'd', 'w', 'y']) && !text.starts_with('-');
    if is_span {
        format!("-{text}")
    } else {
        text.to_owned()
    }
}

/// Kind and name of an object.
pub(super) fn object(text: &str) -> Result<(&str, &str), Problem> {
    text.split_once(':').ok_or_else(|| {
        let detail = format!("\"{text}\" is no object");
        Problem::new(Code::CommandLine, detail)
            .hint("write KIND:NAME, such as lun:vm01 or host:esx01")
    })
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn parameters_are_part_of_the_path_and_spans_are_in_the_past() {
        let mut asked = Asked::new("/p");
        asked.add("filter", "name:a b&c");
        asked.since(Some("2h"));
        assert_eq!(asked.path(), "/p?filter=name:a%20b%26c&from=-2h");
        assert_eq!(moment("2026-11-26T10:00:00Z"), "2026-11-26T10:00:00Z");
        assert_eq!(moment("1800000000"), "1800000000");
        assert_eq!(object("lun:a:b").unwrap(), ("lun", "a:b"));
        assert!(object("lun").is_err());
    }
}
