//! The real volumes on the simulated disk: a file in a pool, or a block device, with the layers
//! that a logical unit is given.

use super::layout::Layout;
use super::scene::{Opened, Scene, Setup};
use backends::{FileSpec, Provisioning, create_file, open_block, open_file};
use env::sim::{BlockDevice, Node, World};
use env::{CoreHandle, LocalFuture};
use layers::stripe::Stripe;
use layers::{Emulate, ReadCache, StableWrite};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use units::{BlockSize, ByteCount};
use volume::{Checked, Fences, Volume, over};

/// The name of the only disk.
const ONLY: &str = "lun";

/// The names of the parts of a disk, each of which is one as a setup of its own says.
fn parts(name: &str, setup: Setup) -> Vec<(String, Setup)> {
    if setup.layout == Layout::One {
        return vec![(name.to_owned(), setup)];
    }
    let part = Setup {
        blocks: setup.blocks / setup.layout.columns(),
        layout: Layout::One,
        ..setup
    };
    let names = (0..setup.layout.columns()).map(|number| format!("{name}.{number}"));
    names.map(|name| (name, part)).collect()
}

/// The files or devices of a disk.
pub(super) fn backings(name: &str, setup: Setup) -> Vec<PathBuf> {
    let parts = parts(name, setup).into_iter();
    let at = if uses_device(setup) { device } else { file };
    parts.map(|(name, _)| at(&name)).collect()
}

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

/// The volume called `name` that a setup stands for; made where it is not there yet. Its file and
/// device survive the node.
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

/// The files or devices themselves.
pub(super) async fn leaf(
    core: &CoreHandle,
    name: &str,
    setup: Setup,
    fences: Fences,
) -> Result<Arc<dyn Volume>, String> {
    if setup.layout == Layout::One {
        return part(core, name, setup, fences).await;
    }
    let mut opened = Vec::new();
    for (name, setup) in parts(name, setup) {
        let part = part(core, &name, setup, fences.clone()).await?;
        opened.push(over(Checked, part));
    }
    let laid = Stripe::new(opened, setup.layout.map(setup.blocks));
    let laid = laid.map_err(|error| error.to_string())?;
    Ok(over(Checked, laid))
}

/// The file or device of one part.
async fn part(
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

/// Adds the block devices of a setup to a new node.
pub(super) fn add_device(node: &Node, name: &str, setup: Setup) {
    let bytes = setup.block_size.bytes();
    for (name, setup) in parts(name, setup) {
        let facts = BlockDevice {
            bytes: setup.blocks * u64::from(bytes),
            logical_block_bytes: bytes,
            physical_block_bytes: bytes << setup.physical_block_exponent,
            discard_granularity: if setup.salt & 4 == 0 { bytes } else { 0 },
        };
        node.disk().add_block_device(&device(&name), facts);
    }
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
        physical_block_exponent: setup.physical_block_exponent,
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
            Opened::of(volume, &core).await
        })
    }
}
