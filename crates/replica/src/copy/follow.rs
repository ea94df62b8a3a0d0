//! A member: it gives up what the owner does not have, and takes what the owner sends.

use super::{Act, LunCopy, Role};
use crate::message::{Message, RingSummary};
use crate::moment::Moment;
use crate::record::{Epoch, NodeSlot, Revision, RoleRecord};

impl LunCopy {
    /// The owner says that it is the owner, and what its log has.
    pub(super) fn follow(
        &mut self,
        node: NodeSlot,
        known: (Revision, RoleRecord),
        (rings, acknowledged): (&[RingSummary], &[u64]),
        now: Moment,
    ) {
        let epoch = known.1.epoch;
        if epoch < self.kept.promised {
            let promised = self.kept.promised;
            self.acts
                .push(Act::Send(node, Message::Refuse { promised }));
            return;
        }
        self.learn(known, now);
        let is_owner = self.record().owner == node && self.record().epoch == epoch;
        let may_follow = matches!(
            self.role,
            Role::Joining | Role::Member { .. } | Role::Candidate
        );
        if !is_owner || !may_follow || rings.len() != self.rings.len() {
            return;
        }
        if self.is_led_by_less(rings) {
            self.role = Role::Member { follows: None };
            if self.is_to_leave_the_owner() {
                self.acts.push(Act::Send(node, Message::Less { epoch }));
            }
            return;
        }
        if epoch > self.kept.promised {
            self.kept.promised = epoch;
            self.keep();
        }
        self.has_lost_some(rings, acknowledged);
        for (at, theirs) in rings.iter().enumerate() {
            self.cut(at, theirs, acknowledged.get(at).copied());
        }
        self.role = Role::Member {
            follows: Some(epoch),
        };
        self.may_read_from = None;
        self.say_follow(node, epoch);
    }

    /// Says to the owner what comes next here, and what is stable.
    pub(super) fn say_follow(&mut self, node: NodeSlot, epoch: Epoch) {
        let next = self.rings.iter().map(|ring| ring.has.next).collect();
        let (is_whole, base) = (self.kept.is_whole, self.kept.base.clone());
        let follow = Message::Follow {
            epoch,
            next,
            is_whole,
            base,
        };
        self.acts.push(Act::Send(node, follow));
        for at in 0..self.rings.len() {
            let ring = u8::try_from(at).expect("rings are few");
            let stable = self.rings[at].stable;
            let ack = Message::Ack {
                epoch,
                ring,
                stable,
            };
            self.acts.push(Act::Send(node, ack));
        }
    }

    /// Gives up what a ring has and the owner's has not: nobody was answered for it.
    fn cut(&mut self, at: usize, theirs: &RingSummary, acknowledged: Option<u64>) {
        let ring = &mut self.rings[at];
        let common = ring.has.common_with(theirs);
        // What is committed, or acknowledged to this owner, is alike also where an epoch of it is
        // known no more.
        let common = common.or(acknowledged).unwrap_or(0);
        let common = common.min(ring.has.next).max(ring.commit);
        if common < ring.has.next {
            let ring = u8::try_from(at).expect("rings are few");
            self.acts.push(Act::GiveUp { ring, from: common });
        }
        let ring = &mut self.rings[at];
        ring.has.cut_at(common);
        ring.stable = ring.stable.min(common);
    }

    /// Whether a change that the owner sent is the next one of its ring, in the epoch that this
    /// node follows: then it goes into the log, and [`LunCopy::appended`] says so.
    #[must_use]
    pub fn accepts(&self, node: NodeSlot, (epoch, ring, number): (Epoch, u8, u64)) -> bool {
        let follows = Role::Member {
            follows: Some(epoch),
        };
        let next = self.rings.get(usize::from(ring)).map(|it| it.has.next);
        self.role == follows && node == self.record().owner && next == Some(number)
    }

    /// The owner says what is committed.
    pub(super) fn commit_is(&mut self, epoch: Epoch, ring: u8, commit: u64) {
        let follows = Role::Member {
            follows: Some(epoch),
        };
        if self.role != follows {
            return;
        }
        let Some(of) = self.rings.get_mut(usize::from(ring)) else {
            return;
        };
        let commit = commit.min(of.has.next);
        if commit > of.commit {
            of.commit = commit;
            self.acts.push(Act::Committed { ring, commit });
        }
    }
}
