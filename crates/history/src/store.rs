//! The history of a node in its file.

use crate::chunk::Chunk;
use crate::ids::Known;
use crate::metric::Metric;
use crate::object::{Kind, Object};
use crate::point::Point;
use crate::query::{Asked, Line, Lines, Plan};
use crate::recorder::{Drained, Reading, Recorder};
use crate::tier::{OBJECTS_MAX, TIERS, Tier, chunk_of, object_of};
use database::rusqlite::{self, Connection, OptionalExtension, params};
use database::{Answer, Database, Failed, Health, Schema, Settings};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the file has. Rows of `chunk` lie by tier, then by time.
pub const SCHEMA: Schema = Schema {
    what: "history",
    application_id: 0x4357_4849,
    steps: &[
        "CREATE TABLE object (
           id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL, last INTEGER NOT NULL,
           UNIQUE (kind, name)
         ) STRICT;
         CREATE TABLE chunk (key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT",
        "ALTER TABLE object ADD COLUMN identity TEXT",
    ],
    shrink,
};

/// A clock that is set back by more than this was wrong before, and what was recorded in the time
/// that has not come yet is removed.
const BACK_MAX: u64 = 3_600;

/// The history of a node.
pub struct History {
    database: Database,
    recorder: Mutex<Recorder>,
}

/// What a file has of the time that is under way.
struct Loaded {
    objects: Vec<(Known, Object)>,
    chunks: Vec<(u32, Chunk)>,
}

impl History {
    /// Opens the file or begins one, as [`Database::start`].
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(settings: Settings) -> io::Result<Self> {
        Ok(Self {
            database: Database::start(settings, SCHEMA)?,
            recorder: Mutex::default(),
        })
    }

    /// Goes on with what the file has of `now`, in seconds since 1970. To be done before the first
    /// [`History::push`].
    pub async fn load(&self, now: u64) {
        let loaded = self.database.write(move |connection| load(connection, now));
        // What cannot be read was said by the database; the history begins anew.
        if let Ok(loaded) = loaded.await {
            let mut recorder = self.recorder();
            recorder.know(loaded.objects);
            recorder.restore(now, loaded.chunks);
        }
    }

