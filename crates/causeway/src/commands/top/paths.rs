//! `causeway top --paths`: what paths and NICs of this host carry now, as the programs that have
//! volumes open report.
//!
//! A program counts operations and bytes of each path, and what is in flight. Latency is the mean
//! of the operations whose time was taken within the interval. Retransmissions are a session's:
//! volumes that share one show the same, and a NIC counts them once.

use super::terminal::{FIRST, Message, begin, failed, keys, wait_for_signals};
use crate::commands::path::running::volumes;
use client::Client;
use host::view::VolumeView;
use manifest::code::Code;
use manifest::problem::Problem;
use output::{Output, table};
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tokio::time::Instant;
use top_view::mebibytes;

/// Counters of one path of one program's volume.
#[derive(Clone, PartialEq, Debug, Default)]
struct Counts {
    state: String,
    ios: u64,
    bytes: u64,
    retransmits: u64,
    in_flight: u64,
    timed: u64,
    timed_us: u64,
    session: String,
    round_trip_us: Option<u64>,
}

/// A program, a unit, a path.
type Key = (u64, String, String);
type Sample = BTreeMap<Key, Counts>;

/// What happened within an interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct PathFrame {
    seconds: f64,
    /// By the host's NIC, over all programs.
    nics: Vec<Line>,
    /// By path.
    paths: Vec<Line>,
}

/// One NIC or path.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    unit: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    state: String,
    bytes_per_second: f64,
    /// The same in units of 1,000,000, for programs that have read this before.
    megabytes_per_second: f64,
    iops: f64,
    in_flight: f64,
    /// Mean of what ended within the interval; absent where nothing did.
    latency_ms: Option<f64>,
    /// What was timed, and how long it took together in microseconds.
    #[serde(skip)]
    timed: (u64, u64),
    retransmits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_us: Option<u64>,
}

/// Shows it in the terminal until a key or a signal ends it.
pub(super) fn show(interval: Duration) -> Result<(), Problem> {
    let first = first()?;
    let (send, messages) = channel();
    begin("signals", {
        let send = send.clone();
        move || wait_for_signals(&send)
    })?;
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    begin("keys", move || keys(&send))?;
    let shown = follow(&mut terminal, &messages, interval, first);
    ratatui::restore();
    shown
}

fn follow(
    terminal: &mut ratatui::DefaultTerminal,
    messages: &Receiver<Message>,
    interval: Duration,
    first: Sample,
) -> Result<(), Problem> {
    let (mut before, mut at) = (first, Instant::now());
    let mut next = at + FIRST.min(interval);
    let mut frame = None;
    loop {
        let drawn = terminal.draw(|canvas| draw(canvas, frame.as_ref()));
        drawn.map_err(|error| failed(&error))?;
        match messages.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Message::Input(Event::Key(key))) if quits(key) => return Ok(()),
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(Message::Input(_) | Message::Activity(_)) => {}
            Err(RecvTimeoutError::Timeout) => {
                let (after, now) = (sample()?, Instant::now());
                frame = Some(between(&before, &after, (now - at).as_secs_f64()));
                (before, at, next) = (after, now, now + interval);
            }
        }
    }
}

fn quits(key: KeyEvent) -> bool {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most keys mean nothing here"
    )]
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char('c' | 'd') => with_control,
        _ => false,
    }
}

fn draw(canvas: &mut ratatui::Frame<'_>, frame: Option<&PathFrame>) {
    let [table, foot] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(canvas.area());
    let shown = frame.map_or_else(
        || "measuring the first interval ...".to_owned(),
        |frame| text(frame, usize::from(table.width)),
    );
    canvas.render_widget(Paragraph::new(shown), table);
    canvas.render_widget(Paragraph::new(" q quit"), foot);
}

