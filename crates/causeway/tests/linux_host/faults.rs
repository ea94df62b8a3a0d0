//! The long scenes: everything that can happen to paths, daemon and journal, one after the other under one load; file
//! systems on every kind of LUN; commands that several hosts must agree on.

use crate::bed::{Bed, PORTALS};
use crate::load::Load;
use rustix::process::Signal;
use std::time::Duration;

/// How long a fault lasts that must outlast every time-out of a host.
const LONG: Duration = Duration::from_secs(20);
/// All paths are gone for so long.
const MINUTE: Duration = Duration::from_secs(60);

/// A fault, and its end.
type Fault = (&'static str, fn(&mut Bed));

const FAULTS: &[Fault] = &[
    ("the daemon is restarted in order", |bed| {
        bed.stop_daemon();
        bed.start_daemon();
    }),
    ("the daemon is killed and gone for a while", |bed| {
        bed.kill_daemon();
        std::thread::sleep(LONG);
        bed.start_daemon();
    }),
    ("the daemon hangs", |bed| {
        bed.signal(Signal::STOP);
        std::thread::sleep(LONG);
        bed.signal(Signal::CONT);
    }),
    ("an address of the target is taken away", |bed| {
        let address = format!("addr {{}} {}/24 dev p0", PORTALS[0]);
        bed.ip(&address.replace("{}", "del"));
        std::thread::sleep(LONG);
        bed.ip(&address.replace("{}", "add"));
    }),
    ("both paths swallow everything for a minute", |bed| {
        bed.set_black_hole(0, true);
        bed.set_black_hole(1, true);
        std::thread::sleep(MINUTE);
        bed.set_black_hole(0, false);
        bed.set_black_hole(1, false);
    }),
    ("both cables are pulled", |bed| {
        bed.guest.set_link(0, false);
        bed.guest.set_link(1, false);
        std::thread::sleep(LONG);
        bed.guest.set_link(0, true);
        bed.guest.set_link(1, true);
    }),
];

fn outlive(bed: &mut Bed, options: &str, faults: &[Fault]) {
    let map = bed.share("vm01", options);
    let disk = format!("/dev/mapper/{map}");
    for (what, fault) in faults {
        let load = Load::start(&bed.guest, &disk, 8, 4);
        load.wait_for_writes(&bed.guest);
        fault(bed);
        bed.wait_for_paths(&map, 2);
        let report = load.stop(&bed.guest);
        println!("{what}: {report:?}");
    }
    bed.assert_is_well();
}

#[test]
#[ignore = "minutes: `make linux`"]
fn no_fault_of_paths_or_daemon_is_an_error_to_an_application() {
    let Some(mut bed) = Bed::make() else { return };
    outlive(&mut bed, "--size 64M", FAULTS);
}

#[test]
#[ignore = "minutes: `make linux`"]
fn behind_a_journal_kills_are_no_error() {
    let Some(mut bed) = Bed::with("journal = \"data/journal\"\njournal_size = \"64MiB\"") else {
        return;
    };
    let kill: Fault = ("killed behind a journal", |bed| {
        bed.kill_daemon();
        bed.start_daemon();
    });
    outlive(&mut bed, "--size 64M", &[kill, kill, kill, FAULTS[0]]);
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

/// Makes a file system, fills it, and reads it back after a kill in the middle and after it was mounted anew.
const FILE_SYSTEM: &str = "set -e\n\
    case $KIND in ext4) MAKE='mkfs.ext4 -q -F' CHECK='e2fsck -fn';; xfs) MAKE='mkfs.xfs -q -f' CHECK='xfs_repair -n';;\n\
    btrfs) MAKE='mkfs.btrfs -q -f' CHECK='btrfs check --readonly';; f2fs) MAKE='mkfs.f2fs -q -f' CHECK=fsck.f2fs;; esac\n\
    $MAKE $DISK\nmount -t $KIND $DISK /mnt\n\
    touch /tmp/written\n\
    fio --name=files --directory=/mnt --nrfiles=20 --size=24m --bs=16k --rw=randwrite --ioengine=psync --fsync=32 \
    --verify=crc32c --do_verify=1 --verify_fatal=1 --rate=3m > /tmp/fio.files || { cat /tmp/fio.files; exit 1; }\n\
    sync\numount /mnt\n$CHECK $DISK > /tmp/check 2>&1 || { cat /tmp/check; exit 1; }\n\
    mount -t $KIND $DISK /mnt\n\
    fio --name=files --directory=/mnt --nrfiles=20 --size=24m --bs=16k --rw=randwrite --ioengine=psync \
    --verify=crc32c --verify_only --verify_fatal=1 > /tmp/fio.files || { cat /tmp/fio.files; exit 1; }\n\
    fstrim /mnt\numount /mnt";

#[test]
#[ignore = "minutes: `make linux`"]
fn four_file_systems_are_whole_on_every_kind_of_lun_over_a_kill() {
    let Some(mut bed) = Bed::make() else { return };
    let kinds = [
        ("thin512", "--block-size 512"),
        ("thin512e", "--block-size 512 --physical-block-size 4096"),
        ("thin4096", "--block-size 4096"),
        ("thick512", "--block-size 512 --thin false"),
        ("thick4096", "--block-size 4096 --thin false"),
    ];
    for (lun, options) in kinds {
        let map = bed.share(lun, &format!("--size 400M {options}"));
        for kind in ["ext4", "xfs", "btrfs", "f2fs"] {
            let work = bed.guest.start(&format!(
                "rm -f /tmp/written\nKIND={kind} DISK=/dev/mapper/{map}\n{FILE_SYSTEM}"
            ));
            bed.guest
                .wait_until("[ -e /tmp/written ]", Duration::from_secs(120));
            bed.kill_daemon();
            bed.start_daemon();
            work.end();
            println!("{kind} on {lun} ({options}) is whole");
        }
    }
    bed.assert_is_well();
}
