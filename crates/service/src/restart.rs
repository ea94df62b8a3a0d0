//! A restart of the daemon by itself: the process stays, and runs its program anew.
//!
//! **Contract.** It is the same process to whoever started it, so nobody has to start it again: not
//! systemd, no shell, no container's engine. What it had open is closed; its arguments and its
//! environment are the same. The program is the one that is installed by then.

use crate::notify::notify;
use sd_notify::NotifyState;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// The longest that a stop and a start may take before systemd ends the process.
const PATIENCE_US: u32 = 600_000_000;

/// systemd's watchdog waits for as long as an orderly stop and a start may take.
pub fn begins() {
    if watchdog().is_some() {
        notify(&[
            NotifyState::WatchdogUsec(PATIENCE_US),
            NotifyState::Status("restarting"),
        ]);
    }
}

/// The watchdog waits as long as its unit says.
pub fn is_over() {
    if let Some(usual) = watchdog() {
        notify(&[NotifyState::WatchdogUsec(usual), NotifyState::Status("")]);
    }
}

fn watchdog() -> Option<u32> {
    std::env::var("WATCHDOG_USEC").ok()?.parse().ok()
}

/// Runs the program anew; answers why where that fails.
#[must_use]
pub fn begin_anew() -> io::Error {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    Command::new(program()).arg0(name).args(arguments).exec()
}

/// Where the program is; one that was replaced meanwhile is the new one.
fn program() -> PathBuf {
    let own = PathBuf::from("/proc/self/exe");
    let Ok(path) = std::fs::read_link(&own) else {
        return own;
    };
    let text = path.to_string_lossy();
    let path = PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text));
    if path.is_file() { path } else { own }
}
