//! The history in its file: stopped, started again, lost and full.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use database::{Settings, Synchronous, rusqlite};
use history::{Asked, History, Kind, Lines, Metric, Object, Reading};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The beginning of a chunk of every tier.
const BEGAN: u64 = 1_800_000_000;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("history-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("history.db")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(path: &Path, now: u64, bytes_max: u64) -> History {
    let settings = Settings {
        path: path.to_owned(),
        synchronous: Synchronous::Normal,
        bytes_max,
    };
    let history = History::start(settings).unwrap();
    wait(history.load(now));
    history
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        std::thread::yield_now();
    }
}

fn metric(name: &str) -> Metric {
    Metric::named(name).unwrap()
}

/// So many LUNs, each with a counter that grows by 100 and a gauge, for some seconds.
fn push(history: &History, seconds: std::ops::Range<u64>, luns: u64) {
    for second in seconds {
        let names: Vec<String> = (0..luns).map(|lun| format!("lun{lun}")).collect();
        let readings: Vec<Reading<'_>> = names
            .iter()
            .map(|name| Reading {
                kind: Kind::Lun,
                name,
                identity: None,
                figures: vec![
                    (metric("read_ops"), Some(second * 100)),
                    (metric("in_flight"), Some(second % 2)),
                ],
            })
            .collect();
        history.push(second, &readings);
    }
}

fn ask(history: &History, from: u64, to: u64, points: u64) -> Lines {
    let object = Object {
        kind: Kind::Lun,
        name: "lun0".to_owned(),
    };
    let metrics = vec![metric("read_ops"), metric("in_flight")];
    let asked = Asked { from, to, points };
    wait(history.query(vec![object], metrics, asked)).unwrap()
}

/// Seconds of which something is known, and by how much the counter grew.
fn known(lines: &Lines) -> (u64, u64) {
    let points = &lines.lines[0].points;
    (
        points.iter().map(|it| it.seconds).sum(),
        points.iter().map(|it| it.sum).sum(),
    )
}

#[test]
fn what_was_recorded_is_there_after_a_stop_and_a_start() {
    let dir = Dir::new("restart");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    push(&history, BEGAN..BEGAN + 200, 3);
    let before = ask(&history, BEGAN, BEGAN + 200, 200);
    assert_eq!((before.resolution, known(&before)), (1, (199, 19_900)));
    history.stop();
    let history = start(&dir.file(), BEGAN + 230, 64 << 20);
    assert_eq!(ask(&history, BEGAN, BEGAN + 200, 200), before);
    push(&history, BEGAN + 230..BEGAN + 400, 3);
    let after = ask(&history, BEGAN, BEGAN + 400, 400);
    assert_eq!(
        known(&after),
        (199 + 169, 36_800),
        "a gap while it was stopped"
    );
    assert!(
        after.lines[0].points[200..=230]
            .iter()
            .all(history::Point::is_gap)
    );
    let coarse = ask(&history, BEGAN, BEGAN + 400, 2);
    let (seconds, sum) = known(&coarse);
    assert_eq!((coarse.step, seconds), (200, 199 + 169));
    assert!(sum.abs_diff(36_800) < 300, "{sum}");
    let gauge = &coarse.lines[1].points[0];
    assert_eq!(
        (
            gauge.min_of(metric("in_flight")),
            gauge.max_of(metric("in_flight"))
        ),
        (0.0, 1.0)
    );
    assert!((gauge.mean_of(metric("in_flight")) - 0.5).abs() < 0.01);
}

#[test]
fn a_process_that_is_gone_without_a_stop_loses_a_minute_at_most() {
    let dir = Dir::new("crash");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    push(&history, BEGAN..BEGAN + 330, 3);
    // The query waits behind what was sent before it.
    ask(&history, BEGAN, BEGAN + 330, 330);
    let kept = dir.0.join("kept.db");
    for suffix in ["", "-wal"] {
        let of = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(of(&dir.file()), of(&kept)).unwrap();
    }
    let after = start(&kept, BEGAN + 340, 64 << 20);
    for points in [330, 33, 2] {
        let (seconds, _) = known(&ask(&after, BEGAN, BEGAN + 330, points));
        assert!((330 - 60..330).contains(&seconds), "{points}: {seconds}");
    }
}

