//! The view without a terminal: figures in, characters out.

use super::frame::{Frame, Order, SortKey};
use super::screen::{Next, Screen};
use manifest::activity::ActivityView;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn op(ops: u64, latency: u64) -> Value {
    let total = json!({ "count": ops, "us_sum": ops * latency, "buckets": [[latency, ops]] });
    let part = json!({ "count": ops, "us_sum": ops * latency / 4 });
    let stages = json!({ "total": total, "network": part, "queue": part, "backend": part });
    json!({ "ops": ops, "bytes": ops * 4096, "latency": stages })
}

/// What two LUNs and a session have done `seconds` after the start.
fn activity(seconds: u64) -> ActivityView {
    let lun = |name: &str, online: bool, reads: u64, latency: u64| {
        json!({ "name": name, "online": online, "in_flight": 3, "read": op(reads, latency),
                "write": op(reads / 2, latency), "other_ops": 0 })
    };
    let session = json!({ "id": 7, "host": "esx01", "initiator": "iqn.x:esx01", "target": "t1",
        "from": "10.0.0.9:40123", "core": 1, "load_permille": 250, "in_flight": 3,
        "commands": seconds * 1000, "bytes_in": seconds * 1_000_000, "bytes_out": 0,
        "latency": { "count": seconds, "us_sum": seconds * 150_000, "buckets": [[150_000, seconds]] } });
    let document = json!({
        "node": "san-a", "started": "2026-11-21T07:00:00.000Z", "at_us": 5_000_000 + seconds * 1_000_000,
        "cores": [{ "core": 0, "busy_us": seconds * 420_000, "load_permille": 400, "connections": 1,
                    "disk_engine": "io_uring", "registered_files": 0, "registered_bytes": 0 }],
        "luns": [lun("archive", false, 0, 0), lun("vm01", true, seconds * 2000, 128),
                 lun("vm02", true, seconds * 20, 20_480)],
        "sessions": [session],
    });
    serde_json::from_value(document).unwrap()
}

fn frame() -> Frame {
    Frame::between(&activity(2), &activity(4)).unwrap()
}

fn screen(colour: bool) -> Screen {
    let mut screen = Screen::new(SortKey::Iops, Duration::from_secs(1), colour);
    screen.show(frame());
    screen
}

fn drawn(screen: &Screen, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|canvas| screen.draw(canvas)).unwrap();
    terminal
}

/// What is seen, line by line.
fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let terminal = drawn(screen, width, height);
    let cells = terminal.backend().buffer().content();
    cells
        .chunks(usize::from(width))
        .map(|line| line.iter().map(|cell| cell.symbol()).collect())
        .collect()
}

