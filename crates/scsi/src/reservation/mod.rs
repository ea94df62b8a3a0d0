//! Reservations: who may use the unit, and how.
//!
//! Persistent reservations (SPC-4) and the RESERVE and RELEASE of SPC-2, which exclude each other.
//! A registration belongs to an I_T nexus, which is named by transport identity, so that a second
//! node can hold the same truth.
//!
//! **Contract.** A synchronous machine. [`Reservations::apply`] either changes the state as a whole
//! and says what follows from it ([`Effects`]), or refuses and changes nothing. The caller makes
//! the bytes in `persist` durable before it answers GOOD, establishes the unit attentions, and
//! aborts the tasks. A caller that must not show a change that was not made durable applies to a
//! clone and swaps. [`Reservations::rights`] is small and copied to every core; plain reads and
//! writes ask that.
//!
//! **Invariants.** I1: no registration has key zero. I2: a reservation that is not of an
//! all-registrants type has a holder, who is registered; one that is has none, and somebody is
//! registered. I3: an SPC-2 reservation and a registration never exist together.
//!
//! **Failure model.** Damaged stored bytes are refused whole; see `docs/formats/reservations.md`.
//!
//! Spec: SPC-4 5.13 "Reservations", 6.15 "PERSISTENT RESERVE IN", 6.16 "PERSISTENT RESERVE OUT";
//! SPC-2 5.5.1 "Reservations overview".

mod machine;
#[cfg(test)]
mod model;
mod nexus;
mod parameters;
mod report;
mod store;
#[cfg(test)]
mod test;

pub use nexus::{InitiatorPort, Nexus, TransportId};
pub use parameters::PrOutCommand;
pub use store::StoreError;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::opcode::Conflict;
use crate::sense::Sense;
use crate::unit_attention::UnitAttention;

/// TYPE of a persistent reservation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ReservationType {
    /// 1h Write Exclusive.
    WriteExclusive,
    /// 3h Exclusive Access.
    ExclusiveAccess,
    /// 5h Write Exclusive - Registrants Only.
    WriteExclusiveRegistrantsOnly,
    /// 6h Exclusive Access - Registrants Only.
    ExclusiveAccessRegistrantsOnly,
    /// 7h Write Exclusive - All Registrants.
    WriteExclusiveAllRegistrants,
    /// 8h Exclusive Access - All Registrants.
    ExclusiveAccessAllRegistrants,
}

impl ReservationType {
    /// The TYPE code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::WriteExclusive => 1,
            Self::ExclusiveAccess => 3,
            Self::WriteExclusiveRegistrantsOnly => 5,
            Self::ExclusiveAccessRegistrantsOnly => 6,
            Self::WriteExclusiveAllRegistrants => 7,
            Self::ExclusiveAccessAllRegistrants => 8,
        }
    }

    /// The type of a TYPE code; obsolete and reserved codes have none.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::WriteExclusive),
            3 => Some(Self::ExclusiveAccess),
            5 => Some(Self::WriteExclusiveRegistrantsOnly),
            6 => Some(Self::ExclusiveAccessRegistrantsOnly),
            7 => Some(Self::WriteExclusiveAllRegistrants),
            8 => Some(Self::ExclusiveAccessAllRegistrants),
            _ => None,
        }
    }

    /// Every registered nexus is a holder.
    #[must_use]
    pub const fn all_registrants(self) -> bool {
        matches!(
            self,
            Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants
        )
    }

    /// Registered nexuses have the holder's rights.
    const fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    /// Everybody may read.
    const fn admits_readers(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive
                | Self::WriteExclusiveRegistrantsOnly
                | Self::WriteExclusiveAllRegistrants
        )
    }
}

/// The persistent reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Held {
    kind: ReservationType,
    /// I2: present unless the type is all-registrants.
    holder: Option<Nexus>,
}

