//! A target with logical units over memory, on one node of a simulated world, and a node for hosts.

use crate::host::{Host, Refused, config};
pub(crate) use crate::unit::{BLOCKS, exported};
use env::sim::{FaultPlan, Node, World, WorldConfig};
use env::{CoreHandle, LocalFuture};
use iscsi::initiator_side::{Completion, InitiatorConfig};
use iscsi_target::{
    Export, ExportedTarget, Grant, Host as HostObject, HostChap, Listen, PortalGroup, Server,
    SessionInfo, Settings,
};
use logical_unit::{LogicalUnit, UnitId};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volume::OpKind;
use volume_test::{Action, FaultRule, Faults};

pub(crate) const TARGET: &str = "iqn.2026-11.io.causeway:t1";
pub(crate) const OTHER: &str = "iqn.2026-11.io.causeway:t2";
pub(crate) const ALICE: &str = "iqn.2026-11.example:alice";
pub(crate) const BOB: &str = "iqn.2026-11.example:bob";
pub(crate) const BLOCK: usize = 512;

/// What a test wants to begin with.
pub(crate) struct Setup {
    pub seed: u64,
    pub world: WorldConfig,
    pub units: u16,
    /// No host can have used the units before.
    pub are_new: bool,
    pub settings: Settings,
    /// Virtual time that the test may take.
    pub limit: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            world: WorldConfig {
                cores: 3,
                faults: FaultPlan::benign(),
                ..WorldConfig::default()
            },
            units: 2,
            are_new: false,
            settings: Settings::default(),
            limit: Duration::from_secs(120),
        }
    }
}

/// The target and the means of the test.
#[derive(Clone)]
pub(crate) struct Bench {
    pub world: Rc<World>,
    pub san: Node,
    pub hosts: Node,
    /// Core 0 of the target.
    pub core: CoreHandle,
    /// Core 0 of the hosts.
    pub host_core: CoreHandle,
    pub server: Server,
    pub faults: Vec<Faults>,
    pub units: Vec<Arc<LogicalUnit>>,
    pub portal: SocketAddr,
}

/// Any initiator.
pub(crate) fn everyone() -> Arc<HostObject> {
    host_object("everyone", "*", None)
}

pub(crate) fn host_object(name: &str, initiator: &str, chap: Option<HostChap>) -> Arc<HostObject> {
    Arc::new(HostObject {
        name: name.to_owned(),
        initiators: vec![initiator.to_owned()],
        chap,
        bytes_in_flight_max: None,
    })
}

/// LUN n is unit n.
pub(crate) fn grant(host: &Arc<HostObject>, lun: u16) -> Grant {
    Grant {
        host: Arc::clone(host),
        lun,
        unit: UnitId(u64::from(lun)),
        read_only: false,
    }
}

/// All LUNs for everyone at one target.
pub(crate) fn open_target(units: u16) -> ExportedTarget {
    let host = everyone();
    exported(TARGET, (0..units).map(|lun| grant(&host, lun)).collect())
}

/// A unit in memory, wrapped in faults.
pub(crate) async fn unit(
    core: &CoreHandle,
    number: u16,
    are_new: bool,
) -> (Arc<LogicalUnit>, Faults) {
    let (unit, faults, _store) = crate::unit::unit(core, (number, are_new), BLOCKS).await;
    (unit, faults)
}

/// Runs `body` against a target with the usual export.
pub(crate) fn run<F: Future<Output = ()> + 'static>(setup: Setup, body: impl FnOnce(Bench) -> F) {
    let world = Rc::new(World::new(setup.seed, setup.world));
    let (san, hosts) = (world.node("san"), world.node("hosts"));
    let portal = SocketAddr::new(san.ip(), 3260);
    let core = san.core(0);
    let (count, are_new, settings) = (setup.units, setup.are_new, setup.settings);
    let starting = Rc::clone(&core);
    let (server, all) = world
        .block_on(&san, Duration::from_secs(10), async move {
            let mut all = Vec::new();
            for number in 0..count {
                all.push(unit(&starting, number, are_new).await);
            }
            let export = export(portal, 1, settings, vec![open_target(count)]);
            (Server::start(&starting, export), all)
        })
        .expect("the target starts");
    let (units, faults) = all.into_iter().unzip();
    let bench = Bench {
        host_core: hosts.core(0),
        world: Rc::clone(&world),
        san,
        hosts: hosts.clone(),
        core,
        server,
        faults,
        units,
        portal,
    };
    // The test may not begin before the portal listens.
    world.run_for(Duration::from_millis(10));
    let ended = world.block_on(&hosts, setup.limit, body(bench));
    ended.expect("the test comes to its end in time");
}

