//! The machine: what it hears, and what it has done then.

/// Whether a rule holds: the model breaks one at a time.
macro_rules! holds {
    ($copy:expr, $rule:ident) => {{
        #[cfg(any(test, feature = "model"))]
        let holds = !$copy.is_broken(crate::model::Rule::$rule);
        #[cfg(not(any(test, feature = "model")))]
        let holds = true;
        holds
    }};
}

mod claim;
mod copies;
mod follow;
mod lead;
mod lost;
mod pair;
mod promote;
mod read;
mod renew;
mod yields;

use crate::message::{Conversation, Message, RingSummary};
use crate::moment::{Moment, Spans};
use crate::record::{Epoch, NodeSet, NodeSlot, Revision, RoleRecord};
use claim::Question;
use lead::Leading;
use lost::Lost;
use pair::Pair;
pub use promote::NotPromoted;
use std::collections::BTreeMap;

/// What a node keeps of a copy, besides its data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Durable {
    /// The last role record that it knows.
    pub known: (Revision, RoleRecord),
    /// It accepts nothing of an older epoch.
    pub promised: Epoch,
    /// Its data is all there: it is not being made anew.
    pub is_whole: bool,
    /// Of one that is: what it had when its data was all there last, by the first number of each
    /// ring that it lacks. Empty: nobody knows.
    pub base: Vec<u64>,
}

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Store this, durably, before anything that comes after it is done.
    Keep(Durable),
    /// Say something to a node.
    Send(NodeSlot, Message),
    /// Begin anew with a node: what it says before it has heard this node's next greeting counts
    /// for nothing.
    Disconnect(NodeSlot),
    /// Ask the arbiter for the record. What was asked before needs no answer any more.
    Read,
    /// Have the arbiter put this record in the place of that version. What was asked before needs
    /// no answer any more.
    Swap(Revision, RoleRecord),
    /// Give up what a ring has from this number on: it was never acknowledged.
    GiveUp {
        /// Which ring.
        ring: u8,
        /// The first number of it.
        from: u64,
    },
    /// This copy is made anew: what its log has and is not committed is void, and each ring goes on
    /// with the owner's change of this number.
    Renew {
        /// The owner's epoch.
        epoch: Epoch,
        /// The first number of each ring.
        from: Vec<u64>,
    },
    /// Write all blocks again, as they are, that changed since a follower had its data all; when
    /// that is done, and committed, [`LunCopy::copied`] says so. It ends when that node's
    /// connection does, or this one owns the LUN no more.
    Copy {
        /// Who is made anew.
        to: NodeSlot,
        /// What it had, as in [`Durable::base`].
        base: Vec<u64>,
    },
    /// Put the beginning of an epoch into each ring's log, as a change.
    Begin(Epoch),
    /// Send a node what a ring has from this number on, and from now on whatever is put into it.
    Stream {
        /// To whom.
        to: NodeSlot,
        /// Which ring.
        ring: u8,
        /// The first number.
        from: u64,
    },
    /// Everything below is committed: readers may see it, and who waits for it is answered.
    Committed {
        /// Which ring.
        ring: u8,
        /// The first number that is not.
        commit: u64,
    },
    /// Nothing that waits will be known to be committed: who waits loses its connection.
    Drop,
}

/// How the arbiter answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Arbitration {
    /// To a question, or to a swap that came too late: this is the record.
    Is(Revision, RoleRecord),
    /// The swap was done.
    Swapped(Revision),
    /// No answer came: whether a swap was done, now or later, nobody knows.
    Unknown,
    /// The store is another one, or has forgotten what it held: nothing that it says counts.
    Distrusted,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Role {
    Joining,
    /// Not the owner. Changes are accepted of the epoch that it follows.
    Member {
        follows: Option<Epoch>,
    },
    Candidate,
    Leading(Leading),
    NoMember,
}

/// A ring of the log, as this machine knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Ring {
    has: RingSummary,
    /// The first number that is not stable here.
    stable: u64,
    /// The first number that is not known to be committed.
    commit: u64,
}

/// A rule that the model breaks, to see that it is needed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Rules {
    #[cfg(any(test, feature = "model"))]
    broken: Option<crate::model::Rule>,
}

/// The copy of a LUN on this node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LunCopy {
    me: NodeSlot,
    rules: Rules,
    spans: Spans,
    kept: Durable,
    role: Role,
    started: Moment,
    pairs: BTreeMap<NodeSlot, Pair>,
    rings: Vec<Ring>,
    question: Option<Question>,
    /// The arbiter's store has forgotten what is known here, or is another one: it is asked for the
    /// record alone.
    distrusts: bool,
    /// When this node asked last whether it may read, and was allowed to.
    may_read_from: Option<Moment>,
    /// Nodes that have to be in sync for writes.
    min_copies: u32,
    /// What it has, ring by ring, should it be made anew.
    adopted: Vec<u64>,
    lost: Lost,
    acts: Vec<Act>,
}

