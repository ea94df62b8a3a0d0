//! Objects for tests, as they are stored.

use super::{BackendSpec, Backing, Lun, Storage, Target};
use crate::size::Size;

/// A LUN of a MiB in memory.
#[must_use]
pub fn lun() -> Lun {
    Lun {
        naa: "6".repeat(32),
        serial: "1".repeat(16),
        size: Size::from_bytes(1 << 20).expect("a size"),
        block_size: 512,
        physical_block_size: 4096,
        thin: true,
        backing: Backing::Own(BackendSpec::Memory),
        bytes_in_flight_max: None,
        storage: Storage::default(),
    }
}

/// A target of this iSCSI name that all may find.
#[must_use]
pub fn target(iqn: &str) -> Target {
    Target {
        id: 1,
        relative_port: 1,
        iqn: iqn.to_owned(),
        portal_group: "default".to_owned(),
        redirect: None,
        maintenance: false,
        maintenance_grace_seconds: 30,
    }
}
