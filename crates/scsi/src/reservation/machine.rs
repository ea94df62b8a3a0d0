//! The changes: PERSISTENT RESERVE OUT, RESERVE, RELEASE, and what resets and lost nexuses do.
//!
//! Spec: SPC-4 5.13.7 "Registering", 5.13.9 "Reserving", 5.13.11 "Releasing persistent reservations
//! and removing registrations", 5.13.3 "Exceptions to SPC-2 RESERVE and RELEASE behavior".

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{
    Effects, Held, InitiatorPort, Nexus, PrOutCommand, Refusal, ReservationType, Reservations,
    Surroundings, TransportId,
};
use crate::sense::{AdditionalSense, Sense};
use crate::unit_attention::UnitAttention;

/// Fields of the parameter lists that refusals point at.
const SERVICE_KEY_AT: u16 = 8;
const TARGET_PORT_AT: u16 = 18;
const TRANSPORT_IDS_AT: u16 = 24;

/// The fields of REGISTER.
struct Registering<'a> {
    ignore_existing: bool,
    key: u64,
    new_key: u64,
    others: Option<&'a [TransportId]>,
    all_target_ports: bool,
    persist: bool,
}

impl Reservations {
    /// PERSISTENT RESERVE OUT.
    ///
    /// # Errors
    /// RESERVATION CONFLICT or CHECK CONDITION; nothing has changed.
    pub fn apply(
        &mut self,
        nexus: &Nexus,
        command: &PrOutCommand,
        around: &Surroundings<'_>,
    ) -> Result<Effects, Refusal> {
        if self.spc2.is_some() {
            return Err(Refusal::Conflict);
        }
        let persistent_before = self.persistent;
        let mut effects = match command {
            PrOutCommand::Register {
                ignore_existing,
                key,
                new_key,
                others,
                all_target_ports,
                persist,
            } => {
                let registering = Registering {
                    ignore_existing: *ignore_existing,
                    key: *key,
                    new_key: *new_key,
                    others: others.as_deref(),
                    all_target_ports: *all_target_ports,
                    persist: *persist,
                };
                self.register(nexus, &registering, around)
            }
            PrOutCommand::Reserve { key, kind } => self.reserve(nexus, *key, *kind),
            PrOutCommand::Release { key, kind } => self.release(nexus, *key, *kind),
            PrOutCommand::Clear { key } => self.clear(nexus, *key),
            PrOutCommand::Preempt {
                abort,
                key,
                victim,
                kind,
            } => {
                let mut effects = self.preempt(nexus, *key, *victim, *kind)?;
                if !abort {
                    effects.abort.clear();
                }
                Ok(effects)
            }
            PrOutCommand::RegisterAndMove {
                key,
                new_key,
                unregister,
                persist,
                target_port,
                destination,
            } => {
                let destination =
                    self.destination(nexus, *key, (*new_key, *target_port, destination), around)?;
                self.move_to(nexus, destination, *new_key, *unregister);
                self.persistent = *persist;
                Ok(Effects::default())
            }
        }?;
        self.check_invariants();
        if persistent_before || self.persistent {
            effects.persist = Some(self.to_bytes());
        }
        Ok(effects)
    }

    /// # Panics
    /// If an invariant of this machine is broken: a fault of ours, whatever a peer sent.
    fn check_invariants(&self) {
        assert!(self.registrations.values().all(|key| *key != 0), "I1");
        match &self.held {
            None => {}
            Some(held) => match &held.holder {
                Some(holder) => {
                    assert!(!held.kind.all_registrants(), "I2: holder of no one's own");
                    assert!(self.registrations.contains_key(holder), "I2: registered");
                }
                None => {
                    assert!(held.kind.all_registrants(), "I2: holder");
                    assert!(!self.registrations.is_empty(), "I2: somebody");
                }
            },
        }
        assert!(self.spc2.is_none() || self.registrations.is_empty(), "I3");
    }