#[test]
fn a_full_file_loses_the_oldest_of_the_finest_first() {
    let dir = Dir::new("full");
    let history = start(&dir.file(), BEGAN, 256 << 10);
    push(&history, BEGAN..BEGAN + 3_000, 40);
    let now = BEGAN + 3_000;
    let coarse = ask(&history, BEGAN, now, 300);
    assert_eq!(coarse.resolution, 10);
    assert_eq!(known(&coarse).0, 2_999, "{}", history.health().bytes);
    let fine = ask(&history, now - 60, now, 60);
    assert_eq!((fine.resolution, known(&fine).0), (1, 60));
    assert!(
        history.health().bytes <= 256 << 10,
        "{:?}",
        history.health()
    );
    let file = history.health();
    assert_eq!((file.dropped, file.failing), (0, None));
}

#[test]
fn a_year_that_fills_the_file_leaves_the_last_hours_what_they_are() {
    let dir = Dir::new("year");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    push(&history, BEGAN..BEGAN + 3_000, 1);
    history.stop();
    let file = rusqlite::Connection::open(dir.file()).unwrap();
    // Chunks of five hours before.
    let (tier, hours) = (2_i64 << 60, i64::try_from(BEGAN / 18_000).unwrap());
    for ago in 1..=10 {
        let key = tier | (hours - ago) << 24;
        let sql = "INSERT INTO chunk VALUES (?1, zeroblob(200000))";
        file.execute(sql, [key]).unwrap();
    }
    drop(file);
    let history = start(&dir.file(), BEGAN + 3_000, 1 << 20);
    push(&history, BEGAN + 3_000..BEGAN + 3_200, 1);
    let coarse = ask(&history, BEGAN, BEGAN + 3_200, 320);
    // Who was started anew does not know by how much the counter grew meanwhile.
    assert_eq!((coarse.resolution, known(&coarse).0), (10, 3_198));
    history.stop();
    assert!(history.health().bytes <= 1 << 20, "{:?}", history.health());
}

#[test]
fn a_row_that_is_damaged_is_a_gap() {
    let dir = Dir::new("row");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    push(&history, BEGAN..BEGAN + 300, 1);
    history.stop();
    let file = rusqlite::Connection::open(dir.file()).unwrap();
    let changed = file.execute(
        "UPDATE chunk SET bytes = zeroblob(20) WHERE key = (SELECT min(key) FROM chunk)",
        [],
    );
    assert_eq!(changed, Ok(1));
    drop(file);
    let history = start(&dir.file(), BEGAN + 300, 64 << 20);
    assert_eq!(known(&ask(&history, BEGAN, BEGAN + 300, 300)).0, 240);
}

#[test]
fn a_clock_that_is_set_back_takes_along_what_has_not_come_yet() {
    let dir = Dir::new("back");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    let ahead = BEGAN + 10 * 86_400;
    push(&history, ahead..ahead + 300, 1);
    push(&history, BEGAN..BEGAN + 300, 1);
    assert_eq!(known(&ask(&history, BEGAN, BEGAN + 300, 300)).0, 299);
    assert_eq!(known(&ask(&history, ahead, ahead + 300, 300)).0, 0);
    // A second that was taken is not taken twice.
    push(&history, BEGAN + 100..BEGAN + 200, 1);
    assert_eq!(known(&ask(&history, BEGAN, BEGAN + 300, 300)).0, 299);
}

/// What is known of one metric, in steps of so many seconds.
fn line(history: &History, object: (Kind, &str), name: &str, span: (u64, u64), step: u64) -> Lines {
    let object = Object {
        kind: object.0,
        name: object.1.to_owned(),
    };
    let (from, to) = (BEGAN + span.0, BEGAN + span.1);
    let points = (to - from) / step;
    let asked = Asked { from, to, points };
    let metrics = vec![Metric::named(name).unwrap()];
    wait(history.query(vec![object], metrics, asked)).unwrap()
}

