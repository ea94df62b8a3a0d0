//! A target with a unit over memory behind several portals of the loopback interface, and a host
//! beside it, each with cores of its own.

use crate::unit::exported;
pub(crate) use crate::unit::{BLOCKS, unit};
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use host::{Attached, Options, Url};
use iscsi_target::{
    Export, Grant, Host as HostObject, HostChap, Listen, PortalGroup, Server, Settings,
};
use logical_unit::LogicalUnit;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, Lane, Op, Origin, Volume};
use volume_test::Faults;

pub(crate) const TARGET: &str = "iqn.2026-11.io.causeway:t1";

pub(crate) fn runtime(cores: usize) -> Runtime {
    let config = RuntimeConfig {
        cores: Cores::List(vec![0; cores]),
        ..RuntimeConfig::default()
    };
    Runtime::start(&config).expect("a runtime")
}

/// Runs `work` on core 0 and waits for it.
pub(crate) fn on<T: Send + 'static, F: Future<Output = T> + 'static>(
    runtime: &Runtime,
    work: impl FnOnce(CoreHandle) -> F + Send + 'static,
) -> T {
    runtime.run(CoreId(0), move |core| -> LocalFuture<T> {
        Box::pin(async move { work(core).await })
    })
}

fn listen(last: u8, six: bool) -> Listen {
    Listen::Address(if six {
        SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0))
    } else {
        SocketAddr::from(([127, 0, 0, last], 0))
    })
}

#[allow(
    dead_code,
    reason = "tests read what they need; the target lives as long as this"
)]
pub(crate) struct San {
    pub(crate) runtime: Runtime,
    pub(crate) portals: Vec<SocketAddr>,
    pub(crate) faults: Vec<Faults>,
    pub(crate) units: Vec<(Arc<LogicalUnit>, Arc<backends::MemoryVolume>)>,
    pub(crate) server: Server,
}

/// What a target is to be like.
#[derive(Clone, Default)]
pub(crate) struct Wish {
    pub(crate) portals: u8,
    pub(crate) units: u16,
    pub(crate) chap: Option<HostChap>,
    /// Blocks of every unit; 0: as many as usual.
    pub(crate) blocks: u64,
    /// The unit of LUN 0; the others follow.
    pub(crate) first: u16,
    /// It listens at `::1` alone.
    pub(crate) six: bool,
}

impl San {
    pub(crate) fn start(wish: Wish) -> Self {
        let runtime = runtime(1);
        let portals = wish.portals;
        let (server, faults, units, portals) = on(&runtime, move |core| async move {
            let host = Arc::new(HostObject {
                name: "everyone".to_owned(),
                initiators: vec!["*".to_owned()],
                chap: wish.chap.clone(),
                bytes_in_flight_max: None,
            });
            let mut faults = Vec::new();
            let mut grants = Vec::new();
            let mut units = Vec::new();
            for number in 0..wish.units {
                let blocks = if wish.blocks == 0 {
                    BLOCKS
                } else {
                    wish.blocks
                };
                let (unit, fault, store) = unit(&core, (wish.first + number, false), blocks).await;
                grants.push(Grant {
                    host: Arc::clone(&host),
                    lun: number,
                    unit: unit.id(),
                    read_only: false,
                });
                units.push((unit, store));
                faults.push(fault);
            }
            let listens = (1..=portals).map(|last| listen(last, wish.six)).collect();
            let export = Export {
                generation: 1,
                targets: vec![Arc::new(exported(TARGET, grants))],
                portal_groups: vec![PortalGroup {
                    cores: Vec::new(),
                    name: "default".to_owned(),
                    tag: 1,
                    listens,
                }],
                settings: Settings::default(),
            };
            let server = Server::start(&core, export);
            let all = loop {
                let now = server.portals();
                if now.len() == usize::from(portals) && now.iter().all(|it| it.error.is_none()) {
                    break now;
                }
                core.sleep_until(core.now().after(Duration::from_millis(1)))
                    .await;
            };
            let portals: Vec<SocketAddr> = all.iter().map(|it| it.address).collect();
            (server, faults, units, portals)
        });
        Self {
            runtime,
            portals,
            faults,
            units,
            server,
        }
    }

    /// The target listens at one portal more; answers which.
    pub(crate) fn add_portal(&self, last: u8) -> SocketAddr {
        let server = self.server.clone();
        on(&self.runtime, move |core| async move {
            let known: Vec<SocketAddr> = server.portals().iter().map(|it| it.address).collect();
            let mut export = Export::clone(&server.export());
            export.generation += 1;
            export.portal_groups[0].listens.push(listen(last, false));
            server.publish(&core, export).await;
            loop {
                let now = server.portals();
                let new = now.iter().map(|it| it.address);
                let new = new.into_iter().find(|it| !known.contains(it));
                if let Some(new) = new.filter(|it| it.port() > 0) {
                    return new;
                }
                core.sleep_until(core.now().after(Duration::from_millis(1)))
                    .await;
            }
        })
    }

    pub(crate) fn url(&self, lun: u16) -> Url {
        let hosts: Vec<String> = self.portals.iter().map(ToString::to_string).collect();
        format!("iscsi://{}/{TARGET}/{lun}", hosts.join(","))
            .parse()
            .expect("a URL")
    }
}

/// A state directory of this test alone.
pub(crate) fn state(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("causeway-host-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

pub(crate) fn options(name: &str, from: u8) -> Options {
    Options {
        from: (1..=from).map(|last| format!("127.0.0.{last}")).collect(),
        initiator_state: Some(state(name)),
        no_discover: true,
        ..Options::default()
    }
}

pub(crate) fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).expect("a small range")
}

pub(crate) async fn write(lane: &dyn Lane, at: u64, data: &[u8]) -> Result<(), IoError> {
    let op = Op::Write {
        range: range(at, data.len() as u64 / 512),
        data: Buf::copy_of(data),
        durability: Durability::Cached,
    };
    lane.submit(Io::new(op, Origin::default()))
        .await
        .map(|_| ())
}

pub(crate) async fn read(lane: &dyn Lane, at: u64, blocks: u64) -> Result<Vec<u8>, IoError> {
    let op = Op::Read {
        range: range(at, blocks),
        into: None,
    };
    match lane.submit(Io::new(op, Origin::default())).await? {
        Done::Data(data) => Ok(data.to_vec()),
        other @ (Done::Nothing | Done::Logged | Done::Extents(_)) => panic!("{other:?}"),
    }
}

pub(crate) async fn lane(core: &CoreHandle, volume: &Arc<Attached>) -> Rc<dyn Lane> {
    Arc::clone(volume).open(core).await.expect("a lane")
}
