//! The real volumes on the simulated disk: a file in a pool, or a block device, with the layers that a
//! logical unit is given.

use super::scene::{Opened, Scene, Setup};
use backends::{FileSpec, Provisioning, create_file, open_block, open_file};
use env::sim::{BlockDevice, Node, World};
use env::{CoreHandle, LocalFuture};
use layers::{Checked, Emulate, ReadCache, StableWrite, over};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use units::{BlockSize, ByteCount};
use volume::{Fences, Volume};

/// The name of the only disk.
const ONLY: &str = "lun";

/// The file of a pool.
pub(super) fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("/pool/{name}"))
}

/// The block device.
pub(super) fn device(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/{name}"))
}

/// The scene.
#[derive(Default)]
pub struct Disk {
    volume: Rc<RefCell<Option<Arc<dyn Volume>>>>,
}

/// The volume called `name` that a setup stands for; made where it is not there yet. Its file and device survive the node.
pub(super) async fn volume(
    core: &CoreHandle,
    name: &str,
    setup: Setup,
    fences: Fences,
) -> Result<Arc<dyn Volume>, String> {
    let leaf = leaf(core, name, setup, fences).await?;
    let leaf = over(StableWrite, over(Emulate, leaf));
    // Every second setup has a cache that holds a part of the blocks.
    let bytes = (setup.salt & 4) * (16 << 10);
    let cached = over(ReadCache::new(bytes, setup.block_size), leaf);
    Ok(over(Checked, cached))
}

/// The file or device itself.
pub(super) async fn leaf(
    core: &CoreHandle,
    name: &str,
    setup: Setup,
    fences: Fences,
) -> Result<Arc<dyn Volume>, String> {
    if uses_device(setup) {
        let opened = open_block(core, &device(name), setup.block_size, fences).await;
        return Ok(opened.map_err(|error| error.to_string())?);
    }
    pool_file(core, name, setup, fences).await
}

/// Every third setup stands on a block device.
pub(super) fn uses_device(setup: Setup) -> bool {
    setup.salt.is_multiple_of(3)
}

/// Adds the block device of a setup to a new node.
pub(super) fn add_device(node: &Node, name: &str, setup: Setup) {
    let bytes = setup.block_size.bytes();
    let facts = BlockDevice {
        bytes: setup.blocks * u64::from(bytes),
        logical_block_bytes: bytes,
        physical_block_bytes: bytes,
        discard_granularity: if setup.salt & 4 == 0 { bytes } else { 0 },
    };
    node.disk().add_block_device(&device(name), facts);
}

async fn pool_file(
    core: &CoreHandle,
    name: &str,
    setup: Setup,
    fences: Fences,
) -> Result<Arc<dyn Volume>, String> {
    let provisioning = match setup.salt & 8 {
        0 => Provisioning::Thin,
        _ => Provisioning::Thick,
    };
    let files = core.files();
    let pool = files.create_dir(Path::new("/pool")).await;
    pool.map_err(|error| error.to_string())?;
    let synced = files.sync_dir(Path::new("/")).await;
    synced.map_err(|error| error.to_string())?;
    let size = ByteCount(setup.blocks * u64::from(setup.block_size.bytes()));
    match create_file(core, &file(name), size, provisioning).await {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error.to_string());
        }
        Ok(()) | Err(_) => {}
    }
    let spec = FileSpec {
        path: file(name),
        block_size: setup.block_size,
        physical_block_exponent: 0,
        provisioning,
    };
    let opened = open_file(core, spec, fences).await;
    Ok(opened.map_err(|error| error.to_string())?)
}

impl Scene for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn block_sizes(&self) -> &'static [BlockSize] {
        &[BlockSize::B512, BlockSize::B4096]
    }

    fn victim(&self, world: &World) -> Node {
        world.node("san")
    }

    fn clients(&self, world: &World) -> Node {
        world.node("san")
    }

    fn prepare(&self, world: &World, setup: Setup) {
        add_device(&self.victim(world), ONLY, setup);
    }

    fn start(&self, victim: &Node, setup: Setup) -> LocalFuture<Result<(), String>> {
        let (core, slot) = (victim.core(0), Rc::clone(&self.volume));
        Box::pin(async move {
            let volume = volume(&core, ONLY, setup, Fences::new(1)).await?;
            *slot.borrow_mut() = Some(volume);
            Ok(())
        })
    }

    fn open(
        &self,
        core: &CoreHandle,
        _setup: Setup,
        _client: u32,
    ) -> LocalFuture<Result<Opened, String>> {
        let (core, slot) = (Rc::clone(core), Rc::clone(&self.volume));
        Box::pin(async move {
            let volume = slot.borrow().clone();
            let volume = volume.ok_or("the volume has not been started")?;
            let shape = volume.shape();
            let lane = volume.open(&core).await;
            let lane = lane.map_err(|error| error.to_string())?;
            Ok(Opened {
                lane,
                shape,
                stable_zeroes: true,
                acknowledged_is_stable: false,
            })
        })
    }
}
