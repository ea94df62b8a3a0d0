//! Beds on this machine, with plain TCP through them. Where a lab cannot be had, the tests say so
//! and pass.

use super::*;
use crate::tool::{Tool, batch, inside};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

fn run<T>(test: impl Future<Output = T>) -> Option<T> {
    if let Err(error) = can_have_one() {
        println!("skipped: {error}");
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    Some(runtime.block_on(test))
}

/// Two NICs on two cards, and two ports, at 100 Mb/s: a machine that is busy carries that too.
fn small() -> Topology {
    let slow = Rate::megabits(100);
    let port = |name: &str, card: &str| Port::new(name, card).rate(slow);
    Topology {
        host: vec![port("eth0", "one"), port("eth1", "two")],
        target: vec![port("p0", "a"), port("p1", "b")],
        buffer_kib: 64,
        mtu: 9000,
    }
}

/// Runs `work` on a thread in a namespace of the bed.
fn there<T: Send + 'static>(
    bed: &Bed,
    side: Side,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let namespace = File::open(format!("/run/netns/{}", bed.namespace(side))).unwrap();
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    };
    std::thread::Builder::new().spawn(enter).unwrap()
}

/// Sends from the host's NICs to the target's ports, each pair one connection, for `time`; answers
/// MB/s of each.
fn send(bed: &Bed, pairs: &[(usize, usize)], time: Duration) -> Vec<f64> {
    let mut receivers = Vec::new();
    let mut senders = Vec::new();
    for (from, to) in pairs {
        let at = SocketAddr::new(bed.topology().address(Side::Target, *to), 0);
        let listener = there(bed, Side::Target, move || TcpListener::bind(at).unwrap());
        let listener = listener.join().unwrap();
        let at = listener.local_addr().unwrap();
        let from = SocketAddr::new(bed.topology().address(Side::Host, *from), 0);
        receivers.push(there(bed, Side::Target, move || receive(&listener, time)));
        senders.push(there(bed, Side::Host, move || give(from, at)));
    }
    let rates = receivers.into_iter().map(|it| it.join().unwrap()).collect();
    senders.into_iter().for_each(|it| it.join().unwrap());
    rates
}

fn receive(listener: &TcpListener, time: Duration) -> f64 {
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = vec![0; 1 << 16];
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let (start, mut total) = (Instant::now(), 0.0);
    while start.elapsed() < time {
        let got = stream.read(&mut bytes).unwrap_or(0);
        total += f64::from(u32::try_from(got).unwrap());
    }
    total / start.elapsed().as_secs_f64() / 1e6
}

/// Sends until the other end has gone.
fn give(from: SocketAddr, to: SocketAddr) {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &from).unwrap();
    if connect(&socket, &to).is_err() {
        return;
    }
    let mut stream = std::net::TcpStream::from(socket);
    stream
        .set_write_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    while stream.write_all(&[7; 1 << 16]).is_ok() {}
}

