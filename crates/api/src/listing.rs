//! Lists as handlers answer them: which rows there are to ask for, and the answer's headers.

use crate::answer::{Answer, TAG, tagged};
use crate::describe::{Operation, Parameter, Part, Reply, Schemas};
use crate::parameters::decode;
use crate::parts::Refused;
use crate::plain_answer::problem_response;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use manifest::code::Code;
use manifest::disks::{BayView, DiskView};
use manifest::facts::{PoolFacts, RefusalFacts, SessionFacts};
use manifest::list::{Columns, LIMIT_MAX, Query};
use manifest::name::did_you_mean;
use manifest::orphan::Orphan;
use manifest::problem::Problem;
use manifest::view::{GrantView, HostView, Kept, LunView, TargetView};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// A row of a list.
pub(super) trait Row: Serialize + JsonSchema {
    /// By what rows are found and put in order.
    const COLUMNS: Columns;
    /// A switch that adds rows, and what it adds.
    const MORE: Option<(&'static str, &'static str)> = None;
    /// Rows can be asked for by their names, so that the others need not be made.
    const NAMED: bool = false;
}

/// Rows of lists: `TYPE: "KEY" in [COLUMNS], by "ORDER"`, as [`Columns`] has it.
macro_rules! rows {
    ($($row:ty: $key:literal in $known:expr, by $order:literal;)*) => {
        $(impl $crate::listing::Row for $row {
            const COLUMNS: manifest::list::Columns =
                manifest::list::Columns { known: &$known, key: $key, order: $order };
        })*
    };
}
pub(crate) use rows;

rows!(
    TargetView: "name" in ["name", "iqn", "portal_group", "maintenance", "sessions"], by "";
    HostView: "name" in ["name", "sessions"], by "";
    GrantView: "name" in ["name", "host", "target", "lun", "lun_id", "read_only"], by "";
    PoolFacts: "name" in ["name", "path", "state", "layout", "total", "used", "available"], by "";
    SessionFacts: "id" in [
        "id", "host", "initiator", "target", "from", "portal", "core", "since", "in_flight",
    ], by "";
    RefusalFacts: "" in ["at", "times", "initiator", "from", "target", "portal", "code", "status"], by "-at";
    DiskView: "id" in [
        "id", "model", "serial", "wwn", "capacity_bytes", "health", "smart", "bay", "read_at", "missing_since",
    ], by "";
    BayView: "name" in ["name", "enclosure", "slot", "state", "status", "disk"], by "";
    Orphan: "" in ["pool", "naa", "name", "file", "size_bytes", "removed", "is_foreign"], by "";
    Kept: "generation" in ["generation", "written", "in_force", "luns"], by "-generation";
);

impl Row for LunView {
    const COLUMNS: Columns = Columns {
        known: &[
            "name",
            "state",
            "size",
            "allocated",
            "block_size",
            "thin",
            "backing",
            "pool",
            "cache",
            "naa",
            "serial",
            "in_flight",
            "verified",
        ],
        key: "name",
        order: "",
    };
    const MORE: Option<(&'static str, &'static str)> = Some((
        "removed",
        "Also list LUNs that were deleted and keep their data.",
    ));
    const NAMED: bool = true;
}

/// The parameter that names rows, and how many it may name.
const NAME: &str = "name";
const NAMES_MAX: usize = 256;

/// The parameter that leaves members out.
const WITHOUT: &str = "without";

/// The members of a row, by its schema.
fn all_members<R: Row>() -> Vec<String> {
    let schema = schemars::schema_for!(R);
    let members = schema.get("properties").and_then(Value::as_object);
    members
        .map(|it| it.keys().cloned().collect())
        .unwrap_or_default()
}

/// The members that `value` names.
fn members<R: Row>(value: &str) -> Result<Vec<String>, Problem> {
    let all = all_members::<R>();
    let known = |name: &str| {
        if all.iter().any(|it| it == name) {
            return Ok(name.to_owned());
        }
        let guess = did_you_mean(name, all.iter().map(String::as_str));
        let detail = format!(
            "{WITHOUT}={value}: no member \"{name}\"{guess}; there are {}",
            all.join(", ")
        );
        Err(Problem::new(Code::BadRequest, detail))
    };
    value.split(',').map(known).collect()
}

/// A row without some members. Its text is cut: a tree of values costs twice as much.
fn lean(row: &impl Serialize, without: &[String]) -> Option<Box<RawValue>> {
    let text = serde_json::to_string(row).ok()?;
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(&text).ok()?;
    members.retain(|member, _| without.iter().all(|it| it != member));
    to_raw_value(&members).ok()
}

/// What was asked of a list of `R`.
pub(super) struct Listing<R> {
    query: Query,
    /// The members that are left out of each row.
    without: Vec<String>,
    /// The rows that are asked for; none: all.
    pub(super) names: Vec<String>,
    /// The switch of [`Row::MORE`] is on.
    pub(super) more: bool,
    /// The path with all parameters but the cursor.
    path: String,
    row: PhantomData<fn() -> R>,
}

