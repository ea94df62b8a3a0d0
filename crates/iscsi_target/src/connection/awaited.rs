//! Shares of a core's memory for what hosts have announced and must still send.
//!
//! **Contract.** Memory for a write's data is taken when its host may send it, and is of no use to
//! anybody until the host does. So it is granted out of shares: of all, of the host (by its
//! initiator name) and of the session. A session that takes part, whose data comes, has large ones;
//! one that has never sent what it announced, or has not for a second, has small ones, and all of
//! those together have half. So a host that announces and does not send holds a sixteenth, and is
//! left out of nothing: it gets more as soon as its data comes. What a host was granted and does
//! not send in its time ([`Granted::due`]) is taken back, and the command ended.
//!
//! No number of hosts takes all: each has no more than half of what the others have left, and a
//! host that has nothing gets a small command beyond the shares, which are then as if there were a
//! sixteenth more.
//!
//! Data that comes unasked before there is memory for it is parked beside that memory, out of
//! shares of its own: all of it takes an eighth of a core's memory at most, a host a sixteenth.
//! Beyond that the command is answered TASK SET FULL. A host that has nothing parked is never
//! refused for what others have: it may go [`SMALL`] beyond the share of all, and up to twice that.
//!
//! All memory of a host's sessions, replies that it does not read included, is counted here, too:
//! the last eighth of a core's memory is for small commands of hosts that hold little.

use env::CoreHandle;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use units::Now;

/// Data that does not come for so long is no sign of a host that takes part.
const STALE: Duration = Duration::from_secs(1);

/// Commands of so many bytes and fewer may go a little beyond the share of all.
const SMALL: usize = 64 << 10;

/// However little memory a core has, a host may have so much parked: what one session may.
const PARKED_MIN: usize = 8 << 20;

/// What a host must send in a second at least of what it was granted, once its time is over: 1 MiB.
const NANOS_PER_BYTE: u64 = 954;

/// Of one core.
#[derive(Default)]
struct Ledger {
    awaited: Cell<usize>,
    parked: Cell<usize>,
    hosts: RefCell<BTreeMap<String, Weak<OfHost>>>,
    freed: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

#[derive(Default)]
struct OfHost {
    awaited: Cell<usize>,
    parked: Cell<usize>,
    /// All that its sessions hold.
    held: Cell<usize>,
}

/// The shares that grants are compared with, in bytes.
struct Most {
    session: usize,
    host: usize,
    all: usize,
}

impl Most {
    /// Of a core with so much memory, for a session that takes part or not.
    fn of(memory: usize, takes_part: bool) -> Self {
        let half = memory / 2;
        if takes_part {
            Self {
                session: half / 8,
                host: half / 4,
                all: half,
            }
        } else {
            Self {
                session: half / 64,
                host: half / 16,
                all: half / 2,
            }
        }
    }
}

impl Ledger {
    fn host(&self, initiator: &str) -> Rc<OfHost> {
        let mut hosts = self.hosts.borrow_mut();
        if let Some(host) = hosts.get(initiator).and_then(Weak::upgrade) {
            return host;
        }
        hosts.retain(|_, host| host.strong_count() > 0);
        let host = Rc::<OfHost>::default();
        hosts.insert(initiator.to_owned(), Rc::downgrade(&host));
        host
    }

