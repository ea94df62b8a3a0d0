//! Region tables.
//!
//! spec: MS-VHDX 2.2.3 "Region Table"

use crate::checked::{seal, sealed_with};
use crate::error::{Error, Part, contradiction, damaged};
use crate::geometry::MIB;
use crate::guid::Guid;
use crate::header::SLOT_BYTES;
use formats::{Damage, Writer};

/// Where the two tables are.
pub(crate) const TABLE_PLACES: [u64; 2] = [192 << 10, 256 << 10];
/// Of the block allocation table.
pub(crate) const BAT: Guid = Guid::of(0x2dc2_7766, 0xf623, 0x4200, 0x9d64_115e_9bfd_4a08);
/// Of what kind of disk it is.
pub(crate) const METADATA: Guid = Guid::of(0x8b7c_a206, 0x4790, 0x4b9a, 0xb8fe_575f_050f_886e);

const SIGNATURE: &[u8; 4] = b"regi";
const ENTRIES_MAX: u32 = 2047;

/// A part of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Area {
    /// Where it begins.
    pub at: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Area {
    /// The first byte behind it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes)
    }

    /// They have bytes in common.
    #[must_use]
    pub const fn meets(&self, other: &Self) -> bool {
        self.at < other.end() && other.at < self.end()
    }
}

/// A part of the file with a meaning of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) guid: Guid,
    pub(crate) area: Area,
    pub(crate) required: bool,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Regions(pub(crate) Vec<Region>);

impl Regions {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Writer::with_capacity(SLOT_BYTES);
        let count = u32::try_from(self.0.len()).expect("a table has few regions");
        bytes.bytes(SIGNATURE).u32(0).u32(count).u32(0);
        for region in &self.0 {
            let length = u32::try_from(region.area.bytes).expect("a region is below 4 GiB");
            bytes.bytes(&region.guid.0).u64(region.area.at);
            bytes.u32(length).u32(region.required.into());
        }
        let mut bytes = bytes.padded(SLOT_BYTES);
        seal(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut fields = sealed_with(bytes, SIGNATURE)?;
        let (Some(count), Some(_)) = (fields.u32(), fields.u32()) else {
            return Err(Damage::Foreign);
        };
        if count > ENTRIES_MAX {
            return Err(Damage::Contradiction("more than 2047 regions"));
        }
        let mut regions = Vec::new();
        for _ in 0..count {
            let guid = fields.bytes().map(Guid);
            let parts = (guid, fields.u64(), fields.u32(), fields.u32());
            let (Some(guid), Some(at), Some(bytes), Some(flags)) = parts else {
                return Err(Damage::Contradiction("more regions than there is room for"));
            };
            let bytes = u64::from(bytes);
            if at % MIB != 0 || bytes % MIB != 0 || at == 0 || bytes == 0 {
                return Err(Damage::Contradiction("a region is not of whole MiB"));
            }
            regions.push(Region {
                guid,
                area: Area { at, bytes },
                required: flags & 1 != 0,
            });
        }
        Ok(Self(regions))
    }

    /// Where the region is.
    fn area(&self, guid: Guid) -> Option<Area> {
        let region = self.0.iter().find(|region| region.guid == guid)?;
        Some(region.area)
    }
}

/// What the tables of a file say.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) regions: Regions,
    pub(crate) bat: Area,
    pub(crate) metadata: Area,
    /// What is wrong with the copies; [`Damage::Foreign`] of the second also where they differ.
    pub(crate) damage: [Option<Damage>; 2],
}

/// Which of the two counts, and what it says, in a file whose log is there and which is so long.
pub(crate) fn choose(copies: [&[u8]; 2], log: Area, file_bytes: u64) -> Result<Tables, Error> {
    let mut damage = [None; 2];
    let regions = match copies.map(Regions::decode) {
        [Ok(first), second] => {
            damage[1] = match second {
                Ok(second) => (second != first).then_some(Damage::Foreign),
                Err(error) => Some(error),
            };
            first
        }
        [Err(first), Ok(second)] => {
            damage[0] = Some(first);
            second
        }
        [Err(first), Err(_)] => return Err(damaged(Part::Regions, first)),
    };
    let mut areas = vec![Area { at: 0, bytes: MIB }];
    if log.bytes > 0 {
        areas.push(log);
    }
    for (number, region) in regions.0.iter().enumerate() {
        if regions.0[..number]
            .iter()
            .any(|other| other.guid == region.guid)
        {
            return Err(contradiction(Part::Regions, "a region is there twice"));
        }
        if region.required && region.guid != BAT && region.guid != METADATA {
            return Err(Error::Unknown {
                part: Part::Regions,
                what: format!("the region {}", region.guid),
            });
        }
        areas.push(region.area);
    }
    areas.sort_by_key(|area| area.at);
    if areas.windows(2).any(|pair| pair[0].meets(&pair[1])) {
        return Err(contradiction(Part::Regions, "regions overlap"));
    }
    if areas.iter().any(|area| area.end() > file_bytes) {
        return Err(Error::Truncated {
            part: Part::Regions,
        });
    }
    let missing = |what| contradiction(Part::Regions, what);
    let bat = regions
        .area(BAT)
        .ok_or(missing("no block allocation table"))?;
    let metadata = regions.area(METADATA).ok_or(missing("no metadata"))?;
    Ok(Tables {
        regions,
        bat,
        metadata,
        damage,
    })
}

#[cfg(test)]
mod test {
    use super::*;

    const LOG: Area = Area {
        at: 1 << 20,
        bytes: 1 << 20,
    };

    fn regions(of: &[(Guid, u64, u64)]) -> Vec<u8> {
        let region = |&(guid, at, bytes): &(Guid, u64, u64)| Region {
            guid,
            area: Area {
                at: at << 20,
                bytes: bytes << 20,
            },
            required: true,
        };
        Regions(of.iter().map(region).collect()).encode()
    }

    #[test]
    fn the_first_good_table_counts() {
        let good = regions(&[(BAT, 3, 1), (METADATA, 2, 1)]);
        let zeroes = vec![0; SLOT_BYTES];
        let both = choose([&good, &good], LOG, 4 << 20).unwrap();
        assert_eq!((both.bat.at, both.metadata.at), (3 << 20, 2 << 20));
        assert_eq!(both.damage, [None, None]);
        let second = choose([&zeroes, &good], LOG, 4 << 20).unwrap();
        assert_eq!(
            (second.bat, second.damage),
            (both.bat, [Some(Damage::Foreign), None])
        );
        assert!(choose([&zeroes, &zeroes], LOG, 4 << 20).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let other = Guid([9; 16]);
        for (wrong, why) in [
            (&[(BAT, 3, 1)][..], "no metadata"),
            (&[(METADATA, 3, 1)], "no block allocation table"),
            (&[(BAT, 3, 1), (METADATA, 3, 1)], "overlap"),
            (&[(BAT, 1, 1), (METADATA, 2, 1)], "overlap"),
            (&[(BAT, 3, 1), (METADATA, 2, 1), (BAT, 5, 1)], "twice"),
            (&[(BAT, 3, 1), (METADATA, 2, 1), (other, 5, 1)], "unknown"),
            (&[(BAT, 3, 1), (METADATA, 200, 1)], "too short"),
            (&[(BAT, 0, 1), (METADATA, 2, 1)], "whole MiB"),
            (&[(BAT, 3, 0), (METADATA, 2, 1)], "whole MiB"),
        ] {
            let bytes = regions(wrong);
            let error = choose([&bytes, &bytes], LOG, 100 << 20)
                .map(|_| ())
                .unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
