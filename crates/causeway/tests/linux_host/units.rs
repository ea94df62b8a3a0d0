//! What happens to a unit while a host works: resets by another host, a grant that goes, discards
//! of all that it has. Here the host uses one path without multipath, so that nothing hides what
//! the target answers.

use crate::bed::{Bed, HOST, PORTALS};
use crate::load::Load;
use std::time::{Duration, Instant};

/// A second host: another name, and so another nexus; the guest's kernel makes another SCSI host of
/// it.
const OTHER: &str = "iqn.1993-08.org.debian:01:other";

/// A LUN that both hosts use, at the first portal only. Gives the disk of the host, and of the
/// other one.
fn shared_disks(bed: &Bed, lun: &str, options: &str) -> (String, String) {
    bed.place.run(
        0,
        &format!("share create {lun} --for {HOST} --for {OTHER} {options}"),
    );
    let portal = PORTALS[0];
    bed.guest.run(&format!(
        "iscsiadm -m iface -I other -o new && iscsiadm -m iface -I other -o update -n iface.initiatorname -v {OTHER}\n\
         iscsiadm -m discovery -t sendtargets -p {portal} -I default -I other"
    ));
    log_in(bed, lun)
}

fn log_in(bed: &Bed, lun: &str) -> (String, String) {
    let portal = PORTALS[0];
    bed.guest.run(&format!(
        "iscsiadm -m node -T iqn.2026-11.io.causeway:{lun} -p {portal} --login\nudevadm settle"
    ));
    let disk = |iface: &str| {
        let found = bed.guest.wait_until(
            &format!(
                "for s in /sys/class/iscsi_session/session*; do if [ $(cat $s/ifacename) = {iface} ]; then \
                 echo /dev/$(ls $s/device/target*/*:0/block | grep sd); fi; done | grep sd"
            ),
            Duration::from_secs(30),
        );
        found.trim().to_owned()
    };
    (disk("default"), disk("other"))
}

/// How often the host's kernel was notified of a reset.
fn resets(bed: &Bed) -> usize {
    let console = bed.guest.console();
    console.matches("Power-on or device reset occurred").count()
}

#[test]
fn a_host_goes_on_at_once_when_another_resets_the_unit_and_ends_at_once_when_its_last_grant_goes() {
    let Some(mut bed) = Bed::make() else { return };
    shared_disks(&bed, "vm01", "--size 64M");
    bed.guest.run("iscsiadm -m node --logout");
    let (disk, other) = log_in(&bed, "vm01");
    assert!(disk.starts_with("/dev/sd") && other.starts_with("/dev/sd") && disk != other);
    assert_eq!(
        resets(&bed),
        0,
        "nothing was reset before a first login, or another one"
    );

    for _ in 0..2 {
        let load = Load::start(&bed.guest, &disk, 16, 8);
        load.wait_for_writes(&bed.guest);
        // Many, because one rarely meets a command that the backend ends in the same moment.
        bed.guest.run(&format!(
            "for i in $(seq 40); do sg_reset --device {other}; done"
        ));
        let report = load.stop(&bed.guest);
        println!("a reset by another host: {report:?}");
        assert!(report.longest < Duration::from_secs(2), "{report:?}");
    }
    assert!(resets(&bed) > 0, "the host is notified of a reset");

    let load = Load::start(&bed.guest, &disk, 16, 8);
    load.wait_for_writes(&bed.guest);
    let grants = bed.place.json("grant ls");
    let of_host = |it: &&serde_json::Value| it["host"] == "guest" && it["lun"] == "vm01";
    let grant = grants.as_array().unwrap().iter().find(of_host).unwrap();
    let from = Instant::now();
    let name = grant["name"].as_str().unwrap();
    bed.place.run(0, &format!("grant delete {name} --yes"));
    let said = load.fail();
    let took = from.elapsed();
    println!("the last grant goes: the host's commands had ended after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}\n{said}");
    let read = format!("[ $(dd if={disk} bs=4k count=1 iflag=direct | wc -c) = 4096 ]");
    assert_ne!(bed.guest.try_run(&read).status, 0);

    // It is given back, and works without a new login. Linux has taken its size to be nothing
    // meanwhile, and is to ask again.
    bed.place.run(0, "grant create guest vm01 --target vm01");
    let name = disk.trim_start_matches("/dev/");
    let inspect = format!("echo 1 > /sys/block/{name}/device/rescan; {read}");
    bed.guest.wait_until(&inspect, Duration::from_secs(20));
    let sessions = bed.place.json("session ls");
    assert_eq!(sessions.as_array().map(Vec::len), Some(2), "{sessions}");
    bed.guest.run("iscsiadm -m node --logout");
    bed.assert_is_well();
}

