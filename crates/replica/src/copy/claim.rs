//! The arbiter: what is asked of it, and what its answers mean.

use super::lead::Leading;
use super::{Act, Arbitration, LunCopy, Role};
use crate::message::{Conversation, Message};
use crate::moment::Moment;
use crate::record::{Epoch, NodeSet, Revision, RoleRecord};

/// What the arbiter was asked and has not answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Question {
    /// The record that is to be written; without one it is only read.
    pub to: Option<RoleRecord>,
    /// When it was asked; `None`: it answered that nobody knows, and is asked again later.
    pub asked: Moment,
    /// No answer is awaited.
    pub is_over: bool,
    /// Since it was asked a newer record was heard of: the answer may be an older one.
    pub is_overtaken: bool,
}

impl LunCopy {
    /// Asks for the record.
    pub(super) fn ask(&mut self, now: Moment) {
        self.question = Some(Question {
            to: None,
            asked: now,
            is_over: false,
            is_overtaken: false,
        });
        self.acts.push(Act::Read);
    }

    pub(super) fn swap(&mut self, to: RoleRecord, now: Moment) {
        self.acts.push(Act::Swap(self.kept.known.0, to.clone()));
        self.question = Some(Question {
            to: Some(to),
            asked: now,
            is_over: false,
            is_overtaken: false,
        });
    }

    /// Asks again what nobody knows: a swap that was not seen to be done is done again, so that the
    /// first one can come true no more without being seen.
    pub(super) fn ask_again(&mut self, now: Moment) {
        let Some(question) = &self.question else {
            return;
        };
        if question.is_over && now >= question.asked.after(self.spans.retry) {
            match question.to.clone() {
                Some(to) if !self.distrusts => self.swap(to, now),
                to => {
                    self.ask(now);
                    self.question.as_mut().expect("it was just asked").to = to;
                }
            }
        }
    }

    /// The arbiter has answered, or did not in time.
    pub fn arbitrated(&mut self, answer: Arbitration, now: Moment) {
        let Some(question) = self.question.take() else {
            return;
        };
        if self.is_forgetful(&answer, question.is_overtaken) {
            self.distrusts = true;
            return self.ask_later(question.to, now);
        }
        let is_known = answer != Arbitration::Unknown;
        let was_distrusted = is_known && std::mem::take(&mut self.distrusts);
        match (answer, question.to) {
            (Arbitration::Unknown | Arbitration::Distrusted, to) => self.ask_later(to, now),
            (Arbitration::Swapped(revision), Some(to)) => self.written((revision, to), now),
            // The answer to the swap was lost, and it had been done.
            (Arbitration::Is(revision, is), Some(to)) if is == to => {
                self.written((revision, to), now);
            }
            // It was only read meanwhile: the swap may come true, unless it is seen to be done.
            (Arbitration::Is(revision, _), Some(to))
                if was_distrusted && revision == self.kept.known.0 =>
            {
                self.swap(to, now);
            }
            (Arbitration::Is(revision, is), _) => self.read((revision, is), now),
            (Arbitration::Swapped(_), None) => {}
        }
        self.proceed(now);
    }

    /// The store has forgotten what is known here, or is another one.
    fn is_forgetful(&self, answer: &Arbitration, is_overtaken: bool) -> bool {
        match answer {
            Arbitration::Distrusted => true,
            Arbitration::Is(revision, is) => {
                !is_overtaken
                    && RoleRecord::was_forgotten(&self.kept.known, (*revision, is))
                    && holds!(self, WhatWasForgottenStands)
            }
            Arbitration::Swapped(_) | Arbitration::Unknown => false,
        }
    }

    /// Asks again after a while.
    pub(super) fn ask_later(&mut self, to: Option<RoleRecord>, now: Moment) {
        self.question = Some(Question {
            to,
            asked: now,
            is_over: true,
            is_overtaken: false,
        });
    }

