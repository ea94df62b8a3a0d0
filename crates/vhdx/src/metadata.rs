//! The metadata region: what kind of disk the image has.
//!
//! spec: MS-VHDX 2.6 "Metadata Region"

use crate::error::{Error, Part, contradiction, damaged};
use crate::geometry::{Geometry, MIB};
use crate::guid::Guid;
use crate::locator::{LOCATOR_BYTES_MAX, Locator};
use crate::regions::Area;
use formats::{Damage, Reader, Writer};

/// Bytes of the table that the region begins with.
pub(crate) const TABLE_BYTES: usize = 64 << 10;
const SIGNATURE: &[u8; 8] = b"metadata";
const ENTRIES_MAX: u16 = 2047;
const HEAD_BYTES: u64 = 32;
const ENTRY_BYTES: u64 = 32;

const PARAMETERS: Guid = Guid::of(0xcaa1_6737, 0xfa36, 0x4d43, 0xb3b6_33f0_aa44_e76b);
const SIZE: Guid = Guid::of(0x2fa5_4224, 0xcd1b, 0x4876, 0xb211_5dbe_d83b_f4b8);
const DISK_ID: Guid = Guid::of(0xbeca_12ab, 0xb2e6, 0x4523, 0x93ef_c309_e000_c746);
const LOGICAL: Guid = Guid::of(0x8141_bf1d, 0xa96f, 0x4709, 0xba47_f233_a8fa_ab5f);
const PHYSICAL: Guid = Guid::of(0xcda3_48c7, 0x445d, 0x4471, 0x9cc9_e988_5251_c556);
const LOCATOR: Guid = Guid::of(0xa8d3_5f2d, 0xb30b, 0x454d, 0xabf7_d3d8_4834_ab0c);

const REQUIRED: u32 = 4;
const VIRTUAL_DISK: u32 = 2;
/// Where our writer has the items, from the region's beginning.
const ITEMS_AT: u64 = 64 << 10;
/// Where our writer has the parent locator: to the region's end there is room to make it longer.
const LOCATOR_AT: u64 = 128 << 10;

/// What the region says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Sizes.
    pub geometry: Geometry,
    /// Bytes of a physical sector: 512 or 4096.
    pub physical_bytes: u32,
    /// Blocks stay where they are: a fixed image.
    pub is_fixed: bool,
    /// The disk's own number, which it has on page 83h.
    pub disk_id: Guid,
    /// The parent, of a differencing image.
    pub locator: Option<Locator>,
}

/// An entry of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    guid: Guid,
    at: u32,
    bytes: u32,
    flags: u32,
    /// Where the entry is in the table.
    entry_at: u64,
}

/// Where in the region each item is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table(Vec<Item>);

impl Table {
    /// Of the region's first bytes, in a region so large.
    pub(crate) fn decode(bytes: &[u8], region_bytes: u64) -> Result<Self, Error> {
        let wrong = |what| contradiction(Part::Metadata, what);
        let mut fields = Reader::new(bytes);
        if fields.bytes() != Some(*SIGNATURE) {
            return Err(damaged(Part::Metadata, Damage::Foreign));
        }
        let (_, count, _) = (fields.u16(), fields.u16(), fields.bytes::<20>());
        let count = count.filter(|count| *count <= ENTRIES_MAX);
        let count = count.ok_or(wrong("more than 2047 items"))?;
        let mut items: Vec<Item> = Vec::new();
        for number in 0..u64::from(count) {
            let parts = (
                fields.bytes().map(Guid),
                fields.u32(),
                fields.u32(),
                fields.u32(),
            );
            let (Some(guid), Some(at), Some(bytes), Some(flags)) = parts else {
                return Err(wrong("more items than there is room for"));
            };
            let _reserved = fields.u32();
            let end = u64::from(at) + u64::from(bytes);
            if bytes > 0 && (u64::from(at) < ITEMS_AT || end > region_bytes) {
                return Err(wrong("an item is not within the region"));
            }
            let is_known = [PARAMETERS, SIZE, DISK_ID, LOGICAL, PHYSICAL, LOCATOR].contains(&guid);
            if flags & REQUIRED != 0 && !is_known {
                return Err(Error::Unknown {
                    part: Part::Metadata,
                    what: format!("the item {guid}"),
                });
            }
            if is_known && items.iter().any(|item| item.guid == guid) {
                return Err(wrong("an item is there twice"));
            }
            items.push(Item {
                guid,
                at,
                bytes,
                flags,
                entry_at: HEAD_BYTES + ENTRY_BYTES * number,
            });
        }
        Ok(Self(items))
    }

    fn item(&self, guid: Guid) -> Option<&Item> {
        self.0.iter().find(|item| item.guid == guid)
    }

    fn area(&self, guid: Guid, bytes: u32, region: Area) -> Result<Area, Error> {
        let item = self.item(guid).filter(|item| item.bytes >= bytes);
        let item = item.ok_or(contradiction(
            Part::Metadata,
            "an item is missing or too short",
        ))?;
        Ok(Area {
            at: region.at + u64::from(item.at),
            bytes: bytes.into(),
        })
    }

    /// Where the small items are that each image has.
    pub(crate) fn places(&self, region: Area) -> Result<Places, Error> {
        Ok(Places {
            parameters: self.area(PARAMETERS, 8, region)?,
            size: self.area(SIZE, 8, region)?,
            disk_id: self.area(DISK_ID, 16, region)?,
            logical: self.area(LOGICAL, 4, region)?,
            physical: self.area(PHYSICAL, 4, region)?,
        })
    }

