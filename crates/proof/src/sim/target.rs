//! A whole target with hosts: portals, sessions, logical unit, layers and backend on one node, hosts on
//! another, the simulated network between.

use super::disk::{add_device, volume};
use super::initiator::{Complaints, Host, HostConfig};
use super::scene::{Opened, Scene, Setup};
use env::sim::{Node, World};
use env::{CoreHandle, CoreId, LocalFuture};
use logical_unit::{DirectoryStore, Identity, LogicalUnit, UnitConfig, UnitId};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use target::{Export, ExportedTarget, Grant, Listen, PortalGroup, Server, Settings};
use units::BlockSize;
use volume::{Shape, Support};

const NAME: &str = "iqn.2026-11.io.causeway:sim";
const PORT: u16 = 3260;

/// What runs on the node.
struct Running {
    _unit: Arc<LogicalUnit>,
    _server: Server,
    shape: Shape,
}

/// The scene.
#[derive(Default)]
pub struct Target {
    running: Rc<RefCell<Option<Running>>>,
    portal: Cell<Option<SocketAddr>>,
    complaints: Complaints,
    lying: bool,
}

impl Target {
    /// On a disk whose syncs and stable writes say yes and do nothing, as if each sync were missing from
    /// the code: it must not pass.
    #[must_use]
    pub fn on_a_lying_disk() -> Self {
        Self {
            lying: true,
            ..Self::default()
        }
    }
}

fn identity(setup: Setup) -> Identity {
    let mut naa = [0x60; 16];
    naa[8..].copy_from_slice(&setup.salt.to_be_bytes());
    Identity {
        name: "sim".to_owned(),
        serial: format!("{:016x}", setup.salt),
        naa,
        store_key: "sim".to_owned(),
        block_size: setup.block_size,
        physical_block_exponent: 0,
        thin: true,
    }
}

fn export(listen: SocketAddr) -> Export {
    let host = target::Host {
        name: "all".to_owned(),
        initiators: vec!["*".to_owned()],
        chap: None,
    };
    let grant = Grant {
        host: Arc::new(host),
        lun: 0,
        unit: UnitId(1),
        read_only: false,
    };
    let exported = ExportedTarget {
        name: NAME.to_owned(),
        alias: None,
        portal_group_tag: 1,
        relative_port: 1,
        grants: vec![grant],
        redirect: None,
        maintenance: false,
    };
    Export {
        generation: 1,
        targets: vec![Arc::new(exported)],
        portal_groups: vec![PortalGroup {
            name: "default".to_owned(),
            tag: 1,
            listens: vec![Listen::Address(listen)],
        }],
        settings: Settings::default(),
    }
}

async fn start(core: CoreHandle, setup: Setup, listen: SocketAddr) -> Result<Running, String> {
    let fences = LogicalUnit::fences_for();
    let volume = volume(&core, setup, fences.clone()).await?;
    let shape = volume.shape();
    let unit = LogicalUnit::new(UnitConfig {
        id: UnitId(1),
        home: CoreId(u16::from(setup.salt & 64 != 0)),
        identity: identity(setup),
        fences,
        store: Arc::new(DirectoryStore::new(PathBuf::from("/state"))),
    });
    let up = unit.start(&core, Ok(volume)).await;
    up.map_err(|error| error.to_string())?;
    Ok(Running {
        _unit: unit,
        _server: Server::start(&core, export(listen)),
        shape,
    })
}

impl Scene for Target {
    fn name(&self) -> &'static str {
        "target"
    }

    fn block_sizes(&self) -> &'static [BlockSize] {
        &[BlockSize::B512, BlockSize::B4096]
    }

    fn victim(&self, world: &World) -> Node {
        world.node("san")
    }

    fn clients(&self, world: &World) -> Node {
        world.node("hosts")
    }

    fn prepare(&self, world: &World, setup: Setup) {
        let victim = self.victim(world);
        add_device(&victim, setup);
        victim.disk().lie_about_flush(self.lying);
        self.portal.set(Some(SocketAddr::new(victim.ip(), PORT)));
        self.complaints.borrow_mut().clear();
    }

    fn start(&self, victim: &Node, setup: Setup) -> LocalFuture<Result<(), String>> {
        let (core, slot) = (victim.core(0), Rc::clone(&self.running));
        let listen = SocketAddr::new(victim.ip(), PORT);
        Box::pin(async move {
            slot.borrow_mut().take();
            let running = start(core, setup, listen).await?;
            *slot.borrow_mut() = Some(running);
            Ok(())
        })
    }

    fn open(
        &self,
        core: &CoreHandle,
        setup: Setup,
        client: u32,
    ) -> LocalFuture<Result<Opened, String>> {
        let core = Rc::clone(core);
        let complaints = Rc::clone(&self.complaints);
        let portal = self.portal.get();
        let shape = self.running.borrow().as_ref().map(|running| running.shape);
        Box::pin(async move {
            let mut shape = shape.ok_or("the target does not run")?;
            shape.caps.compare_and_write = Support::Emulated;
            shape.limits.compare_and_write_blocks_max = units::BlockCount(128);
            let config = HostConfig {
                portal: portal.ok_or("the scene is not prepared")?,
                target: NAME.to_owned(),
                name: format!("iqn.2026-11.io.causeway.sim:host{client}"),
                block_size: setup.block_size,
                unmaps: shape.caps.discard != Support::Absent,
                strict: setup.strict,
                reconnects: true,
                salt: setup.salt.rotate_right(client % 64) ^ u64::from(client),
            };
            let host = Host::start(&core, config, complaints).await;
            Ok(Opened {
                lane: Rc::new(host),
                shape,
                stable_zeroes: false,
            })
        })
    }

    fn complaints(&self) -> Vec<String> {
        std::mem::take(&mut *self.complaints.borrow_mut())
    }
}
