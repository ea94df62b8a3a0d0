//! The audit log: who changed what.

use crate::bus::Events;
use crate::entry::Entry;
use crate::filter::{Conditions, Filter};
use crate::log::READ_MAX;
use crate::secrets::without_secrets;
use crate::words::AuditWords;
use database::rusqlite::{self, Connection};
use database::{Answer, Failed};
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry as it is read.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Audited {
    /// Its place among all; none is left out but where writing failed.
    pub id: u64,
    /// When it was asked for (RFC 3339).
    pub time: String,
    /// The same in words, for people.
    pub words: AuditWords,
    /// Who asked for what, and what came of it.
    #[serde(flatten)]
    pub entry: Entry,
}

/// An entry as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    time: String,
    #[serde(flatten)]
    entry: Entry,
}

impl Events {
    /// Adds an entry, without what is secret in it. The answer comes when it is stable.
    pub fn audit(&self, entry: Entry) -> Answer<()> {
        let time = rfc3339(self.now());
        let entry = Entry {
            before: without_secrets(entry.before),
            after: without_secrets(entry.after),
            asked: without_secrets(entry.asked),
            path: without_query_secrets(&entry.path),
            ..entry
        };
        let text = serde_json::to_string(&Kept { time, entry }).unwrap_or_default();
        self.database().write(move |file| {
            let sql = "INSERT INTO audit (entry) VALUES (?1)";
            file.prepare_cached(sql)?.execute([text]).map(drop)
        })
    }

    /// The entries that are asked for, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn audited(&self, wanted: WantedEntries) -> Result<Vec<Audited>, Failed> {
        let read = move |file: &Connection| entries(file, &wanted);
        self.database().read(read).await
    }
}

/// Those of `entries`, the oldest first, that say of work that it began, where none after them says
/// how it ended.
#[must_use]
pub fn unended(entries: Vec<Audited>) -> Vec<Entry> {
    let mut begun: Vec<Entry> = Vec::new();
    for Audited { entry, .. } in entries.into_iter().filter(|it| it.entry.job.is_some()) {
        begun.retain(|it| it.request_id != entry.request_id);
        if entry.status == BEGUN {
            begun.push(entry);
        }
    }
    begun
}

/// The status of an entry of work that began.
const BEGUN: u16 = 202;

/// Columns by which entries are found.
pub const AUDIT_COLUMNS: [&str; 10] = [
    "who", "via", "from", "method", "path", "kind", "name", "status", "code", "job",
];

/// Which entries are asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WantedEntries {
    /// Only later ones, the oldest first; without it the newest of all.
    pub since: Option<u64>,
    /// Only earlier ones.
    pub before: Option<u64>,
    /// Only those that fulfil all of these; columns are [`AUDIT_COLUMNS`].
    pub filters: Vec<Filter>,
    /// Only from this time on (RFC 3339, as entries have it).
    pub from: Option<String>,
    /// Only before this time.
    pub to: Option<String>,
    /// At most so many.
    pub limit: u64,
}

/// What the file has for a column.
fn expression(column: &str) -> &'static str {
    match column {
        "who" => "json_extract(entry, '$.who')",
        "via" => "json_extract(entry, '$.via')",
        "from" => "json_extract(entry, '$.from')",
        "method" => "json_extract(entry, '$.method')",
        "path" => "json_extract(entry, '$.path')",
        "kind" => "json_extract(entry, '$.object.kind')",
        "name" => "json_extract(entry, '$.object.name')",
        "status" => "cast(json_extract(entry, '$.status') AS TEXT)",
        "job" => "cast(json_extract(entry, '$.job') AS TEXT)",
        _ => "json_extract(entry, '$.code')",
    }
}

/// The object of an entry, or one of several.
fn of_any_object(conditions: &mut Conditions, Filter { column, is }: &Filter) {
    let beginning = is.strip_suffix('*');
    let fits = |it: String| match beginning {
        Some(_) => format!("substr({it}, 1, length(?)) = ?"),
        None => format!("{it} = ?"),
    };
    // What is left out of a document is empty.
    let own = fits(format!("ifnull({}, '')", expression(column)));
    let listed = fits(format!("json_extract(value, '$.{column}')"));
    let all = format!("json_each(entry, '$.objects') WHERE {listed}");
    let any = format!("({own} OR EXISTS (SELECT 1 FROM {all}))");
    conditions.and(&any, beginning.unwrap_or(is).to_owned());
}

fn entries(connection: &Connection, wanted: &WantedEntries) -> rusqlite::Result<Vec<Audited>> {
    let place = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
    let mut conditions = Conditions::default();
    conditions.and("id > ?", place(wanted.since.unwrap_or(0)));
    if let Some(before) = wanted.before {
        conditions.and("id < ?", place(before));
    }
    if let Some(from) = &wanted.from {
        conditions.and("json_extract(entry, '$.time') >= ?", from.clone());
    }
    if let Some(to) = &wanted.to {
        conditions.and("json_extract(entry, '$.time') < ?", to.clone());
    }
    for filter in &wanted.filters {
        match filter.column {
            "kind" | "name" => of_any_object(&mut conditions, filter),
            column => conditions.filter(expression(column), &filter.is),
        }
    }
    let order = if wanted.since.is_some() {
        "ASC"
    } else {
        "DESC"
    };
    let limit = wanted.limit.clamp(1, READ_MAX);
    let sql = format!(
        "SELECT id, entry FROM audit WHERE {} ORDER BY id {order} LIMIT {limit}",
        conditions.text()
    );
    let mut select = connection.prepare_cached(&sql)?;
    let parameters = rusqlite::params_from_iter(conditions.values());
    let rows = select.query_map(parameters, |row| {
        let (id, text): (i64, String) = (row.get(0)?, row.get(1)?);
        let kept = serde_json::from_str::<Kept>(&text).ok();
        Ok(kept.map(|Kept { time, entry }| Audited {
            id: u64::try_from(id).unwrap_or(0),
            time,
            words: AuditWords::of(&entry),
            entry,
        }))
    })?;
    let mut all = rows
        .filter_map(Result::transpose)
        .collect::<Result<Vec<_>, _>>()?;
    if wanted.since.is_none() {
        all.reverse();
    }
    Ok(all)
}

/// Parameters of a path are kept, but for those that are secret.
fn without_query_secrets(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let pairs = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let member = serde_json::json!({ name: value });
        if without_secrets(member.clone()) == member {
            pair.to_owned()
        } else {
            format!("{name}=(removed)")
        }
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}
