//! `GET /events/log` and `GET /audit`: what was recorded, page by page, the newest first
//! where nobody asks for the oldest.

use crate::answer::{Answer, PLAIN};
use crate::describe::{Operation, Parameter, Part, Reply, Schemas};
use crate::outside::now;
use crate::parameters::{Parameters, wrong};
use crate::parts::Refused;
use crate::plain_answer::problem_response;
use crate::records::Records;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use database::Failed;
use events::{
    AUDIT_COLUMNS, Audited, EVENT_COLUMNS, Event, Filter, READ_MAX, Severity, Wanted, WantedEntries,
};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use std::io;
use std::marker::PhantomData;

/// How many rows an answer has where nobody says.
const LIMIT: u64 = 200;

/// The most rows of an answer. One more is read, by which the page knows whether more follow.
const LIMIT_MAX: u64 = READ_MAX - 1;

/// How many entries are read at once for an export.
const PAGE: u64 = 1_000;

/// A row of a log.
pub(crate) trait Logged: Serialize + JsonSchema {
    /// By what rows are found.
    const COLUMNS: &[&'static str];
    /// Rows have a severity.
    const HAS_SEVERITY: bool;

    fn id(&self) -> u64;
}

impl Logged for Event {
    const COLUMNS: &[&'static str] = &EVENT_COLUMNS;
    const HAS_SEVERITY: bool = true;

    fn id(&self) -> u64 {
        self.id
    }
}

impl Logged for Audited {
    const COLUMNS: &[&'static str] = &AUDIT_COLUMNS;
    const HAS_SEVERITY: bool = false;

    fn id(&self) -> u64 {
        self.id
    }
}

/// What was asked of a log of `R`.
pub(crate) struct Asked<R> {
    /// Where the page before ended.
    cursor: Option<u64>,
    is_oldest_first: bool,
    severity: Option<Severity>,
    filters: Vec<Filter>,
    from: Option<String>,
    to: Option<String>,
    limit: u64,
    /// The path with all parameters but the cursor.
    path: String,
    row: PhantomData<fn() -> R>,
}

impl<R: Logged> Asked<R> {
    fn read(path: &str, query: Option<&str>) -> Result<Self, Problem> {
        let mut known = vec!["limit", "cursor", "sort", "filter", "from", "to"];
        if R::HAS_SEVERITY {
            known.push("least");
        }
        let all = Parameters::read(query, &known)?;
        let severity = match all.one("least") {
            None => None,
            Some(name) => Some(
                Severity::named(name)
                    .ok_or_else(|| wrong(format!("least={name}: write info, warning or error")))?,
            ),
        };
        let is_oldest_first = match all.one("sort") {
            None | Some("-time") => false,
            Some("time") => true,
            Some(other) => {
                return Err(wrong(format!(
                    "sort={other}: write time (the oldest first) or -time (the newest first)"
                )));
            }
        };
        let now = now().wall;
        let pairs = query.unwrap_or_default().split('&');
        let kept = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
        Ok(Self {
            cursor: all.number("cursor", 0, u64::MAX)?,
            is_oldest_first,
            severity,
            filters: all.filters(R::COLUMNS)?,
            from: all.time("from", now)?.map(rfc3339),
            to: all.time("to", now)?.map(rfc3339),
            limit: all.number("limit", 1, LIMIT_MAX)?.unwrap_or(LIMIT),
            path: format!(
                "{path}?{}",
                kept.map(|pair| format!("{pair}&")).collect::<String>()
            ),
            row: PhantomData,
        })
    }

    /// After which row it goes on upwards, and before which downwards.
    fn between(&self) -> (Option<u64>, Option<u64>) {
        if self.is_oldest_first {
            return (Some(self.cursor.unwrap_or(0)), None);
        }
        (None, self.cursor)
    }

    /// The rows that were read, oldest first, and one more than asked for where there are more.
    fn page(self, rows: Result<Vec<R>, Failed>) -> Page<R> {
        let rows = rows.map_err(unreadable).map(|mut rows| {
            if !self.is_oldest_first {
                rows.reverse();
            }
            let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
            let more = rows.len() > most;
            rows.truncate(most);
            let last = rows.last().filter(|_| more).map(R::id);
            let next = last.map(|id| format!("<{}cursor={id}>; rel=\"next\"", self.path));
            (rows, next)
        });
        Page(rows)
    }
}

/// Why what was recorded cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
pub(crate) fn unreadable(failed: Failed) -> Problem {
    Problem::new(Code::RecordsUnreadable, failed.to_string())
}

impl<S: Send + Sync, R: Logged> FromRequestParts<S> for Asked<R> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Ok(Self::read(parts.uri.path(), parts.uri.query())?)
    }
}

/// Parameters that every log takes.
fn of_log(operation: &mut Operation, columns: &[&str]) {
    let mut takes = |name, meaning: &str, schema| {
        operation.takes(Parameter {
            name,
            place: "query",
            meaning: meaning.to_owned(),
            schema,
        });
    };
    let form = format!("^({}):", columns.join("|"));
    takes(
        "filter",
        "`COLUMN:VALUE`, or `COLUMN:BEGINNING*`; several must all fit.",
        json!({ "type": "string", "pattern": form }),
    );
    takes(
        "from",
        "Only from this time on: RFC 3339, seconds since 1970, or how long ago, such as `-2h`.",
        json!({ "type": "string" }),
    );
    takes("to", "Only before this time.", json!({ "type": "string" }));
    operation.fails(&[Code::BadRequest, Code::RecordsUnreadable]);
}

impl<R: Logged> Part for Asked<R> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(Parameter {
            name: "limit",
            place: "query",
            meaning: "The most rows of an answer; its `Link` leads to the next page.".to_owned(),
            schema: json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT }),
        });
        operation.takes(Parameter {
            name: "cursor",
            place: "query",
            meaning: "Where to go on, as the `Link` of the page before has it.".to_owned(),
            schema: json!({ "type": "string" }),
        });
        operation.takes(Parameter {
            name: "sort",
            place: "query",
            meaning: "`time`: the oldest first; `-time`: the newest first.".to_owned(),
            schema: json!({ "type": "string", "enum": ["time", "-time"], "default": "-time" }),
        });
        of_log(operation, R::COLUMNS);
        if R::HAS_SEVERITY {
            operation.takes(Parameter {
                name: "least",
                place: "query",
                meaning: "Only of this severity or worse.".to_owned(),
                schema: json!({ "type": "string", "enum": ["info", "warning", "error"] }),
            });
        }
    }
}

