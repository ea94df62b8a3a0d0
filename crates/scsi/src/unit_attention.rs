//! Unit attention conditions: one queue for each I_T nexus.
//!
//! **Contract.** [`AttentionQueue::establish`] coalesces; [`AttentionQueue::meet`] says what a
//! command does with a pending condition, by the class of its row in the table of commands.
//! UA_INTLCK_CTRL is zero, so a condition is cleared when it has been reported.
//!
//! **Invariants.** I1: the queue is sorted by precedence. I2: no condition is in it twice. I3: at
//! most one of the reset conditions is in it, the strongest.
//!
//! Spec: SAM-5 5.14 "Unit attention conditions", 6.2 "Establishing a unit attention condition
//! subsequent to SCSI events"; SPC-4 6.6, 6.33 and 6.39 for the three exceptions.

use alloc::vec::Vec;

use crate::opcode::Attention;
use crate::sense::{AdditionalSense, Sense, SenseKey};

/// What is to be reported to an initiator, strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitAttention {
    /// The unit was started.
    PowerOn,
    /// TARGET COLD RESET or TARGET WARM RESET: a hard reset.
    HardReset,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// The I_T nexus was lost and is new.
    NexusLoss,
    /// CLEAR TASK SET of another nexus.
    CommandsCleared,
    /// A reservation of this nexus was preempted by CLEAR.
    ReservationsPreempted,
    /// This nexus lost its registration to a PREEMPT.
    RegistrationsPreempted,
    /// A reservation that concerned this nexus was released.
    ReservationsReleased,
    /// MODE SELECT by another nexus.
    ModeParametersChanged,
    /// The unit was resized.
    CapacityChanged,
    /// The ALUA state changed.
    AccessStateChanged,
    /// Identification or limits changed.
    InquiryChanged,
    /// The list of units changed.
    ReportedLunsChanged,
    /// The pool is filling up.
    SoftThresholdReached,
}

impl UnitAttention {
    /// The additional sense code.
    #[must_use]
    pub const fn code(self) -> AdditionalSense {
        match self {
            Self::PowerOn => AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED,
            Self::HardReset => AdditionalSense::SCSI_BUS_RESET_OCCURRED,
            Self::LogicalUnitReset => AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED,
            Self::NexusLoss => AdditionalSense::I_T_NEXUS_LOSS_OCCURRED,
            Self::CommandsCleared => AdditionalSense::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR,
            Self::ReservationsPreempted => AdditionalSense::RESERVATIONS_PREEMPTED,
            Self::RegistrationsPreempted => AdditionalSense::REGISTRATIONS_PREEMPTED,
            Self::ReservationsReleased => AdditionalSense::RESERVATIONS_RELEASED,
            Self::ModeParametersChanged => AdditionalSense::MODE_PARAMETERS_CHANGED,
            Self::CapacityChanged => AdditionalSense::CAPACITY_DATA_HAS_CHANGED,
            Self::AccessStateChanged => AdditionalSense::ASYMMETRIC_ACCESS_STATE_CHANGED,
            Self::InquiryChanged => AdditionalSense::INQUIRY_DATA_HAS_CHANGED,
            Self::ReportedLunsChanged => AdditionalSense::REPORTED_LUNS_DATA_HAS_CHANGED,
            Self::SoftThresholdReached => AdditionalSense::THIN_PROVISIONING_SOFT_THRESHOLD_REACHED,
        }
    }

    /// The sense data that reports it.
    #[must_use]
    pub const fn sense(self) -> Sense {
        Sense::new(SenseKey::UnitAttention, self.code())
    }

    /// One of the conditions of which a stronger one makes a weaker one pointless.
    const fn is_reset(self) -> bool {
        matches!(
            self,
            Self::PowerOn | Self::HardReset | Self::LogicalUnitReset | Self::NexusLoss
        )
    }
}

/// What a command does about the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// It is done as if nothing were pending.
    Proceed,
    /// It ends with CHECK CONDITION and this sense data; the condition is cleared.
    Report(Sense),
    /// It is REQUEST SENSE and returns this sense data with GOOD; the condition is cleared.
    Return(Sense),
}

/// The conditions pending for one nexus.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AttentionQueue {
    pending: Vec<UnitAttention>,
}

