//! Nodes with logs, connections, the arbiter, hosts; and whatever may happen to them next.

use super::Rule;
use super::arbiter::{ArbiterModel, Ask, Held, Said};
use super::bounds::Bounds;
use super::linear::Register;
use super::renewal::{Lost, Renewal};
use crate::copy::{Act, Arbitration, Durable, LunCopy};
use crate::message::Message;
use crate::moment::{Moment, Spans};
use crate::record::{CopyId, Epoch, NodeSet, NodeSlot, Revision, RoleRecord};
use crate::state::State;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The present: it stands still, and all moments grow older.
pub(super) const NOW: Moment = Moment(8);

/// Spans that are as short as they can be for the machine's sake, in steps of time.
const SPANS: Spans = Spans {
    beacon: 1,
    lead: 2,
    patience: 3,
    grant: 1,
    ask: 1,
    retry: 1,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub(super) epoch: Epoch,
    /// `None`: an epoch began.
    pub(super) value: Option<u8>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Node {
    pub(super) copy: Option<LunCopy>,
    pub(super) disk: Durable,
    pub(super) lost: Option<Lost>,
    /// Its disk went back to what it was, and it was not made anew since.
    pub(super) has_lost: bool,
    pub(super) log: Vec<Entry>,
    pub(super) stable: usize,
    pub(super) renewal: Renewal,
    /// Where its log's changes go as they come.
    pub(super) streams: BTreeSet<NodeSlot>,
    /// Numbers of changes that hosts wait for.
    pub(super) waiting: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Link {
    is_up: bool,
    /// From the lower slot to the higher one, and back.
    queues: [VecDeque<(Message, Option<Entry>)>; 2],
    /// Who sends in this direction began anew, and the greeting that says so has not arrived: what
    /// the other one says counts for nothing.
    anew: [bool; 2],
    /// Who does not know yet that it ended.
    unaware: [bool; 2],
}

/// What may happen next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Deliver(NodeSlot, NodeSlot),
    Aware(NodeSlot, NodeSlot),
    Cut(NodeSlot, NodeSlot),
    Mend(NodeSlot, NodeSlot),
    Arbitrate(usize),
    Answer(usize),
    LoseAnswer(usize),
    TimePasses,
    Tick(NodeSlot),
    Stable(NodeSlot),
    Write(NodeSlot),
    Read(NodeSlot),
    Ask(NodeSlot),
    Unwell(NodeSlot, NodeSlot),
    HandOver(NodeSlot, NodeSlot),
    SetBack,
    Restore,
    Crash(NodeSlot, bool),
    Start(NodeSlot),
    Forget(NodeSlot),
    Rewrite(NodeSlot, NodeSlot),
    Change(NodeSlot, NodeSlot),
    Lose(NodeSlot),
    Promote(NodeSlot),
}

impl Event {
    /// Nothing that has to happen.
    pub(super) const fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Cut(..)
                | Self::Crash(..)
                | Self::LoseAnswer(_)
                | Self::Unwell(..)
                | Self::HandOver(..)
                | Self::SetBack
                | Self::Forget(_)
                | Self::Change(..)
                | Self::Lose(_)
                | Self::Promote(_)
        )
    }
}

/// Nodes, what is on its way between them, the arbiter's record, and what hosts have seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    pub(super) left: Bounds,
    pub(super) broken: Option<Rule>,
    nodes: Vec<Node>,
    links: BTreeMap<(NodeSlot, NodeSlot), Link>,
    pub(super) arbiter: ArbiterModel<NodeSlot, (), RoleRecord>,
    /// What its store held when it was set back.
    forgotten: Option<Held<(), RoleRecord>>,
    first: RoleRecord,
    pub(super) register: Register,
    /// Numbers that were acknowledged, with what they are.
    pub(super) acknowledged: BTreeMap<usize, Entry>,
    /// Copies that were made.
    pub(super) made: u8,
    next_value: u8,
    pub(super) wrong: Option<&'static str>,
}

/// A store that has this record, and had no other one.
fn first_held(record: RoleRecord) -> Held<(), RoleRecord> {
    Held {
        revision: Revision(1),
        records: BTreeMap::from([((), (Revision(1), record))]),
    }
}

