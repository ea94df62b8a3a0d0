//! Differencing images, against a model of what the chain holds.

use super::disk::{Disk, Random};
use super::world::{MIB, Model, created, guids, new, open, range, read};
use crate::{Access, Action, Answer, Error, Image, Kind, Locator, New, ParentMismatch, Severity};

/// A child of file 0 becomes file 0, and the others move up.
pub(crate) fn add_child(disk: &mut Disk, of: impl FnOnce(Kind) -> New, seed: u8) {
    let parent = disk.run(Image::open(Access::Read)).unwrap();
    let locator = Locator {
        linkage: parent.header().data_write,
        relative: Some(".\\parent.vhdx".to_owned()),
        ..Locator::default()
    };
    disk.files.insert(0, super::disk::File::default());
    let new = of(Kind::Differencing(locator));
    disk.run(new.create(guids(seed))).unwrap();
}

/// Random writes, zeroes and unmaps of the first image.
fn change(disk: &mut Disk, model: &mut Model, random: &mut Random, count: u64, base: u64) {
    let chain = open(disk, &Access::Write(guids(base as u8))).unwrap();
    let image = chain.image();
    let geometry = image.geometry();
    let sector = geometry.sector_bytes;
    for step in base..base + count {
        let (at, bytes) = range(random, &geometry);
        match random.below(8) {
            0 => {
                model.put(at, bytes, sector, None);
                disk.run(image.write_zeroes(at, bytes)).unwrap();
            }
            1 => {
                disk.run(image.unmap(at, bytes)).unwrap();
                let whole = geometry.pieces(at, bytes);
                let whole = whole.filter(|it| it.2 == geometry.bytes_of(it.0));
                for (block, _, bytes) in whole {
                    model.put(block * geometry.block_bytes, bytes, sector, None);
                }
            }
            2 => disk.run(image.flush()).unwrap(),
            3 => {
                let found = read(disk, &chain, at, bytes).unwrap();
                assert!(found == model.range(at, bytes, sector), "step {step}");
            }
            _ => {
                model.put(at, bytes, sector, Some(step));
                let payload = model.range(at, bytes, sector);
                disk.run_with(image.write(at, bytes), &payload).unwrap();
            }
        }
    }
    disk.run(image.close()).unwrap();
    let report = disk.run(image.check()).unwrap();
    let is_whole = report.worst() <= Some(Severity::Note);
    assert!(is_whole, "{:?}", report.findings);
}

fn all_of(disk: &mut Disk, model: &Model, said: &str) {
    let chain = open(disk, &Access::Read).unwrap();
    let geometry = chain.image().geometry();
    let found = read(disk, &chain, 0, geometry.disk_bytes).unwrap();
    assert!(
        found == model.range(0, geometry.disk_bytes, geometry.sector_bytes),
        "{said}"
    );
}

#[test]
fn a_chain_holds_what_the_model_does_and_still_does_when_it_is_merged() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let sector = [512, 4096][seed as usize % 2];
        let bytes = [5 * MIB, 11 * MIB + sector][seed as usize / 2 % 2];
        let blocks = [[MIB, MIB, 2 * MIB], [4 * MIB, MIB, MIB]][seed as usize / 4];
        let mut disk = created(&new(bytes, blocks[0], sector, Kind::Dynamic));
        let mut model = Model::default();
        change(&mut disk, &mut model, &mut random, 20, 1);
        for (depth, block) in (2..).zip(&blocks[1..]) {
            let of = |kind| new(bytes, *block, sector, kind);
            add_child(&mut disk, of, depth);
            all_of(&mut disk, &model, "an empty child");
            change(
                &mut disk,
                &mut model,
                &mut random,
                20,
                100 * u64::from(depth),
            );
            all_of(&mut disk, &model, "a child");
        }
        // The youngest into its parent, and that into the oldest.
        while disk.files.len() > 1 {
            let child = disk.run(Image::open(Access::Write(guids(50)))).unwrap();
            let parent = disk
                .run(Image::open_as(1, Access::Write(guids(51))))
                .unwrap();
            let mut images = vec![child, parent];
            for file in 2..disk.files.len() {
                images.push(disk.run(Image::open_as(file, Access::Read)).unwrap());
            }
            let chain = crate::Chain::new(images).unwrap();
            disk.run(chain.merge()).unwrap();
            all_of(&mut disk, &model, "the chain after a merge");
            disk.files.remove(0);
            all_of(&mut disk, &model, "without the child");
            let oldest = disk.run(Image::open(Access::Read)).unwrap();
            let report = disk.run(oldest.check()).unwrap();
            let is_whole = report.worst() <= Some(Severity::Note);
            assert!(is_whole, "{:?}", report.findings);
        }
    }
}

