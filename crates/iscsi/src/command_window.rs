//! The CmdSN window of a session: what may be sent, what has come, and in which order it is
//! delivered.
//!
//! ```text
//!        delivered        |  ExpCmdSN   early (held)            MaxCmdSN |   not yet allowed
//!   ----------------------+----x--------o-----x----o----------------x----+------------------
//! ```
//!
//! **Contract.** The window belongs to the session: with several connections each offers to the
//! same one. Flow control is by tasks and by bytes: MaxCmdSN advances only while fewer than `depth`
//! commands and fewer than `bytes_max` bytes of writes are in progress; one command is always let
//! in when none is in progress. ExpStatSN of the initiator plays no part (field lesson 44).
//!
//! **Invariants.** I1: MaxCmdSN never goes back. I2: each CmdSN is delivered at most once, in
//! order. I3: no more than `depth` items are held.
//!
//! Spec: RFC 7143 4.2.2.1 "Command Numbering and Acknowledging".

use crate::serial::CmdSn;
use std::collections::VecDeque;

/// The window, holding what came early as `T`.
pub struct CommandWindow<T> {
    exp: CmdSn,
    max: CmdSn,
    depth: u32,
    bytes_max: u64,
    in_progress: u32,
    bytes: u64,
    held: bool,
    /// `early[i]` is CmdSN `exp + i`; the first is always missing.
    early: VecDeque<Early<T>>,
}

enum Early<T> {
    Missing,
    /// Came before its turn.
    Item(T),
    /// Counts as received, with nothing to deliver.
    Plugged,
}

/// What became of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered<T> {
    /// It is its turn. Ask [`CommandWindow::pop_ready`] afterwards.
    Deliver(T),
    /// It came early and is held.
    Held,
    /// Outside the window or a duplicate: silently ignored, as the standard demands.
    Ignored,
}

impl<T> CommandWindow<T> {
    /// A window whose first command is `first`.
    #[must_use]
    pub fn new(first: CmdSn, depth: u32, bytes_max: u64) -> Self {
        let depth = depth.clamp(1, 1 << 16);
        Self {
            exp: first,
            max: first.plus(depth).minus(1),
            depth,
            bytes_max,
            in_progress: 0,
            bytes: 0,
            held: false,
            early: VecDeque::new(),
        }
    }

    /// Next number that is expected.
    #[must_use]
    pub fn exp_cmd_sn(&self) -> CmdSn {
        self.exp
    }

    /// While it is held, MaxCmdSN does not advance: what is in progress comes to an end sooner or
    /// later.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Highest number that is taken; advances here as far as flow control lets it.
    pub fn max_cmd_sn(&mut self) -> CmdSn {
        if self.held {
            return self.max;
        }
        let crowded = self.bytes >= self.bytes_max && self.in_progress > 0;
        let room = if crowded {
            0
        } else {
            self.depth.saturating_sub(self.in_progress)
        };
        let candidate = self.exp.plus(room).minus(1);
        if self.max.precedes(candidate) {
            self.max = candidate;
        }
        self.max
    }

