//! A nexus on its way from one core to another.
//!
//! **Contract.** While a nexus is on its way no core knows it, so no unit attention may be
//! established for all nexuses of its unit then: it would be lost, or come twice. Who establishes
//! one for all nexuses keeps the unit from standing still ([`LogicalUnit::keep_going`]); who moves
//! one makes it stand still, and gives up at once where a unit attention is being established. So
//! neither ever waits for the other for long.

use crate::names::UnitId;
use crate::names::UnitPorts;
use crate::unit::LogicalUnit;
use scsi::copy::CopyHistory;
use scsi::reservation::Nexus as NexusPort;
use scsi::unit_attention::AttentionQueue;
use std::sync::Arc;
use volume::{Fence, FenceSlot};

/// All of a nexus that outlives its stay on one core. Dropping it gives back its place, not what it
/// has reserved.
pub struct NexusState {
    pub(crate) unit: UnitId,
    pub(crate) port: NexusPort,
    pub(crate) ports: UnitPorts,
    pub(crate) read_only: bool,
    pub(crate) is_guest: bool,
    pub(crate) has_forwarded: bool,
    pub(crate) has_lost: bool,
    pub(crate) fence: Fence,
    pub(crate) slot: Slot,
    pub(crate) attentions: AttentionQueue,
    pub(crate) copies: CopyHistory,
}

/// A writer's place in the unit's fences, given back when dropped.
pub(crate) struct Slot {
    shared: Arc<LogicalUnit>,
    number: FenceSlot,
}

impl Slot {
    pub(crate) fn take(shared: &Arc<LogicalUnit>) -> Option<Self> {
        Some(Self {
            number: shared.take_slot()?,
            shared: Arc::clone(shared),
        })
    }

    pub(crate) fn number(&self) -> FenceSlot {
        self.number
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.give_slot_back(self.number);
    }
}
