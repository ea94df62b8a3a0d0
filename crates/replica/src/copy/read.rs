//! Who may read from a copy, and what it says of itself.

use super::{Act, LunCopy, Role};
use crate::message::Message;
use crate::moment::Moment;
use crate::state::State;

impl LunCopy {
    /// Whether what is committed here is what a reader may see now.
    #[must_use]
    pub fn may_read(&self, now: Moment) -> bool {
        match &self.role {
            Role::Leading(leading) => {
                let is_open = leading.opens_at.is_none() || !holds!(self, NoReadsWhileOpening);
                let was_given = leading.yields.is_some_and(|it| it.is_said);
                if was_given && holds!(self, WhoYieldsStopsReading) {
                    return false;
                }
                let holds = self.holds_within(self.spans.lead, now);
                is_open && self.is_last() && (holds || !holds!(self, OwnerReadsByPromise))
            }
            Role::Member { follows: Some(_) } => {
                let is_allowed = self
                    .may_read_from
                    .is_some_and(|sent| now < sent.after(self.spans.grant));
                is_allowed && (self.is_clean() || !holds!(self, ReplicaShowsCommitted))
            }
            Role::Member { follows: None } | Role::Joining | Role::Candidate | Role::NoMember => {
                false
            }
        }
    }

    /// The moment from which on an owner may not read, unless it hears more from the others;
    /// `None`: it may not now. For those who hold this up against the time when a read completes.
    #[must_use]
    pub fn reads_until(&self, now: Moment) -> Option<Moment> {
        if !matches!(self.role, Role::Leading(_)) || !self.may_read(now) {
            return None;
        }
        let others = self.others_that_promise();
        let answered = others.iter().map(|node| self.pairs.get(&node)?.answered);
        let ends = answered.map(|sent| Some(sent?.after(self.spans.lead)));
        ends.min().unwrap_or(Some(Moment(u64::MAX)))
    }

    /// Nobody has promised to accept a later epoch: who has may own the LUN by now, whatever it
    /// answers.
    pub(super) fn is_last(&self) -> bool {
        self.kept.promised <= self.record().epoch || !holds!(self, WhoPromisedLaterIsNotCounted)
    }

    /// The log has nothing beyond what is known to be committed.
    fn is_clean(&self) -> bool {
        let mut rings = self.rings.iter();
        rings.all(|ring| ring.commit == ring.has.next)
    }

    /// Whether changes of hosts may be put into the log: they are acknowledged when they are
    /// committed.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.serves() && !self.lacks_copies()
    }

    /// Whether hosts are to be served here, though writes may have to wait for another copy.
    #[must_use]
    pub const fn serves(&self) -> bool {
        matches!(&self.role, Role::Leading(leading) if leading.opens_at.is_none() && leading.yields.is_none())
    }

    /// A replica wants to read: asks the owner.
    pub fn ask_to_read(&mut self, now: Moment) {
        if matches!(self.role, Role::Member { follows: Some(_) }) {
            let owner = self.record().owner;
            self.acts.push(Act::Send(owner, Message::Ask { sent: now }));
        }
    }

    /// The owner allowed what was asked then.
    pub(super) fn granted(&mut self, sent: Moment) {
        if matches!(self.role, Role::Member { follows: Some(_) }) {
            self.may_read_from = self.may_read_from.max(Some(sent));
        }
    }

    /// The arbiter's store is another one, or has forgotten what it held. This copy goes on as far
    /// as it can without it: no role changes until somebody has mended that.
    #[must_use]
    pub const fn distrusts_arbiter(&self) -> bool {
        self.distrusts
    }

    /// What this copy does now.
    #[must_use]
    pub fn state(&self, now: Moment) -> State {
        match &self.role {
            Role::Joining | Role::Candidate if self.distrusts => State::Stopped,
            Role::Joining => State::Joining,
            Role::NoMember => State::NoMember,
            Role::Candidate => State::Candidate,
            Role::Member { .. } if self.record().in_sync.has(self.me) => State::Replica,
            Role::Member { .. } if !self.kept.is_whole => State::Copying,
            Role::Member { .. } => State::CatchingUp,
            Role::Leading(leading) if leading.yields.is_some() => State::Yielding,
            Role::Leading(leading) if leading.is_removing() && !self.distrusts => State::Removing,
            Role::Leading(leading) if leading.opens_at.is_some() => State::Opening,
            Role::Leading(_) if self.others_in_sync().count() == 0 => State::Solo,
            Role::Leading(_) if self.is_last() && self.holds_within(self.spans.lead, now) => {
                State::Owner
            }
            Role::Leading(_) if self.distrusts => State::Stopped,
            Role::Leading(_) => State::Holding,
        }
    }
}