impl LunCopy {
    /// A copy on the node `me` whose process has just started, with what it kept and what its log
    /// holds, all of it stable.
    #[must_use]
    pub fn start(
        me: NodeSlot,
        spans: Spans,
        kept: Durable,
        rings: Vec<RingSummary>,
        now: Moment,
    ) -> Self {
        let others = kept.known.1.copies.iter().map(|(node, _)| *node);
        let pairs = others.filter(|node| *node != me).map(|node| {
            let pair = Pair {
                granted: now,
                ..Pair::default()
            };
            (node, pair)
        });
        let rings = rings.into_iter().map(|has| Ring {
            stable: has.next,
            commit: 0,
            has,
        });
        let mut copy = Self {
            me,
            rules: Rules::default(),
            spans,
            pairs: pairs.collect(),
            kept,
            role: Role::Joining,
            started: now,
            rings: rings.collect(),
            question: None,
            distrusts: false,
            may_read_from: None,
            min_copies: 1,
            adopted: Vec::new(),
            lost: Lost::default(),
            acts: Vec::new(),
        };
        copy.ask(now);
        copy
    }

    /// The log says of itself that all below this number is committed: then it is so everywhere,
    /// whatever epochs the logs have forgotten since. To be said before anything is heard.
    pub fn is_committed(&mut self, ring: u8, below: u64) {
        let of = &mut self.rings[usize::from(ring)];
        of.commit = of.commit.max(below.min(of.has.next));
    }

    /// Breaks a rule.
    #[cfg(any(test, feature = "model"))]
    pub fn breaks(&mut self, rule: Option<crate::model::Rule>) {
        self.rules.broken = rule;
        if rule == Some(crate::model::Rule::PatienceIsLonger) {
            self.spans.patience = self.spans.lead - 1;
        }
    }

    #[cfg(any(test, feature = "model"))]
    fn is_broken(&self, rule: crate::model::Rule) -> bool {
        self.rules.broken == Some(rule)
    }

