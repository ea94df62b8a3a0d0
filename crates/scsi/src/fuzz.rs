//! Entry points for fuzzers: arbitrary bytes in, and a panic if an oracle is broken.
//!
//! Each is also run over random bytes by the tests of this crate. They allocate what the input's
//! length allows and nothing more.

use alloc::string::String;
use alloc::vec::Vec;
use units::{BlockCount, BlockSize};

use crate::admission::{self, WriteProtection};
use crate::bytes::Reader;
use crate::cdb::{Command, ModeForm, ModeSelect, ModeSense, PageControl, PrInAction};
use crate::copy::ExtendedCopy;
use crate::description::{AtomicLimits, Provisioning, UnitDescription, UnitLimits};
use crate::lun::{self, LunAddress};
use crate::mode::{ModePages, ModeParameters, ModeUnit};
use crate::opcode::Conflict;
use crate::provisioning;
use crate::reservation::{
    InitiatorPort, Nexus, PrOutCommand, Reservations, Surroundings, TransportId,
};
use crate::sense::{Sense, SenseFormat};

const CAPACITY: u64 = 4096;

fn unit() -> UnitDescription {
    UnitDescription {
        revision: String::from("1"),
        serial: String::from("0"),
        naa: [0x60; 16],
        block_size: BlockSize::B512,
        physical_block_exponent: 0,
        lowest_aligned_lba: 0,
        block_count: BlockCount(CAPACITY),
        limits: UnitLimits {
            transfer_blocks_max: 1024,
            unmap_blocks_max: u32::MAX,
            unmap_descriptors_max: 16,
            compare_and_write_blocks_max: 16,
            atomic: AtomicLimits {
                blocks_max: 8,
                ..AtomicLimits::default()
            },
            ..UnitLimits::default()
        },
        provisioning: Provisioning {
            thin: true,
            unmap: true,
            write_same_16: true,
            write_same_10: true,
            ..Provisioning::default()
        },
        read_only: false,
        write_cache: true,
    }
}

/// A CDB. Oracles: bytes after the CDB do not matter, what was understood can be written as a CDB
/// that means the same, and what is admitted lies on the medium.
pub fn cdb(bytes: &[u8]) {
    let Ok((command, row)) = Command::parse_with_opcode(bytes) else {
        return;
    };
    let exact = bytes.get(..row.cdb_length()).unwrap_or(bytes);
    assert_eq!(
        Command::parse(exact),
        Ok(command),
        "bytes after the CDB matter"
    );
    let written = command.to_cdb().expect("what was parsed fits a CDB");
    assert_eq!(Command::parse(&written), Ok(command), "written differently");
    let unit = unit();
    if let Ok(range) = admission::check(&command, row, &unit, WriteProtection::None) {
        assert!(range.end().0 <= CAPACITY, "admitted beyond the medium");
        assert!(
            command.transfer(unit.block_size).is_some(),
            "admitted without a size"
        );
    }
}

/// Sense data. Oracle: what was understood survives being written and read again.
pub fn sense(bytes: &[u8]) {
    if let Some(sense) = Sense::parse(bytes) {
        let again = Sense::parse(&sense.to_bytes(SenseFormat::Descriptor));
        assert_eq!(again, Some(sense), "sense data does not go round");
    }
}

