//! A session's share of its core's memory.
//!
//! **Contract.** What one session makes this core hold (data of writes that is awaited or with the backend, reads
//! in progress, replies that are not sent) never takes more than half of the memory that is there: a new command
//! may begin only where it leaves as much free as its session then holds. With n sessions that take all they can,
//! one part in n + 1 stays free for others, whatever the hosts do or leave undone. Small commands always begin.

use iscsi::Itt;
use std::collections::{BTreeMap, VecDeque};
use units::Pool;

/// What a session may hold without being asked, in bytes.
const ALWAYS: usize = 256 << 10;

/// A command that waits for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// For so many bytes that its host has to send.
    DataOut(u32),
    /// For so many bytes that its host is to be sent.
    DataIn(usize),
}

/// What the session holds, and what waits until it may hold more.
#[derive(Default)]
pub(super) struct Share {
    held: BTreeMap<Itt, usize>,
    bytes: usize,
    waiting: VecDeque<(Itt, Need)>,
    /// A timer for another look is set.
    pub(super) looking: bool,
}

impl Share {
    /// Whether a command of `bytes` bytes may begin, while replies of `unsent` bytes wait to be sent.
    pub(super) fn has_room(&self, bytes: usize, unsent: usize, pool: &Pool) -> bool {
        let then = self.bytes.saturating_add(unsent).saturating_add(bytes);
        then <= ALWAYS
            || then == bytes
            || then <= pool.limit_bytes().saturating_sub(pool.out_bytes())
    }

    /// A command has begun.
    pub(super) fn take(&mut self, itt: Itt, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        let before = self.held.insert(itt, bytes);
        self.bytes = self.bytes.saturating_sub(before.unwrap_or(0));
    }

    /// A command is over, begun or not.
    pub(super) fn give_back(&mut self, itt: Itt) {
        let bytes = self.held.remove(&itt).unwrap_or(0);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// A command that waited is over: its tag may come again.
    pub(super) fn forget(&mut self, itt: Itt) {
        self.waiting.retain(|(waits, _)| *waits != itt);
    }

    pub(super) fn wait(&mut self, itt: Itt, need: Need) {
        self.waiting.push_back((itt, need));
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest that waits.
    pub(super) fn first(&self) -> Option<(Itt, Need)> {
        self.waiting.front().copied()
    }

    pub(super) fn first_has_begun(&mut self) {
        self.waiting.pop_front();
    }

    pub(super) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_greedy_session_leaves_half_of_the_memory_and_small_commands_always_begin() {
        let pool = Pool::new(16 << 20);
        let mut share = Share::default();
        let mut out = Vec::new();
        while share.has_room(1 << 20, 0, &pool) {
            let tag = u32::try_from(out.len()).unwrap();
            out.push(pool.alloc(1 << 20).unwrap());
            share.take(Itt::from_wire(tag).unwrap(), 1 << 20);
        }
        assert_eq!(out.len(), 8);
        let other = Share::default();
        assert!(other.has_room(4 << 20, 0, &pool));
        assert!(other.has_room(8 << 20, 0, &pool), "a first command always");
        assert!(other.has_room(4096, 100 << 10, &pool));
        share.give_back(Itt::from_wire(0).unwrap());
        out.pop();
        assert!(share.has_room(1 << 20, 0, &pool));
    }
}