pub(crate) fn export(
    portal: SocketAddr,
    generation: u64,
    settings: Settings,
    targets: Vec<ExportedTarget>,
) -> Export {
    Export {
        generation,
        targets: targets.into_iter().map(Arc::new).collect(),
        portal_groups: vec![PortalGroup {
            cores: Vec::new(),
            name: "default".to_owned(),
            tag: 1,
            listens: vec![Listen::Address(portal)],
        }],
        settings,
    }
}

impl Bench {
    /// Replaces the targets that are exported.
    pub(crate) async fn publish(&self, targets: Vec<ExportedTarget>) {
        let old = self.server.export();
        let new = Export {
            generation: old.generation + 1,
            targets: targets.into_iter().map(Arc::new).collect(),
            portal_groups: old.portal_groups.clone(),
            settings: old.settings.clone(),
        };
        self.server.publish(&self.core, new).await;
    }

    /// Replaces where it listens.
    pub(crate) async fn publish_portals(&self, portal_groups: Vec<PortalGroup>) {
        let old = self.server.export();
        let new = Export {
            generation: old.generation + 1,
            portal_groups,
            ..Export::clone(&old)
        };
        self.server.publish(&self.core, new).await;
    }

    /// A session of `initiator` at [`TARGET`].
    pub(crate) fn login(&self, initiator: &str) -> impl Future<Output = Host> + use<> {
        let (bench, config) = (self.clone(), config(initiator, Some(TARGET)));
        async move {
            let host = bench.try_login(&config).await;
            host.expect("the login is taken")
        }
    }

    pub(crate) async fn try_login(&self, config: &InitiatorConfig) -> Result<Host, Refused> {
        Host::login(&self.host_core, self.portal, config).await
    }

    pub(crate) async fn sessions(&self) -> Vec<SessionInfo> {
        self.server.sessions(&self.core).await
    }

    pub(crate) async fn sleep(&self, span: Duration) {
        let until = self.host_core.now().after(span);
        self.host_core.sleep_until(until).await;
    }

    /// Waits until `done`, polling every millisecond; fails after `limit`.
    pub(crate) async fn until(&self, limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
        let latest = self.host_core.now().after(limit);
        while !done() {
            assert!(
                self.host_core.now() < latest,
                "not within {limit:?}: {what}"
            );
            self.sleep(Duration::from_millis(1)).await;
        }
    }

    /// `work` ends within `limit`.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        work: impl Future<Output = T>,
    ) -> T {
        let began = self.host_core.now();
        let mut timer = self.host_core.sleep_until(began.after(limit));
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            if let std::task::Poll::Ready(value) = work.as_mut().poll(cx) {
                return std::task::Poll::Ready(value);
            }
            assert!(
                timer.as_mut().poll(cx).is_pending(),
                "not within {limit:?}: {what}"
            );
            std::task::Poll::Pending
        })
        .await
    }

    /// Every operation of these kinds on a unit hangs until it is released.
    pub(crate) fn hang(&self, unit: usize, kinds: &[OpKind]) {
        self.faults[unit].add(FaultRule {
            kinds: kinds.to_vec(),
            range: None,
            skip: 0,
            times: u64::MAX,
            action: Action::Hang,
        });
    }

    /// What hangs goes on, and nothing hangs any more.
    pub(crate) fn release(&self, unit: usize) {
        self.faults[unit].clear();
        self.faults[unit].release();
    }

    /// Starts something of the test's own beside.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let task: LocalFuture<()> = Box::pin(task);
        self.host_core.spawn(task);
    }

    /// Starts something whose result appears in the slot.
    pub(crate) fn start<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> Slot<T> {
        let slot: Slot<T> = Rc::default();
        let answer = Rc::clone(&slot);
        self.spawn(async move {
            let value = task.await;
            *answer.borrow_mut() = Some(value);
        });
        slot
    }
}

/// A result that may not be there yet.
pub(crate) type Slot<T> = Rc<RefCell<Option<T>>>;

pub(crate) fn write_10(block: u32, blocks: u16) -> [u8; 10] {
    transfer_10(0x2A, block, blocks)
}

pub(crate) fn read_10(block: u32, blocks: u16) -> [u8; 10] {
    transfer_10(0x28, block, blocks)
}

fn transfer_10(opcode: u8, block: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&block.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

pub(crate) const TEST_UNIT_READY: [u8; 6] = [0; 6];

/// Key, additional code and qualifier of a completion.
pub(crate) fn sense(completion: &Completion) -> (scsi::SenseKey, u8, u8) {
    let sense = scsi::Sense::parse(&completion.sense.to_vec()).expect("sense data");
    (sense.key, sense.code.asc, sense.code.ascq)
}
