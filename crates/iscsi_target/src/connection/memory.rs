//! A session's shares of its core's memory: one for each LUN.
//!
//! **Contract.** What one session makes this core hold for one LUN (data of writes that is awaited
//! or with the backend, reads in progress, replies that are not sent) never takes more than half of
//! the memory that is there: a new command may begin only where it leaves as much free as that
//! share then holds. With n shares that take all they can, one part in n + 1 stays free for others,
//! whatever the hosts do or leave undone. Small commands always begin. Commands that wait for
//! memory wait behind those of their own LUN only: a LUN whose backend hangs, and keeps what its
//! share may have, holds up no other.
//!
//! The same holds for all sessions of a unit together: one whose backend hangs, with many sessions,
//! keeps half.
//!
//! The last eighth of the memory is for small commands of hosts that hold little with all their
//! sessions: whatever many greedy sessions leave each other, somebody's small write begins. What
//! hosts announce and do not send is bounded further ([`super::awaited`]).
//!
//! Where a limit stands for the session, all its LUNs together hold no more than that, and the same
//! rule divides it among them; but a LUN that holds nothing always gets one command. What was
//! aborted counts until the backend has let go of it, so that a host which aborts and sends again
//! gains nothing.

use env::LocalFuture;
use iscsi::{Itt, Lun};
use logical_unit::WaitsForRoom;
use std::collections::{BTreeMap, VecDeque};
use std::task::Context;
use units::{Now, Pool};

/// What a session may hold without being asked, in bytes.
const ALWAYS: usize = 256 << 10;

/// However little memory there is, a host may hold so much of the last part.
const SMALLEST: usize = 64 << 10;

/// What of a core's memory is for small commands of hosts that hold little: one part in so many.
const LAST_PART: usize = 8;

/// What such a host holds at most: one part in so many.
const LITTLE_PART: usize = 64;

/// What came of the try to begin a command that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    Yes,
    /// It waits for memory of this core, or for its part of it.
    WaitsForMemory,
    /// It waits for room under its unit's limit.
    WaitsForRoom,
    /// It waits for others of its session, which hold its part of that room.
    WaitsForItsOwn,
}

/// A command that waits for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// For so many bytes that its host has to send.
    DataOut(u32),
    /// For so many bytes that its host is to be sent.
    DataIn(usize),
}

impl Need {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::DataOut(bytes) => bytes as usize,
            Self::DataIn(bytes) => bytes,
        }
    }
}

/// A connection's part of its core's memory, and what it waits for there.
pub(super) struct Memory {
    /// The session's share; of its commands that have not begun, and of reads, some wait for room
    /// in it.
    pub(super) share: Share,
    /// No data of a write is late before.
    pub(super) data_due: Option<Now>,
    /// Time before it does not count: the process was stopped.
    pub(super) on_time_since: Now,
    /// Waits until there may be memory again.
    pub(super) retry: Option<LocalFuture<()>>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            share: Share::default(),
            data_due: None,
            on_time_since: Now::ZERO,
            retry: None,
        }
    }
}

/// What the session holds, and what waits until it may hold more.
#[derive(Default)]
pub(super) struct Share {
    held: BTreeMap<Itt, (Lun, usize)>,
    /// Of commands that were aborted, by their runs, and that the backend still has.
    aborted: BTreeMap<u64, (Lun, usize)>,
    of_luns: BTreeMap<Lun, OfLun>,
    /// Of all LUNs.
    bytes: usize,
    /// The most that they may hold together.
    most: Option<usize>,
    /// Something was given back, or taken from those that wait, since that was asked.
    changed: bool,
}

#[derive(Default)]
struct OfLun {
    bytes: usize,
    waiting: VecDeque<(Itt, Need)>,
    /// The session's place in the queue for room under the unit's limit, from the first that found
    /// none until none waits.
    for_room: Option<WaitsForRoom>,
}

impl OfLun {
    fn stop_waiting(&mut self) {
        if self.waiting.is_empty() {
            self.for_room = None;
        }
    }
}

/// What is held beside the session's own, in bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Others {
    /// By the other sessions of its host.
    pub(super) of_host: usize,
    /// By all sessions of the unit.
    pub(super) of_unit: usize,
}