    /// This node's own swap was done.
    fn written(&mut self, known: (Revision, RoleRecord), now: Moment) {
        if known.0 < self.kept.known.0 {
            return self.take_place(now);
        }
        let before = std::mem::replace(&mut self.kept.known, known).1;
        self.keep();
        self.remembers(&before);
        match &mut self.role {
            Role::Candidate => {
                self.follow_copies(&before, now);
                self.open(now);
            }
            Role::Leading(leading) => {
                leading.changed();
                self.announce();
                self.follow_copies(&before, now);
                self.commit_more();
            }
            Role::Joining | Role::Member { .. } | Role::NoMember => {}
        }
    }

    /// Who is in sync has changed: all hear it, above all who is so since then, and takes over one
    /// day.
    fn announce(&mut self) {
        let greeted = self.pairs.iter().filter(|(_, it)| it.is_greeted);
        let hello = Message::Hello {
            promised: self.kept.promised,
            known: self.kept.known.clone(),
            conversation: Conversation::default(),
        };
        let said = greeted.map(|(node, _)| Act::Send(*node, hello.clone()));
        self.acts.extend(said);
    }

    /// The record as the arbiter has it, which this node did not write just now.
    fn read(&mut self, known: (Revision, RoleRecord), now: Moment) {
        if RoleRecord::was_forgotten(&self.kept.known, (known.0, &known.1))
            && !holds!(self, WhatWasForgottenStands)
        {
            self.kept.known.0 = Revision(0);
        }
        let is_news = known.0 > self.kept.known.0;
        let was_claiming = matches!(self.role, Role::Candidate | Role::Joining);
        if is_news {
            self.learn(known, now);
        }
        if (is_news || was_claiming) && self.role != Role::NoMember {
            self.take_place(now);
        }
    }

    /// A record that another node or the arbiter knows. An owner that is none any more steps down.
    pub(super) fn learn(&mut self, known: (Revision, RoleRecord), now: Moment) {
        if known.0 <= self.kept.known.0 || self.is_none_of(&known.1) {
            return;
        }
        if let Some(question) = &mut self.question {
            if question.to.as_ref() == Some(&known.1) {
                self.question = None;
                return self.written(known, now);
            }
            // It was to be put in the place of a record that is none any more.
            question.to = None;
            question.is_overtaken = true;
        }
        let is_led = matches!(self.role, Role::Leading(_));
        let is_mine = known.1.owner == self.me && known.1.epoch == self.record().epoch;
        let before = std::mem::replace(&mut self.kept.known, known).1;
        self.keep();
        self.follow_copies(&before, now);
        if is_led && !is_mine {
            self.acts.push(Act::Drop);
            self.role = Role::Member { follows: None };
        }
    }

    /// What the record makes of this node, where it does nothing for it yet.
    fn take_place(&mut self, now: Moment) {
        let record = self.record();
        if record.copy_of(self.me).is_none() {
            self.role = Role::NoMember;
        } else if record.owner == self.me && self.may_own() {
            if !matches!(self.role, Role::Leading(_)) {
                let in_sync = record.in_sync;
                self.claim(in_sync, now);
            }
        } else if !matches!(self.role, Role::Member { .. }) {
            self.role = Role::Member { follows: None };
        }
    }

    /// Begins an epoch of this node's own: first it stops accepting older ones, then it swaps.
    pub(super) fn claim(&mut self, in_sync: NodeSet, now: Moment) {
        let epoch = self.begins_to_claim();
        let to = self.record().claimed_by(self.me, epoch, in_sync);
        self.swap(to, now);
    }

    /// Accepts nothing of an older epoch than the one that it answers, which is to be this node's.
    pub(super) fn begins_to_claim(&mut self) -> Epoch {
        let epoch = Epoch(self.kept.promised.max(self.record().epoch).0 + 1);
        if holds!(self, PromiseBeforeSwap) {
            self.kept.promised = epoch;
            self.keep();
        }
        // They know what was promised before: they have to hear it anew.
        let connected = self.pairs.iter().filter(|(_, it)| it.is_connected);
        let connected: Vec<_> = connected.map(|(node, _)| *node).collect();
        for node in connected {
            if !holds!(self, PromisesAreHeardAnew) {
                continue;
            }
            self.acts.push(Act::Disconnect(node));
            self.disconnected(node);
        }
        self.role = Role::Candidate;
        epoch
    }