#[test]
fn a_file_from_before_levels_and_tallies_is_read_and_goes_on() {
    let dir = Dir::new("older");
    let old = rusqlite::Connection::open(dir.file()).unwrap();
    old.execute_batch(include_str!("before_levels.sql"))
        .unwrap();
    drop(old);
    let (lun, pool) = ((Kind::Lun, "a"), (Kind::Pool, "p"));
    let history = start(&dir.file(), BEGAN + 700, 64 << 20);
    let ops = line(&history, lun, "read_ops", (0, 700), 10);
    assert_eq!((ops.resolution, known(&ops)), (10, (699, 69_900)));
    let p99 = line(&history, lun, "read_latency_p99", (660, 700), 1);
    let p99: Vec<u64> = p99.lines[0].points.iter().map(|it| it.max).collect();
    // Two of three codes: figures above 255 have eight binary digits.
    assert_eq!(p99[..3], [500, 502, 502]);
    let used = line(&history, pool, "used_bytes", (0, 600), 300);
    assert_eq!(used.lines[0].points[0].max, 1_000 << 20);
    let tally = Metric::of_map(false, 6);
    let level = metric("read_queue_p50");
    for at in 700..720 {
        let mut figures = vec![(metric("read_ops"), Some(at * 100))];
        if at % 10 == 9 {
            figures.extend([(level, Some(9)), (tally, Some(70))]);
        }
        let reading = Reading {
            kind: Kind::Lun,
            name: "a",
            identity: None,
            figures,
        };
        history.push(BEGAN + at, &[reading]);
    }
    history.stop();
    let history = start(&dir.file(), BEGAN + 720, 64 << 20);
    let ops = line(&history, lun, "read_ops", (0, 720), 10);
    assert_eq!(known(&ops), (699 + 19, 69_900 + 1_900));
    let levels = line(&history, lun, "read_queue_p50", (690, 720), 1);
    assert_eq!(levels.resolution, 10, "seconds have none");
    let levels: Vec<(u64, u64)> = levels.lines[0]
        .points
        .iter()
        .map(|it| (it.seconds, it.sum))
        .collect();
    assert_eq!(levels, [(0, 0), (10, 90), (10, 90)]);
    let tallies = line(&history, lun, tally.name(), (0, 720), 300);
    let tallies: u64 = tallies.lines[0].points.iter().map(|it| it.sum).sum();
    assert_eq!(tallies, 140);
}

#[test]
fn a_renamed_object_takes_its_figures_along_and_a_new_one_of_its_old_name_begins_anew() {
    let dir = Dir::new("rename");
    let of = |name: &str| Object {
        kind: Kind::Lun,
        name: name.to_owned(),
    };
    let seconds = |history: &History, name: &str| {
        let (from, to, points) = (BEGAN, BEGAN + 300, 300);
        let asked = Asked { from, to, points };
        let lines = wait(history.query(vec![of(name)], vec![metric("read_ops")], asked)).unwrap();
        known(&lines)
    };
    let history = start(&dir.file(), BEGAN, 64 << 20);
    // lun0 and lun1; what lun1 was is another one's, and its name is free by now.
    push(&history, BEGAN..BEGAN + 100, 2);
    history.rename(&of("lun0"), "lun1");
    assert_eq!(seconds(&history, "lun1"), (99, 9_900));
    assert_eq!(seconds(&history, "lun0"), (0, 0));
    // It goes on without a gap, and another one begins under its old name.
    push(&history, BEGAN + 100..BEGAN + 200, 2);
    assert_eq!(seconds(&history, "lun1"), (199, 19_900));
    assert_eq!(seconds(&history, "lun0"), (99, 9_900));
    history.rename(&of("nobody"), "lun1");
    history.stop();
    let history = start(&dir.file(), BEGAN + 200, 64 << 20);
    assert_eq!(seconds(&history, "lun1"), (199, 19_900));
    assert_eq!(seconds(&history, "lun0"), (99, 9_900));
    history.stop();
}

/// A LUN of this name and identity, whose counter grows by 100 a second.
fn push_one(history: &History, seconds: std::ops::Range<u64>, name: &str, identity: Option<&str>) {
    for second in seconds {
        let reading = Reading {
            kind: Kind::Lun,
            name,
            identity,
            figures: vec![(metric("read_ops"), Some(second * 100))],
        };
        history.push(second, &[reading]);
    }
}

/// Of how many of 600 seconds something is known.
fn seconds(history: &History, name: &str) -> u64 {
    let object = Object {
        kind: Kind::Lun,
        name: name.to_owned(),
    };
    let (from, to, points) = (BEGAN, BEGAN + 600, 600);
    let asked = Asked { from, to, points };
    let lines = wait(history.query(vec![object], vec![metric("read_ops")], asked)).unwrap();
    known(&lines).0
}

#[test]
fn another_lun_of_the_same_name_begins_a_line_of_its_own() {
    let dir = Dir::new("anew");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    push_one(&history, BEGAN..BEGAN + 100, "a", Some("naa.1"));
    push_one(&history, BEGAN + 100..BEGAN + 130, "a", Some("naa.2"));
    let have = |history: &History| ["a", "naa.1", "naa.2"].map(|name| seconds(history, name));
    // A counter has no figure of its first second.
    assert_eq!(have(&history), [29, 99, 0]);
    history.stop();
    // Another one while the daemon was away, and then the first one again, as a restore brings it.
    let history = start(&dir.file(), BEGAN + 130, 64 << 20);
    assert_eq!(have(&history), [29, 99, 0]);
    push_one(&history, BEGAN + 130..BEGAN + 200, "a", Some("naa.3"));
    assert_eq!(have(&history), [69, 99, 29]);
    history.stop();
    let history = start(&dir.file(), BEGAN + 200, 64 << 20);
    assert_eq!(have(&history), [69, 99, 29]);
    // What it is called now is not who it is: its line goes along, and the one of that name stays.
    let of = |name: &str| Object {
        kind: Kind::Lun,
        name: name.to_owned(),
    };
    push_one(&history, BEGAN + 200..BEGAN + 210, "b", Some("naa.4"));
    history.rename(&of("a"), "b");
    push_one(&history, BEGAN + 210..BEGAN + 230, "b", Some("naa.3"));
    let all = |history: &History| ["a", "b", "naa.4"].map(|name| seconds(history, name));
    let had = all(&history);
    assert_eq!((had[0], had[2]), (0, 9));
    assert!(had[1] >= 69 + 19, "{had:?}");
    history.stop();
    let history = start(&dir.file(), BEGAN + 230, 64 << 20);
    assert_eq!(all(&history), had);
    history.stop();
}

