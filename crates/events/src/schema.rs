//! What the file has, and what goes where it is full.

use database::Schema;
use database::rusqlite::{self, Connection};

/// The newest events that a full file keeps before its audit log is cut.
const EVENTS_KEPT: u32 = 1_000;

/// Events and the audit log. Entries of the audit log cannot be changed, nor removed but for the
/// oldest one.
pub const SCHEMA: Schema = Schema {
    what: "events",
    application_id: 0x4357_4556,
    steps: &[
        "CREATE TABLE event (
           id INTEGER PRIMARY KEY, time TEXT NOT NULL, code TEXT NOT NULL, severity INTEGER NOT NULL,
           kind TEXT NOT NULL, name TEXT NOT NULL, message TEXT NOT NULL, fields TEXT NOT NULL
         ) STRICT;
         CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL) STRICT;
         CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
           SELECT raise(ABORT, 'entries of the audit log are not changed');
         END;
         CREATE TRIGGER audit_is_not_removed BEFORE DELETE ON audit
         WHEN OLD.id > (SELECT min(id) FROM audit) BEGIN
           SELECT raise(ABORT, 'of the audit log only the oldest entry can be removed');
         END",
    ],
    shrink,
};

fn shrink(connection: &Connection) -> rusqlite::Result<bool> {
    let oldest = "DELETE FROM event WHERE id IN (SELECT id FROM event ORDER BY id LIMIT 500)
                  AND id <= (SELECT id FROM event ORDER BY id DESC LIMIT 1 OFFSET ?1)";
    if connection.prepare_cached(oldest)?.execute([EVENTS_KEPT])? > 0 {
        return Ok(true);
    }
    let sql = "DELETE FROM audit WHERE id = (SELECT min(id) FROM audit)";
    let mut oldest = connection.prepare_cached(sql)?;
    let mut removed = 0;
    for _ in 0..100 {
        removed += oldest.execute([])?;
    }
    if removed > 0 {
        tracing::warn!("the audit log reached its bound: its oldest {removed} entries are removed");
    }
    Ok(removed > 0)
}
