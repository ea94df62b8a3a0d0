//! Events in the file.

use crate::code::Severity;
use crate::event::{Event, Object};
use database::rusqlite::{self, Connection, Row, ToSql, params};

/// The most events that the file keeps.
pub(crate) const EVENTS_MAX: u64 = 100_000;

/// The most that one answer has.
pub(crate) const LIMIT_MAX: u64 = 10_000;

/// Which events are asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// Only later ones, the oldest first; without it the newest of all.
    pub since: Option<u64>,
    /// Only these or worse.
    pub severity: Option<Severity>,
    /// Only of this kind of object.
    pub kind: Option<String>,
    /// Only of objects of this name.
    pub name: Option<String>,
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

/// The events that are asked for, in their order. A row that is none of ours is passed over.
pub(crate) fn list(connection: &Connection, wanted: &Wanted) -> rusqlite::Result<Vec<Event>> {
    let order = if wanted.since.is_some() {
        "ASC"
    } else {
        "DESC"
    };
    let sql = format!(
        "SELECT id, time, code, severity, kind, name, message, fields FROM event
         WHERE id > ?1 AND severity >= ?2 AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR name = ?4)
         ORDER BY id {order} LIMIT ?5"
    );
    let since = id(wanted.since.unwrap_or(0));
    let severity = wanted.severity.map_or(0, place);
    let limit = id(wanted.limit.clamp(1, LIMIT_MAX));
    let parameters: [&dyn ToSql; 5] = [&since, &severity, &wanted.kind, &wanted.name, &limit];
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map(&parameters[..], |row| Ok(event(row).ok()))?;
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

/// How many events there are after one and before another.
pub(crate) fn between(connection: &Connection, after: u64, before: u64) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM event WHERE id > ?1 AND id < ?2";
    let mut count = connection.prepare_cached(sql)?;
    let count: i64 = count.query_row([id(after), id(before)], |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}
