//! What the checks examine, and how it is read.

use crate::open_iscsi::{self, OpenIscsi};
use env::{CoreHandle, Route};
use machine::{Kind, Machine, Nic, Roots, UnknownPort};
use paths::{Facts, HostPort, Plan};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The host.
    pub machine: Machine,
    /// The ports that storage uses: those that reach a portal, or all.
    pub ports: Vec<HostPort>,
    /// The routes to the portals.
    pub routes: Vec<RouteProbe>,
    /// Why the target that was named cannot be inspected: cause and remedy.
    pub target_error: Option<(String, String)>,
    /// What the planner makes of it, where a URL was given.
    pub plan: Option<(Facts, Plan)>,
    /// Those of the kernel that are no loop device, RAM disk or mapping of others.
    pub disks: Vec<Disk>,
    /// Its file systems and pools.
    pub space: Vec<Space>,
    /// The kernel's clock is steered by a time server; `None`: unknown.
    pub clock: Option<bool>,
    /// The interface by which the rest of the world is reached.
    pub default_interface: Option<String>,
    /// The kernel's own iSCSI sessions and their disks; `None`: not inspected.
    pub open_iscsi: Option<OpenIscsi>,
    /// The daemon's pools, where one answers.
    pub pools: Pools,
}

/// What the daemon of this host reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pools {
    /// No daemon answered.
    #[default]
    NoDaemon,
    /// One did; its pools are among the spaces.
    Reported,
}

/// The route from a port to a portal, tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteProbe {
    /// The host's port.
    pub port: String,
    /// Its address.
    pub from: IpAddr,
    /// Address and port of the target that was tried.
    pub portal: SocketAddr,
    /// The route of packets; `None`: there is none.
    pub route: Option<Route>,
    /// Bytes of the largest packet that the port may send.
    pub mtu: u32,
    /// A packet of 1500 bytes or less is answered; `None`: no answer came.
    pub small_passes: Option<bool>,
    /// One of `mtu` bytes is.
    pub large_passes: Option<bool>,
}

/// A disk of this machine, as the kernel describes it; none that is made of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// The kernel's name, such as `nvme0n1`.
    pub name: String,
    /// It answers writes from a cache that power loss empties.
    pub volatile_cache: bool,
    /// Bytes of a logical block.
    pub logical: u32,
    /// Bytes of a physical block.
    pub physical: u32,
}

/// A file system or a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// What it is called.
    pub name: String,
    /// Used, of a hundred.
    pub used_percent: u8,
}

/// Why nothing is known of the host.
#[derive(Debug)]
pub enum InspectError {
    /// The system does not report its interfaces.
    System(io::Error),
    /// `from` names none of them.
    Port(UnknownPort),
}

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => {
                write!(f, "this system does not report its interfaces: {error}")
            }
            Self::Port(unknown) => write!(f, "{unknown}"),
        }
    }
}

impl std::error::Error for InspectError {}

/// Reads the host. `from` keeps it to these interfaces and addresses.
///
/// # Errors
/// Where the system does not report its interfaces, or `from` names none.
pub async fn inspect(
    core: &CoreHandle,
    roots: &Roots,
    from: &[String],
) -> Result<Scene, InspectError> {
    let machine = machine::read(core, roots).await;
    let machine = machine.map_err(InspectError::System)?;
    let mut ports = machine.ports_from(from).map_err(InspectError::Port)?;
    ports.retain(|port| machine.nic(&port.name).is_none_or(is_outside));
    // Any address that is not here: TEST-NET-1 is for documents, and routed like the rest of the
    // world.
    let world = IpAddr::from([192, 0, 2, 1]);
    let default = core.net().route(world, None).ok();
    Ok(Scene {
        disks: disks(core, roots).await,
        space: spaces(core, roots).await,
        open_iscsi: Some(open_iscsi::read(core, roots).await),
        clock: core.clock_is_steered(),
        default_interface: default.map(|it| it.interface),
        ports,
        machine,
        ..Scene::default()
    })
}

fn is_outside(nic: &Nic) -> bool {
    nic.kind != Kind::Loopback
}

/// The largest packet of a port: its length has 16 bits (RFC 791 3.1 "Internet Header Format"), and
/// the loopback's MTU has 17.
fn packet_of(mtu: u32) -> u32 {
    mtu.min(u32::from(u16::MAX))
}

/// Tries the route from a port's address to a portal.
async fn probe_route(
    core: &CoreHandle,
    port: &HostPort,
    from: IpAddr,
    portal: SocketAddr,
) -> RouteProbe {
    const ORDINARY: u32 = 1500;
    let net = core.net();
    let route = net.route(portal.ip(), Some(from)).ok();
    let small = port.mtu.min(ORDINARY);
    let small_passes = net.passes(portal.ip(), from, small).await.ok().flatten();
    let large_passes = if port.mtu > ORDINARY {
        let large = packet_of(port.mtu);
        net.passes(portal.ip(), from, large).await.ok().flatten()
    } else {
        small_passes
    };
    RouteProbe {
        port: port.name.clone(),
        from,
        portal,
        route,
        mtu: port.mtu,
        small_passes,
        large_passes,
    }
}

