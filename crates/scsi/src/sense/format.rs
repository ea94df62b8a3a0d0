//! Sense data as bytes, in both formats.
//!
//! Spec: SPC-4 4.5.2 "Descriptor format sense data", 4.5.3 "Fixed format sense data".

use alloc::vec::Vec;

use super::{AdditionalSense, FieldPointer, SegmentPointer, Sense, SenseKey, Specific};
use crate::bytes::{Reader, Writer, flag, is_set};

/// Which of the two layouts; the control mode page's D_SENSE bit chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SenseFormat {
    /// Response codes 70h and 71h; 18 bytes. D_SENSE is zero.
    #[default]
    Fixed,
    /// Response codes 72h and 73h; as long as needed. D_SENSE is one.
    Descriptor,
}

impl Sense {
    /// The bytes to send.
    ///
    /// The fixed format has 32 bits for INFORMATION: a larger value leaves VALID zero and the field
    /// zero (SPC-4 4.5.3), so a host never sees a truncated LBA.
    #[must_use]
    pub fn to_bytes(&self, format: SenseFormat) -> Vec<u8> {
        match format {
            SenseFormat::Fixed => self.to_fixed(),
            SenseFormat::Descriptor => self.to_descriptor(),
        }
    }

    /// Reads either format; `None` for other response codes or if the key and code are not there.
    /// Missing later bytes mean absent fields, as truncated sense data is legal.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? & 0x7f {
            0x70 | 0x71 => parse_fixed(bytes),
            0x72 | 0x73 => parse_descriptor(bytes),
            _ => None,
        }
    }

    fn to_fixed(self) -> Vec<u8> {
        let fits = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
        let information = fits(self.information);
        let mut out = Writer::new();
        out.u8(0x70 | flag(information.is_some(), 7) | u8::from(self.deferred));
        out.u8(0).u8(self.key.code());
        out.be32(information.unwrap_or(0)).u8(10);
        out.be32(fits(self.command_specific).unwrap_or(0));
        out.u8(self.code.asc).u8(self.code.ascq).u8(0);
        out.bytes(&specific_bytes(self.specific));
        out.finish()
    }

    fn to_descriptor(self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(0x72 | u8::from(self.deferred)).u8(self.key.code());
        out.u8(self.code.asc).u8(self.code.ascq).zeros(3);
        out.counted8(|out| {
            if let Some(information) = self.information {
                out.bytes(&[0x00, 0x0a, 0x80, 0]).be64(information);
            }
            if let Some(information) = self.command_specific {
                out.bytes(&[0x01, 0x0a, 0, 0]).be64(information);
            }
            if self.specific != Specific::None {
                out.bytes(&[0x02, 0x06, 0, 0])
                    .bytes(&specific_bytes(self.specific))
                    .u8(0);
            }
        });
        out.finish()
    }
}

fn pointer_bytes(section: bool, section_bit: u8, byte: u16, bit: Option<u8>) -> [u8; 3] {
    let [high, low] = byte.to_be_bytes();
    let bit_pointer = bit.map_or(0, |bit| 0x08 | (bit & 0x07));
    [0x80 | flag(section, section_bit) | bit_pointer, high, low]
}

fn specific_bytes(specific: Specific) -> [u8; 3] {
    match specific {
        Specific::None => [0; 3],
        Specific::Field(field) => pointer_bytes(field.in_cdb, 6, field.byte, field.bit),
        Specific::Segment(field) => pointer_bytes(field.in_segment, 5, field.byte, field.bit),
        Specific::Progress(progress) => {
            let [high, low] = progress.to_be_bytes();
            [0x80, high, low]
        }
    }
}

fn parse_specific(key: SenseKey, [first, high, low]: [u8; 3]) -> Specific {
    if !is_set(first, 7) {
        return Specific::None;
    }
    let byte = u16::from_be_bytes([high, low]);
    let bit = is_set(first, 3).then_some(first & 0x07);
    match key {
        SenseKey::IllegalRequest => Specific::Field(FieldPointer {
            in_cdb: is_set(first, 6),
            byte,
            bit,
        }),
        SenseKey::CopyAborted => Specific::Segment(SegmentPointer {
            in_segment: is_set(first, 5),
            byte,
            bit,
        }),
        SenseKey::NoSense | SenseKey::NotReady => Specific::Progress(byte),
        SenseKey::RecoveredError
        | SenseKey::MediumError
        | SenseKey::HardwareError
        | SenseKey::UnitAttention
        | SenseKey::DataProtect
        | SenseKey::BlankCheck
        | SenseKey::VendorSpecific
        | SenseKey::AbortedCommand
        | SenseKey::Reserved
        | SenseKey::VolumeOverflow
        | SenseKey::Miscompare
        | SenseKey::Completed => Specific::None,
    }
}

fn parse_fixed(bytes: &[u8]) -> Option<Sense> {
    let mut reader = Reader::new(bytes);
    let first = reader.u8()?;
    reader.skip(1)?;
    let key = SenseKey::from_nibble(reader.u8()?);
    let mut sense = Sense::new(key, AdditionalSense::NONE);
    sense.deferred = first & 0x7f == 0x71;
    let Some(information) = reader.be32() else {
        return Some(sense);
    };
    sense.information = is_set(first, 7).then_some(u64::from(information));
    // ADDITIONAL SENSE LENGTH says how much is meant even when a transport padded the buffer.
    let Some(length) = reader.u8() else {
        return Some(sense);
    };
    let rest = reader.rest();
    let mut reader = Reader::new(rest.get(..usize::from(length)).unwrap_or(rest));
    let command_specific = reader.be32().unwrap_or(0);
    // The fixed format has no validity bit for this field: zero means absent.
    sense.command_specific = (command_specific != 0).then_some(u64::from(command_specific));
    let asc = reader.u8().unwrap_or(0);
    let ascq = reader.u8().unwrap_or(0);
    sense.code = AdditionalSense { asc, ascq };
    if reader.skip(1).is_some() {
        sense.specific = reader
            .array()
            .map_or(Specific::None, |raw| parse_specific(key, raw));
    }
    Some(sense)
}

