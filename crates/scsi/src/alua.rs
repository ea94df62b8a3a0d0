//! Asymmetric logical unit access: what is reported, and which command is served in which state.
//!
//! Spec: SPC-4 5.15 "Target port group access states", 6.37 "REPORT TARGET PORT GROUPS command".

use alloc::vec::Vec;

use crate::bytes::{Writer, flag};
use crate::opcode::Accessible;
use crate::sense::{AdditionalSense, Sense, SenseKey};

/// ASYMMETRIC ACCESS STATE of a target port group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AccessState {
    /// 0h: full speed.
    ActiveOptimized,
    /// 1h: works, but another group is faster.
    ActiveNonOptimized,
    /// 2h: waits to become active.
    Standby,
    /// 3h: a limited set of commands.
    Unavailable,
    /// Eh: not accessible; only reported, never chosen by a state change command.
    Offline,
    /// Fh: between two states.
    Transitioning,
}

impl AccessState {
    /// The state's number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::ActiveOptimized => 0x0,
            Self::ActiveNonOptimized => 0x1,
            Self::Standby => 0x2,
            Self::Unavailable => 0x3,
            Self::Offline => 0xe,
            Self::Transitioning => 0xf,
        }
    }

    /// The bit that says that a group can be in this state.
    const fn supported_bit(self) -> u8 {
        match self {
            Self::ActiveOptimized => 0x01,
            Self::ActiveNonOptimized => 0x02,
            Self::Standby => 0x04,
            Self::Unavailable => 0x08,
            Self::Offline => 0x40,
            Self::Transitioning => 0x80,
        }
    }

    /// Whether a command of this class is served.
    ///
    /// # Errors
    /// [`Denial`] says how it ends.
    pub const fn admits(self, class: Accessible) -> Result<(), Denial> {
        let standby = AdditionalSense::LOGICAL_UNIT_NOT_ACCESSIBLE_TARGET_PORT_IN_STANDBY_STATE;
        let unavailable =
            AdditionalSense::LOGICAL_UNIT_NOT_ACCESSIBLE_TARGET_PORT_IN_UNAVAILABLE_STATE;
        let code = match (self, class) {
            (_, Accessible::Always)
            | (Self::ActiveOptimized | Self::ActiveNonOptimized, _)
            | (Self::Standby, Accessible::Standby) => return Ok(()),
            // CHECK CONDITION with ASYMMETRIC ACCESS STATE TRANSITION makes Linux give up the path
            // after five tries; BUSY is retried until the transition is over.
            (Self::Transitioning, _) => return Err(Denial::Busy),
            (Self::Standby, Accessible::Active) => standby,
            (Self::Unavailable, _) => unavailable,
            (Self::Offline, _) => AdditionalSense::LOGICAL_UNIT_NOT_READY_OFFLINE,
        };
        Err(Denial::Check(Sense::new(SenseKey::NotReady, code)))
    }
}

/// How a command ends that its port group does not serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denial {
    /// BUSY status.
    Busy,
    /// CHECK CONDITION with this sense data.
    Check(Sense),
}

/// One target port group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortGroup {
    /// TARGET PORT GROUP.
    pub group: u16,
    /// PREF.
    pub preferred: bool,
    /// The asymmetric access state that REPORT TARGET PORT GROUPS gives (SPC-4 5.15.2.4).
    pub state: AccessState,
    /// The states it can be in.
    pub supported: Vec<AccessState>,
    /// STATUS CODE 02h: the state was changed by us (implicitly); 00h otherwise.
    pub changed: bool,
    /// The relative target port identifiers in it.
    pub ports: Vec<u16>,
}

/// REPORT TARGET PORT GROUPS parameter data, before it is cut to the allocation length. With the
/// extended header, `transition_seconds` is the IMPLICIT TRANSITION TIME.
#[must_use]
pub fn report(groups: &[PortGroup], extended: bool, transition_seconds: u8) -> Vec<u8> {
    let mut out = Writer::new();
    out.counted32(|out| {
        if extended {
            out.u8(0x10).u8(transition_seconds).be16(0);
        }
        for group in groups {
            let supported = group.supported.iter();
            let supported = supported.fold(0, |bits, state| bits | state.supported_bit());
            out.u8(flag(group.preferred, 7) | group.state.code());
            out.u8(supported).be16(group.group).u8(0);
            out.u8(if group.changed { 0x02 } else { 0x00 }).u8(0);
            out.u8(u8::try_from(group.ports.len()).unwrap_or(u8::MAX));
            for port in group.ports.iter().take(255) {
                out.be16(0).be16(*port);
            }
        }
    });
    out.finish()
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::opcode::TABLE;
    use std::vec;

    const STATES: [AccessState; 6] = [
        AccessState::ActiveOptimized,
        AccessState::ActiveNonOptimized,
        AccessState::Standby,
        AccessState::Unavailable,
        AccessState::Offline,
        AccessState::Transitioning,
    ];

    #[test]
    fn one_group_has_the_golden_bytes_with_and_without_the_extended_header() {
        let group = PortGroup {
            group: 1,
            preferred: true,
            state: AccessState::ActiveOptimized,
            supported: vec![AccessState::ActiveOptimized, AccessState::Transitioning],
            changed: false,
            ports: vec![1, 2],
        };
        let body = [0x80, 0x81, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
        let plain = report(core::slice::from_ref(&group), false, 0);
        assert_eq!(plain[..4], [0, 0, 0, 16]);
        assert_eq!(plain[4..], body);
        let extended = report(&[group], true, 60);
        assert_eq!(extended[..8], [0, 0, 0, 20, 0x10, 60, 0, 0]);
        assert_eq!(extended[8..], body);
    }

    #[test]
    fn discovery_works_in_every_state_and_media_access_only_in_active_ones() {
        for row in TABLE {
            for state in STATES {
                let admitted = state.admits(row.accessible).is_ok();
                let active = state.code() < 2;
                match row.name {
                    "INQUIRY" | "REPORT LUNS" | "REQUEST SENSE" | "REPORT TARGET PORT GROUPS" => {
                        assert!(admitted);
                    }
                    "READ (10)" | "WRITE (16)" | "TEST UNIT READY" | "UNMAP" => {
                        assert_eq!(admitted, active, "{} {state:?}", row.name);
                    }
                    _ => assert!(admitted || !active),
                }
            }
        }
    }

    #[test]
    fn a_transition_is_answered_busy_and_others_say_where_they_stand() {
        let denied = |state: AccessState| state.admits(Accessible::Active);
        assert_eq!(denied(AccessState::Transitioning), Err(Denial::Busy));
        for (state, ascq) in [
            (AccessState::Standby, 0x0b),
            (AccessState::Unavailable, 0x0c),
            (AccessState::Offline, 0x12),
        ] {
            let code = AdditionalSense { asc: 4, ascq };
            let sense = Sense::new(SenseKey::NotReady, code);
            assert_eq!(denied(state), Err(Denial::Check(sense)));
        }
    }
}
