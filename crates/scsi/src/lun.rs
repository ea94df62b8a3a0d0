//! Logical unit numbers on the wire, REPORT LUNS, and what is answered where no unit is.
//!
//! Single level only. 0 to 255 use the peripheral device addressing method, 256 to 16383 flat space
//! addressing; both methods are understood for every number that they can express.
//!
//! Spec: SAM-5 4.7 "Logical unit number (LUN)"; SPC-4 6.33 "REPORT LUNS command", 8 "Well-known
//! logical units".

use alloc::vec::Vec;

use crate::bytes::Writer;
use crate::cdb::{Command, ReportLunsSelect};
use crate::inquiry::{Peripheral, standard_with_revision};
use crate::sense::{AdditionalSense, Sense, SenseFormat, SenseKey};
use crate::vpd;

/// The highest number that flat space addressing can express.
pub const LUN_MAX: u16 = 0x3fff;

/// The REPORT LUNS well-known logical unit.
const REPORT_LUNS: [u8; 8] = [0xc1, 0x01, 0, 0, 0, 0, 0, 0];

/// What eight bytes of LUN address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LunAddress {
    /// A unit by number, 0 to 16383.
    Unit(u16),
    /// The REPORT LUNS well-known logical unit.
    ReportLuns,
    /// Nothing that we can have: another level, bus, method or well-known unit.
    Incorrect,
}

/// The eight bytes of unit `number`; `None` above [`LUN_MAX`].
#[must_use]
pub fn encode(number: u16) -> Option<[u8; 8]> {
    let [high, low] = number.to_be_bytes();
    match number {
        0..=0xff => Some([0, low, 0, 0, 0, 0, 0, 0]),
        0x100..=LUN_MAX => Some([0x40 | high, low, 0, 0, 0, 0, 0, 0]),
        _ => None,
    }
}

/// What the eight bytes address.
#[must_use]
pub const fn decode(bytes: [u8; 8]) -> LunAddress {
    let [first, second, rest @ ..] = bytes;
    if !matches!(rest, [0, 0, 0, 0, 0, 0]) {
        return LunAddress::Incorrect;
    }
    match (first, second) {
        (0x00, number) => LunAddress::Unit(number as u16),
        (0x40..=0x7f, low) => LunAddress::Unit(u16::from_be_bytes([first & 0x3f, low])),
        (0xc1, 0x01) => LunAddress::ReportLuns,
        _ => LunAddress::Incorrect,
    }
}

/// REPORT LUNS parameter data for the units (ascending) that the nexus may see, before it is cut to
/// the allocation length.
#[must_use]
pub fn report_luns(select: ReportLunsSelect, numbers: &[u16]) -> Vec<u8> {
    let (units, well_known) = match select {
        ReportLunsSelect::Addressable => (true, false),
        ReportLunsSelect::WellKnown => (false, true),
        ReportLunsSelect::All => (true, true),
        ReportLunsSelect::Administrative
        | ReportLunsSelect::AllAdministrative
        | ReportLunsSelect::Subsidiary => (false, false),
    };
    let mut list = Writer::new();
    if units {
        for lun in numbers.iter().filter_map(|number| encode(*number)) {
            list.bytes(&lun);
        }
    }
    if well_known {
        list.bytes(&REPORT_LUNS);
    }
    let mut out = Writer::new();
    out.be32(u32::try_from(list.len()).unwrap_or(u32::MAX));
    out.be32(0).bytes(&list.finish());
    out.finish()
}

/// The answer to a command whose LUN has no unit for this nexus: data-in (before it is cut to the
/// allocation length) with GOOD, or sense data with CHECK CONDITION.
///
/// # Errors
/// LOGICAL UNIT NOT SUPPORTED for all that needs a unit; on the well-known unit INVALID COMMAND
/// OPERATION CODE.
pub fn answer_without_unit(
    address: LunAddress,
    command: &Command,
    revision: &str,
    numbers: &[u16],
) -> Result<Vec<u8>, Sense> {
    let well_known = address == LunAddress::ReportLuns;
    let not_supported = Sense::illegal_request(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED);
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "four commands are answered without a unit; a new one is not until it stands here"
    )]
    match command {
        Command::Inquiry { page: None, .. } => {
            let peripheral = if well_known {
                Peripheral::WellKnown
            } else {
                Peripheral::Nothing
            };
            Ok(standard_with_revision(peripheral, revision))
        }
        Command::Inquiry {
            page: Some(page), ..
        } => {
            if well_known {
                vpd::well_known_page(*page).map_err(|error| error.sense())
            } else {
                Err(Sense::invalid_field_in_cdb(1, Some(0)))
            }
        }
        Command::ReportLuns { select, .. } => Ok(report_luns(*select, numbers)),
        Command::RequestSense { descriptor, .. } => {
            let sense = if well_known {
                Sense::NONE
            } else {
                not_supported
            };
            Ok(sense.to_bytes(request_sense_format(*descriptor)))
        }
        Command::TestUnitReady if well_known => Ok(Vec::new()),
        _ if well_known => Err(Sense::illegal_request(
            AdditionalSense::INVALID_COMMAND_OPERATION_CODE,
        )),
        _ => Err(not_supported),
    }
}