#[test]
fn one_that_comes_again_under_its_name_keeps_nothing_from_being_stored() {
    let dir = Dir::new("again");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    // Each has the name in turn, the first one twice.
    for (turn, identity) in (0..).zip(["naa.1", "naa.2", "naa.1", "naa.3"]) {
        let from = BEGAN + turn * 50;
        push_one(&history, from..from + 50, "a", Some(identity));
    }
    history.stop();
    let history = start(&dir.file(), BEGAN + 200, 64 << 20);
    // The line of the first one goes on; of each turn a counter lacks its first second.
    let have = ["a", "naa.1", "naa.2"].map(|name| seconds(&history, name));
    assert_eq!(have, [49, 49 + 49, 49]);
    // Also under another name than it had, and where the daemon was stopped meanwhile.
    push_one(&history, BEGAN + 200..BEGAN + 230, "b", Some("naa.2"));
    push_one(&history, BEGAN + 230..BEGAN + 240, "a", Some("naa.1"));
    let have = |history: &History| {
        ["a", "b", "naa.1", "naa.2", "naa.3"].map(|name| seconds(history, name))
    };
    let had = have(&history);
    assert_eq!((had[1], had[2], had[3], had[4]), (49 + 29, 0, 0, 49));
    assert!(had[0] >= 98 + 9, "{had:?}");
    let health = history.health();
    assert_eq!((health.failing, health.dropped), (None, 0));
    history.stop();
    let history = start(&dir.file(), BEGAN + 240, 64 << 20);
    assert_eq!(have(&history), had);
    history.stop();
}

#[test]
fn two_that_change_their_names_in_a_second_take_their_lines_along() {
    let dir = Dir::new("swapped");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    let push = |seconds: std::ops::Range<u64>, luns: [(&str, &str); 2]| {
        for second in seconds {
            let of = |(name, identity)| Reading {
                kind: Kind::Lun,
                name,
                identity: Some(identity),
                figures: vec![(metric("read_ops"), Some(second * 100))],
            };
            history.push(second, &luns.map(of));
        }
    };
    push(BEGAN..BEGAN + 30, [("a", "naa.1"), ("c", "naa.3")]);
    push(BEGAN + 30..BEGAN + 100, [("a", "naa.1"), ("b", "naa.2")]);
    push(BEGAN + 100..BEGAN + 110, [("a", "naa.2"), ("b", "naa.1")]);
    let names = ["a", "b", "c", "naa.1", "naa.2"];
    let have = |history: &History| names.map(|name| seconds(history, name));
    assert_eq!(have(&history), [79, 109, 29, 0, 0]);
    history.stop();
    let history = start(&dir.file(), BEGAN + 110, 64 << 20);
    assert_eq!(have(&history), [79, 109, 29, 0, 0]);
    history.stop();
}

#[test]
fn a_file_from_before_there_were_identities_goes_on() {
    let dir = Dir::new("no-identity");
    let history = start(&dir.file(), BEGAN, 64 << 20);
    push_one(&history, BEGAN..BEGAN + 100, "a", None);
    history.stop();
    let file = rusqlite::Connection::open(dir.file()).unwrap();
    let older = "ALTER TABLE object DROP COLUMN identity; PRAGMA user_version = 1";
    file.execute_batch(older).unwrap();
    drop(file);
    let history = start(&dir.file(), BEGAN + 100, 64 << 20);
    push_one(&history, BEGAN + 100..BEGAN + 150, "a", Some("naa.1"));
    assert!(seconds(&history, "a") >= 99 + 49);
    push_one(&history, BEGAN + 150..BEGAN + 160, "a", Some("naa.2"));
    assert_eq!(seconds(&history, "a"), 9);
    history.stop();
}
