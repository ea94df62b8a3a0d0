//! A unit in memory behind faults that a test can switch on, and a target that exports such units.

use env::{CoreHandle, CoreId};
use iscsi_target::{ExportedTarget, Grant};
use logical_unit::{Identity, LogicalUnit, NoStore, UnitConfig, UnitId};
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize};
use volume::{Volume, over};
use volume_test::Faults;

/// Blocks of 512 bytes of a unit, as a rule.
pub(crate) const BLOCKS: u64 = 40_960;

/// Brings one up; its number names it. `is_new`: no host can have used it before.
pub(crate) async fn unit(
    core: &CoreHandle,
    (number, is_new): (u16, bool),
    blocks: u64,
) -> (Arc<LogicalUnit>, Faults, Arc<backends::MemoryVolume>) {
    let fences = LogicalUnit::fences_for();
    let faults = Faults::new();
    let store = backends::MemoryVolume::new(BlockSize::B512, BlockCount(blocks), 3, fences.clone());
    let memory: Arc<dyn Volume> = Arc::clone(&store) as Arc<dyn Volume>;
    let mut naa = [0x60; 16];
    naa[14..].copy_from_slice(&number.to_be_bytes());
    let unit = LogicalUnit::new(UnitConfig {
        id: UnitId(u64::from(number)),
        home: CoreId(number % core.core_count()),
        identity: Identity {
            name: format!("vm{number}"),
            serial: format!("{number:016x}"),
            naa,
            store_key: format!("vm{number}"),
            block_size: BlockSize::B512,
            physical_block_exponent: 3,
            thin: true,
        },
        fences,
        store: Arc::new(NoStore),
        is_new,
    });
    let up = unit.start(core, Ok(over(faults.clone(), memory))).await;
    up.expect("a unit in memory comes up");
    (unit, faults, store)
}

/// A target with these grants.
pub(crate) fn exported(name: &str, grants: Vec<Grant>) -> ExportedTarget {
    ExportedTarget {
        name: name.to_owned(),
        alias: None,
        portal_group_tag: 1,
        relative_port: 1,
        grants,
        redirect: None,
        maintenance: false,
        maintenance_grace: Duration::from_secs(30),
    }
}
