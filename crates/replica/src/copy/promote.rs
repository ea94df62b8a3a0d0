//! Somebody has this node go on without those that had all of it, and are gone for good.

use super::{LunCopy, Role};
use crate::moment::Moment;
use crate::record::{NodeSet, NodeSlot};

/// Why a copy is not promoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotPromoted {
    /// This node owns the LUN already, or has all of it and takes it over by itself.
    NotNeeded,
    /// This node has no copy.
    NoCopy,
    /// The copy here is being made anew, and was not complete.
    NotWhole,
    /// That node has all of it, and was heard of a moment ago.
    Answers(NodeSlot),
    /// This node has not been up for long enough to know whether others answer.
    TooEarly,
    /// The store of the arbiter is another one, or has forgotten what is known here.
    Distrusted,
}

impl LunCopy {
    /// Whether this copy can be [promoted](LunCopy::promote).
    ///
    /// # Errors
    /// [`NotPromoted`].
    pub fn may_promote(&self, now: Moment) -> Result<(), NotPromoted> {
        let (record, patience) = (self.record(), self.spans.patience);
        let is_free = matches!(self.role, Role::Joining | Role::Member { .. });
        if self.role == Role::NoMember || record.copy_of(self.me).is_none() {
            return Err(NotPromoted::NoCopy);
        }
        if !is_free || record.owner == self.me || record.in_sync.has(self.me) {
            return Err(NotPromoted::NotNeeded);
        }
        if !self.kept.is_whole {
            return Err(NotPromoted::NotWhole);
        }
        if self.distrusts {
            return Err(NotPromoted::Distrusted);
        }
        let answers = |node: &NodeSlot| {
            let pair = self.pairs.get(node);
            pair.is_some_and(|it| !it.is_silent_for(patience, now))
        };
        if let Some(node) = record.in_sync.iter().find(answers) {
            return Err(NotPromoted::Answers(node));
        }
        match now >= self.started.after(patience) {
            true => Ok(()),
            false => Err(NotPromoted::TooEarly),
        }
    }

    /// Somebody says that those that had all of it are gone for good. This node claims the LUN and
    /// has the only copy then: what it lacks is lost. The others are no copies any more, and what
    /// they have is given up when they come back.
    ///
    /// # Errors
    /// [`NotPromoted`]: nothing was done.
    pub fn promote(&mut self, now: Moment) -> Result<(), NotPromoted> {
        self.may_promote(now)?;
        let epoch = self.begins_to_claim();
        let alone = NodeSet::of([self.me]);
        let mut to = self.record().claimed_by(self.me, epoch, alone);
        to.copies.retain(|it| it.0 == self.me);
        self.swap(to, now);
        Ok(())
    }
}
