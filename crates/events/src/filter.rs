//! Conditions that rows have to fulfil, and the part of a question that they become.

use database::rusqlite::types::Value;

/// A condition on a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// The column, one of those that whoever answers names.
    pub column: &'static str,
    /// What stands there; with `*` at its end, what it begins with.
    pub is: String,
}

/// The text behind `WHERE`, and its parameters.
#[derive(Default)]
pub(crate) struct Conditions {
    text: String,
    values: Vec<Value>,
}

impl Conditions {
    /// `what` compares with the last parameter, which it calls `?`.
    pub(crate) fn and(&mut self, what: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        let place = format!("?{}", self.values.len());
        let joint = if self.text.is_empty() { "" } else { " AND " };
        self.text.push_str(joint);
        self.text.push_str(&what.replace('?', &place));
    }

    /// `expression`: what the column is in the file.
    pub(crate) fn filter(&mut self, expression: &str, is: &str) {
        match is.strip_suffix('*') {
            Some(beginning) => {
                let begins = format!("substr({expression}, 1, length(?)) = ?");
                self.and(&begins, beginning.to_owned());
            }
            // What is left out of a document is empty.
            None => self.and(&format!("ifnull({expression}, '') = ?"), is.to_owned()),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn values(self) -> Vec<Value> {
        self.values
    }
}