    fn has_freed(&self) {
        self.freed.set(self.freed.get().wrapping_add(1));
        for waker in self.waiting.take() {
            waker.wake();
        }
    }
}

/// What one session has of it.
pub(super) struct Awaited {
    ledger: Rc<Ledger>,
    host: Rc<OfHost>,
    bytes: Cell<usize>,
    /// What was reported of it as parked.
    parked: Cell<usize>,
    /// What was reported of it as held.
    held: Cell<usize>,
    /// When something of what it announced had come last, or began to be awaited.
    came: Cell<Option<Now>>,
}

/// Memory for one command's data. Dropping it gives it back.
pub(super) struct Granted {
    of: Rc<Awaited>,
    bytes: usize,
    at: Now,
    /// What the session awaited with it.
    behind: usize,
}

fn plus(count: &Cell<usize>, bytes: usize) {
    count.set(count.get().saturating_add(bytes));
}

fn minus(count: &Cell<usize>, bytes: usize) {
    count.set(count.get().saturating_sub(bytes));
}

impl Awaited {
    /// For a session of `initiator` on this core.
    pub(super) fn new(core: &CoreHandle, initiator: &str) -> Rc<Self> {
        let ledger = core.locals().get::<Ledger>();
        Rc::new(Self {
            host: ledger.host(&initiator.to_ascii_lowercase()),
            ledger,
            bytes: Cell::new(0),
            parked: Cell::new(0),
            held: Cell::new(0),
            came: Cell::new(None),
        })
    }

    /// Its host sends what it announces, as far as is known at `now`.
    fn takes_part(&self, now: Now) -> bool {
        let came = self.came.get();
        came.is_some_and(|came| self.bytes.get() == 0 || now.since(came) <= STALE)
    }

    /// Takes `bytes` of a core's `memory` for data that the host is to send; `None`: not now.
    pub(super) fn grant(self: &Rc<Self>, bytes: usize, memory: usize, now: Now) -> Option<Granted> {
        let takes_part = self.takes_part(now);
        let most = Most::of(memory, takes_part);
        // Whoever has nothing gets one command of any size.
        let fits = |has: usize, most: usize| has == 0 || has.saturating_add(bytes) <= most;
        let all = self.ledger.awaited.get();
        let of_host = self.host.awaited.get();
        let beyond = |sixteenths: usize| {
            bytes <= SMALL && all.saturating_add(bytes) <= memory / 2 + sixteenths * (memory / 16)
        };
        let left_by_others = most.all.saturating_sub(all.saturating_sub(of_host));
        let fits = fits(self.bytes.get(), most.session)
            && fits(of_host, most.host.min(left_by_others / 2))
            && (beyond(1) || of_host == 0 && beyond(2) || fits(all, most.all));
        if !fits {
            return None;
        }
        if takes_part && self.bytes.get() == 0 {
            self.came.set(Some(now));
        }
        for count in [&self.bytes, &self.host.awaited, &self.ledger.awaited] {
            plus(count, bytes);
        }
        Some(Granted {
            of: Rc::clone(self),
            bytes,
            at: now,
            behind: self.bytes.get(),
        })
    }

    /// The session holds so much now.
    pub(super) fn holds(&self, bytes: usize) {
        let before = self.held.replace(bytes);
        minus(&self.host.held, before);
        plus(&self.host.held, bytes);
    }

    /// The session has parked so much now.
    pub(super) fn parks(&self, bytes: usize) {
        let before = self.parked.replace(bytes);
        if before != bytes {
            for count in [&self.host.parked, &self.ledger.parked] {
                minus(count, before);
                plus(count, bytes);
            }
        }
    }

    /// What the session may have parked, on a core with so much `memory`.
    pub(super) fn may_park(&self, memory: usize) -> usize {
        let own = self.parked.get();
        let left =
            |of: &Cell<usize>, most: usize| most.saturating_sub(of.get().saturating_sub(own));
        let (host, all) = (&self.host.parked, &self.ledger.parked);
        let most = (memory / 16).max(PARKED_MIN);
        let usual = left(host, most).min(left(all, 2 * most));
        let small = left(host, SMALL).min(left(all, 4 * most));
        usual.max(small)
    }

    /// What the other sessions of its host hold.
    pub(super) fn others_hold(&self) -> usize {
        self.host.held.get().saturating_sub(self.held.get())
    }

    /// Counts what was given back on this core.
    pub(super) fn freed(&self) -> u64 {
        self.ledger.freed.get()
    }