impl Share {
    /// Whether a command of `bytes` bytes may begin, while replies of `unsent` bytes wait to be
    /// sent.
    pub(super) fn has_room(
        &self,
        lun: Lun,
        bytes: usize,
        unsent: usize,
        others: Others,
        pool: &Pool,
    ) -> bool {
        let has = self.holds(lun);
        let then = has.saturating_add(unsent).saturating_add(bytes);
        let (all, free) = (pool.limit_bytes(), pool.free_bytes());
        let fits = then <= ALWAYS || then == bytes || then <= free;
        let of_unit = others.of_unit.saturating_add(bytes);
        let fits = fits && (then <= ALWAYS || of_unit == bytes || of_unit <= free);
        let of_host = others
            .of_host
            .saturating_add(self.bytes)
            .saturating_add(unsent)
            .saturating_add(bytes);
        // The last part is for small commands of hosts that hold little. What is larger than all
        // the rest takes what it gets.
        let leaves = free.saturating_sub(bytes) >= all / LAST_PART
            || bytes > all / 2
            || (bytes <= ALWAYS && of_host <= (all / LITTLE_PART).max(SMALLEST));
        fits && leaves && self.is_within_limit(has, unsent, bytes)
    }

    fn is_within_limit(&self, has: usize, unsent: usize, bytes: usize) -> bool {
        let Some(most) = self.most else { return true };
        let free = most.saturating_sub(self.bytes.saturating_add(unsent));
        has == 0 || has.saturating_add(bytes) <= free
    }

    /// What the session's commands may hold together from now on.
    pub(super) fn limit(&mut self, most: Option<u64>) {
        self.most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    }

    /// What the session's commands hold.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the session's commands hold of a LUN.
    pub(super) fn holds(&self, lun: Lun) -> usize {
        self.of_luns.get(&lun).map_or(0, |of_lun| of_lun.bytes)
    }

    /// Its place in the queue for room under the unit's limit.
    pub(super) fn for_room(&self, lun: Lun) -> Option<&WaitsForRoom> {
        self.of_luns.get(&lun)?.for_room.as_ref()
    }

    /// Enters that queue; not where it stands in it.
    pub(super) fn enters(&mut self, lun: Lun, place: WaitsForRoom) {
        let of_lun = self.of_luns.entry(lun).or_default();
        of_lun.for_room.get_or_insert(place);
    }

    /// It has tried to find room for the commands of a LUN that wait: the first, of `bytes` bytes,
    /// waits still, for what `now` says; `begun`: others did begin.
    pub(super) fn has_tried(&mut self, lun: Lun, bytes: usize, begun: bool, now: Begun) {
        let of_lun = self.of_luns.get_mut(&lun);
        let Some(place) = of_lun.and_then(|of_lun| of_lun.for_room.as_mut()) else {
            return;
        };
        let bytes = bytes as u64;
        if begun {
            // Also where it waits for its own first: its turn is over.
            place.goes_back(bytes);
        }
        match now {
            Begun::WaitsForRoom if !begun => place.stays(bytes),
            Begun::WaitsForMemory | Begun::WaitsForItsOwn => place.is_busy(),
            Begun::WaitsForRoom | Begun::Yes => {}
        }
    }