/// The routes that the plan could use; a portal that none leads to is tried from the first port of
/// its family. `None`: the plan names a port that the facts have not.
pub async fn probe_routes(
    core: &CoreHandle,
    scene: &mut Scene,
    facts: &Facts,
    plan: &Plan,
) -> Option<()> {
    let usable: Vec<(String, IpAddr, SocketAddr)> = plan
        .paths
        .iter()
        .filter_map(|path| Some((path.path.host.clone(), path.source?, path.portal?)))
        .collect();
    let used = |name: &str| usable.iter().any(|it| it.0 == name);
    scene.ports = facts
        .hosts
        .iter()
        .filter(|it| used(&it.name))
        .cloned()
        .collect();
    for (name, from, portal) in &usable {
        let port = facts.hosts.iter().find(|it| it.name == *name)?;
        scene
            .routes
            .push(probe_route(core, port, *from, *portal).await);
    }
    for portal in facts.targets.iter().flat_map(|it| it.portals.iter()) {
        let is_tried = usable.iter().any(|it| it.2 == *portal);
        let addresses = facts.hosts.iter().flat_map(|port| {
            let family = port.addresses.iter();
            family
                .filter(|at| at.ip.is_ipv4() == portal.is_ipv4())
                .map(move |at| (port, at.ip))
        });
        let mut addresses = addresses;
        if let (false, Some((port, from))) = (is_tried, addresses.next()) {
            scene
                .routes
                .push(probe_route(core, port, from, *portal).await);
        }
    }
    Some(())
}

async fn disks(core: &CoreHandle, roots: &Roots) -> Vec<Disk> {
    let (files, dir) = (core.files(), roots.sys.join("block"));
    let mut found = Vec::new();
    for entry in files.list(&dir).await.unwrap_or_default() {
        let name = entry.name.to_string_lossy().into_owned();
        if ["loop", "ram", "zram", "dm-", "md", "sr", "nbd"]
            .iter()
            .any(|kind| name.starts_with(kind))
        {
            continue;
        }
        let queue = dir.join(&entry.name).join("queue");
        let reported = files.read_fact(&queue.join("write_cache")).await;
        let Ok(cache) = reported else { continue };
        let number = async |what: &str| {
            let reported = files.read_fact(&queue.join(what)).await.ok();
            reported.and_then(|it| it.parse().ok()).unwrap_or(512)
        };
        found.push(Disk {
            volatile_cache: cache == "write back",
            logical: number("logical_block_size").await,
            physical: number("physical_block_size").await,
            name,
        });
    }
    found
}

/// File systems on block devices.
async fn spaces(core: &CoreHandle, roots: &Roots) -> Vec<Space> {
    let files = core.files();
    let reported = files.read_fact(&roots.proc.join("self/mounts")).await;
    let mut found: Vec<Space> = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for (device, place) in mounts(&reported.unwrap_or_default()) {
        // A device that is mounted twice is one space.
        if devices.contains(&device) {
            continue;
        }
        if let Ok(space) = files.space(&place).await {
            devices.push(device);
            found.extend(used(space.used, space.available).map(|used_percent| Space {
                name: place.display().to_string(),
                used_percent,
            }));
        }
    }
    found
}

/// Devices and where they are mounted, from the text of `/proc/self/mounts`.
fn mounts(text: &str) -> Vec<(String, PathBuf)> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, place) = (words.next()?, words.next()?);
        let place = place.replace("\\040", " ");
        device
            .starts_with("/dev/")
            .then(|| (device.to_owned(), Path::new(&place).to_owned()))
    });
    lines.collect()
}

/// A pool among the spaces, of the bytes that are used and available there.
#[must_use]
pub fn pool_space(pool: &str, taken: u64, available: u64) -> Option<Space> {
    used(taken, available).map(|used_percent| Space {
        name: format!("pool {pool}"),
        used_percent,
    })
}

/// Used, of a hundred that used and available are together, rounded up.
#[must_use]
pub fn used(used: u64, available: u64) -> Option<u8> {
    let total = u128::from(used) + u128::from(available);
    let percent = (u128::from(used) * 100).div_ceil(total.max(1));
    (total > 0).then(|| u8::try_from(percent).unwrap_or(100))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn only_devices_count_and_their_use_is_rounded_up() {
        let text = "proc /proc proc rw 0 0\n/dev/sda1 / ext4 rw 0 0\n/dev/sdb /my\\040data xfs rw 0 0\ntmpfs /tmp tmpfs rw\n";
        let found = mounts(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].1, Path::new("/my data"));
        assert_eq!(used(801, 199), Some(81));
        assert_eq!(used(800, 200), Some(80));
        assert_eq!(used(0, 0), None);
    }

    #[test]
    fn a_packet_is_no_longer_than_its_header_can_say() {
        let packets = [1500, 9000, 65_535, 65_536].map(packet_of);
        assert_eq!(packets, [1500, 9000, 65_535, 65_535]);
    }
}
