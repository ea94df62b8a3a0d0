//! Images against a model of their disk.

use super::disk::Random;
use super::world::{MIB, Model, created, guids, new, open, range, read};
use crate::{Access, Guid, Image, Kind};

#[test]
fn an_image_of_64_tib_is_opened_with_a_handful_of_reads() {
    for (block, sector) in [(MIB, 512), (32 * MIB, 512), (256 * MIB, 4096)] {
        let mut disk = created(&new(64 << 40, block, sector, Kind::Dynamic));
        (disk.reads, disk.read_bytes) = (0, 0);
        let chain = open(&mut disk, &Access::Write(guids(2))).unwrap();
        assert!(
            disk.reads < 12 && disk.read_bytes < MIB,
            "{} {}",
            disk.reads,
            disk.read_bytes
        );
        let last = (64 << 40) - MIB;
        let payload = vec![7; MIB as usize];
        disk.run_with(chain.image().write(last, MIB), &payload)
            .unwrap();
        disk.run(chain.image().flush()).unwrap();
        assert_eq!(read(&mut disk, &chain, last, MIB), Ok(payload));
        assert_eq!(read(&mut disk, &chain, 0, 4096), Ok(vec![0; 4096]));
        disk.run(chain.image().close()).unwrap();
    }
}

#[test]
fn a_first_write_to_a_block_costs_two_syncs_and_a_later_one_none() {
    let mut disk = created(&new(10 << 30, 32 * MIB, 512, Kind::Dynamic));
    let chain = open(&mut disk, &Access::Write(guids(2))).unwrap();
    let image = chain.image();
    let payload = vec![7; 4096];
    disk.run_with(image.write(0, 4096), &payload).unwrap();
    disk.run(image.flush()).unwrap();
    for block in 1..300 {
        disk.syncs = 0;
        disk.run_with(image.write(block * 32 * MIB, 4096), &payload)
            .unwrap();
        assert_eq!(disk.syncs, 0);
        disk.run(image.flush()).unwrap();
        assert_eq!(disk.syncs, 2);
        let extents = image.lookup_write(block * 32 * MIB + 8192, 4096).unwrap();
        assert_eq!(extents.map(|extents| extents.len()), Some(1));
    }
}

#[test]
fn random_operations_are_those_of_the_model() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let sector = [512, 4096][seed as usize % 2];
        let kind = if seed % 6 == 5 {
            Kind::Fixed
        } else {
            Kind::Dynamic
        };
        let bytes = [MIB, 10 * MIB, 37 * MIB + sector][seed as usize % 3];
        let is_fixed = kind == Kind::Fixed;
        let mut disk = created(&new(
            bytes,
            [MIB, 4 * MIB][seed as usize / 2 % 2],
            sector,
            kind,
        ));
        let mut model = Model::default();
        let mut chain = open(&mut disk, &Access::Write(guids(2))).unwrap();
        for step in 1..120 {
            let image = chain.image();
            let geometry = image.geometry();
            let (at, bytes) = range(&mut random, &geometry);
            match random.below(12) {
                0..5 => {
                    model.put(at, bytes, sector, Some(step));
                    let payload = model.range(at, bytes, sector);
                    disk.run_with(image.write(at, bytes), &payload).unwrap();
                }
                5 => {
                    model.put(at, bytes, sector, None);
                    disk.run(image.write_zeroes(at, bytes)).unwrap();
                }
                6 => {
                    let zeroes = disk.run(image.unmap(at, bytes)).unwrap();
                    assert!(zeroes == 0 || !is_fixed);
                    let whole = geometry.pieces(at, bytes);
                    let whole = whole.filter(|it| it.2 == geometry.bytes_of(it.0) && !is_fixed);
                    for (block, _, bytes) in whole {
                        model.put(block * geometry.block_bytes, bytes, sector, None);
                    }
                }
                7 => disk.run(image.flush()).unwrap(),
                8 => {
                    disk.run(image.close()).unwrap();
                    chain = open(&mut disk, &Access::Write(guids(step as u8))).unwrap();
                }
                _ => {
                    let found = read(&mut disk, &chain, at, bytes).unwrap();
                    assert!(
                        found == model.range(at, bytes, sector),
                        "seed {seed}, step {step}"
                    );
                }
            }
        }
        let all = read(&mut disk, &chain, 0, bytes).unwrap();
        assert!(all == model.range(0, bytes, sector), "seed {seed}");
        if is_fixed {
            disk.run(chain.image().close()).unwrap();
            let expected =
                4 * MIB + chain.image().geometry().blocks() * chain.image().geometry().block_bytes;
            assert_eq!(
                disk.files[0].now.length, expected,
                "a fixed image stays as long as it is"
            );
        }
    }
}

#[test]
fn identifiers_change_with_the_first_write_and_not_before() {
    let mut disk = created(&new(8 * MIB, MIB, 512, Kind::Dynamic));
    let before = open(&mut disk, &Access::Read).unwrap().image().header();
    let chain = open(&mut disk, &Access::Write(guids(2))).unwrap();
    let image = chain.image();
    disk.run(image.flush()).unwrap();
    disk.run(image.close()).unwrap();
    assert_eq!(image.header(), before, "nothing was to be changed");
    disk.run_with(image.write(0, 512), &[1; 512]).unwrap();
    let header = image.header();
    assert_ne!(
        (header.file_write, header.data_write),
        (before.file_write, before.data_write)
    );
    assert!(!header.log.is_none());
    disk.run(image.check_owner()).unwrap();
    disk.run(image.flush()).unwrap();
    disk.run(image.close()).unwrap();
    assert_eq!(image.header().log, Guid::NONE);
    let second = disk.run(Image::open(Access::Write(guids(3)))).unwrap();
    disk.run_with(second.write(0, 512), &[2; 512]).unwrap();
    assert_eq!(
        disk.run(image.check_owner()),
        Err(crate::Error::ForeignWriter)
    );
}

#[test]
fn space_that_is_given_back_is_used_again_after_a_flush() {
    let mut disk = created(&new(64 * MIB, MIB, 512, Kind::Dynamic));
    let chain = open(&mut disk, &Access::Write(guids(2))).unwrap();
    let image = chain.image();
    let payload = vec![9; 8 * MIB as usize];
    disk.run_with(image.write(0, 8 * MIB), &payload).unwrap();
    disk.run(image.flush()).unwrap();
    let length = image.file_bytes();
    assert_eq!(disk.run(image.unmap(0, 8 * MIB)), Ok(8 * MIB));
    disk.run_with(image.write(32 * MIB, MIB), &payload).unwrap();
    assert_eq!(
        image.file_bytes(),
        length + MIB,
        "the old entries may still be on the disk"
    );
    disk.run(image.flush()).unwrap();
    disk.run_with(image.write(33 * MIB, 512), &payload).unwrap();
    assert_eq!(image.file_bytes(), length + MIB);
    assert_eq!(
        read(&mut disk, &chain, 33 * MIB + 512, 1024),
        Ok(vec![0; 1024])
    );
}