    /// The claim was written: an epoch of this node's begins.
    fn open(&mut self, now: Moment) {
        let record = self.record();
        let epoch = record.epoch;
        let until = self.rings.iter().map(|ring| ring.has.next + 1).collect();
        self.role = Role::Leading(Leading::new(until, now));
        self.acts.push(Act::Begin(epoch));
        let greeted = self.pairs.iter().filter(|(_, it)| it.is_greeted);
        let greeted: Vec<_> = greeted.map(|(node, _)| *node).collect();
        for node in greeted {
            self.lead(node);
        }
    }

    /// A node promised a later epoch: it accepts nothing of this one any more.
    pub(super) fn refused(&mut self, promised: Epoch) {
        if matches!(self.role, Role::Leading(_)) && promised > self.kept.promised {
            self.kept.promised = promised;
            self.keep();
        }
    }

    /// In sync, and the owner has been silent for long enough; or a claim of this node's was
    /// written that nobody knew of.
    pub(super) fn take_over_if_due(&mut self, now: Moment) {
        let record = self.record();
        if record.owner == self.me && self.may_own() {
            let in_sync = record.in_sync;
            return self.claim(in_sync, now);
        }
        if self.is_to_leave_the_owner() {
            return self.claim(NodeSet::of([self.me]), now);
        }
        let patience = self.spans.patience;
        let owner = self.pairs.get(&record.owner);
        let is_due = record.in_sync.has(self.me)
            && self.kept.is_whole
            && (now >= self.started.after(patience) || !holds!(self, PatienceAfterStart))
            && record.owner != self.me
            && (owner.is_none_or(|it| it.is_silent_for(patience, now)) || !holds!(self, Patience));
        if is_due {
            self.claim(NodeSet::of([self.me]), now);
        }
    }

    /// Says to a node that this one owns the LUN, with what its log has.
    pub(super) fn lead(&mut self, node: crate::record::NodeSlot) {
        let rings = self.rings.iter().map(|ring| ring.has.clone()).collect();
        let lead = Message::Lead {
            known: self.kept.known.clone(),
            rings,
            acknowledged: self.acknowledged_by(node),
        };
        self.acts.push(Act::Send(node, lead));
    }
}

#[cfg(test)]
mod test {
    use crate::message::{Message, RingSummary};
    use crate::moment::{Moment, Spans};
    use crate::record::{CopyId, Epoch, NodeSet, NodeSlot, Revision, RoleRecord};
    use crate::state::State;
    use crate::{Act, Arbitration, Durable, LunCopy};

    const NOW: Moment = Moment(10);
    const OWNER: NodeSlot = NodeSlot(0);
    const OTHER: NodeSlot = NodeSlot(1);

    fn copy(me: NodeSlot, ring: RingSummary) -> LunCopy {
        let record = RoleRecord {
            epoch: Epoch(4),
            step: 0,
            owner: OWNER,
            in_sync: NodeSet::of([OWNER]),
            copies: vec![(OWNER, CopyId(1)), (OTHER, CopyId(2))],
        };
        let kept = Durable {
            known: (Revision(1), record),
            promised: Epoch(4),
            is_whole: true,
            base: Vec::new(),
        };
        LunCopy::start(me, Spans::default(), kept, vec![ring], NOW)
    }

    /// Does what a copy says, but for what goes to the log: that is answered.
    fn pass(from: &mut LunCopy, me: NodeSlot, to: &mut LunCopy) -> Vec<Act> {
        let (messages, others): (Vec<Act>, Vec<Act>) = from
            .acts()
            .into_iter()
            .partition(|act| matches!(act, Act::Send(..)));
        for act in messages {
            if let Act::Send(_, message) = act {
                to.heard(me, message, NOW);
            }
        }
        others
    }

    /// An owner alone whose epoch is committed, and another node that has nothing.
    fn pair() -> (LunCopy, LunCopy) {
        let ring = RingSummary::default();
        let (mut owner, mut other) = (copy(OWNER, ring.clone()), copy(OTHER, ring));
        let known = owner.kept.known.clone();
        owner.arbitrated(Arbitration::Is(known.0, known.1), NOW);
        owner.arbitrated(Arbitration::Swapped(Revision(2)), NOW);
        owner.appended(0, Epoch(5));
        owner.stable(0, 1, NOW);
        let known = owner.kept.known.clone();
        other.arbitrated(Arbitration::Is(known.0, known.1), NOW);
        let _began = (owner.acts(), other.acts());
        owner.connected(OTHER);
        other.connected(OWNER);
        (owner, other)
    }

