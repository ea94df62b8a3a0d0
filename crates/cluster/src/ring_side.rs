//! One ring of a LUN's log, as its task knows it.

use crate::feed::{Feed, FeedState};
use peer::Records;
use replica::{Epoch, NodeSlot, RingSummary};
use std::collections::{BTreeMap, VecDeque};
use units::Buf;
use write_back::{Change, Kind, RingOrder};

/// What is known of a ring.
///
/// The copy knows of the numbers that are stable here and of no others: what is on its way to the
/// log may be withdrawn, or made void, by whatever is decided next.
#[derive(Default)]
pub(crate) struct RingSide {
    /// The epochs, by their first numbers; those of what is on its way, too.
    markers: BTreeMap<u64, Epoch>,
    /// The copy knows of all numbers below.
    pub(crate) has: u64,
    /// The log said last that all below is stable.
    pub(crate) stable: u64,
    /// All below is committed, and the log knows.
    pub(crate) committed: u64,
    /// An epoch of this node's begins: nothing counts before its record is on its way.
    pub(crate) awaits: Option<Epoch>,
    /// Of the owner: what is on its way to the log.
    pub(crate) heard: VecDeque<(Change, Buf)>,
    pub(crate) feeds: BTreeMap<NodeSlot, Feed>,
    /// Of a replica: whose stream it takes,
    pub(crate) follows: Option<Epoch>,
    /// which number comes next,
    pub(crate) next: u64,
    /// what the owner said last that is committed,
    pub(crate) commit_said: Option<(Epoch, u64)>,
    /// whether anything came over the ring's own line, so that the owner knows who follows,
    pub(crate) is_live: bool,
    /// what came and is not in the log yet, and whether something is on its way there.
    pub(crate) queue: VecDeque<Records>,
    pub(crate) appends: bool,
    /// It rises when what came is forgotten.
    pub(crate) generation: u64,
}

impl RingSide {
    /// As the log is when it was opened.
    pub(crate) fn new(order: &RingOrder) -> Self {
        let epochs = order.epochs.iter();
        Self {
            markers: epochs.map(|it| (it.first.0, Epoch(it.epoch))).collect(),
            has: order.next.0,
            stable: order.next.0,
            committed: order.committed.0,
            ..Self::default()
        }
    }

    pub(crate) fn summary(&self) -> RingSummary {
        let epochs = self.markers.range(..self.has);
        RingSummary {
            epochs: epochs.map(|(first, epoch)| (*epoch, *first)).collect(),
            next: self.has,
        }
    }

    /// The epoch in which a number was given.
    pub(crate) fn epoch_of(&self, number: u64) -> Epoch {
        let before = self.markers.range(..=number).next_back();
        before.map_or(Epoch(0), |(_, epoch)| *epoch)
    }

