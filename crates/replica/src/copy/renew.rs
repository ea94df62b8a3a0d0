//! A copy that is made anew, as the owner's log cannot bring it up any more.
//!
//! ```text
//!   owner: the log has not what it lacks --Renew, what is committed--> it is not whole, durably;
//!          what changed since then      <--Follow from there, what it had-- its log goes on there
//!          is written again
//!          it has all of that           --Whole-->  it is whole, durably
//!          it may be in sync again      <--Whole--
//! ```
//!
//! What the owner writes again goes through its log, among the changes of hosts: so there is one
//! order, and what the copy has when it has all of it is what the owner has. Until then it is no
//! copy: it never takes over, and nobody waits for it.
//!
//! What it had when it was whole last, by numbers, it keeps until it is whole again: however often
//! it is begun anew, what changed since then is what it may lack.

use super::lead::Copying;
use super::{Act, LunCopy, Role};
use crate::message::{Message, RingSummary};
use crate::moment::Moment;
use crate::record::{Epoch, NodeSlot};

impl LunCopy {
    /// Of an owner: its log has no more what this follower lacks. A member that is in sync is
    /// removed first. Said again until it is done: it may have to wait.
    pub fn cannot_catch_up(&mut self, node: NodeSlot, now: Moment) {
        let is_in_sync = self.record().in_sync.has(node);
        let epoch = self.record().epoch;
        let from = self.rings.iter().map(|ring| ring.commit).collect();
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        if is_in_sync {
            return self.remove_unwell(node, now);
        }
        if leading.opens_at.is_none() && leading.follows(node) {
            leading.lost(node);
            self.acts
                .push(Act::Send(node, Message::Renew { epoch, from }));
        }
        self.proceed(now);
    }

    /// Of an owner: all that [`Act::Copy`] asked for was written again, and is committed.
    pub fn copied(&mut self, node: NodeSlot, now: Moment) {
        let until = self.rings.iter().map(|ring| ring.commit).collect();
        if let Role::Leading(leading) = &mut self.role
            && let Some(copying) = leading.copying.get_mut(&node)
            && *copying == Copying::Begun
        {
            *copying = Copying::Until(until);
        }
        self.proceed(now);
    }

    /// The owner has those copied that are not whole, and says so when they have all of it.
    pub(super) fn tend_copies(&mut self) {
        let epoch = self.record().epoch;
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        if leading.opens_at.is_some() {
            return;
        }
        for (node, copying) in leading.copying.clone() {
            let (next, act) = match copying {
                Copying::Wanted(base) => (Copying::Begun, Act::Copy { to: node, base }),
                Copying::Until(numbers) if leading.has(node, &numbers) => {
                    let whole = Message::Whole { epoch };
                    (Copying::Said, Act::Send(node, whole))
                }
                Copying::Begun | Copying::Until(_) | Copying::Said => continue,
            };
            leading.copying.insert(node, next);
            self.acts.push(act);
        }
    }

    /// The owner cannot bring this copy up from its log: it is made anew.
    pub(super) fn renew(&mut self, node: NodeSlot, epoch: Epoch, from: &[u64]) {
        let follows = Role::Member {
            follows: Some(epoch),
        };
        let has_committed = |(ring, from): (&super::Ring, &u64)| ring.commit <= *from;
        let may = self.role == follows
            && self.record().owner == node
            && !self.record().in_sync.has(self.me)
            && self.rings.len() == from.len()
            && self.rings.iter().zip(from).all(has_committed);
        if !may {
            return;
        }
        if self.kept.is_whole || !holds!(self, WhatItHadStaysUntilItIsWhole) {
            self.kept.base = std::mem::take(&mut self.adopted);
        }
        self.kept.is_whole = false;
        if holds!(self, NotWholeBeforeItsLogGoesOn) {
            self.keep();
        }
        for (ring, from) in self.rings.iter_mut().zip(from) {
            ring.has = RingSummary {
                epochs: vec![(epoch, *from)],
                next: *from,
            };
            (ring.stable, ring.commit) = (*from, *from);
        }
        let from = from.to_vec();
        self.acts.push(Act::Renew { epoch, from });
        self.say_follow(node, epoch);
    }

    /// All below these numbers of each ring is stable, committed and known to be so by the log
    /// here: what this copy has if it is made anew. To be said before [`Message::Renew`] is heard.
    pub fn has_adopted(&mut self, numbers: Vec<u64>) {
        self.adopted = numbers;
    }

    /// All of it is here; or, of an owner, there.
    pub(super) fn is_whole(&mut self, node: NodeSlot, epoch: Epoch) {
        let follows = Role::Member {
            follows: Some(epoch),
        };
        if self.role == follows && node == self.record().owner {
            self.kept.is_whole = true;
            self.kept.base.clear();
            self.keep();
            self.acts.push(Act::Send(node, Message::Whole { epoch }));
            return;
        }
        let is_current = self.record().epoch == epoch;
        if let Role::Leading(leading) = &mut self.role
            && leading.copying.get(&node) == Some(&Copying::Said)
            && is_current
        {
            leading.copying.remove(&node);
            // What it was removed for was that it was not.
            leading.comes_back(node);
        }
    }
}
