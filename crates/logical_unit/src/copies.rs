//! What hosts set of a unit with copies on several nodes: every node that is in sync keeps it all,
//! and whichever serves hosts next goes on with it.
//!
//! ```text
//!   home core: [turn] edit a copy --> keep it on all nodes --> every core adopts it --> answer
//!   another node takes over: what it kept --> every core adopts it --> hosts are served
//! ```
//!
//! **Contract.** A change is answered when all nodes in sync have it stable. Without APTPL it is
//! lost where all of them lost power, and only there (SPC-4 5.13.5 "Preserving persistent
//! reservations and registrations").

use crate::state::UnitState;
use env::{CoreHandle, LocalFuture};
use scsi::alua::AccessState;
use scsi::mode::{ModePages, ModeParameters};
use scsi::reservation::Reservations;

const MAGIC: [u8; 4] = *b"CWUS";
const VERSION: u16 = 1;
/// Bytes before the reservations: magic, version, current and saved mode pages.
const FIXED: usize = 14;

/// Where a unit's state is kept on all nodes that have copies of it.
pub trait StateCopies: Send + Sync {
    /// Keeps it, and answers when all nodes in sync have it stable.
    ///
    /// # Errors
    /// [`NotKept`].
    fn keep(&self, core: &CoreHandle, state: Vec<u8>) -> LocalFuture<Result<(), NotKept>>;
}

/// Why a state is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotKept {
    /// Hosts are served by another node, or by none now: nobody has it.
    NotHere,
    /// Whether another node goes on with it is not known.
    Unknown,
}

impl UnitState {
    /// Hosts are served by this node.
    pub(crate) fn is_served(&self) -> bool {
        self.access_state == AccessState::ActiveOptimized
    }

    /// All that hosts set, for the other nodes.
    pub(crate) fn to_copy(&self) -> Vec<u8> {
        let mut out = Vec::from(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.modes.current.to_bytes());
        out.extend(self.modes.saved.to_bytes());
        out.extend(self.reservations.to_whole());
        out
    }

    /// Goes on with what was kept; `None`: that is damaged, and nothing has changed.
    pub(crate) fn adopt_copy(&mut self, bytes: &[u8], lived: bool) -> Option<()> {
        let (head, reservations) = bytes.split_at_checked(FIXED)?;
        let (magic, head) = head.split_first_chunk()?;
        let (version, modes) = head.split_first_chunk()?;
        if *magic != MAGIC || u16::from_le_bytes(*version) != VERSION {
            return None;
        }
        let (current, saved) = modes.split_at_checked(4)?;
        let current = ModeParameters::from_bytes(current)?;
        let saved = ModeParameters::from_bytes(saved)?;
        let mut reservations = Reservations::from_whole(reservations).ok()?;
        self.modes = ModePages { current, saved };
        if !lived {
            reservations.power_on();
            self.modes = ModePages::from_saved(saved);
        }
        self.reservations = reservations;
        if !self.description.write_cache {
            self.modes.set_write_cache(false);
        }
        if let Some(reported) = self.task_aborted_status {
            self.modes.set_task_aborted_status(reported);
        }
        Some(())
    }
}
