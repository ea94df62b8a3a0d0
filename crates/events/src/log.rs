//! Events in the file.

use crate::code::Severity;
use crate::event::{Event, Object};
use crate::filter::{Conditions, Filter};
use database::rusqlite::{self, Connection, Row, params};

/// The most events that the file keeps.
pub(crate) const EVENTS_MAX: u64 = 100_000;

/// The most that is read at once: a page of 10,000, and one more, which shows that more follow.
pub const READ_MAX: u64 = 10_001;

/// Columns by which events are found.
pub const EVENT_COLUMNS: [&str; 4] = ["severity", "code", "kind", "name"];

/// Which events are asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// Only later ones, the oldest first; without it the newest of all.
    pub since: Option<u64>,
    /// Only earlier ones.
    pub before: Option<u64>,
    /// Only these or worse.
    pub severity: Option<Severity>,
    /// Only those that fulfil all of these; columns are [`EVENT_COLUMNS`].
    pub filters: Vec<Filter>,
    /// Only from this time on (RFC 3339, as events have it).
    pub from: Option<String>,
    /// Only before this time.
    pub to: Option<String>,
    /// At most so many.
    pub limit: u64,
}

fn place(severity: Severity) -> i64 {
    match severity {
        Severity::Info => 0,
        Severity::Warning => 1,
        Severity::Error => 2,
    }
}

pub(crate) fn insert(connection: &Connection, event: &Event) -> rusqlite::Result<()> {
    let sql = "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let fields = serde_json::to_string(&event.fields).unwrap_or_default();
    connection.prepare_cached(sql)?.execute(params![
        id(event.id),
        event.time,
        event.code,
        place(event.severity),
        event.object.kind,
        event.object.name,
        event.message,
        fields,
    ])?;
    // Not with every one: finding the first to go reads the index.
    if event.id.is_multiple_of(256) {
        let sql = "DELETE FROM event
                   WHERE id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET ?1)";
        connection.prepare_cached(sql)?.execute([id(EVENTS_MAX)])?;
    }
    Ok(())
}

fn id(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

/// What the file has for a column; a word for a severity.
fn expression(column: &str) -> &'static str {
    match column {
        "severity" => "CASE severity WHEN 0 THEN 'info' WHEN 1 THEN 'warning' ELSE 'error' END",
        "code" => "code",
        "kind" => "kind",
        _ => "name",
    }
}

/// The events that are asked for, in their order. A row that is none of ours is passed over.
pub(crate) fn list(connection: &Connection, wanted: &Wanted) -> rusqlite::Result<Vec<Event>> {
    let mut conditions = Conditions::default();
    conditions.and("id > ?", id(wanted.since.unwrap_or(0)));
    if let Some(before) = wanted.before {
        conditions.and("id < ?", id(before));
    }
    if let Some(severity) = wanted.severity {
        conditions.and("severity >= ?", place(severity));
    }
    if let Some(from) = &wanted.from {
        conditions.and("time >= ?", from.clone());
    }
    if let Some(to) = &wanted.to {
        conditions.and("time < ?", to.clone());
    }
    for filter in &wanted.filters {
        conditions.filter(expression(filter.column), &filter.is);
    }
    let order = if wanted.since.is_some() {
        "ASC"
    } else {
        "DESC"
    };
    let limit = wanted.limit.clamp(1, READ_MAX);
    let sql = format!(
        "SELECT id, time, code, severity, kind, name, message, fields FROM event
         WHERE {} ORDER BY id {order} LIMIT {limit}",
        conditions.text()
    );
    let mut select = connection.prepare_cached(&sql)?;
    let parameters = rusqlite::params_from_iter(conditions.values());
    let rows = select.query_map(parameters, |row| Ok(event(row).ok()))?;
    let mut events = rows
        .filter_map(Result::transpose)
        .collect::<Result<Vec<_>, _>>()?;
    if wanted.since.is_none() {
        events.reverse();
    }
    Ok(events)
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let (severity, fields): (u16, String) = (row.get(3)?, row.get(7)?);
    Ok(Event {
        id: row.get::<_, i64>(0)?.try_into().unwrap_or(0),
        time: row.get(1)?,
        code: row.get(2)?,
        severity: Severity::ALL
            .get(usize::from(severity))
            .copied()
            .unwrap_or(Severity::Error),
        object: Object {
            kind: row.get(4)?,
            name: row.get(5)?,
        },
        message: row.get(6)?,
        fields: serde_json::from_str(&fields).unwrap_or_default(),
    })
}

/// Whether events right after `last` may be gone: the file has none up to it any more, because it
/// was trimmed, or is another file.
pub(crate) fn is_cut(connection: &Connection, last: u64) -> rusqlite::Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM event WHERE id <= ?1)
               AND EXISTS (SELECT 1 FROM event WHERE id > ?1)";
    let mut question = connection.prepare_cached(sql)?;
    question.query_row([id(last)], |row| row.get(0))
}

/// How many events there are after one and before another.
pub(crate) fn between(connection: &Connection, after: u64, before: u64) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM event WHERE id > ?1 AND id < ?2";
    let mut count = connection.prepare_cached(sql)?;
    let count: i64 = count.query_row([id(after), id(before)], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::schema::SCHEMA;

    #[test]
    fn a_log_is_cut_behind_a_place_before_all_that_it_has() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(SCHEMA.steps[0]).unwrap();
        assert!(!is_cut(&file, 5).unwrap(), "there is nothing");
        let add = |id: u64| {
            let sql = format!("INSERT INTO event VALUES ({id}, '', '', 0, '', '', '', '')");
            file.execute_batch(&sql).unwrap();
        };
        (7..10).for_each(add);
        let cut = [6, 7, 8, 9, 10].map(|last| is_cut(&file, last).unwrap());
        assert_eq!(cut, [true, false, false, false, false]);
        file.execute_batch("DELETE FROM event WHERE id < 9")
            .unwrap();
        let cut = [7, 8, 9].map(|last| is_cut(&file, last).unwrap());
        assert_eq!(cut, [true, true, false]);
    }

    #[test]
    fn a_full_page_is_read_with_the_row_that_shows_that_more_follow() {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(SCHEMA.steps[0]).unwrap();
        file.execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100)
             INSERT INTO event SELECT i, '', '', 0, '', '', '', '' FROM n",
        )
        .unwrap();
        let wanted = Wanted {
            limit: 10_000 + 1,
            ..Wanted::default()
        };
        let read = list(&file, &wanted).unwrap();
        assert_eq!((read.len(), read[0].id), (10_001, 100), "the newest");
    }
}