    /// What begins among these changes is known.
    fn mark<'a>(&mut self, changes: impl Iterator<Item = &'a (Change, Buf)>) {
        let begins = changes.filter(|it| it.0.kind == Kind::Epoch);
        let begins = begins.map(|it| (it.0.sequence.0, Epoch(it.0.range.start().0)));
        self.markers.extend(begins);
    }

    /// All that only served another role is forgotten; what lies from this number on is void.
    pub(crate) fn begins_anew(&mut self, from: u64) {
        self.markers.split_off(&from);
        self.heard.clear();
        self.feeds.clear();
        self.queue.clear();
        self.generation += 1;
        (self.follows, self.commit_said, self.is_live) = (None, None, false);
    }

    /// The log goes on with this number, and what is before it is nobody's business.
    pub(crate) fn renewed(&mut self, from: u64) {
        self.begins_anew(0);
        (self.has, self.stable, self.committed) = (from, from, from);
    }

    /// These changes got their numbers here. Answers what of it is of the epoch that is awaited, or
    /// everything where none is.
    pub(crate) fn submitted(&mut self, mut changes: Vec<(Change, Buf)>) -> Vec<(Change, Buf)> {
        if let Some(epoch) = self.awaits {
            let begins =
                |it: &(Change, Buf)| it.0.kind == Kind::Epoch && it.0.range.start().0 == epoch.0;
            let Some(at) = changes.iter().position(begins) else {
                return Vec::new();
            };
            self.awaits = None;
            changes.drain(..at);
            // What had such numbers before is void from here on.
            let first = changes[0].0.sequence.0;
            self.markers.split_off(&first);
            self.stable = self.stable.min(first);
        }
        self.mark(changes.iter());
        self.heard.extend(changes.iter().cloned());
        changes
    }

    /// The log says what is stable: how much of it the copy does not know.
    pub(crate) fn is_stable(&mut self, below: u64) -> Option<std::ops::Range<u64>> {
        if self.awaits.is_some() {
            return None;
        }
        self.stable = below;
        while self.heard.front().is_some_and(|it| it.0.sequence.0 < below) {
            self.heard.pop_front();
        }
        let news = self.has..below.max(self.has);
        self.has = news.end;
        Some(news)
    }

    /// Records of the stream that is followed; those that are not next are of an earlier one.
    pub(crate) fn came(&mut self, records: Records) -> bool {
        let origin = records.origin();
        let is_next = self.follows == Some(origin.epoch) && records.first().0 == self.next;
        if !is_next {
            return false;
        }
        if self.markers.range(..=self.next).next_back().is_none() {
            self.markers.insert(self.next, origin.of);
        }
        self.mark(records.changes().iter());
        self.is_live = true;
        self.next = records.next().0;
        self.queue.push_back(records);
        true
    }

    /// What was heard from this number on, if nothing before it is missing.
    pub(crate) fn heard_from(&self, number: u64) -> Option<Vec<(Change, Buf)>> {
        let first = self.heard.front().map_or(self.stable, |it| it.0.sequence.0);
        let rest = self.heard.iter().filter(|it| it.0.sequence.0 >= number);
        (number >= first).then(|| rest.cloned().collect())
    }

    /// Those to whom what gets numbers goes at once.
    pub(crate) fn live(&self) -> Vec<NodeSlot> {
        let live = self
            .feeds
            .iter()
            .filter(|(_, it)| it.state == FeedState::Live);
        live.map(|(to, _)| *to).collect()
    }

    /// Changes from this number on, in parts of one epoch each.
    pub(crate) fn of_epochs(
        &self,
        changes: Vec<(Change, Buf)>,
        from: u64,
    ) -> Vec<(Epoch, Vec<(Change, Buf)>)> {
        let mut parts: Vec<(Epoch, Vec<(Change, Buf)>)> = Vec::new();
        for it in changes {
            let number = it.0.sequence.0;
            if number < from {
                continue;
            }
            let epoch = self.epoch_of(number);
            match parts.last_mut() {
                Some((of, part)) if *of == epoch => part.push(it),
                _ => parts.push((epoch, vec![it])),
            }
        }
        parts
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use journal::Commit;
    use units::{BlockSize, Lba, LbaRange};
    use write_back::{Role, Sequence, VolumeId};

    fn change(number: u64, kind: Kind, at: u64) -> (Change, Buf) {
        let change = Change {
            volume: VolumeId(1),
            sequence: Sequence(number),
            range: LbaRange::between(Lba(at), Lba(at)).unwrap(),
            block_size: BlockSize::B512,
            kind,
            commit: Commit::Later,
        };
        (change, Buf::empty())
    }

    fn cut(number: u64) -> (Change, Buf) {
        change(number, Kind::Cut, number)
    }

    fn begin(number: u64, epoch: u64) -> (Change, Buf) {
        change(number, Kind::Epoch, epoch)
    }

    /// Three numbers of epoch 2, all stable, two committed.
    fn ring() -> RingSide {
        let first = Sequence(1);
        RingSide::new(&RingOrder {
            next: Sequence(3),
            stable: Sequence(3),
            committed: Sequence(2),
            epochs: vec![write_back::Epoch { epoch: 2, first }],
            role: Role::None,
        })
    }

    #[test]
    fn while_an_epoch_is_awaited_nothing_counts_that_it_may_make_void() {
        let mut ring = ring();
        assert_eq!(ring.submitted(vec![cut(3), cut(4)]).len(), 2);
        assert_eq!(ring.is_stable(4), Some(3..4));
        ring.begins_anew(ring.has);
        ring.awaits = Some(Epoch(5));
        assert_eq!(ring.submitted(vec![cut(5)]), []);
        assert_eq!(ring.is_stable(6), None, "of the epoch before");
        assert_eq!(ring.submitted(vec![begin(4, 4)]), [], "another epoch");
        let taken = ring.submitted(vec![cut(6), begin(4, 5), cut(5)]);
        assert_eq!(taken, [begin(4, 5), cut(5)]);
        assert_eq!(ring.is_stable(5), Some(4..5));
        let epochs = [2, 2, 2, 5].map(Epoch);
        assert_eq!([1, 2, 3, 4].map(|it| ring.epoch_of(it)), epochs);
        assert_eq!(ring.epoch_of(0), Epoch(0), "before all that is known");
    }

    #[test]
    fn what_is_on_its_way_follows_what_was_read_without_a_gap() {
        let mut ring = ring();
        assert_eq!(ring.heard_from(2), None, "the log has it");
        assert_eq!(ring.heard_from(3), Some(Vec::new()));
        ring.submitted(vec![cut(3), cut(4), cut(5)]);
        ring.is_stable(4);
        assert_eq!(ring.heard_from(3), None);
        assert_eq!(ring.heard_from(4), Some(vec![cut(4), cut(5)]));
        assert_eq!(ring.heard_from(5), Some(vec![cut(5)]));
        // More was read than is known to be stable.
        assert_eq!(ring.heard_from(6), Some(Vec::new()));
    }

    #[test]
    fn what_goes_to_others_is_cut_where_an_epoch_begins() {
        let mut ring = ring();
        let changes = vec![cut(3), begin(4, 3), cut(5), begin(6, 7)];
        ring.submitted(changes.clone());
        let parts = ring.of_epochs(changes, 3);
        let is = parts.iter().map(|(of, part)| (of.0, part.len()));
        assert_eq!(is.collect::<Vec<_>>(), [(2, 1), (3, 2), (7, 1)]);
        assert_eq!(ring.of_epochs(vec![cut(3), cut(5)], 5)[0].1, [cut(5)]);
    }

    #[test]
    fn a_summary_has_the_epochs_of_what_is_stable() {
        let mut ring = ring();
        ring.submitted(vec![begin(3, 9)]);
        let summary = |next, epochs: &[(u64, u64)]| RingSummary {
            epochs: epochs.iter().map(|(of, at)| (Epoch(*of), *at)).collect(),
            next,
        };
        assert_eq!(ring.summary(), summary(3, &[(2, 1)]));
        ring.is_stable(4);
        assert_eq!(ring.summary(), summary(4, &[(2, 1), (9, 3)]));
        ring.begins_anew(2);
        ring.has = 2;
        assert_eq!(ring.summary(), summary(2, &[(2, 1)]));
    }
}
