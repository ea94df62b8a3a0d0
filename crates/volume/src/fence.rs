//! Fences: how a writer that lost its right to write is stopped at the last step.
//!
//! Every request carries the epoch of its writer's slot. Raising the slot's epoch makes each leaf
//! refuse the older requests in the very poll that would hand them to kernel, journal or peer,
//! wherever they were queued until then. A slot belongs to one I_T nexus on one logical unit (or
//! one mirror peer).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which writer: an index into the volume's [`Fences`]. Slot 0 is never raised; it is for writers
/// inside the program that cannot lose their right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FenceSlot(pub u32);

/// The right to write, as a request carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fence {
    /// Whose right.
    pub slot: FenceSlot,
    /// Since when; older than the slot's epoch means lost.
    pub epoch: u64,
}

/// The epochs of all slots of one logical unit, shared by its lanes on all cores.
///
/// One relaxed load of a line that hardly ever changes is what a leaf pays for it.
#[derive(Clone, Debug)]
pub struct Fences(Arc<[AtomicU64]>);

impl Fences {
    /// `slots` slots, all at epoch 0.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        Self((0..slots.max(1)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Number of slots.
    #[must_use]
    pub fn slot_count(&self) -> u32 {
        u32::try_from(self.0.len()).expect("made from a u32")
    }

    /// The right that a writer of `slot` has now.
    ///
    /// # Panics
    /// If there is no such slot.
    #[must_use]
    pub fn current(&self, slot: FenceSlot) -> Fence {
        Fence {
            slot,
            epoch: self.epoch_of(slot),
        }
    }

    /// Takes the right from every request of `slot` that was made before this call.
    ///
    /// # Panics
    /// If there is no such slot, or if it is slot 0.
    pub fn raise(&self, slot: FenceSlot) -> Fence {
        assert!(slot != FenceSlot(0), "slot 0 never loses its right");
        let before = self.slot(slot).fetch_add(1, Ordering::AcqRel);
        Fence {
            slot,
            epoch: before + 1,
        }
    }

    /// The request may still write: nobody has raised its slot since it was made.
    #[must_use]
    pub fn is_current(&self, fence: Fence) -> bool {
        fence.epoch >= self.epoch_of(fence.slot)
    }

    fn epoch_of(&self, slot: FenceSlot) -> u64 {
        self.slot(slot).load(Ordering::Acquire)
    }

    fn slot(&self, slot: FenceSlot) -> &AtomicU64 {
        self.0
            .get(slot.0 as usize)
            .expect("slots are given out by the logical unit that sized the table")
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_raised_fence_stops_older_requests_only() {
        let fences = Fences::new(3);
        let old = fences.current(FenceSlot(1));
        let other = fences.current(FenceSlot(2));
        let new = fences.raise(FenceSlot(1));
        assert!(!fences.is_current(old));
        assert!(fences.is_current(new));
        assert!(fences.is_current(other));
    }
}