impl<R: Row> Listing<R> {
    fn read(path: &str, query: &str) -> Result<Self, Problem> {
        let mut out = Self {
            query: Query::default(),
            without: Vec::new(),
            names: Vec::new(),
            more: false,
            path: format!("{path}?"),
            row: PhantomData,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, raw) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = decode(raw)?;
            if name != "cursor" {
                out.path.push_str(pair);
                out.path.push('&');
            }
            if name == WITHOUT {
                out.without = members::<R>(&value)?;
            } else if R::NAMED && name == NAME {
                out.names.push(value);
                if out.names.len() > NAMES_MAX {
                    let detail =
                        format!("more than {NAMES_MAX} names: ask for all, or several times");
                    return Err(Problem::new(Code::BadRequest, detail));
                }
            } else if R::MORE.is_some_and(|(more, _)| more == name) {
                out.more = match value.as_str() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    other => {
                        let detail = format!("{name}={other}: write true or false");
                        return Err(Problem::new(Code::BadRequest, detail));
                    }
                };
            } else if !out.query.take(R::COLUMNS, name, &value)? {
                let mut known = vec!["limit", "cursor", "filter", "sort", WITHOUT];
                known.extend(R::MORE.map(|(more, _)| more));
                known.extend(R::NAMED.then_some(NAME));
                let guess = did_you_mean(name, known.iter().copied());
                let detail = format!("unknown parameter \"{name}\"{guess}");
                return Err(Problem::new(Code::BadRequest, detail));
            }
        }
        Ok(out)
    }

    /// What of `rows` was asked for.
    pub(super) fn show(self, rows: Result<Vec<R>, Problem>) -> Listed<R> {
        Listed {
            listing: self,
            rows,
            tag: None,
        }
    }

    /// The same with the tag of all rows.
    pub(super) fn show_tagged(self, rows: Result<(Option<String>, Vec<R>), Problem>) -> Listed<R> {
        let (tag, rows) = match rows {
            Ok((tag, rows)) => (tag, Ok(rows)),
            Err(problem) => (None, Err(problem)),
        };
        Listed {
            tag,
            ..self.show(rows)
        }
    }
}

impl<S: Send + Sync, R: Row> FromRequestParts<S> for Listing<R> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self::read(parts.uri.path(), query)?)
    }
}

impl<R: Row> Part for Listing<R> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let mut takes = |name, meaning: String, schema: Value| {
            let place = "query";
            operation.takes(Parameter {
                name,
                place,
                meaning,
                schema,
            });
        };
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX });
        takes(
            "limit",
            "The most rows of an answer; its `Link` leads to the next page.".to_owned(),
            limit,
        );
        let cursor = "Where to go on, as the `Link` of the page before has it.";
        takes("cursor", cursor.to_owned(), json!({ "type": "string" }));
        let known = R::COLUMNS.known;
        let filter = "`COLUMN:VALUE`, or `COLUMN:BEGINNING*`; several must all fit.";
        let form = format!("^({}):", known.join("|"));
        takes(
            "filter",
            filter.to_owned(),
            json!({ "type": "string", "pattern": form }),
        );
        let down = known.iter().map(|column| format!("-{column}"));
        let columns: Vec<String> = known
            .iter()
            .map(|it| (*it).to_owned())
            .chain(down)
            .collect();
        let sort = "The column to sort by, with `-` downwards.";
        takes(
            "sort",
            sort.to_owned(),
            json!({ "type": "string", "enum": columns }),
        );
        let without = "Members of each row that are left out, with commas between.";
        takes(WITHOUT, without.to_owned(), json!({ "type": "string" }));
        if R::NAMED {
            let named = "Only the row of this name, where there is one; may stand up to 256 times.";
            takes(NAME, named.to_owned(), json!({ "type": "string" }));
        }
        if let Some((name, meaning)) = R::MORE {
            operation.takes(Parameter::switch(name, meaning));
        }
        operation.fails(&[Code::BadRequest]);
    }
}

/// A list, or the part of it that was asked for.
pub(super) struct Listed<R> {
    listing: Listing<R>,
    rows: Result<Vec<R>, Problem>,
    tag: Option<String>,
}

impl<R: Row> IntoResponse for Listed<R> {
    fn into_response(self) -> Response {
        let rows = match self.rows {
            Ok(rows) => rows,
            Err(problem) => return problem_response(&problem),
        };
        let listing = self.listing;
        if !listing.query.is_any() {
            let answer = if listing.without.is_empty() {
                Answer(Ok(rows)).into_response()
            } else {
                let lean = rows.iter().map(|row| lean(row, &listing.without));
                Answer(Ok(lean.collect::<Vec<_>>())).into_response()
            };
            return tagged(answer, self.tag);
        }
        let rows = rows
            .iter()
            .map(|row| serde_json::to_value(row).unwrap_or_default());
        let mut page = listing.query.select(R::COLUMNS, rows.collect());
        for row in page.rows.iter_mut().filter_map(Value::as_object_mut) {
            row.retain(|member, _| !listing.without.contains(member));
        }
        let mut response = tagged(Answer(Ok(page.rows)).into_response(), self.tag);
        if let Some(cursor) = page.next {
            let cursor = utf8_percent_encode(&cursor, NON_ALPHANUMERIC);
            let link = format!("<{}cursor={cursor}>; rel=\"next\"", listing.path);
            if let Ok(link) = HeaderValue::from_str(&link) {
                response.headers_mut().insert(header::LINK, link);
            }
        }
        response
    }
}

impl<R: Row> Reply for Listed<R> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Answer::<Vec<R>>::describe(operation, schemas);
        let meaning = "With `limit`, where there is more: the next page, as `<URL>; rel=\"next\"`.";
        operation.heads(200, "Link", meaning);
        let configured = ["/luns", "/targets", "/hosts", "/grants"];
        if configured.iter().any(|noun| operation.path.ends_with(noun)) {
            operation.heads(200, "ETag", TAG);
        }
    }
}