/// The format that DESC of REQUEST SENSE asks for.
#[must_use]
pub const fn request_sense_format(descriptor: bool) -> SenseFormat {
    if descriptor {
        SenseFormat::Descriptor
    } else {
        SenseFormat::Fixed
    }
}

/// The sense data of a unit that cannot be used now.
#[must_use]
pub const fn not_ready(code: AdditionalSense) -> Sense {
    Sense::new(SenseKey::NotReady, code)
}

#[cfg(test)]
mod test {
    use super::*;
    use std::vec;

    #[test]
    fn every_number_goes_round_and_every_pair_of_bytes_means_one_thing() {
        for number in 0..=LUN_MAX {
            assert_eq!(decode(encode(number).unwrap()), LunAddress::Unit(number));
        }
        assert_eq!(encode(LUN_MAX + 1), None);
        let mut units = 0;
        for pair in 0..=u16::MAX {
            let [a, b] = pair.to_be_bytes();
            match decode([a, b, 0, 0, 0, 0, 0, 0]) {
                LunAddress::Unit(number) => {
                    let expected = if a == 0 { pair } else { pair - 0x4000 };
                    assert_eq!(number, expected);
                    units += 1;
                }
                LunAddress::ReportLuns => assert_eq!(pair, 0xc101),
                LunAddress::Incorrect => {}
            }
        }
        assert_eq!(units, 256 + 0x4000);
    }

    #[test]
    fn a_second_level_is_incorrect() {
        for at in 2..8 {
            let mut bytes = [0; 8];
            bytes[at] = 1;
            assert_eq!(decode(bytes), LunAddress::Incorrect);
        }
    }

    #[test]
    fn report_luns_has_the_golden_bytes_for_each_selection() {
        let luns = [0, 7, 300];
        let all = report_luns(ReportLunsSelect::All, &luns);
        assert_eq!(all[..8], [0, 0, 0, 32, 0, 0, 0, 0]);
        assert_eq!(all[16..18], [0, 7]);
        assert_eq!(all[24..26], [0x41, 0x2c]);
        assert_eq!(all[32..34], [0xc1, 0x01]);
        assert_eq!(report_luns(ReportLunsSelect::Addressable, &luns), {
            let mut units = all[..32].to_vec();
            units[3] = 24;
            units
        });
        assert_eq!(report_luns(ReportLunsSelect::WellKnown, &luns).len(), 16);
        assert_eq!(report_luns(ReportLunsSelect::Subsidiary, &luns), vec![0; 8]);
    }

    #[test]
    fn where_no_unit_is_only_four_commands_are_answered() {
        let ask = |cdb: &[u8], address| {
            let mut padded = [0; 16];
            padded[..cdb.len()].copy_from_slice(cdb);
            let command = Command::parse(&padded).unwrap();
            answer_without_unit(address, &command, "1", &[3])
        };
        let nothing = LunAddress::Unit(9);
        assert_eq!(ask(&[0x12, 0, 0, 0, 96], nothing).unwrap()[0], 0x7f);
        assert!(ask(&[0x12, 1, 0, 0, 96], nothing).is_err());
        assert_eq!(ask(&[0xa0], nothing).unwrap().len(), 16);
        assert_eq!(
            ask(&[0x03, 0, 0, 0, 18], nothing).unwrap()[12..14],
            [0x25, 0]
        );
        let sense = ask(&[0x00], nothing).unwrap_err();
        assert_eq!(sense.code, AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED);
        let known = LunAddress::ReportLuns;
        assert_eq!(ask(&[0x12, 0, 0, 0, 96], known).unwrap()[0], 0x1e);
        assert_eq!(
            ask(&[0x12, 1, 0, 0, 96], known).unwrap(),
            [0x1e, 0, 0, 1, 0]
        );
        assert_eq!(ask(&[0x00], known), Ok(vec![]));
        let sense = ask(&[0x28], known).unwrap_err();
        assert_eq!(sense.code, AdditionalSense::INVALID_COMMAND_OPERATION_CODE);
    }
}
