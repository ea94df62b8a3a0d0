//! Growing, shrinking, compacting, mending: also with a crash at any change.

use super::crashes::{Possible, survive};
use super::disk::{Disk, Random};
use super::world::{MIB, Model, created, guids, new, open, read};
use crate::{Access, Chain, Error, Finding, Kind, Severity};

fn written(disk: &mut Disk, model: &mut Model, parts: &[(u64, u64)]) {
    let chain = open(disk, &Access::Write(guids(2))).unwrap();
    let sector = chain.image().geometry().sector_bytes;
    for (number, (at, bytes)) in (1..).zip(parts) {
        model.put(*at, *bytes, sector, Some(number));
        let payload = model.range(*at, *bytes, sector);
        disk.run_with(chain.image().write(*at, *bytes), &payload)
            .unwrap();
    }
    disk.run(chain.image().close()).unwrap();
}

fn is_as(disk: &mut Disk, chain: &Chain, model: &Model, at: u64, bytes: u64) {
    let sector = chain.image().geometry().sector_bytes;
    let found = read(disk, chain, at, bytes).unwrap();
    assert!(found == model.range(at, bytes, sector), "{at} {bytes}");
}

#[test]
fn a_disk_grows_to_64_tib_and_shrinks_again() {
    for (block, sector, kind, to) in [
        (32 * MIB, 512, Kind::Dynamic, 64 << 40),
        (MIB, 512, Kind::Dynamic, 64 << 40),
        (4 * MIB, 4096, Kind::Dynamic, 1 << 40),
        (MIB, 512, Kind::Fixed, 200 << 30),
    ] {
        let start = 10 * MIB + 4096;
        let mut disk = created(&new(start, block, sector, kind.clone()));
        let mut model = Model::default();
        written(&mut disk, &mut model, &[(0, 2 * MIB), (start - 8192, 8192)]);
        let chain = open(&mut disk, &Access::Write(guids(3))).unwrap();
        let image = chain.image();
        for size in [start + 4096, 40 * MIB, to] {
            disk.run(image.resize(size)).unwrap();
            assert_eq!(image.geometry().disk_bytes, size);
            is_as(&mut disk, &chain, &model, 0, start.min(size));
            is_as(&mut disk, &chain, &model, start, size.min(20 * MIB) - start);
            let (last, payload) = (size - sector, vec![5; sector as usize]);
            assert_eq!(
                read(&mut disk, &chain, last, sector),
                Ok(vec![0; sector as usize])
            );
            disk.run_with(image.write(last, sector), &payload).unwrap();
            disk.run(image.flush()).unwrap();
            assert_eq!(disk.run(image.check()).unwrap().worst(), None);
            let again = open(&mut disk.clone(), &Access::Write(guids(4))).unwrap();
            assert_eq!(read(&mut disk, &again, last, sector), Ok(payload));
            disk.run(image.write_zeroes(last, sector)).unwrap();
        }
        if kind == Kind::Fixed {
            let error = disk.run(image.resize(start)).unwrap_err();
            assert!(matches!(error, Error::InUse { .. }), "{error}");
            continue;
        }
        let error = disk.run(image.resize(MIB)).unwrap_err();
        assert!(matches!(error, Error::InUse { .. }), "{error}");
        let last = to / block * block - block;
        disk.run(image.unmap(last, to - last)).unwrap();
        let kept = 48 * MIB;
        disk.run(image.unmap(kept, 16 * MIB)).unwrap();
        disk.run(image.resize(64 * MIB)).unwrap();
        is_as(&mut disk, &chain, &model, 0, start);
        assert!(disk.run(image.write(64 * MIB, sector)).is_err());
    }
}

#[test]
fn what_a_smaller_disk_had_behind_its_end_is_zeroes_when_it_grows_again() {
    let mut disk = created(&new(8 * MIB, 4 * MIB, 512, Kind::Dynamic));
    let mut model = Model::default();
    written(&mut disk, &mut model, &[(0, 4 * MIB)]);
    let chain = open(&mut disk, &Access::Write(guids(3))).unwrap();
    disk.run(chain.image().resize(MIB)).unwrap();
    disk.run(chain.image().resize(8 * MIB)).unwrap();
    model.put(MIB, 7 * MIB, 512, None);
    is_as(&mut disk, &chain, &model, 0, 8 * MIB);
}

