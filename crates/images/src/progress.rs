//! How far something is, for a person who waits: on standard error, where that is a terminal.

use env::CoreHandle;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;
use units::Now;

/// How often it is shown.
const INTERVAL: Duration = Duration::from_millis(500);

pub(crate) struct Progress {
    core: CoreHandle,
    total: u64,
    done: u64,
    /// What was there before this run.
    before: u64,
    began: Now,
    shown: Option<Now>,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(core: &CoreHandle, total: u64) -> Self {
        Self {
            core: core.clone(),
            total,
            done: 0,
            before: 0,
            began: core.now(),
            shown: None,
            is_shown: std::io::stderr().is_terminal(),
        }
    }

    /// So much was done by an earlier run.
    pub(crate) const fn skip(&mut self, bytes: u64) {
        self.done += bytes;
        self.before += bytes;
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let now = self.core.now();
        if self.is_shown && self.shown.is_none_or(|at| now.since(at) >= INTERVAL) {
            self.shown = Some(now);
            let line = line(
                self.done,
                self.total,
                self.done - self.before,
                now.since(self.began),
            );
            let mut err = std::io::stderr().lock();
            // Who does not read it does not miss it.
            let _ = write!(err, "\r{line:<72}");
            let _ = err.flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr().lock(), "\r{:<72}\r", "");
        }
    }
}

fn line(done: u64, total: u64, own: u64, time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = own.saturating_mul(1000) / millis;
    let left = total.saturating_sub(done).checked_div(rate);
    let left = left.map_or(String::new(), |seconds| match seconds {
        0..100 => format!(", {seconds} s left"),
        100..6000 => format!(", {} min left", seconds / 60),
        _ => format!(", {} h left", seconds / 3600),
    });
    format!(
        "{} of {}, {}/s{left}",
        output::rounded(done),
        output::rounded(total),
        output::rounded(rate)
    )
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_left_is_counted_by_what_this_run_has_done() {
        let gib = 1 << 30;
        let line = line(6 * gib, 10 * gib, 2 * gib, Duration::from_secs(4));
        assert_eq!(line, "6 GiB of 10 GiB, 512 MiB/s, 8 s left");
    }
}
