//! The machine against the model, through the bytes of commands; golden parameter data; the stored
//! form.

use super::model::{Model, ModelOp, NEXUSES, Outcome};
use super::*;
use crate::cdb::{PrInAction, PrOut, PrOutAction};
use proptest::prelude::*;
use std::borrow::ToOwned;
use std::collections::BTreeSet;
use std::format;
use std::vec;

fn initiator(number: usize) -> InitiatorPort {
    InitiatorPort {
        name: format!("iqn.2026-11.test:host{number}"),
        isid: [0x80, 0, 0, 0, 1, u8::try_from(number).unwrap()],
    }
}

fn nexus(number: usize) -> Nexus {
    Nexus {
        initiator: initiator(number / 2),
        target_port: u16::try_from(number % 2 + 1).unwrap(),
    }
}

fn number(nexus: &Nexus) -> usize {
    (0..NEXUSES)
        .find(|n| super::test::nexus(*n) == *nexus)
        .unwrap()
}

fn around(ports: &[InitiatorPort]) -> Surroundings<'_> {
    Surroundings {
        target_ports: &[1, 2],
        initiator_ports: ports,
        registrations_max: 64,
    }
}

fn list(key: u64, service_key: u64, flags: u8) -> Vec<u8> {
    let mut list = Vec::new();
    list.extend(key.to_be_bytes());
    list.extend(service_key.to_be_bytes());
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    list
}

/// The command as an initiator sends it: service action, scope and type, parameter list.
fn encode(op: &ModelOp) -> (PrOutAction, u8, Vec<u8>) {
    match op {
        ModelOp::Register {
            ignore,
            key,
            new_key,
            aptpl,
            all_ports,
            others,
        } => {
            let flags =
                u8::from(*aptpl) | u8::from(*all_ports) << 2 | u8::from(others.is_some()) << 3;
            let mut list = list(*key, *new_key, flags);
            if let Some(others) = others {
                let ids: Vec<u8> = others
                    .iter()
                    .flat_map(|other| initiator(*other).transport_id())
                    .collect();
                list.extend(u32::try_from(ids.len()).unwrap().to_be_bytes());
                list.extend(ids);
            }
            let action = if *ignore {
                PrOutAction::RegisterAndIgnoreExistingKey
            } else {
                PrOutAction::Register
            };
            (action, 0, list)
        }
        ModelOp::Reserve { key, kind } => (PrOutAction::Reserve, *kind, list(*key, 0, 0)),
        ModelOp::Release { key, kind } => (PrOutAction::Release, *kind, list(*key, 0, 0)),
        ModelOp::Clear { key } => (PrOutAction::Clear, 0, list(*key, 0, 0)),
        ModelOp::Preempt {
            abort,
            key,
            victim,
            kind,
        } => {
            let action = if *abort {
                PrOutAction::PreemptAndAbort
            } else {
                PrOutAction::Preempt
            };
            (action, *kind, list(*key, *victim, 0))
        }
        ModelOp::Move {
            key,
            new_key,
            unregister,
            aptpl,
            to,
        } => {
            let to = nexus(*to);
            let mut list = Vec::new();
            list.extend(key.to_be_bytes());
            list.extend(new_key.to_be_bytes());
            list.extend([0, u8::from(*aptpl) | u8::from(*unregister) << 1]);
            list.extend(to.target_port.to_be_bytes());
            let id = to.initiator.transport_id();
            list.extend(u32::try_from(id.len()).unwrap().to_be_bytes());
            list.extend(id);
            (PrOutAction::RegisterAndMove, 0, list)
        }
        ModelOp::Spc2Reserve
        | ModelOp::Spc2Release
        | ModelOp::NexusLost
        | ModelOp::Reset
        | ModelOp::Restart => unreachable!(),
    }
}

struct World {
    machine: Reservations,
    disk: Option<Vec<u8>>,
}