/// A file with holes, of which half of the blocks were given back.
fn with_holes(possible: &mut Possible) -> Disk {
    let mut disk = created(&new(24 * MIB, MIB, 512, Kind::Dynamic));
    let chain = open(&mut disk, &Access::Write(guids(2))).unwrap();
    let image = chain.image();
    for block in 0..20 {
        let (at, bytes) = (block * MIB, 4096);
        disk.run_with(image.write(at, bytes), &Possible::payload(at, bytes, block))
            .unwrap();
        possible.end(at, bytes, Some(block));
    }
    for block in (0..20).step_by(2) {
        disk.run(image.unmap(block * MIB, MIB)).unwrap();
        possible.end(block * MIB, MIB, None);
    }
    disk.run(image.close()).unwrap();
    possible.flushed();
    disk
}

#[test]
fn a_file_is_as_short_as_what_it_holds_when_it_was_compacted() {
    let mut possible = Possible::default();
    let mut disk = with_holes(&mut possible);
    let before = disk.files[0].now.length;
    let chain = open(&mut disk, &Access::Write(guids(3))).unwrap();
    let length = disk.run(chain.image().compact()).unwrap();
    assert_eq!((before, length), (24 * MIB, 14 * MIB));
    assert_eq!(disk.files[0].now.length, length);
    survive(&mut disk, &mut possible, "compacted");
    // What is written after that goes on as before.
    disk.run_with(chain.image().write(0, 512), &[1; 512])
        .unwrap();
    disk.run(chain.image().flush()).unwrap();
    assert_eq!(disk.run(chain.image().check()).unwrap().worst(), None);
}

#[test]
fn compacting_and_growing_may_be_stopped_at_any_change() {
    let mut possible = Possible::default();
    let disk = with_holes(&mut possible);
    for grows in [false, true] {
        for at in 0.. {
            let mut disk = disk.clone();
            let chain = open(&mut disk, &Access::Write(guids(3))).unwrap();
            disk.left = Some(at);
            let ended = if grows {
                disk.run(chain.image().resize(300 << 30))
            } else {
                disk.run(chain.image().compact()).map(|_| ())
            };
            for seed in 0..3 {
                let mut crashed = disk.crash(&mut Random(at * 10 + seed));
                let chain = open(&mut crashed, &Access::Read).unwrap();
                let size = chain.image().geometry().disk_bytes;
                assert!(size == 24 * MIB || grows && size == 300 << 30, "{size}");
                let report = crashed.run(chain.image().check()).unwrap();
                let said = format!("grows {grows}, change {at}: {:?}", report.findings);
                assert!(report.worst() <= Some(Severity::Note), "{said}");
                let found = read(&mut crashed, &chain, 0, 24 * MIB).unwrap();
                possible.clone().settle(&found, &said);
            }
            if ended.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn damage_is_named_and_mended_where_a_copy_says_how() {
    let mut possible = Possible::default();
    let mut disk = with_holes(&mut possible);
    let file = &mut disk.files[0].now;
    file.zero(64 << 10, 4096);
    file.zero(192 << 10, 4096);
    // State 5 of the draft, and a reserved bit: entries 21 and 22 of the table.
    file.write((3 << 20) + 21 * 8, &5_u64.to_le_bytes());
    file.write((3 << 20) + 22 * 8, &8_u64.to_le_bytes());
    file.set_length(40 * MIB);
    let chain = open(&mut disk, &Access::Write(guids(3))).unwrap();
    let report = disk.run(chain.image().repair()).unwrap();
    let names: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(report.count, 5, "{names:?}");
    assert!(
        matches!(report.findings[4], Finding::Tail(bytes) if bytes == 16 * MIB),
        "{names:?}"
    );
    let after = disk.run(chain.image().check()).unwrap();
    assert_eq!(after.findings, []);
    let mut disk = disk.crash(&mut Random(1));
    survive(&mut disk, &mut possible, "mended");
    let again = open(&mut disk, &Access::Read).unwrap();
    assert_eq!(disk.run(again.image().check()).unwrap().findings, []);
    // Two blocks at one place: nobody knows whose it is.
    let entry = disk.files[0].now.read((3 << 20) + 8, 8);
    disk.files[0].now.write((3 << 20) + 23 * 8, &entry);
    let report = disk
        .run(
            open(&mut disk.clone(), &Access::Read)
                .unwrap()
                .image()
                .check(),
        )
        .unwrap();
    assert_eq!(report.worst(), Some(Severity::Damage));
}
