//! A session's shares of its core's memory: one for each LUN.
//!
//! **Contract.** What one session makes this core hold for one LUN (data of writes that is awaited or with the
//! backend, reads in progress, replies that are not sent) never takes more than half of the memory that is there: a
//! new command may begin only where it leaves as much free as that share then holds. With n shares that take all
//! they can, one part in n + 1 stays free for others, whatever the hosts do or leave undone. Small commands always
//! begin. Commands that wait for memory wait behind those of their own LUN only: a LUN whose backend hangs, and
//! keeps what its share may have, holds up no other.

use iscsi::{Itt, Lun};
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
    held: BTreeMap<Itt, (Lun, usize)>,
    of_luns: BTreeMap<Lun, OfLun>,
    /// A timer for another look is set.
    pub(super) looking: bool,
}

#[derive(Default)]
struct OfLun {
    bytes: usize,
    waiting: VecDeque<(Itt, Need)>,
}

impl Share {
    /// Whether a command of `bytes` bytes may begin, while replies of `unsent` bytes wait to be sent.
    pub(super) fn has_room(&self, lun: Lun, bytes: usize, unsent: usize, pool: &Pool) -> bool {
        let has = self.of_luns.get(&lun).map_or(0, |of_lun| of_lun.bytes);
        let then = has.saturating_add(unsent).saturating_add(bytes);
        then <= ALWAYS
            || then == bytes
            || then <= pool.limit_bytes().saturating_sub(pool.out_bytes())
    }

    /// A command has begun.
    pub(super) fn take(&mut self, lun: Lun, itt: Itt, bytes: usize) {
        self.give_back(itt);
        self.held.insert(itt, (lun, bytes));
        let of_lun = self.of_luns.entry(lun).or_default();
        of_lun.bytes = of_lun.bytes.saturating_add(bytes);
    }

    /// A command is over, begun or not.
    pub(super) fn give_back(&mut self, itt: Itt) {
        let Some((lun, bytes)) = self.held.remove(&itt) else {
            return;
        };
        if let Some(of_lun) = self.of_luns.get_mut(&lun) {
            of_lun.bytes = of_lun.bytes.saturating_sub(bytes);
        }
    }

    /// A command that waited is over: its tag may come again.
    pub(super) fn forget(&mut self, itt: Itt) {
        for of_lun in self.of_luns.values_mut() {
            of_lun.waiting.retain(|(waits, _)| *waits != itt);
        }
    }

    pub(super) fn wait(&mut self, lun: Lun, itt: Itt, need: Need) {
        let of_lun = self.of_luns.entry(lun).or_default();
        of_lun.waiting.push_back((itt, need));
    }

    /// No command of this LUN waits.
    pub(super) fn is_idle(&self, lun: Lun) -> bool {
        let of_lun = self.of_luns.get(&lun);
        of_lun.is_none_or(|of_lun| of_lun.waiting.is_empty())
    }

    pub(super) fn luns_that_wait(&self) -> Vec<Lun> {
        let waiting = self.of_luns.iter();
        let waiting = waiting.filter(|(_, of_lun)| !of_lun.waiting.is_empty());
        waiting.map(|(lun, _)| *lun).collect()
    }

    /// The oldest of a LUN that waits.
    pub(super) fn first(&self, lun: Lun) -> Option<(Itt, Need)> {
        self.of_luns.get(&lun)?.waiting.front().copied()
    }

    pub(super) fn first_has_begun(&mut self, lun: Lun) {
        if let Some(of_lun) = self.of_luns.get_mut(&lun) {
            of_lun.waiting.pop_front();
        }
    }

    pub(super) fn forget_waiting(&mut self) {
        for of_lun in self.of_luns.values_mut() {
            of_lun.waiting.clear();
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const LUN_0: Lun = Lun([0; 8]);
    const LUN_1: Lun = Lun([0, 1, 0, 0, 0, 0, 0, 0]);

    #[test]
    fn a_greedy_lun_leaves_half_of_the_memory_and_small_commands_always_begin() {
        let pool = Pool::new(16 << 20);
        let mut share = Share::default();
        let mut out = Vec::new();
        while share.has_room(LUN_0, 1 << 20, 0, &pool) {
            let tag = u32::try_from(out.len()).unwrap();
            out.push(pool.alloc(1 << 20).unwrap());
            share.take(LUN_0, Itt::from_wire(tag).unwrap(), 1 << 20);
        }
        assert_eq!(out.len(), 8);
        let other = Share::default();
        for of in [&share, &other] {
            assert!(of.has_room(LUN_1, 4 << 20, 0, &pool));
            assert!(of.has_room(LUN_1, 8 << 20, 0, &pool), "a first one always");
            assert!(of.has_room(LUN_1, 4096, 100 << 10, &pool));
        }
        share.give_back(Itt::from_wire(0).unwrap());
        out.pop();
        assert!(share.has_room(LUN_0, 1 << 20, 0, &pool));
    }

    #[test]
    fn commands_wait_behind_those_of_their_own_lun_only() {
        let mut share = Share::default();
        let tag = |tag| Itt::from_wire(tag).unwrap();
        share.wait(LUN_0, tag(1), Need::DataOut(1));
        share.wait(LUN_0, tag(2), Need::DataIn(2));
        assert!(!share.is_idle(LUN_0) && share.is_idle(LUN_1));
        share.wait(LUN_1, tag(3), Need::DataIn(3));
        assert_eq!(share.luns_that_wait(), [LUN_0, LUN_1]);
        share.forget(tag(1));
        assert_eq!(share.first(LUN_0), Some((tag(2), Need::DataIn(2))));
        share.first_has_begun(LUN_1);
        assert_eq!(share.luns_that_wait(), [LUN_0]);
    }
}