impl World {
    /// All nodes up and in sync, none of them the owner's process yet, nothing written.
    #[must_use]
    pub fn new(bounds: Bounds, broken: Option<Rule>) -> Self {
        let slots: Vec<NodeSlot> = (0..bounds.nodes).map(NodeSlot).collect();
        let record = RoleRecord {
            epoch: Epoch(1),
            step: 0,
            owner: NodeSlot(0),
            in_sync: NodeSet::of(slots.iter().copied()),
            copies: slots
                .iter()
                .map(|it| (*it, CopyId::new(it.0.into(), false)))
                .collect(),
        };
        let node = Node {
            copy: None,
            disk: Durable {
                known: (Revision(1), record.clone()),
                promised: Epoch(1),
                is_whole: true,
                base: Vec::new(),
            },
            log: Vec::new(),
            stable: 0,
            lost: None,
            has_lost: false,
            renewal: Renewal::default(),
            streams: BTreeSet::new(),
            waiting: Vec::new(),
        };
        let pairs = slots
            .iter()
            .flat_map(|a| slots.iter().map(move |b| (*a, *b)));
        let mut world = Self {
            left: bounds,
            broken,
            nodes: vec![node; bounds.nodes.into()],
            links: pairs
                .filter(|(a, b)| a < b)
                .map(|pair| (pair, Link::default()))
                .collect(),
            arbiter: ArbiterModel::new(first_held(record.clone())),
            forgotten: None,
            first: record,
            register: Register::new(),
            acknowledged: BTreeMap::new(),
            made: 0,
            next_value: 1,
            wrong: None,
        };
        for slot in slots {
            world.start(slot);
        }
        world
    }

    /// As [`World::new`], and run without a fault until the first node owns the LUN and all others
    /// follow it.
    ///
    /// # Panics
    /// If that does not come about.
    #[must_use]
    pub fn settled(bounds: Bounds, broken: Option<Rule>) -> Self {
        let mut world = Self::new(bounds, None);
        for _ in 0..1000 {
            let owner = world.at(NodeSlot(0)).copy.as_ref();
            let is_settled = owner.is_some_and(|it| it.state(NOW) == State::Owner)
                && world
                    .links
                    .values()
                    .all(|it| it.queues.iter().all(VecDeque::is_empty))
                && world.nodes.iter().all(|it| it.stable == it.log.len());
            if is_settled {
                world.left = bounds;
                world.broken = broken;
                for node in &mut world.nodes {
                    node.copy.iter_mut().for_each(|it| it.breaks(broken));
                }
                return world;
            }
            if !world.goes_on() {
                world.ticks();
            }
        }
        panic!("it does not settle: {world:#?}");
    }

    /// Something happens that nothing is waited for; `false`: there is nothing.
    pub(super) fn goes_on(&mut self) -> bool {
        self.goes_on_with(true)
    }

    /// The same, but that no connection comes back.
    #[cfg(test)]
    pub(super) fn goes_on_without_mending(&mut self) -> bool {
        self.goes_on_with(false)
    }

    fn goes_on_with(&mut self, mends: bool) -> bool {
        let is_next = |event: &&Event| {
            if matches!(event, Event::Mend(..)) && !mends {
                return false;
            }
            matches!(
                event,
                Event::Deliver(..)
                    | Event::Mend(..)
                    | Event::Aware(..)
                    | Event::Arbitrate(_)
                    | Event::Answer(_)
                    | Event::Stable(_)
                    | Event::Rewrite(..)
            )
        };
        let events = self.events();
        let next = events.iter().find(is_next);
        next.inspect(|event| self.happens(event)).is_some()
    }

    /// Something that happens although no node starts or connects anew.
    #[cfg(test)]
    pub(super) fn next_at_rest(&self) -> Option<Event> {
        let mut events = self.events().into_iter();
        events.find(|it| {
            matches!(
                it,
                Event::Arbitrate(_) | Event::Answer(_) | Event::Stable(_)
            )
        })
    }

    /// Writes that were answered.
    #[cfg(test)]
    pub(super) fn answered(&self) -> usize {
        self.acknowledged.len()
    }

    /// Everything happens that nothing is waited for.
    #[cfg(test)]
    pub(super) fn calms(&mut self) {
        while self.goes_on() {}
    }