    fn bump(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// The nexus is registered with this key, or the command conflicts.
    fn authenticate(&self, nexus: &Nexus, key: u64) -> Result<(), Refusal> {
        if self.registrations.get(nexus) == Some(&key) {
            Ok(())
        } else {
            Err(Refusal::Conflict)
        }
    }

    /// `attention` for every registered nexus but `except`.
    fn for_registered(
        &self,
        except: &Nexus,
        attention: UnitAttention,
    ) -> Vec<(Nexus, UnitAttention)> {
        self.registrations
            .keys()
            .filter(|nexus| *nexus != except)
            .map(|nexus| (nexus.clone(), attention))
            .collect()
    }

    fn register(
        &mut self,
        nexus: &Nexus,
        command: &Registering<'_>,
        around: &Surroundings<'_>,
    ) -> Result<Effects, Refusal> {
        let existing = self.registrations.get(nexus).copied();
        if !command.ignore_existing && existing.unwrap_or(0) != command.key {
            return Err(Refusal::Conflict);
        }
        // spec: SPC-4 table "Register behaviors for a REGISTER service action": SPEC_I_PT only
        // makes sense for a new registration.
        if command.others.is_some() && (existing.is_some() || command.new_key == 0) {
            return Err(Sense::invalid_field_in_cdb(1, Some(4)).into());
        }
        let ports: Vec<u16> = if command.all_target_ports {
            let own = core::iter::once(nexus.target_port);
            own.chain(around.target_ports.iter().copied()).collect()
        } else {
            Vec::from([nexus.target_port])
        };
        let mut initiators = Vec::from([nexus.initiator.clone()]);
        if let Some(others) = command.others {
            initiators.extend(self.others(nexus, others, &ports, around)?);
        }
        let wanted: BTreeSet<Nexus> = initiators
            .iter()
            .flat_map(|initiator| ports.iter().map(|port| (initiator.clone(), *port)))
            .map(|(initiator, target_port)| Nexus {
                initiator,
                target_port,
            })
            .collect();
        let mut effects = Effects::default();
        if command.new_key == 0 {
            if existing.is_none() {
                // spec: "do nothing except return GOOD status".
                return Ok(effects);
            }
            for each in &wanted {
                self.unregister(each, nexus, &mut effects);
            }
        } else {
            let new = wanted
                .iter()
                .filter(|each| !self.registrations.contains_key(each));
            let total = self.registrations.len().saturating_add(new.count());
            if total > around.registrations_max {
                let code = AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES;
                return Err(Sense::illegal_request(code).into());
            }
            let keyed = wanted.into_iter().map(|each| (each, command.new_key));
            self.registrations.extend(keyed);
        }
        self.persistent = command.persist;
        self.bump();
        Ok(effects)
    }

    /// The initiator ports that the TransportIDs of SPEC_I_PT name.
    fn others(
        &self,
        nexus: &Nexus,
        ids: &[TransportId],
        ports: &[u16],
        around: &Surroundings<'_>,
    ) -> Result<BTreeSet<InitiatorPort>, Sense> {
        let invalid = Sense::invalid_field_in_parameter_list(TRANSPORT_IDS_AT, None);
        let mut found = BTreeSet::new();
        for id in ids {
            match id {
                TransportId::Port(port) => {
                    let registered = ports.iter().any(|target_port| {
                        let other = Nexus {
                            initiator: port.clone(),
                            target_port: *target_port,
                        };
                        self.registrations.contains_key(&other)
                    });
                    let own = *port == nexus.initiator;
                    if registered || own || !found.insert(port.clone()) {
                        return Err(invalid);
                    }
                }
                TransportId::Device(name) => {
                    let known = around.initiator_ports.iter();
                    let of_device = known.filter(|port| port.name == *name);
                    let before = found.len();
                    found.extend(of_device.filter(|port| **port != nexus.initiator).cloned());
                    // Nobody is known by that name, so there is nothing to register.
                    if found.len() == before {
                        return Err(invalid);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Removes one registration and what hangs on it. Losing the reservation of a registrants-only
    /// type concerns those who stay.
    fn unregister(&mut self, leaving: &Nexus, caller: &Nexus, effects: &mut Effects) {
        if self.registrations.remove(leaving).is_none() {
            return;
        }
        let Some(held) = &self.held else {
            return;
        };
        let kind = held.kind;
        let lost = match &held.holder {
            Some(holder) => holder == leaving,
            None => self.registrations.is_empty(),
        };
        if lost {
            self.held = None;
            if kind.admits_registrants() {
                let released = UnitAttention::ReservationsReleased;
                effects
                    .attentions
                    .extend(self.for_registered(caller, released));
            }
        }
    }

    fn reserve(
        &mut self,
        nexus: &Nexus,
        key: u64,
        kind: ReservationType,
    ) -> Result<Effects, Refusal> {
        self.authenticate(nexus, key)?;
        match &self.held {
            Some(held) if held.kind == kind && self.is_holder(nexus) => {}
            Some(_) => return Err(Refusal::Conflict),
            None => self.hold(nexus, kind),
        }
        Ok(Effects::default())
    }

    fn hold(&mut self, nexus: &Nexus, kind: ReservationType) {
        self.held = Some(Held {
            kind,
            holder: (!kind.all_registrants()).then(|| nexus.clone()),
        });
    }

    fn release(
        &mut self,
        nexus: &Nexus,
        key: u64,
        kind: ReservationType,
    ) -> Result<Effects, Refusal> {
        self.authenticate(nexus, key)?;
        let mut effects = Effects::default();
        let Some(held) = &self.held else {
            return Ok(effects);
        };
        if !self.is_holder(nexus) {
            return Ok(effects);
        }
        if held.kind != kind {
            let code = AdditionalSense::INVALID_RELEASE_OF_PERSISTENT_RESERVATION;
            return Err(Sense::illegal_request(code).into());
        }
        self.held = None;
        if kind.admits_registrants() {
            effects.attentions = self.for_registered(nexus, UnitAttention::ReservationsReleased);
        }
        Ok(effects)
    }

    fn clear(&mut self, nexus: &Nexus, key: u64) -> Result<Effects, Refusal> {
        self.authenticate(nexus, key)?;
        let effects = Effects {
            attentions: self.for_registered(nexus, UnitAttention::ReservationsPreempted),
            ..Effects::default()
        };
        self.held = None;
        self.registrations.clear();
        self.bump();
        Ok(effects)
    }

    /// SPC-4 table "Preempting actions".
    fn preempt(
        &mut self,
        nexus: &Nexus,
        key: u64,
        victim: u64,
        kind: Result<ReservationType, Sense>,
    ) -> Result<Effects, Refusal> {
        self.authenticate(nexus, key)?;
        let all_registrants = self.held.as_ref().is_some_and(|held| held.holder.is_none());
        let holder_key = self
            .held
            .as_ref()
            .and_then(|held| held.holder.as_ref())
            .and_then(|holder| self.registrations.get(holder).copied());
        // Zero names everybody, and only an all-registrants reservation is held by everybody.
        if victim == 0 && !all_registrants {
            return Err(Sense::invalid_field_in_parameter_list(SERVICE_KEY_AT, None).into());
        }
        let takes_over = (victim == 0 && all_registrants) || holder_key == Some(victim);
        let new_kind = if takes_over {
            // Only now SCOPE and TYPE matter.
            Some(kind?)
        } else {
            None
        };
        let losing: Vec<Nexus> = self
            .registrations
            .iter()
            .filter(|(_, own)| victim == 0 || **own == victim)
            // Whoever takes the reservation over keeps the registration that it needs.
            .filter(|(each, _)| !takes_over || *each != nexus)
            .map(|(each, _)| each.clone())
            .collect();
        if losing.is_empty() && !takes_over {
            return Err(Refusal::Conflict);
        }
        let mut effects = Effects::default();
        for each in &losing {
            self.registrations.remove(each);
            if each != nexus {
                let preempted = (each.clone(), UnitAttention::RegistrationsPreempted);
                effects.attentions.push(preempted);
            }
        }
        match new_kind {
            Some(kind) => {
                if self.reservation_type() != Some(kind) {
                    let released = UnitAttention::ReservationsReleased;
                    effects
                        .attentions
                        .extend(self.for_registered(nexus, released));
                }
                self.hold(nexus, kind);
            }
            // An all-registrants reservation ends with its last registrant.
            None if self.registrations.is_empty() => self.held = None,
            None => {}
        }
        effects.abort = losing;
        self.bump();
        Ok(effects)
    }

    /// Who the reservation moves to, or why it does not.
    fn destination(
        &self,
        nexus: &Nexus,
        key: u64,
        (new_key, target_port, destination): (u64, u16, &TransportId),
        around: &Surroundings<'_>,
    ) -> Result<Nexus, Refusal> {
        self.authenticate(nexus, key)?;
        let invalid = |byte| Err(Sense::invalid_field_in_parameter_list(byte, None).into());
        // spec: all-registrants reservations belong to all and cannot be moved.
        let own = self.held.as_ref().and_then(|held| held.holder.as_ref());
        if own != Some(nexus) {
            return Err(Refusal::Conflict);
        }
        if new_key == 0 {
            return invalid(SERVICE_KEY_AT);
        }
        if !around.target_ports.contains(&target_port) {
            return invalid(TARGET_PORT_AT);
        }
        let TransportId::Port(initiator) = destination else {
            return invalid(TRANSPORT_IDS_AT);
        };
        let destination = Nexus {
            initiator: initiator.clone(),
            target_port,
        };
        if destination == *nexus {
            return invalid(TRANSPORT_IDS_AT);
        }
        let known = self.registrations.contains_key(&destination);
        if !known && self.registrations.len() >= around.registrations_max {
            let code = AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES;
            return Err(Sense::illegal_request(code).into());
        }
        Ok(destination)
    }

    fn move_to(&mut self, nexus: &Nexus, destination: Nexus, new_key: u64, unregister: bool) {
        self.registrations.insert(destination.clone(), new_key);
        if unregister {
            self.registrations.remove(nexus);
        }
        if let Some(held) = &mut self.held {
            held.holder = Some(destination);
        }
        self.bump();
    }

    /// RESERVE of a persistent holder, or RELEASE: GOOD, and nothing happens.
    fn spc2_is_covered(&self, nexus: &Nexus) -> bool {
        let registered = self.registrations.contains_key(nexus);
        let shared = self
            .held
            .as_ref()
            .is_some_and(|held| held.kind.admits_registrants());
        self.is_holder(nexus) || (registered && shared)
    }

    /// RESERVE (6) and (10).
    ///
    /// # Errors
    /// RESERVATION CONFLICT.
    pub fn spc2_reserve(&mut self, nexus: &Nexus) -> Result<(), Refusal> {
        if self.spc2_is_covered(nexus) {
            return Ok(());
        }
        let foreign = self.spc2.as_ref().is_some_and(|holder| holder != nexus);
        if foreign || !self.registrations.is_empty() {
            return Err(Refusal::Conflict);
        }
        self.spc2 = Some(nexus.clone());
        self.check_invariants();
        Ok(())
    }

    /// RELEASE (6) and (10). By a nexus that does not hold the reservation it does nothing.
    ///
    /// # Errors
    /// RESERVATION CONFLICT while others are registered.
    pub fn spc2_release(&mut self, nexus: &Nexus) -> Result<(), Refusal> {
        if self.spc2_is_covered(nexus) {
            return Ok(());
        }
        if !self.registrations.is_empty() {
            return Err(Refusal::Conflict);
        }
        if self.spc2.as_ref() == Some(nexus) {
            self.spc2 = None;
        }
        Ok(())
    }

    /// LOGICAL UNIT RESET or a target reset: SPC-2 reservations end, persistent ones stay. True if
    /// one ended.
    pub fn reset(&mut self) -> bool {
        self.spc2.take().is_some()
    }

    /// The nexus is gone: its SPC-2 reservation ends, its registration stays. True if one ended.
    pub fn nexus_lost(&mut self, nexus: &Nexus) -> bool {
        self.spc2.take_if(|holder| holder == nexus).is_some()
    }

    /// After power on: what was not registered with APTPL is gone, and PRGENERATION starts at zero
    /// (SPC-4 6.15.2.2), whatever was stored.
    pub fn power_on(&mut self) {
        if !self.persistent {
            *self = Self::new();
        }
        self.generation = 0;
        self.spc2 = None;
    }
}
