//! The initiator ports that a unit knows, and the unit attentions of those that are away, for when
//! they come back.
//!
//! ```text
//!   stranger --arrives--> here --leaves--> away (unit attentions gather) --arrives--> here
//! ```
//!
//! **Contract.** A unit attention reports something that happened to the unit, or to the nexus, and
//! that the initiator port does not know. So a port that was never here gets none, one that was
//! gets what happened since, and where this program cannot know whether it was (the unit is older
//! than this run, or too many ports were here), it gets POWER ON, which says all.
//!
//! Spec: SAM-5 5.14 "Unit attention conditions", 6.3.1 "Power on", 6.3.4 "I_T nexus loss"; RFC 7143
//! 6.3.5.1 "Loss of Nexus Notification". `docs/adr/0015-task-aborted-and-unit-attentions.md` says
//! why.

use scsi::reservation::Nexus as NexusPort;
use scsi::unit_attention::{AttentionQueue, UnitAttention};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ports that are away and remembered, one unit each.
const AWAY_MAX: usize = 4096;

/// The ports that a unit knows. Touched when nexuses come and go and when something is reported to
/// all, never by commands.
pub(crate) struct KnownPorts(Mutex<Known>);

struct Known {
    ports: BTreeMap<NexusPort, Standing>,
    away: usize,
    /// Counts departures.
    turn: u64,
    /// A port that is not known may have been here.
    forgotten: bool,
}

enum Standing {
    /// It has so many nexuses: as many as it sees the unit under numbers.
    Here(u32),
    Away {
        pending: AttentionQueue,
        since: u64,
    },
}

