//! Who a unit is: what must be the same through every path, and after every login.
//!
//! Spec: SPC-4 7.8.6 "Device Identification VPD page", 7.8.15 "Unit Serial Number VPD page".

use std::collections::BTreeSet;
use std::fmt;
use units::{BlockCount, BlockSize};

/// DESIGNATOR TYPE.
const T10_VENDOR: u8 = 1;
const EUI_64: u8 = 2;
const NAA: u8 = 3;
const PORT_GROUP: u8 = 5;
const NAME_STRING: u8 = 8;
const UUID: u8 = 10;

/// ASSOCIATION.
const LOGICAL_UNIT: u8 = 0;
const TARGET_PORT: u8 = 1;

/// A name of the unit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Designator {
    kind: u8,
    bytes: Vec<u8>,
}

impl Designator {
    /// Unique in the world by its form; a T10 vendor identification is only as good as the vendor.
    fn is_strong(&self) -> bool {
        matches!(self.kind, EUI_64 | NAA | NAME_STRING | UUID)
    }
}

impl fmt::Display for Designator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.kind {
            EUI_64 => "eui.",
            NAA => "naa.",
            UUID => "uuid.",
            T10_VENDOR => "t10.",
            _ => "",
        };
        f.write_str(prefix)?;
        if matches!(self.kind, T10_VENDOR | NAME_STRING) {
            let text = String::from_utf8_lossy(&self.bytes);
            let printable: String = text.chars().filter(|it| !it.is_control()).collect();
            return f.write_str(printable.trim());
        }
        self.bytes
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What names a unit, and how large it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Names of the unit itself.
    pub designators: BTreeSet<Designator>,
    /// Serial number; empty where the unit has none.
    pub serial: String,
    /// Logical block.
    pub block_size: BlockSize,
    /// Logical blocks.
    pub block_count: BlockCount,
}

/// How two identities differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// It is another unit, or nobody can say that it is the same.
    Unit(String),
    /// The same names, and another size: a resize, or two units under one name.
    Size {
        /// In blocks, here.
        here: BlockCount,
        /// In blocks, as it was known.
        known: BlockCount,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(why) => f.write_str(why),
            Self::Size { here, known } => write!(
                f,
                "the same name with another size: {} blocks here, {} blocks elsewhere",
                here.0, known.0
            ),
        }
    }
}

impl Identity {
    /// The best name there is, for people.
    #[must_use]
    pub fn name(&self) -> String {
        let best = [NAA, EUI_64, UUID, NAME_STRING, T10_VENDOR].iter();
        let best = best.filter_map(|kind| self.designators.iter().find(|it| it.kind == *kind));
        match best.into_iter().next() {
            Some(designator) => designator.to_string(),
            None => format!("serial.{}", self.serial),
        }
    }

    /// It has a name that distinguishes it from other units.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.designators.is_empty() || !self.serial.is_empty()
    }

    /// How the unit that shows `self` differs from the one that is `known`.
    #[must_use]
    pub fn difference(&self, known: &Self) -> Option<Difference> {
        let strong = |it: &Self| -> BTreeSet<Designator> {
            it.designators
                .iter()
                .filter(|it| it.is_strong())
                .cloned()
                .collect()
        };
        let (here, there) = (strong(self), strong(known));
        let same_names = if here.is_empty() && there.is_empty() {
            self.designators == known.designators
        } else {
            here == there
        };
        if !self.is_known() || !same_names || self.serial != known.serial {
            let (here, known) = (self.describe(), known.describe());
            return Some(Difference::Unit(format!("{here} here, {known} elsewhere")));
        }
        if self.block_size != known.block_size {
            let why = format!(
                "{} has blocks of {} bytes here, of {} elsewhere",
                self.name(),
                self.block_size.bytes(),
                known.block_size.bytes()
            );
            return Some(Difference::Unit(why));
        }
        (self.block_count != known.block_count).then_some(Difference::Size {
            here: self.block_count,
            known: known.block_count,
        })
    }

    fn describe(&self) -> String {
        if self.is_known() {
            format!("{} (serial \"{}\")", self.name(), self.serial)
        } else {
            "a unit without a name".to_owned()
        }
    }
}