fn parse_descriptor(bytes: &[u8]) -> Option<Sense> {
    let mut reader = Reader::new(bytes);
    let first = reader.u8()?;
    let key = SenseKey::from_nibble(reader.u8()?);
    let asc = reader.u8().unwrap_or(0);
    let ascq = reader.u8().unwrap_or(0);
    let mut sense = Sense::new(key, AdditionalSense { asc, ascq });
    sense.deferred = first & 0x7f == 0x73;
    let Some(length) = reader.skip(3).and_then(|()| reader.u8()) else {
        return Some(sense);
    };
    let rest = reader.rest();
    let mut reader = Reader::new(rest.get(..usize::from(length)).unwrap_or(rest));
    while let Some([kind, length]) = reader.array() {
        let Some(body) = reader.take(usize::from(length)) else {
            break;
        };
        descriptor(&mut sense, kind, body);
    }
    Some(sense)
}

fn descriptor(sense: &mut Sense, kind: u8, body: &[u8]) {
    let mut reader = Reader::new(body);
    match kind {
        0x00 => {
            let valid = reader.u8().is_some_and(|byte| is_set(byte, 7));
            let value = reader.skip(1).and_then(|()| reader.be64());
            sense.information = value.filter(|_| valid);
        }
        0x01 => sense.command_specific = reader.skip(2).and_then(|()| reader.be64()),
        0x02 => {
            if let Some(raw) = reader.skip(2).and_then(|()| reader.array()) {
                sense.specific = parse_specific(sense.key, raw);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_field_in_cdb_has_the_golden_fixed_bytes() {
        let sense = Sense::invalid_field_in_cdb(1, Some(7));
        assert_eq!(
            sense.to_bytes(SenseFormat::Fixed),
            [
                0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xcf, 0, 1
            ]
        );
    }

    #[test]
    fn a_miscompare_has_the_golden_descriptor_bytes() {
        let sense = Sense::miscompare(0x1_0000_0200);
        assert_eq!(
            sense.to_bytes(SenseFormat::Descriptor),
            [
                0x72, 0x0e, 0x1d, 0, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 1, 0, 0, 2, 0
            ]
        );
    }

    #[test]
    fn information_beyond_32_bits_is_absent_from_the_fixed_format() {
        let sense = Sense::miscompare(0x1_0000_0000);
        let bytes = sense.to_bytes(SenseFormat::Fixed);
        assert_eq!(bytes[0], 0x70);
        assert_eq!(bytes[3..7], [0; 4]);
        assert_eq!(Sense::parse(&bytes).unwrap().information, None);
        let fits = Sense::miscompare(0xffff_ffff).to_bytes(SenseFormat::Fixed);
        assert_eq!(fits[0], 0xf0);
    }

    fn any_sense() -> impl Strategy<Value = Sense> {
        let specific = prop_oneof![
            Just(Specific::None),
            any::<u16>().prop_map(Specific::Progress),
            (any::<bool>(), any::<u16>(), proptest::option::of(0u8..8)).prop_map(
                |(in_cdb, byte, bit)| Specific::Field(FieldPointer { in_cdb, byte, bit })
            ),
            (any::<bool>(), any::<u16>(), proptest::option::of(0u8..8)).prop_map(
                |(in_segment, byte, bit)| Specific::Segment(SegmentPointer {
                    in_segment,
                    byte,
                    bit
                })
            ),
        ];
        let words = proptest::option::of(any::<u64>());
        let small = proptest::option::of(1u64..1 << 32);
        (
            0u8..16,
            any::<[u8; 2]>(),
            words,
            small,
            specific,
            any::<bool>(),
        )
            .prop_map(
                |(key, [asc, ascq], information, command_specific, specific, deferred)| {
                    let key = match specific {
                        Specific::Field(_) => SenseKey::IllegalRequest,
                        Specific::Segment(_) => SenseKey::CopyAborted,
                        Specific::Progress(_) => SenseKey::NotReady,
                        Specific::None => SenseKey::from_nibble(key),
                    };
                    Sense {
                        key,
                        code: AdditionalSense { asc, ascq },
                        information,
                        command_specific,
                        specific,
                        deferred,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn descriptor_sense_goes_round_and_fixed_loses_only_wide_information(sense in any_sense()) {
            let wide = Sense::parse(&sense.to_bytes(SenseFormat::Descriptor));
            prop_assert_eq!(wide, Some(sense));
            let fixed = Sense::parse(&sense.to_bytes(SenseFormat::Fixed)).unwrap();
            let information = sense.information.filter(|value| *value <= u64::from(u32::MAX));
            prop_assert_eq!(fixed, Sense { information, ..sense });
        }

        #[test]
        fn any_bytes_parse_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(sense) = Sense::parse(&bytes) {
                let again = Sense::parse(&sense.to_bytes(SenseFormat::Descriptor));
                prop_assert_eq!(again, Some(sense));
            }
        }
    }
}
