//! What becomes of a file: crashes, damage, full disks, newer programs, bounds. The oracle is what
//! was answered.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use database::rusqlite::{Connection, params};
use database::{Answer, Database, Failed, Schema, Settings, Synchronous};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SCHEMA: Schema = Schema {
    what: "numbers",
    application_id: 0x4357_5431,
    steps: &["CREATE TABLE number (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"],
    shrink: |connection| {
        let oldest = "DELETE FROM number WHERE id IN (SELECT id FROM number ORDER BY id LIMIT 100)";
        Ok(connection.execute(oldest, [])? > 0)
    },
};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("database-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("numbers.db")
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings(path: &Path) -> Settings {
    Settings {
        path: path.to_owned(),
        synchronous: Synchronous::Normal,
        bytes_max: 64 << 20,
    }
}

fn open(path: &Path) -> Database {
    Database::start(settings(path), SCHEMA).unwrap()
}

/// A text that only this number has.
fn text(id: i64) -> String {
    format!("{id}-").repeat(20)
}

fn insert(database: &Database, id: i64) -> Answer<usize> {
    let text = text(id);
    database.write(move |connection| {
        let mut insert = connection.prepare_cached("INSERT INTO number VALUES (?1, ?2)")?;
        insert.execute(params![id, text])
    })
}

fn all(database: &Database) -> Result<Vec<(i64, String)>, Failed> {
    let read = database.read(|connection| {
        let mut select = connection.prepare("SELECT id, text FROM number ORDER BY id")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    });
    read.wait()
}

fn ids(database: &Database) -> Vec<i64> {
    let rows = all(database).unwrap();
    assert!(rows.iter().all(|(id, found)| *found == text(*id)));
    rows.into_iter().map(|(id, _)| id).collect()
}

/// This program again, as a process that runs one test with `CHILD` set.
fn child(test: &str, path: &Path, before: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    let run = format!(
        "{before}exec {} --exact {test} --nocapture",
        program.display()
    );
    Command::new("bash")
        .args(["-c", &run])
        .env("CHILD", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn child_path() -> Option<PathBuf> {
    std::env::var_os("CHILD").map(PathBuf::from)
}

#[test]
fn writes_for_ever() {
    let Some(path) = child_path() else {
        return;
    };
    let database = open(&path);
    let first = ids(&database).last().map_or(0, |last| last + 1);
    for id in first.. {
        insert(&database, id).wait().unwrap();
        println!("\nwritten {id}");
    }
}

#[test]
fn what_was_answered_outlives_a_kill_at_any_moment() {
    let dir = Dir::new("kill");
    let mut last = -1;
    for round in 0..12_i64 {
        let mut child = child("writes_for_ever", &dir.file(), "");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut written = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("written ")?.parse::<i64>().ok());
        // Some are killed while the file is made, others after checkpoints.
        for _ in 0..round * 97 {
            last = written.next().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        last = written.last().unwrap_or(last);
        let database = open(&dir.file());
        let found = ids(&database);
        let count = i64::try_from(found.len()).unwrap();
        assert!(
            found.iter().copied().eq(0..count),
            "nothing is missing or twice"
        );
        assert!(count > last, "{last} was answered, and {count} are there");
        assert_eq!(database.health().set_aside, []);
    }
    assert!(last > 1000, "{last}");
}

/// xorshift: the bytes that are damaged are the same in each run.
fn next(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed >> 8).unwrap()
}

#[test]
fn a_file_with_damage_at_random_bytes_is_read_as_it_was_or_set_aside() {
    let dir = Dir::new("damage");
    let whole = {
        let database = open(&dir.file());
        let answers: Vec<Answer<usize>> = (0..2000).map(|id| insert(&database, id)).collect();
        answers
            .into_iter()
            .for_each(|answer| assert_eq!(answer.wait(), Ok(1)));
        database.close();
        std::fs::read(dir.file()).unwrap()
    };
    let (mut seed, mut aside) = (0x9E37_79B9_7F4A_7C15, 0);
    for round in 0..60 {
        let mut bytes = whole.clone();
        // Every third one in the first page, where the schema is.
        let within = if round % 3 == 0 { 4096 } else { bytes.len() };
        for _ in 0..8 {
            let at = next(&mut seed) % within;
            bytes[at] ^= u8::try_from(next(&mut seed) % 255).unwrap() + 1;
        }
        std::fs::write(dir.file(), bytes).unwrap();
        let database = open(&dir.file());
        // An answer, whatever it is. Then new rows can be written at the latest at the second try.
        let _ = all(&database);
        let _ = insert(&database, 100_000 + round).wait();
        let foreign = database.health().failing;
        if foreign.is_some_and(|why| why.contains("not a file of") || why.contains("newer")) {
            database.close();
        } else {
            assert_eq!(insert(&database, 200_000 + round).wait(), Ok(1), "{round}");
            let set_aside = database.health().set_aside;
            aside += set_aside.len();
            assert!(set_aside.iter().all(|(path, _)| path.exists()));
        }
        database.close();
        let kept = dir.names();
        let damaged = kept.iter().filter(|name| name.contains(".damaged-"));
        assert!(damaged.count() <= 4, "old ones are removed: {kept:?}");
        let _ = std::fs::remove_file(dir.file());
    }
    assert!(aside > 10, "{aside}: damage was found");
}

#[test]
fn what_is_no_database_at_all_is_set_aside_with_its_bytes() {
    let dir = Dir::new("garbage");
    let garbage = vec![0x5A; 10_000];
    std::fs::write(dir.file(), &garbage).unwrap();
    let database = open(&dir.file());
    assert_eq!(insert(&database, 1).wait(), Ok(1));
    let [(aside, _)] = &database.health().set_aside[..] else {
        panic!("{:?}", database.health());
    };
    assert_eq!(std::fs::read(aside).unwrap(), garbage);
    assert!(
        aside.to_string_lossy().contains("numbers.db.damaged-2"),
        "a name with the time"
    );
}

#[test]
fn fills_its_disk() {
    let Some(path) = child_path() else {
        return;
    };
    let database = open(&path);
    let mut refused = 0;
    for id in 0..20_000 {
        refused += u64::from(insert(&database, id).wait().is_err());
    }
    let health = database.health();
    assert_eq!(health.dropped, refused, "each is counted");
    assert!(refused > 0 && health.failing.is_some(), "{health:?}");
    // What is there can be read, and removing makes room.
    let kept = ids(&database).len();
    let answer = database.write(|connection| connection.execute("DELETE FROM number", []));
    let removed = answer.wait();
    println!("\nkept {kept} removed {}", removed.is_ok());
}

#[test]
fn a_full_disk_stops_nobody_and_what_it_costs_is_counted() {
    let dir = Dir::new("full");
    // No file may grow beyond 512 KiB, and the signal that says so is ignored.
    let limit = "trap \"\" XFSZ; ulimit -f 512; ";
    let child = child("fills_its_disk", &dir.file(), limit);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let kept = said
        .lines()
        .find_map(|line| line.strip_prefix("kept "))
        .expect("it says so");
    let kept: usize = kept.split(' ').next().unwrap().parse().unwrap();
    assert!(kept > 500, "{kept}: what fits is kept");
    // With room again the file is whole and goes on.
    let database = open(&dir.file());
    ids(&database);
    assert_eq!(insert(&database, 1_000_000).wait(), Ok(1));
    assert_eq!(database.health().set_aside, []);
}

#[test]
fn a_directory_that_comes_later_is_used_then() {
    let dir = Dir::new("later");
    let path = dir.0.join("sub/numbers.db");
    let database = open(&path);
    assert!(matches!(insert(&database, 1).wait(), Err(Failed::File(_))));
    assert_eq!(
        (
            database.health().dropped,
            database.health().failing.is_some()
        ),
        (1, true)
    );
    std::fs::create_dir(dir.0.join("sub")).unwrap();
    assert_eq!(insert(&database, 2).wait(), Ok(1));
    assert_eq!(
        (database.health().dropped, database.health().failing),
        (1, None)
    );
    assert_eq!(ids(&database), [2]);
}

#[test]
fn a_file_of_a_newer_program_is_refused_and_left_as_it_is() {
    let dir = Dir::new("newer");
    let newer = Connection::open(dir.file()).unwrap();
    newer
        .pragma_update(None, "application_id", SCHEMA.application_id)
        .unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    let before = std::fs::read(dir.file()).unwrap();
    let database = open(&dir.file());
    let refused = insert(&database, 1).wait().unwrap_err();
    assert_eq!(refused, Failed::Newer { found: 7, known: 1 });
    let said = refused.to_string();
    assert!(
        said.contains("newer program") && said.contains("version 7"),
        "{said}"
    );
    assert_eq!(database.health().failing, Some(said));
    database.close();
    // Only SQLite's own mark of the journal mode may differ.
    let after = Connection::open(dir.file()).unwrap();
    let version: i64 = after
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(
        (version, std::fs::read(dir.file()).unwrap().len()),
        (7, before.len())
    );
}

#[test]
fn another_programs_file_is_refused_and_not_set_aside() {
    let dir = Dir::new("foreign");
    let foreign = Connection::open(dir.file()).unwrap();
    foreign.pragma_update(None, "application_id", 1).unwrap();
    drop(foreign);
    let database = open(&dir.file());
    let Err(Failed::File(why)) = insert(&database, 1).wait() else {
        panic!("it was written");
    };
    assert!(why.contains("not a file of numbers"), "{why}");
    assert_eq!(database.health().set_aside, []);
}

#[test]
fn an_older_file_gets_the_steps_that_it_lacks() {
    const NEWER: Schema = Schema {
        steps: &[
            SCHEMA.steps[0],
            "ALTER TABLE number ADD COLUMN more INTEGER NOT NULL DEFAULT 5",
        ],
        ..SCHEMA
    };
    let dir = Dir::new("steps");
    let database = open(&dir.file());
    insert(&database, 1).wait().unwrap();
    database.close();
    let database = Database::start(settings(&dir.file()), NEWER).unwrap();
    let more = database.read(|connection| {
        connection.query_row("SELECT more FROM number", [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(more.wait(), Ok(5));
    database.close();
    let database = open(&dir.file());
    let refused = insert(&database, 2).wait();
    assert_eq!(refused, Err(Failed::Newer { found: 2, known: 1 }));
}

#[test]
fn the_bound_is_kept_by_removing_what_matters_least() {
    let dir = Dir::new("bound");
    let bytes_max = 256 << 10;
    let settings = Settings {
        bytes_max,
        ..settings(&dir.file())
    };
    let database = Database::start(settings, SCHEMA).unwrap();
    for id in 0..10_000 {
        insert(&database, id).wait().unwrap();
        assert!(
            database.health().bytes <= bytes_max,
            "{:?}",
            database.health()
        );
    }
    let kept = ids(&database);
    assert_eq!(kept.last(), Some(&9_999), "the oldest go first");
    assert!(
        kept.len() > 500 && kept.first() > Some(&0),
        "{}",
        kept.len()
    );
    database.close();
    let length = std::fs::metadata(dir.file()).unwrap().len();
    assert!(length <= bytes_max * 5 / 4, "{length}");
}

#[test]
fn a_file_never_exceeds_its_bound_nor_a_smaller_one_that_it_is_given_later() {
    let dir = Dir::new("smaller");
    let length = || std::fs::metadata(dir.file()).unwrap().len();
    let start = |bytes_max: u64| {
        let settings = Settings {
            bytes_max,
            ..settings(&dir.file())
        };
        Database::start(settings, SCHEMA).unwrap()
    };
    let database = start(1 << 20);
    for id in 0..20_000 {
        insert(&database, id).wait().unwrap();
        assert!(length() <= Settings::file_bytes_max(1 << 20), "{id}");
    }
    assert!(database.health().bytes > 512 << 10);
    database.close();
    let database = start(128 << 10);
    insert(&database, 20_000).wait().unwrap();
    assert_eq!(ids(&database).last(), Some(&20_000));
    assert!(
        length() <= Settings::file_bytes_max(128 << 10),
        "{}",
        length()
    );
    // What does not fit is not written, and the file stays what it was.
    let large = database.write(|connection| {
        connection.execute_batch(
            "WITH RECURSIVE many (id) AS (SELECT 100000 UNION ALL SELECT id + 1 FROM many WHERE id < 150000)
             INSERT INTO number SELECT id, id FROM many",
        )
    });
    assert!(large.wait().is_err());
    insert(&database, 20_001).wait().unwrap();
    assert_eq!(ids(&database).last(), Some(&20_001));
    assert!(
        length() <= Settings::file_bytes_max(128 << 10),
        "{}",
        length()
    );
    database.close();
}

#[test]
fn a_bound_that_changes_while_the_file_is_used_is_kept_from_then_on() {
    let dir = Dir::new("rebound");
    let length = || std::fs::metadata(dir.file()).unwrap().len();
    let settings = Settings {
        bytes_max: 1 << 20,
        ..settings(&dir.file())
    };
    let database = Database::start(settings, SCHEMA).unwrap();
    for id in 0..20_000 {
        insert(&database, id).wait().unwrap();
    }
    assert!(length() > Settings::file_bytes_max(256 << 10));
    database.bound(256 << 10);
    // Whatever is asked next finds it done.
    assert_eq!(ids(&database).last(), Some(&19_999));
    assert!(length() <= Settings::file_bytes_max(256 << 10));
    assert!(database.health().bytes <= 256 << 10);
    database.bound(1 << 20);
    for id in 20_000..40_000 {
        insert(&database, id).wait().unwrap();
    }
    assert!(database.health().bytes > 512 << 10, "there is room again");
    database.close();
}

#[test]
fn an_error_of_one_closure_undoes_that_one_alone() {
    let dir = Dir::new("one");
    let database = open(&dir.file());
    let answers: Vec<Answer<usize>> = [1, 2, 2, 3].map(|id| insert(&database, id)).into();
    let done: Vec<bool> = answers
        .into_iter()
        .map(|answer| answer.wait().is_ok())
        .collect();
    assert_eq!(done, [true, true, false, true]);
    assert_eq!(ids(&database), [1, 2, 3]);
    assert_eq!(
        (database.health().dropped, database.health().failing),
        (1, None)
    );
}

#[test]
fn a_second_program_is_refused_while_the_first_has_the_file() {
    let dir = Dir::new("second");
    let first = open(&dir.file());
    insert(&first, 1).wait().unwrap();
    let second = open(&dir.file());
    assert!(insert(&second, 2).wait().is_err());
    assert_eq!(second.health().set_aside, []);
    first.close();
    assert_eq!(insert(&second, 2).wait(), Ok(1));
    assert_eq!(ids(&second), [1, 2]);
}
