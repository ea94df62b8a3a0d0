//! Links, routes and drivers in a network of the test's own.

use super::{Cores, Driver, Ethtool, Offload, Runtime, RuntimeConfig};
use crate::CoreId;
use crate::net::InterfaceWatch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A network namespace with a name, that goes with the test.
struct Namespace(String);

impl Namespace {
    fn make() -> Option<Self> {
        let name = format!("causeway-env-test-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        made.is_ok_and(|it| it.status.success())
            .then_some(Self(name))
    }

    fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.0)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _gone = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[expect(
    unsafe_code,
    reason = "the call is marked unsafe for file descriptor tables only"
)]
fn unshare_network() {
    // SAFETY: a network namespace of one's own shares and unshares no file descriptors.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
}

fn ip(args: &str) {
    let done = Command::new("ip").args(args.split(' ')).status().unwrap();
    assert!(done.success(), "ip {args}");
}

fn carrier(watch: &dyn InterfaceWatch, name: &str) -> Option<bool> {
    let links = watch.links();
    links.iter().find(|it| it.name == name).map(|it| it.carrier)
}

#[test]
fn a_lost_carrier_is_reported_a_route_is_found_and_an_offload_is_turned_off_elsewhere() {
    let namespace = rustix::process::geteuid().is_root().then(Namespace::make);
    let Some(other) = namespace.flatten() else {
        println!("skipped: needs root, ip(8) and network namespaces");
        return;
    };
    let runtime = Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![0]),
        driver: Driver::Poll,
        ..RuntimeConfig::default()
    });
    runtime.unwrap().run(CoreId(0), |core| {
        Box::pin(async move {
            // Only this core's thread moves to a network of its own.
            unshare_network();
            let watch = core.net().watch_interfaces().unwrap();
            ip(&format!(
                "link add one mtu 4000 type veth peer name two mtu 4000 netns {}",
                other.0
            ));
            ip("link set one up");
            ip(&format!("-n {} link set two up", other.0));
            ip("addr add 10.1.2.1/24 dev one");
            ip("route add 10.9.0.0/16 via 10.1.2.9");
            while carrier(&*watch, "one") != Some(true) || watch.current().is_empty() {
                watch.changed().await;
            }
            let links = watch.links();
            let one = links.iter().find(|it| it.name == "one").unwrap();
            assert!(one.up && !one.loopback && one.mtu == 4000);
            let net = core.net();
            let near = net.route("10.1.2.3".parse().unwrap(), None).unwrap();
            assert_eq!((near.interface.as_str(), near.gateway), ("one", None));
            assert_eq!(near.source, Some("10.1.2.1".parse().unwrap()));
            let from = Some("10.1.2.1".parse().unwrap());
            let far = net.route("10.9.1.1".parse().unwrap(), from).unwrap();
            assert_eq!(far.gateway, Some("10.1.2.9".parse().unwrap()));
            assert!(net.route("10.77.1.1".parse().unwrap(), None).is_err());
            assert_eq!(net.driver("one").unwrap().driver.as_deref(), Some("veth"));

            let there = Ethtool::of_namespace(&other.path()).unwrap();
            assert!(there.offload("one", Offload::Segmentation).is_err());
            assert!(there.offload("two", Offload::Segmentation).unwrap());
            there
                .set_offload("two", Offload::Segmentation, false)
                .unwrap();
            assert!(!there.offload("two", Offload::Segmentation).unwrap());

            ip(&format!("-n {} addr add 10.1.2.2/24 dev two", other.0));
            let (to, from) = ("10.1.2.2".parse().unwrap(), "10.1.2.1".parse().unwrap());
            let passes = async |bytes| net.passes(to, from, bytes).await.unwrap();
            assert_eq!(passes(4000).await, Some(true));
            assert_eq!(passes(4001).await, Some(false));
            // Now the other end takes no more than 1500, and nobody says so.
            ip(&format!("-n {} link set two mtu 1500", other.0));
            assert_eq!(passes(4000).await, None);
            assert_eq!(passes(1500).await, Some(true));

            ip(&format!("-n {} link set two down", other.0));
            while carrier(&*watch, "one") != Some(false) {
                watch.changed().await;
            }
            ip("link del one");
            while carrier(&*watch, "one").is_some() {
                watch.changed().await;
            }
        })
    });
}
