//! Recorded documents, made-up failures, weeks that pass, a reboot after which bays are dark, and
//! documents that are cut and damaged at random.

mod bays;
mod failures;
mod hostile;
mod recorded;
mod weeks;

use crate::{Answer, Asked, Ledger, Reading, Seen, SeenDisk, read};
use manifest::disks::{DiskReport, DiskView};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

/// 2026-11-26.
pub(super) const NOW: u64 = 1_795_651_200;

pub(super) const DAY: u64 = 86_400;

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// The recorded documents, by name.
pub(super) fn recorded() -> &'static BTreeMap<String, Vec<u8>> {
    static ALL: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(from_disk);
    &ALL
}

fn from_disk() -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(testdata()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            all.insert(name, fs::read(path).unwrap());
        }
    }
    all
}

/// A recorded document with other members.
pub(super) fn changed(name: &str, changes: &[(&str, Value)]) -> Vec<u8> {
    let mut document: Value = serde_json::from_slice(&recorded()[name]).unwrap();
    for (pointer, value) in changes {
        let place = document.pointer_mut(pointer);
        *place.unwrap_or_else(|| panic!("{name} has no {pointer}")) = value.clone();
    }
    serde_json::to_vec(&document).unwrap()
}

pub(super) fn reading(bytes: &[u8]) -> Reading {
    match read(bytes) {
        Answer::Read(reading) => *reading,
        Answer::Not { state, why } => panic!("{state:?}: {why}"),
    }
}

/// A machine with one disk that answers this.
pub(super) fn seen(at: u64, bytes: &[u8]) -> Seen {
    let mut disk = SeenDisk {
        name: "sda".to_owned(),
        ..SeenDisk::default()
    };
    disk.identity.serial = "S1".to_owned();
    let answer = read(bytes);
    Seen {
        at,
        disks: vec![disk],
        bays: Vec::new(),
        asked: BTreeMap::from([("sda".to_owned(), Asked { at, answer })]),
    }
}

/// What is said of it.
pub(super) fn report(bytes: &[u8]) -> DiskReport {
    Ledger::default().observe(&seen(NOW, bytes))
}

pub(super) fn view(bytes: &[u8]) -> DiskView {
    report(bytes).disks.remove(0)
}