fn press(screen: &mut Screen, code: KeyCode) -> Next {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn rates_are_differences_over_the_daemon_s_own_time() {
    let frame = frame();
    assert!((frame.seconds - 2.0).abs() < 1e-9);
    let vm01 = &frame.luns[1];
    assert_eq!((vm01.read_iops, vm01.write_iops), (2000.0, 1000.0));
    assert_eq!(vm01.rates.bytes_per_second, 3000.0 * 4096.0);
    let latency = vm01.rates.latency_us;
    assert_eq!(
        (latency.mean, latency.p50, latency.p99),
        (Some(128), Some(128), Some(128))
    );
    assert_eq!(vm01.stages_us.queue, Some(32));
    assert_eq!(frame.luns[0].rates.latency_us.p99, None, "nothing ended");
    assert_eq!(
        frame.total.latency_us.p99,
        Some(128),
        "30 of 3030 are slower"
    );
    let session = &frame.sessions[0];
    assert_eq!((session.rates.iops, session.load), (1000.0, 0.25));
    assert_eq!(session.rates.write_bytes_per_second, 1e6);
    assert!((frame.cores[0].busy - 0.42).abs() < 1e-9);
}

#[test]
fn another_daemon_s_figures_are_not_compared_and_a_new_lun_counts_from_nothing() {
    let (before, mut after) = (activity(2), activity(4));
    after.started = "2026-11-21T08:00:00Z".to_owned();
    assert_eq!(Frame::between(&before, &after), None);
    assert_eq!(Frame::between(&before, &before), None, "no time has passed");
    let (mut before, mut after) = (activity(2), activity(4));
    before.luns.remove(1);
    Arc::make_mut(&mut after.luns[2]).read.ops = 10;
    let frame = Frame::between(&before, &after).unwrap();
    assert_eq!(frame.luns[1].read_iops, 4000.0, "new");
    assert_eq!(frame.luns[2].read_iops, 5.0, "made anew under its old name");
}

#[test]
fn rows_stand_in_the_order_that_was_asked_for() {
    let mut frame = frame();
    let mut names = |key, reverse| -> String {
        let order = Order { key, reverse };
        frame.sort(order, order);
        let names: Vec<&str> = frame.luns.iter().map(|lun| &lun.name[..]).collect();
        names.join(" ")
    };
    assert_eq!(names(SortKey::Iops, false), "vm01 vm02 archive");
    assert_eq!(names(SortKey::Iops, true), "archive vm02 vm01");
    assert_eq!(names(SortKey::Latency, false), "vm02 vm01 archive");
    assert_eq!(
        names(SortKey::InFlight, false),
        "archive vm01 vm02",
        "equal: by name"
    );
    assert_eq!(names(SortKey::Name, false), "archive vm01 vm02");
}

#[test]
fn a_wide_terminal_shows_everything_and_a_narrow_one_what_matters_most() {
    let screen = screen(true);
    let wide = lines(&screen, 150, 30).join("\n");
    for what in [
        "san-a",
        "core 0 42%",
        "every 1.00 s",
        "▼IOPS",
        "BACKEND",
        "vm01",
        "archive (offline)",
        "7 esx01",
        "10.0.0.9:40123",
        "25%",
        "150 ms",
        "q quit",
    ] {
        assert!(wide.contains(what), "{what}\n{wide}");
    }
    let narrow = lines(&screen, 40, 12);
    let vm01 = narrow.iter().find(|line| line.contains("vm01")).unwrap();
    assert!(vm01.contains("3000") && vm01.contains("128 us"), "{vm01}");
    for (width, height) in [(20, 5), (10, 3), (3, 2), (1, 1), (150, 4), (10, 40)] {
        drawn(&screen, width, height);
    }
}

#[test]
fn head_and_foot_fit_into_80_columns_and_no_part_of_them_is_cut() {
    let screen = screen(true);
    let shown = lines(&screen, 80, 24);
    let (head, foot) = (shown[0].clone(), shown[23].clone());
    for what in ["causeway top", "san-a", "core 0 42%", "every 1.00 s"] {
        assert!(head.contains(what), "{head}");
    }
    assert!(head.contains("3 LUNs, 1 session "), "{head}");
    for what in [
        "q quit",
        "Tab table",
        "r reverse",
        "Space pause",
        "+- interval",
    ] {
        assert!(foot.contains(what), "{foot}");
    }
    let wide = lines(&screen, 120, 24)[0].clone();
    assert!(wide.contains("up since 2026-"), "{wide}");
    // What does not fit is left out, from the end on.
    let narrow = lines(&screen, 50, 24);
    assert!(
        narrow[0].trim_end().ends_with("every 1.00 s"),
        "{}",
        narrow[0]
    );
    assert!(
        !narrow[0].contains("LUN") && narrow[0].contains("42%"),
        "{}",
        narrow[0]
    );
    assert!(!narrow[23].contains("paus"), "{}", narrow[23]);
    // At no width is a part of the foot cut: what is there begins as the wide one does, and ends
    // with a whole part.
    let whole = lines(&screen, 200, 24)[23].trim_end().to_owned();
    for width in 20..120 {
        let foot = lines(&screen, width, 24)[23].trim_end().to_owned();
        let rest = whole.strip_prefix(&foot).expect("the same from the left");
        assert!(rest.is_empty() || rest.starts_with("  "), "{width}: {foot}");
    }
}

#[test]
fn without_colour_nothing_is_coloured_and_with_it_slow_is_red() {
    let colours = |screen: &Screen| -> Vec<Color> {
        let terminal = drawn(screen, 150, 30);
        let cells = terminal.backend().buffer().content();
        cells.iter().flat_map(|cell| [cell.fg, cell.bg]).collect()
    };
    assert!(
        colours(&screen(false))
            .iter()
            .all(|colour| *colour == Color::Reset)
    );
    let coloured = colours(&screen(true));
    assert!(coloured.contains(&Color::Red) && coloured.contains(&Color::Green));
}

#[test]
fn keys_sort_reverse_pause_change_the_rhythm_and_quit() {
    let mut screen = screen(true);
    let first = |screen: &Screen| -> String {
        let all = lines(screen, 100, 30);
        let head = all
            .iter()
            .position(|line| line.contains("LUN "))
            .unwrap_or(0);
        let head = all
            .iter()
            .position(|line| line.starts_with(" LUN"))
            .unwrap_or(head);
        all[head + 1].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(first(&screen), "vm01");
    press(&mut screen, KeyCode::Char('r'));
    assert_eq!(first(&screen), "archive");
    press(&mut screen, KeyCode::Char('r'));
    press(&mut screen, KeyCode::Right);
    press(&mut screen, KeyCode::Right);
    assert_eq!(first(&screen), "vm02", "by latency");
    assert_eq!(
        press(&mut screen, KeyCode::Char('+')),
        Next::Interval(Duration::from_secs(2))
    );
    for _ in 0..9 {
        press(&mut screen, KeyCode::Char('-'));
    }
    assert_eq!(
        press(&mut screen, KeyCode::Char('-')),
        Next::Interval(Duration::from_millis(250))
    );
    press(&mut screen, KeyCode::Char(' '));
    let paused = lines(&screen, 100, 30);
    screen.show(Frame::between(&activity(4), &activity(40)).unwrap());
    assert!(paused[0].contains("paused"));
    assert_eq!(first(&screen), "vm02");
    assert_eq!(press(&mut screen, KeyCode::Char('q')), Next::Quit);
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(control_c), Next::Quit);
}

#[test]
fn a_daemon_that_is_away_leaves_its_last_figures_and_says_so() {
    let mut screen = screen(true);
    screen.trouble("unix:/run/causeway/api.sock: connection refused".to_owned());
    let shown = lines(&screen, 100, 30).join("\n");
    assert!(
        shown.contains("connection refused") && shown.contains("vm01"),
        "{shown}"
    );
    screen.restarted();
    assert!(lines(&screen, 100, 30)[0].contains("started anew"));
    screen.show(frame());
    assert!(lines(&screen, 100, 30)[0].contains("every 1.00 s"));
}
