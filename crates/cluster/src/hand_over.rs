//! A LUN is given to another node while both are well: before this one stops.

use crate::cluster::Cluster;
use crate::input::Input;
use replica::{NodeSlot, RoleRecord, State};
use std::time::Duration;
use units::Now;
use write_back::VolumeId;

/// How often it is checked whether it is done.
const CHECKS: Duration = Duration::from_millis(5);

/// How often it is asked for anew: something else may have to end first.
const ASKS: Duration = Duration::from_millis(100);

/// Why a LUN stays with this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotGiven {
    /// It works no more here, or another node owns it already.
    NotOwned,
    /// No other node has all of it.
    NobodyInSync,
    /// The other node, or the arbiter, did not do its part in time.
    Late,
}

impl Cluster {
    /// Which node a LUN that this node owns would be [given](Self::hand_over) to, as things are
    /// now.
    ///
    /// # Errors
    /// [`NotGiven`]; late is what has to wait for something else first.
    pub fn next_owner(&self, id: VolumeId) -> Result<NodeSlot, NotGiven> {
        let own = self.settings.own.slot;
        let lun = self.lun(id).filter(|it| !it.is_stopped());
        let status = lun.ok_or(NotGiven::NotOwned)?.status();
        if status.record.owner != own {
            return Err(NotGiven::NotOwned);
        }
        let to = next_owner(&status.record, own).ok_or(NotGiven::NobodyInSync)?;
        let may = matches!(
            status.state,
            State::Owner | State::Opening | State::Yielding
        );
        may.then_some(to).ok_or(NotGiven::Late)
    }

    /// Gives a LUN that this node owns to another one that is in sync, and answers which one owns
    /// it then. Hosts wait for that long, and are served there.
    ///
    /// # Errors
    /// [`NotGiven`]; this node goes on as the owner where it can.
    pub async fn hand_over(&self, id: VolumeId, until: Now) -> Result<NodeSlot, NotGiven> {
        let own = self.settings.own.slot;
        let mut asks = self.core.now();
        let mut was_owned = false;
        loop {
            let Some(lun) = self.lun(id).filter(|it| !it.is_stopped()) else {
                return Err(NotGiven::NotOwned);
            };
            let status = lun.status();
            let owner = status.record.owner;
            if owner != own {
                return was_owned.then_some(owner).ok_or(NotGiven::NotOwned);
            }
            was_owned = true;
            let now = self.core.now();
            if now >= until {
                return Err(NotGiven::Late);
            }
            let to = next_owner(&status.record, own).ok_or(NotGiven::NobodyInSync)?;
            if now >= asks && status.state == State::Owner {
                lun.hears(Input::HandOver(to));
                asks = now.after(ASKS);
            }
            self.core.sleep_until(now.after(CHECKS)).await;
        }
    }
}

fn next_owner(record: &RoleRecord, own: NodeSlot) -> Option<NodeSlot> {
    record.in_sync.without(own).iter().next()
}
