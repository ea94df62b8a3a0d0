//! Lists: the rows that somebody asked for, in order, a page at a time. Pure: rows and a query come
//! in, rows and a cursor go out.
//!
//! **Contract.** Without a query a list is whole and in its own order. With `limit` it is the same
//! array, cut, and a cursor says where to go on. A cursor names the last row, not its place: rows
//! that come and go between two pages are neither passed over nor shown twice, but for those whose
//! own order changes.

use crate::code::Code;
use crate::name::did_you_mean;
use crate::problem::Problem;
use serde_json::{Value, json};
use std::cmp::Ordering;

/// The most rows of a page.
pub const LIMIT_MAX: usize = 10_000;

/// What may be asked of a list.
#[derive(Clone, Copy)]
pub struct Columns {
    /// Members by which rows are found and put in order.
    pub known: &'static [&'static str],
    /// The one of them that no two rows have in common; empty: only whole rows differ.
    pub key: &'static str,
    /// The list's own order, as `sort` has it; empty: that of the key.
    pub order: &'static str,
}

/// What somebody asked of a list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Query {
    limit: Option<usize>,
    after: Option<(Value, Value)>,
    filters: Vec<(String, String)>,
    sort: Option<(String, bool)>,
}

/// What is shown, and where the next page begins.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// What fits, in order.
    pub rows: Vec<Value>,
    /// A cursor, where there is more.
    pub next: Option<String>,
}

fn wrong(detail: String) -> Problem {
    Problem::new(Code::BadRequest, detail)
}

