//! The long scenes: everything that can happen to paths and daemon under a load; file systems on
//! every kind of LUN.

use crate::bed::{Bed, JOURNAL, PORTALS};
use crate::load::Load;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long a fault lasts that must outlast every time-out of a host.
const LONG: Duration = Duration::from_secs(20);
/// All paths are gone for so long.
const MINUTE: Duration = Duration::from_secs(60);
/// What a host needs to find its paths again: iscsid's login timeout (15 s), a round of
/// multipathd's checks (5 s), and as much again for a machine that is busy. After more, both ends
/// show what they have said.
const BACK_MAX: Duration = Duration::from_secs(30);

/// A fault, and its end.
type Fault = (&'static str, fn(&mut Bed));

const RESTART: Fault = ("the daemon is restarted in order", |bed| {
    bed.stop_daemon();
    bed.start_daemon();
});

/// How long after the end of a fault its host may still wait, emulated and on a busy machine.
const STALL_MAX: Duration = Duration::from_secs(30);

const KILL: Fault = ("the daemon is killed and started", |bed| {
    bed.kill_daemon();
    bed.start_daemon();
});

const GONE: Fault = ("the daemon is killed and gone for 20 s", |bed| {
    bed.kill_daemon();
    std::thread::sleep(LONG);
    bed.start_daemon();
});

const HANGS: Fault = ("the daemon hangs for 20 s", |bed| {
    bed.signal(Signal::STOP);
    std::thread::sleep(LONG);
    bed.signal(Signal::CONT);
});

const ADDRESS: Fault = ("an address of the target is gone for 20 s", |bed| {
    let address = format!("addr {{}} {}/24 dev p0", PORTALS[0]);
    bed.ip(&address.replace("{}", "del"));
    std::thread::sleep(LONG);
    bed.ip(&address.replace("{}", "add"));
});

const BLACK_HOLES: Fault = ("both paths swallow everything for 60 s", |bed| {
    bed.set_black_hole(0, true);
    bed.set_black_hole(1, true);
    std::thread::sleep(MINUTE);
    bed.set_black_hole(0, false);
    bed.set_black_hole(1, false);
});

const CABLES: Fault = ("both cables are pulled for 20 s", |bed| {
    bed.guest.set_link(0, false);
    bed.guest.set_link(1, false);
    std::thread::sleep(LONG);
    bed.guest.set_link(0, true);
    bed.guest.set_link(1, true);
});

/// Sessions are asked to log out, and their logins refused (0301h), until it is over.
const MAINTENANCE: Fault = ("the target is in maintenance for 20 s", |bed| {
    bed.place.run(
        0,
        "target set vm01 maintenance=true maintenance_grace_seconds=5 --yes",
    );
    std::thread::sleep(LONG);
    let sessions = bed.place.json("session ls");
    assert_eq!(sessions.as_array().map(Vec::len), Some(0), "{sessions}");
    bed.place.run(0, "target set vm01 maintenance=false");
});

fn outlive(bed: &mut Bed, options: &str, faults: &[Fault]) {
    let map = bed.share("vm01", options);
    let disk = format!("/dev/mapper/{map}");
    for (what, fault) in faults {
        let load = Load::start(&bed.guest, &disk, 8, 4);
        load.wait_for_writes(&bed.guest);
        let began = Instant::now();
        fault(bed);
        let over = Instant::now();
        bed.wait_for_paths(&map, 2);
        let back = over.elapsed();
        let report = load.stop(&bed.guest);
        println!("{what}: {report:?}, both paths back {back:.1?} after its end");
        let most = over.duration_since(began) + STALL_MAX;
        if back > BACK_MAX || report.longest > most {
            println!("{}", bed.said());
        }
        assert!(report.longest <= most, "{what}: {report:?}, {most:.1?}");
    }
    bed.assert_is_well();
}

/// Each is no error to an application, and changes no block.
fn is_no_error(faults: &[Fault]) {
    if let Some(mut bed) = Bed::make() {
        outlive(&mut bed, "--size 64M", faults);
    }
}

#[test]
#[ignore = "a minute: `make linux`"]
fn a_daemon_that_is_restarted_or_gone_is_no_error() {
    is_no_error(&[RESTART, GONE]);
}

#[test]
#[ignore = "a minute: `make linux`"]
fn a_daemon_that_hangs_is_no_error() {
    is_no_error(&[HANGS]);
}

#[test]
#[ignore = "a minute: `make linux`"]
fn an_address_that_goes_and_comes_is_no_error() {
    is_no_error(&[ADDRESS]);
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn all_paths_dead_for_a_minute_are_no_error() {
    is_no_error(&[BLACK_HOLES]);
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn both_cables_pulled_are_no_error() {
    is_no_error(&[CABLES, CABLES, CABLES]);
}

#[test]
#[ignore = "a minute: `make linux`"]
fn maintenance_of_the_target_is_no_error() {
    is_no_error(&[MAINTENANCE]);
}

#[test]
#[ignore = "a minute: `make linux`"]
fn behind_a_journal_kills_are_no_error() {
    let Some(mut bed) = Bed::with(JOURNAL) else {
        return;
    };
    outlive(&mut bed, "--size 64M", &[KILL, KILL, KILL, RESTART]);
}

#[test]
#[ignore = "minutes: `make linux`"]
fn with_the_times_of_open_iscsi_a_dead_path_costs_three_times_as_much() {
    let Some(bed) = Bed::make() else { return };
    let own = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains("noop_out"));
        let lines: Vec<&str> = lines.collect();
        lines.join("\n").replace("fast_io_fail_tmo 1", "")
    };
    let map = bed.share_as("vm01", "--size 64M", own);
    let load = Load::start(&bed.guest, &format!("/dev/mapper/{map}"), 8, 4);
    load.wait_for_writes(&bed.guest);
    bed.set_black_hole(0, true);
    bed.guest.wait_until(
        &format!("multipath -ll {map} | grep -q ' failed '"),
        Duration::from_secs(60),
    );
    bed.set_black_hole(0, false);
    let report = load.stop(&bed.guest);
    println!("a black hole, with the defaults of open-iscsi: {report:?}");
    assert!(report.longest > Duration::from_secs(10), "{report:?}");
}

/// Makes a file system, fills it, and reads it back after a kill in the middle and after it was
/// mounted anew.
const FILE_SYSTEM: &str = "set -e\n\
    case $KIND in ext4) MAKE='mkfs.ext4 -q -F' CHECK='e2fsck -fn';; xfs) MAKE='mkfs.xfs -q -f' CHECK='xfs_repair -n';;\n\
    btrfs) MAKE='mkfs.btrfs -q -f' CHECK='btrfs check --readonly';; f2fs) MAKE='mkfs.f2fs -q -f' CHECK=fsck.f2fs;;\n\
    vfat) MAKE='mkfs.vfat' CHECK='fsck.vfat -n';; esac\n\
    $MAKE $DISK\nmount -t $KIND $DISK /mnt\n\
    touch /tmp/written\n\
    fio --name=files --directory=/mnt --nrfiles=20 --size=16m --bs=16k --rw=randwrite --ioengine=psync --fsync=32 \
    --verify=crc32c --do_verify=1 --verify_fatal=1 --rate=3m > /tmp/fio.files || { cat /tmp/fio.files; exit 1; }\n\
    sync\numount /mnt\n$CHECK $DISK > /tmp/check 2>&1 || { cat /tmp/check; exit 1; }\n\
    mount -t $KIND $DISK /mnt\n\
    fio --name=files --directory=/mnt --nrfiles=20 --size=16m --bs=16k --rw=randwrite --ioengine=psync \
    --verify=crc32c --verify_only --verify_fatal=1 > /tmp/fio.files || { cat /tmp/fio.files; exit 1; }\n\
    [ $THIN = false ] || fstrim /mnt\numount /mnt";

/// On each kind of LUN: the daemon is killed while files are written.
fn file_systems_on(lun: &str, options: &str) {
    file_systems_in(Bed::make(), lun, options);
}

fn file_systems_in(bed: Option<Bed>, lun: &str, options: &str) {
    let Some(mut bed) = bed else { return };
    let map = bed.share(lun, &format!("--size 400M {options}"));
    let thin = !options.contains("--thin false");
    for kind in ["ext4", "xfs", "btrfs", "f2fs", "vfat"] {
        let work = bed.guest.start(&format!(
            "rm -f /tmp/written\nKIND={kind} DISK=/dev/mapper/{map} THIN={thin}\n{FILE_SYSTEM}"
        ));
        bed.guest
            .wait_until("[ -e /tmp/written ]", Duration::from_secs(120));
        bed.kill_daemon();
        bed.start_daemon();
        work.end();
        println!("{kind} on {lun} ({options}) is whole");
    }
    bed.assert_is_well();
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn file_systems_on_a_thin_lun_of_512() {
    file_systems_on("thin512", "--block-size 512");
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn file_systems_on_a_thin_lun_of_512_in_4096() {
    file_systems_on("thin512e", "--block-size 512 --physical-block-size 4096");
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn file_systems_on_a_thin_lun_of_4096() {
    file_systems_on("thin4096", "--block-size 4096");
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn file_systems_on_a_thick_lun_of_512() {
    file_systems_on("thick512", "--block-size 512 --thin false");
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn file_systems_on_a_thick_lun_of_512_in_4096() {
    file_systems_on(
        "thick512e",
        "--block-size 512 --physical-block-size 4096 --thin false",
    );
}

#[test]
#[ignore = "two minutes: `make linux`"]
fn file_systems_on_a_thick_lun_of_4096() {
    file_systems_on("thick4096", "--block-size 4096 --thin false");
}

#[test]
#[ignore = "three minutes: `make linux`"]
fn file_systems_on_a_lun_behind_a_journal() {
    file_systems_in(Bed::with(JOURNAL), "journaled", "--block-size 512");
}

#[test]
#[ignore = "three minutes: `make linux`"]
fn file_systems_on_a_lun_with_checksums_of_512_bytes() {
    let options = "--block-size 512 --physical-block-size 512 --integrity true";
    file_systems_in(Bed::with(JOURNAL), "sums512", options);
}

#[test]
#[ignore = "three minutes: `make linux`"]
fn file_systems_on_a_thick_lun_of_4096_with_checksums() {
    let options = "--block-size 4096 --thin false --integrity true";
    file_systems_in(Bed::with(JOURNAL), "sums4096", options);
}