/// A MODE SELECT parameter list; the first byte chooses the form. Oracle: what was accepted shows
/// in MODE SENSE, and sending that back changes nothing.
pub fn mode_select(bytes: &[u8]) {
    let Some((first, list)) = bytes.split_first() else {
        return;
    };
    let form = if first & 1 == 0 {
        ModeForm::Six
    } else {
        ModeForm::Ten
    };
    let unit = ModeUnit {
        block_size: BlockSize::B512,
        block_count: BlockCount(CAPACITY),
        read_only: false,
        write_cache_changeable: true,
        task_set_changeable: true,
        task_aborted_changeable: true,
        default: ModeParameters::default(),
    };
    let select = |list: &[u8]| ModeSelect {
        form,
        page_format: true,
        save_pages: first & 2 != 0,
        parameter_list_length: u16::try_from(list.len()).unwrap_or(u16::MAX),
    };
    let before = ModePages::from_saved(unit.default);
    let Ok(after) = before.select(&select(list), list, &unit) else {
        return;
    };
    let everything = ModeSense {
        form,
        disable_block_descriptors: false,
        long_lba_accepted: false,
        page_control: PageControl::Current,
        page: 0x3f,
        subpage: 0xff,
        allocation_length: u16::MAX,
    };
    let data = after.sense(&everything, &unit);
    let data = data.expect("all pages are always there");
    let again = after.select(&select(&data), &data, &unit);
    let again = again.expect("a unit accepts what it reported");
    assert_eq!(
        again.current, after.current,
        "MODE SENSE sent back changed something"
    );
}

/// A history of PERSISTENT RESERVE OUT, RESERVE and RELEASE by four nexuses: each step is four
/// bytes (who, service action, scope and type, length) and a parameter list. Oracles: the machine's
/// invariants, a refusal changes nothing, a holder has all rights, stored bytes go round.
pub fn reservations(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut machine = Reservations::new();
    while let Some([who, action, kind, length]) = reader.array() {
        let nexus = Nexus {
            initiator: InitiatorPort {
                name: String::from(if who & 1 == 0 { "iqn.a" } else { "iqn.b" }),
                isid: [0; 6],
            },
            target_port: if who & 2 == 0 { 1 } else { 2 },
        };
        let length = usize::from(length).min(reader.rest().len());
        let list = reader.take(length).unwrap_or_default();
        let before = machine.clone();
        let refused = match action {
            0x10 => machine.spc2_reserve(&nexus).is_err(),
            0x11 => machine.spc2_release(&nexus).is_err(),
            0x12 => {
                machine.nexus_lost(&nexus);
                false
            }
            0x13 => {
                machine.power_on();
                false
            }
            _ => !reserve_out(&mut machine, &nexus, (action, kind), list),
        };
        assert!(!refused || machine == before, "a refusal changed something");
        if machine.is_holder(&nexus) {
            assert!(
                machine.permits(&nexus, Conflict::Writes),
                "a holder is shut out"
            );
        }
        for action in [PrInAction::ReadKeys, PrInAction::ReadFullStatus] {
            let report = machine.report(action);
            assert!(report.len() >= 8, "a report without its header");
        }
    }
}

/// True if it was done.
fn reserve_out(
    machine: &mut Reservations,
    nexus: &Nexus,
    (action, kind): (u8, u8),
    list: &[u8],
) -> bool {
    let length = u8::try_from(list.len()).unwrap_or(u8::MAX);
    let cdb = [0x5f, action & 0x1f, kind, 0, 0, 0, 0, 0, length, 0];
    let Ok(Command::PersistentReserveOut(out)) = Command::parse(&cdb) else {
        return false;
    };
    let Ok(command) = PrOutCommand::parse(&out, list) else {
        return false;
    };
    let around = Surroundings {
        target_ports: &[1, 2],
        initiator_ports: core::slice::from_ref(&nexus.initiator),
        registrations_max: 8,
    };
    let Ok(effects) = machine.apply(nexus, &command, &around) else {
        return false;
    };
    if let Some(bytes) = effects.persist {
        let stored = Reservations::from_bytes(&bytes).expect("what was written can be read");
        assert_eq!(
            stored.to_bytes(),
            bytes,
            "stored reservations do not go round"
        );
    }
    true
}

/// Stored reservations and a TransportID. Oracle: what was accepted goes round.
pub fn stored_reservations(bytes: &[u8]) {
    if let Ok(machine) = Reservations::from_bytes(bytes) {
        assert_eq!(
            machine.to_bytes(),
            bytes,
            "a second form of the same reservations"
        );
    }
    if let Some(id) = TransportId::parse(bytes) {
        assert_eq!(TransportId::parse(&id.to_bytes()), Some(id), "TransportID");
    }
}