impl Query {
    /// Takes a parameter; `Ok(false)`: it is none of a list's.
    ///
    /// # Errors
    /// What is wrong with its value.
    pub fn take(&mut self, columns: Columns, name: &str, value: &str) -> Result<bool, Problem> {
        let known = |column: &str| {
            if columns.known.contains(&column) {
                return Ok(column.to_owned());
            }
            let guess = did_you_mean(column, columns.known.iter().copied());
            let all = columns.known.join(", ");
            Err(wrong(format!(
                "{name}={value}: no column \"{column}\"{guess}; there are {all}"
            )))
        };
        match name {
            "limit" => match value.parse() {
                Ok(limit @ 1..=LIMIT_MAX) => self.limit = Some(limit),
                _ => return Err(wrong(format!("limit={value}: write 1 to {LIMIT_MAX}"))),
            },
            "cursor" => {
                let after = serde_json::from_str(value);
                let not_ours = |_| wrong("the cursor is none of an earlier answer".to_owned());
                self.after = Some(after.map_err(not_ours)?);
            }
            "filter" => {
                let (column, is) = value.split_once(':').ok_or_else(|| {
                    wrong(format!(
                        "filter={value}: write filter=COLUMN:VALUE, or COLUMN:BEGINNING*"
                    ))
                })?;
                self.filters.push((known(column)?, is.to_owned()));
            }
            "sort" => {
                let (column, down) = direction(value);
                self.sort = Some((known(column)?, down));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Only a part, or another order, was asked for.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// What of `rows` is shown.
    pub fn select(&self, columns: Columns, mut rows: Vec<Value>) -> Page {
        let filters = &self.filters;
        rows.retain(|row| filters.iter().all(|(column, is)| fits(&row[column], is)));
        let (column, down) = match &self.sort {
            Some((column, down)) => (column.as_str(), *down),
            None if columns.order.is_empty() => (columns.key, false),
            None => direction(columns.order),
        };
        let key = |row: &Value| match columns.key {
            "" => Value::String(row.to_string()),
            key => row[key].clone(),
        };
        let place = |row: &Value| (row[column].clone(), key(row));
        let order = |a: &(Value, Value), b: &(Value, Value)| {
            let first = compare(&a.0, &b.0);
            let first = if down { first.reverse() } else { first };
            first.then_with(|| compare(&a.1, &b.1))
        };
        let is_cut = self.limit.is_some() || self.after.is_some();
        if self.sort.is_some() || is_cut {
            rows.sort_by(|a, b| order(&place(a), &place(b)));
        }
        if let Some(after) = &self.after {
            rows.retain(|row| order(&place(row), after) == Ordering::Greater);
        }
        let limit = self.limit.unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| has_more).map(place);
        let next = last.map(|(by, key)| json!([by, key]).to_string());
        Page { rows, next }
    }
}

/// The column that `sort` names, and whether its largest value stands first.
fn direction(sort: &str) -> (&str, bool) {
    match sort.strip_prefix('-') {
        Some(column) => (column, true),
        None => (sort, false),
    }
}

/// Text, numbers and switches as people write them; `*` at the end: whatever begins so.
fn fits(value: &Value, is: &str) -> bool {
    let text = match value {
        Value::String(text) => text.clone(),
        // What is left out of a document is empty.
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    match is.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == is,
    }
}

/// Nothing is before switches, these before numbers, these before text.
fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match (a.as_u64(), b.as_u64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (_, _) => a
                .as_f64()
                .partial_cmp(&b.as_f64())
                .unwrap_or(Ordering::Equal),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const COLUMNS: Columns = Columns {
        known: &["name", "size", "pool"],
        key: "name",
        order: "",
    };

    fn query(parameters: &[(&str, &str)]) -> Query {
        let mut query = Query::default();
        for (name, value) in parameters {
            assert!(query.take(COLUMNS, name, value).unwrap(), "{name}");
        }
        query
    }

    fn rows() -> Vec<Value> {
        let row =
            |name: &str, size: u64, pool: &str| json!({ "name": name, "size": size, "pool": pool });
        vec![
            row("d", 2, "x"),
            row("a", 3, "y"),
            row("c", 2, "x"),
            row("b", 10, "x"),
        ]
    }

    fn names(page: &Page) -> String {
        page.rows
            .iter()
            .filter_map(|row| row["name"].as_str())
            .collect()
    }

    #[test]
    fn without_a_query_a_list_is_as_it_was() {
        let page = query(&[]).select(COLUMNS, rows());
        assert_eq!((names(&page).as_str(), page.next), ("dacb", None));
    }

    #[test]
    fn what_is_cut_keeps_the_order_of_the_list() {
        let newest_first = Columns {
            order: "-size",
            ..COLUMNS
        };
        let first = query(&[("limit", "3")]).select(newest_first, rows());
        assert_eq!(names(&first), "bac");
        let cursor = first.next.unwrap();
        let rest = query(&[("limit", "3"), ("cursor", &cursor)]).select(newest_first, rows());
        assert_eq!((names(&rest).as_str(), rest.next), ("d", None));
    }

    #[test]
    fn rows_are_found_and_put_in_order() {
        let shown = |parameters: &[(&str, &str)]| names(&query(parameters).select(COLUMNS, rows()));
        assert_eq!(shown(&[("sort", "name")]), "abcd");
        assert_eq!(shown(&[("sort", "-size")]), "bacd");
        assert_eq!(shown(&[("filter", "pool:x"), ("sort", "size")]), "cdb");
        assert_eq!(shown(&[("filter", "size:2"), ("filter", "name:d*")]), "d");
        assert_eq!(shown(&[("filter", "pool:")]), "");
    }

    #[test]
    fn pages_have_every_row_once_although_rows_come_and_go_between_them() {
        for sort in ["name", "-name", "size", "-size", "pool"] {
            let whole = names(&query(&[("sort", sort)]).select(COLUMNS, rows()));
            let (mut seen, mut cursor) = (String::new(), None::<String>);
            for turn in 0.. {
                let mut now = rows();
                // One that stands before whatever was shown comes, and goes again.
                if turn == 1 && sort == "name" {
                    now.push(json!({ "name": "A", "size": 0, "pool": "" }));
                }
                let mut all = vec![("sort", sort), ("limit", "1")];
                all.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
                let page = query(&all).select(COLUMNS, now);
                seen.push_str(&names(&page));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, whole, "{sort}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_what_can_be() {
        for (name, value, why) in [
            ("limit", "0", "1 to 10000"),
            ("limit", "x", "1 to 10000"),
            ("cursor", "x", "earlier answer"),
            ("sort", "szie", "did you mean \"size\""),
            ("filter", "size", "COLUMN:VALUE"),
            ("filter", "secret:x", "there are name, size, pool"),
        ] {
            let refused = Query::default().take(COLUMNS, name, value).unwrap_err();
            assert!(refused.detail.contains(why), "{name}={value}: {refused}");
        }
        assert!(!Query::default().take(COLUMNS, "colour", "red").unwrap());
    }
}