impl KnownPorts {
    /// Of a unit that nobody can have used before, or of one that may have been.
    pub(crate) fn new(is_new: bool) -> Self {
        Self(Mutex::new(Known {
            ports: BTreeMap::new(),
            away: 0,
            turn: 0,
            forgotten: !is_new,
        }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A nexus of this port begins; the unit attentions that it gets.
    pub(crate) fn arrives(&self, port: &NexusPort) -> AttentionQueue {
        let known = &mut *self.known();
        match known.ports.get_mut(port) {
            Some(Standing::Here(nexuses)) => {
                *nexuses += 1;
                AttentionQueue::new()
            }
            Some(standing @ Standing::Away { .. }) => {
                known.away -= 1;
                match std::mem::replace(standing, Standing::Here(1)) {
                    Standing::Away { pending, .. } => pending,
                    Standing::Here(_) => AttentionQueue::new(),
                }
            }
            None => {
                known.ports.insert(port.clone(), Standing::Here(1));
                let mut queue = AttentionQueue::new();
                if known.forgotten {
                    queue.establish(UnitAttention::PowerOn);
                }
                queue
            }
        }
    }

    /// A nexus of this port has ended, with the unit attentions that were not reported yet; `lost`:
    /// not by a logout.
    pub(crate) fn leaves(&self, port: &NexusPort, mut pending: AttentionQueue, lost: bool) {
        let known = &mut *self.known();
        match known.ports.get_mut(port) {
            Some(Standing::Here(nexuses)) if *nexuses > 1 => {
                *nexuses -= 1;
                return;
            }
            Some(Standing::Here(_)) => {}
            Some(Standing::Away { .. }) | None => return,
        }
        if lost {
            pending.establish(UnitAttention::NexusLoss);
        }
        known.turn += 1;
        known.away += 1;
        let since = known.turn;
        let away = Standing::Away { pending, since };
        known.ports.insert(port.clone(), away);
        if known.away > AWAY_MAX {
            known.forget_oldest();
        }
    }

    /// Adds a unit attention for ports that are away.
    pub(crate) fn establish(
        &self,
        attention: UnitAttention,
        concerns: impl Fn(&NexusPort) -> bool,
    ) {
        for (port, standing) in &mut self.known().ports {
            if let Standing::Away { pending, .. } = standing
                && concerns(port)
            {
                pending.establish(attention);
            }
        }
    }
}

impl Known {
    fn forget_oldest(&mut self) {
        let away = self
            .ports
            .iter()
            .filter_map(|(port, standing)| match standing {
                Standing::Away { since, .. } => Some((*since, port)),
                Standing::Here(_) => None,
            });
        if let Some((_, oldest)) = away.min() {
            let oldest = oldest.clone();
            self.ports.remove(&oldest);
            self.away -= 1;
            self.forgotten = true;
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use scsi::reservation::InitiatorPort;

    fn port(number: u16) -> NexusPort {
        NexusPort {
            initiator: InitiatorPort {
                name: format!("iqn.x:{number}"),
                isid: [0; 6],
            },
            target_port: 1,
        }
    }

    fn reported(queue: &AttentionQueue) -> Vec<UnitAttention> {
        queue.pending().to_vec()
    }

    #[test]
    fn a_stranger_is_reported_nothing_by_a_new_unit_and_power_on_by_one_that_may_know_it() {
        let new = KnownPorts::new(true);
        assert_eq!(reported(&new.arrives(&port(1))), []);
        let old = KnownPorts::new(false);
        assert_eq!(reported(&old.arrives(&port(1))), [UnitAttention::PowerOn]);
        old.leaves(&port(1), AttentionQueue::new(), false);
        assert_eq!(reported(&old.arrives(&port(1))), []);
    }

    #[test]
    fn a_port_that_was_lost_is_reported_so_and_what_happened_while_it_was_away() {
        let known = KnownPorts::new(true);
        for one in [1, 2, 3] {
            let _ = known.arrives(&port(one));
        }
        known.leaves(&port(1), AttentionQueue::new(), true);
        known.leaves(&port(2), AttentionQueue::new(), false);
        known.establish(UnitAttention::CapacityChanged, |_| true);
        known.establish(UnitAttention::RegistrationsPreempted, |it| *it == port(2));
        let both = [UnitAttention::NexusLoss, UnitAttention::CapacityChanged];
        assert_eq!(reported(&known.arrives(&port(1))), both);
        let both = [
            UnitAttention::RegistrationsPreempted,
            UnitAttention::CapacityChanged,
        ];
        assert_eq!(reported(&known.arrives(&port(2))), both);
        // It was here, and got them as everybody who is.
        known.leaves(&port(3), AttentionQueue::new(), false);
        assert_eq!(reported(&known.arrives(&port(3))), []);
    }

    #[test]
    fn what_was_not_taken_before_a_logout_is_still_there_afterwards() {
        let known = KnownPorts::new(true);
        let mut pending = known.arrives(&port(1));
        pending.establish(UnitAttention::LogicalUnitReset);
        known.leaves(&port(1), pending, false);
        let reset = [UnitAttention::LogicalUnitReset];
        assert_eq!(reported(&known.arrives(&port(1))), reset);
    }

    #[test]
    fn a_port_at_two_numbers_is_away_when_both_are_gone() {
        let known = KnownPorts::new(true);
        let _ = (known.arrives(&port(1)), known.arrives(&port(1)));
        known.leaves(&port(1), AttentionQueue::new(), true);
        assert_eq!(reported(&known.arrives(&port(1))), []);
        known.leaves(&port(1), AttentionQueue::new(), true);
        known.leaves(&port(1), AttentionQueue::new(), true);
        assert_eq!(
            reported(&known.arrives(&port(1))),
            [UnitAttention::NexusLoss]
        );
    }

    #[test]
    fn of_too_many_the_one_that_is_away_longest_is_forgotten_and_reported_all_there_is() {
        let known = KnownPorts::new(true);
        let count = u16::try_from(AWAY_MAX).unwrap() + 1;
        for one in 0..count {
            let _ = known.arrives(&port(one));
            known.leaves(&port(one), AttentionQueue::new(), true);
        }
        assert_eq!(reported(&known.arrives(&port(0))), [UnitAttention::PowerOn]);
        assert_eq!(
            reported(&known.arrives(&port(1))),
            [UnitAttention::NexusLoss]
        );
        assert_eq!(known.known().away, AWAY_MAX - 1);
    }
}