    /// Ready once something was given back since [`Self::freed`] said `seen`.
    pub(super) fn poll_freed(&self, cx: &Context<'_>, seen: u64) -> Poll<()> {
        if self.ledger.freed.get() != seen {
            return Poll::Ready(());
        }
        let mut waiting = self.ledger.waiting.borrow_mut();
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.holds(0);
        self.parks(0);
    }
}

impl Granted {
    /// All of the data has come.
    pub(super) fn delivered(self, now: Now) {
        self.of.came.set(Some(now));
    }

    /// When the data must be there: `time` after it was granted, and a second more for each MiB
    /// that the session is to send up to it; time before `since` does not count.
    pub(super) fn due(&self, time: Duration, since: Now) -> Now {
        let nanos = (self.behind as u64).saturating_mul(NANOS_PER_BYTE);
        self.at
            .max(since)
            .after(time)
            .after(Duration::from_nanos(nanos))
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        let of = &self.of;
        for count in [&of.bytes, &of.host.awaited, &of.ledger.awaited] {
            minus(count, self.bytes);
        }
        of.ledger.has_freed();
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use env::sim::{World, WorldConfig};

    const MIB: usize = 1 << 20;
    const MEMORY: usize = 256 * MIB;

    fn at(millis: u64) -> Now {
        Now(millis * 1_000_000)
    }

    fn on_a_core() -> (World, CoreHandle) {
        let world = World::new(1, WorldConfig::default());
        let core = world.node("san").core(0);
        (world, core)
    }

    /// As much as the session gets at `now` in commands of a MiB.
    fn fill(of: &Rc<Awaited>, now: Now) -> Vec<Granted> {
        std::iter::from_fn(|| of.grant(MIB, MEMORY, now)).collect()
    }

    #[test]
    fn a_host_that_sends_nothing_gets_a_small_part_however_many_sessions_it_has() {
        let (_world, core) = on_a_core();
        let hostile: Vec<_> = (0..24).map(|_| Awaited::new(&core, "iqn.x:EVIL")).collect();
        let taken: Vec<_> = hostile.iter().flat_map(|one| fill(one, at(0))).collect();
        assert_eq!(taken.len(), MEMORY / 2 / 16 / MIB);
        // Another one begins small, too, and has its share once its data comes.
        let fair = Awaited::new(&core, "iqn.x:fair");
        let first = fill(&fair, at(0));
        assert_eq!(first.len(), MEMORY / 2 / 64 / MIB);
        first.into_iter().for_each(|one| one.delivered(at(5)));
        let then = fill(&fair, at(6));
        assert_eq!(then.len(), MEMORY / 2 / 8 / MIB);
        // It stops to send: nothing more, until it goes on.
        assert!(fill(&fair, at(2000)).is_empty());
        let mut then = then;
        for one in then.drain(..8) {
            one.delivered(at(2001));
        }
        assert_eq!(fill(&fair, at(2002)).len(), 8);
        drop((taken, then));
        assert_eq!(fair.ledger.awaited.get(), 0);
    }

    #[test]
    fn hosts_that_send_nothing_leave_half_to_those_that_take_part() {
        let (_world, core) = on_a_core();
        let fair = Awaited::new(&core, "iqn.x:fair");
        fair.grant(MIB, MEMORY, at(0)).unwrap().delivered(at(1));
        let hostile: Vec<_> = (0..100)
            .map(|number| Awaited::new(&core, &format!("iqn.x:evil{number}")))
            .collect();
        let taken: Vec<_> = hostile.iter().flat_map(|one| fill(one, at(2))).collect();
        assert_eq!(taken.len(), MEMORY / 4 / MIB);
        assert_eq!(fill(&fair, at(3)).len(), MEMORY / 2 / 8 / MIB);
        // A small one of somebody new goes beyond the share of all.
        let new = Awaited::new(&core, "iqn.x:new");
        assert!(new.grant(MIB, MEMORY, at(3)).is_none());
        assert!(new.grant(4096, MEMORY, at(3)).is_some());
    }

    #[test]
    fn hosts_that_sent_something_once_leave_room_for_others() {
        let (_world, core) = on_a_core();
        let begin = |number: usize| Awaited::new(&core, &format!("iqn.x:{number}"));
        let mut taken = Vec::new();
        for number in 0..8 {
            let first = begin(number);
            first.grant(512, MEMORY, at(0)).unwrap().delivered(at(1));
            let sessions = [first, begin(number), begin(number)];
            taken.extend(sessions.iter().flat_map(|one| fill(one, at(2))));
        }
        let fair = begin(100);
        fair.grant(512, MEMORY, at(3)).unwrap().delivered(at(3));
        assert!(fair.grant(MIB, MEMORY, at(3)).is_some(), "room is left");
        // Enough of them take all, and what is beyond it, but for small commands of hosts that have
        // nothing.
        for number in 200..240 {
            let one = begin(number);
            taken.extend(one.grant(MIB, MEMORY, at(3)));
        }
        for number in 300..500 {
            let one = begin(number);
            let small = || one.grant(SMALL, MEMORY, at(3));
            taken.extend(std::iter::from_fn(small).take(8));
        }
        assert!(fair.grant(MIB, MEMORY, at(4)).is_none());
        assert!(fair.grant(512, MEMORY, at(4)).is_some());
        assert!(fair.ledger.awaited.get() <= MEMORY / 2 + 2 * (MEMORY / 16));
    }

    #[test]
    fn time_to_send_is_as_long_as_the_session_has_much_to_send() {
        let (_world, core) = on_a_core();
        let one = Awaited::new(&core, "iqn.x:one");
        one.grant(MIB, MEMORY, at(0)).unwrap().delivered(at(0));
        let taken = fill(&one, at(1000));
        let time = Duration::from_secs(30);
        let due = |which: usize, since| taken[which].due(time, since).0 / 1_000_000;
        assert!(
            (31_990..32_010).contains(&due(0, at(0))),
            "{}",
            due(0, at(0))
        );
        let last = due(15, at(0));
        assert!((46_900..47_100).contains(&last), "{last}");
        assert!(
            due(0, at(9000)) > 39_990,
            "the process was stopped till then"
        );
    }

    /// Parks as much as it may.
    fn park(of: &Awaited) -> usize {
        let most = of.may_park(MEMORY);
        of.parks(most);
        most
    }

    #[test]
    fn what_hosts_park_is_bounded_and_leaves_a_little_for_each_other_host() {
        let (_world, core) = on_a_core();
        let session = |host: &str| Awaited::new(&core, host);
        let evil: Vec<_> = (0..100).map(|_| session("iqn.x:evil")).collect();
        let parked: usize = evil.iter().map(|one| park(one)).sum();
        assert_eq!(parked, MEMORY / 16, "of one host");
        let many: Vec<_> = (0..500)
            .map(|number| session(&format!("iqn.x:evil{number}")))
            .collect();
        let parked: usize = many.iter().map(|one| park(one)).sum();
        assert_eq!(parked, MEMORY / 16 + 499 * SMALL, "of all");
        assert!(many[0].ledger.parked.get() < MEMORY / 4);
        let fair = session("iqn.x:fair");
        assert_eq!(park(&fair), SMALL);
        assert_eq!(session("iqn.x:fair").may_park(MEMORY), 0, "it has that");
        drop((evil, many));
        assert_eq!(fair.ledger.parked.get(), SMALL);
        assert_eq!(fair.may_park(MEMORY), MEMORY / 16);
    }

    #[test]
    fn what_the_other_sessions_of_a_host_hold_is_known() {
        let (_world, core) = on_a_core();
        let both = [(); 2].map(|()| Awaited::new(&core, "iqn.x:one"));
        both[0].holds(5);
        both[0].holds(7);
        both[1].holds(3);
        assert_eq!((both[0].others_hold(), both[1].others_hold()), (3, 7));
        let [first, second] = both;
        drop(second);
        assert_eq!(first.others_hold(), 0);
        assert_eq!(Awaited::new(&core, "iqn.X:one").others_hold(), 7);
    }
}
