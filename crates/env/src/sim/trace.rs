//! What happened, as lines with columns and as one running hash.
//!
//! Columns, separated by spaces: `time` (ns), `step`, `node.core` (`-` where neither applies),
//! `event`, and three numbers whose meaning depends on the event:
//!
//! | event | a | b | c |
//! |---|---|---|---|
//! | `poll` | task | 1 where it ended | 0 |
//! | `job` | from core | to core | 0 |
//! | `timer` | number of the timer | 0 | 0 |
//! | `connect` | connection | port | 0 |
//! | `refuse` | port | 0 | 0 |
//! | `send` | connection | side | bytes taken |
//! | `arrive` | connection | side | bytes |
//! | `receive` | connection | side | bytes given |
//! | `close`, `reset`, `hole` | connection | side | 0 |
//! | `submit` | operation | inode | kind (0 read, 1 write, 2 sync, 3 other) |
//! | `complete` | operation | inode | 1 where it failed |
//! | `name` | kind (0 open, 1 rename, 2 remove, 3 directory, 4 sync, 5 list) | inode | 1: failed |
//! | `cut`, `kill`, `start` | incarnation | 0 | 0 |
//! | `fault` | class, as its place in `Fault::ALL` | 0 | 0 |
//! | `note` | given by the test | given by the test | given by the test |

use std::collections::VecDeque;
use std::fmt::Write;

/// One event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) time: u64,
    pub(super) step: u64,
    pub(super) place: Option<(u16, u16)>,
    pub(super) event: &'static str,
    pub(super) numbers: [u64; 3],
}

/// The last events and the hash of all.
pub(super) struct Trace {
    keep: usize,
    lines: VecDeque<Line>,
    hash: u64,
}

impl Trace {
    pub(super) fn new(keep: usize) -> Self {
        Self {
            keep,
            lines: VecDeque::new(),
            hash: 0xCBF2_9CE4_8422_2325,
        }
    }

    pub(super) fn add(&mut self, line: Line) {
        let place = line.place.map_or(u64::MAX, |(node, core)| {
            (u64::from(node) << 16) | u64::from(core)
        });
        let [a, b, c] = line.numbers;
        for word in [line.time, line.step, place, a, b, c] {
            self.mix(word);
        }
        for &byte in line.event.as_bytes() {
            self.mix(u64::from(byte));
        }
        if self.keep == 0 {
            return;
        }
        if self.lines.len() == self.keep {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let [a, b, c] = line.numbers;
            let place = match line.place {
                Some((node, core)) => format!("{node}.{core}"),
                None => "-".to_owned(),
            };
            writeln!(
                out,
                "{} {} {place} {} {a} {b} {c}",
                line.time, line.step, line.event
            )
            .expect("writing to a string cannot fail");
        }
        out
    }
}