/// Packets that the switch's port to the target's `number` dropped.
async fn drops(bed: &Bed, number: usize) -> u64 {
    let port = Side::Target.switch_port(number);
    let words = ["tc", "-s", "qdisc", "show", "dev", &port];
    let reported = inside(&bed.switch(), &words).await.unwrap();
    let (_, rest) = reported.split_once("dropped ").unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

async fn carrier(bed: &Bed, nic: &str) -> bool {
    let path = format!("/sys/class/net/{nic}/carrier");
    let reported = inside(&bed.namespace(Side::Host), &["cat", &path]).await;
    reported.is_ok_and(|it| it.trim() == "1")
}

#[test]
fn a_link_carries_its_rate_and_only_two_senders_to_one_port_lose_packets() {
    run(async {
        let bed = Bed::build(small()).await.unwrap();
        let second = Duration::from_millis(700);
        let side_by_side = send(&bed, &[(0, 0), (1, 1)], second);
        for rate in &side_by_side {
            // 100 Mb/s less the headers are 12.4 MB/s; the first round trips and a busy machine
            // take some.
            assert!((8.0..12.6).contains(rate), "{side_by_side:?}");
        }
        assert_eq!((drops(&bed, 0).await, drops(&bed, 1).await), (0, 0));
        let into_one = send(&bed, &[(0, 0), (1, 0)], second);
        assert!(into_one.iter().sum::<f64>() < 12.6, "{into_one:?}");
        assert!(drops(&bed, 0).await > 0, "the buffer is not shallow");
    });
}

#[test]
fn a_cut_takes_the_carrier_a_black_hole_does_not_and_both_are_mended() {
    run(async {
        let bed = Bed::build(small()).await.unwrap();
        let time = Duration::from_millis(400);
        bed.harm(Side::Host, &[0], Harm::Cut).await.unwrap();
        assert!(!carrier(&bed, "eth0").await && carrier(&bed, "eth1").await);
        bed.mend(Side::Host, &[0], Harm::Cut).await.unwrap();
        assert!(carrier(&bed, "eth0").await);
        bed.harm(Side::Target, &[0], Harm::BlackHole).await.unwrap();
        assert!(carrier(&bed, "eth0").await);
        assert!(send(&bed, &[(1, 1)], time)[0] > 5.0);
        bed.mend(Side::Target, &[0], Harm::BlackHole).await.unwrap();
        assert!(send(&bed, &[(0, 0)], time)[0] > 5.0);
        let slow = Harm::Slow(Rate::megabits(10));
        bed.harm(Side::Host, &[0], slow).await.unwrap();
        let rate = send(&bed, &[(0, 0)], time)[0];
        // A burst of 20 KB goes at once.
        assert!(rate < 1.5, "{rate}");
        bed.mend(Side::Host, &[0], slow).await.unwrap();
        assert!(send(&bed, &[(0, 0)], time)[0] > 5.0);
    });
}

#[test]
fn two_labs_stand_side_by_side_and_leave_nothing() {
    run(async {
        let (one, two) = (
            Bed::build(small()).await.unwrap(),
            Bed::build(small()).await.unwrap(),
        );
        assert_ne!(one.switch(), two.switch());
        let time = Duration::from_millis(300);
        assert!(send(&one, &[(0, 1)], time)[0] > 5.0);
        assert!(send(&two, &[(0, 1)], time)[0] > 5.0);
        let made = [one.switch(), two.switch()];
        let dirs = [one.dir(), two.dir()];
        drop((one, two));
        for name in made {
            assert!(!std::path::Path::new("/run/netns").join(&name).exists());
        }
        assert!(dirs.iter().all(|dir| !dir.exists()));
    });
}

#[test]
fn the_next_lab_removes_what_one_left_that_was_killed() {
    run(async {
        // What a killed lab leaves: a lock file that nobody locks, a namespace with a process in
        // it, a directory.
        let _first = Claim::take().unwrap();
        let name = "causeway-lab-99999";
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        let lock = format!("/run/causeway-lab/{name}.lock");
        fs::write(&lock, dir.to_str().unwrap()).unwrap();
        let namespace = format!("{name}-host");
        batch(Tool::Ip, None, &[format!("netns add {namespace}")])
            .await
            .unwrap();
        let mut left = Command::new("ip")
            .args(["netns", "exec", &namespace, "sleep", "1000"])
            .spawn()
            .unwrap();
        while inside(&namespace, &["true"]).await.is_err() {}
        let pids = || {
            Command::new("ip")
                .args(["netns", "pids", &namespace])
                .output()
                .unwrap()
        };
        while !String::from_utf8_lossy(&pids().stdout)
            .lines()
            .any(|it| it == left.id().to_string())
        {}
        let _second = Claim::take().unwrap();
        assert!(!left.wait().unwrap().success());
        assert!(!std::path::Path::new(&lock).exists() && !dir.exists());
        let there = std::path::Path::new("/run/netns").join(&namespace);
        assert!(!there.exists());
    });
}

#[test]
fn a_team_is_one_address_over_all_nics() {
    run(async {
        let bed = Bed::build(small()).await.unwrap();
        bed.team().await.unwrap();
        let to = bed.topology().address(Side::Target, 0).to_string();
        let reported = inside(&bed.namespace(Side::Host), &["ip", "route", "get", &to]).await;
        let reported = reported.unwrap();
        assert!(reported.contains("src 10.77.0.50"), "{reported}");
        let at = SocketAddr::new(bed.topology().address(Side::Target, 0), 0);
        let listener = there(&bed, Side::Target, move || TcpListener::bind(at).unwrap());
        let listener = listener.join().unwrap();
        let at = listener.local_addr().unwrap();
        let receiver = there(&bed, Side::Target, move || {
            receive(&listener, Duration::from_millis(400))
        });
        let from = SocketAddr::new("10.77.0.50".parse().unwrap(), 0);
        let sender = there(&bed, Side::Host, move || give(from, at));
        assert!(receiver.join().unwrap() > 5.0);
        sender.join().unwrap();
    });
}