    /// Takes what was read in a second, and writes what is complete once a minute.
    pub fn push(&self, second: u64, readings: &[Reading<'_>]) {
        self.record(second, |take| readings.iter().for_each(take));
    }

    /// As [`History::push`], for whoever makes one reading after the other: `read` gives each away
    /// as it makes it.
    pub fn record(&self, second: u64, read: impl FnOnce(&mut dyn FnMut(&Reading<'_>))) {
        let mut recorder = self.recorder();
        let before = recorder.newest();
        if second + BACK_MAX < before {
            tracing::warn!(
                "the clock was set back by {} s: what lies ahead is removed",
                before - second
            );
            recorder.set_back(second.saturating_sub(1));
            self.database
                .write(move |file| remove_after(file, second))
                .forget();
        }
        let is_newer = recorder.begin(second);
        read(&mut |reading: &Reading<'_>| {
            if is_newer {
                recorder.take(reading);
            }
        });
        if TIERS[0].chunk(second) != TIERS[0].chunk(before) {
            self.keep(recorder.drain(false), second).forget();
        }
    }

    /// An object has another name from now on, and its figures go on under that one.
    pub fn rename(&self, from: &Object, to: &str) {
        let mut recorder = self.recorder();
        if let Some(id) = recorder.rename(from, to) {
            let to = Object {
                name: to.to_owned(),
                ..from.clone()
            };
            // With the recorder held, so that the file has it in its order.
            let renamed = self.database.write(move |file| rename(file, id, &to));
            renamed.forget();
        }
    }

    /// Writes all that is known and closes the file.
    pub fn stop(&self) {
        let mut recorder = self.recorder();
        let now = recorder.newest();
        let kept = self.keep(recorder.drain(true), now);
        drop(recorder);
        kept.forget();
        self.database.close();
    }

    fn keep(&self, drained: Drained, now: u64) -> Answer<()> {
        self.database.write(move |connection| {
            keep(connection, &drained, now)?;
            remove_old(connection, now)
        })
    }

    /// The file takes so many bytes at most from now on.
    pub fn bound(&self, file_bytes: u64) {
        self.database.bound(Settings::contents_of(file_bytes));
    }

    /// Whether anything was ever recorded of an object, by the name that it has now.
    #[must_use]
    pub fn knows(&self, object: &Object) -> bool {
        self.recorder().id(object).is_some()
    }

    /// How the file is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.database.health()
    }

    /// The figures of these metrics of these objects. An object that nobody recorded has gaps.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn query(
        &self,
        objects: Vec<Object>,
        metrics: Vec<Metric>,
        asked: Asked,
    ) -> Result<Lines, Failed> {
        let oldest = self.database.read(oldest).await?;
        let plan = {
            let recorder = self.recorder();
            let every = metrics.iter().map(|metric| metric.every()).max();
            Plan::of(asked, recorder.newest(), oldest, every.unwrap_or(1))
        };
        let mut lines = Vec::new();
        for object in objects {
            let (id, under_way) = {
                let recorder = self.recorder();
                (recorder.id(&object), recorder.under_way(&object, plan.tier))
            };
            let newer = under_way.as_ref().map(|chunk| chunk.number);
            let mut chunks = match id {
                Some(id) => {
                    let read = move |file: &Connection| chunks(file, &plan, id, newer);
                    self.database.read(read).await?
                }
                None => Vec::new(),
            };
            chunks.extend(under_way);
            lines.extend(metrics.iter().map(|metric| {
                let mut points = vec![Point::default(); plan.count];
                for chunk in &chunks {
                    plan.add(chunk, *metric, &mut points);
                }
                Line {
                    object: object.clone(),
                    metric: *metric,
                    points,
                }
            }));
        }
        Ok(Lines {
            from: plan.from,
            step: plan.step,
            resolution: plan.tier.step,
            lines,
        })
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(connection: &Connection, drained: &Drained, now: u64) -> rusqlite::Result<()> {
    let last = i64::try_from(TIERS[2].chunk(now)).unwrap_or(i64::MAX);
    // Every time, so that a file that was begun anew in between knows them. Those that have lost
    // their name come before those that have it now.
    let mut object = connection.prepare_cached(
        "INSERT INTO object (id, kind, name, last, identity) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, last = max(last, excluded.last),
           identity = coalesce(excluded.identity, identity)
         WHERE last < excluded.last OR name <> excluded.name OR identity IS NOT excluded.identity",
    )?;
    for (Known { id, identity }, Object { kind, name }) in &drained.objects {
        free(connection, kind.number(), name, *id)?;
        object.execute(params![id, kind.number(), name, last, identity.as_deref()])?;
    }
    let mut chunk = connection.prepare_cached("INSERT OR REPLACE INTO chunk VALUES (?1, ?2)")?;
    for row in &drained.rows {
        chunk.execute(params![row.key, row.bytes])?;
    }
    Ok(())
}

/// Another object than this one that has the name goes by its identity. One that has none is let
/// go, and so is one that is called by its identity already.
fn free(connection: &Connection, kind: i64, name: &str, id: u32) -> rusqlite::Result<()> {
    for other in [
        "UPDATE OR REPLACE object SET name = identity
         WHERE kind = ?1 AND name = ?2 AND id <> ?3 AND identity <> name",
        "DELETE FROM object WHERE kind = ?1 AND name = ?2 AND id <> ?3",
    ] {
        let mut other = connection.prepare_cached(other)?;
        other.execute(params![kind, name, id])?;
    }
    Ok(())
}

fn rename(connection: &Connection, id: u32, to: &Object) -> rusqlite::Result<()> {
    let (kind, name) = (to.kind.number(), &to.name);
    free(connection, kind, name, id)?;
    let sql = "UPDATE object SET name = ?1 WHERE id = ?2";
    connection
        .prepare_cached(sql)?
        .execute(params![name, id])
        .map(drop)
}

/// The keys of a tier's chunks from one to before another.
fn keys(tier: Tier, from: u64, before: u64) -> (i64, i64) {
    (tier.key(from, 0), tier.key(before, 0))
}

fn remove(connection: &Connection, (from, before): (i64, i64)) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM chunk WHERE key >= ?1 AND key < ?2";
    connection.prepare_cached(sql)?.execute([from, before])
}

fn remove_old(connection: &Connection, now: u64) -> rusqlite::Result<()> {
    for tier in TIERS {
        let oldest = tier.chunk(now.saturating_sub(tier.kept));
        remove(connection, keys(tier, 0, oldest))?;
    }
    let oldest = TIERS[2].chunk(now.saturating_sub(TIERS[2].kept));
    let oldest = i64::try_from(oldest).unwrap_or(0);
    connection
        .prepare_cached("DELETE FROM object WHERE last < ?1")?
        .execute([oldest])?;
    Ok(())
}

/// Removes what lies after `now`.
fn remove_after(connection: &Connection, now: u64) -> rusqlite::Result<()> {
    for tier in TIERS {
        let last = tier.key(u64::MAX, OBJECTS_MAX);
        remove(connection, (tier.key(tier.chunk(now) + 1, 0), last + 1))?;
    }
    Ok(())
}

/// Removes the oldest chunks of the finest tier that has more than it keeps in any case: a year of
/// many LUNs would leave nothing of the last hour. Where that is not enough, of the finest that has
/// more than what is under way.
fn shrink(connection: &Connection) -> rusqlite::Result<bool> {
    for keeps_least in [true, false] {
        for tier in TIERS {
            let least = if keeps_least {
                tier.kept_least / tier.span()
            } else {
                0
            };
            let Some((first, last)) = ends(connection, tier)? else {
                continue;
            };
            if last - first > least {
                return Ok(remove(connection, keys(tier, first, first + 1))? > 0);
            }
        }
    }
    Ok(false)
}

/// The first and the last chunk of a tier.
fn ends(connection: &Connection, tier: Tier) -> rusqlite::Result<Option<(u64, u64)>> {
    let all = (tier.key(0, 0), tier.key(u64::MAX, OBJECTS_MAX));
    // Each of the two is one step in the tree; both in one query would read the whole tier.
    let sql = "SELECT (SELECT min(key) FROM chunk WHERE key >= ?1 AND key <= ?2),
               (SELECT max(key) FROM chunk WHERE key >= ?1 AND key <= ?2)";
    let mut ends = connection.prepare_cached(sql)?;
    let ends: (Option<i64>, Option<i64>) =
        ends.query_row([all.0, all.1], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (first, last) = ends;
    Ok(first
        .zip(last)
        .map(|(first, last)| (chunk_of(first), chunk_of(last))))
}

fn load(connection: &Connection, now: u64) -> rusqlite::Result<Loaded> {
    remove_after(connection, now + BACK_MAX)?;
    let mut select = connection.prepare("SELECT id, kind, name, identity FROM object")?;
    let rows = select.query_map([], |row| {
        let (id, kind, name): (u32, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let identity: Option<String> = row.get(3)?;
        let identity = identity.map(Arc::from);
        Ok(Kind::numbered(kind).map(|kind| (Known { id, identity }, Object { kind, name })))
    })?;
    let objects = rows
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    let mut chunks = Vec::new();
    let mut select =
        connection.prepare("SELECT key, bytes FROM chunk WHERE key >= ?1 AND key < ?2")?;
    for tier in TIERS {
        let number = tier.chunk(now);
        let (from, before) = keys(tier, number, number + 1);
        let rows = select.query_map([from, before], |row| {
            let (key, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            Ok((object_of(key), Chunk::decode(tier, number, &bytes)))
        })?;
        for row in rows {
            let (id, chunk) = row?;
            chunks.extend(chunk.map(|chunk| (id, chunk)));
        }
    }
    Ok(Loaded { objects, chunks })
}

/// The first second of each tier.
fn oldest(connection: &Connection) -> rusqlite::Result<[Option<u64>; TIERS.len()]> {
    let sql = "SELECT min(key) FROM chunk WHERE key >= ?1 AND key <= ?2";
    let mut select = connection.prepare_cached(sql)?;
    let mut all = [None; TIERS.len()];
    for (tier, oldest) in TIERS.into_iter().zip(&mut all) {
        let ends = [tier.key(0, 0), tier.key(u64::MAX, OBJECTS_MAX)];
        let key: Option<i64> = select.query_row(ends, |row| row.get(0))?;
        *oldest = key.map(|key| chunk_of(key) * tier.span());
    }
    Ok(all)
}

/// An object's chunks that a plan needs, but for the one that is newer in memory. One that is
/// damaged is a gap.
fn chunks(
    connection: &Connection,
    plan: &Plan,
    id: u32,
    newer: Option<u64>,
) -> rusqlite::Result<Vec<Chunk>> {
    let mut select = connection.prepare_cached("SELECT bytes FROM chunk WHERE key = ?1")?;
    let mut found = BTreeMap::new();
    for number in plan.chunks().filter(|number| Some(*number) != newer) {
        let key = plan.tier.key(number, id);
        let bytes: Option<Vec<u8>> = select.query_row([key], |row| row.get(0)).optional()?;
        let chunk = bytes.and_then(|bytes| Chunk::decode(plan.tier, number, &bytes));
        found.extend(chunk.map(|chunk| (number, chunk)));
    }
    Ok(found.into_values().collect())
}