    /// Where the parent locator is.
    pub(crate) fn locator(&self, region: Area) -> Result<Area, Error> {
        let missing = contradiction(Part::Locator, "a differencing image has none");
        let item = self.item(LOCATOR).ok_or(missing)?;
        if u64::from(item.bytes) > LOCATOR_BYTES_MAX {
            return Err(contradiction(Part::Locator, "it is longer than 1 MiB"));
        }
        Ok(Area {
            at: region.at + u64::from(item.at),
            bytes: item.bytes.into(),
        })
    }

    /// What is written where, so that the locator says something else: bytes of the file.
    pub(crate) fn with_locator(
        &self,
        locator: &Locator,
        region: Area,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let missing = contradiction(Part::Locator, "a differencing image has none");
        let item = self.item(LOCATOR).ok_or(missing)?;
        let bytes = locator.encode();
        let others = self.0.iter().filter(|other| other.guid != LOCATOR);
        let ends = others.map(|other| u64::from(other.at) + u64::from(other.bytes));
        let room_from = ends.max().unwrap_or(ITEMS_AT).max(ITEMS_AT);
        let at = u64::from(item.at).max(room_from.next_multiple_of(8));
        let full = Error::Refused("the metadata region has no room for the parent locator");
        let length = u32::try_from(bytes.len()).map_err(|_| full.clone())?;
        if at + u64::from(length) > region.bytes {
            return Err(full);
        }
        let at_in_region = u32::try_from(at).map_err(|_| full)?;
        let mut entry = Writer::with_capacity(8);
        entry.u32(at_in_region).u32(length);
        let entry_at = region.at + item.entry_at + 16;
        Ok(vec![
            (entry_at, entry.into_bytes()),
            (region.at + at, bytes),
        ])
    }
}

/// Where in the file items are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Places {
    pub(crate) parameters: Area,
    pub(crate) size: Area,
    pub(crate) disk_id: Area,
    pub(crate) logical: Area,
    pub(crate) physical: Area,
}

/// The small items as they are in the file.
pub(crate) struct Items {
    pub(crate) parameters: Vec<u8>,
    pub(crate) size: Vec<u8>,
    pub(crate) disk_id: Vec<u8>,
    pub(crate) logical: Vec<u8>,
    pub(crate) physical: Vec<u8>,
}

impl Items {
    /// What they say, and whether there is a parent.
    pub(crate) fn read(&self) -> Result<(Metadata, bool), Error> {
        let short = contradiction(Part::Metadata, "an item is missing or too short");
        let mut parameters = Reader::new(&self.parameters);
        let parts = (
            parameters.u32(),
            parameters.u32(),
            Reader::new(&self.size).u64(),
            Reader::new(&self.disk_id).bytes().map(Guid),
            Reader::new(&self.logical).u32(),
            Reader::new(&self.physical).u32(),
        );
        let (Some(block), Some(flags), Some(size), Some(disk_id), Some(logical), Some(physical)) =
            parts
        else {
            return Err(short);
        };
        if physical != 512 && physical != 4096 {
            let what = "physical sectors have 512 or 4096 bytes";
            return Err(contradiction(Part::Metadata, what));
        }
        let metadata = Metadata {
            geometry: Geometry::new(size, block.into(), logical.into())?,
            physical_bytes: physical,
            is_fixed: flags & 1 != 0,
            disk_id,
            locator: None,
        };
        Ok((metadata, flags & 2 != 0))
    }
}

/// A new region, as far as it is not zeroes.
pub(crate) fn encode(metadata: &Metadata) -> Vec<u8> {
    let mut parameters = Writer::default();
    let block = u32::try_from(metadata.geometry.block_bytes).expect("blocks have 256 MiB at most");
    let sector = u32::try_from(metadata.geometry.sector_bytes).expect("512 or 4096");
    let has_parent = metadata.locator.is_some();
    let flags = u32::from(metadata.is_fixed) | u32::from(has_parent) << 1;
    parameters.u32(block).u32(flags);
    let mut items = vec![
        (PARAMETERS, REQUIRED, parameters.into_bytes()),
        (
            SIZE,
            REQUIRED | VIRTUAL_DISK,
            metadata.geometry.disk_bytes.to_le_bytes().to_vec(),
        ),
        (
            DISK_ID,
            REQUIRED | VIRTUAL_DISK,
            metadata.disk_id.0.to_vec(),
        ),
        (
            LOGICAL,
            REQUIRED | VIRTUAL_DISK,
            sector.to_le_bytes().to_vec(),
        ),
        (
            PHYSICAL,
            REQUIRED | VIRTUAL_DISK,
            metadata.physical_bytes.to_le_bytes().to_vec(),
        ),
    ];
    items.extend(
        metadata
            .locator
            .iter()
            .map(|it| (LOCATOR, REQUIRED, it.encode())),
    );
    let mut table = Writer::with_capacity(TABLE_BYTES);
    let count = u16::try_from(items.len()).expect("six items");
    table.bytes(SIGNATURE).u16(0).u16(count).bytes(&[0; 20]);
    let mut region = vec![0; TABLE_BYTES];
    let mut next = ITEMS_AT;
    for (guid, flags, bytes) in items {
        let at = if guid == LOCATOR { LOCATOR_AT } else { next };
        let number = |of: u64| u32::try_from(of).expect("the region has 1 MiB");
        let length = u64::try_from(bytes.len()).expect("an item is small");
        table
            .bytes(&guid.0)
            .u32(number(at))
            .u32(number(length))
            .u32(flags)
            .u32(0);
        region.resize(usize::try_from(at).expect("the region has 1 MiB"), 0);
        region.extend(bytes);
        next = at + length.next_multiple_of(8);
    }
    let table = table.padded(TABLE_BYTES);
    region[..TABLE_BYTES].copy_from_slice(&table);
    assert!(
        u64::try_from(region.len()).is_ok_and(|bytes| bytes <= MIB),
        "the region has 1 MiB"
    );
    region
}
