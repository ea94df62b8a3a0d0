//! What a session can be asked for, how that ends, and what was seen of it.

use iscsi::Lun;
use iscsi::bhs::Attribute;
use iscsi::initiator_side::Completion;
use scsi::{AdditionalSense, Sense, SenseKey, Status};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::oneshot;
use units::Buf;

/// A command as it goes onto the wire.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Logical unit.
    pub lun: Lun,
    /// The command as the target gets it; shorter ones end in zeroes.
    pub cdb: [u8; 16],
    /// Task attribute.
    pub attribute: Attribute,
    /// What it sends.
    pub data_out: Buf,
    /// How many bytes it has room for.
    pub data_in: usize,
}

/// What a session can be asked for.
#[derive(Clone, Debug)]
pub enum Job {
    /// A command.
    Command(Wire),
    /// A task management function of a unit or the target.
    Function {
        /// Its code (RFC 7143 11.5.1 "Function").
        function: u8,
        /// Logical unit.
        lun: Lun,
    },
}

/// How it ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With a response.
    Ended(Completion),
    /// By a task management function that was answered; it changes nothing from now on.
    Aborted,
    /// Its connection was lost, and the next session stands; it changes nothing from now on.
    Lost,
    /// The function's response (RFC 7143 11.6.1 "Response").
    Function(u8),
}

impl Outcome {
    /// Ended with GOOD.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.status() == Some(Status::Good)
    }

    /// The status, where there is one.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Ended(completion) if !completion.target_failure => {
                Status::from_code(completion.status)
            }
            Self::Ended(_) | Self::Aborted | Self::Lost | Self::Function(_) => None,
        }
    }

    /// The sense, where it ended with CHECK CONDITION.
    #[must_use]
    pub fn sense(&self) -> Option<Sense> {
        match self {
            Self::Ended(completion) => sense_of(completion),
            Self::Aborted | Self::Lost | Self::Function(_) => None,
        }
    }

    /// A unit attention: nothing was done.
    #[must_use]
    pub fn is_attention(&self) -> bool {
        let sense = self.sense();
        sense.is_some_and(|sense| sense.key == SenseKey::UnitAttention)
    }

    /// A unit attention, or a target that is busy: nothing was done, and it is worth sending again.
    #[must_use]
    pub fn is_worth_again(&self) -> bool {
        self.is_attention() || matches!(self.status(), Some(Status::Busy | Status::TaskSetFull))
    }
}

fn sense_of(completion: &Completion) -> Option<Sense> {
    let check = Status::from_code(completion.status) == Some(Status::CheckCondition);
    (check && !completion.target_failure)
        .then(|| Sense::parse(&completion.sense.to_vec()))
        .flatten()
}

/// What a session has seen so far.
#[derive(Default, Debug)]
pub struct Seen {
    logins: Cell<u64>,
    used: RefCell<BTreeSet<Lun>>,
    attentions: RefCell<BTreeMap<(Lun, AdditionalSense), u64>>,
}

impl Seen {
    pub(super) fn logged_in(&self) {
        self.logins.set(self.logins.get() + 1);
    }

    pub(super) fn completed(&self, lun: Lun, completion: &Completion) {
        if Status::from_code(completion.status) == Some(Status::Good) {
            self.used.borrow_mut().insert(lun);
        }
        let sense = sense_of(completion).filter(|sense| sense.key == SenseKey::UnitAttention);
        if let Some(sense) = sense {
            *(self.attentions.borrow_mut())
                .entry((lun, sense.code))
                .or_insert(0) += 1;
        }
    }

    /// A command of this unit was done, in this session or one before: the unit knows which unit
    /// attentions it has to report to this port.
    #[must_use]
    pub fn has_used(&self, lun: Lun) -> bool {
        self.used.borrow().contains(&lun)
    }

    /// How often it logged in.
    #[must_use]
    pub fn logins(&self) -> u64 {
        self.logins.get()
    }

    /// How often a reset, of whatever kind, was reported; it stands for all unit attentions before
    /// it (SAM-5 "Unit attention conditions").
    #[must_use]
    pub fn resets(&self) -> u64 {
        let attentions = self.attentions.borrow();
        let resets = attentions.iter().filter(|((_, code), _)| code.asc == 0x29);
        resets.map(|(_, count)| count).sum()
    }

    /// How often a unit attention was reported.
    #[must_use]
    pub fn attentions(&self, lun: Lun, code: AdditionalSense) -> u64 {
        let attentions = self.attentions.borrow();
        attentions.get(&(lun, code)).copied().unwrap_or(0)
    }
}

pub(super) struct Request {
    pub(super) job: Job,
    pub(super) reply: oneshot::Sender<Outcome>,
}
