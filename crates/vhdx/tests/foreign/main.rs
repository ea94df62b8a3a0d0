//! Images that we write are read alike by others, and what others write is read by us.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod drive;
mod judges;

use drive::{Files, Place, guids};
use judges::{agree, must, same};
use std::path::Path;
use vhdx::{Access, Chain, Geometry, Image, Kind, Locator, New, Vhd, VhdChain};

const MIB: u64 = 1 << 20;

fn new(disk_bytes: u64, block_bytes: u64, sector_bytes: u64, kind: Kind) -> New {
    New {
        geometry: Geometry::new(disk_bytes, block_bytes, sector_bytes).unwrap(),
        physical_bytes: 4096,
        kind,
        disk_id: None,
        creator: "test".to_owned(),
    }
}

fn create(path: &Path, new: &New) {
    Files::create(path)
        .run(new.clone().create(guids(1)))
        .unwrap();
}

/// Bytes that say where they belong.
fn pattern(seed: u64, bytes: u64) -> Vec<u8> {
    let words = (0..bytes / 8).map(|word| (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writes at some places of the disk, and to the model of it.
fn scatter(files: &Files, image: &vhdx::Image, disk: &mut [u8], seed: u64) {
    let (sector, total) = (image.geometry().sector_bytes, image.geometry().disk_bytes);
    let sizes = [sector, 8 * sector, MIB + 3 * sector].into_iter().cycle();
    for (number, bytes) in (0..12).zip(sizes) {
        let bytes = bytes.min(total);
        let at = (number * 0x9e37_79b9 + seed * 77) % (total - bytes + 1) / sector * sector;
        let payload = pattern(seed + number, bytes);
        files.write(image, at, &payload);
        let from = usize::try_from(at).unwrap();
        disk[from..from + payload.len()].copy_from_slice(&payload);
    }
}

#[test]
fn what_we_write_is_read_alike_by_five_programs() {
    let place = Place::new("ours");
    for (number, (bytes, block, sector, kind)) in [
        (MIB, MIB, 512, Kind::Dynamic),
        (37 * MIB + 4096, MIB, 512, Kind::Dynamic),
        (70 * MIB, 32 * MIB, 512, Kind::Dynamic),
        (40 * MIB, 2 * MIB, 4096, Kind::Dynamic),
        (9 * MIB, 4 * MIB, 512, Kind::Fixed),
        (9 * MIB, MIB, 4096, Kind::Fixed),
        (100 * MIB, 256 * MIB, 512, Kind::Dynamic),
    ]
    .into_iter()
    .enumerate()
    {
        let path = place.path(&format!("{number}.vhdx"));
        create(&path, &new(bytes, block, sector, kind));
        let mut disk = vec![0; usize::try_from(bytes).unwrap()];
        agree(&path, &disk, sector);
        let files = Files::open(&[&path]);
        let chain = files.chain(&Access::Write(guids(2)));
        scatter(
            &files,
            chain.image(),
            &mut disk,
            u64::try_from(number).unwrap(),
        );
        let half = bytes / 2 / block * block;
        if half + block < bytes {
            let zeroes = files.run(chain.image().unmap(half, block)).unwrap();
            let from = usize::try_from(half).unwrap();
            disk[from..from + usize::try_from(zeroes).unwrap()].fill(0);
        }
        files.run(chain.image().flush()).unwrap();
        same("we", &files.read_disk(&chain, 0, bytes), &disk);
        files.run(chain.image().close()).unwrap();
        agree(&path, &disk, sector);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_log_that_we_left_is_replayed_by_qemu_and_refused_by_7zip() {
    let place = Place::new("log");
    let path = place.path("dirty.vhdx");
    create(&path, &new(64 * MIB, MIB, 512, Kind::Dynamic));
    let (files, mut disk) = (Files::open(&[&path]), vec![0; 64 << 20]);
    let chain = files.chain(&Access::Write(guids(2)));
    for round in 0..40 {
        scatter(&files, chain.image(), &mut disk, round);
        files.run(chain.image().flush()).unwrap();
        if round % 13 == 0 {
            // As a crash leaves it: the log names entries, and the table has what it had before.
            let crashed = place.path("crashed.vhdx");
            std::fs::copy(&path, &crashed).unwrap();
            let of_crashed = Files::open(&[&crashed]);
            let ours = of_crashed.chain(&Access::Read);
            assert!(ours.image().is_replayed_in_memory());
            same(
                "we, in memory",
                &of_crashed.read_disk(&ours, 0, 64 * MIB),
                &disk,
            );
            let table = 3 * MIB;
            of_crashed.damage(table, 4096);
            judges::must_fail("7zz", &["x", "-so", "-tvhdx", crashed.to_str().unwrap()]);
            let again = of_crashed.chain(&Access::Read);
            same(
                "we, after the crash",
                &of_crashed.read_disk(&again, 0, 64 * MIB),
                &disk,
            );
            let check = [
                "check",
                "-r",
                "all",
                "-f",
                "vhdx",
                crashed.to_str().unwrap(),
            ];
            must("qemu-img", &check);
            agree(&crashed, &disk, 512);
        }
    }
}

#[test]
fn what_qemu_writes_is_read_by_us_and_written_on() {
    let place = Place::new("qemu");
    for (number, options) in [
        "subformat=dynamic",
        "subformat=dynamic,block_size=1M",
        "subformat=dynamic,block_size=256M,log_size=2M",
        "subformat=fixed",
        "subformat=fixed,block_state_zero=off,block_size=4M",
    ]
    .into_iter()
    .enumerate()
    {
        let path = place.path(&format!("{number}.vhdx"));
        let text = path.to_str().unwrap();
        must(
            "qemu-img",
            &["create", "-q", "-f", "vhdx", "-o", options, text, "41M"],
        );
        let mut disk = vec![0; 41 << 20];
        let mut commands = vec!["-f".to_owned(), "vhdx".to_owned()];
        for (byte, at, bytes) in [
            (1, 0, 512),
            (2, 5 << 20, 3 << 20),
            (3, (41 << 20) - 1024, 1024),
        ] {
            commands.extend(["-c".to_owned(), format!("write -P {byte} {at} {bytes}")]);
            disk[at..at + bytes].fill(byte);
        }
        commands.push(text.to_owned());
        must(
            "qemu-io",
            &commands.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        let files = Files::open(&[&path]);
        let chain = files.chain(&Access::Write(guids(3)));
        same("we", &files.read_disk(&chain, 0, 41 * MIB), &disk);
        scatter(&files, chain.image(), &mut disk, 5);
        files.run(chain.image().close()).unwrap();
        agree(&path, &disk, 512);
        let more = ["-f", "vhdx", "-c", "write -P 9 7M 2M", text];
        must("qemu-io", &more);
        disk[7 << 20..9 << 20].fill(9);
        let chain = files.chain(&Access::Read);
        same("we, again", &files.read_disk(&chain, 0, 41 * MIB), &disk);
    }
}

#[test]
fn each_size_is_read_alike() {
    let place = Place::new("sizes");
    for (number, (bytes, block, sector)) in [
        (MIB, 256 * MIB, 512),
        (1 << 30, 32 * MIB, 512),
        (2 << 40, 32 * MIB, 512),
        (64 << 40, 256 * MIB, 512),
        (64 << 40, 32 * MIB, 512),
        (64 << 40, 32 * MIB, 4096),
        (64 << 40, 4 * MIB, 512),
    ]
    .into_iter()
    .enumerate()
    {
        let path = place.path(&format!("{number}.vhdx"));
        create(&path, &new(bytes, block, sector, Kind::Dynamic));
        let files = Files::open(&[&path]);
        let chain = files.chain(&Access::Write(guids(2)));
        let last = bytes - sector;
        let parts = [
            (0, sector),
            (bytes / 3 / sector * sector, sector),
            (last, sector),
        ];
        let mut wanted = Vec::new();
        for (number, (at, length)) in (0_u8..).zip(parts) {
            let payload = vec![number + 1; usize::try_from(length).unwrap()];
            files.write(chain.image(), at, &payload);
            wanted.extend(payload);
        }
        files.run(chain.image().close()).unwrap();
        let ours: Vec<u8> = parts
            .iter()
            .flat_map(|(at, n)| files.read_disk(&chain, *at, *n))
            .collect();
        same("we", &ours, &wanted);
        same("libvhdi", &judges::libvhdi(&path, None, &parts), &wanted);
        same(
            "vhdx-core",
            &judges::vhdx_core(&path, None, &parts),
            &wanted,
        );
        if sector == 512 {
            let text = path.to_str().unwrap();
            must("qemu-img", &["check", "-f", "vhdx", text]);
            for (number, (at, length)) in (1..).zip(parts) {
                let read = format!("read -P {number} {at} {length}");
                let said = must("qemu-io", &["-r", "-f", "vhdx", "-c", &read, text]);
                let said = String::from_utf8_lossy(&said).into_owned();
                assert!(!said.contains("failed"), "{said}");
            }
        }
    }
}

/// A child whose parent is in the same directory.
fn child_of(parent: &Path, child: &Path, block_bytes: u64) {
    let files = Files::open(&[parent]);
    let of = files.run(Image::open(Access::Read)).unwrap();
    let geometry = of.geometry();
    let name = parent.file_name().unwrap().to_str().unwrap();
    let locator = Locator {
        linkage: of.header().data_write,
        relative: Some(format!(".\\{name}")),
        absolute: Some(format!("C:\\images\\{name}")),
        ..Locator::default()
    };
    let (bytes, sector) = (geometry.disk_bytes, geometry.sector_bytes);
    create(
        child,
        &new(bytes, block_bytes, sector, Kind::Differencing(locator)),
    );
}

#[test]
fn a_chain_is_read_alike_and_so_is_what_a_merge_leaves() {
    let place = Place::new("chain");
    for (sector, block, of_child) in [
        (512, 4 * MIB, 2 * MIB),
        (4096, MIB, MIB),
        (512, MIB, 32 * MIB),
    ] {
        let (parent, child) = (place.path("parent.vhdx"), place.path("child.vhdx"));
        // 7-Zip opens no disk that is not a multiple of eight sectors.
        let bytes = 41 * MIB + 8 * sector;
        let mut disk = vec![0; usize::try_from(bytes).unwrap()];
        create(&parent, &new(bytes, block, sector, Kind::Dynamic));
        let files = Files::open(&[&parent]);
        let chain = files.chain(&Access::Write(guids(2)));
        scatter(&files, chain.image(), &mut disk, 1);
        files.run(chain.image().close()).unwrap();
        child_of(&parent, &child, of_child);
        let files = Files::open(&[&child, &parent]);
        let chain = files.chain(&Access::Write(guids(3)));
        scatter(&files, chain.image(), &mut disk, 50);
        files
            .run(chain.image().write_zeroes(8 * MIB, 2 * MIB))
            .unwrap();
        let zeroed = 8 << 20..10 << 20;
        disk[zeroed.clone()].fill(0);
        files.run(chain.image().close()).unwrap();
        let all = [(0, bytes)];
        same("we", &files.read_disk(&chain, 0, bytes), &disk);
        same("7-Zip", &judges::seven_zip(&child), &disk);
        // In blocks of a child that are zeroes, libvhdi reads what the parent has.
        let mut theirs = judges::libvhdi(&child, Some(&parent), &all);
        theirs[zeroed].fill(0);
        same("libvhdi", &theirs, &disk);
        same(
            "vhdx-core",
            &judges::vhdx_core(&child, Some(&parent), &all),
            &disk,
        );
        let child_image = files.run(Image::open(Access::Write(guids(4)))).unwrap();
        let parent_image = files
            .run(Image::open_as(1, Access::Write(guids(5))))
            .unwrap();
        let chain = Chain::new(vec![child_image, parent_image]).unwrap();
        files.run(chain.merge()).unwrap();
        agree(&parent, &disk, sector);
        for path in [parent, child] {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_disk_that_grew_or_was_compacted_or_shrank_is_read_alike() {
    let place = Place::new("resize");
    for (number, (block, kind)) in [
        (MIB, Kind::Dynamic),
        (32 * MIB, Kind::Dynamic),
        (MIB, Kind::Fixed),
    ]
    .into_iter()
    .enumerate()
    {
        let path = place.path(&format!("{number}.vhdx"));
        let is_fixed = kind == Kind::Fixed;
        create(&path, &new(20 * MIB, block, 512, kind));
        let files = Files::open(&[&path]);
        let chain = files.chain(&Access::Write(guids(2)));
        let image = chain.image();
        let mut disk = vec![0; 20 << 20];
        scatter(&files, image, &mut disk, 1);
        files.run(image.resize(90 * MIB)).unwrap();
        disk.resize(90 << 20, 0);
        scatter(&files, image, &mut disk, 20);
        if !is_fixed {
            let zeroes = files.run(image.unmap(0, 70 * MIB)).unwrap();
            disk[..usize::try_from(zeroes).unwrap()].fill(0);
            files.run(image.flush()).unwrap();
            let before = image.file_bytes();
            assert!(files.run(image.compact()).unwrap() < before);
        }
        files.run(image.close()).unwrap();
        agree(&path, &disk, 512);
        // A table of 1 MiB has no room for that.
        files
            .run(image.resize(300 << 30))
            .unwrap_or_else(|error| panic!("{error}"));
        files.run(image.close()).unwrap();
        let text = path.to_str().unwrap();
        must("qemu-img", &["check", "-f", "vhdx", text]);
        let parts = [(0, 90 * MIB), ((300 << 30) - MIB, MIB)];
        let mut wanted = disk.clone();
        wanted.resize(91 << 20, 0);
        same("libvhdi", &judges::libvhdi(&path, None, &parts), &wanted);
        same(
            "vhdx-core",
            &judges::vhdx_core(&path, None, &parts),
            &wanted,
        );
        if !is_fixed {
            files.run(image.unmap(64 * MIB, 64 * MIB)).unwrap();
            files.run(image.resize(64 * MIB)).unwrap();
            files.run(image.close()).unwrap();
            disk.truncate(64 << 20);
            agree(&path, &disk, 512);
        }
    }
}

#[test]
fn vhds_that_qemu_writes_are_read_by_us() {
    let place = Place::new("vhd");
    for (name, options) in [
        ("dynamic", "subformat=dynamic,force_size=on"),
        ("fixed", "subformat=fixed,force_size=on"),
        ("geometry", "subformat=dynamic"),
    ] {
        let path = place.path(&format!("{name}.vhd"));
        let text = path.to_str().unwrap();
        must(
            "qemu-img",
            &["create", "-q", "-f", "vpc", "-o", options, text, "43M"],
        );
        let mut writes = vec!["-f", "vpc"];
        for write in [
            "write -P 1 0 512",
            "write -P 2 5M 3M",
            "write -P 3 44039168 1024",
        ] {
            writes.extend(["-c", write]);
        }
        writes.push(text);
        must("qemu-io", &writes);
        let files = Files::open(&[&path]);
        let chain = VhdChain::new(vec![files.run(Vhd::open_as(0)).unwrap()]).unwrap();
        let bytes = chain.disk_bytes();
        let ours = files.gather(files.run(chain.read(0, bytes)).unwrap());
        let raw = place.path("raw");
        must(
            "qemu-img",
            &[
                "convert",
                "-f",
                "vpc",
                "-O",
                "raw",
                text,
                raw.to_str().unwrap(),
            ],
        );
        same("qemu", &ours, &std::fs::read(&raw).unwrap());
        same(
            "libvhdi",
            &ours,
            &judges::libvhdi(&path, None, &[(0, bytes)]),
        );
        assert_eq!((ours[0], ours[5 << 20], ours[9 << 20]), (1, 2, 0), "{name}");
    }
}
