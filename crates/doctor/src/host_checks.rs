//! Checks of the host: its ports, their settings, TCP, clock, disks, space.

use crate::finding::{Finding, Verdict};
use crate::scene::{Pools, Scene};
use machine::{Duplex, Kind, Nic};
use paths::{HostPort, Speed, Subnet};
use std::collections::{BTreeMap, BTreeSet};

/// A buffer below it cannot fill 10 Gb/s at a round trip of 3 ms.
const BUFFER_MIN: u64 = 4 << 20;
/// Jumbo frames begin here.
const JUMBO: u32 = 9000;
/// File systems slow down and fill up beyond it.
const FULL_PERCENT: u8 = 80;

pub(crate) fn all(scene: &Scene) -> Vec<Finding> {
    vec![
        teams(scene),
        speeds(scene),
        duplex(scene),
        negotiation(scene),
        networks(scene),
        frames(scene),
        drivers(scene),
        protocols(scene),
        rings(scene),
        offloads(scene),
        own_port(scene),
        numa(scene),
        tcp(scene),
        clock(scene),
        space(scene),
        caches(scene),
        sectors(scene),
    ]
}

fn nics(scene: &Scene) -> impl Iterator<Item = (&HostPort, &Nic)> {
    let ports = scene.ports.iter();
    ports.filter_map(|port| Some((port, scene.machine.nic(&port.name)?)))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let all: Vec<&str> = names.collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn teams(scene: &Scene) -> Finding {
    let teams = nics(scene).filter(|(_, nic)| nic.kind == Kind::Team);
    match names(teams.map(|(port, _)| port.name.as_str())) {
        None => Finding::good("teams", &[4], "no storage port is a team or bond"),
        Some(teams) => Finding::new("teams", &[4], Verdict::Problem, format!("{teams} carries storage as a team"))
            .because("a team sends one session over one of its links, and hides the others from the path layer, which balances and fails over better")
            .remedy("take the team apart, and give each NIC an address of its own; for other traffic it may stay"),
    }
}

fn speeds(scene: &Scene) -> Finding {
    let known: BTreeSet<Speed> = scene.ports.iter().filter_map(|port| port.speed).collect();
    match known.len() {
        0 => Finding::new("mixed-speeds", &[8], Verdict::NotCheckable, "no storage port reports its speed".to_owned())
            .remedy("virtual NICs often do not: see what the hypervisor gives them, and write it to a facts file"),
        1 => Finding::good("mixed-speeds", &[8], format!("all storage ports that report their speed run at {}", first(&known))),
        _ => {
            let all: Vec<String> = scene
                .ports
                .iter()
                .filter_map(|port| Some(format!("{} {}", port.name, port.speed?)))
                .collect();
            Finding::new("mixed-speeds", &[8], Verdict::Problem, all.join(", "))
                .because("what is spread over links of different speed waits for the slowest")
                .remedy("keep storage to ports of one speed (--from); the planner does not mix them unless asked to")
        }
    }
}

fn first(speeds: &BTreeSet<Speed>) -> String {
    speeds.first().map_or(String::new(), ToString::to_string)
}

fn duplex(scene: &Scene) -> Finding {
    let half = nics(scene).filter(|(_, nic)| nic.duplex == Some(Duplex::Half));
    match names(half.map(|(port, _)| port.name.as_str())) {
        None => Finding::good("duplex", &[8], "no storage port runs at half duplex"),
        Some(half) => Finding::new(
            "duplex",
            &[8],
            Verdict::Problem,
            format!("{half} runs at half duplex"),
        )
        .because("both directions share the link and collide")
        .remedy("let both ends negotiate, or set both to full duplex; check the cable"),
    }
}

fn negotiation(scene: &Scene) -> Finding {
    let negotiates = nics(scene).filter(|(_, nic)| nic.driver.negotiates == Some(true));
    let fixed = nics(scene).filter(|(_, nic)| nic.driver.negotiates == Some(false));
    let (some, fixed) = (
        names(negotiates.map(|it| it.0.name.as_str())),
        fixed.count(),
    );
    match some {
        Some(names) => Finding::new("fixed-speed", &[9], Verdict::Advice, format!("{names} negotiates its speed"))
            .because("after a link comes back, negotiation takes seconds before the first packet")
            .remedy("where both ends allow it, set the speed at NIC and switch; copper at 1 Gb/s and above must negotiate"),
        None if fixed > 0 => Finding::good("fixed-speed", &[9], "speeds are set, not negotiated"),
        None => Finding::new("fixed-speed", &[9], Verdict::NotCheckable, "the drivers do not report whether they negotiate".to_owned())
            .remedy("see the settings of NIC and switch port"),
    }
}

fn networks(scene: &Scene) -> Finding {
    let mut by: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for port in &scene.ports {
        for at in &port.addresses {
            let net = Subnet::of(at.ip, at.prefix).to_string();
            by.entry(net).or_default().insert(&port.name);
        }
    }
    let shared = by.iter().find(|(_, ports)| ports.len() > 1);
    let Some((net, ports)) = shared else {
        return Finding::good(
            "subnets",
            &[3, 10],
            "each storage port has a network of its own",
        );
    };
    let list: Vec<&str> = ports.iter().copied().collect();
    let loose = nics(scene).any(|(port, nic)| {
        ports.contains(port.name.as_str())
            && (nic.arp_ignore == Some(0) || nic.rp_filter == Some(1))
    });
    let (verdict, more) = if loose {
        (
            Verdict::Problem,
            "; the kernel answers for all of them on each, and its replies may leave by one NIC only",
        )
    } else {
        (Verdict::Advice, "")
    };
    Finding::new("subnets", &[3, 10], verdict, format!("{} stand in one network, {net}{more}", list.join(", ")))
        .because("in one network every port reaches every portal: a mesh, whose paths cross, and one broadcast domain that fails as a whole")
        .remedy(
            "give each pair of ports a network and VLAN of its own, unless the target's maker asks for one network; then set \
             net.ipv4.conf.*.arp_ignore=1, arp_announce=2, rp_filter=2 and a routing rule for each address",
        )
}

fn frames(scene: &Scene) -> Finding {
    let small = scene.ports.iter().filter(|port| port.mtu < JUMBO);
    let sizes: BTreeSet<u32> = scene.ports.iter().map(|port| port.mtu).collect();
    let small = names(small.map(|port| port.name.as_str()));
    let broken: Vec<String> = scene
        .routes
        .iter()
        .filter(|probe| probe.small_passes == Some(true) && probe.large_passes != Some(true))
        .map(|probe| format!("{} to {} at {} bytes", probe.port, probe.portal, probe.mtu))
        .collect();
    if !broken.is_empty() {
        return Finding::new("jumbo-frames", &[11], Verdict::Problem, format!("packets do not pass: {}", broken.join(", ")))
            .because("a switch or the target takes smaller frames: small commands work, large ones hang")
            .remedy("set the same MTU at NIC, every switch port on the path, and target; or go back to 1500 everywhere");
    }
    match small {
        None if scene.ports.is_empty() => Finding::new(
            "jumbo-frames",
            &[11],
            Verdict::NotCheckable,
            "no storage port".to_owned(),
        ),
        None => {
            let passed = scene
                .routes
                .iter()
                .any(|probe| probe.large_passes == Some(true));
            let how = if passed {
                "and pass to the portals"
            } else {
                "(not tried to a portal)"
            };
            Finding::good(
                "jumbo-frames",
                &[11],
                format!("all storage ports take frames of {JUMBO} bytes or more {how}"),
            )
        }
        Some(small) => {
            let what = if sizes.len() > 1 {
                format!("{small} takes smaller frames than others")
            } else {
                format!("{small} takes frames of less than {JUMBO} bytes")
            };
            Finding::new("jumbo-frames", &[11], Verdict::Advice, what)
                .because("each packet costs the processor about as much as a large one, and large I/O needs six times as many")
                .remedy("set MTU 9000 end to end where no clients share the network: NICs, switches and target together")
        }
    }
}

fn drivers(scene: &Scene) -> Finding {
    let reported: Vec<String> = nics(scene)
        .filter_map(|(port, nic)| {
            let firmware = nic.driver.firmware.as_deref().unwrap_or("not reported");
            Some(format!(
                "{} {} firmware {firmware}",
                port.name,
                nic.driver.driver.as_deref()?
            ))
        })
        .collect();
    let what = if reported.is_empty() {
        "no driver reported itself".to_owned()
    } else {
        reported.join(", ")
    };
    Finding::new("drivers", &[12], Verdict::NotCheckable, what).remedy(
        "compare driver and firmware with the newest that the NIC's maker offers for this kernel",
    )
}

fn protocols(scene: &Scene) -> Finding {
    let unused =
        scene.routes.iter().all(|probe| probe.portal.is_ipv4()) && !scene.routes.is_empty();
    let six = scene
        .ports
        .iter()
        .filter(|port| port.addresses.iter().any(|at| at.ip.is_ipv6()));
    match names(six.map(|port| port.name.as_str())).filter(|_| unused) {
        Some(ports) => Finding::new(
            "protocols",
            &[13],
            Verdict::Advice,
            format!("{ports} has IPv6 addresses, and the portals are IPv4"),
        )
        .because("what is not used on a storage port is one more thing that can disturb it")
        .remedy("switch IPv6 off there: net.ipv6.conf.NAME.disable_ipv6=1"),
        None => Finding::good(
            "protocols",
            &[13],
            "no storage port has addresses of a family that storage does not use",
        ),
    }
}

fn rings(scene: &Scene) -> Finding {
    let mut below = Vec::new();
    let mut reported = false;
    for (port, nic) in nics(scene) {
        for (what, ring) in [
            ("receive", nic.driver.receive_ring),
            ("send", nic.driver.send_ring),
        ] {
            let Some((now, most)) = ring else { continue };
            reported = true;
            if now < most {
                below.push(format!("{} {what} {now} of {most}", port.name));
            }
        }
    }
    if !reported {
        return Finding::new(
            "rings",
            &[14],
            Verdict::NotCheckable,
            "the drivers do not report their rings".to_owned(),
        )
        .remedy("virtual NICs have none; else `ethtool -g NAME`");
    }
    if below.is_empty() {
        return Finding::good("rings", &[14], "rings are at their maximum");
    }
    Finding::new("rings", &[14], Verdict::Advice, below.join(", "))
        .because("a burst of frames overflows a short ring, and each lost frame may cost a timeout")
        .remedy("ethtool -G NAME rx MAX tx MAX, and keep it over restarts")
}

fn offloads(scene: &Scene) -> Finding {
    let mut off = Vec::new();
    for (port, nic) in nics(scene) {
        let all = [
            ("segmentation", nic.driver.segmentation_offload),
            ("receive", nic.driver.receive_offload),
            ("checksum", nic.driver.checksum_offload),
        ];
        for (what, on) in all {
            if on == Some(false) {
                off.push(format!("{} {what}", port.name));
            }
        }
    }
    if off.is_empty() {
        return Finding::good(
            "offloads",
            &[14],
            "segmentation, receive and checksum offloads are on where the drivers report them",
        );
    }
    Finding::new(
        "offloads",
        &[14],
        Verdict::Advice,
        format!("off: {}", off.join(", ")),
    )
    .because("the processor does what the NIC could")
    .remedy("ethtool -K NAME tso on gro on tx on, unless the maker advises against it")
}

fn own_port(scene: &Scene) -> Finding {
    let shared = scene
        .default_interface
        .as_deref()
        .filter(|name| scene.ports.iter().any(|port| port.name == *name));
    match shared {
        None => Finding::good("own-network", &[], "storage ports do not carry the traffic to the rest of the world"),
        Some(name) => Finding::new("own-network", &[], Verdict::Advice, format!("{name} also leads to the rest of the world"))
            .because("other traffic takes bandwidth and buffers from storage when it is needed most")
            .remedy("give storage NICs and a VLAN of its own, or a share of bandwidth at the switch; name them with --from"),
    }
}

fn numa(scene: &Scene) -> Finding {
    let nodes: BTreeSet<u16> = scene.ports.iter().filter_map(|port| port.numa).collect();
    match nodes.len() {
        0 => Finding::new("numa", &[], Verdict::NotCheckable, "no storage port reports its NUMA node".to_owned())
            .remedy("on a machine with several sockets, see `lspci -vv` for the NUMA node of NICs and disks"),
        1 => Finding::good("numa", &[], "the storage ports that report theirs sit on one NUMA node"),
        _ => Finding::new("numa", &[], Verdict::Advice, "storage ports sit on several NUMA nodes".to_owned())
            .because("data that crosses sockets costs latency and memory bandwidth")
            .remedy("keep NIC, cache and disks of one volume on one node where the board allows it"),
    }
}

fn tcp(scene: &Scene) -> Finding {
    let tcp = &scene.machine.tcp;
    let mut wrong = Vec::new();
    for (name, on) in [
        ("net.ipv4.tcp_sack", tcp.sack),
        ("net.ipv4.tcp_window_scaling", tcp.window_scaling),
        ("net.ipv4.tcp_timestamps", tcp.timestamps),
    ] {
        if on == Some(false) {
            wrong.push(format!("{name}=0"));
        }
    }
    for (name, buffer) in [
        ("net.ipv4.tcp_rmem", tcp.receive_buffer),
        ("net.ipv4.tcp_wmem", tcp.send_buffer),
    ] {
        if let Some([_, _, most]) = buffer
            && most < BUFFER_MIN
        {
            wrong.push(format!("{name} at most {most} bytes"));
        }
    }
    if tcp.slow_start_after_idle == Some(true) {
        wrong.push("net.ipv4.tcp_slow_start_after_idle=1".to_owned());
    }
    let control = tcp.congestion_control.as_deref().unwrap_or("unknown");
    if wrong.is_empty() {
        return Finding::good(
            "tcp",
            &[],
            format!("TCP settings fit storage; congestion control {control}"),
        );
    }
    let hard = tcp.sack == Some(false) || tcp.window_scaling == Some(false);
    let verdict = if hard {
        Verdict::Problem
    } else {
        Verdict::Advice
    };
    Finding::new("tcp", &[], verdict, wrong.join(", "))
        .because("a lost frame or a pause then costs more round trips than it must")
        .remedy(
            "sack, window scaling and timestamps on; buffers up to 16 MiB; tcp_slow_start_after_idle=0, because storage is idle \
             between bursts",
        )
}

fn clock(scene: &Scene) -> Finding {
    match scene.clock {
        Some(true) => Finding::good("clock", &[], "the clock is steered by a time server"),
        Some(false) => Finding::new("clock", &[], Verdict::Advice, "the clock is not steered by a time server".to_owned())
            .because("logs of hosts, switches and targets cannot be laid side by side, and certificates and tickets fail")
            .remedy("run chrony or systemd-timesyncd; in a container or guest, see the host's"),
        None => Finding::new("clock", &[], Verdict::NotCheckable, "the kernel does not report it".to_owned())
            .remedy("see `timedatectl` or `chronyc tracking`"),
    }
}

fn space(scene: &Scene) -> Finding {
    let full: Vec<String> = scene
        .space
        .iter()
        .filter(|it| it.used_percent > FULL_PERCENT)
        .map(|it| format!("{} {} %", it.name, it.used_percent))
        .collect();
    let daemon = match scene.pools {
        Pools::Reported => " and pools",
        Pools::NoDaemon => " (no daemon answered for pools)",
    };
    if full.is_empty() {
        return Finding::good(
            "space",
            &[19],
            format!(
                "{} file systems{daemon} are below {FULL_PERCENT} %",
                scene.space.len()
            ),
        );
    }
    Finding::new(
        "space",
        &[19],
        Verdict::Problem,
        format!("above {FULL_PERCENT} %: {}", full.join(", ")),
    )
    .because("file systems slow down, and thin LUNs stop taking writes when their pool is full")
    .remedy("free or add space; `causeway lun ls` shows what LUNs take")
}

fn caches(scene: &Scene) -> Finding {
    let volatile = scene.disks.iter().filter(|disk| disk.volatile_cache);
    match names(volatile.map(|disk| disk.name.as_str())) {
        None => Finding::good("write-caches", &[16, 20, 21], "no disk here answers writes from a cache that power loss empties"),
        Some(disks) => Finding::new("write-caches", &[16, 20, 21], Verdict::Advice, format!("{disks} answers writes from a volatile cache"))
            .because("what was not flushed is gone with the power; a journal that does not flush, or a cache set to ignore flushes, loses data")
            .remedy(
                "keep flushes on (Causeway always flushes what must be stable), and the machine on an uninterruptible supply that shuts \
                 it down; disks with power-loss protection may be set to write through: /sys/block/NAME/queue/write_cache",
            ),
    }
}

fn sectors(scene: &Scene) -> Finding {
    let sizes: BTreeSet<(u32, u32)> = scene
        .disks
        .iter()
        .map(|disk| (disk.logical, disk.physical))
        .collect();
    if sizes.len() <= 1 {
        return Finding::good("sector-sizes", &[18], "all disks here have one sector size");
    }
    let all: Vec<String> = scene
        .disks
        .iter()
        .map(|disk| format!("{} {}/{}", disk.name, disk.logical, disk.physical))
        .collect();
    Finding::new(
        "sector-sizes",
        &[18],
        Verdict::Advice,
        format!("disks of several sector sizes: {}", all.join(", ")),
    )
    .because(
        "512 and 4096 in one array make the array as slow as its slowest write, or fail to join",
    )
    .remedy("never mix them in one array; give a host that cannot do 4096 a LUN of 512")
}