#[test]
#[ignore = "a minute: `make linux`"]
fn commands_that_another_host_preempts_and_aborts_end_at_once() {
    let Some(mut bed) = Bed::make() else { return };
    let (disk, other) = shared_disks(&bed, "vm01", "--size 64M");
    let register = |disk: &str, key: &str| {
        bed.guest.run(&format!(
            "sg_persist --out --register-ignore --param-sark={key} {disk}"
        ));
    };
    let preempt = |kind: &str| {
        bed.guest.run(&format!(
            "sg_persist --out --preempt-abort --param-rk=0xb2 --param-sark=0xa1 {kind} {other}"
        ));
    };
    register(&other, "0xb2");
    // Without a reservation what was aborted is sent again, and done.
    for _ in 0..2 {
        // What this machine needs in the same moments, when the other host asks for nothing.
        let load = Load::start(&bed.guest, &disk, 16, 8);
        load.wait_for_writes(&bed.guest);
        bed.guest
            .run(&format!("sg_persist --in --read-keys {other}"));
        let idle = load.stop(&bed.guest).longest;
        register(&disk, "0xa1");
        let load = Load::start(&bed.guest, &disk, 16, 8);
        load.wait_for_writes(&bed.guest);
        preempt("");
        let report = load.stop(&bed.guest);
        println!("PREEMPT AND ABORT: {report:?}; without it {idle:?}");
        assert!(report.longest < Duration::from_secs(2) + idle, "{report:?}");
    }
    // The other one takes the reservation: this host may not write any more, and is notified at
    // once.
    register(&disk, "0xa1");
    bed.guest.run(&format!(
        "sg_persist --out --reserve --param-rk=0xa1 --prout-type=5 {disk}"
    ));
    let load = Load::start(&bed.guest, &disk, 16, 8);
    load.wait_for_writes(&bed.guest);
    let from = Instant::now();
    preempt("--prout-type=5");
    let said = load.fail();
    let took = from.elapsed();
    println!("fenced by PREEMPT AND ABORT: the host's commands had ended after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}\n{said}");
    assert!(bed.guest.console().contains("reservation conflict"));
    bed.guest.run(&format!(
        "dd if=/dev/zero of={other} bs=4k count=8 oflag=direct"
    ));
    bed.assert_is_well();
}

#[test]
#[ignore = "a minute: `make linux`"]
fn a_host_discards_all_of_a_large_thin_unit_of_4096_byte_blocks() {
    let Some(mut bed) = Bed::make() else { return };
    let map = bed.share("big", "--size 6G --block-size 4096");
    let disk = format!("/dev/mapper/{map}");
    bed.guest.run(&format!(
        "dd if=/dev/urandom of={disk} bs=1M count=4 seek=3000 oflag=direct && blkdiscard {disk} && \
         [ $(dd if={disk} bs=1M skip=2998 count=8 iflag=direct | tr -d '\\0' | wc -c) = 0 ]"
    ));
    // What a user does next discards all of it as well.
    bed.guest.run(&format!(
        "mkfs.ext4 -q {disk} && mount {disk} /mnt && cp -r /usr/sbin /mnt && fstrim -v /mnt && \
         umount /mnt && e2fsck -fn {disk}"
    ));
    let allocated = &bed.place.json("lun show big")["allocated"];
    let most = 1 << 30;
    assert!(
        allocated.as_u64().is_some_and(|it| it < most),
        "{allocated}"
    );
    bed.assert_is_well();
}

/// One writer of four: adds one to the number in a block, by COMPARE AND WRITE, until it has done
/// so ten times.
const WRITER: &str = "writer() {\n\
    done=0\n\
    while [ $done -lt 10 ]; do\n\
    dd if=$1 of=/tmp/old.$2 bs=512 count=1 iflag=direct status=none || return 1\n\
    read -r number < /tmp/old.$2\n\
    printf '%-511s\\n' $((number + 1)) > /tmp/new.$2\n\
    cat /tmp/old.$2 /tmp/new.$2 > /tmp/both.$2\n\
    sg_compare_and_write --in=/tmp/both.$2 --lba=0 --num=1 --xferlen=1024 $1 2>/tmp/said.$2\n\
    case $? in 0) done=$((done + 1));; 14) ;; *) cat /tmp/said.$2; return 1;; esac\n\
    done\n\
    }";

#[test]
#[ignore = "a minute: `make linux`"]
fn four_writers_that_compare_and_write_lose_no_step() {
    let Some(mut bed) = Bed::make() else { return };
    let (disk, other) = shared_disks(&bed, "vm01", "--size 64M");
    let said = bed.guest.run(&format!(
        "{WRITER}\nprintf '%-511s\\n' 0 | dd of={disk} bs=512 oflag=direct status=none\n\
         for n in 1 2; do writer {disk} $n & all=\"$all $!\"; writer {other} 1$n & all=\"$all $!\"; done\n\
         for pid in $all; do wait $pid || exit 1; done\n\
         dd if={disk} bs=512 count=1 iflag=direct status=none"
    ));
    assert_eq!(said.trim(), "40");
    bed.assert_is_well();
}

#[test]
#[ignore = "a minute: `make linux`"]
fn a_reservation_that_persists_through_power_loss_outlives_kills() {
    let Some(mut bed) = Bed::make() else { return };
    let (disk, other) = shared_disks(&bed, "vm01", "--size 64M");
    bed.guest.run(&format!(
        "sg_persist --out --register --param-sark=0xa1 --param-aptpl {disk} && \
         sg_persist --out --reserve --param-rk=0xa1 --prout-type=5 {disk}"
    ));
    for _ in 0..3 {
        bed.kill_daemon();
        bed.start_daemon();
        // The first command after the kill may get a unit attention for it; the host sends it
        // again.
        let keys = bed.guest.wait_until(
            &format!("sg_persist --in --read-keys {disk}"),
            Duration::from_secs(120),
        );
        assert!(keys.contains("0xa1"), "{keys}");
        bed.guest.run(&format!(
            "dd if=/dev/zero of={disk} bs=4k count=8 oflag=direct"
        ));
        let stranger = format!("dd if=/dev/zero of={other} bs=4k count=8 oflag=direct");
        let stranger = bed.guest.try_run(&stranger);
        assert_ne!(stranger.status, 0, "{}", stranger.said);
    }
    assert!(bed.guest.console().contains("reservation conflict"));
    bed.assert_is_well();
}
