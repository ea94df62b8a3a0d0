//! An image with a model of what its disk holds.

use super::disk::{Disk, Random};
use crate::{Access, Chain, Error, Geometry, Guids, Image, Kind, New, Piece, Source};
use std::collections::BTreeMap;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn guids(seed: u8) -> Guids {
    Guids::new([seed; 16])
}

pub(crate) fn new(disk_bytes: u64, block_bytes: u64, sector: u64, kind: Kind) -> New {
    New {
        geometry: Geometry::new(disk_bytes, block_bytes, sector).unwrap(),
        physical_bytes: 4096,
        kind,
        disk_id: None,
        creator: "test".to_owned(),
    }
}

pub(crate) fn created(new: &New) -> Disk {
    let mut disk = Disk::new(1);
    disk.run(new.clone().create(guids(1))).unwrap();
    disk
}

pub(crate) fn open(disk: &mut Disk, access: &Access) -> Result<Chain, Error> {
    let mut images = Vec::new();
    for file in 0..disk.files.len() {
        let access = if file == 0 {
            access.clone()
        } else {
            Access::Read
        };
        images.push(disk.run(Image::open_as(file, access))?);
    }
    Chain::new(images)
}

pub(crate) fn gather(disk: &Disk, pieces: &[Piece], bytes: u64) -> Vec<u8> {
    let (mut all, mut next) = (Vec::new(), 0);
    for piece in pieces {
        assert_eq!(piece.at, next, "pieces follow each other: {pieces:?}");
        next += piece.bytes;
        match piece.from {
            Source::Zero => all.resize(next as usize, 0),
            Source::File { file, place } => {
                let content = &disk.files[file].now;
                assert!(place + piece.bytes <= content.length);
                all.extend(content.read(place, piece.bytes as usize));
            }
        }
    }
    assert_eq!(next, bytes);
    all
}

pub(crate) fn read(disk: &mut Disk, chain: &Chain, at: u64, bytes: u64) -> Result<Vec<u8>, Error> {
    let pieces = disk.run(chain.read(at, bytes))?;
    Ok(gather(disk, &pieces, bytes))
}

/// What each sector holds: the number of the write that wrote it. Absent: zeroes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Model(pub(crate) BTreeMap<u64, u64>);

pub(crate) fn sector_of(number: u64, sector: u64, bytes: u64) -> Vec<u8> {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ sector;
    word.to_le_bytes()
        .into_iter()
        .cycle()
        .take(bytes as usize)
        .collect()
}

impl Model {
    pub(crate) fn range(&self, at: u64, bytes: u64, sector: u64) -> Vec<u8> {
        let sectors = at / sector..(at + bytes) / sector;
        let of = |number| match self.0.get(&number) {
            Some(write) => sector_of(*write, number, sector),
            None => vec![0; sector as usize],
        };
        sectors.flat_map(of).collect()
    }

    pub(crate) fn put(&mut self, at: u64, bytes: u64, sector: u64, write: Option<u64>) {
        for number in at / sector..(at + bytes) / sector {
            match write {
                Some(write) => self.0.insert(number, write),
                None => self.0.remove(&number),
            };
        }
    }
}

/// A range of the disk, short or over several blocks.
pub(crate) fn range(random: &mut Random, geometry: &Geometry) -> (u64, u64) {
    let (sector, block) = (geometry.sector_bytes, geometry.block_bytes);
    let sectors = geometry.disk_bytes / sector;
    match random.below(6) {
        0 => {
            let number = random.below(geometry.blocks());
            (number * block, geometry.bytes_of(number))
        }
        1 => {
            let from = random.below(geometry.blocks()) * block;
            let bytes = (random.below(3) * block / 2).next_multiple_of(sector);
            (from, bytes.min(geometry.disk_bytes - from))
        }
        _ => {
            let first = random.below(sectors);
            let count = random.below(40).min(sectors - first);
            (first * sector, count * sector)
        }
    }
}
