//! A whole target with hosts: portals, sessions, logical unit, layers and backend on one node,
//! hosts on another, the simulated network between.

use super::disk::add_device;
use super::initiator::Complaints;
use super::scene::{Opened, Scene, Setup};
use super::stack::{self, PORT, Running};
use env::sim::{Node, World};
use env::{CoreHandle, LocalFuture};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use units::BlockSize;

/// Its only unit.
const UNIT: &str = "sim";

/// The scene.
#[derive(Default)]
pub struct Target {
    running: Rc<RefCell<Option<Running>>>,
    portal: Cell<Option<SocketAddr>>,
    complaints: Complaints,
    lying: bool,
}

impl Target {
    /// On a disk whose syncs and stable writes say yes and do nothing, as if each sync were missing
    /// from the code: it must not pass.
    #[must_use]
    pub fn on_a_lying_disk() -> Self {
        Self {
            lying: true,
            ..Self::default()
        }
    }
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
        add_device(&victim, UNIT, setup);
        victim.disk().lie_about_flush(self.lying);
        self.portal.set(Some(SocketAddr::new(victim.ip(), PORT)));
        self.complaints.borrow_mut().clear();
    }

    fn start(&self, victim: &Node, setup: Setup) -> LocalFuture<Result<(), String>> {
        let (core, slot) = (victim.core(0), Rc::clone(&self.running));
        let listen = SocketAddr::new(victim.ip(), PORT);
        Box::pin(async move {
            slot.borrow_mut().take();
            let running = stack::start(&core, &[(UNIT, setup)], listen).await?;
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
        let shape = self
            .running
            .borrow()
            .as_ref()
            .map(|running| running.units[0].shape);
        Box::pin(async move {
            let shape = shape.ok_or("the target does not run")?;
            let portal = portal.ok_or("the scene is not prepared")?;
            Ok(stack::lane(core, (portal, setup, client), shape, complaints).await)
        })
    }

    fn complaints(&self) -> Vec<String> {
        std::mem::take(&mut *self.complaints.borrow_mut())
    }
}
