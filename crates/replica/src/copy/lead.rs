//! The owner: what is committed, who is added to those in sync, and who is removed from them.

use super::{Act, LunCopy, Role};
use crate::message::Message;
use crate::moment::Moment;
use crate::record::{CopyId, Epoch, NodeSet, NodeSlot};
use std::collections::BTreeMap;

/// What an owner knows of its epoch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Leading {
    /// What its log held when the epoch began, ring by ring, is not all committed yet.
    pub opens_at: Option<Vec<u64>>,
    /// When the epoch began.
    since: Moment,
    /// Whose logs follow this one, and up to which number each ring of them is stable.
    followers: BTreeMap<NodeSlot, Vec<u64>>,
    /// It is waited for as if it were in sync, and becomes so once it has these numbers.
    adding: Option<(NodeSlot, Vec<u64>)>,
    /// It was silent for too long, or is not well: it is allowed no reads, and will be removed.
    removing: Option<NodeSlot>,
    /// Nobody shall wait for them.
    unwell: NodeSet,
    /// Those of the followers that are made anew: they are not added before they are whole.
    pub copying: BTreeMap<NodeSlot, Copying>,
    /// Another node shall own the LUN.
    pub yields: Option<Yielding>,
    /// These shall be its copies.
    pub wants: Option<Vec<(NodeSlot, CopyId)>>,
}

/// How far a follower is that is made anew.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Copying {
    /// It follows, and had this when its data was all there last.
    Wanted(Vec<u64>),
    /// Everything is being written again.
    Begun,
    /// That was done: it is whole once it has these numbers.
    Until(Vec<u64>),
    /// It was notified of that.
    Said,
}

/// A handover while both are well.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Yielding {
    /// In sync and a follower when it began.
    pub to: NodeSlot,
    /// When it began, and from then on when the other one was notified.
    pub since: Moment,
    /// The other one was notified: it may have claimed the LUN.
    pub is_said: bool,
}

impl Leading {
    pub(super) fn new(opens_at: Vec<u64>, now: Moment) -> Self {
        Self {
            opens_at: Some(opens_at),
            since: now,
            followers: BTreeMap::new(),
            adding: None,
            removing: None,
            unwell: NodeSet::default(),
            copying: BTreeMap::new(),
            yields: None,
            wants: None,
        }
    }

    /// Nobody shall wait for it.
    pub(super) const fn leaves_out(&mut self, node: NodeSlot) {
        self.unwell = self.unwell.with(node);
    }

    /// It may be waited for again.
    pub(super) const fn comes_back(&mut self, node: NodeSlot) {
        self.unwell = self.unwell.without(node);
    }

    /// The connection with a node has ended.
    pub(super) fn lost(&mut self, node: NodeSlot) {
        self.followers.remove(&node);
        self.copying.remove(&node);
        self.unwell = self.unwell.without(node);
    }

    /// A swap was done: these are in sync now.
    pub(super) fn changed(&mut self) {
        (self.adding, self.removing) = (None, None);
    }

    #[cfg(any(test, feature = "model"))]
    pub(super) fn age(&mut self, by: u64) {
        let moments = [&mut self.since].into_iter();
        let moments = moments.chain(self.yields.as_mut().map(|it| &mut it.since));
        moments.for_each(|it| it.0 = it.0.saturating_sub(by));
    }

    pub(super) const fn is_removing(&self) -> bool {
        self.removing.is_some()
    }

    /// A node could take over right now: it has all that this one has, and nothing else goes on.
    pub(super) fn may_yield_to(&self, node: NodeSlot) -> bool {
        self.opens_at.is_none()
            && self.adding.is_none()
            && self.removing.is_none()
            && self.follows(node)
            && !self.unwell.has(node)
    }

    pub(super) fn follows(&self, node: NodeSlot) -> bool {
        self.followers.contains_key(&node)
    }

    pub(super) fn has(&self, node: NodeSlot, numbers: &[u64]) -> bool {
        let stable = self.followers.get(&node);
        stable.is_some_and(|it| it.iter().zip(numbers).all(|(has, wants)| has >= wants))
    }
}

