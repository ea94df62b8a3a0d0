//! The task of a LUN: what it hears goes to the copy's machine, one thing after the other, and
//! each act is done to its end before the next one.

use crate::conversation::Talk;
use crate::copy_file::CopyStore;
use crate::copying::{Copying, Renewal};
use crate::input::Input;
use crate::node::Node;
use crate::questions::Questions;
use crate::removed::Removed;
use crate::ring_side::RingSide;
use crate::tenure::{Patience, Tenure};
use crate::unit_side::UnitSide;
use arbiter::Key;
use env::CoreHandle;
use replica::{
    Conversation, Durable, Epoch, LunCopy, Message, Moment, NodeSet, NodeSlot, RoleRecord, State,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use units::Now;
use write_back::{VolumeId, WriteBack};

/// How long what is said last may take to leave.
const SAID_WITHIN: Duration = Duration::from_millis(20);

/// How a LUN is on this node.
#[derive(Clone, Debug)]
pub struct LunStatus {
    /// What its copy here does.
    pub state: State,
    /// The last role record that is known here.
    pub record: RoleRecord,
    /// Hosts' changes are taken here; they are acknowledged when they are committed.
    pub writes: bool,
    /// Hosts' reads are answered here.
    pub reads: bool,
    /// Fewer nodes are in sync than there have to be for writes.
    pub lacks_copies: bool,
    /// Of an owner: who came back with less than it had acknowledged, and is not in sync again.
    pub lost: NodeSet,
    /// The owner has less than is known here to be committed: this node does not follow it.
    pub has_owner_lost: bool,
    /// Of an owner: the copies that are made anew from here.
    pub renewals: Vec<Renewal>,
    /// The last one that has come to its end since the process started.
    pub renewed: Option<Renewal>,
    /// Why it works no more.
    pub stopped: Option<String>,
}

/// A LUN with copies, on one node.
pub(crate) struct Lun {
    pub(crate) id: VolumeId,
    pub(crate) key: Key,
    pub(crate) core: CoreHandle,
    pub(crate) node: Rc<dyn Node>,
    pub(crate) volume: Arc<WriteBack>,
    pub(crate) store: Rc<dyn CopyStore>,
    pub(crate) tenure: Arc<Tenure>,
    pub(crate) patience: Cell<Patience>,
    pub(crate) copy: RefCell<LunCopy>,
    pub(crate) rings: RefCell<Vec<RingSide>>,
    pub(crate) unit: UnitSide,
    pub(crate) kept: RefCell<Durable>,
    /// What is said with each node.
    pub(crate) talks: RefCell<BTreeMap<NodeSlot, Talk>>,
    /// The number of the first conversation.
    pub(crate) first_talk: u64,
    pub(crate) inbox: RefCell<VecDeque<(Moment, Input)>>,
    pub(crate) news: Notify,
    /// Nothing is on its way to the log that came over a line.
    pub(crate) appended: Notify,
    /// Numbers of questions to the arbiter, and of feeds.
    pub(crate) asked: Cell<u64>,
    pub(crate) feeds: Cell<u64>,
    /// What is written again for others, by their nodes.
    pub(crate) copying: RefCell<BTreeMap<NodeSlot, Rc<Copying>>>,
    pub(crate) renewed: RefCell<Option<Renewal>>,
    pub(crate) comparing: Questions,
    /// What is stored of copies that were removed from those in sync, and when that was noted.
    pub(crate) removed: RefCell<Vec<Removed>>,
    pub(crate) noted: RefCell<BTreeMap<NodeSlot, Now>>,
    pub(crate) stopped: RefCell<Option<String>>,
    /// It was closed: the task goes on until it has let go of the log.
    pub(crate) ends: Cell<bool>,
    pub(crate) is_over: Cell<bool>,
    pub(crate) ended: Notify,
}

impl Lun {
    /// Something happened now.
    pub(crate) fn hears(&self, input: Input) {
        let now = self.node.now();
        self.inbox.borrow_mut().push_back((now, input));
        self.news.notify_one();
    }

    async fn next(&self) -> (Moment, Input) {
        loop {
            let next = self.inbox.borrow_mut().pop_front();
            match next {
                Some(next) => return next,
                None => self.news.notified().await,
            }
        }
    }

    pub(crate) fn status(&self) -> LunStatus {
        LunStatus {
            state: self.copy.borrow().state(self.node.now()),
            record: self.kept.borrow().known.1.clone(),
            writes: self.tenure.may_write(),
            reads: self.tenure.may_read(self.node.now()),
            lacks_copies: self.copy.borrow().lacks_copies(),
            lost: self.copy.borrow().who_lost(),
            has_owner_lost: self.copy.borrow().has_owner_lost(),
            renewals: self.renewals(),
            renewed: self.renewed.borrow().clone(),
            stopped: self.stopped.borrow().clone(),
        }
    }

    /// It cannot go on: nobody is served, and others hear nothing of it any more.
    pub(crate) fn stops(&self, why: String) {
        tracing::error!(lun = format!("{:016x}", self.id.0), why, "a copy stops");
        self.stopped.borrow_mut().get_or_insert(why);
        self.tenure.end();
        self.says_that_it_leaves();
    }

    /// Nobody shall wait for this copy, and find out by its silence.
    fn says_that_it_leaves(&self) {
        let record = self.kept.borrow().known.1.clone();
        let others = record.copies.iter().map(|it| it.0);
        for node in others.filter(|it| *it != self.node.slot()) {
            if let Some(pair) = self.pair(node) {
                pair.say(self.id, &Message::Leaves);
            }
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.borrow().is_some()
    }

    pub(crate) async fn run(self: Rc<Self>) {
        self.settle().await;
        while !self.is_stopped() && !self.ends.get() {
            let (at, input) = self.next().await;
            self.takes(at, input).await;
            self.settle().await;
        }
        self.tenure.end();
        if !self.is_stopped() {
            self.says_that_it_leaves();
            self.resign().await;
            // It has to be on its way before the connection ends.
            let now = self.core.now();
            self.core.sleep_until(now.after(SAID_WITHIN)).await;
        }
        self.is_over.set(true);
        self.settle_states(self.node.now());
        // Whoever waits for what nobody takes any more learns it.
        self.inbox.borrow_mut().clear();
        self.node.loses(self.id);
        let record = self.kept.borrow().known.1.clone();
        let pairs = record.copies.iter().filter_map(|it| self.pair(it.0));
        pairs.for_each(|pair| pair.forgets(self.id));
        self.ended.notify_waiters();
    }

    /// It works no more; answers when its task is over.
    pub(crate) async fn close(&self) {
        let ended = self.ended.notified();
        if self.is_over.get() {
            return;
        }
        self.tenure.end();
        self.hears(Input::Close);
        ended.await;
    }

    /// Does what the machine says, until it says no more.
    async fn settle(self: &Rc<Self>) {
        loop {
            let acts = self.copy.borrow_mut().acts();
            if acts.is_empty() || self.is_stopped() {
                break;
            }
            // What others hear next may end a right of this node, however long the acts take.
            self.tenure.narrow(&self.copy.borrow(), self.node.now());
            for act in acts {
                self.perform(act).await;
                if self.is_stopped() {
                    return;
                }
            }
        }
        let now = self.node.now();
        {
            let copy = self.copy.borrow();
            // An owner that begins a new epoch is back in a moment.
            let mut state = copy.state(now);
            if state == State::Candidate && copy.owner_elsewhere().is_none() {
                state = State::Opening;
            }
            let mut patience = self.patience.get();
            let waits = patience.waits(state, now);
            self.patience.set(patience);
            let connected = self.connected();
            self.tenure.follow(&copy, now, (waits, connected));
        }
        self.settle_states(now);
    }

    /// Nodes with copies that are connected for forwarding: a bit for each.
    fn connected(&self) -> u64 {
        let known = self.kept.borrow();
        let others = known.known.1.copies.iter().map(|it| it.0);
        let others = others.filter(|it| *it != self.node.slot());
        let heard = others.filter(|it| {
            let pair = self.pair(*it);
            pair.is_some_and(|it| it.forwards()) && self.talk_with(*it).is_agreed()
        });
        heard.fold(0, |bits, it| bits | 1_u64 << it.0.min(63))
    }

    async fn takes(self: &Rc<Self>, at: Moment, input: Input) {
        match input {
            Input::Connected(node) => self.begins_anew(node),
            Input::Disconnected(node) => {
                self.with_talk(node, Talk::begins);
                self.ends_feeds(node);
                self.copy.borrow_mut().disconnected(node);
                self.unit.disconnected(node);
            }
            Input::Heard(node, message) => self.heard(at, node, message).await,
            Input::Unit(node, part) => self.heard_of_unit(node, part).await,
            Input::OwnPorts(ports) => self.own_ports_are(ports),
            Input::KeepState(bytes, done) => self.keep_state(at, bytes, done).await,
            Input::Records(records) => self.append_later(records),
            Input::Submitted { ring, changes } => self.submitted(ring, changes),
            Input::Stable { ring, below } => self.is_stable(ring, below, at),
            Input::Tick => {
                self.renew_others(at);
                self.measure_copying();
                self.copy.borrow_mut().tick(at);
            }
            Input::HandOver(to) => {
                let begun = self.copy.borrow_mut().hand_over(to, at);
                tracing::debug!(to = to.0, begun, "a handover is asked for");
            }
            Input::Copies(copies) => self.wants_copies(&copies, at),
            Input::MinCopies(nodes) => self.copy.borrow_mut().set_min_copies(nodes, at),
            Input::Known(revision, record) => self.copy.borrow_mut().knows((revision, record), at),
            Input::Promote(answer) => {
                // Who asked may have gone.
                let _gone = answer.send(self.copy.borrow_mut().promote(at));
            }
            Input::Copied { to, number } => self.copied(to, number, at),
            Input::Removed(removed) => self.keep_removed(removed).await,
            Input::Close => self.ends.set(true),
            Input::Arbitrated(number, answer) => {
                if number == self.asked.get() {
                    self.copy.borrow_mut().arbitrated(answer, at);
                }
            }
            Input::ReadBack {
                ring,
                to,
                feed,
                read,
            } => self.was_read(ring, (to, feed), read),
            Input::NotAppended {
                ring,
                generation,
                why,
            } => self.not_appended(ring, generation, why),
            Input::NotBegun { epoch, why } => self.not_begun(epoch, why),
        }
    }

    async fn heard(self: &Rc<Self>, at: Moment, node: NodeSlot, message: Message) {
        match &message {
            Message::Hello { conversation, .. } => {
                if !self.is_greeted(node, *conversation) {
                    return;
                }
            }
            // It counts for all LUNs that are here when it comes.
            Message::Beacon { .. } => {}
            // What was said before the other node heard this one's greeting. An answer stands for
            // all LUNs that it has: whether this one is among them is known by its greeting.
            _ if !self.talk_with(node).is_agreed() => return,
            Message::Commit {
                epoch,
                ring,
                commit,
            } => self.commit_is_said(*ring, (*epoch, *commit)),
            Message::Lead { known, .. } if known.1.epoch >= self.kept.borrow().promised => {
                self.quiesce().await;
            }
            Message::Renew { epoch, from } if *epoch >= self.kept.borrow().promised => {
                // While it is that owner's, what it has said last counts.
                let has = self.adopts(*epoch, from).await;
                self.quiesce().await;
                self.copy.borrow_mut().has_adopted(has);
            }
            Message::Whole { .. } => {
                self.copying.borrow_mut().remove(&node);
            }
            Message::Renew { .. }
            | Message::Leaves
            | Message::Less { .. }
            | Message::Lead { .. }
            | Message::Answer { .. }
            | Message::Yield { .. }
            | Message::Refuse { .. }
            | Message::Follow { .. }
            | Message::Append { .. }
            | Message::Ack { .. }
            | Message::Ask { .. }
            | Message::Grant { .. } => {}
        }
        let is_ack = matches!(message, Message::Ack { .. });
        self.copy.borrow_mut().heard(node, message, at);
        if is_ack {
            self.has_room(node);
        }
    }

    /// Nothing goes to a node any more.
    pub(crate) fn ends_feeds(&self, node: NodeSlot) {
        self.copying.borrow_mut().remove(&node);
        for ring in self.rings.borrow_mut().iter_mut() {
            ring.feeds.remove(&node);
        }
    }

    pub(crate) fn talk_with(&self, node: NodeSlot) -> Talk {
        self.with_talk(node, |it| *it)
    }

    fn with_talk<T>(&self, node: NodeSlot, work: impl FnOnce(&mut Talk) -> T) -> T {
        let mut talks = self.talks.borrow_mut();
        let first = Talk::new(self.first_talk);
        work(talks.entry(node).or_insert(first))
    }

    /// What was said with a node about this LUN holds no more; over the same connection, where
    /// there is one.
    pub(crate) fn begins_anew(&self, node: NodeSlot) {
        self.with_talk(node, Talk::begins);
        self.greets(node);
    }

    fn greets(&self, node: NodeSlot) {
        self.ends_feeds(node);
        let pair = self.pair(node);
        if let Some(pair) = &pair {
            pair.forgets(self.id);
        }
        self.unit.disconnected(node);
        self.copy.borrow_mut().disconnected(node);
        if pair.is_some_and(|it| it.is_up()) {
            self.copy.borrow_mut().connected(node);
            self.unit_connected(node);
        }
    }

    /// A greeting came: whether what the node says counts from now on.
    fn is_greeted(&self, node: NodeSlot, said: Conversation) -> bool {
        let greeted = self.with_talk(node, |it| it.hears(said));
        if greeted.is_anew {
            self.greets(node);
        }
        greeted.is_agreed
    }

    fn commit_is_said(&self, ring: u8, (epoch, commit): (Epoch, u64)) {
        if let Some(of) = self.rings.borrow_mut().get_mut(usize::from(ring))
            && of.follows == Some(epoch)
        {
            of.is_live = true;
            of.commit_said = of.commit_said.max(Some((epoch, commit)));
        }
    }

    /// More is stable, or something was given up.
    fn is_stable(&self, ring: u8, below: u64, at: Moment) {
        let mut rings = self.rings.borrow_mut();
        let of = &mut rings[usize::from(ring)];
        let Some(news) = of.is_stable(below) else {
            return;
        };
        let mut copy = self.copy.borrow_mut();
        for number in news {
            copy.appended(ring, of.epoch_of(number));
        }
        copy.stable(ring, below, at);
        // The owner may have said so before it was stable here.
        if let Some((epoch, commit)) = of.commit_said {
            let owner = self.kept.borrow().known.1.owner;
            let commit = Message::Commit {
                epoch,
                ring,
                commit,
            };
            copy.heard(owner, commit, at);
        }
    }
}
