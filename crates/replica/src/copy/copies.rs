//! Copies that are added and removed, and how many there have to be.
//!
//! ```text
//!   owner: change_copies --in sync, and none any more--> removed from those in sync, as if unwell
//!                        --> swap: the new copies --> who is added is none that is whole
//!   who is none by a record: serves nobody, takes nothing over, and believes no later record
//! ```

use super::pair::Pair;
use super::{Act, Durable, LunCopy, Role};
use crate::moment::Moment;
use crate::record::{CopyId, NodeSet, NodeSlot, Revision, RoleRecord};

impl Durable {
    /// What a copy knows that has never begun; `None`: the record has none for this node. Where the
    /// LUN had contents before it, it has to be given all of them.
    #[must_use]
    pub fn of_new(me: NodeSlot, known: (Revision, RoleRecord)) -> Option<Self> {
        let id = known.1.copy_of(me)?;
        Some(Self {
            known,
            promised: crate::record::Epoch(0),
            is_whole: !id.is_added(),
            base: Vec::new(),
        })
    }
}

impl LunCopy {
    /// Of an owner: these shall be the copies of the LUN, by node. `false`: nothing was begun, as
    /// this node does not own it, or shall have no copy itself.
    pub fn change_copies(&mut self, to: &[(NodeSlot, CopyId)], now: Moment) -> bool {
        let own = self.record().copy_of(self.me);
        let keeps_own = to.iter().any(|it| it.0 == self.me && Some(it.1) == own);
        let is_sorted = to.is_sorted_by(|a, b| a.0 < b.0);
        let Role::Leading(leading) = &mut self.role else {
            return false;
        };
        if !keeps_own || !is_sorted {
            return false;
        }
        leading.wants = Some(to.to_vec());
        self.proceed(now);
        true
    }

    /// Those that shall have no copy are waited for by nobody.
    pub(super) fn tend_unwanted(&mut self) {
        if !holds!(self, WhoIsInSyncIsRemovedFirst) {
            return;
        }
        let record = &self.kept.known.1;
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        let Some(wants) = leading.wants.clone() else {
            return;
        };
        let gone = record.copies.iter().filter(|it| !wants.contains(it));
        gone.for_each(|it| leading.leaves_out(it.0));
    }

    /// Has the record have the copies that it shall have, once nobody in sync goes with that;
    /// answers whether the arbiter is asked.
    pub(super) fn changes_copies(&mut self, now: Moment) -> bool {
        let record = &self.kept.known.1;
        let Role::Leading(leading) = &mut self.role else {
            return false;
        };
        let Some(wants) = leading.wants.take_if(|it| *it != record.copies) else {
            leading.wants = None;
            return false;
        };
        let to = record.with_copies(wants.clone());
        leading.wants = Some(wants);
        let is_free = to.in_sync == record.in_sync || !holds!(self, WhoIsInSyncIsRemovedFirst);
        if is_free {
            self.swap(to, now);
        }
        is_free
    }

    /// By this record the copy here is none of the LUN's, or another one has its place. Nothing of
    /// that is kept: what is kept is that copy's.
    pub(super) fn is_none_of(&mut self, record: &RoleRecord) -> bool {
        let is_none = record.copy_of(self.me) != self.record().copy_of(self.me);
        if is_none {
            if matches!(self.role, Role::Leading(_)) {
                self.acts.push(Act::Drop);
            }
            (self.role, self.question) = (Role::NoMember, None);
        }
        is_none
    }

    /// The record has other copies than the one before: who is new is greeted, and who is none any
    /// more is not heard.
    pub(super) fn follow_copies(&mut self, before: &RoleRecord, now: Moment) {
        let record = &self.kept.known.1;
        let others = |of: &RoleRecord| -> Vec<(NodeSlot, CopyId)> {
            let all = of.copies.iter().copied();
            all.filter(|it| it.0 != self.me).collect()
        };
        let (were, are) = (others(before), others(record));
        for (node, _) in were.iter().filter(|it| !are.contains(it)) {
            self.pairs.remove(node);
            self.lost.forgets(*node);
            if let Role::Leading(leading) = &mut self.role {
                leading.lost(*node);
            }
        }
        for (node, _) in are.iter().filter(|it| !were.contains(it)) {
            let pair = Pair {
                granted: now,
                ..Pair::default()
            };
            self.pairs.insert(*node, pair);
            self.acts.push(Act::Disconnect(*node));
        }
    }

    /// The arbiter has this record: somebody asked it for what is new.
    pub fn knows(&mut self, known: (Revision, RoleRecord), now: Moment) {
        self.learn(known, now);
        self.proceed(now);
    }

    /// So many nodes have to be in sync for writes: while they are fewer, hosts' writes wait.
    pub fn set_min_copies(&mut self, nodes: u32, now: Moment) {
        self.min_copies = nodes;
        self.proceed(now);
    }

    /// Too few nodes are in sync for writes.
    #[must_use]
    pub fn lacks_copies(&self) -> bool {
        self.record().in_sync.count() < self.min_copies
    }

    /// They would be too few, and are not now. Then a new epoch begins with them: what hosts have
    /// written and nobody has answered is known to nobody, and not acknowledged by fewer.
    pub(super) fn falls_short_with(&self, left: NodeSet) -> bool {
        left.count() < self.min_copies
            && !self.lacks_copies()
            && holds!(self, WhoFallsShortBeginsAnew)
    }
}
