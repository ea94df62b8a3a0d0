//! The iSCSI front over logical units over volumes, as a scene sets them up by hand.

use super::disk::volume;
use super::initiator::{Complaints, Host, Session, SessionConfig};
use super::scene::{Opened, Setup};
use env::{CoreHandle, CoreId};
use iscsi::Lun;
use iscsi_target::{Export, ExportedTarget, Grant, Listen, PortalGroup, Server, Settings};
use logical_unit::{
    DirectoryStore, Identity, InitiatorPort, LogicalUnit, NexusPort, UnitAttention, UnitConfig,
    UnitId,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::BlockCount;
use volume::{Fences, Shape, Support, Volume};

const NAME: &str = "iqn.2026-11.io.causeway:sim";
/// Where the portal listens.
pub(super) const PORT: u16 = 3260;

/// A unit in service.
pub(super) struct UnitRuns {
    unit: Arc<LogicalUnit>,
    pub(super) volume: Arc<dyn Volume>,
    pub(super) shape: Shape,
    pub(super) naa: [u8; 16],
}

/// The volume of a unit.
pub(super) type Made<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Volume>, String>> + 'a>>;

/// What runs on the node. The place of a unit is its LUN.
pub(super) struct Running {
    pub(super) units: Vec<UnitRuns>,
    server: Server,
}

impl Running {
    /// LOGICAL UNIT RESET of every unit, by a host that does nothing else.
    pub(super) fn reset_units(&self, core: &CoreHandle) {
        let stranger = NexusPort {
            initiator: InitiatorPort {
                name: "iqn.2026-11.io.causeway.sim:stranger".to_owned(),
                isid: [0x80, 0, 0, 0, 0, 0],
            },
            target_port: 1,
        };
        for one in &self.units {
            let (unit, stranger) = (Arc::clone(&one.unit), stranger.clone());
            let own = Rc::clone(core);
            core.spawn(Box::pin(async move {
                let reported = UnitAttention::LogicalUnitReset;
                unit.reset(&own, &stranger, reported).await;
            }));
        }
    }

    /// A session has gone from one core to another.
    pub(super) fn has_moved_sessions(&self) -> bool {
        self.server.moves().0 > 0
    }
}

/// Asks sessions to go from core to core, whatever they do, for as long as the node lives.
async fn wander(core: CoreHandle, server: Server) {
    loop {
        let mut drawn = [0; 4];
        core.fill_random(&mut drawn);
        let [pause, long, which, to] = drawn.map(u64::from);
        // From 10 us to 50 ms.
        let pause = Duration::from_micros(10 + (pause << (long % 9)) / 2);
        core.sleep_until(core.now().after(pause)).await;
        let sessions = server.sessions(&core).await;
        let count = u64::try_from(sessions.len()).expect("few");
        let session = which
            .checked_rem(count)
            .map(|at| &sessions[usize::try_from(at).expect("below")]);
        if let Some(session) = session {
            let to = CoreId(u16::try_from(to).expect("a byte") % core.core_count());
            // It may have ended by now.
            let _asked = server.move_session(&core, session.number, to).await;
        }
    }
}

pub(super) fn identity(name: &str, setup: Setup, shape: &Shape) -> Identity {
    let mut naa = [0x60; 16];
    naa[8..].copy_from_slice(&setup.salt.to_be_bytes());
    Identity {
        name: name.to_owned(),
        serial: format!("{:016x}", setup.salt),
        naa,
        store_key: name.to_owned(),
        block_size: setup.block_size,
        physical_block_exponent: shape.physical_block_exponent,
        thin: true,
    }
}

/// Every host sees every unit.
fn export(units: u16, listen: SocketAddr) -> Export {
    let host = Arc::new(iscsi_target::Host {
        name: "all".to_owned(),
        initiators: vec!["*".to_owned()],
        chap: None,
        bytes_in_flight_max: None,
    });
    let grant = |lun: u16| Grant {
        host: Arc::clone(&host),
        lun,
        unit: UnitId(u64::from(lun) + 1),
        read_only: false,
    };
    let exported = ExportedTarget {
        name: NAME.to_owned(),
        alias: None,
        portal_group_tag: 1,
        relative_port: 1,
        grants: (0..units).map(grant).collect(),
        redirect: None,
        maintenance: false,
        maintenance_grace: Duration::from_secs(30),
    };
    Export {
        generation: 1,
        targets: vec![Arc::new(exported)],
        portal_groups: vec![PortalGroup {
            cores: Vec::new(),
            name: "default".to_owned(),
            tag: 1,
            listens: vec![Listen::Address(listen)],
        }],
        settings: Settings::default(),
    }
}

/// Brings up units over files and devices, and the front.
pub(super) async fn start(
    core: &CoreHandle,
    units: &[(&str, Setup)],
    listen: SocketAddr,
) -> Result<Running, String> {
    start_over(core, units, listen, |core, name, setup, fences| {
        Box::pin(async move { volume(&core, name, setup, fences).await })
    })
    .await
}

/// Brings up units over what is made for them, and the front.
pub(super) async fn start_over<'a>(
    core: &CoreHandle,
    units: &[(&'a str, Setup)],
    listen: SocketAddr,
    make: impl Fn(CoreHandle, &'a str, Setup, Fences) -> Made<'a>,
) -> Result<Running, String> {
    let mut up = Vec::new();
    for (number, (name, setup)) in (1..).zip(units) {
        let fences = LogicalUnit::fences_for();
        let volume = make(Rc::clone(core), name, *setup, fences.clone()).await?;
        let identity = identity(name, *setup, &volume.shape());
        let naa = identity.naa;
        let unit = LogicalUnit::new(UnitConfig {
            id: UnitId(number),
            home: CoreId(u16::from(setup.salt & 64 != 0)),
            identity,
            fences,
            store: Arc::new(DirectoryStore::new(PathBuf::from("/state/units"))),
            is_new: false,
        });
        let started = unit.start(core, Ok(Arc::clone(&volume))).await;
        started.map_err(|error| error.to_string())?;
        // TAS: whether hosts get TASK ABORTED for commands that another host has ended.
        let reported = setup.salt & 256 != 0;
        unit.fix_task_aborted_status(core, Some(reported)).await;
        up.push(UnitRuns {
            unit,
            shape: volume.shape(),
            volume,
            naa,
        });
    }
    let count = u16::try_from(up.len()).expect("a scene has few units");
    let server = Server::start(core, export(count, listen));
    if units.iter().any(|(_, setup)| setup.salt & 2 != 0) {
        core.spawn(Box::pin(wander(Rc::clone(core), server.clone())));
    }
    Ok(Running { units: up, server })
}

/// How host number `host` logs in.
pub(super) fn session(portal: SocketAddr, host: u32, setup: Setup) -> SessionConfig {
    SessionConfig {
        portal,
        target: NAME.to_owned(),
        name: format!("iqn.2026-11.io.causeway.sim:host{host}"),
        strict: setup.strict,
        reconnects: true,
        salt: setup.salt.rotate_right(host % 64) ^ u64::from(host),
    }
}

/// The lane of host number `host` on the first unit, over a session of its own.
pub(super) async fn lane(
    core: CoreHandle,
    (portal, setup, host): (SocketAddr, Setup, u32),
    mut shape: Shape,
    complaints: Complaints,
) -> Opened {
    shape.caps.compare_and_write = Support::Emulated;
    shape.limits.compare_and_write_blocks_max = BlockCount(128);
    let config = session(portal, host, setup);
    let session = Session::start(&core, config.clone(), Rc::clone(&complaints)).await;
    let facts = (setup.block_size, shape.caps.discard != Support::Absent);
    let host = Host::new(session, &config, Lun::default(), facts, complaints);
    Opened {
        lane: Rc::new(host),
        shape,
        stable_zeroes: false,
        acknowledged_is_stable: false,
    }
}