/// What there is at the beginning; nothing is an error.
fn first() -> Result<Sample, Problem> {
    let found = sample()?;
    if !found.is_empty() {
        return Ok(found);
    }
    let problem = Problem::new(Code::NotFound, "no program here has a volume by URL open");
    Err(problem.hint("`causeway attach` and `causeway bench` report their paths while they run"))
}

/// Prints it until there were enough samples.
pub(super) fn print(
    client: &Client,
    rounds: Option<u64>,
    interval: Duration,
    output: &Output,
) -> Result<(), Problem> {
    let (mut before, mut at) = (first()?, Instant::now());
    let mut shown = 0;
    while rounds.is_none_or(|rounds| shown < rounds) {
        client.pause(interval);
        let (after, now) = (sample()?, Instant::now());
        let frame = between(&before, &after, (now - at).as_secs_f64());
        if shown > 0 && !output.is_document() {
            output::print("\n");
        }
        output.show(&frame, |frame| text(frame, columns()));
        (before, at, shown) = (after, now, shown + 1);
    }
    Ok(())
}

/// How wide the terminal is; what goes elsewhere is not cut.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let known = size.ok().map(|size| usize::from(size.ws_col));
    known.filter(|width| *width > 0).unwrap_or(usize::MAX)
}

fn sample() -> Result<Sample, Problem> {
    Ok(read(&volumes(None)?))
}

