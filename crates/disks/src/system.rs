//! The disks of the machine, as sysfs shows them.

use crate::roots::{Roots, bytes, names, text};
use device_health::SeenDisk;
use manifest::disks::DiskIdentity;
use std::fs;
use std::path::Path;

/// Names of block devices that are no disks: made of others, of memory, of files or of networks, or
/// media that come and go.
const NO_DISKS: [&str; 12] = [
    "dm-", "drbd", "fd", "loop", "md", "nbd", "pmem", "ram", "rbd", "sr", "zd", "zram",
];

/// Vendors of disks that hypervisors make up.
const VIRTUAL: [&str; 6] = ["QEMU", "VMware", "Msft", "VBOX", "Google", "Xen"];

/// A sector of `size`, whatever the disk's own are.
const SECTOR: u64 = 512;

/// Every disk, by name.
pub(crate) fn disks(roots: &Roots) -> Vec<SeenDisk> {
    let block = roots.sys.join("block");
    let all = names(&block);
    all.iter()
        .filter_map(|name| disk(&block.join(name), name))
        .collect()
}

fn disk(at: &Path, name: &str) -> Option<SeenDisk> {
    let is_other = NO_DISKS.iter().any(|prefix| name.starts_with(prefix));
    if is_other || (name.starts_with("mmcblk") && name.contains("boot")) {
        return None;
    }
    let real = fs::canonicalize(at).ok()?;
    let route = real.to_string_lossy();
    // What the kernel makes up, and LUNs of other machines.
    if route.contains("/virtual/block/") || route.split('/').any(is_session) {
        return None;
    }
    let sectors: u64 = text(&at.join("size")).parse().unwrap_or(0);
    if sectors == 0 {
        return None;
    }
    let vendor = text(&at.join("device/vendor"));
    let is_made_up = ["/virtio", "/vbd-"].iter().any(|it| route.contains(it));
    Some(SeenDisk {
        name: name.to_owned(),
        identity: identity(at, &vendor, sectors),
        state: text(&at.join("device/state")),
        is_portable: route.contains("/usb") || text(&at.join("removable")) == "1",
        is_virtual: is_made_up || VIRTUAL.contains(&vendor.as_str()),
        used_by: Vec::new(),
    })
}

/// `session3` of an iSCSI initiator.
fn is_session(part: &str) -> bool {
    let number = part.strip_prefix("session");
    number.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit()))
}

fn identity(at: &Path, vendor: &str, sectors: u64) -> DiskIdentity {
    let first = |facts: &[&str]| {
        let found = facts.iter().map(|fact| text(&at.join(fact)));
        found.into_iter().find(|it| !it.is_empty())
    };
    let model = text(&at.join("device/model"));
    // "ATA" is the kernel's word for it, and numbers are those of PCI.
    let is_name = !vendor.is_empty() && vendor != "ATA" && !vendor.starts_with("0x");
    DiskIdentity {
        model: if is_name {
            format!("{vendor} {model}").trim().to_owned()
        } else {
            model
        },
        serial: first(&["device/serial", "serial"])
            .or_else(|| serial_of_page(&bytes(&at.join("device/vpd_pg80"))))
            .unwrap_or_default(),
        firmware: first(&["device/firmware_rev", "device/rev"]).unwrap_or_default(),
        wwn: first(&["wwid", "device/wwid"]).unwrap_or_default(),
        capacity_bytes: Some(sectors.saturating_mul(SECTOR)),
        rotation_rpm: (text(&at.join("queue/rotational")) == "0").then_some(0),
    }
}

/// What the unit serial number page (80h) has behind its head of four bytes.
fn serial_of_page(page: &[u8]) -> Option<String> {
    let [_, 0x80, high, low, rest @ ..] = page else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let text = String::from_utf8_lossy(rest.get(..length)?);
    let text: String = text.chars().filter(char::is_ascii_graphic).collect();
    (!text.is_empty()).then_some(text)
}
