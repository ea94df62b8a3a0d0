//! An answer again and again: in its place in a terminal, else one after the other.

use crate::signals::wait_for_end;
use crate::{Output, print};
use manifest::code::Code;
use manifest::problem::Problem;
use std::cell::Cell;
use std::io::{IsTerminal as _, stdout};
use std::str::FromStr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Every(f64);

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = text.trim_end_matches('s').parse().ok();
        let seconds = seconds.filter(|it| (0.1..=86_400.0).contains(it));
        let seconds = seconds.ok_or("write a number of seconds from 0.1 to 86400")?;
        Ok(Self(seconds))
    }
}

impl Every {
    /// What stands above an answer.
    #[must_use]
    pub fn title(self, command: &str) -> String {
        format!("every {} s, until Ctrl-C: {command}", self.0)
    }

    fn span(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

/// Where the answers of rounds go.
pub(crate) struct Rounds {
    title: String,
    /// Rows and columns of the terminal, asked for anew each time; none: there is no terminal.
    size: fn() -> Option<(usize, usize)>,
    is_first: Cell<bool>,
    /// Nothing of this round was printed yet.
    is_new: Cell<bool>,
}

fn terminal() -> Option<(usize, usize)> {
    if !stdout().is_terminal() || std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some((size.ws_row.into(), size.ws_col.into()))
}

impl Rounds {
    pub(crate) fn new(title: String) -> Self {
        Self {
            title,
            size: terminal,
            is_first: Cell::new(true),
            is_new: Cell::new(true),
        }
    }

    /// There was an answer before.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.is_first.get()
    }

    /// The text with what brings it into its place.
    pub(crate) fn placed(&self, text: &str, is_yaml: bool) -> String {
        let is_new = self.is_new.replace(false);
        let is_first = self.is_first.replace(false);
        match (self.size)() {
            Some((rows, columns)) if is_new => {
                let room = rows.saturating_sub(3).max(1);
                let text = cut(text, room, columns.max(1));
                format!("\x1b[H\x1b[2J{}\n\n{text}", self.title)
            }
            None if is_new && is_yaml => format!("---\n{text}"),
            None if is_new && !is_first => format!("\n{text}"),
            _ => text.to_owned(),
        }
    }
}

/// As many lines as there is room for; one that is longer than the terminal is wide takes several.
fn cut(text: &str, room: usize, columns: usize) -> String {
    let taken = |line: &str| line.chars().count().div_ceil(columns).max(1);
    if text.lines().map(taken).sum::<usize>() <= room {
        return text.to_owned();
    }
    let (mut out, mut left, mut hidden) = (String::new(), room.saturating_sub(1), 0);
    for line in text.lines() {
        let takes = taken(line);
        if hidden == 0 && takes <= left {
            left -= takes;
            out.push_str(line);
            out.push('\n');
        } else {
            hidden += 1;
        }
    }
    format!("{out}(and {hidden} more lines)\n")
}

/// Runs `round` again and again until a signal ends the process in order, or nobody reads any more.
/// What goes wrong in a round is reported, and it goes on.
///
/// # Errors
/// The first round failed.
pub fn again<T>(
    every: Every,
    output: &Output,
    mut round: impl FnMut() -> Result<T, Problem>,
) -> Result<T, Problem> {
    let (send, ended) = channel::<()>();
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let begun = thread.spawn(move || {
        if !wait_for_end() {
            // Signals end it without us as well.
            loop {
                std::thread::park();
            }
        }
        // Whoever asks for an answer that does not come is not waited for.
        drop(send);
        print("");
        std::process::exit(0);
    });
    begun.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let mut last = round()?;
    while !output.is_left.get() {
        match ended.recv_timeout(every.span()) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(last),
        }
        if let Some(rounds) = &output.rounds {
            rounds.is_new.set(true);
        }
        match round() {
            Ok(next) => last = next,
            Err(problem) => output.problem(&problem),
        }
    }
    Ok(last)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn seconds_are_numbers_within_bounds() {
        assert_eq!("2".parse(), Ok(Every(2.0)));
        assert_eq!("0.5s".parse(), Ok(Every(0.5)));
        for wrong in ["", "0", "-1", "x", "nan", "inf", "90000"] {
            assert!(wrong.parse::<Every>().is_err(), "{wrong}");
        }
    }

    fn rounds(size: fn() -> Option<(usize, usize)>) -> Rounds {
        Rounds {
            size,
            ..Rounds::new("lun ls".to_owned())
        }
    }

    #[test]
    fn without_a_terminal_one_answer_stands_behind_the_other() {
        let rounds = rounds(|| None);
        assert_eq!(rounds.placed("a\n", false), "a\n");
        assert_eq!(rounds.placed("b\n", false), "b\n", "of the same round");
        rounds.is_new.set(true);
        assert_eq!(rounds.placed("a\n", false), "\na\n");
        rounds.is_new.set(true);
        assert_eq!(rounds.placed("a: 1\n", true), "---\na: 1\n");
    }

    #[test]
    fn in_a_terminal_it_is_cut_to_what_there_is_room_for() {
        let rounds = rounds(|| Some((6, 10)));
        assert_eq!(
            rounds.placed("a\nb\n", false),
            "\x1b[H\x1b[2Jlun ls\n\na\nb\n"
        );
        assert_eq!(rounds.placed("c\n", false), "c\n", "of the same round");
        rounds.is_new.set(true);
        let long = rounds.placed("a\nb\nc\nd\n", false);
        assert!(long.ends_with("\n\na\nb\n(and 2 more lines)\n"), "{long}");
        rounds.is_new.set(true);
        let wide = rounds.placed("a\n0123456789012\nc\n", false);
        assert!(wide.ends_with("\n\na\n(and 2 more lines)\n"), "{wide}");
    }
}
