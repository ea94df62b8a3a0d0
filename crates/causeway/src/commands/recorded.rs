//! What questions about recorded things have in common.

use client::segment;
use manifest::code::Code;
use manifest::problem::Problem;
use std::str::FromStr;

/// Words of `--sort`.
pub(super) const ORDERS: &[&str] = &[OLDEST, NEWEST];
const OLDEST: &str = "time";
const NEWEST: &str = "-time";

/// In which order a log is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// From the first entry on.
    OldestFirst,
    /// From the last entry back.
    NewestFirst,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Self::OldestFirst => OLDEST,
            Self::NewestFirst => NEWEST,
        }
    }

    /// Turns rows as the API answers them into the order in which they are shown: without a word
    /// of it the newest ones, the newest last.
    pub(super) fn arrange<T>(order: Option<Self>, rows: &mut [T]) {
        if order.is_none() {
            rows.reverse();
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            OLDEST => Ok(Self::OldestFirst),
            NEWEST => Ok(Self::NewestFirst),
            _ => Err("write time (the oldest first) or -time (the newest first)".to_owned()),
        }
    }
}

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

    /// In which order rows come, where somebody says so.
    pub(super) fn sort(&mut self, order: Option<Order>) {
        self.maybe("sort", order.map(Order::name));
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
    fn a_log_is_listed_from_either_end_and_the_newest_last_where_nobody_says() {
        let shown = |order: Option<Order>| {
            let mut asked = Asked::new("/p");
            asked.sort(order);
            // As the API answers: the newest first, but where the oldest is asked for.
            let mut rows = [3, 2, 1];
            if order == Some(Order::OldestFirst) {
                rows.reverse();
            }
            Order::arrange(order, &mut rows);
            (asked.path().to_owned(), rows)
        };
        assert_eq!(shown(None), ("/p".to_owned(), [1, 2, 3]));
        assert_eq!(
            shown("time".parse().ok()),
            ("/p?sort=time".to_owned(), [1, 2, 3])
        );
        assert_eq!(
            shown("-time".parse().ok()),
            ("/p?sort=-time".to_owned(), [3, 2, 1])
        );
        assert!("name".parse::<Order>().unwrap_err().contains("-time"));
    }

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