impl World {
    fn step(&mut self, who: usize, op: &ModelOp) -> Result<Effects, Refusal> {
        let me = nexus(who);
        // Another node goes on with it.
        self.machine = Reservations::from_whole(&self.machine.to_whole()).unwrap();
        match op {
            ModelOp::Spc2Reserve => self.machine.spc2_reserve(&me).map(|()| Effects::default()),
            ModelOp::Spc2Release => self.machine.spc2_release(&me).map(|()| Effects::default()),
            ModelOp::NexusLost => {
                self.machine.nexus_lost(&me);
                Ok(Effects::default())
            }
            ModelOp::Reset => {
                self.machine.reset();
                Ok(Effects::default())
            }
            ModelOp::Restart => {
                self.machine = match &self.disk {
                    Some(bytes) => Reservations::from_bytes(bytes).unwrap(),
                    None => Reservations::new(),
                };
                self.machine.power_on();
                Ok(Effects::default())
            }
            ModelOp::Register { .. }
            | ModelOp::Reserve { .. }
            | ModelOp::Release { .. }
            | ModelOp::Clear { .. }
            | ModelOp::Preempt { .. }
            | ModelOp::Move { .. } => self.out(&me, op),
        }
    }

    fn out(&mut self, me: &Nexus, op: &ModelOp) -> Result<Effects, Refusal> {
        let (action, kind, list) = encode(op);
        let cdb = PrOut {
            action,
            scope: 0,
            kind,
            parameter_list_length: u32::try_from(list.len()).unwrap(),
        };
        // A conflict with an SPC-2 reservation is noticed before the list is read.
        if !self.machine.permits(me, Conflict::PersistentReserve) {
            return Err(Refusal::Conflict);
        }
        let command = PrOutCommand::parse(&cdb, &list)?;
        let before = self.machine.clone();
        let result = self.machine.apply(me, &command, &around(&[]));
        match &result {
            Ok(effects) => {
                if let Some(bytes) = &effects.persist {
                    self.disk = Some(bytes.clone());
                }
            }
            Err(_) => assert_eq!(self.machine, before, "a refusal changed something"),
        }
        result
    }
}

fn outcome(result: &Result<Effects, Refusal>) -> Outcome {
    match result {
        Ok(_) => Outcome::Good,
        Err(Refusal::Conflict) => Outcome::Conflict,
        Err(Refusal::Check(_)) => Outcome::Check,
    }
}

fn compare(world: &World, model: &Model) {
    let keys: Vec<_> = world
        .machine
        .registrations()
        .map(|(n, k)| (number(n), k))
        .collect();
    let expected: Vec<_> = model.keys.iter().map(|(n, k)| (*n, *k)).collect();
    assert_eq!(keys, expected);
    assert_eq!(world.machine.generation(), model.generation);
    let report = world.machine.report(PrInAction::ReadReservation);
    assert_eq!(report[..4], model.generation.to_be_bytes());
    match model.held {
        None => assert_eq!(report[4..], [0, 0, 0, 0]),
        Some((kind, holder)) => {
            let key = holder.map_or(0, |holder| model.keys[&holder]);
            assert_eq!(report[8..16], key.to_be_bytes());
            assert_eq!(report[21], kind);
        }
    }
    for who in 0..NEXUSES {
        let rights = world.machine.rights(&nexus(who));
        let may = (
            rights.permits(Conflict::Reads),
            rights.permits(Conflict::Writes),
        );
        assert_eq!(may, model.may(who), "nexus {who}");
        assert!(rights.permits(Conflict::Never));
        let foreign = model.spc2.is_some_and(|holder| holder != who);
        assert_eq!(rights.permits(Conflict::OnlySpc2), !foreign);
        assert_eq!(
            rights.permits(Conflict::PersistentReserve),
            model.spc2.is_none()
        );
        assert_eq!(world.machine.is_holder(&nexus(who)), model.holds(who));
    }
}

/// A key: mostly the right one of the nexus that acts.
#[derive(Clone, Copy, Debug)]
enum Key {
    Own,
    Is(u64),
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![4 => Just(Key::Own), 1 => (0u64..4).prop_map(Key::Is)]
}

fn any_kind() -> impl Strategy<Value = u8> {
    prop_oneof![
        9 => proptest::sample::select(vec![1u8, 3, 5, 6, 7, 8]),
        1 => proptest::sample::select(vec![0u8, 2, 4, 9, 15]),
    ]
}