    #[test]
    fn who_is_added_hears_that_it_is_in_sync_and_so_takes_over_later() {
        let (mut owner, mut other) = pair();
        assert_eq!(owner.state(NOW), State::Solo);
        for _ in 0..3 {
            pass(&mut owner, OWNER, &mut other);
            pass(&mut other, OTHER, &mut owner);
        }
        assert!(other.accepts(OWNER, (Epoch(5), 0, 0)));
        other.appended(0, Epoch(5));
        other.stable(0, 1, NOW);
        pass(&mut other, OTHER, &mut owner);
        let acts = pass(&mut owner, OWNER, &mut other);
        assert_eq!(acts, [], "it has promised nothing");
        owner.tick(NOW);
        pass(&mut owner, OWNER, &mut other);
        pass(&mut other, OTHER, &mut owner);
        let acts = pass(&mut owner, OWNER, &mut other);
        assert!(
            acts.iter().any(|it| matches!(it, Act::Swap(..))),
            "{acts:?}"
        );
        assert_eq!(other.state(NOW), State::CatchingUp);
        owner.arbitrated(Arbitration::Swapped(Revision(3)), NOW);
        pass(&mut owner, OWNER, &mut other);
        assert_eq!(other.state(NOW), State::Replica);
        let later = Moment(NOW.0 + Spans::default().patience);
        other.tick(later);
        assert_eq!(other.state(later), State::Candidate);
    }

    #[test]
    fn what_the_log_says_is_committed_is_never_given_up_though_its_epochs_are_forgotten() {
        let ring = |epoch: u64, first: u64, next: u64| RingSummary {
            epochs: vec![(Epoch(epoch), first)],
            next,
        };
        let mut other = copy(OTHER, ring(2, 3, 9));
        other.is_committed(0, 7);
        other.arbitrated(Arbitration::Is(Revision(1), other.record().clone()), NOW);
        other.connected(OWNER);
        let _began = other.acts();
        let lead = Message::Lead {
            known: other.kept.known.clone(),
            rings: vec![ring(4, 8, 12)],
            acknowledged: Vec::new(),
        };
        other.heard(OWNER, lead, NOW);
        let acts = other.acts();
        assert!(acts.contains(&Act::GiveUp { ring: 0, from: 7 }), "{acts:?}");
        let (epoch, next) = (Epoch(4), vec![7]);
        let is_whole = true;
        let follow = Message::Follow {
            epoch,
            next,
            is_whole,
            base: Vec::new(),
        };
        let follow = Act::Send(OWNER, follow);
        assert!(acts.contains(&follow), "{acts:?}");
    }

    #[test]
    fn an_owner_reads_until_the_first_promise_of_the_others_ends() {
        let (mut owner, mut other) = pair();
        assert_eq!(owner.reads_until(NOW), Some(Moment(u64::MAX)), "alone");
        assert_eq!(other.reads_until(NOW), None, "it is no owner");
        for _ in 0..3 {
            pass(&mut owner, OWNER, &mut other);
            pass(&mut other, OTHER, &mut owner);
        }
        other.appended(0, Epoch(5));
        other.stable(0, 1, NOW);
        pass(&mut other, OTHER, &mut owner);
        assert_eq!(owner.reads_until(NOW), Some(Moment(u64::MAX)), "alone");
        owner.tick(NOW);
        pass(&mut owner, OWNER, &mut other);
        pass(&mut other, OTHER, &mut owner);
        let until = Moment(NOW.0 + Spans::default().lead);
        assert_eq!(owner.reads_until(NOW), Some(until), "it is being added");
        owner.arbitrated(Arbitration::Swapped(Revision(3)), NOW);
        assert_eq!(owner.reads_until(NOW), Some(until));
        let last = Moment(until.0 - 1);
        assert!(owner.may_read(last) && !owner.may_read(until));
        assert_eq!(owner.reads_until(until), None);
    }
}