/// What the Device Identification page says: names of the unit, and the target port group that was
/// asked.
pub(super) fn device_identification(page: &[u8]) -> (BTreeSet<Designator>, Option<u16>) {
    let length = page
        .get(2..4)
        .map_or(0, |it| usize::from(u16::from_be_bytes([it[0], it[1]])));
    let mut rest = page.get(4..).unwrap_or_default();
    rest = rest.get(..length.min(rest.len())).unwrap_or_default();
    let (mut names, mut group) = (BTreeSet::new(), None);
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        let length = usize::from(head[3]);
        let Some((bytes, next)) = after.split_at_checked(length) else {
            break;
        };
        rest = next;
        let (kind, association) = (head[1] & 0x0f, head[1] >> 4 & 0x03);
        match (association, kind) {
            (LOGICAL_UNIT, T10_VENDOR | EUI_64 | NAA | NAME_STRING | UUID) if length > 0 => {
                let bytes = bytes.to_vec();
                names.insert(Designator { kind, bytes });
            }
            (TARGET_PORT, PORT_GROUP) => {
                group = bytes.get(2..4).map(|it| u16::from_be_bytes([it[0], it[1]]));
            }
            _ => {}
        }
    }
    (names, group)
}

/// The Unit Serial Number page's text.
pub(super) fn serial_number(page: &[u8]) -> String {
    let length = page
        .get(2..4)
        .map_or(0, |it| usize::from(u16::from_be_bytes([it[0], it[1]])));
    let text = page.get(4..).unwrap_or_default();
    let text = text.get(..length.min(text.len())).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    text.trim_matches(|it: char| it.is_whitespace() || it.is_control())
        .to_owned()
}

#[cfg(test)]
mod test {
    use super::*;
    use scsi::description::{TargetDescription, TargetPort};
    use scsi::inquiry::Peripheral;
    use scsi::{UnitDescription, vpd};

    fn unit(naa: u8, serial: &str, blocks: u64) -> UnitDescription {
        UnitDescription {
            revision: "1".to_owned(),
            serial: serial.to_owned(),
            naa: [0x60 | (naa & 0x0f); 16],
            block_size: BlockSize::B512,
            physical_block_exponent: 3,
            lowest_aligned_lba: 0,
            block_count: BlockCount(blocks),
            limits: scsi::description::UnitLimits::default(),
            provisioning: scsi::description::Provisioning::default(),
            read_only: false,
            write_cache: true,
        }
    }

    /// Reads pages that the target's own encoder makes.
    fn identity(unit: &UnitDescription) -> Identity {
        let port = TargetPort {
            target_name: "iqn.2026-11.io.causeway:t1".to_owned(),
            relative_port: 2,
            portal_group_tag: 1,
            target_port_group: 7,
        };
        let target = TargetDescription {
            name: "iqn.2026-11.io.causeway:t1".to_owned(),
            ports: vec![port.clone()],
            port,
            management: Vec::new(),
        };
        let page = |code| vpd::page(code, Peripheral::Disk, unit, &target).unwrap();
        let (designators, group) = device_identification(&page(0x83));
        assert_eq!(group, Some(7));
        Identity {
            designators,
            serial: serial_number(&page(0x80)),
            block_size: unit.block_size,
            block_count: unit.block_count,
        }
    }

    #[test]
    fn our_own_pages_name_the_unit_and_another_unit_differs() {
        let one = identity(&unit(1, "a1", 100));
        assert_eq!(one.serial, "a1");
        assert_eq!(one.name(), format!("naa.{}", "61".repeat(16)));
        assert_eq!(one.designators.len(), 2);
        assert_eq!(one.difference(&one), None);
        for other in [unit(2, "a1", 100), unit(1, "a2", 100)] {
            let difference = identity(&other).difference(&one).unwrap();
            assert!(matches!(difference, Difference::Unit(_)), "{difference}");
        }
        let grown = identity(&unit(1, "a1", 200)).difference(&one).unwrap();
        assert!(matches!(grown, Difference::Size { .. }));
        assert_eq!(
            grown.to_string(),
            "the same name with another size: 200 blocks here, 100 blocks elsewhere"
        );
    }

    #[test]
    fn a_unit_without_any_name_is_never_the_same_as_another() {
        let nameless = Identity {
            designators: BTreeSet::new(),
            serial: String::new(),
            block_size: BlockSize::B512,
            block_count: BlockCount(8),
        };
        assert!(nameless.difference(&nameless).is_some());
    }

    #[test]
    fn pages_that_end_anywhere_do_not_panic() {
        let page = [0, 0x83, 0, 24, 1, 3, 0, 16, 6, 0, 0, 0, 0, 0, 0, 0];
        for end in 0..=page.len() {
            let _ = device_identification(&page[..end]);
            let _ = serial_number(&page[..end]);
        }
    }
}