    /// It is to try again for room under the limit of some unit, or for what was given back.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> bool {
        let mut retries = std::mem::take(&mut self.changed);
        for of_lun in self.of_luns.values() {
            let place = of_lun.for_room.as_ref();
            retries |= place.is_some_and(|place| place.poll(cx).is_ready());
        }
        retries && self.has_waiting()
    }

    /// A command has begun.
    pub(super) fn take(&mut self, lun: Lun, itt: Itt, bytes: usize) {
        self.give_back(itt);
        self.held.insert(itt, (lun, bytes));
        let of_lun = self.of_luns.entry(lun).or_default();
        of_lun.bytes = of_lun.bytes.saturating_add(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// A command was aborted while the backend has it, as this run: what it holds stays so until
    /// that ends.
    pub(super) fn abort(&mut self, itt: Itt, run: u64) {
        if let Some(held) = self.held.remove(&itt) {
            self.aborted.insert(run, held);
        }
    }

    /// The run of a command that was aborted has ended.
    pub(super) fn aborted_has_ended(&mut self, run: u64) {
        if let Some((lun, bytes)) = self.aborted.remove(&run) {
            self.let_go(lun, bytes);
        }
    }

    /// A command is over, begun or not.
    pub(super) fn give_back(&mut self, itt: Itt) {
        if let Some((lun, bytes)) = self.held.remove(&itt) {
            self.let_go(lun, bytes);
        }
    }

    fn let_go(&mut self, lun: Lun, bytes: usize) {
        self.changed = true;
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(of_lun) = self.of_luns.get_mut(&lun) {
            of_lun.bytes = of_lun.bytes.saturating_sub(bytes);
        }
    }

    /// A command that waited is over: its tag may come again.
    pub(super) fn forget(&mut self, itt: Itt) {
        self.changed = true;
        for of_lun in self.of_luns.values_mut() {
            of_lun.waiting.retain(|(waits, _)| *waits != itt);
            of_lun.stop_waiting();
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
            of_lun.stop_waiting();
        }
    }

    /// Some command waits.
    pub(super) fn has_waiting(&self) -> bool {
        self.of_luns
            .values()
            .any(|of_lun| !of_lun.waiting.is_empty())
    }

    pub(super) fn forget_waiting(&mut self) {
        for of_lun in self.of_luns.values_mut() {
            of_lun.waiting.clear();
            of_lun.stop_waiting();
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const LUN_0: Lun = Lun([0; 8]);
    const LUN_1: Lun = Lun([0, 1, 0, 0, 0, 0, 0, 0]);

    fn of_host(of_host: usize) -> Others {
        Others {
            of_host,
            of_unit: 0,
        }
    }

    #[test]
    fn all_sessions_of_a_unit_together_keep_half() {
        let pool = Pool::new(64 << 20);
        let of_unit = |of_unit: usize| Others {
            of_host: 0,
            of_unit,
        };
        // Of a mebibyte each.
        let mut held = Vec::new();
        while Share::default().has_room(LUN_0, 1 << 20, 0, of_unit(held.len() << 20), &pool) {
            held.push(pool.alloc(1 << 20).unwrap());
        }
        assert_eq!(held.len(), 32);
        let (full, other) = (of_unit(32 << 20), Others::default());
        let share = Share::default();
        assert!(
            share.has_room(LUN_0, 256 << 10, 0, full, &pool),
            "a small one"
        );
        assert!(share.has_room(LUN_1, 1 << 20, 0, other, &pool));
    }

    #[test]
    fn a_greedy_lun_leaves_half_of_the_memory_and_small_commands_always_begin() {
        let pool = Pool::new(16 << 20);
        let mut share = Share::default();
        let mut out = Vec::new();
        while share.has_room(LUN_0, 1 << 20, 0, Others::default(), &pool) {
            let tag = u32::try_from(out.len()).unwrap();
            out.push(pool.alloc(1 << 20).unwrap());
            share.take(LUN_0, Itt::from_wire(tag).unwrap(), 1 << 20);
        }
        assert_eq!(out.len(), 8);
        let other = Share::default();
        for of in [&share, &other] {
            assert!(of.has_room(LUN_1, 4 << 20, 0, Others::default(), &pool));
            assert!(
                of.has_room(LUN_1, 6 << 20, 0, Others::default(), &pool),
                "a first one"
            );
            assert!(
                !of.has_room(LUN_1, 7 << 20, 0, Others::default(), &pool),
                "the last eighth"
            );
            assert!(of.has_room(LUN_1, 4096, 100 << 10, Others::default(), &pool));
        }
        // What is left is for small commands of those who hold little.
        out.push(pool.alloc(7 << 20).unwrap());
        assert!(other.has_room(LUN_1, 64 << 10, 0, Others::default(), &pool));
        assert!(!other.has_room(LUN_1, 1 << 20, 0, Others::default(), &pool));
        assert!(
            !other.has_room(LUN_1, 64 << 10, 0, of_host(1 << 20), &pool),
            "its other sessions"
        );
        assert!(!share.has_room(LUN_1, 64 << 10, 0, Others::default(), &pool));
        out.pop();
        share.give_back(Itt::from_wire(0).unwrap());
        out.pop();
        assert!(share.has_room(LUN_0, 1 << 20, 0, Others::default(), &pool));
    }

    #[test]
    fn a_limit_of_the_session_holds_for_all_its_luns_and_leaves_each_something() {
        let pool = Pool::new(1 << 30);
        let mut share = Share::default();
        share.limit(Some(8 << 20));
        let mut tag = 0;
        let mut fill = |share: &mut Share, lun: Lun| {
            let mut taken = 0;
            while share.has_room(lun, 1 << 20, 0, Others::default(), &pool) {
                share.take(lun, Itt::from_wire(tag).unwrap(), 1 << 20);
                (tag, taken) = (tag + 1, taken + 1);
            }
            taken
        };
        assert_eq!((fill(&mut share, LUN_0), fill(&mut share, LUN_1)), (4, 2));
        assert_eq!(share.bytes(), 6 << 20);
        assert!(
            !share.has_room(LUN_0, 4096, 7 << 20, Others::default(), &pool),
            "replies count"
        );
        share.abort(Itt::from_wire(0).unwrap(), 70);
        share.give_back(Itt::from_wire(0).unwrap());
        assert_eq!(share.bytes(), 6 << 20, "the backend still has it");
        share.aborted_has_ended(70);
        share.aborted_has_ended(70);
        assert_eq!((share.bytes(), share.holds(LUN_0)), (5 << 20, 3 << 20));
        share.limit(None);
        assert!(share.has_room(LUN_0, 64 << 20, 0, Others::default(), &pool));
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