    /// The initiator knows, or is to be informed, that nothing may be sent now.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.max.precedes(self.exp)
    }

    /// Commands in progress.
    #[must_use]
    pub fn in_progress(&self) -> u32 {
        self.in_progress
    }

    /// Non-immediate command `cmd_sn` has come.
    pub fn offer(&mut self, cmd_sn: CmdSn, item: T) -> Offered<T> {
        if cmd_sn == self.exp {
            // With a closed window (MaxCmdSN = ExpCmdSN - 1) not even this one is inside.
            if self.is_closed() {
                return Offered::Ignored;
            }
            self.advance();
            return Offered::Deliver(item);
        }
        match self.place(cmd_sn) {
            Some(place @ Early::Missing) => {
                *place = Early::Item(item);
                Offered::Held
            }
            Some(Early::Item(_) | Early::Plugged) | None => Offered::Ignored,
        }
    }

    /// The next held command whose turn has come.
    pub fn pop_ready(&mut self) -> Option<T> {
        loop {
            match self.early.front()? {
                Early::Missing => return None,
                Early::Item(_) | Early::Plugged => {}
            }
            let front = self.early.pop_front();
            self.exp = self.exp.next();
            if let Some(Early::Item(item)) = front {
                return Some(item);
            }
        }
    }

    /// A command with this number has not come, but counts as received from now on (ABORT TASK of a
    /// task that is still to come, a rejected command). False: the number is outside the window or
    /// was received.
    pub fn plug(&mut self, cmd_sn: CmdSn) -> bool {
        if cmd_sn == self.exp && !self.is_closed() {
            self.advance();
            return true;
        }
        match self.place(cmd_sn) {
            Some(place @ Early::Missing) => {
                *place = Early::Plugged;
                true
            }
            Some(Early::Item(_) | Early::Plugged) | None => false,
        }
    }

    /// Takes a held command back (aborted before its turn); its number stays received.
    pub fn withdraw(&mut self, cmd_sn: CmdSn) {
        if let Some(place @ Early::Item(_)) = self.place(cmd_sn) {
            *place = Early::Plugged;
        }
    }

    /// A delivered command is in progress, with `bytes` bytes of data-out to come.
    pub fn begin(&mut self, bytes: u64) {
        self.in_progress = self.in_progress.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// It is answered or forgotten.
    pub fn end(&mut self, bytes: u64) {
        self.in_progress = self.in_progress.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// ExpCmdSN was received.
    fn advance(&mut self) {
        self.exp = self.exp.next();
        self.early.pop_front();
    }

    /// The place of a number after ExpCmdSN and inside the window.
    fn place(&mut self, cmd_sn: CmdSn) -> Option<&mut Early<T>> {
        if !self.exp.precedes(cmd_sn) || self.max.precedes(cmd_sn) {
            return None;
        }
        let index = usize::try_from(cmd_sn.distance_from(self.exp)).ok()?;
        if self.early.len() <= index {
            self.early
                .resize_with(index.saturating_add(1), || Early::Missing);
        }
        self.early.get_mut(index)
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    const STEPS: u32 = 5;
    const CHOICES: u32 = 6;

    /// Every sequence of arrivals from a small set of numbers around the window, at every start
    /// that makes it wrap, against a model that keeps sets of plain 64-bit numbers.
    #[test]
    fn every_order_of_arrival_delivers_each_command_once_and_in_order() {
        let m = u32::MAX;
        for start in [0, 1000, m - 4, m - 2, m - 1, m, 0x7FFF_FFFE] {
            for depth in 1..=4u32 {
                for code in 0..CHOICES.pow(STEPS) {
                    one_order(start, depth, code);
                }
            }
        }
    }

    fn one_order(start: u32, depth: u32, mut code: u32) {
        let mut window = CommandWindow::new(CmdSn(start), depth, u64::MAX);
        let (mut exp, mut early) = (0i64, BTreeSet::new());
        for _ in 0..STEPS {
            // From one before ExpCmdSN's start to past the window's end.
            let number = i64::from(code % CHOICES) - 1;
            code /= CHOICES;
            let mut delivered = Vec::new();
            let at = CmdSn(start.wrapping_add_signed(i32::try_from(number).unwrap()));
            match window.offer(at, number) {
                Offered::Deliver(item) => {
                    delivered.push(item);
                    delivered.extend(std::iter::from_fn(|| window.pop_ready()));
                }
                Offered::Held => {
                    assert!(number > exp && number < exp + i64::from(depth));
                    assert!(early.insert(number), "held twice");
                }
                Offered::Ignored => assert!(
                    number < exp || number >= exp + i64::from(depth) || early.contains(&number)
                ),
            }
            let mut expected = Vec::new();
            if number == exp {
                expected.push(exp);
                exp += 1;
                while early.remove(&exp) {
                    expected.push(exp);
                    exp += 1;
                }
            }
            assert_eq!(delivered, expected);
            let exp_sn = CmdSn(start.wrapping_add(u32::try_from(exp).unwrap()));
            assert_eq!(window.exp_cmd_sn(), exp_sn);
            assert_eq!(window.max_cmd_sn(), exp_sn.plus(depth - 1));
        }
    }

    #[test]
    fn the_window_closes_by_tasks_and_by_bytes_and_never_goes_back() {
        let mut window = CommandWindow::new(CmdSn(u32::MAX), 2, 1000);
        assert_eq!(window.max_cmd_sn(), CmdSn(0));
        assert_eq!(window.offer(CmdSn(u32::MAX), ()), Offered::Deliver(()));
        window.begin(0);
        assert_eq!(window.offer(CmdSn(0), ()), Offered::Deliver(()));
        window.begin(0);
        assert_eq!(window.max_cmd_sn(), CmdSn(0), "two in progress close it");
        assert_eq!(window.offer(CmdSn(1), ()), Offered::Ignored);
        window.end(0);
        assert_eq!(window.max_cmd_sn(), CmdSn(1));
        assert_eq!(window.offer(CmdSn(1), ()), Offered::Deliver(()));
        window.begin(5000);
        window.end(0);
        assert_eq!(window.max_cmd_sn(), CmdSn(1), "bytes close it");
        window.end(5000);
        assert_eq!(window.max_cmd_sn(), CmdSn(3));
        window.begin(5000);
        assert_eq!(window.max_cmd_sn(), CmdSn(3), "I1");
    }

    #[test]
    fn a_held_window_takes_what_it_allowed_and_opens_again_by_all_that_ended_meanwhile() {
        let mut window = CommandWindow::new(CmdSn(7), 3, 1000);
        assert_eq!(window.max_cmd_sn(), CmdSn(9));
        window.hold(true);
        for sn in 7..10 {
            assert_eq!(window.offer(CmdSn(sn), ()), Offered::Deliver(()));
            window.begin(0);
            window.end(0);
            assert_eq!(window.max_cmd_sn(), CmdSn(9));
        }
        assert!(window.is_closed());
        assert_eq!(window.offer(CmdSn(10), ()), Offered::Ignored);
        window.hold(false);
        assert_eq!(window.max_cmd_sn(), CmdSn(12));
    }

    #[test]
    fn a_plugged_number_counts_as_received_and_never_runs() {
        let mut window = CommandWindow::new(CmdSn(5), 8, 1000);
        assert_eq!(window.offer(CmdSn(7), 7), Offered::Held);
        assert!(window.plug(CmdSn(6)));
        assert!(!window.plug(CmdSn(6)) && !window.plug(CmdSn(7)) && !window.plug(CmdSn(4)));
        assert!(!window.plug(CmdSn(13)), "beyond the window");
        assert_eq!(window.offer(CmdSn(6), 6), Offered::Ignored);
        assert!(window.plug(CmdSn(5)));
        assert_eq!(window.pop_ready(), Some(7));
        assert_eq!(window.pop_ready(), None);
        assert_eq!(window.exp_cmd_sn(), CmdSn(8));
        assert_eq!(window.offer(CmdSn(9), 9), Offered::Held);
        window.withdraw(CmdSn(9));
        assert_eq!(window.offer(CmdSn(8), 8), Offered::Deliver(8));
        assert_eq!(window.pop_ready(), None);
        assert_eq!(window.exp_cmd_sn(), CmdSn(10));
    }
}