/// A page of a log, and where the next one is.
pub(crate) struct Page<R>(Result<(Vec<R>, Option<String>), Problem>);

impl<R: Logged> IntoResponse for Page<R> {
    fn into_response(self) -> Response {
        let (rows, next) = match self.0 {
            Ok(page) => page,
            Err(problem) => return problem_response(&problem),
        };
        let mut response = Answer(Ok(rows)).into_response();
        if let Some(Ok(link)) = next.map(|next| HeaderValue::from_str(&next)) {
            response.headers_mut().insert(header::LINK, link);
        }
        response
    }
}

impl<R: Logged> Reply for Page<R> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Answer::<Vec<R>>::describe(operation, schemas);
        let meaning = "Where there is more: the next page, as `<URL>; rel=\"next\"`.";
        operation.heads(200, "Link", meaning);
    }
}

pub(crate) async fn event_log(
    Extension(records): Extension<Records>,
    asked: Asked<Event>,
) -> Page<Event> {
    let (since, before) = asked.between();
    let wanted = Wanted {
        since,
        before,
        severity: asked.severity,
        filters: asked.filters.clone(),
        from: asked.from.clone(),
        to: asked.to.clone(),
        limit: asked.limit + 1,
    };
    asked.page(records.events().list(wanted).await)
}

pub(crate) async fn audit_log(
    Extension(records): Extension<Records>,
    asked: Asked<Audited>,
) -> Page<Audited> {
    let (since, before) = asked.between();
    let wanted = WantedEntries {
        since,
        before,
        filters: asked.filters.clone(),
        from: asked.from.clone(),
        to: asked.to.clone(),
        limit: asked.limit + 1,
    };
    asked.page(records.events().audited(wanted).await)
}

/// What is asked of the export.
pub(crate) struct Exported(WantedEntries);

impl<S: Send + Sync> FromRequestParts<S> for Exported {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let all = Parameters::read(parts.uri.query(), &["filter", "from", "to"])?;
        let now = now().wall;
        Ok(Self(WantedEntries {
            since: Some(0),
            before: None,
            filters: all.filters(&AUDIT_COLUMNS)?,
            from: all.time("from", now)?.map(rfc3339),
            to: all.time("to", now)?.map(rfc3339),
            limit: PAGE,
        }))
    }
}

impl Part for Exported {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        of_log(operation, &AUDIT_COLUMNS);
    }
}

/// Lines of JSON, as long as there are some.
pub(crate) struct Lines(Response);

impl IntoResponse for Lines {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Reply for Lines {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let content = json!({ "text/plain": { "schema": { "type": "string" } } });
        let about = "An entry a line, each a JSON document, the oldest first.";
        operation.answers(200, about, content);
    }
}

pub(crate) async fn export_audit(
    Extension(records): Extension<Records>,
    Exported(wanted): Exported,
) -> Lines {
    // The first page says whether it can be read at all.
    let first = match records.events().audited(wanted.clone()).await {
        Ok(first) => first,
        Err(failed) => return Lines(problem_response(&unreadable(failed))),
    };
    let pages = futures_util::stream::unfold(Some(first), move |page| {
        let (records, wanted) = (records.clone(), wanted.clone());
        async move {
            let page = page?;
            let last = page.last()?.id;
            let lines: String = page.iter().map(line).collect();
            let after = WantedEntries {
                since: Some(last),
                ..wanted
            };
            let next = records.events().audited(after).await;
            // What broke off is no whole export: the connection ends without its end.
            let lines = match &next {
                Ok(_) => Ok(Bytes::from(lines)),
                Err(failed) => Err(io::Error::other(failed.to_string())),
            };
            Some((lines, next.ok()))
        }
    });
    let mut response = Response::new(Body::from_stream(pages));
    let kind = HeaderValue::from_static(PLAIN);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Lines(response)
}

fn line(entry: &Audited) -> String {
    let mut text = serde_json::to_string(entry).unwrap_or_default();
    text.push('\n');
    text
}
