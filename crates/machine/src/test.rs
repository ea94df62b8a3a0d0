//! A host from a fixture tree, and this host beside what ip(8) says of it.

use super::*;
use crate::read::assemble;
use env::real::{Cores, Driver, Runtime, RuntimeConfig};
use env::{InterfaceAddress, InterfaceLink};
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// A directory that goes with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("machine-{name}-{}", std::process::id()));
        let _old = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("sys/class/net")).unwrap();
        Self(dir)
    }

    fn roots(&self) -> Roots {
        Roots {
            sys: self.0.join("sys"),
            proc: self.0.join("proc"),
            etc: self.0.join("etc"),
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// An interface at `bus` below `/sys/devices`, with files.
    fn nic(&self, name: &str, bus: &str, files: &[(&str, &str)]) {
        let dir = format!("sys/devices/{bus}/net/{name}");
        fs::create_dir_all(self.0.join(&dir)).unwrap();
        for (file, text) in files {
            self.write(&format!("{dir}/{file}"), text);
        }
        if bus != "virtual" {
            symlink("../..", self.0.join(&dir).join("device")).unwrap();
        }
        let link = self.0.join("sys/class/net").join(name);
        symlink(self.0.join(dir), link).unwrap();
    }

    fn below(&self, upper: &str, lower: &str) {
        let link = format!("sys/class/net/{upper}/lower_{lower}");
        let class = self.0.join("sys/class/net");
        symlink(class.join(lower), self.0.join(link)).unwrap();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn link(name: &str, index: u32) -> InterfaceLink {
    InterfaceLink {
        name: name.to_owned(),
        index,
        mtu: 9000,
        up: true,
        carrier: true,
        loopback: name == "lo",
    }
}

fn address(interface: &str, ip: &str) -> InterfaceAddress {
    InterfaceAddress {
        interface: interface.to_owned(),
        address: ip.parse().unwrap(),
        prefix_bits: 24,
        interface_index: 0,
    }
}

/// Two ports of one Intel card, one of a Broadcom, a VLAN on the latter, a team, a bridge, a
/// virtual pair's end.
fn sample(tree: &Tree) -> (Vec<InterfaceLink>, Vec<InterfaceAddress>) {
    let gigabit = [("speed", "1000\n"), ("duplex", "full\n")];
    let intel = "pci0000:00/0000:00:02.0/0000:03:00";
    tree.nic("eth0", &format!("{intel}.0"), &gigabit);
    tree.nic("eth1", &format!("{intel}.1"), &gigabit);
    tree.write(&format!("sys/devices/{intel}.0/numa_node"), "1\n");
    tree.write(&format!("sys/devices/{intel}.1/numa_node"), "-1\n");
    tree.nic(
        "eth2",
        "pci0000:00/0000:00:03.0/0000:04:00.0",
        &[("speed", "10000\n")],
    );
    tree.nic("eth2.7", "virtual", &[("uevent", "DEVTYPE=vlan\n")]);
    tree.below("eth2.7", "eth2");
    for (name, bus) in [("eth3", "0000:05:00.0"), ("eth4", "0000:06:00.0")] {
        tree.nic(name, &format!("pci0000:00/{bus}"), &gigabit);
    }
    tree.nic("bond0", "virtual", &[("bonding/mode", "802.3ad 4\n")]);
    tree.below("bond0", "eth3");
    tree.below("bond0", "eth4");
    tree.nic("eth5", "pci0000:00/0000:07:00.0", &[("speed", "-1\n")]);
    tree.nic("tap0", "virtual", &[]);
    tree.nic("br0", "virtual", &[("bridge/stp_state", "0\n")]);
    tree.below("br0", "eth5");
    tree.below("br0", "tap0");
    tree.nic("veth0", "virtual", &[("speed", "10000\n")]);
    tree.write("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
    tree.write("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
    tree.write("proc/sys/net/ipv4/tcp_sack", "0\n");
    tree.write("proc/sys/net/ipv4/conf/eth0/rp_filter", "1\n");
    let names = [
        "lo", "eth0", "eth1", "eth2", "eth2.7", "eth3", "eth4", "bond0", "eth5", "tap0", "br0",
        "veth0",
    ];
    let links = (1..).zip(names).map(|(index, name)| link(name, index));
    let addresses = [
        ("lo", "127.0.0.1"),
        ("eth0", "10.0.0.1"),
        ("eth0", "fe80::1"),
        ("eth1", "10.0.1.1"),
        ("eth2", "10.0.2.1"),
        ("eth2.7", "10.0.7.1"),
        ("bond0", "10.0.3.1"),
        ("br0", "10.0.5.1"),
        ("veth0", "10.0.6.1"),
    ];
    let addresses = addresses.iter().map(|(nic, ip)| address(nic, ip));
    (links.collect(), addresses.collect())
}

fn runtime() -> Runtime {
    Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![0]),
        driver: Driver::Poll,
        ..RuntimeConfig::default()
    })
    .unwrap()
}

fn assembled(name: &str, change: fn(&mut Vec<InterfaceLink>, &Tree)) -> Machine {
    let tree = Tree::new(name);
    let (mut links, addresses) = sample(&tree);
    change(&mut links, &tree);
    let roots = tree.roots();
    runtime().run(env::CoreId(0), move |core| {
        Box::pin(async move { assemble(&*core.files(), &roots, &links, &addresses).await })
    })
}

#[test]
fn ports_are_what_carries_an_address_with_its_card_and_speed() {
    let machine = assembled("ports", |_, _| {});
    let ports = machine.ports();
    let reported: Vec<String> = ports
        .iter()
        .map(|it| {
            let speed = it.speed.map_or("-".to_owned(), |it| it.to_string());
            let numa = it.numa.map_or("-".to_owned(), |it| it.to_string());
            format!("{} {} {speed} {} {numa}", it.name, it.card, it.links)
        })
        .collect();
    let expected = [
        "bond0 0000:05:00+0000:06:00 2 Gb/s 2 -",
        "eth0 0000:03:00 1 Gb/s 1 1",
        "eth1 0000:03:00 1 Gb/s 1 -",
        "eth2 0000:04:00 10 Gb/s 1 -",
        "eth5 0000:07:00 - 1 -",
        "lo lo - 1 -",
        "veth0 veth0 10 Gb/s 1 -",
    ];
    assert_eq!(reported, expected);
    // The VLAN's and the bridge's addresses are their hardware's; one of the link alone is
    // nobody's.
    let addresses = |name: &str| {
        let port = ports.iter().find(|it| it.name == name).unwrap();
        let ips = port.addresses.iter().map(|it| it.ip.to_string());
        ips.collect::<Vec<_>>()
    };
    assert_eq!(addresses("eth2"), ["10.0.2.1", "10.0.7.1"]);
    assert_eq!(addresses("eth5"), ["10.0.5.1"]);
    assert_eq!(addresses("eth0"), ["10.0.0.1"]);
    assert_eq!(machine.nic("eth0").unwrap().duplex, Some(Duplex::Full));
    assert_eq!(machine.nic("eth0").unwrap().rp_filter, Some(1));
    assert_eq!(machine.nic("bond0").unwrap().kind, Kind::Team);
    let tcp = &machine.tcp;
    assert_eq!(tcp.congestion_control.as_deref(), Some("cubic"));
    assert_eq!(tcp.receive_buffer, Some([4096, 131_072, 6_291_456]));
    assert_eq!((tcp.sack, tcp.timestamps), (Some(false), None));
}

#[test]
fn a_choice_of_ports_takes_names_and_addresses_and_refuses_others_with_what_there_is() {
    let machine = assembled("choice", |_, _| {});
    let choose = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        machine.facts("iqn.2026-11.io.causeway:h", &words)
    };
    let facts = choose(&["10.0.7.1", "eth0", "10.0.0.1"]).unwrap();
    let reported: Vec<(&str, Vec<IpAddr>)> = facts
        .hosts
        .iter()
        .map(|it| {
            (
                it.name.as_str(),
                it.addresses.iter().map(|at| at.ip).collect(),
            )
        })
        .collect();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(
        reported,
        [
            ("eth0", vec![ip("10.0.0.1")]),
            ("eth2", vec![ip("10.0.7.1")])
        ]
    );
    let upper = choose(&["eth2.7"]).unwrap();
    assert_eq!(upper.hosts[0].name, "eth2");
    assert_eq!(upper.hosts[0].addresses[0].ip, ip("10.0.7.1"));
    let error = choose(&["eth9"]).unwrap_err().to_string();
    assert!(error.contains("eth9") && error.contains("bond0"), "{error}");
    assert_eq!(choose(&[]).unwrap().hosts.len(), 7);
}

#[test]
fn a_lost_carrier_and_a_changed_speed_are_reported_and_nothing_else_is() {
    let before = assembled("before", |_, _| {});
    assert_eq!(changes(&before, &before), []);
    let after = assembled("after", |links, tree| {
        for link in links {
            match link.name.as_str() {
                "eth0" => link.carrier = false,
                "eth1" => link.mtu = 1500,
                _ => {}
            }
        }
        tree.write("sys/class/net/eth2/speed", "1000\n");
        tree.write("sys/class/net/eth0/speed", "-1\n");
    });
    let reported = changes(&before, &after);
    let expected = [
        Change::LinkLost("eth0".to_owned()),
        Change::Facts("eth1".to_owned()),
        Change::Facts("eth2".to_owned()),
    ];
    assert_eq!(reported, expected);
    let back = changes(&after, &before);
    assert_eq!(back[0], Change::LinkBack("eth0".to_owned()));
    let none = Machine::default();
    assert!(changes(&before, &none).contains(&Change::LinkLost("bond0".to_owned())));
}

#[test]
fn this_host_is_as_ip_says() {
    let asked = Command::new("ip").args(["-o", "link"]).output();
    let Ok(asked) = asked else {
        println!("skipped: ip(8) is not here");
        return;
    };
    let machine = runtime().run(env::CoreId(0), |core| {
        Box::pin(async move { read(&core, &Roots::default()).await.unwrap() })
    });
    // `2: eth0@if3: <BROADCAST,UP,LOWER_UP> mtu 1500 ...`
    let text = String::from_utf8(asked.stdout).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.nth(1).unwrap().trim_end_matches(':');
        let name = name.split('@').next().unwrap();
        let flags = words.next().unwrap();
        let mtu = words.nth(1).unwrap().parse::<u32>().unwrap();
        // Tests of others make and drop interfaces meanwhile.
        let Some(nic) = machine.nic(name) else {
            continue;
        };
        count += 1;
        assert_eq!(nic.mtu, mtu, "{line}");
        assert_eq!(nic.carrier, flags.contains("LOWER_UP"), "{line}");
    }
    assert!(count >= 1, "{text}");
    let lo = machine.nic("lo").unwrap();
    assert_eq!(lo.kind, Kind::Loopback);
    assert!(machine.tcp.congestion_control.is_some());
}
