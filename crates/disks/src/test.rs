//! Machines of files, and a smartctl that is a script.

use super::*;
use crate::ask::Asker;
use device_health::{Answer, Memory};
use manifest::disks::{BayState, DiskReport, DiskVerdict, SmartState};
use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// A directory that goes with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("disks-{name}-{}", std::process::id()));
        let _old = fs::remove_dir_all(&dir);
        for part in [
            "sys/block",
            "sys/class/enclosure",
            "sys/dev/block",
            "dev",
            "proc/self",
        ] {
            fs::create_dir_all(dir.join(part)).unwrap();
        }
        Self(dir)
    }

    fn roots(&self) -> Roots {
        Roots {
            sys: self.0.join("sys"),
            proc: self.0.join("proc"),
            dev: self.0.join("dev"),
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A block device at a place below `/sys/devices`.
    fn block(&self, name: &str, place: &str, facts: &[(&str, &str)]) {
        let at = format!("sys/devices/{place}/block/{name}");
        self.write(&format!("{at}/size"), "4096\n");
        for (fact, text) in facts {
            self.write(&format!("{at}/{fact}"), text);
        }
        symlink(self.0.join(&at), self.0.join("sys/block").join(name)).unwrap();
    }

    fn smartctl(&self, script: &str) -> PathBuf {
        let path = self.0.join("smartctl");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

const SAS: &str = "pci0000:00/0000:00:01.0/host0/port-0:0/end_device-0:0";

fn sas_disk(tree: &Tree, slot: u64) {
    let name = format!("sd{}", char::from(b'a' + u8::try_from(slot).unwrap()));
    let place = format!("{SAS}/target0:0:{slot}/0:0:{slot}:0");
    let wwid = format!("naa.5000c500a1b2c3{slot:02x}");
    tree.block(
        &name,
        &place,
        &[
            ("device/vendor", "SEAGATE "),
            ("device/model", "ST12000NM0008   "),
            ("device/rev", "E002"),
            ("device/wwid", &wwid),
            ("device/state", "running\n"),
            ("device/vpd_pg80", &format!("\0\u{0}\0\u{8}ZC1{slot:05}")),
        ],
    );
    // A page is bytes, and 80h is no UTF-8.
    let page = tree.0.join(format!("sys/block/{name}/device/vpd_pg80"));
    let mut bytes = vec![0, 0x80, 0, 8];
    bytes.extend(format!("ZC1{slot:05}").bytes());
    fs::write(page, bytes).unwrap();
}

/// A bay with the device of a disk, or without any.
fn bay(tree: &Tree, slot: u64, status: &str, has_disk: bool) {
    let at = format!("sys/class/enclosure/0:0:24:0/Slot {slot:02}");
    tree.write(&format!("{at}/status"), status);
    tree.write(&format!("{at}/type"), "array device\n");
    tree.write(&format!("{at}/slot"), &format!("{slot}\n"));
    if has_disk {
        let name = format!("sd{}", char::from(b'a' + u8::try_from(slot).unwrap()));
        tree.write(&format!("{at}/device/block/{name}/size"), "4096\n");
    }
}

fn shelf(name: &str, dark: &[u64]) -> Tree {
    let tree = Tree::new(name);
    tree.write("sys/class/enclosure/0:0:24:0/id", "0x500304801f1e2a3f\n");
    tree.write("sys/class/enclosure/0:0:24:0/Fan 1/status", "OK\n");
    tree.write("sys/class/enclosure/0:0:24:0/Fan 1/type", "cooling\n");
    for slot in 0..12 {
        let is_dark = dark.contains(&slot);
        if !is_dark {
            sas_disk(&tree, slot);
        }
        let status = if is_dark { "not installed\n" } else { "OK\n" };
        bay(&tree, slot, status, !is_dark);
    }
    tree
}

#[test]
fn disks_are_those_that_turn_or_flash_and_no_others() {
    let tree = Tree::new("which");
    sas_disk(&tree, 0);
    tree.block(
        "nvme0n1",
        "pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1",
        &[
            ("device/model", "Micron_7450_MTFDKCC3T2TFS               \n"),
            ("device/serial", "220136D5A2C1        \n"),
            ("device/firmware_rev", "E2MU110 \n"),
            ("wwid", "eui.000000000000000100a0752236d5a2c1\n"),
            ("queue/rotational", "0\n"),
        ],
    );
    tree.block("vda", "pci0000:00/0000:00:02.0/virtio1", &[]);
    tree.block("sdu", "pci0000:00/usb2/2-1/host9", &[]);
    for (name, place) in [
        ("loop0", "virtual"),
        ("zram0", "virtual"),
        ("dm-0", "virtual"),
        ("md127", "virtual"),
        ("sr0", "pci0000:00/ata1/host1"),
        // A LUN of another machine.
        ("sdx", "platform/host7/session1/target7:0:0/7:0:0:0"),
    ] {
        tree.block(name, place, &[]);
    }
    tree.block("sdy", "pci0000:00/ata2/host2", &[("size", "0\n")]);
    let disks = crate::system::disks(&tree.roots());
    let names: Vec<&str> = disks.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["nvme0n1", "sda", "sdu", "vda"]);
    let [nvme, sas, usb, virtio] = disks.as_slice() else {
        panic!("four")
    };
    assert_eq!(nvme.identity.model, "Micron_7450_MTFDKCC3T2TFS");
    assert_eq!(nvme.identity.serial, "220136D5A2C1");
    assert_eq!(
        (nvme.identity.rotation_rpm, sas.identity.rotation_rpm),
        (Some(0), None)
    );
    assert_eq!(sas.identity.model, "SEAGATE ST12000NM0008");
    assert_eq!(sas.identity.serial, "ZC100000");
    assert_eq!(sas.identity.wwn, "naa.5000c500a1b2c300");
    assert_eq!(sas.identity.capacity_bytes, Some(2 << 20));
    assert_eq!(sas.state, "running");
    assert!(usb.is_portable && !sas.is_portable);
    assert!(virtio.is_virtual && !nvme.is_virtual);
}

#[test]
fn what_lies_on_a_mapping_lies_on_the_disks_below_it() {
    let tree = Tree::new("below");
    sas_disk(&tree, 0);
    sas_disk(&tree, 1);
    let devices = tree.0.join("sys/devices");
    let sda = devices.join(format!("{SAS}/target0:0:0/0:0:0:0/block/sda"));
    let sdb = devices.join(format!("{SAS}/target0:0:1/0:0:1:0/block/sdb"));
    fs::create_dir_all(sda.join("sda1")).unwrap();
    fs::write(sda.join("sda1/partition"), "1\n").unwrap();
    for (name, lower) in [
        ("md0", vec![sda.join("sda1"), sdb]),
        ("dm-0", vec![devices.join("virtual/block/md0")]),
    ] {
        tree.block(name, "virtual", &[]);
        let slaves = devices.join(format!("virtual/block/{name}/slaves"));
        fs::create_dir_all(&slaves).unwrap();
        for lower in lower {
            symlink(&lower, slaves.join(lower.file_name().unwrap())).unwrap();
        }
    }
    let number = |number: &str, at: &str| {
        symlink(devices.join(at), tree.0.join("sys/dev/block").join(number)).unwrap();
    };
    number("253:0", "virtual/block/dm-0");
    number("8:1", &format!("{SAS}/target0:0:0/0:0:0:0/block/sda/sda1"));
    let below = |number: &str| crate::places::below_number(&tree.roots(), number);
    assert_eq!(below("253:0"), ["sda", "sdb"]);
    assert_eq!(below("8:1"), ["sda"]);
    assert_eq!(below("9:9"), Vec::<String>::new());
}

#[test]
fn a_circle_of_mappings_ends() {
    let tree = Tree::new("circle");
    tree.block("dm-1", "virtual", &[]);
    let at = tree.0.join("sys/devices/virtual/block/dm-1");
    fs::create_dir_all(at.join("slaves")).unwrap();
    symlink(&at, at.join("slaves/dm-1")).unwrap();
    symlink(&at, tree.0.join("sys/dev/block/253:1")).unwrap();
    assert!(crate::places::below_number(&tree.roots(), "253:1").is_empty());
}

/// A daemon that remembers in memory.
struct Memo {
    stored: RefCell<Option<Vec<u8>>>,
    aside: RefCell<bool>,
    reports: mpsc::Sender<(DiskReport, Option<Vec<u8>>)>,
}

impl World for Memo {
    async fn uses(&self) -> Vec<(String, PathBuf)> {
        Vec::new()
    }

    async fn load(&self) -> io::Result<Vec<u8>> {
        let stored = self.stored.borrow().clone();
        stored.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    async fn put_aside(&self) -> io::Result<()> {
        *self.aside.borrow_mut() = true;
        Ok(())
    }

    async fn store(&self, bytes: Vec<u8>) -> io::Result<()> {
        *self.stored.borrow_mut() = Some(bytes);
        Ok(())
    }

    async fn publish(&self, report: DiskReport) {
        let stored = self.stored.borrow().clone();
        // The test may have seen enough.
        let _ = self.reports.send((report, stored));
    }
}

type Reports = mpsc::Receiver<(DiskReport, Option<Vec<u8>>)>;

fn settings(tree: &Tree, smartctl: &Path) -> Settings {
    Settings {
        roots: tree.roots(),
        every: Duration::from_secs(3600),
        smartctl: Some(smartctl.to_owned()),
        report: tree.0.join("report"),
    }
}

fn watch(settings: Settings, stored: Option<Vec<u8>>) -> (Watch, Reports) {
    let (reports, seen) = mpsc::channel();
    let world = Memo {
        stored: RefCell::new(stored),
        aside: RefCell::default(),
        reports,
    };
    (Watch::start(settings, world).unwrap(), seen)
}

fn next(reports: &Reports) -> (DiskReport, Option<Vec<u8>>) {
    reports
        .recv_timeout(Duration::from_secs(60))
        .expect("a report")
}

/// Until it is so.
fn wait(reports: &Reports, is_so: impl Fn(&DiskReport) -> bool) -> DiskReport {
    loop {
        let (report, _) = next(reports);
        if is_so(&report) {
            return report;
        }
    }
}

const WELL: &str = r#"{"smartctl":{"version":[7,3],"exit_status":0},"device":{"protocol":"SCSI"},
"smart_status":{"passed":true},"scsi_grown_defect_list":0,"temperature":{"current":31},"rotation_rate":7200}"#;

fn says(document: &str) -> String {
    format!("cat <<'END'\n{document}\nEND")
}

#[test]
fn the_published_fault_from_sysfs_to_the_words() {
    let before = shelf("before", &[]);
    let smartctl = before.smartctl(&says(WELL));
    let (running, reports) = watch(settings(&before, &smartctl), None);
    let report = wait(&reports, |it| {
        it.disks.iter().all(|it| it.smart == SmartState::Read)
    });
    assert_eq!(report.bays.len(), 12, "a fan is no bay");
    assert!(report.findings().is_empty(), "{:?}", report.findings());
    let forgets = |watch: &Watch, name: &str| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(watch.forget(name))
    };
    assert!(!forgets(&running, "ZC100002"), "it is there");
    let (_, stored) = wait_stored(&reports);
    drop(running);
    // The machine is started again, and four bays stay dark.
    let dark = [2, 5, 8, 11];
    let after = shelf("after", &dark);
    let (watch, reports) = watch(settings(&after, &smartctl), Some(stored));
    let report = wait(&reports, |it| {
        it.disks.iter().any(|it| it.smart == SmartState::Read)
    });
    let found = report.findings();
    assert_eq!(found.len(), 4, "{found:?}");
    for slot in dark {
        let it = found.iter().find(|it| it.object == format!("bay {slot}"));
        let it = it.unwrap_or_else(|| panic!("bay {slot}: {found:?}"));
        assert!(it.cause.contains(&format!("ZC1{slot:05}")), "{}", it.cause);
    }
    assert!(forgets(&watch, "ZC100005"));
    let report = wait(&reports, |it| it.findings().len() == 3);
    assert_eq!(report.bays[5].state, BayState::Empty);
}

/// The first report behind what was stored, with that.
fn wait_stored(reports: &Reports) -> (DiskReport, Vec<u8>) {
    loop {
        if let (report, Some(stored)) = next(reports) {
            Memory::read(&stored).unwrap();
            return (report, stored);
        }
    }
}

#[test]
fn a_memory_of_a_newer_version_is_not_written_over() {
    let tree = shelf("newer", &[]);
    let smartctl = tree.smartctl(&says(WELL));
    let newer = Memory::default().write();
    let newer = String::from_utf8(newer)
        .unwrap()
        .replace("disks 1", "disks 9");
    let (_watch, reports) = watch(settings(&tree, &smartctl), Some(newer.clone().into_bytes()));
    let is_read = |it: &DiskReport| it.disks.iter().all(|it| it.smart == SmartState::Read);
    loop {
        let (report, stored) = next(&reports);
        assert_eq!(stored.as_deref(), Some(newer.as_bytes()));
        if is_read(&report) {
            return;
        }
    }
}

#[test]
fn a_damaged_memory_is_put_aside_and_a_new_one_begins() {
    let tree = shelf("damaged", &[]);
    let smartctl = tree.smartctl(&says(WELL));
    let (_watch, reports) = watch(settings(&tree, &smartctl), Some(b"causeway dis".to_vec()));
    loop {
        let (_, stored) = next(&reports);
        if stored.is_some_and(|bytes| Memory::read(&bytes).is_ok()) {
            return;
        }
    }
}

fn ask(tree: &Tree, tool: Option<PathBuf>, time: Duration) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let devices = [("sda".to_owned(), tree.0.join("dev/sda"))];
    let mut asker = Asker::default();
    let answers = runtime.block_on(asker.ask(&Tool(tool), &devices, time));
    answers["sda"].0.clone()
}