impl AttentionQueue {
    /// Nothing pending.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pending: Vec::new(),
        }
    }

    /// Adds a condition. Power on makes all earlier ones pointless; a stronger reset condition
    /// replaces a weaker one and swallows it afterwards.
    pub fn establish(&mut self, attention: UnitAttention) {
        if attention == UnitAttention::PowerOn {
            self.pending.clear();
        }
        if attention.is_reset() {
            let stronger = self
                .pending
                .iter()
                .any(|held| held.is_reset() && *held <= attention);
            if stronger {
                return;
            }
            self.pending.retain(|held| !held.is_reset());
        }
        if let Err(at) = self.pending.binary_search(&attention) {
            self.pending.insert(at, attention);
        }
    }

    /// Whether anything is pending: the only question that the fast path asks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The conditions pending, strongest first.
    #[must_use]
    pub fn pending(&self) -> &[UnitAttention] {
        &self.pending
    }

    /// What a command of this class does, clearing what it reports.
    pub fn meet(&mut self, class: Attention) -> Meeting {
        if self.pending.is_empty() {
            return Meeting::Proceed;
        }
        match class {
            Attention::Ignores => Meeting::Proceed,
            Attention::Reports => Meeting::Report(self.pending.remove(0).sense()),
            Attention::Returns => Meeting::Return(self.pending.remove(0).sense()),
        }
    }

    /// A REPORT LUNS command was done: the initiator knows the list now.
    pub fn luns_reported(&mut self) {
        self.pending
            .retain(|held| *held != UnitAttention::ReportedLunsChanged);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    const ALL: [UnitAttention; 14] = [
        UnitAttention::PowerOn,
        UnitAttention::HardReset,
        UnitAttention::LogicalUnitReset,
        UnitAttention::NexusLoss,
        UnitAttention::CommandsCleared,
        UnitAttention::ReservationsPreempted,
        UnitAttention::RegistrationsPreempted,
        UnitAttention::ReservationsReleased,
        UnitAttention::ModeParametersChanged,
        UnitAttention::CapacityChanged,
        UnitAttention::AccessStateChanged,
        UnitAttention::InquiryChanged,
        UnitAttention::ReportedLunsChanged,
        UnitAttention::SoftThresholdReached,
    ];

    // spec: SPC-4 5.14 "Unit attention condition".
    #[test]
    fn a_condition_is_reported_once_and_inquiry_leaves_it() {
        let mut queue = AttentionQueue::new();
        queue.establish(UnitAttention::CapacityChanged);
        queue.establish(UnitAttention::CapacityChanged);
        assert_eq!(queue.meet(Attention::Ignores), Meeting::Proceed);
        let sense = UnitAttention::CapacityChanged.sense();
        assert_eq!(queue.meet(Attention::Reports), Meeting::Report(sense));
        assert_eq!(queue.meet(Attention::Reports), Meeting::Proceed);
    }

    #[test]
    fn request_sense_returns_and_clears() {
        let mut queue = AttentionQueue::new();
        queue.establish(UnitAttention::NexusLoss);
        let sense = UnitAttention::NexusLoss.sense();
        assert_eq!(queue.meet(Attention::Returns), Meeting::Return(sense));
        assert!(queue.is_empty());
    }

    #[test]
    fn report_luns_clears_only_its_own_condition() {
        let mut queue = AttentionQueue::new();
        queue.establish(UnitAttention::ReportedLunsChanged);
        queue.establish(UnitAttention::ModeParametersChanged);
        queue.luns_reported();
        assert_eq!(queue.pending(), [UnitAttention::ModeParametersChanged]);
    }

    #[test]
    fn power_on_makes_everything_before_it_pointless() {
        let mut queue = AttentionQueue::new();
        for attention in ALL.iter().rev() {
            queue.establish(*attention);
        }
        assert_eq!(queue.pending(), [UnitAttention::PowerOn]);
    }

    proptest! {
        #[test]
        fn the_queue_is_the_sorted_set_with_the_strongest_reset(
            picks in proptest::collection::vec(0usize..14, 0..30),
        ) {
            let mut queue = AttentionQueue::new();
            let mut model = vec![];
            for pick in picks {
                queue.establish(ALL[pick]);
                if pick == 0 {
                    model = vec![0];
                } else if !model.contains(&pick) {
                    model.push(pick);
                }
                model.sort_unstable();
                let resets: Vec<usize> = model.iter().copied().filter(|p| *p < 4).skip(1).collect();
                model.retain(|p| !resets.contains(p));
            }
            let expected: Vec<_> = model.iter().map(|p| ALL[*p]).collect();
            prop_assert_eq!(queue.pending(), &expected[..]);
        }
    }
}