fn resolve(key: Key, own: u64) -> u64 {
    match key {
        Key::Own => own,
        Key::Is(value) => value,
    }
}

#[derive(Clone, Debug)]
enum Plan {
    Register(bool, Key, u64, bool, bool, Option<Vec<usize>>),
    Reserve(Key, u8),
    Release(Key, u8),
    ReleaseHeld,
    Clear(Key),
    Preempt(bool, Key, u64, u8),
    PreemptHolder(bool, u8),
    Move(Key, u64, bool, bool, usize),
    Other(u8),
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let others = prop_oneof![
        6 => Just(None),
        1 => proptest::collection::vec(0usize..3, 0..3).prop_map(Some),
    ];
    prop_oneof![
        8 => (any::<bool>(), any_key(), 0u64..4, any::<bool>(), any::<bool>(), others)
            .prop_map(|(a, b, c, d, e, f)| Plan::Register(a, b, c, d, e, f)),
        6 => (any_key(), any_kind()).prop_map(|(a, b)| Plan::Reserve(a, b)),
        2 => (any_key(), any_kind()).prop_map(|(a, b)| Plan::Release(a, b)),
        2 => Just(Plan::ReleaseHeld),
        1 => any_key().prop_map(Plan::Clear),
        4 => (any::<bool>(), any_key(), 0u64..4, any_kind())
            .prop_map(|(a, b, c, d)| Plan::Preempt(a, b, c, d)),
        2 => (any::<bool>(), any_kind()).prop_map(|(a, b)| Plan::PreemptHolder(a, b)),
        3 => (any_key(), 0u64..4, any::<bool>(), any::<bool>(), 0usize..NEXUSES)
            .prop_map(|(a, b, c, d, e)| Plan::Move(a, b, c, d, e)),
        4 => (0u8..5).prop_map(Plan::Other),
    ]
}

