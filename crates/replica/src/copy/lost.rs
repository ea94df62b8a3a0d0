//! Nodes that come back with less than they had acknowledged: a disk said that something was stable
//! and it was not, or went back to what it was earlier.
//!
//! ```text
//!   owner:  a member is removed       --> it had all that was committed then: remembered
//!           Lead, with what it had    --> a member with less is not whole, durably, and made anew
//!   member: the owner's log ends before what is known to be committed, or an epoch begins there
//!           in sync and whole?        --> Less: the owner steps down, and is not whole, durably
//!                                     --> claims the LUN
//!           else                      --> follows nobody: what is here may be all that is left
//! ```
//!
//! What a member has lost is made anew from nothing: whoever says yes to one sync and does nothing
//! did so to others, and no number says which blocks they were of.

use super::{Act, LunCopy, Role};
use crate::message::RingSummary;
use crate::record::{Epoch, NodeSet, NodeSlot, RoleRecord};
use std::collections::BTreeMap;

/// What is known of nodes that lost something.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Lost {
    /// What nodes had when they were in sync last, by the first number of each ring that is not
    /// known to be so.
    had: BTreeMap<NodeSlot, Vec<u64>>,
    /// Of an owner: who came back with less, and is not in sync again.
    nodes: NodeSet,
    /// The owner of this epoch has less than is known to be committed.
    owner: Option<Epoch>,
}

impl Lost {
    /// Another copy has its place, or none.
    pub(super) fn forgets(&mut self, node: NodeSlot) {
        self.had.remove(&node);
        self.nodes = self.nodes.without(node);
    }
}

impl LunCopy {
    /// An owner noted it before its process began again: when that node was in sync last it had all
    /// below these numbers, ring by ring. To be said before anything is heard.
    pub fn has_had(&mut self, node: NodeSlot, below: Vec<u64>) {
        if below.len() == self.rings.len() {
            self.lost.had.insert(node, below);
        }
    }

    /// Of an owner: nodes that came back with less than they had acknowledged, and are not in sync
    /// again.
    #[must_use]
    pub fn who_lost(&self) -> NodeSet {
        match self.role {
            Role::Leading(_) => self.lost.nodes,
            Role::Joining | Role::Member { .. } | Role::Candidate | Role::NoMember => {
                NodeSet::default()
            }
        }
    }

    /// The owner has less than is known here to be committed.
    #[must_use]
    pub fn has_owner_lost(&self) -> bool {
        self.lost.owner == Some(self.record().epoch) && matches!(self.role, Role::Member { .. })
    }

    /// This node wrote the record: who was in sync by the one before had all that is committed.
    pub(super) fn remembers(&mut self, before: &RoleRecord) {
        let is = self.record().in_sync;
        let commits: Vec<u64> = self.rings.iter().map(|ring| ring.commit).collect();
        for node in before.in_sync.iter().filter(|it| *it != self.me) {
            if !is.has(node) {
                self.lost.had.insert(node, commits.clone());
            }
        }
        for node in is.iter().filter(|it| !before.in_sync.has(*it)) {
            self.lost.forgets(node);
        }
    }

    /// Of an owner: what a node has acknowledged, as far as that is known.
    pub(super) fn acknowledged_by(&self, node: NodeSlot) -> Vec<u64> {
        if self.record().in_sync.has(node) {
            return self.rings.iter().map(|ring| ring.commit).collect();
        }
        self.lost.had.get(&node).cloned().unwrap_or_default()
    }

    /// Of an owner: a node's log goes on with less than it had acknowledged.
    pub(super) fn is_short(&mut self, node: NodeSlot, next: &[u64]) -> bool {
        let had = self.acknowledged_by(node);
        let is_short = next.iter().zip(&had).any(|(next, had)| next < had);
        let is_short = is_short && holds!(self, WhoLostSomeIsMadeAnew);
        if is_short {
            self.lost.nodes = self.lost.nodes.with(node);
        }
        is_short
    }

    /// Of a member that is to follow: where it has less than it acknowledged it is not whole from
    /// now on, and nobody knows what it has. That is stored before anything is given up.
    pub(super) fn has_lost_some(&mut self, theirs: &[RingSummary], acknowledged: &[u64]) {
        let has_less = |((ring, theirs), had): ((&super::Ring, &RingSummary), &u64)| {
            let common = ring.has.common_with(theirs).unwrap_or(u64::MAX);
            ring.has.next.min(common).max(ring.commit) < *had
        };
        let mut all = self.rings.iter().zip(theirs).zip(acknowledged);
        if all.any(has_less) && holds!(self, WhoLostSomeIsMadeAnew) {
            self.loses_all_it_had();
        }
    }

    /// Of a member: the owner lacks what is known here to be committed. It has everything that was
    /// committed before its epoch, or has lost it.
    pub(super) fn is_led_by_less(&mut self, theirs: &[RingSummary]) -> bool {
        let promised = self.kept.promised;
        let has_less = |(ring, theirs): (&super::Ring, &RingSummary)| {
            let begins = theirs.begins_after(promised).unwrap_or(u64::MAX);
            theirs.next.min(begins) < ring.commit
        };
        let is_less = self.rings.iter().zip(theirs).any(has_less);
        let is_less = is_less && holds!(self, WhoKnowsMoreDoesNotFollow);
        self.lost.owner = is_less.then_some(self.record().epoch);
        is_less
    }

    /// Of an owner: a member has what this one has lost. It owns the LUN no more, and is made anew
    /// by whoever does.
    pub(super) fn has_less_than(&mut self, node: NodeSlot, epoch: Epoch) {
        let record = self.record();
        let is_member = record.in_sync.has(node) && record.epoch == epoch;
        if !is_member || !matches!(self.role, Role::Leading(_)) {
            return;
        }
        self.loses_all_it_had();
        self.acts.push(Act::Drop);
        self.role = Role::Member { follows: None };
    }

    /// An owner whose copy has lost something is none any more, whatever the record says.
    pub(super) fn may_own(&self) -> bool {
        self.kept.is_whole || !holds!(self, WhoKnowsMoreDoesNotFollow)
    }

    fn loses_all_it_had(&mut self) {
        self.kept.is_whole = false;
        self.kept.base.clear();
        self.keep();
    }

    /// The owner has lost something, and this node has all of it.
    pub(super) fn is_to_leave_the_owner(&self) -> bool {
        let in_sync = self.record().in_sync;
        self.has_owner_lost() && in_sync.has(self.me) && self.kept.is_whole
    }
}