impl LunCopy {
    /// What the owner does when time passes, or something was heard.
    pub(super) fn tend(&mut self, now: Moment) {
        if self.goes_on_yielding(now) {
            return;
        }
        let in_sync = self.record().in_sync;
        if self.kept.promised > self.record().epoch {
            return self.claim(in_sync, now);
        }
        self.tend_unwanted();
        if let Some(silent) = self.silent_member(now) {
            return self.remove(silent, now);
        }
        if self.changes_copies(now) {
            return;
        }
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        leading.removing = None;
        let lacks = |node: &NodeSlot| !leading.followers.contains_key(node);
        if leading.adding.as_ref().is_some_and(|(node, _)| lacks(node)) {
            leading.adding = None;
            self.commit_more();
        }
        self.tend_copies();
        self.add(now);
    }

    /// One that is in sync, and answered nothing for so long that this node may not read any more.
    pub(super) fn silent_member(&self, now: Moment) -> Option<NodeSlot> {
        let Role::Leading(leading) = &self.role else {
            return None;
        };
        let span = self.spans.lead;
        let is_time = now >= leading.since.after(span);
        let is_silent = |node: &NodeSlot| !self.pairs[node].answered_within(span, now);
        self.others_in_sync()
            .iter()
            .find(|node| is_time && is_silent(node) || leading.unwell.has(*node))
    }

    /// A member holds the others up, or says that it cannot go on: nobody shall wait for it until
    /// it has connected anew.
    pub fn remove_unwell(&mut self, node: NodeSlot, now: Moment) {
        if let Role::Leading(leading) = &mut self.role {
            leading.unwell = leading.unwell.with(node);
        }
        self.proceed(now);
    }

    /// A node says that its copy works no more.
    pub(super) fn is_left_by(&mut self, node: NodeSlot) {
        if let Role::Leading(leading) = &mut self.role {
            leading.unwell = leading.unwell.with(node);
        }
    }

    fn remove(&mut self, node: NodeSlot, now: Moment) {
        let grant = if holds!(self, RemovalWaitsForReads) {
            self.spans.grant
        } else {
            0
        };
        let may_read_until = self.pairs[&node].granted.after(grant);
        let asks = holds!(self, RemovalAsksTheArbiter);
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        leading.removing = Some(node);
        if leading.adding.as_ref().is_some_and(|(it, _)| *it == node) {
            leading.adding = None;
        }
        if !asks {
            let left = self.record().in_sync.without(node);
            self.kept.known.1 = self.record().with_in_sync(left);
            return self.commit_more();
        }
        if now < may_read_until {
            return;
        }
        let left = self.record().in_sync.without(node);
        if self.falls_short_with(left) {
            return self.claim(left, now);
        }
        self.swap(self.record().with_in_sync(left), now);
    }

    /// Who follows and has everything that is committed is waited for; and once it has everything
    /// that was committed before that, it is in sync.
    fn add(&mut self, now: Moment) {
        let in_sync = self.record().in_sync;
        let commits: Vec<u64> = self.rings.iter().map(|ring| ring.commit).collect();
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        if leading.opens_at.is_some() {
            return;
        }
        if leading.adding.is_none() {
            let followers = leading.followers.keys().copied();
            let is_made_anew = |node: &NodeSlot| leading.copying.contains_key(node);
            let is_behind = |node: &NodeSlot| {
                !in_sync.has(*node) && !leading.unwell.has(*node) && !is_made_anew(node)
            };
            let mut behind = followers.filter(is_behind);
            // Hosts' reads depend on its promise from then on.
            let span = self.spans.lead;
            let promises = |node: &NodeSlot| self.pairs[node].answered_within(span, now);
            let next = behind.find(|node| leading.has(*node, &commits) && promises(node));
            leading.adding = next.map(|node| (node, commits));
        }
        if let Some((node, numbers)) = &leading.adding
            && leading.has(*node, numbers)
        {
            let more = in_sync.with(*node);
            self.swap(self.record().with_in_sync(more), now);
        }
    }

    /// A node's log follows this one, up to these numbers; `anew`: what it has is not whole, and
    /// goes on from there.
    pub(super) fn followed_by(
        &mut self,
        node: NodeSlot,
        (epoch, next): (Epoch, Vec<u64>),
        anew: Option<Vec<u64>>,
    ) {
        let is_current = self.record().epoch == epoch;
        let is_in_sync = self.record().in_sync.has(node);
        // What it acknowledged since it began to follow may come ahead of what it says of that.
        let is_first = !matches!(&self.role, Role::Leading(leading) if leading.follows(node));
        let has_lost = is_current && is_first && self.is_short(node, &next);
        let anew = if has_lost { Some(Vec::new()) } else { anew };
        let asks = holds!(self, WhoIsNotWholeIsCopied);
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        if is_current && next.len() == self.rings.len() {
            leading.followers.insert(node, vec![0; next.len()]);
            leading.copying.remove(&node);
            if anew.is_some() && is_in_sync {
                leading.unwell = leading.unwell.with(node);
            }
            if let Some(base) = anew.filter(|_| asks) {
                leading.copying.insert(node, Copying::Wanted(base));
            }
            for (ring, from) in (0..).zip(next) {
                self.acts.push(Act::Stream {
                    to: node,
                    ring,
                    from,
                });
            }
        }
    }

