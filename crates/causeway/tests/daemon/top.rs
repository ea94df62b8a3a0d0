//! `causeway top` in a terminal of its own, and without one.

use crate::place::{Place, text_of};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");
const LIMIT: Duration = Duration::from_secs(30);

/// Leaves the alternate screen, and shows the cursor.
const RESTORED: [&str; 2] = ["\x1b[?1049l", "\x1b[?25h"];

/// The program in a terminal.
struct Terminal {
    child: Child,
    master: std::fs::File,
    /// Kept open, so that what was set of it can be read.
    slave: OwnedFd,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(place: &Place, size: (u16, u16), no_colour: bool) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        let size = Winsize {
            ws_col: size.0,
            ws_row: size.1,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = Command::new(CAUSEWAY)
            .args(["top", "--interval", "0.2"])
            .env("CAUSEWAY_API", place.api())
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", if no_colour { "1" } else { "" })
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let master = std::fs::File::from(master);
        let mut reader = master.try_clone().unwrap();
        let (send, output) = channel();
        let read = move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                let _ = send.send(bytes[..n].to_vec());
            }
        };
        std::thread::Builder::new().spawn(read).unwrap();
        Self {
            child,
            master,
            slave,
            output,
            seen: String::new(),
        }
    }

    /// Waits until `text` has been written since the last such wait.
    fn until(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let bytes = self.output.recv_timeout(LIMIT);
            let bytes = bytes.unwrap_or_else(|_| panic!("never {text:?} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        !modes.contains(LocalModes::ECHO) && !modes.contains(LocalModes::ICANON)
    }

    /// It has ended, and the terminal is as it was.
    fn ended(mut self) {
        for code in RESTORED {
            self.until(code);
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert!(!self.is_raw(), "keys are echoed again");
    }
}

fn with_a_lun(name: &str) -> (Place, crate::place::Daemon) {
    let place = Place::new(name);
    let daemon = place.start();
    place.run(0, "lun create vm01 --size 1M --backend memory");
    (place, daemon)
}

#[test]
fn a_terminal_shows_a_view_that_keys_and_signals_end_cleanly() {
    let (place, daemon) = with_a_lun("top-view");
    for end in ["q", "\x03", ""] {
        let mut terminal = Terminal::start(&place, (100, 30), false);
        terminal.until("vm01");
        assert!(terminal.is_raw());
        terminal.until("\x1b[");
        if end.is_empty() {
            kill_process(Pid::from_child(&terminal.child), Signal::TERM).unwrap();
        } else {
            terminal.press(end);
        }
        terminal.ended();
    }
    daemon.stop();
}

#[test]
fn no_color_and_a_narrow_terminal_are_respected() {
    let (place, daemon) = with_a_lun("top-plain");
    let mut terminal = Terminal::start(&place, (24, 6), true);
    terminal.until("vm01");
    terminal.press("r");
    terminal.until("▲");
    terminal.press("q");
    let mut all = std::mem::take(&mut terminal.seen);
    terminal.until(RESTORED[0]);
    all.push_str(&terminal.seen);
    // Colours are set by 30 to 49, 90 to 107 and 38;...: only the reset to none may stand there.
    for code in ["\x1b[36", "\x1b[32", "\x1b[38;", "\x1b[48;"] {
        assert!(!all.contains(code), "{code:?} in {all:?}");
    }
    terminal.child.wait().unwrap();
    daemon.stop();
}

#[test]
fn a_daemon_that_is_started_anew_is_waited_for() {
    let (place, daemon) = with_a_lun("top-restart");
    let mut terminal = Terminal::start(&place, (160, 30), false);
    terminal.until("vm01");
    daemon.kill();
    terminal.until("api.sock");
    let daemon = place.start();
    terminal.until("every");
    terminal.press("q");
    terminal.ended();
    daemon.stop();
}

#[test]
fn without_a_terminal_it_prints_once_and_a_daemon_that_is_away_is_an_error() {
    let (place, daemon) = with_a_lun("top-once");
    let printed = place.run(0, "top --interval 0.1");
    assert!(printed.starts_with("node n, 0.1 s: 0 IOPS"), "{printed}");
    assert!(printed.contains("\nvm01 "), "{printed}");
    assert_eq!(
        place
            .run(0, "top --batch -n 3 --interval 0.1")
            .matches("node n,")
            .count(),
        3
    );
    let one = place.json("top --once --interval 0.1");
    assert_eq!(one["luns"][0]["name"], "vm01");
    assert_eq!(one["luns"][0]["iops"], 0.0);
    assert!(one["cores"][0]["busy"].as_f64().unwrap() <= 1.0);
    for wrong in [
        "top --interval 0",
        "top --interval x",
        "top --sort colour",
        "top -n 0",
    ] {
        place.run(2, wrong);
    }
    daemon.stop();
    let words = ["top", "--once"];
    text_of(&place.run_with(&place.api(), &words, ""), 7, "no daemon");
}
