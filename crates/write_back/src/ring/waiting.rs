//! Whoever waits for the state of a ring does it here: until a condition that has a name is met, or
//! until there is work.

use super::machine::Machine;
use super::write_arounds::WriteAroundId;
use journal::Slot;
use std::cell::RefCell;
use tokio::sync::Notify;
use units::Lba;

/// What somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// Requests of the volume need not wait; `changes`: those that change blocks.
    GoesOn { slot: Slot, changes: bool },
    /// The volume has its share of the log's room, or can be answered why it has not.
    HasShare(Slot),
    /// The same of a volume whose owner is followed in this epoch, or it is not any more.
    HasShareOf { slot: Slot, epoch: u64 },
    /// Nobody makes a cut of the volume.
    IsNotHeld(Slot),
    /// No write of the volume is under way around the log.
    NoWriteAround(Slot),
    /// No write around the log is under way that is as old as this one.
    NoWriteAroundUntil(WriteAroundId),
    /// Nothing is being destaged.
    NoRound,
    /// All is destaged, or what is not has been tried, until so many rounds have ended.
    IsDrained { rounds: u64 },
    /// No epoch of the volume begins, or the log has failed.
    NoEpochBegins(Slot),
    /// All batches up to this one are stable, or the log has failed.
    IsStable { number: u64 },
}

impl Condition {
    pub(crate) fn is_met(self, machine: &Machine) -> bool {
        match self {
            Self::GoesOn { slot, changes } => !machine.volume(slot).makes_wait(changes),
            Self::HasShare(slot) => {
                machine.has_share(slot)
                    || machine.refuses(slot, Lba(0)).is_some()
                    || !machine.may_order(slot)
            }
            Self::HasShareOf { slot, epoch } => {
                machine.has_share(slot) || !machine.follows(slot, epoch)
            }
            Self::IsNotHeld(slot) => !machine.volume(slot).is_held,
            Self::NoWriteAround(slot) => !machine.write_arounds().are_of(slot),
            Self::NoWriteAroundUntil(newest) => !machine.write_arounds().are_until(newest),
            Self::NoRound => !machine.destaging().is_in_round(),
            Self::NoEpochBegins(slot) => !machine.epoch_begins(slot) || machine.ring().has_failed(),
            Self::IsDrained { rounds } => machine.is_drained(rounds),
            Self::IsStable { number } => {
                let ring = machine.ring();
                ring.has_failed() || ring.stable() >= number
            }
        }
    }
}

/// Those who wait.
#[derive(Default)]
pub(super) struct Waiters {
    /// For something to be written to the log.
    writer: Notify,
    /// For something to be destaged.
    destager: Notify,
    /// For a condition.
    others: Notify,
}

impl Waiters {
    pub(super) fn wake_writer(&self) {
        self.writer.notify_one();
    }

    pub(super) fn wake_destager(&self) {
        self.destager.notify_one();
    }

    /// Something has ended: conditions are tested again.
    pub(super) fn wake_others(&self) {
        self.others.notify_waiters();
    }

    pub(super) async fn writer_is_woken(&self) {
        self.writer.notified().await;
    }

    pub(super) async fn destager_is_woken(&self) {
        self.destager.notified().await;
    }

    /// Answers in the poll that finds it so.
    pub(super) async fn until(&self, machine: &RefCell<Machine>, condition: Condition) {
        loop {
            let woken = self.others.notified();
            if condition.is_met(&machine.borrow()) {
                return;
            }
            let rests = machine.borrow().destaging().rests();
            if matches!(condition, Condition::IsDrained { .. }) && !rests {
                // It comes of the destager's work alone, which begins no sooner by itself. One that
                // rests has nothing to do before it is woken by what comes: the two would wake each
                // other for ever.
                self.wake_destager();
            }
            woken.await;
        }
    }
}