    /// What is to be done now.
    pub fn acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }

    /// There is a connection with a node, a new one.
    pub fn connected(&mut self, node: NodeSlot) {
        let Some(pair) = self.pairs.get_mut(&node) else {
            return;
        };
        (pair.is_connected, pair.is_greeted) = (true, false);
        self.loses(node);
        let hello = Message::Hello {
            promised: self.kept.promised,
            known: self.kept.known.clone(),
            conversation: Conversation::default(),
        };
        self.acts.push(Act::Send(node, hello));
    }

    /// The connection with a node has ended.
    pub fn disconnected(&mut self, node: NodeSlot) {
        if let Some(pair) = self.pairs.get_mut(&node) {
            (pair.is_connected, pair.is_greeted) = (false, false);
            self.loses(node);
        }
    }

    /// What was streamed on the old connection may not have come.
    fn loses(&mut self, node: NodeSlot) {
        match &mut self.role {
            Role::Leading(leading) => leading.lost(node),
            Role::Member { follows } if node == self.kept.known.1.owner => *follows = None,
            Role::Member { .. } | Role::Joining | Role::Candidate | Role::NoMember => {}
        }
    }

    /// A node said something.
    pub fn heard(&mut self, node: NodeSlot, message: Message, now: Moment) {
        if !self.pairs.get(&node).is_some_and(|it| it.is_connected) {
            return;
        }
        match message {
            Message::Hello {
                promised, known, ..
            } => self.greeted(node, promised, known, now),
            Message::Beacon { sent } => self.beacon(node, sent, now),
            Message::Answer { sent } => {
                let pair = self.pairs.get_mut(&node).expect("it was there");
                pair.answered = pair.answered.max(Some(sent));
            }
            Message::Lead {
                known,
                rings,
                acknowledged,
            } => self.follow(node, known, (&rings, &acknowledged), now),
            Message::Yield { epoch } => self.is_given(node, epoch, now),
            Message::Refuse { promised } => self.refused(promised),
            Message::Follow {
                epoch,
                next,
                is_whole,
                base,
            } => self.followed_by(node, (epoch, next), (!is_whole).then_some(base)),
            Message::Renew { epoch, from } => self.renew(node, epoch, &from),
            Message::Whole { epoch } => self.is_whole(node, epoch),
            Message::Leaves => self.is_left_by(node),
            Message::Less { epoch } => self.has_less_than(node, epoch),
            // It is in the log already, where [`LunCopy::accepts`] said so.
            Message::Append { .. } => {}
            Message::Commit {
                epoch,
                ring,
                commit,
            } => self.commit_is(epoch, ring, commit),
            Message::Ack {
                epoch,
                ring,
                stable,
            } => self.acknowledged(node, (epoch, ring, stable)),
            Message::Ask { sent } => self.grant(node, sent, now),
            Message::Grant { sent } => self.granted(sent),
        }
        self.proceed(now);
    }

    fn greeted(
        &mut self,
        node: NodeSlot,
        promised: Epoch,
        known: (Revision, RoleRecord),
        now: Moment,
    ) {
        let pair = self.pairs.get_mut(&node).expect("it was there");
        pair.is_greeted = true;
        self.learn(known, now);
        if matches!(self.role, Role::Leading(_)) {
            if promised > self.kept.promised {
                self.refused(promised);
            } else {
                self.lead(node);
            }
        }
    }

    fn beacon(&mut self, node: NodeSlot, sent: Moment, now: Moment) {
        let pair = self.pairs.get_mut(&node).expect("it was there");
        pair.heard = Some(now);
        self.acts.push(Act::Send(node, Message::Answer { sent }));
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Moment) {
        for (node, pair) in &mut self.pairs {
            let is_due = pair
                .sent
                .is_none_or(|sent| now >= sent.after(self.spans.beacon));
            if pair.is_greeted && is_due {
                pair.sent = Some(now);
                let beacon = Message::Beacon { sent: now };
                self.acts.push(Act::Send(*node, beacon));
            }
        }
        self.ask_again(now);
        self.proceed(now);
    }

    /// The log took a change of this epoch, as the next number of a ring.
    pub fn appended(&mut self, ring: u8, epoch: Epoch) {
        self.rings[usize::from(ring)].has.push(epoch);
    }

    /// Everything below `stable` is stable in a ring of the log here.
    pub fn stable(&mut self, ring: u8, stable: u64, now: Moment) {
        let of = &mut self.rings[usize::from(ring)];
        of.stable = of.stable.max(stable.min(of.has.next));
        let stable = of.stable;
        match &self.role {
            Role::Member {
                follows: Some(epoch),
            } => {
                let ack = Message::Ack {
                    epoch: *epoch,
                    ring,
                    stable,
                };
                self.acts.push(Act::Send(self.kept.known.1.owner, ack));
            }
            Role::Leading(_) => self.commit_more(),
            Role::Member { .. } | Role::Joining | Role::Candidate | Role::NoMember => {}
        }
        self.proceed(now);
    }

    /// What follows from all that is known now.
    fn proceed(&mut self, now: Moment) {
        if self.question.is_some() {
            return;
        }
        if self.distrusts {
            return self.ask_later(None, now);
        }
        match &self.role {
            Role::Leading(_) => self.tend(now),
            Role::Member { .. } => self.take_over_if_due(now),
            Role::Joining | Role::Candidate | Role::NoMember => {}
        }
    }

    fn keep(&mut self) {
        self.acts.push(Act::Keep(self.kept.clone()));
    }

    fn record(&self) -> &RoleRecord {
        &self.kept.known.1
    }

    /// The node that owns the LUN, by the last record that is known here; `None`: this one.
    #[must_use]
    pub fn owner_elsewhere(&self) -> Option<NodeSlot> {
        let owner = self.record().owner;
        (owner != self.me).then_some(owner)
    }

    fn others_in_sync(&self) -> NodeSet {
        self.record().in_sync.without(self.me)
    }

    /// Who may take over: those that are in sync, and of an owner the one that it is adding. That
    /// swap may be done, and known there, before this node knows.
    fn others_that_promise(&self) -> NodeSet {
        if let Role::Leading(leading) = &self.role
            && holds!(self, WhoIsAddedPromises)
        {
            return self.waited_for(leading);
        }
        self.others_in_sync()
    }

    /// All others that may take over answered a beacon that was sent within the last `span`.
    fn holds_within(&self, span: u64, now: Moment) -> bool {
        let mut others = self.others_that_promise().iter();
        others.all(|node| {
            let pair = self.pairs.get(&node);
            pair.is_some_and(|it| it.answered_within(span, now))
        })
    }
}

#[cfg(any(test, feature = "model"))]
impl LunCopy {
    /// All moments become so much earlier, and `0` at the earliest: the model's present stands
    /// still, and everything else grows old.
    pub fn age(&mut self, by: u64) {
        let age = |moment: &mut Moment| moment.0 = moment.0.saturating_sub(by);
        age(&mut self.started);
        if let Some(question) = &mut self.question {
            age(&mut question.asked);
        }
        self.may_read_from.iter_mut().for_each(age);
        for pair in self.pairs.values_mut() {
            pair.age(by);
        }
        if let Role::Leading(leading) = &mut self.role {
            leading.age(by);
        }
    }

    /// The epoch of the record that it knows.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.record().epoch
    }

    /// The first number of a ring that is not committed.
    #[must_use]
    pub fn committed(&self, ring: u8) -> u64 {
        self.rings[usize::from(ring)].commit
    }
}