/// What one nexus may do, while nothing changes. Small, to be kept by every core.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rights {
    reads: bool,
    writes: bool,
    /// No SPC-2 reservation of another nexus.
    no_foreign_spc2: bool,
    /// No SPC-2 reservation at all.
    no_spc2: bool,
}

impl Rights {
    /// Everything: nothing is reserved.
    pub const FULL: Self = Self {
        reads: true,
        writes: true,
        no_foreign_spc2: true,
        no_spc2: true,
    };

    /// A command of this class is not excluded by a reservation.
    #[must_use]
    pub const fn permits(self, class: Conflict) -> bool {
        match class {
            Conflict::Never | Conflict::Spc2Reserve => true,
            Conflict::OnlySpc2 => self.no_foreign_spc2,
            Conflict::Reads => self.reads,
            Conflict::Writes => self.writes,
            Conflict::PersistentReserve => self.no_spc2,
        }
    }
}

/// What surrounds a command.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The relative target port identifiers of the target: for ALL_TG_PT and REGISTER AND MOVE.
    pub target_ports: &'a [u16],
    /// Initiator ports that are logged in: a TransportID without an ISID means those of its name.
    pub initiator_ports: &'a [InitiatorPort],
    /// The most registrations that are kept.
    pub registrations_max: usize,
}

/// What follows from a command that succeeded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// Unit attentions to establish.
    pub attentions: Vec<(Nexus, UnitAttention)>,
    /// Nexuses whose tasks are to be aborted; the PERSISTENT RESERVE OUT itself is not.
    pub abort: Vec<Nexus>,
    /// To be made durable before GOOD is answered.
    pub persist: Option<Vec<u8>>,
}

/// Why a command is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// RESERVATION CONFLICT status.
    Conflict,
    /// CHECK CONDITION with this sense data.
    Check(Sense),
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Self {
        Self::Check(sense)
    }
}

/// The reservations of one logical unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reservations {
    generation: u32,
    /// The last APTPL.
    persistent: bool,
    registrations: BTreeMap<Nexus, u64>,
    held: Option<Held>,
    spc2: Option<Nexus>,
}

impl Reservations {
    /// Nothing reserved, nobody registered.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            generation: 0,
            persistent: false,
            registrations: BTreeMap::new(),
            held: None,
            spc2: None,
        }
    }

    /// PRGENERATION.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The nexuses that are registered, and their keys.
    pub fn registrations(&self) -> impl Iterator<Item = (&Nexus, u64)> {
        self.registrations.iter().map(|(nexus, key)| (nexus, *key))
    }

    /// The type of the persistent reservation.
    #[must_use]
    pub fn reservation_type(&self) -> Option<ReservationType> {
        self.held.as_ref().map(|held| held.kind)
    }

    /// This nexus holds the persistent reservation.
    #[must_use]
    pub fn is_holder(&self, nexus: &Nexus) -> bool {
        match &self.held {
            None => false,
            Some(held) => match &held.holder {
                Some(holder) => holder == nexus,
                None => self.registrations.contains_key(nexus),
            },
        }
    }

    /// What a nexus may do until the next change.
    #[must_use]
    pub fn rights(&self, nexus: &Nexus) -> Rights {
        if let Some(holder) = &self.spc2 {
            let own = holder == nexus;
            return Rights {
                reads: own,
                writes: own,
                no_foreign_spc2: own,
                no_spc2: false,
            };
        }
        let Some(held) = &self.held else {
            return Rights::FULL;
        };
        let registered = self.registrations.contains_key(nexus);
        let full = self.is_holder(nexus) || (registered && held.kind.admits_registrants());
        Rights {
            reads: full || held.kind.admits_readers(),
            writes: full,
            ..Rights::FULL
        }
    }

    /// A command of this class is not excluded for this nexus.
    #[must_use]
    pub fn permits(&self, nexus: &Nexus, class: Conflict) -> bool {
        self.rights(nexus).permits(class)
    }
}