fn plan_to_op(plan: &Plan, who: usize, model: &Model) -> ModelOp {
    let own = model.keys.get(&who).copied().unwrap_or(0);
    match plan.clone() {
        Plan::Register(ignore, key, new_key, aptpl, all_ports, others) => ModelOp::Register {
            ignore,
            key: resolve(key, own),
            new_key,
            aptpl,
            all_ports,
            others,
        },
        Plan::Reserve(key, kind) => ModelOp::Reserve {
            key: resolve(key, own),
            kind,
        },
        Plan::Release(key, kind) => ModelOp::Release {
            key: resolve(key, own),
            kind,
        },
        Plan::ReleaseHeld => ModelOp::Release {
            key: own,
            kind: model.held.map_or(1, |(kind, _)| kind),
        },
        Plan::Clear(key) => ModelOp::Clear {
            key: resolve(key, own),
        },
        Plan::Preempt(abort, key, victim, kind) => ModelOp::Preempt {
            abort,
            key: resolve(key, own),
            victim,
            kind,
        },
        Plan::PreemptHolder(abort, kind) => {
            let holder = model.held.and_then(|(_, holder)| holder);
            let victim = holder.map_or(0, |holder| model.keys[&holder]);
            ModelOp::Preempt {
                abort,
                key: own,
                victim,
                kind,
            }
        }
        Plan::Move(key, new_key, unregister, aptpl, to) => ModelOp::Move {
            key: resolve(key, own),
            new_key,
            unregister,
            aptpl,
            to,
        },
        Plan::Other(0) => ModelOp::Spc2Reserve,
        Plan::Other(1) => ModelOp::Spc2Release,
        Plan::Other(2) => ModelOp::NexusLost,
        Plan::Other(3) => ModelOp::Reset,
        Plan::Other(_) => ModelOp::Restart,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    // spec: SPC-4 6.16.2 "PERSISTENT RESERVE OUT service actions", 5.13.7 "Registering".
    #[test]
    fn the_machine_does_what_the_tables_say(
        plans in proptest::collection::vec((0usize..NEXUSES, any_plan()), 1..40),
    ) {
        let mut world = World { machine: Reservations::new(), disk: None };
        let mut model = Model::default();
        for (who, plan) in plans {
            let op = plan_to_op(&plan, who, &model);
            let (expected, reported, aborted) = model.step(who, &op);
            let result = world.step(who, &op);
            prop_assert_eq!(outcome(&result), expected, "{} {:?}", who, op);
            let effects = result.unwrap_or_default();
            let said: BTreeSet<_> = effects
                .attentions
                .iter()
                .map(|(nexus, attention)| (number(nexus), attention.code().ascq))
                .collect();
            prop_assert_eq!(said, reported, "{} {:?}", who, op);
            let stopped: BTreeSet<_> = effects.abort.iter().map(number).collect();
            prop_assert_eq!(stopped, aborted);
            compare(&world, &model);
        }
    }

    #[test]
    fn any_parameter_list_parses_without_a_panic_and_transport_ids_go_round(
        bytes in proptest::collection::vec(any::<u8>(), 0..96),
        action in 0u8..8,
    ) {
        let mut cdb = [0u8; 10];
        cdb[0] = 0x5f;
        cdb[1] = action;
        cdb[8] = u8::try_from(bytes.len()).unwrap();
        let Ok(crate::Command::PersistentReserveOut(out)) = crate::Command::parse(&cdb) else {
            panic!("not a PERSISTENT RESERVE OUT");
        };
        if let Ok(command) = PrOutCommand::parse(&out, &bytes) {
            let mut machine = Reservations::new();
            let _ = machine.apply(&nexus(0), &command, &around(&[]));
        }
        if let Some(id) = TransportId::parse(&bytes) {
            prop_assert_eq!(TransportId::parse(&id.to_bytes()), Some(id));
        }
    }

    #[test]
    fn damaged_records_are_refused(at in 0usize..200, bit in 0u8..8) {
        let machine = two_registered();
        let mut whole = machine.to_whole();
        prop_assert!(Reservations::from_bytes(&whole).is_err(), "it is another form");
        let place = at % whole.len();
        whole[place] ^= 1 << bit;
        prop_assert!(Reservations::from_whole(&whole).is_err());
        prop_assert!(Reservations::from_whole(&whole[..place]).is_err());
        let mut bytes = machine.to_bytes();
        prop_assert!(Reservations::from_whole(&bytes).is_err());
        prop_assert_eq!(Reservations::from_bytes(&bytes), Ok(machine));
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(Reservations::from_bytes(&bytes).is_err());
        prop_assert!(Reservations::from_bytes(&bytes[..at]).is_err());
    }
}

fn two_registered() -> Reservations {
    let mut machine = Reservations::new();
    for (who, key) in [(0, 0x11), (3, 0x22)] {
        let command = PrOutCommand::Register {
            ignore_existing: true,
            key: 0,
            new_key: key,
            others: None,
            all_target_ports: false,
            persist: true,
        };
        machine.apply(&nexus(who), &command, &around(&[])).unwrap();
    }
    let command = PrOutCommand::Reserve {
        key: 0x22,
        kind: ReservationType::ExclusiveAccessRegistrantsOnly,
    };
    machine.apply(&nexus(3), &command, &around(&[])).unwrap();
    machine
}

// spec: SPC-4 6.15 "PERSISTENT RESERVE IN command".
#[test]
fn parameter_data_of_two_registrants_has_the_golden_bytes() {
    let machine = two_registered();
    let keys = [
        0, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0x22,
    ];
    assert_eq!(machine.report(PrInAction::ReadKeys), keys);
    let reservation = [
        0, 0, 0, 2, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0, 0, 0, 0, 6, 0, 0,
    ];
    assert_eq!(machine.report(PrInAction::ReadReservation), reservation);
    let capabilities = [0, 8, 0x1d, 0x91, 0xea, 1, 0, 0];
    assert_eq!(machine.report(PrInAction::ReportCapabilities), capabilities);
    let full = machine.report(PrInAction::ReadFullStatus);
    let id = b"iqn.2026-11.test:host1,i,0x800000000101\0";
    let second = &full[8 + 24 + 4 + id.len()..];
    let head = [
        0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 2, 0, 0, 0, 44, 0x45, 0, 0, 40,
    ];
    assert_eq!(second[..28], head);
    assert_eq!(&second[28..], id);
}

#[test]
fn a_device_transport_id_means_every_port_that_is_logged_in() {
    let ports = [initiator(1), initiator(2)];
    let named = |name: &str| PrOutCommand::Register {
        ignore_existing: false,
        key: 0,
        new_key: 7,
        others: Some(vec![TransportId::Device(name.to_owned())]),
        all_target_ports: false,
        persist: false,
    };
    let mut machine = Reservations::new();
    let known = named("iqn.2026-11.test:host1");
    machine.apply(&nexus(0), &known, &around(&ports)).unwrap();
    let registered: Vec<_> = machine.registrations().map(|(n, _)| number(n)).collect();
    assert_eq!(registered, [0, 2]);
    let unknown = named("iqn.2026-11.test:nobody");
    let refused = Reservations::new().apply(&nexus(0), &unknown, &around(&ports));
    let sense = Sense::invalid_field_in_parameter_list(24, None);
    assert_eq!(refused, Err(Refusal::Check(sense)));
}

#[test]
fn registrations_are_bounded() {
    let mut machine = two_registered();
    let command = PrOutCommand::Register {
        ignore_existing: true,
        key: 0,
        new_key: 5,
        others: None,
        all_target_ports: false,
        persist: true,
    };
    let tight = Surroundings {
        registrations_max: 2,
        ..around(&[])
    };
    let refused = machine.apply(&nexus(5), &command, &tight);
    let code = crate::AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES;
    assert_eq!(refused, Err(Refusal::Check(Sense::illegal_request(code))));
    assert!(machine.apply(&nexus(0), &command, &tight).is_ok());
}

// spec: SPC-4 6.16.2 "PERSISTENT RESERVE OUT service actions".
#[test]
fn a_basic_parameter_list_has_24_bytes() {
    for len in 0..40u32 {
        let cdb = PrOut {
            action: PrOutAction::Clear,
            scope: 0,
            kind: 0,
            parameter_list_length: len,
        };
        let parsed = PrOutCommand::parse(&cdb, &[0; 40]);
        if len == 24 {
            assert_eq!(parsed, Ok(PrOutCommand::Clear { key: 0 }));
        } else {
            assert_eq!(parsed, Err(Sense::parameter_list_length_error()));
        }
    }
}

// spec: SPC-4 5.13.5 "Preserving persistent reservations and registrations".
#[test]
fn nothing_is_stored_without_aptpl() {
    let command = PrOutCommand::Register {
        ignore_existing: true,
        key: 0,
        new_key: 5,
        others: None,
        all_target_ports: false,
        persist: false,
    };
    let mut machine = Reservations::new();
    let effects = machine.apply(&nexus(0), &command, &around(&[])).unwrap();
    assert_eq!(effects.persist, None);
    let mut machine = two_registered();
    let effects = machine.apply(&nexus(0), &command, &around(&[])).unwrap();
    let stored = Reservations::from_bytes(&effects.persist.unwrap()).unwrap();
    assert_eq!(stored, Reservations::new());
}

#[test]
fn a_preempt_that_takes_over_points_at_the_wrong_type_or_scope() {
    for (scope, kind, bit) in [(0, 4, 3), (2, 6, 7)] {
        let cdb = PrOut {
            action: PrOutAction::Preempt,
            scope,
            kind,
            parameter_list_length: 24,
        };
        let mut machine = two_registered();
        let take_over = PrOutCommand::parse(&cdb, &list(0x11, 0x22, 0)).unwrap();
        let refused = machine.apply(&nexus(0), &take_over, &around(&[]));
        let sense = Sense::invalid_field_in_cdb(2, Some(bit));
        assert_eq!(refused, Err(Refusal::Check(sense)));
        let own = PrOutCommand::parse(&cdb, &list(0x22, 0x11, 0)).unwrap();
        assert!(machine.apply(&nexus(3), &own, &around(&[])).is_ok());
    }
}
