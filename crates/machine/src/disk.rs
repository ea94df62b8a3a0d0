//! What the system reports of block devices: their disks, and serial numbers.

use env::CoreHandle;
use std::path::{Path, PathBuf};

/// Where the system shows block devices.
const BLOCK: &str = "/sys/class/block";

/// The directory in which the system shows a block device.
async fn facts_of(core: &CoreHandle, path: &Path) -> Option<PathBuf> {
    let device = core.files().resolve(path).await.ok()?;
    let inside = device.starts_with("/dev");
    let name = device.file_name().filter(|_| inside)?;
    core.files()
        .resolve(&Path::new(BLOCK).join(name))
        .await
        .ok()
}

/// The directory in which the system shows the disk of a block device: of a partition, the one that
/// it is a part of. `None`: at `path` is no block device.
pub async fn disk_of(core: &CoreHandle, path: &Path) -> Option<PathBuf> {
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
pub async fn serial(core: &CoreHandle, path: &Path) -> Option<String> {
    let disk = disk_of(core, path).await?;
    for fact in ["device/serial", "serial", "device/wwid", "wwid"] {
        let reported = core.files().read_fact(&disk.join(fact)).await;
        if let Some(reported) = reported.ok().filter(|reported| !reported.is_empty()) {
            return Some(reported);
        }
    }
    None
}