fn state(answer: &Answer) -> SmartState {
    match answer {
        Answer::Read(_) => SmartState::Read,
        Answer::Not { state, .. } => *state,
    }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn smartctl_is_asked_without_waking_the_disk() {
    let tree = Tree::new("arguments");
    let tool = tree.smartctl(&format!(
        "echo \"$@\" > {}/asked\n{}",
        tree.0.display(),
        says(WELL)
    ));
    assert_eq!(state(&ask(&tree, Some(tool), LONG)), SmartState::Read);
    let asked = fs::read_to_string(tree.0.join("asked")).unwrap();
    let device = tree.0.join("dev/sda");
    let wanted = format!("--json=c -n standby,3 -a -l devstat {}", device.display());
    assert_eq!(asked.trim(), wanted);
}

#[test]
fn a_smartctl_that_hangs_prints_without_end_or_is_none_is_a_word() {
    let tree = Tree::new("bad");
    let hangs = tree.smartctl("exec sleep 100");
    let short = Duration::from_millis(300);
    assert_eq!(state(&ask(&tree, Some(hangs), short)), SmartState::TimedOut);
    let endless = tree.smartctl("exec yes '{\"smartctl\":'");
    assert_eq!(state(&ask(&tree, Some(endless), LONG)), SmartState::Failed);
    let nonsense = tree.smartctl("echo Segmentation fault; exit 139");
    assert_eq!(state(&ask(&tree, Some(nonsense), LONG)), SmartState::Failed);
    fs::write(tree.0.join("smartctl"), "no program").unwrap();
    fs::set_permissions(tree.0.join("smartctl"), fs::Permissions::from_mode(0o644)).unwrap();
    let tool = Some(tree.0.join("smartctl"));
    assert_eq!(state(&ask(&tree, tool, LONG)), SmartState::Failed);
    let none = find_tool(Some(&tree.0.join("nothing")));
    assert_eq!(none, Tool(None));
    assert_eq!(state(&ask(&tree, none.0, LONG)), SmartState::NoSmartctl);
}

#[test]
fn without_smartctl_the_report_says_what_to_install() {
    let tree = shelf("without", &[]);
    let (_watch, reports) = watch(settings(&tree, &tree.0.join("nothing")), None);
    let report = wait(&reports, |it| !it.notes.is_empty());
    assert!(
        report.notes[0].contains("apt install smartmontools"),
        "{:?}",
        report.notes
    );
    assert!(
        report
            .disks
            .iter()
            .all(|it| it.health == DiskVerdict::Unknown)
    );
}

#[test]
fn what_root_has_read_counts_for_the_disks_that_it_saw() {
    let tree = shelf("root", &[]);
    let refuses = r#"{"smartctl":{"exit_status":2,"messages":[{"string":"Smartctl open device: /dev/sda failed: Permission denied","severity":"error"}]}}"#;
    let smartctl = tree.smartctl(&says(refuses));
    let root = tree.smartctl(&says(WELL));
    let (_, mut documents) = scan(&tree.roots(), Some(&root)).unwrap();
    assert_eq!(documents.disks.len(), 12);
    // One was changed for another since.
    documents.disks[3].wwn = "naa.5000c500ffffffff".to_owned();
    documents.write(&tree.0.join("report")).unwrap();
    tree.smartctl(&says(refuses));
    let (_watch, reports) = watch(settings(&tree, &smartctl), None);
    let is_asked = |it: &DiskReport| it.disks.iter().all(|it| it.smart != SmartState::Waiting);
    let report = wait(&reports, is_asked);
    let states: Vec<SmartState> = report.disks.iter().map(|it| it.smart).collect();
    let mut wanted = [SmartState::Read; 12];
    wanted[3] = SmartState::NotPermitted;
    assert_eq!(states, wanted);
    assert!(report.notes[0].contains("causeway-disks.timer"));
}

#[test]
fn a_file_that_is_no_report_is_not_used() {
    let tree = shelf("foreign", &[]);
    tree.write("report", "{\"at\": 1}");
    assert!(Report::read(&tree.0.join("report")).is_err());
    assert!(Report::read(&tree.0.join("nothing")).unwrap().is_none());
    let smartctl = tree.smartctl(&says(WELL));
    let (_watch, reports) = watch(settings(&tree, &smartctl), None);
    wait(&reports, |it| {
        it.disks.iter().all(|it| it.smart == SmartState::Read)
    });
}

#[test]
fn the_time_of_questions_may_be_never() {
    let tree = shelf("never", &[]);
    let smartctl = tree.smartctl(&format!("touch {}/asked", tree.0.display()));
    let mut settings = settings(&tree, &smartctl);
    settings.every = Duration::ZERO;
    let (running, reports) = watch(settings, None);
    let (report, _) = next(&reports);
    assert!(
        report
            .disks
            .iter()
            .all(|it| it.smart == SmartState::Waiting)
    );
    assert!(reports.recv_timeout(Duration::from_millis(500)).is_err());
    assert!(!tree.0.join("asked").exists());
    // Until somebody wants them.
    running.ask_every(Duration::from_secs(3600));
    wait(&reports, |it| {
        it.disks.iter().all(|it| it.smart != SmartState::Waiting)
    });
    assert!(tree.0.join("asked").exists());
}
