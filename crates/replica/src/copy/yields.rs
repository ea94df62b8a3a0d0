//! A handover: the owner gives the LUN to a member while both are well.
//!
//! ```text
//!   hand_over --> no more writes --> all is committed --> Yield, no more reads
//!             --> the member claims, at once, with all that are in sync
//!   it did not: the owner claims anew, and one of the two swaps comes first
//! ```

use super::lead::Yielding;
use super::{Act, LunCopy, Role};
use crate::message::Message;
use crate::moment::Moment;
use crate::record::{Epoch, NodeSlot};

impl LunCopy {
    /// Gives the LUN to a member that is well, for maintenance of this node. `false`: nothing was
    /// begun, as this node does not own it, or the other one is not in sync, or something else has
    /// to end first.
    pub fn hand_over(&mut self, to: NodeSlot, now: Moment) -> bool {
        let is_in_sync = self.others_in_sync().has(to);
        let is_mine = self.kept.promised == self.record().epoch;
        let is_free = self.question.is_none() && self.silent_member(now).is_none();
        let Role::Leading(leading) = &mut self.role else {
            return false;
        };
        let may = is_in_sync && is_mine && is_free && leading.may_yield_to(to);
        if may && leading.yields.is_none() {
            let (since, is_said) = (now, false);
            leading.yields = Some(Yielding { to, since, is_said });
        }
        self.proceed(now);
        may
    }

    /// The owner yields, and nothing else is to be done. A member that does not take over in time
    /// is not waited for: before it was notified this node goes on, and after that it claims anew.
    pub(super) fn goes_on_yielding(&mut self, now: Moment) -> bool {
        let Role::Leading(leading) = &self.role else {
            return false;
        };
        let Some(Yielding { to, since, is_said }) = leading.yields else {
            return false;
        };
        let is_late = now >= since.after(self.spans.lead);
        let in_sync = self.record().in_sync;
        if is_said {
            if is_late {
                self.claim(in_sync, now);
            }
            return true;
        }
        let is_well = leading.may_yield_to(to)
            && self.kept.promised == self.record().epoch
            && self.silent_member(now).is_none();
        let is_committed = self.rings.iter().all(|it| it.commit == it.has.next);
        let epoch = self.record().epoch;
        let Role::Leading(leading) = &mut self.role else {
            return false;
        };
        if is_late || !is_well {
            leading.yields = None;
            return false;
        }
        if is_committed {
            let (since, is_said) = (now, true);
            leading.yields = Some(Yielding { to, since, is_said });
            self.acts.push(Act::Send(to, Message::Yield { epoch }));
        }
        true
    }

    /// The owner gives the LUN to this node, whose log has all that its own has.
    pub(super) fn is_given(&mut self, node: NodeSlot, epoch: Epoch, now: Moment) {
        let follows = Role::Member {
            follows: Some(epoch),
        };
        let record = self.record();
        let is_owner = record.owner == node && record.epoch == epoch;
        let is_whole = self.rings.iter().all(|it| it.stable == it.has.next);
        let in_sync = record.in_sync;
        let is_free = self.question.is_none() && !self.distrusts;
        if is_free && is_owner && in_sync.has(self.me) && self.role == follows && is_whole {
            self.claim(in_sync, now);
        }
    }
}
