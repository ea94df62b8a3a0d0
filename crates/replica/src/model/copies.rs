//! Copies that are added and removed, disks that are lost, and nodes that go on by force.

use super::Rule;
use super::renewal::{Lost, Renewal};
use super::world::{Entry, Event, NOW, World};
use crate::copy::Durable;
use crate::record::{CopyId, NodeSlot, RoleRecord};

/// What is read of a copy that was never given anything: no host wrote it.
const GARBAGE: u8 = 0xEE;

impl World {
    /// A node that lost its copy begins when the record has another one for it.
    pub(super) fn events_of_absent(&self, slot: NodeSlot, events: &mut Vec<Event>) {
        let copy = self.record().copy_of(slot);
        if self
            .at(slot)
            .lost
            .is_none_or(|it| copy != it.was && copy.is_some())
        {
            events.push(Event::Start(slot));
        }
    }

    pub(super) fn events_of_copies(&self, slot: NodeSlot, events: &mut Vec<Event>) {
        let copy = self.at(slot).copy.as_ref();
        if self.left.changes > 0 && copy.is_some_and(|it| it.committed(0) > 0) {
            let others = self.slots().filter(|it| *it != slot);
            events.extend(others.map(|it| Event::Change(slot, it)));
        }
        if self.left.losses > 0 {
            events.push(Event::Lose(slot));
        }
        let is_gone = |node: NodeSlot| self.at(node).copy.is_none();
        let may = copy.is_some_and(|it| it.may_promote(NOW).is_ok());
        if self.left.promotes > 0 && may && self.record().in_sync.iter().all(is_gone) {
            events.push(Event::Promote(slot));
        }
    }

    /// The owner removes a node's copy; or where it has none, it gets one, which is made from
    /// nothing.
    pub(super) fn changes_copies(&mut self, slot: NodeSlot, other: NodeSlot) {
        self.left.changes -= 1;
        let mut copies = self.at(slot).disk.known.1.copies.clone();
        let has = copies.iter().any(|it| it.0 == other);
        copies.retain(|it| it.0 != other);
        if !has {
            if self.at(other).lost.is_none() {
                self.loses_all(other);
            }
            self.made += 1;
            let id = CopyId::new((16 + 2 * self.made).into(), true);
            copies.push((other, id));
            copies.sort_unstable();
        }
        self.hands(slot, |copy| {
            let _begun = copy.change_copies(&copies, NOW);
        });
    }

    pub(super) fn lose(&mut self, slot: NodeSlot) {
        self.left.losses -= 1;
        self.loses_all(slot);
    }

    fn loses_all(&mut self, slot: NodeSlot) {
        if self.at(slot).copy.is_some() {
            self.ends_node(slot, false);
        }
        let node = self.node(slot);
        node.lost = Some(Lost {
            was: node.disk.known.1.copy_of(slot),
        });
        node.log.clear();
        node.stable = 0;
        node.renewal = Renewal {
            base: GARBAGE,
            ..Default::default()
        };
    }

    /// A node that has lost all begins with the copy that the record has for it.
    pub(super) fn begins_where_lost(&mut self, slot: NodeSlot) {
        if self.at(slot).lost.is_none() {
            return;
        }
        let known = self.arbiter.held().records[&()].clone();
        let Some(mut new) = Durable::of_new(slot, known) else {
            return;
        };
        new.is_whole |= self.broken == Some(Rule::WhoIsAddedIsNotWhole);
        let node = self.node(slot);
        (node.disk, node.lost) = (new, None);
    }

    pub(super) fn promote(&mut self, slot: NodeSlot) {
        self.left.promotes -= 1;
        self.hands(slot, |copy| {
            let _begun = copy.promote(NOW);
        });
    }

    /// Where the owner was changed by force: what its copy has is what there is from now on.
    pub(super) fn was_promoted(&mut self, before: &RoleRecord) {
        let is = self.record();
        let owner = is.owner;
        if before.in_sync.has(owner) {
            return;
        }
        if is.copies.len() != 1 {
            self.wrong = Some("who was not in sync claimed the LUN");
        }
        let node = self.at(owner);
        let ends = node.stable..=node.log.len();
        let values = ends.map(|it| node.value_below(it)).collect();
        let stable = node.log[..node.stable].to_vec();
        self.acknowledged = stable.into_iter().enumerate().collect();
        self.register.is_lost_but(values);
    }

    /// What is answered is stable on as many nodes as there have to be.
    pub(super) fn enough_have(&mut self, number: usize, entry: &Entry) {
        let has = |slot: &NodeSlot| {
            let node = self.at(*slot);
            number < node.stable && node.log.get(number) == Some(entry)
        };
        let count = self.slots().filter(has).count();
        if count < usize::try_from(self.left.min_copies).expect("few") {
            self.wrong = Some("a write was answered that too few nodes have");
        }
    }
}
