//! Logs that give up what is committed, and copies that are made anew.
//!
//! What a copy had before it was made anew and was not committed is void. What the owner changed
//! since then has an empty place in the log: whoever read there would see the value before.

use super::renewal::{Renewal, Rewrite};
use super::world::{Entry, Event, NOW, Node, World};
use crate::copy::LunCopy;
use crate::record::{Epoch, NodeSlot};

impl Node {
    /// Whoever reads up to this number sees this.
    pub(super) fn value_below(&self, number: usize) -> u8 {
        let mut values = self.log[..number].iter().filter_map(|it| it.value);
        values.next_back().unwrap_or(self.renewal.base)
    }

    /// This copy is made anew, and its log goes on with this number.
    pub(super) fn renew(&mut self, epoch: Epoch, from: u64) {
        let from = usize::try_from(from).expect("few");
        let empty = Entry {
            epoch: Epoch(0),
            value: None,
        };
        let has = self.adopted();
        self.log.truncate(has);
        self.log.resize(from, empty);
        self.stable = from;
        self.waiting.clear();
        self.renewal = Renewal {
            forgotten: from,
            committed: from,
            anew: Some((epoch, from)),
            base: self.renewal.base,
            ..Renewal::default()
        };
    }

    /// What is committed here, and known to be.
    pub(super) fn adopted(&self) -> usize {
        self.renewal.committed.min(self.stable)
    }

    /// It has not the change of this number, but a later one that stands for all before it.
    pub(super) fn has_again(&self, number: usize) -> bool {
        let Some((_, first)) = self.renewal.anew else {
            return false;
        };
        let mut rest = self.log[first..self.stable].iter();
        number < first && rest.any(|it| it.value.is_some())
    }

    /// A node lacks changes that this log has no more.
    pub(super) fn lacks(&mut self, node: NodeSlot, from: usize) -> bool {
        let lacks = from < self.renewal.forgotten;
        if lacks {
            self.renewal.lag.insert(node);
        }
        lacks
    }

    pub(super) fn ends_stream(&mut self, node: NodeSlot) {
        self.streams.remove(&node);
        self.renewal.lag.remove(&node);
        self.renewal.copies.remove(&node);
    }

    pub(super) fn ends_streams(&mut self) {
        self.streams.clear();
        self.renewal.lag.clear();
        self.renewal.copies.clear();
    }

    fn committed(&self) -> usize {
        let commit = self.copy.as_ref().map_or(0, |it| it.committed(0));
        usize::try_from(commit).expect("few")
    }
}

impl World {
    pub(super) fn events_of_renewal(&self, slot: NodeSlot, events: &mut Vec<Event>) {
        let node = self.at(slot);
        let may_write = node.copy.as_ref().is_some_and(LunCopy::may_write);
        if self.left.forgets > 0 && may_write && node.committed() > node.renewal.forgotten {
            events.push(Event::Forget(slot));
        }
        let copies = node.renewal.copies.iter();
        let waits = copies.filter(|it| matches!(it.1, Rewrite::Since(_)));
        // What waits to be committed is not written again before it is known whether it was.
        if node.committed() == node.log.len() {
            events.extend(waits.map(|it| Event::Rewrite(slot, *it.0)));
        }
    }

    /// The disk of a node goes back to when its log had so many changes.
    #[cfg(test)]
    pub(super) fn goes_back(&mut self, slot: NodeSlot, to: usize) {
        self.ends_node(slot, false);
        let node = self.node(slot);
        node.log.truncate(to);
        node.stable = node.log.len();
        node.renewal.committed = node.renewal.committed.min(to);
        node.has_lost = true;
    }

    #[cfg(test)]
    pub(super) fn has_owner_lost(&self, slot: NodeSlot) -> bool {
        let copy = self.at(slot).copy.as_ref();
        copy.is_some_and(LunCopy::has_owner_lost)
    }

    /// The log gives up all that is committed.
    pub(super) fn forget(&mut self, slot: NodeSlot) {
        self.left.forgets -= 1;
        let node = self.node(slot);
        node.renewal.forgotten = node.committed();
    }

    pub(super) fn says_who_lags(&mut self, slot: NodeSlot) {
        for node in self.at(slot).renewal.lag.clone() {
            self.hands(slot, |copy| copy.cannot_catch_up(node, NOW));
        }
    }

    /// The history says whether the block changed since the copy had its data all.
    pub(super) fn begins_copy(&mut self, slot: NodeSlot, to: NodeSlot, base: &[u64]) {
        let node = self.node(slot);
        let base = base
            .first()
            .map_or(0, |it| usize::try_from(*it).expect("few"));
        let mut later = node.log.iter().skip(base);
        if base > 0 && later.all(|it| it.value.is_none()) {
            return self.hands(slot, |copy| copy.copied(to, NOW));
        }
        let since = Rewrite::Since(node.committed());
        node.renewal.copies.insert(to, since);
    }

    /// The block is written again as it is, if nobody has written it meanwhile.
    pub(super) fn rewrite(&mut self, slot: NodeSlot, to: NodeSlot) {
        let node = self.at(slot);
        let Some(Rewrite::Since(since)) = node.renewal.copies.get(&to) else {
            return;
        };
        let mut later = node.log[*since..].iter();
        let is_written = later.any(|it| it.value.is_some());
        let number = node.log.len();
        let epoch = node.copy.as_ref().map(|it| it.epoch());
        let again = Entry {
            epoch: epoch.expect("it is up"),
            value: Some(node.value_below(number)),
        };
        let copies = &mut self.node(slot).renewal.copies;
        if is_written {
            copies.remove(&to);
            self.hands(slot, |copy| copy.copied(to, NOW));
        } else {
            copies.insert(to, Rewrite::Is(number));
            self.append(slot, again);
        }
    }

    /// What was written again is committed.
    pub(super) fn copies_end(&mut self, slot: NodeSlot) {
        let node = self.node(slot);
        let committed = node.committed();
        let is_done = |it: &Rewrite| matches!(it, Rewrite::Is(number) if *number < committed);
        let done = node.renewal.copies.iter().filter(|it| is_done(it.1));
        let done: Vec<NodeSlot> = done.map(|it| *it.0).collect();
        for to in done {
            self.node(slot).renewal.copies.remove(&to);
            self.hands(slot, |copy| copy.copied(to, NOW));
        }
    }
}
