//! Which members of a pool fail together.

use env::CoreHandle;
use machine::disk::disk_of;
use std::path::{Path, PathBuf};

/// What fails with the member at `path`: its disk with the card that it hangs on, or its file
/// system.
pub(crate) async fn domain(core: &CoreHandle, path: &Path) -> Option<String> {
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

/// The mount point that `file` lies below: the longest of all (proc(5), mountinfo: the fifth
/// field).
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