    /// A follower has everything below `stable`, durably.
    pub(super) fn acknowledged(&mut self, node: NodeSlot, (epoch, ring, stable): (Epoch, u8, u64)) {
        let is_current = self.record().epoch == epoch;
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        let follower = leading.followers.get_mut(&node);
        let follower = follower.and_then(|it| it.get_mut(usize::from(ring)));
        if let Some(has) = follower.filter(|_| is_current) {
            *has = stable.max(*has);
            self.commit_more();
        }
    }

    /// Who has to have a change before it is committed: those in sync, and the one that is added.
    pub(super) fn waited_for(&self, leading: &Leading) -> NodeSet {
        let others = self.others_in_sync();
        let adding = leading.adding.as_ref();
        let adding = adding.filter(|_| holds!(self, WhoIsAddedIsWaitedFor));
        adding.map_or(others, |(node, _)| others.with(*node))
    }

    /// Of an owner: who may be in sync, and has to have what hosts are to go on with after a
    /// takeover; `None`: this node is none.
    #[must_use]
    pub fn who_is_waited_for(&self) -> Option<NodeSet> {
        match &self.role {
            Role::Leading(leading) => Some(self.waited_for(leading)),
            Role::Joining | Role::Member { .. } | Role::Candidate | Role::NoMember => None,
        }
    }

    /// What everybody who is waited for has is committed.
    pub(super) fn commit_more(&mut self) {
        let Role::Leading(leading) = &self.role else {
            return;
        };
        let mut waited_for = self.waited_for(leading);
        if !holds!(self, AllInSyncHaveIt) {
            waited_for = NodeSet::default();
        }
        let commits: Vec<u64> = (self.rings.iter().enumerate())
            .map(|(ring, own)| {
                let has = |node| leading.followers.get(&node).map_or(0, |it| it[ring]);
                let least = waited_for.iter().map(has).min();
                own.stable.min(least.unwrap_or(u64::MAX)).max(own.commit)
            })
            .collect();
        for (at, commit) in commits.into_iter().enumerate() {
            if commit > self.rings[at].commit {
                self.rings[at].commit = commit;
                let ring = u8::try_from(at).expect("rings are few");
                self.acts.push(Act::Committed { ring, commit });
                self.say_commit(ring, commit);
            }
        }
        self.open_if_committed();
    }

    fn say_commit(&mut self, ring: u8, commit: u64) {
        let epoch = self.record().epoch;
        if let Role::Leading(leading) = &self.role {
            let said = leading.followers.keys().map(|node| {
                let commit = Message::Commit {
                    epoch,
                    ring,
                    commit,
                };
                Act::Send(*node, commit)
            });
            self.acts.extend(said);
        }
    }

    /// All that the log held when the epoch began is committed: there may be reads from now on.
    fn open_if_committed(&mut self) {
        let commits: Vec<u64> = self.rings.iter().map(|ring| ring.commit).collect();
        if let Role::Leading(leading) = &mut self.role {
            let is_open = |at: &Vec<u64>| at.iter().zip(&commits).all(|(at, is)| is >= at);
            if leading.opens_at.as_ref().is_some_and(is_open) {
                leading.opens_at = None;
            }
        }
    }

    /// A replica asks whether it may read from its copy.
    pub(super) fn grant(&mut self, node: NodeSlot, sent: Moment, now: Moment) {
        let in_sync = self.record().in_sync.has(node);
        let is_last = self.is_last();
        let Role::Leading(leading) = &self.role else {
            return;
        };
        let is_well = is_last
            && leading.opens_at.is_none()
            && leading.yields.is_none()
            && leading.removing != Some(node)
            && leading.followers.contains_key(&node);
        if in_sync && is_well && self.question.is_none() && self.holds_within(self.spans.ask, now) {
            let pair = self.pairs.get_mut(&node).expect("it said something");
            pair.granted = now;
            self.acts.push(Act::Send(node, Message::Grant { sent }));
        }
    }
}