/// The counters in the programs' documents.
fn read(volumes: &[VolumeView]) -> Sample {
    let mut found = Sample::new();
    for VolumeView { pid, status } in volumes {
        for path in &status.paths {
            let counts = Counts {
                state: path.state.to_owned(),
                ios: path.ios,
                bytes: path.bytes,
                retransmits: path.retransmits,
                in_flight: path.in_flight.into(),
                timed: path.timed,
                timed_us: path.timed_us,
                session: path.session.clone(),
                round_trip_us: path.round_trip_us.map(u64::from),
            };
            let key = ((*pid).into(), status.unit_path.clone(), path.path.clone());
            found.insert(key, counts);
        }
    }
    found
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn between(before: &Sample, after: &Sample, seconds: f64) -> PathFrame {
    let seconds = seconds.max(1e-3);
    let (mut nics, mut paths) = (BTreeMap::<String, Line>::new(), Vec::new());
    let mut sessions = BTreeSet::new();
    for (key, now) in after {
        // A path that was not there before began at 0; one whose counters fell is another's.
        let old = before.get(key).filter(|old| old.ios <= now.ios);
        let old = old.cloned().unwrap_or_default();
        let rate = |now: u64, old: u64| now.saturating_sub(old) as f64 / seconds;
        let line = Line {
            pid: Some(key.0),
            unit: key.1.clone(),
            name: key.2.clone(),
            state: now.state.clone(),
            bytes_per_second: rate(now.bytes, old.bytes),
            megabytes_per_second: rate(now.bytes, old.bytes) / 1e6,
            iops: rate(now.ios, old.ios),
            in_flight: (now.in_flight + old.in_flight) as f64 / 2.0,
            latency_ms: None,
            timed: (
                now.timed.saturating_sub(old.timed),
                now.timed_us.saturating_sub(old.timed_us),
            ),
            retransmits_per_second: rate(now.retransmits, old.retransmits),
            round_trip_us: now.round_trip_us,
        };
        let nic = key.2.split('>').next().unwrap_or("");
        let sum = nics.entry(nic.to_owned()).or_insert_with(|| Line {
            name: nic.to_owned(),
            ..Line::default()
        });
        sum.bytes_per_second += line.bytes_per_second;
        sum.megabytes_per_second += line.megabytes_per_second;
        sum.iops += line.iops;
        sum.in_flight += line.in_flight;
        sum.timed.0 += line.timed.0;
        sum.timed.1 += line.timed.1;
        if now.session.is_empty() || sessions.insert((key.0, &now.session)) {
            sum.retransmits_per_second += line.retransmits_per_second;
        }
        paths.push(line);
    }
    let mut nics: Vec<Line> = nics.into_values().collect();
    for line in nics.iter_mut().chain(&mut paths) {
        let (timed, took_us) = line.timed;
        line.latency_ms = (timed > 0).then(|| took_us as f64 / timed as f64 / 1e3);
    }
    paths.sort_by(|a, b| b.megabytes_per_second.total_cmp(&a.megabytes_per_second));
    PathFrame {
        seconds,
        nics,
        paths,
    }
}

fn text(frame: &PathFrame, width: usize) -> String {
    let figures = |line: &Line| {
        [
            mebibytes(line.bytes_per_second),
            format!("{:.0}", line.iops),
            line.latency_ms
                .map_or("-".to_owned(), |it| format!("{it:.2}")),
            format!("{:.1}", line.in_flight),
            format!("{:.1}", line.retransmits_per_second),
        ]
    };
    let nics: Vec<Vec<String>> = frame
        .nics
        .iter()
        .map(|line| {
            std::iter::once(line.name.clone())
                .chain(figures(line))
                .collect()
        })
        .collect();
    let paths: Vec<Vec<String>> = frame
        .paths
        .iter()
        .map(|line| {
            let names = [line.name.clone(), line.state.clone()];
            let pid = line.pid.map_or(String::new(), |pid| pid.to_string());
            let ends = [line.unit.clone(), pid];
            names.into_iter().chain(figures(line)).chain(ends).collect()
        })
        .collect();
    let columns = ["MiB/s", "IOPS", "LATENCY ms", "IN FLIGHT", "SENT AGAIN/s"];
    let head = |first: &[&'static str], last: &[&'static str]| [first, &columns, last].concat();
    format!(
        "{}\n{}",
        fitting(width, head(&["NIC"], &[]), nics),
        fitting(width, head(&["PATH", "STATE"], &["UNIT", "PID"]), paths)
    )
}

/// A table no wider than `width`: the unit's name is cut to its last part, then columns go, the
/// last one first, as long as what matters most is left.
fn fitting(width: usize, mut head: Vec<&'static str>, mut rows: Vec<Vec<String>>) -> String {
    const LEAST: usize = 5;
    let unit = head.iter().position(|it| *it == "UNIT");
    let mut made = table(&head, &rows);
    let fits = |made: &str| made.lines().all(|line| line.chars().count() <= width);
    if let Some(unit) = unit.filter(|_| !fits(&made)) {
        for row in &mut rows {
            let short = row[unit].rsplit(':').next().unwrap_or("").to_owned();
            row[unit] = short;
        }
        made = table(&head, &rows);
    }
    while !fits(&made) && head.len() > LEAST {
        head.pop();
        for row in &mut rows {
            row.truncate(head.len());
        }
        made = table(&head, &rows);
    }
    made
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::commands::path::running::readable;
    use serde_json::{Value, json};

    fn read(volumes: &Value) -> Sample {
        let all = volumes.as_array().cloned().unwrap_or_default();
        super::read(&readable(all).collect::<Vec<VolumeView>>())
    }

    fn volumes(ios: u64, bytes: u64) -> Value {
        let path = |name: &str, ios: u64| {
            json!({ "path": name, "state": "active", "ios": ios, "bytes": bytes, "retransmits": 3, "in_flight": 4,
            "timed": ios, "timed_us": ios * 80_000 })
        };
        json!([{ "pid": 7, "unit_path": "iqn/0", "paths": [
            path("eth0>10.0.0.1:3260", ios), path("eth0>10.0.0.2:3260", 0), path("eth1>10.0.0.2:3260", ios / 2),
        ] }])
    }

    #[test]
    fn rates_are_differences_and_a_nic_is_the_sum_of_its_paths() {
        let frame = between(
            &read(&volumes(100, 1_000_000)),
            &read(&volumes(300, 5_000_000)),
            2.0,
        );
        let nic = &frame.nics[0];
        assert_eq!(
            (nic.name.as_str(), nic.iops, nic.bytes_per_second),
            ("eth0", 100.0, 4e6)
        );
        // What ended took 80 ms each, whatever was in flight at the moments of the samples.
        assert_eq!(nic.latency_ms, Some(80.0));
        assert_eq!(nic.retransmits_per_second, 0.0);
        assert_eq!(frame.nics[1].iops, 50.0);
        let idle = frame
            .paths
            .iter()
            .find(|line| line.name == "eth0>10.0.0.2:3260");
        assert_eq!(idle.unwrap().latency_ms, None);
        let shown = text(&frame, usize::MAX);
        assert!(
            shown.starts_with("NIC") && shown.contains("80.00") && shown.contains("iqn/0"),
            "{shown}"
        );
    }

    #[test]
    fn what_a_session_sent_again_counts_once_for_its_nic_however_many_units_share_it() {
        let volumes = |again: u64| {
            let path = |ios: u64, session: &str| json!({ "path": "eth0>10.0.0.1:3260", "ios": ios, "retransmits": again, "session": session });
            json!([
                { "pid": 7, "unit_path": "iqn/0", "paths": [path(again, "0-3")] },
                { "pid": 7, "unit_path": "iqn/1", "paths": [path(again, "0-3")] },
                { "pid": 7, "unit_path": "iqn/2", "paths": [path(again, "1-3")] },
                { "pid": 8, "unit_path": "iqn/3", "paths": [path(again, "0-3")] },
            ])
        };
        let frame = between(&read(&volumes(10)), &read(&volumes(30)), 2.0);
        assert_eq!(frame.nics[0].retransmits_per_second, 30.0, "three sessions");
        assert_eq!(frame.nics[0].iops, 40.0);
        let each = frame.paths.iter().map(|it| it.retransmits_per_second);
        assert_eq!(each.collect::<Vec<_>>(), [10.0; 4]);
    }

    #[test]
    fn on_a_narrow_terminal_no_line_wraps_and_what_matters_most_is_left() {
        let mut volumes = [volumes(100, 1_000_000), volumes(300, 5_000_000)];
        for volume in &mut volumes {
            volume[0]["unit_path"] = "iqn.2026-11.io.causeway:a-rather-long-name/0".into();
        }
        let frame = between(&read(&volumes[0]), &read(&volumes[1]), 2.0);
        for width in [60, 80, 100, 200] {
            let shown = text(&frame, width);
            assert!(
                shown.lines().all(|line| line.chars().count() <= width),
                "{width}\n{shown}"
            );
            assert!(
                shown.contains("LATENCY ms") && shown.contains("80.00"),
                "{width}\n{shown}"
            );
            assert_eq!(
                shown.contains("iqn.2026-11.io.causeway:a"),
                width == 200,
                "{width}\n{shown}"
            );
            assert_eq!(shown.contains("PID"), width == 200, "{width}\n{shown}");
        }
    }

    #[test]
    fn a_program_that_began_anew_counts_from_zero_and_nonsense_is_nothing() {
        let frame = between(
            &read(&volumes(1000, 9)),
            &read(&volumes(100, 2_000_000)),
            1.0,
        );
        assert_eq!(frame.nics[0].iops, 100.0);
        assert!(read(&json!({ "volumes": 1 })).is_empty());
        assert!(read(&json!([{ "paths": [1, {}] }])).len() <= 1);
    }

    #[test]
    fn q_and_what_ends_programs_in_a_terminal_end_it_and_nothing_else_does() {
        let press = |code, modifiers| quits(KeyEvent::new(code, modifiers));
        for key in ['q', 'Q'] {
            assert!(press(KeyCode::Char(key), KeyModifiers::NONE));
        }
        assert!(press(KeyCode::Esc, KeyModifiers::NONE));
        assert!(press(KeyCode::Char('c'), KeyModifiers::CONTROL));
        for key in ['c', 'd', 'r', ' '] {
            assert!(!press(KeyCode::Char(key), KeyModifiers::NONE));
        }
    }
}
