//! Who may serve hosts on this node now: said by the task of the LUN, read by all cores.

use crate::latency::Latencies;
use replica::{LunCopy, Moment, NodeSlot, State};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;
use volume::{Access, Followers, VolumeEvent, VolumeEvents};

/// What hosts do whom this node may not serve now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// Another node serves them, or none does.
    No,
    /// What they wait for is over soon.
    Moment,
    /// They have waited for too long: another node may serve them by now.
    TooLong,
}

/// How long hosts wait for an owner that does not know whether it still is one. Another copy has
/// been silent for 2 s then.
const HELD_MAX: u64 = 1500;

/// Since when hosts wait for what this node does not know.
#[derive(Clone, Copy, Default)]
pub(crate) struct Patience(Option<Moment>);

impl Patience {
    /// What hosts do of a copy in this state.
    pub(crate) fn waits(&mut self, state: State, now: Moment) -> Waits {
        let is_held = matches!(state, State::Removing | State::Holding);
        self.0 = is_held.then(|| self.0.unwrap_or(now));
        if self.0.is_some_and(|since| now >= since.after(HELD_MAX)) {
            return Waits::TooLong;
        }
        match state {
            State::Opening | State::Owner | State::Solo | State::Removing | State::Holding => {
                Waits::Moment
            }
            State::Yielding => Waits::Moment,
            State::Joining
            | State::Replica
            | State::CatchingUp
            | State::Copying
            | State::Candidate
            | State::Stopped
            | State::NoMember => Waits::No,
        }
    }
}

/// The right to serve a LUN's hosts.
#[derive(Default)]
pub(crate) struct Tenure {
    /// Changes are taken.
    writes: AtomicBool,
    /// Reads that complete before this moment, in milliseconds, are right.
    reads_until: AtomicU64,
    /// Who may not now is worth waiting: this node owns the LUN, or is about to.
    waits: AtomicBool,
    changed: Notify,
    /// What was said last of who serves, and through whom.
    said: Mutex<(Option<Access>, u64)>,
    /// Who follows whether hosts are served.
    followers: Followers,
    /// What hosts of the node wait, where somebody asks.
    latencies: OnceLock<Arc<Latencies>>,
}

/// Hosts of a node that takes changes are served, and of one that will in a moment. `owner`: the
/// node that owns the LUN by the record, where that is another one; `connected`: nodes that this
/// one can forward to, a bit for each.
fn access(writes: bool, waits: Waits, owner: Option<NodeSlot>, connected: u64) -> Access {
    let hears = |node: NodeSlot| connected.checked_shr(node.0.into()).unwrap_or(0) & 1 == 1;
    match (writes, waits, owner) {
        (_, Waits::TooLong, _) => Access::Nowhere,
        (true, Waits::No | Waits::Moment, _) | (false, Waits::Moment, _) => Access::Served,
        (false, Waits::No, Some(owner)) if hears(owner) => Access::Forwarded(owner.0),
        (false, Waits::No, Some(owner)) => Access::Elsewhere(Some(owner.0)),
        (false, Waits::No, None) => Access::Elsewhere(None),
    }
}

/// The present, by a node's own clock.
pub(crate) fn moment(core: &env::CoreHandle) -> Moment {
    Moment(core.now().0 / 1_000_000)
}

impl Tenure {
    /// What the copy allows now. The order of the stores makes no difference: who reads them one
    /// after the other sees what held at a moment between two decisions.
    pub(crate) fn follow(
        self: &Arc<Self>,
        copy: &LunCopy,
        now: Moment,
        (waits, connected): (Waits, u64),
    ) {
        let until = copy.reads_until(now).map_or(0, |it| it.0);
        let said = access(copy.may_write(), waits, copy.owner_elsewhere(), connected);
        // What hosts send where they are not served any more does not wait, either.
        let writes = copy.may_write() && waits != Waits::TooLong;
        let waits = waits == Waits::Moment;
        let was = (
            self.writes.swap(writes, Ordering::AcqRel),
            self.reads_until.swap(until, Ordering::AcqRel),
            self.waits.swap(waits, Ordering::AcqRel),
        );
        if was != (writes, until, waits) {
            self.changed.notify_waiters();
        }
        let serves = said == Access::Served;
        self.say(said, if serves { connected } else { 0 });
    }

    /// What the copy does not allow any more ends now; what it allows from now on begins with
    /// [`Tenure::follow`], when what goes before that is done.
    pub(crate) fn narrow(&self, copy: &LunCopy, now: Moment) {
        let until = copy.reads_until(now).map_or(0, |it| it.0);
        let before = self.reads_until.fetch_min(until, Ordering::AcqRel);
        let writes = copy.may_write();
        let had = self.writes.fetch_and(writes, Ordering::AcqRel);
        if until < before || had && !writes {
            self.changed.notify_waiters();
        }
    }

