//! What nodes say to each other of a LUN's unit, beside its blocks: the ports that each has to it,
//! and the state that hosts set, which the owner has all nodes keep.
//!
//! ```text
//!   owner:  keep --> stored here --State--> every node that was led --Stable--> answered
//!   other:  State, Lead --> it is to be followed --> stored --Stable--> owner --> Follow
//! ```
//!
//! **Why what was answered outlives a takeover.** Who is in sync follows the owner, so it was led
//! on this connection, and the state goes ahead of that: it is stored before the node says that it
//! follows. Each later change is answered when all have it that may be in sync, and all that were
//! led. What an owner of an older epoch says is not stored, so nothing of it is answered.

use crate::copy_file::StoredState;
use crate::input::Input;
use crate::lun::Lun;
use crate::registry::Registry;
use crate::unit_side::{HeldState, Keeping, StateNotKept, part};
use env::{CoreHandle, CoreId, call};
use peer::{UnitPart, UnitSubject};
use replica::{Epoch, Moment, NodeSlot};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use write_back::VolumeId;

/// How long a node that is not in sync may take to store a state, in milliseconds: then it is to
/// begin anew.
const STORED_WITHIN: u64 = 3000;

/// How soon a node that serves, and may answer nothing now, is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(5);

impl Lun {
    /// A node hears from the beginning what this one says.
    pub(crate) fn unit_connected(&self, node: NodeSlot) {
        if let Some(ports) = &*self.unit.own_ports.borrow() {
            self.say_of_unit(node, &part(UnitSubject::Ports, ports.clone()));
        }
        if self.unit.lived.get() {
            self.say_of_unit(node, &part(UnitSubject::Lived, Vec::new()));
        }
    }

    pub(crate) fn say_of_unit(&self, node: NodeSlot, whole: &UnitPart) {
        if let Some(pair) = self.pair(node) {
            pair.say_of_unit(self.id, whole);
        }
    }

    pub(crate) fn own_ports_are(&self, ports: Vec<u8>) {
        let copies = self.kept.borrow().known.1.copies.clone();
        for (node, _) in copies {
            if node != self.node.slot() {
                self.say_of_unit(node, &part(UnitSubject::Ports, ports.clone()));
            }
        }
        self.unit.own_ports.replace(Some(ports));
    }

    pub(crate) async fn heard_of_unit(self: &Rc<Self>, node: NodeSlot, next: UnitPart) {
        let Ok(whole) = self.unit.join(node, next) else {
            return self.begins_anew(node);
        };
        let Some(whole) = whole else {
            return;
        };
        match whole.subject {
            UnitSubject::Ports => {
                let before = self.unit.ports.borrow_mut().insert(node, whole.bytes);
                if before.as_ref() != self.unit.ports.borrow().get(&node) {
                    self.tenure.paths_changed();
                }
            }
            UnitSubject::State => self.state_came(node, whole).await,
            UnitSubject::Stable => {
                if whole.epoch == self.epoch() {
                    let mut stable = self.unit.stable.borrow_mut();
                    let last = stable.entry(node).or_default();
                    *last = whole.version.max(*last);
                }
            }
            UnitSubject::Compare => self.is_asked(node, whole),
            UnitSubject::Compared => self.is_answered(whole),
            UnitSubject::Lived => self.unit.lives.set(self.unit.lives.get().with(node)),
        }
    }

    /// An owner says what hosts set.
    async fn state_came(&self, node: NodeSlot, whole: UnitPart) {
        let stored = self.unit.state.borrow().as_ref().map(|it| it.epoch);
        if whole.epoch < self.kept.borrow().promised || Some(whole.epoch) < stored {
            return;
        }
        let is_followed = Some(whole.epoch);
        let follows = (self.rings.borrow().iter()).all(|it| it.follows == is_followed);
        if follows {
            return self.takes_state(node, whole).await;
        }
        // Before this node follows it may find that the owner has lost something.
        let is_in_sync = self.kept.borrow().known.1.in_sync.has(self.node.slot());
        if !is_in_sync {
            // It comes to be in sync by following, and so by what it takes then.
            self.say_of_unit(node, &stable_with(&whole));
        }
        self.unit.said.borrow_mut().insert(node, whole);
    }

    /// This node is about to say that it follows: it has what the owner said ahead of that.
    pub(crate) async fn takes_what_was_said(&self, owner: NodeSlot, epoch: Epoch) {
        let said = self.unit.said.borrow_mut().remove(&owner);
        if let Some(said) = said.filter(|it| it.epoch == epoch) {
            self.takes_state(owner, said).await;
        }
    }

    async fn takes_state(&self, node: NodeSlot, whole: UnitPart) {
        let answer = stable_with(&whole);
        let state = StoredState {
            epoch: whole.epoch,
            version: whole.version,
            bytes: whole.bytes,
        };
        // Who is in sync and has had it all the time says so; and who is not does not take over.
        self.unit.lived.set(self.unit.lived.get() || whole.lived);
        self.store_state(state).await;
        if !self.is_stopped() {
            self.say_of_unit(node, &answer);
        }
    }

    async fn store_state(&self, state: StoredState) {
        if let Err(error) = self.store.keep_state(&state).await {
            return self.stops(format!("what hosts set cannot be stored: {error}"));
        }
        self.unit.state.replace(Some(state));
    }