#[test]
fn a_merge_is_begun_anew_after_a_crash_at_any_change() {
    let mut random = Random(3);
    let mut disk = created(&new(4 * MIB, MIB, 512, Kind::Dynamic));
    let mut model = Model::default();
    change(&mut disk, &mut model, &mut random, 10, 1);
    add_child(&mut disk, |kind| new(4 * MIB, MIB, 512, kind), 2);
    change(&mut disk, &mut model, &mut random, 10, 100);
    for at in 0.. {
        let mut disk = disk.clone();
        disk.left = Some(at);
        let ended = merge(&mut disk);
        let mut crashed = disk.crash(&mut random);
        all_of(&mut crashed, &model, &format!("change {at}"));
        crashed.left = Some(random.below(20));
        let again = merge(&mut crashed);
        assert!(again.is_err() || again.is_ok());
        let mut crashed = crashed.crash(&mut random);
        merge(&mut crashed).unwrap();
        crashed.files.remove(0);
        all_of(&mut crashed, &model, &format!("change {at}, merged"));
        if ended.is_ok() {
            assert!(at > 20, "{at}");
            break;
        }
    }
}

fn merge(disk: &mut Disk) -> Result<(), Error> {
    let child = disk.run(Image::open(Access::Write(guids(50))))?;
    let parent = disk.run(Image::open_as(1, Access::Write(guids(51))))?;
    let chain = crate::Chain::new(vec![child, parent])?;
    disk.run(chain.merge())
}

#[test]
fn a_parent_that_was_changed_is_refused() {
    let mut disk = created(&new(4 * MIB, MIB, 512, Kind::Dynamic));
    add_child(&mut disk, |kind| new(4 * MIB, MIB, 512, kind), 2);
    let child = |disk: &mut Disk| open(disk, &Access::Read).map(|_| ());
    assert_eq!(child(&mut disk), Ok(()));
    let mut other = disk.clone();
    let parent = other
        .run(Image::open_as(1, Access::Write(guids(7))))
        .unwrap();
    other.run_with(parent.write(0, 512), &[1; 512]).unwrap();
    other.run(parent.close()).unwrap();
    assert_eq!(
        child(&mut other),
        Err(Error::Parent(ParentMismatch::Linkage))
    );
    let alone = disk.run(Image::open(Access::Read)).unwrap();
    let alone = crate::Chain::new(vec![alone]).map(|_| ());
    assert_eq!(alone, Err(Error::Parent(ParentMismatch::Count)));
    add_child(&mut disk, |kind| new(8 * MIB, MIB, 512, kind), 3);
    assert_eq!(child(&mut disk), Err(Error::Parent(ParentMismatch::Size)));
}

#[test]
fn a_write_that_lacked_space_gives_what_it_took_back_once() {
    let mut disk = created(&new(12 * MIB, MIB, 512, Kind::Dynamic));
    let mut model = Model::default();
    change(&mut disk, &mut model, &mut Random(3), 20, 1);
    add_child(&mut disk, |kind| new(12 * MIB, 2 * MIB, 512, kind), 2);
    let chain = open(&mut disk, &Access::Write(guids(3))).unwrap();
    let image = chain.image();
    // Parts of three blocks, which share a new bitmap.
    let (at, bytes) = (MIB, 4 * MIB);
    let write = image.write(at, bytes);
    let failed = write.run(|request| {
        if matches!(request.action, Action::Payload(_)) {
            return Answer::NotDone;
        }
        disk.answer(request, &[])
    });
    assert_eq!(failed, Err(Error::NotDone));
    for (step, at) in (30..).zip([5 * MIB, MIB, 9 * MIB]) {
        model.put(at, 3 * MIB, 512, Some(step));
        let payload = model.range(at, 3 * MIB, 512);
        disk.run_with(image.write(at, 3 * MIB), &payload).unwrap();
    }
    disk.run(image.close()).unwrap();
    let report = disk.run(image.check()).unwrap();
    let is_whole = report.worst() <= Some(Severity::Note);
    assert!(is_whole, "{:?}", report.findings);
    all_of(&mut disk, &model, "after a write that lacked space");
}