    /// Whoever follows hears it, where it is news.
    fn say(&self, access: Access, through: u64) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, through_before) = *said;
        *said = (Some(access), through);
        if through_before != through {
            self.followers.notify(&VolumeEvent::Through(through));
        }
        if before != Some(access) {
            self.followers.notify(&VolumeEvent::Access(access));
        }
    }

    /// Follows whether hosts are served, beginning with how it is now.
    pub(crate) fn events(&self) -> Rc<dyn VolumeEvents> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let events = self.followers.follow();
        self.followers.notify(&VolumeEvent::Through(said.1));
        let now = said.0.unwrap_or(Access::Elsewhere(None));
        self.followers.notify(&VolumeEvent::Access(now));
        events
    }

    /// Other nodes have said something of their paths.
    pub(crate) fn paths_changed(&self) {
        self.followers.notify(&VolumeEvent::Paths);
    }

    /// What hosts wait is counted there, while somebody asks.
    pub(crate) fn counts(&self, latencies: &Arc<Latencies>) {
        // A node has one place for it.
        let _is_there = self.latencies.set(Arc::clone(latencies));
    }

    /// Where what hosts wait is counted now.
    pub(crate) fn counted(&self) -> Option<&Arc<Latencies>> {
        self.latencies.get().filter(|it| it.is_on())
    }

    /// Nobody is served any more.
    pub(crate) fn end(&self) {
        self.writes.store(false, Ordering::Release);
        self.reads_until.store(0, Ordering::Release);
        self.waits.store(false, Ordering::Release);
        self.changed.notify_waiters();
        self.say(Access::Elsewhere(None), 0);
    }

    pub(crate) fn may_write(&self) -> bool {
        self.writes.load(Ordering::Acquire)
    }

    pub(crate) fn may_read(&self, now: Moment) -> bool {
        now.0 < self.reads_until.load(Ordering::Acquire)
    }

    pub(crate) fn is_worth_waiting(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    /// Completes with the next change after this was called.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use replica::{
        Arbitration, CopyId, Durable, Epoch, Message, NodeSet, Revision, RoleRecord, Spans,
    };

    const NOW: Moment = Moment(10);
    const OWN: NodeSlot = NodeSlot(0);
    const OTHER: NodeSlot = NodeSlot(1);

    /// An owner alone, whose epoch is committed.
    fn alone() -> LunCopy {
        let record = RoleRecord {
            epoch: Epoch(4),
            step: 0,
            owner: OWN,
            in_sync: NodeSet::of([OWN]),
            copies: vec![(OWN, CopyId(1)), (OTHER, CopyId(2))],
        };
        let kept = Durable {
            known: (Revision(1), record.clone()),
            promised: Epoch(4),
            is_whole: true,
            base: Vec::new(),
        };
        let rings = vec![replica::RingSummary::default()];
        let mut copy = LunCopy::start(OWN, Spans::default(), kept, rings, NOW);
        copy.arbitrated(Arbitration::Is(Revision(1), record), NOW);
        copy.arbitrated(Arbitration::Swapped(Revision(2)), NOW);
        copy.appended(0, Epoch(5));
        copy.stable(0, 1, NOW);
        copy
    }

    #[test]
    fn hosts_wait_for_an_owner_that_knows_nothing_for_a_while_and_are_then_given_up() {
        let mut patience = Patience::default();
        let mut waits = |state, at| patience.waits(state, Moment(at));
        assert_eq!(waits(State::Owner, 10_000), Waits::Moment);
        assert_eq!(waits(State::Removing, 12_000), Waits::Moment);
        // It is one wait, whatever it is called.
        assert_eq!(waits(State::Holding, 13_499), Waits::Moment);
        assert_eq!(waits(State::Removing, 13_500), Waits::TooLong);
        assert_eq!(waits(State::Removing, 60_000), Waits::TooLong);
        assert_eq!(waits(State::Solo, 60_001), Waits::Moment);
        assert_eq!(waits(State::Holding, 60_002), Waits::Moment, "another one");
        assert_eq!(waits(State::Replica, 60_003), Waits::No);
    }

    #[test]
    fn a_node_says_that_hosts_are_served_elsewhere_only_where_it_knows_that() {
        let owner = Some(NodeSlot(4));
        let all = u64::MAX;
        assert_eq!(access(true, Waits::Moment, None, all), Access::Served);
        assert_eq!(access(false, Waits::Moment, owner, all), Access::Served);
        assert_eq!(access(true, Waits::TooLong, None, all), Access::Nowhere);
        for connected in [0, all & !16] {
            let said = access(false, Waits::No, owner, connected);
            assert_eq!(said, Access::Elsewhere(Some(4)));
        }
        assert_eq!(access(false, Waits::No, owner, 16), Access::Forwarded(4));
        assert_eq!(access(false, Waits::No, None, all), Access::Elsewhere(None));
    }

    #[test]
    fn what_is_not_allowed_any_more_ends_before_the_acts_and_nothing_begins() {
        let (tenure, mut copy) = (Arc::new(Tenure::default()), alone());
        tenure.narrow(&copy, NOW);
        assert!(!tenure.may_read(NOW) && !tenure.may_write(), "it begins");
        tenure.follow(&copy, NOW, (Waits::Moment, 0));
        assert!(tenure.may_read(NOW) && tenure.may_write());
        copy.connected(OTHER);
        let later = Message::Refuse { promised: Epoch(9) };
        copy.heard(OTHER, later, NOW);
        assert!(!copy.acts().is_empty(), "they take long");
        assert!(tenure.may_read(NOW), "nobody has said anything");
        tenure.narrow(&copy, NOW);
        assert!(!tenure.may_read(NOW));
    }
}