    fn say_state(&self, node: NodeSlot) {
        let state = self.unit.state.borrow();
        if let Some(state) = &*state {
            let whole = UnitPart {
                lived: self.unit.lived.get(),
                epoch: self.epoch(),
                version: state.version,
                ..part(UnitSubject::State, state.bytes.clone())
            };
            self.say_of_unit(node, &whole);
        }
    }

    /// A node is about to hear that this one owns the LUN: it is to have the state before it
    /// follows.
    pub(crate) fn leads(&self, node: NodeSlot) {
        self.unit.stable.borrow_mut().remove(&node);
        self.unit.led.set(self.unit.led.get().with(node));
        self.say_state(node);
    }

    /// Hosts have set something at this node.
    pub(crate) async fn keep_state(
        &self,
        at: Moment,
        bytes: Vec<u8>,
        done: oneshot::Sender<Result<(), StateNotKept>>,
    ) {
        let is_owner = self.copy.borrow().who_is_waited_for().is_some();
        if !is_owner || bytes.len() > peer::UNIT_BYTES_MAX {
            let _gone = done.send(Err(StateNotKept::NotOwner));
            return;
        }
        let last = self.unit.state.borrow().as_ref().map_or(0, |it| it.version);
        let state = StoredState {
            epoch: self.epoch(),
            version: last + 1,
            bytes,
        };
        self.unit.lived.set(true);
        self.store_state(state).await;
        for node in self.unit.led.get().iter() {
            self.say_state(node);
        }
        self.unit.keeping.borrow_mut().push(Keeping {
            version: last + 1,
            since: at,
            done,
        });
    }

    /// Answers who waits for nothing any more. Called whenever anything has changed.
    pub(crate) fn settle_states(&self, now: Moment) {
        self.unit.changed.notify_waiters();
        if self.unit.keeping.borrow().is_empty() {
            return;
        }
        let in_sync = self.copy.borrow().who_is_waited_for();
        let ends = self.is_stopped() || self.ends.get();
        let Some(in_sync) = in_sync.filter(|_| !ends) else {
            for keeping in self.unit.keeping.take() {
                let _gone = keeping.done.send(Err(StateNotKept::Unknown));
            }
            return;
        };
        let led = self.unit.led.get();
        let lacks = |version: u64| {
            let stable = self.unit.stable.borrow();
            let has = move |node: NodeSlot| stable.get(&node).is_some_and(|it| *it >= version);
            let waited_for = led.iter().chain(in_sync.iter());
            let mut lacking = waited_for.filter(|node| !has(*node));
            lacking.next()
        };
        let mut late = None;
        let waiting = self.unit.keeping.take().into_iter();
        let waiting = waiting.filter_map(|it| match lacks(it.version) {
            Some(node) => {
                let is_late = now >= it.since.after(STORED_WITHIN) && !in_sync.has(node);
                late = late.or(is_late.then_some(node));
                Some(it)
            }
            None => {
                let _gone = it.done.send(Ok(()));
                None
            }
        });
        let waiting = waiting.collect();
        self.unit.keeping.replace(waiting);
        if let Some(node) = late {
            self.begins_anew(node);
        }
    }

    /// The state with which hosts are to be served, once they may be; `None`: not by this node.
    pub(crate) async fn held_state(self: Rc<Self>) -> Option<HeldState> {
        loop {
            let changed = self.unit.changed.notified();
            if self.is_stopped() || self.is_over.get() || self.ends.get() {
                return None;
            }
            let serves = self.copy.borrow().serves();
            // A node that stood still has not heard yet that another one serves by now.
            if serves && self.tenure.may_read(self.node.now()) {
                break;
            }
            if !self.tenure.is_worth_waiting() {
                return None;
            }
            if serves {
                let soon = self.core.now().after(ASK_AGAIN);
                self.core.sleep_until(soon).await;
            } else {
                changed.await;
            }
        }
        let in_sync = self.kept.borrow().known.1.in_sync;
        let mut lives = self.unit.lives.get().iter();
        let lived = self.unit.lived.get() || lives.any(|node| in_sync.has(node));
        self.unit.lived.set(lived);
        let state = self.unit.state.borrow();
        Some(HeldState {
            bytes: state.as_ref().map(|it| it.bytes.clone()),
            lived,
        })
    }
}

/// A node has this state.
fn stable_with(state: &UnitPart) -> UnitPart {
    UnitPart {
        epoch: state.epoch,
        version: state.version,
        ..part(UnitSubject::Stable, Vec::new())
    }
}

/// Has all nodes in sync keep what hosts set of a LUN's unit; `home` is the core of its cluster.
///
/// # Errors
/// [`StateNotKept`].
pub async fn keep_state(
    core: &CoreHandle,
    (home, id): (CoreId, VolumeId),
    bytes: Vec<u8>,
) -> Result<(), StateNotKept> {
    let kept = call(core, home, move |core| {
        let lun = core.locals().get::<Registry>().get(id);
        Box::pin(async move {
            let Some(lun) = lun.filter(|it| !it.is_over.get()) else {
                return Err(StateNotKept::NotOwner);
            };
            let (done, kept) = oneshot::channel();
            lun.hears(Input::KeepState(bytes, done));
            drop(lun);
            kept.await.unwrap_or(Err(StateNotKept::Unknown))
        })
    });
    kept.await.unwrap_or(Err(StateNotKept::Unknown))
}