    /// Time passes, and everybody notices.
    pub(super) fn ticks(&mut self) {
        self.happens(&Event::TimePasses);
        for slot in self.slots() {
            self.happens(&Event::Tick(slot));
        }
    }

    /// The answer of a node that follows is on its way.
    #[cfg(test)]
    pub(super) fn next_is_follow(&self, from: NodeSlot, to: NodeSlot) -> bool {
        let (key, direction) = Self::direction(from, to);
        let mut queue = self.links[&key].queues[direction].iter();
        queue.any(|it| matches!(it.0, Message::Follow { .. }))
    }

    /// What is wrong, if anything.
    #[must_use]
    pub const fn wrong(&self) -> Option<&'static str> {
        self.wrong
    }

    /// What each node that is up does.
    pub fn states(&self) -> impl Iterator<Item = State> {
        let copies = self.nodes.iter().filter_map(|it| it.copy.as_ref());
        copies.map(|copy| copy.state(NOW))
    }

    /// How far the record has come.
    ///
    /// # Panics
    /// Never: nothing takes it away.
    #[must_use]
    pub fn record(&self) -> &RoleRecord {
        let held = self.forgotten.as_ref().unwrap_or(self.arbiter.held());
        &held.records[&()].1
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = NodeSlot> + use<> {
        (0..u8::try_from(self.nodes.len()).expect("few")).map(NodeSlot)
    }

    pub(super) fn node(&mut self, slot: NodeSlot) -> &mut Node {
        &mut self.nodes[usize::from(slot.0)]
    }

    pub(super) fn at(&self, slot: NodeSlot) -> &Node {
        &self.nodes[usize::from(slot.0)]
    }

    /// Everything that may happen now.
    #[must_use]
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.wrong.is_some() {
            return events;
        }
        self.events_of_links(&mut events);
        for (at, request) in self.arbiter.requests().iter().enumerate() {
            if request.answer.is_none() {
                events.push(Event::Arbitrate(at));
            } else if !request.is_forgotten {
                events.push(Event::Answer(at));
            }
            if !request.is_forgotten && self.left.lost > 0 {
                events.push(Event::LoseAnswer(at));
            }
        }
        for slot in self.slots() {
            self.events_of_node(slot, &mut events);
        }
        if self.forgotten.is_some() {
            events.push(Event::Restore);
        } else if self.left.set_backs > 0 && self.knows_more_than(Revision(1)) {
            events.push(Event::SetBack);
        }
        events.push(Event::TimePasses);
        events
    }

    fn events_of_links(&self, events: &mut Vec<Event>) {
        for (&(a, b), link) in &self.links {
            for (direction, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
                if !link.queues[direction].is_empty() {
                    events.push(Event::Deliver(from, to));
                }
                if link.unaware[direction] {
                    events.push(Event::Aware(from, to));
                }
            }
            let both = self.at(a).copy.is_some() && self.at(b).copy.is_some();
            if link.is_up && self.left.cuts > 0 {
                events.push(Event::Cut(a, b));
            } else if !link.is_up && both {
                events.push(Event::Mend(a, b));
            }
        }
    }

    fn events_of_node(&self, slot: NodeSlot, events: &mut Vec<Event>) {
        let node = self.at(slot);
        let Some(copy) = &node.copy else {
            self.events_of_absent(slot, events);
            return;
        };
        events.push(Event::Tick(slot));
        if node.stable < node.log.len() {
            events.push(Event::Stable(slot));
        }
        if self.left.writes > 0 && copy.may_write() {
            events.push(Event::Write(slot));
        }
        if self.left.reads > 0 && copy.may_read(NOW) {
            events.push(Event::Read(slot));
        }
        let wants_to_read = self.left.reads > 0 && self.left.asks > 0;
        if wants_to_read && copy.state(NOW) == State::Replica && !copy.may_read(NOW) {
            events.push(Event::Ask(slot));
        }
        if self.left.unwell > 0 && copy.may_write() {
            let others = self.record().in_sync.iter().filter(|it| *it != slot);
            events.extend(others.map(|it| Event::Unwell(slot, it)));
        }
        if self.left.handovers > 0 && copy.may_write() {
            let others = self.record().in_sync.iter().filter(|it| *it != slot);
            events.extend(others.map(|it| Event::HandOver(slot, it)));
        }
        self.events_of_renewal(slot, events);
        self.events_of_copies(slot, events);
        if self.left.crashes > 0 {
            events.push(Event::Crash(slot, false));
            if node.stable < node.log.len() {
                events.push(Event::Crash(slot, true));
            }
        }
    }

    /// Changes the world by one event, which must be among those that are possible, and checks what
    /// has to hold.
    pub(super) fn happens(&mut self, event: &Event) {
        match *event {
            Event::Deliver(from, to) => self.deliver(from, to),
            Event::Aware(slot, other) => {
                let (key, direction) = Self::direction(slot, other);
                self.links.get_mut(&key).expect("a pair").unaware[direction] = false;
                self.hands(slot, |copy| copy.disconnected(other));
            }
            Event::Cut(a, b) => {
                self.left.cuts -= 1;
                self.ends(a, b);
            }
            Event::Mend(a, b) => self.mend(a, b),
            Event::Arbitrate(at) => self.arbitrate(at),
            Event::Answer(at) => self.answer(at),
            Event::LoseAnswer(at) => {
                self.left.lost -= 1;
                let from = self.arbiter.loses(at);
                self.hands(from, |copy| copy.arbitrated(Arbitration::Unknown, NOW));
            }
            Event::TimePasses => self.time_passes(),
            Event::Tick(slot) => {
                self.says_who_lags(slot);
                self.hands(slot, |copy| copy.tick(NOW));
            }
            Event::Stable(slot) => {
                let node = self.node(slot);
                node.stable = node.log.len();
                let stable = node.stable as u64;
                self.hands(slot, |copy| copy.stable(0, stable, NOW));
            }
            Event::Write(slot) => self.write(slot),
            Event::Read(slot) => self.read(slot),
            Event::Ask(slot) => {
                self.left.asks -= 1;
                self.hands(slot, |copy| copy.ask_to_read(NOW));
            }
            Event::Unwell(slot, other) => {
                self.left.unwell -= 1;
                self.hands(slot, |copy| copy.remove_unwell(other, NOW));
            }
            Event::HandOver(slot, to) => {
                self.left.handovers -= 1;
                self.hands(slot, |copy| {
                    let _begun = copy.hand_over(to, NOW);
                });
            }
            Event::SetBack => {
                self.left.set_backs -= 1;
                self.forgotten = Some(self.arbiter.held().clone());
                self.arbiter.set_back(first_held(self.first.clone()));
            }
            Event::Restore => {
                if let Some(held) = self.forgotten.take() {
                    self.arbiter.set_back(held);
                }
            }
            Event::Forget(slot) => self.forget(slot),
            Event::Rewrite(slot, to) => self.rewrite(slot, to),
            Event::Change(slot, other) => self.changes_copies(slot, other),
            Event::Lose(slot) => self.lose(slot),
            Event::Promote(slot) => self.promote(slot),
            Event::Crash(slot, keeps) => self.crash(slot, keeps),
            Event::Start(slot) => self.start(slot),
        }
        self.check();
    }

    fn direction(from: NodeSlot, to: NodeSlot) -> ((NodeSlot, NodeSlot), usize) {
        if from < to {
            ((from, to), 0)
        } else {
            ((to, from), 1)
        }
    }

    /// The connection ends: what was on its direction is lost, and each side hears of it later.
    fn ends(&mut self, a: NodeSlot, b: NodeSlot) {
        let (key, _) = Self::direction(a, b);
        let up = [key.0, key.1].map(|it| self.at(it).copy.is_some());
        let link = self.links.get_mut(&key).expect("a pair");
        link.queues = Default::default();
        link.anew = Default::default();
        if link.is_up {
            link.unaware = up;
        }
        link.is_up = false;
    }

    /// What the other one says counts for nothing until it has heard this one's greeting. What this
    /// one has said before may still arrive.
    fn begins_anew(&mut self, slot: NodeSlot, other: NodeSlot) {
        let (key, direction) = Self::direction(slot, other);
        let link = self.links.get_mut(&key).expect("a pair");
        if !link.is_up {
            return;
        }
        link.queues[1 - direction].clear();
        link.anew[1 - direction] = false;
        let before = &mut link.queues[direction];
        before.retain(|it| !matches!(it.0, Message::Hello { .. }));
        link.anew[direction] = true;
        self.node(slot).ends_stream(other);
        if let Some(copy) = &mut self.node(slot).copy {
            copy.connected(other);
        }
    }

    fn mend(&mut self, a: NodeSlot, b: NodeSlot) {
        let link = self.links.get_mut(&(a, b)).expect("a pair");
        link.is_up = true;
        let unaware = std::mem::take(&mut link.unaware);
        for (side, (slot, other)) in [(a, b), (b, a)].into_iter().enumerate() {
            if unaware[side] {
                self.hands(slot, |copy| copy.disconnected(other));
            }
            self.node(slot).ends_stream(other);
        }
        for (slot, other) in [(a, b), (b, a)] {
            // The first of them may have ended it again.
            if self.links[&(a, b)].is_up {
                self.hands(slot, |copy| copy.connected(other));
            }
        }
    }

    fn deliver(&mut self, from: NodeSlot, to: NodeSlot) {
        let (key, direction) = Self::direction(from, to);
        let link = self.links.get_mut(&key).expect("a pair");
        let (message, entry) = link.queues[direction].pop_front().expect("there is one");
        if link.anew[direction] && matches!(message, Message::Hello { .. }) {
            link.anew[direction] = false;
            self.node(to).ends_stream(from);
            self.hands(to, |copy| {
                copy.disconnected(from);
                copy.connected(from);
            });
        }
        if let (
            Message::Append {
                epoch,
                ring,
                number,
                of,
            },
            Some(entry),
        ) = (&message, entry)
        {
            let node = self.node(to);
            if let Some(copy) = &mut node.copy
                && copy.accepts(from, (*epoch, *ring, *number))
            {
                node.log.push(entry);
                copy.appended(*ring, *of);
            }
        }
        let adopted = self.at(to).adopted() as u64;
        self.hands(to, |copy| {
            if matches!(message, Message::Renew { .. }) {
                copy.has_adopted(vec![adopted]);
            }
            copy.heard(from, message, NOW);
        });
    }

    /// Every node knows a newer record than that.
    fn knows_more_than(&self, revision: Revision) -> bool {
        self.nodes.iter().all(|it| it.disk.known.0 > revision)
    }

    /// A store that was set back does no swap of who knows more than it holds.
    fn is_refused(&self, at: usize) -> bool {
        let believes = self.broken == Some(Rule::WhatWasForgottenStands);
        self.forgotten.is_some() && self.arbiter.is_swap(at) && !believes
    }

    fn answer(&mut self, at: usize) {
        let (from, said) = self.arbiter.answers(at);
        let answer = match said {
            Said::Swapped(revision) => Arbitration::Swapped(revision),
            Said::Is(Some((revision, is))) => Arbitration::Is(revision, is),
            Said::Is(None) | Said::AreAll(_) => Arbitration::Distrusted,
        };
        self.hands(from, |copy| copy.arbitrated(answer, NOW));
    }

    fn arbitrate(&mut self, at: usize) {
        if self.is_refused(at) {
            return self.arbiter.answers_nothing(at);
        }
        if let Some(Some(before)) = self.arbiter.does(at) {
            // Whoever writes to a store that was set back believes it.
            let before = match self.forgotten.take() {
                Some(held) => held.records[&()].1.clone(),
                None => before,
            };
            self.was_promoted(&before);
            let is = self.record();
            let is_epoch_of_its_own =
                is.epoch > before.epoch || (is.epoch == before.epoch && is.owner == before.owner);
            if !is_epoch_of_its_own {
                self.wrong = Some("I1: an epoch has two owners, or is an old one");
            }
        }
    }

    fn time_passes(&mut self) {
        let age = |moment: &mut Moment| moment.0 = moment.0.saturating_sub(1);
        for node in &mut self.nodes {
            if let Some(copy) = &mut node.copy {
                copy.age(1);
            }
        }
        for (message, _) in self
            .links
            .values_mut()
            .flat_map(|it| &mut it.queues)
            .flatten()
        {
            match message {
                Message::Beacon { sent }
                | Message::Answer { sent }
                | Message::Ask { sent }
                | Message::Grant { sent } => age(sent),
                Message::Hello { .. }
                | Message::Lead { .. }
                | Message::Yield { .. }
                | Message::Refuse { .. }
                | Message::Follow { .. }
                | Message::Renew { .. }
                | Message::Whole { .. }
                | Message::Leaves
                | Message::Less { .. }
                | Message::Append { .. }
                | Message::Commit { .. }
                | Message::Ack { .. } => {}
            }
        }
    }

    fn write(&mut self, slot: NodeSlot) {
        self.left.writes -= 1;
        let value = self.next_value;
        self.next_value += 1;
        self.register.begins(value);
        let number = self.at(slot).log.len();
        self.node(slot).waiting.push(number);
        let epoch = self.at(slot).disk.known.1.epoch;
        self.append(
            slot,
            Entry {
                epoch,
                value: Some(value),
            },
        );
    }

    pub(super) fn append(&mut self, slot: NodeSlot, entry: Entry) {
        let node = self.node(slot);
        node.log.push(entry);
        let number = node.log.len() - 1;
        if let Some(copy) = &mut node.copy {
            copy.appended(0, entry.epoch);
        }
        for to in self.at(slot).streams.clone() {
            self.stream(slot, to, number);
        }
    }

    fn stream(&mut self, from: NodeSlot, to: NodeSlot, number: usize) {
        let node = self.at(from);
        let entry = node.log[number];
        let append = Message::Append {
            epoch: node.disk.known.1.epoch,
            ring: 0,
            number: number as u64,
            of: entry.epoch,
        };
        self.send(from, to, append, Some(entry));
    }

    fn read(&mut self, slot: NodeSlot) {
        self.left.reads -= 1;
        let node = self.at(slot);
        let copy = node.copy.as_ref().expect("it is up");
        let mut seen = usize::try_from(copy.committed(0)).expect("few");
        if self.broken == Some(Rule::ReadersSeeCommitted) {
            seen = node.log.len();
        }
        let value = node.value_below(seen);
        if !self.register.reads(value) {
            self.wrong = Some("a read saw what no order explains");
        }
    }

    fn crash(&mut self, slot: NodeSlot, keeps: bool) {
        self.left.crashes -= 1;
        self.ends_node(slot, keeps);
    }

    pub(super) fn ends_node(&mut self, slot: NodeSlot, keeps: bool) {
        let node = self.node(slot);
        node.copy = None;
        node.waiting.clear();
        node.ends_streams();
        if !keeps {
            node.log.truncate(node.stable);
        }
        node.stable = node.log.len();
        for other in self.slots().filter(|it| *it != slot) {
            self.ends(slot, other);
        }
        self.arbiter.waits_no_more(slot);
    }

    fn start(&mut self, slot: NodeSlot) {
        self.begins_where_lost(slot);
        let (broken, min_copies) = (self.broken, self.left.min_copies);
        let node = self.node(slot);
        let (mut ring, first) = node.renewal.summary();
        let rest = node.log[first..].iter();
        rest.for_each(|it| ring.push(it.epoch));
        let mut copy = LunCopy::start(slot, SPANS, node.disk.clone(), vec![ring], NOW);
        copy.is_committed(0, first as u64);
        copy.breaks(broken);
        copy.set_min_copies(min_copies, NOW);
        node.copy = Some(copy);
        self.hands(slot, |_| {});
    }

    /// Something is handed to a machine, and what it wants then is done.
    pub(super) fn hands(&mut self, slot: NodeSlot, what: impl FnOnce(&mut LunCopy)) {
        let Some(copy) = &mut self.node(slot).copy else {
            return;
        };
        what(copy);
        loop {
            let acts = self.node(slot).copy.as_mut().map(LunCopy::acts);
            let acts = acts.unwrap_or_default();
            if acts.is_empty() {
                return;
            }
            acts.into_iter().for_each(|act| self.does(slot, act));
        }
    }

    fn does(&mut self, slot: NodeSlot, act: Act) {
        match act {
            Act::Keep(durable) => {
                let node = self.node(slot);
                node.has_lost &= node.disk.is_whole || !durable.is_whole;
                node.disk = durable;
            }
            Act::Send(to, message) => {
                if matches!(message, Message::Renew { .. }) {
                    self.node(slot).ends_stream(to);
                }
                self.send(slot, to, message, None);
            }
            Act::Renew { epoch, from } => self.node(slot).renew(epoch, from[0]),
            Act::Copy { to, base } => self.begins_copy(slot, to, &base),
            Act::Disconnect(other) => self.begins_anew(slot, other),
            Act::Read => self.asks(slot, Ask::Read(())),
            Act::Swap(expected, to) => {
                // Nobody orders the LUN here any more: whoever waits loses its connection.
                if to.epoch > self.at(slot).disk.known.1.epoch {
                    self.node(slot).waiting.clear();
                }
                self.asks(slot, Ask::Swap((), expected, to));
            }
            Act::GiveUp { from, .. } => {
                let from = usize::try_from(from).expect("few");
                let node = self.node(slot);
                node.log.truncate(from);
                node.stable = node.stable.min(from);
                node.waiting.retain(|it| *it < from);
            }
            Act::Begin(epoch) => self.append(slot, Entry { epoch, value: None }),
            Act::Stream { to, from, .. } => {
                let from = usize::try_from(from).expect("few");
                if self.node(slot).lacks(to, from) {
                    return;
                }
                self.node(slot).streams.insert(to);
                for number in from..self.at(slot).log.len() {
                    self.stream(slot, to, number);
                }
            }
            Act::Committed { commit, .. } => self.committed(slot, commit),
            Act::Drop => {
                let node = self.node(slot);
                node.waiting.clear();
                node.ends_streams();
            }
        }
    }

    fn committed(&mut self, slot: NodeSlot, commit: u64) {
        let commit = usize::try_from(commit).expect("few");
        let node = self.node(slot);
        node.renewal.committed = node.renewal.committed.max(commit);
        let done: Vec<usize> = node
            .waiting
            .iter()
            .copied()
            .filter(|it| *it < commit)
            .collect();
        node.waiting.retain(|it| *it >= commit);
        for number in done {
            let entry = self.at(slot).log[number];
            self.enough_have(number, &entry);
            self.acknowledged.insert(number, entry);
            if entry.value.is_some_and(|value| !self.register.ends(value)) {
                self.wrong = Some("a write was answered that no order explains");
            }
        }
        self.copies_end(slot);
    }

    fn asks(&mut self, from: NodeSlot, ask: Ask<(), RoleRecord>) {
        self.arbiter.waits_no_more(from);
        self.arbiter.asks(from, ask);
    }

    fn send(&mut self, from: NodeSlot, to: NodeSlot, message: Message, entry: Option<Entry>) {
        let (key, direction) = Self::direction(from, to);
        let link = self.links.get_mut(&key).expect("a pair");
        let is_again = matches!(
            message,
            Message::Beacon { .. }
                | Message::Answer { .. }
                | Message::Ask { .. }
                | Message::Grant { .. }
        );
        let same = |it: &&(Message, Option<Entry>)| {
            std::mem::discriminant(&it.0) == std::mem::discriminant(&message)
        };
        // One of them on its direction is enough: the next one is as if it had been sent later.
        if link.is_up
            && !link.anew[1 - direction]
            && !(is_again && link.queues[direction].iter().find(same).is_some())
        {
            link.queues[direction].push_back((message, entry));
        }
    }

    /// What has to hold at any time.
    fn check(&mut self) {
        for slot in self.record().in_sync.iter() {
            let node = self.at(slot);
            if node.lost.is_some() || node.has_lost {
                continue;
            }
            let has = |(number, entry): (&usize, &Entry)| {
                *number < node.stable && node.log.get(*number) == Some(entry)
                    || node.has_again(*number)
            };
            if !self.acknowledged.iter().all(has) {
                self.wrong = Some("I3: a node that is in sync lacks what was acknowledged");
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[at + 1..] {
                let mut both = node.log.iter().zip(&other.log);
                if both.any(|(a, b)| a.epoch == b.epoch && a.value != b.value) {
                    self.wrong = Some("I7: a number of an epoch names two changes");
                }
            }
        }
    }

    /// Whether the world has gone further than the bounds allow.
    pub(super) fn is_beyond(&self) -> bool {
        let epochs = self.nodes.iter().map(|it| it.disk.promised.0);
        epochs.max().unwrap_or(0) > self.left.epochs
    }
}
