//! What nodes say to each other about a LUN.

use crate::moment::Moment;
use crate::record::{Epoch, Revision, RoleRecord};

/// A message between two nodes. On one connection they arrive in the order in which they were
/// sent, or the connection ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// The first one of a connection, of both sides; and again from an owner when it has changed
    /// who is in sync.
    Hello {
        /// Nothing of an older epoch is accepted.
        promised: Epoch,
        /// The last record that the sender knows.
        known: (Revision, RoleRecord),
        /// Which conversation it belongs to: nothing that the machine knows of.
        conversation: Conversation,
    },
    /// I am here; of the sender's own clock.
    Beacon {
        /// When it was sent.
        sent: Moment,
    },
    /// A beacon came.
    Answer {
        /// What the beacon said.
        sent: Moment,
    },
    /// I own the LUN, and this is my log.
    Lead {
        /// By this record.
        known: (Revision, RoleRecord),
        /// The epochs that each ring of the log knows.
        rings: Vec<RingSummary>,
        /// What you have acknowledged, as I know it: all below these numbers of each ring. Empty:
        /// I do not know.
        acknowledged: Vec<u64>,
    },
    /// Take the LUN over: all that I have is committed, and I read and write no more.
    Yield {
        /// The owner's epoch.
        epoch: Epoch,
    },
    /// Not you: a later epoch was promised.
    Refuse {
        /// That one.
        promised: Epoch,
    },
    /// My log has nothing any more that yours lacks.
    Follow {
        /// The owner's epoch.
        epoch: Epoch,
        /// The next number of each ring.
        next: Vec<u64>,
        /// Its data is all there, and not being made anew.
        is_whole: bool,
        /// Else: what it had when it was, by the first number of each ring that it lacks. Empty:
        /// nobody knows.
        base: Vec<u64>,
    },
    /// My log has no more what yours lacks: your copy is made anew, and is not whole until I say
    /// so.
    Renew {
        /// The owner's epoch.
        epoch: Epoch,
        /// Where each ring of your log goes on: all that I have before that is committed.
        from: Vec<u64>,
    },
    /// You have all that was written again; and the answer: I know that I am whole.
    Whole {
        /// The owner's epoch.
        epoch: Epoch,
    },
    /// You own the LUN in this epoch, and have less than I know to be committed, which I have: your
    /// copy has lost it.
    Less {
        /// The owner's epoch.
        epoch: Epoch,
    },
    /// This copy works no more, until it connects anew: nobody shall wait for it.
    Leaves,
    /// A change of a ring, with its data beside it.
    Append {
        /// The owner's epoch.
        epoch: Epoch,
        /// Which ring.
        ring: u8,
        /// Its number.
        number: u64,
        /// The epoch in which it got that number.
        of: Epoch,
    },
    /// Everything below is committed.
    Commit {
        /// The owner's epoch.
        epoch: Epoch,
        /// Which ring.
        ring: u8,
        /// The first number that is not.
        commit: u64,
    },
    /// Everything below is stable here.
    Ack {
        /// The owner's epoch.
        epoch: Epoch,
        /// Which ring.
        ring: u8,
        /// The first number that is not.
        stable: u64,
    },
    /// May I read from my copy?
    Ask {
        /// When it was sent, by the sender's clock.
        sent: Moment,
    },
    /// Yes, for a while from then on.
    Grant {
        /// What the question said.
        sent: Moment,
    },
}

/// Numbers of a conversation about a LUN, where a connection has those of many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Conversation {
    /// The sender's number: it rises when it begins anew.
    pub own: u64,
    /// The last one that it heard from the other side.
    pub heard: u64,
}

/// What a ring of a log has, by epochs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct RingSummary {
    /// The first number of each epoch that it has something of, in order.
    pub epochs: Vec<(Epoch, u64)>,
    /// The number that comes next.
    pub next: u64,
}

impl RingSummary {
    /// Where the numbers of an epoch end; `None`: there are none.
    fn end_of(&self, epoch: Epoch) -> Option<u64> {
        let at = self.epochs.iter().position(|(it, _)| *it == epoch)?;
        let after = self.epochs.get(at + 1);
        Some(after.map_or(self.next, |(_, first)| *first))
    }

    /// The first number from which on the two logs may differ: up to the end of the last epoch that
    /// both have, a number names the same change in both. `None`: there is no such epoch.
    #[must_use]
    pub fn common_with(&self, other: &Self) -> Option<u64> {
        let mut ours = self.epochs.iter().rev();
        let ends = ours.find_map(|(epoch, _)| Some((self.end_of(*epoch)?, other.end_of(*epoch)?)));
        ends.map(|(ours, theirs)| ours.min(theirs))
    }

    /// Where the first epoch later than that one begins.
    pub(crate) fn begins_after(&self, epoch: Epoch) -> Option<u64> {
        let mut later = self.epochs.iter().filter(|(it, _)| *it > epoch);
        later.next().map(|(_, first)| *first)
    }

    /// Forgets what has this number or a later one.
    pub fn cut_at(&mut self, number: u64) {
        self.epochs.retain(|(_, first)| *first < number);
        self.next = self.next.min(number);
    }

    /// A change more, of this epoch.
    pub fn push(&mut self, epoch: Epoch) {
        if self.epochs.last().is_none_or(|(last, _)| *last != epoch) {
            self.epochs.push((epoch, self.next));
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn ring(epochs: &[(u64, u64)], next: u64) -> RingSummary {
        RingSummary {
            epochs: epochs.iter().map(|(it, at)| (Epoch(*it), *at)).collect(),
            next,
        }
    }

    #[test]
    fn two_logs_are_alike_up_to_the_end_of_the_last_epoch_that_both_have() {
        let owner = ring(&[(1, 0), (4, 8)], 12);
        for (other, common) in [
            (ring(&[], 0), None),
            (ring(&[(1, 0)], 5), Some(5)),
            (ring(&[(1, 0)], 8), Some(8)),
            (ring(&[(1, 0)], 10), Some(8)),
            (ring(&[(1, 0), (3, 6)], 9), Some(6)),
            (ring(&[(1, 0), (4, 8)], 10), Some(10)),
            (ring(&[(1, 0), (4, 8)], 14), Some(12)),
            (ring(&[(2, 0)], 3), None),
        ] {
            assert_eq!(other.common_with(&owner), common, "{other:?}");
            assert_eq!(owner.common_with(&other), common, "{other:?}");
        }
    }

    #[test]
    fn what_is_cut_is_as_if_it_had_never_come() {
        let mut log = RingSummary::default();
        for epoch in [1, 1, 2, 2, 5] {
            log.push(Epoch(epoch));
        }
        assert_eq!(log, ring(&[(1, 0), (2, 2), (5, 4)], 5));
        log.cut_at(3);
        assert_eq!(log, ring(&[(1, 0), (2, 2)], 3));
        log.cut_at(2);
        assert_eq!(log, ring(&[(1, 0)], 2));
        log.cut_at(7);
        assert_eq!(log, ring(&[(1, 0)], 2), "nothing is there");
    }
}
