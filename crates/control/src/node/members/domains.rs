//! What disks pools stand on: serial numbers, and which members fail together.

use env::CoreHandle;
use std::path::{Path, PathBuf};

/// Where the system tells of block devices.
const BLOCK: &str = "/sys/class/block";

/// The directory in which the system tells of a block device.
async fn facts_of(core: &CoreHandle, path: &Path) -> Option<PathBuf> {
    let device = core.files().resolve(path).await.ok()?;
    let inside = device.starts_with("/dev");
    let name = device.file_name().filter(|_| inside)?;
    core.files()
        .resolve(&Path::new(BLOCK).join(name))
        .await
        .ok()
}

/// The same of the disk that a partition is a part of.
async fn disk_of(core: &CoreHandle, path: &Path) -> Option<PathBuf> {
    let facts = facts_of(core, path).await?;
    let is_part = core
        .files()
        .read_fact(&facts.join("partition"))
        .await
        .is_ok();
    if is_part {
        return facts.parent().map(Path::to_owned);
    }
    Some(facts)
}

/// The serial number of the device at `path`, where it is one and has one.
pub(super) async fn serial(core: &CoreHandle, path: &Path) -> Option<String> {
    let disk = disk_of(core, path).await?;
    for fact in ["device/serial", "serial", "device/wwid", "wwid"] {
        let told = core.files().read_fact(&disk.join(fact)).await;
        if let Some(told) = told.ok().filter(|told| !told.is_empty()) {
            return Some(told);
        }
    }
    None
}

/// What fails with the member at `path`: its disk with the card that it hangs on, or its file system.
pub(super) async fn domain(core: &CoreHandle, path: &Path) -> Option<String> {
    if let Some(disk) = disk_of(core, path).await {
        return Some(disk_words(&disk));
    }
    let file = core.files().resolve(path).await.ok()?;
    let mounts = core
        .files()
        .read_fact(Path::new("/proc/self/mountinfo"))
        .await
        .ok()?;
    let mount = mount_of(&file, &mounts)?;
    Some(format!("the file system at {}", mount.display()))
}

/// Such as `disk sda on card 0000:00:1f.2`.
fn disk_words(disk: &Path) -> String {
    let name = disk
        .file_name()
        .map_or("?".into(), |name| name.to_string_lossy());
    let parts = disk
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let mut cards = parts.filter(|part| is_card(part));
    let card = cards.next_back();
    match card {
        Some(card) => format!("disk {name} on card {card}"),
        None => format!("disk {name}"),
    }
}

/// Such as `0000:00:1f.2`.
fn is_card(part: &str) -> bool {
    let bytes = part.as_bytes();
    bytes.len() == 12 && bytes.get(4) == Some(&b':') && bytes.get(10) == Some(&b'.')
}

/// The mount point that `file` lies below: the longest of all (proc(5), mountinfo: the fifth field).
fn mount_of(file: &Path, mounts: &str) -> Option<PathBuf> {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let above = points
        .map(PathBuf::from)
        .filter(|point| file.starts_with(point));
    above.max_by_key(|point| point.components().count())
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn members_fail_with_their_card_or_their_file_system() {
        let disk = "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
        assert_eq!(disk_words(Path::new(disk)), "disk sda on card 0000:00:1f.2");
        let disk = "/sys/devices/virtual/block/loop3";
        assert_eq!(disk_words(Path::new(disk)), "disk loop3");
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 8:2 / /srv rw - ext4 /dev/sda2 rw\n\
                      24 23 8:3 / /srv/san rw - ext4 /dev/sda3 rw";
        let mount = |file: &str| mount_of(Path::new(file), mounts).unwrap();
        assert_eq!(mount("/srv/san/m0"), Path::new("/srv/san"));
        assert_eq!(mount("/srv/sandbox/m0"), Path::new("/srv"));
        assert_eq!(mount("/m0"), Path::new("/"));
    }
}