/// UNMAP and EXTENDED COPY parameter lists. Oracle: ranges lie on the medium, segments name targets
/// that are there.
pub fn parameter_lists(bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let ranges = provisioning::unmap_ranges(bytes, length, &unit());
    for range in ranges.unwrap_or_default() {
        assert!(range.end().0 <= CAPACITY, "unmaps beyond the medium");
        assert!(!range.is_empty(), "unmaps nothing");
    }
    if let Ok(Some(copy)) = ExtendedCopy::parse(bytes, length.into()) {
        for segment in &copy.segments {
            for index in [segment.source, segment.destination] {
                let target = copy.targets.get(usize::from(index));
                assert!(
                    target.is_some_and(|target| !target.null),
                    "copies with nobody"
                );
            }
        }
    }
}

/// Eight bytes of LUN. Oracle: a number that is understood is also encoded, and understood again.
pub fn lun(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<8>() else {
        return;
    };
    if let LunAddress::Unit(number) = lun::decode(*bytes) {
        let encoded = lun::encode(number).map(lun::decode);
        assert_eq!(encoded, Some(LunAddress::Unit(number)), "LUN");
    }
}

/// Everything above on the same bytes.
pub fn all(bytes: &[u8]) {
    let targets: [fn(&[u8]); 7] = [
        cdb,
        sense,
        mode_select,
        reservations,
        stored_reservations,
        parameter_lists,
        lun,
    ];
    for target in targets {
        target(bytes);
    }
}

/// Inputs that reach deep, to start a corpus with: name and bytes.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut register = Vec::from([0, 0x06, 0, 24]);
    register.extend([0; 15]);
    register.extend([1, 0, 0, 0, 0, 1, 0, 0, 0]);
    let mut history = register.clone();
    history.extend([0, 0x01, 0x06, 24, 0, 0, 0, 0, 0, 0, 0, 1]);
    history.extend([0; 16]);
    let mut unmap = Vec::from([0, 22, 0, 16, 0, 0, 0, 0]);
    unmap.extend([0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0]);
    Vec::from([
        (
            "read_16",
            Vec::from([0x88, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0]),
        ),
        ("register_and_reserve", history),
        ("unmap", unmap),
        ("control_page", {
            let mut list = Vec::from([0, 0, 0, 0, 0, 0x0a, 0x0a, 0x06, 0x10, 8, 0]);
            list.extend([0, 0, 0xff, 0xff, 0, 0]);
            list
        }),
    ])
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seeds_pass_and_reach_what_they_are_named_for() {
        for (name, bytes) in seeds() {
            all(&bytes);
            let reached = match name {
                "read_16" => Command::parse(&bytes).is_ok(),
                "unmap" => {
                    let length = u16::try_from(bytes.len()).unwrap();
                    provisioning::unmap_ranges(&bytes, length, &unit()).is_ok_and(|r| r.len() == 1)
                }
                "register_and_reserve" => {
                    let (head, rest) = bytes.split_at(28);
                    let list = PrOutCommand::parse(
                        &crate::cdb::PrOut {
                            action: crate::cdb::PrOutAction::Reserve,
                            scope: 0,
                            kind: 6,
                            parameter_list_length: 24,
                        },
                        &rest[4..],
                    );
                    head[1] == 6 && matches!(list, Ok(PrOutCommand::Reserve { key: 1, .. }))
                }
                _ => bytes[5] == 0x0a,
            };
            assert!(reached, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        #[test]
        fn random_bytes_break_no_oracle(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            all(&bytes);
        }

        #[test]
        fn mutated_seeds_break_no_oracle(
            pick in 0usize..4, changes in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = seeds().swap_remove(pick).1;
            for (at, value) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = value;
            }
            all(&bytes);
        }
    }
}
