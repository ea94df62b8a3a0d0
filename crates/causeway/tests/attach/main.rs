//! `causeway attach` as programs of the machine see it: foreign NBD clients, a client of its own
//! that remembers what was acknowledged, targets that go away, and signals under load.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
#[path = "../daemon/place.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod place;
mod relay;

use client::Client;
use place::Place;
use relay::Relay;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

const BLOCK: usize = 4096;

/// A running `causeway attach`.
struct Attached {
    child: Option<Child>,
    log: Option<JoinHandle<String>>,
}

impl Attached {
    /// Starts it and waits until its socket answers.
    fn start(volume: &str, socket: &Path, state: &Path) -> Self {
        Self::with(volume, socket, state, &[])
    }

    /// The same with more options.
    fn with(volume: &str, socket: &Path, state: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_causeway"))
            .args(["attach", volume, "--export"])
            .arg(format!("nbd+unix:{}", socket.display()))
            .arg("--initiator-state")
            .arg(state)
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut log = String::new();
        while !log.contains("attached") {
            let more = lines.read_line(&mut log).expect("the log is text");
            assert!(more > 0, "it ended before it was attached: {log}");
        }
        let rest = std::thread::Builder::new().spawn(move || {
            // What cannot be read any more was not said.
            let _ = lines.read_to_string(&mut log);
            log
        });
        Self {
            child: Some(child),
            log: Some(rest.expect("a thread can be had")),
        }
    }

    /// Ends it by SIGTERM; its exit code and log.
    fn stop(mut self) -> (Option<i32>, String) {
        let mut child = self.child.take().expect("it is stopped once");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let status = child.wait().expect("it is our child");
        let log = self.log.take().expect("it is stopped once").join();
        (status.code(), log.expect("reading does not panic"))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn tool(name: &str, arguments: &[&str]) -> String {
    let ran = Command::new(name).args(arguments).output();
    let ran = ran.unwrap_or_else(|_| panic!("{name} is missing: scripts/install test"));
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{name} {arguments:?}\n{out}{err}");
    format!("{out}{err}")
}

fn uri(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}

#[test]
fn foreign_clients_copy_compare_and_verify_through_the_socket() {
    let place = Place::new("attach-tools");
    let socket = place.path("nbd.sock");
    let attached = Attached::start("memory:64M", &socket, &place.path("ini"));
    let uri = uri(&socket);
    let output = tool("nbdinfo", &["--json", &uri]);
    let answer: serde_json::Value = serde_json::from_str(&output).unwrap();
    let export = &answer["exports"][0];
    assert_eq!(
        (&answer["structured"], &export["export-size"]),
        (&true.into(), &(64 << 20).into())
    );
    for ability in [
        "can_multi_conn",
        "can_fua",
        "can_flush",
        "can_trim",
        "can_zero",
    ] {
        assert_eq!(export[ability], true, "{ability}");
    }
    assert_eq!(export["contexts"][0], "base:allocation");
    copy_and_compare(&place, &uri);
    let map = tool("nbdinfo", &["--map", &uri]);
    assert!(map.contains("hole,zero") && map.contains("data"), "{map}");
    let fio = format!("--uri={uri}");
    let fio = [
        "--name=x",
        "--ioengine=nbd",
        &fio,
        "--rw=randrw",
        "--bs=4k",
        "--iodepth=16",
        "--size=16M",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_state_save=0",
    ];
    tool("fio", &fio);
    let (code, log) = attached.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!socket.exists());
}

/// A file with data, holes and zeroes goes there and back over several connections; qemu writes,
/// discards and reads.
fn copy_and_compare(place: &Place, uri: &str) {
    let (image, back) = (place.path("image"), place.path("back"));
    let mut data = vec![0_u8; 64 << 20];
    for (at, byte) in data
        .iter_mut()
        .enumerate()
        .filter(|(at, _)| at % (8 << 20) < 3 << 20)
    {
        *byte = u8::try_from((at * 7 + at / 4096) % 251).unwrap();
    }
    std::fs::write(&image, &data).unwrap();
    let path = |path: &Path| path.display().to_string();
    tool("nbdcopy", &["--connections=4", &path(&image), uri]);
    tool("nbdcopy", &["--connections=4", uri, &path(&back)]);
    assert!(std::fs::read(&back).unwrap() == data);
    tool(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &path(&image), uri],
    );
    tool(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 7 0 1M",
            "-c",
            "write -z 1M 1M",
            "-c",
            "discard 2M 1M",
            "-c",
            "write -f -P 9 4M 512",
            "-c",
            "flush",
            "-c",
            "read -P 7 0 1M",
            "-c",
            "read -P 0 1M 2M",
            "-c",
            "read -P 9 4M 512",
            uri,
        ],
    );
}

#[test]
fn a_dead_socket_is_replaced_and_a_live_one_is_not_touched() {
    let place = Place::new("attach-socket");
    let (socket, state) = (place.path("nbd.sock"), place.path("ini"));
    let first = Attached::start("memory:1M", &socket, &state);
    let export = format!("nbd+unix:{}", socket.display());
    let second = place.run(4, &format!("attach memory:1M --export {export}"));
    assert!(
        second.contains("CWY7007") && second.contains("another process listens"),
        "{second}"
    );
    assert_eq!(
        Client::connect(&socket).size(),
        1 << 20,
        "the first one goes on"
    );
    // Killed, it leaves the name behind.
    drop(first);
    assert!(socket.exists());
    let third = Attached::start("memory:2M", &socket, &state);
    assert_eq!(Client::connect(&socket).size(), 2 << 20);
    assert_eq!(third.stop().0, Some(0));
    let output = place.run(2, "attach memory:1M --export /run/x");
    assert!(output.contains("nbd+unix:PATH"), "{output}");
    let output = place.run(3, &format!("attach /nonexistent --export {export}"));
    assert!(output.contains("does not exist"), "{output}");
}

/// Writes block after block, each with its number, and remembers the last one of each place that
/// was acknowledged.
struct Load {
    written: JoinHandle<Vec<u64>>,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

fn block_of(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK / 8)
}

impl Load {
    fn start(socket: &Path, places: u64) -> Self {
        let (stop, count) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (ended, counted, socket) = (Arc::clone(&stop), Arc::clone(&count), socket.to_owned());
        let work = move || {
            let mut client = Client::connect(&socket);
            let mut acknowledged = vec![0; usize::try_from(places).unwrap()];
            for number in 1.. {
                let place = number * 7919 % places;
                let at = place * BLOCK as u64;
                let done = client.write(at, &block_of(number), number % 5 == 0);
                match done {
                    Ok(()) => acknowledged[usize::try_from(place).unwrap()] = number,
                    // The socket is closed: the one in flight may be there or not.
                    Err(None) => {
                        acknowledged[usize::try_from(place).unwrap()] = u64::MAX;
                        return acknowledged;
                    }
                    Err(Some(error)) => panic!("write {number} failed with {error}"),
                }
                counted.fetch_add(1, Ordering::Release);
                if ended.load(Ordering::Acquire) {
                    return acknowledged;
                }
            }
            unreachable!("numbers do not end")
        };
        let written = std::thread::Builder::new()
            .spawn(work)
            .expect("a thread can be had");
        Self {
            written,
            stop,
            count,
        }
    }

    /// Waits until so many more writes were acknowledged.
    fn wait(&self, more: u64) {
        let goal = self.count.load(Ordering::Acquire) + more;
        while self.count.load(Ordering::Acquire) < goal {
            assert!(!self.written.is_finished(), "the load has ended");
            std::thread::yield_now();
        }
    }

    fn end(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Release);
        self.written.join().expect("no write failed")
    }
}

fn check(socket: &Path, acknowledged: &[u64]) -> usize {
    let mut client = Client::connect(socket);
    let mut checked = 0;
    for (place, number) in acknowledged.iter().enumerate() {
        if *number == 0 || *number == u64::MAX {
            continue;
        }
        let data = client.read((place * BLOCK) as u64, BLOCK);
        assert!(
            data == block_of(*number),
            "block {place} does not hold write {number}"
        );
        checked += 1;
    }
    checked
}

/// A node with a LUN in its pool, at a port that stays the same.
fn node(name: &str) -> (Place, String) {
    let place = Place::new(name);
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let with_port = config.replace(
        "ip = \"127.0.0.1\", port = 0",
        &format!("ip = \"127.0.0.1\", port = {port}"),
    );
    place.write("node.toml", &with_port);
    (
        place,
        format!("iscsi://127.0.0.1:{port}/iqn.2026-11.io.causeway:vm01/0"),
    )
}

fn socket_of(place: &Place) -> (PathBuf, PathBuf) {
    (place.path("nbd.sock"), place.path("ini"))
}

#[test]
fn a_target_that_is_killed_and_comes_back_is_not_noticed_and_nothing_is_lost() {
    let (place, url) = node("attach-restart");
    let daemon = place.start();
    place.run(0, "share create vm01 --size 16M --for *");
    let (socket, state) = socket_of(&place);
    let attached = Attached::start(&url, &socket, &state);
    let load = Load::start(&socket, 512);
    load.wait(300);
    daemon.kill();
    let daemon = place.start();
    load.wait(300);
    // And once in order.
    daemon.stop();
    let daemon = place.start();
    load.wait(300);
    let acknowledged = load.end();
    let checked = check(&socket, &acknowledged);
    assert!(checked > 400, "{checked}");
    let (code, log) = attached.stop();
    assert_eq!(code, Some(0), "{log}");
    daemon.stop();
}

/// The store forgets what was not synced, as at a power loss. A host whose key were gone after it
/// would take itself for shut out.
#[test]
fn a_reservation_key_outlives_a_power_loss_of_the_target_and_the_host_writes_on() {
    let (place, url) = node("attach-key");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let forgets = "[testing]\nfiles = \"forget-unsynced\"\n";
    place.write("node.toml", &format!("{config}{forgets}"));
    let daemon = place.start();
    place.run(0, "share create vm01 --size 16M --for *");
    let (socket, state) = socket_of(&place);
    let key = ["--reservation-key", "a11ce"];
    let attached = Attached::with(&url, &socket, &state, &key);
    let load = Load::start(&socket, 512);
    load.wait(100);
    daemon.kill();
    let daemon = place.start();
    load.wait(300);
    load.end();
    let (code, log) = attached.stop();
    assert_eq!(code, Some(0), "{log}");
    daemon.stop();
}

#[test]
fn a_signal_under_load_loses_nothing_that_was_acknowledged() {
    let (place, url) = node("attach-signal");
    let daemon = place.start();
    place.run(0, "share create vm01 --size 16M --for *");
    let (socket, state) = socket_of(&place);
    for _ in 0..3 {
        let attached = Attached::start(&url, &socket, &state);
        let loads = [(); 2].map(|()| Load::start(&socket, 512));
        loads[0].wait(100);
        let (code, log) = attached.stop();
        assert_eq!(code, Some(0), "{log}");
        assert!(!socket.exists());
        // Both wrote the same places: what is there is the last of either.
        let [one, other] = loads.map(Load::end);
        let again = Attached::start(&url, &socket, &state);
        let mut client = Client::connect(&socket);
        for (at, (one, other)) in one.into_iter().zip(other).enumerate() {
            if one == u64::MAX || other == u64::MAX || (one == 0 && other == 0) {
                continue;
            }
            let data = client.read((at * BLOCK) as u64, BLOCK);
            assert!(
                data == block_of(one) || data == block_of(other),
                "block {at}: {one} or {other}"
            );
        }
        assert_eq!(again.stop().0, Some(0));
    }
    daemon.stop();
}

#[test]
fn a_stop_does_not_hang_where_the_target_is_gone() {
    let (place, url) = node("attach-gone");
    let daemon = place.start();
    place.run(0, "share create vm01 --size 16M --for *");
    let (socket, state) = socket_of(&place);
    let attached = Attached::start(&url, &socket, &state);
    let load = Load::start(&socket, 512);
    load.wait(50);
    daemon.kill();
    let (code, log) = attached.stop();
    // A write in flight has nowhere to go: that is said.
    assert!(
        code == Some(1) && log.contains("CWY7008") || code == Some(0),
        "{code:?} {log}"
    );
    assert!(
        load.end().contains(&u64::MAX),
        "the one in flight was not acknowledged"
    );
}

/// fio on a part of the volume that nobody else uses, writing and verifying what it wrote, for some
/// seconds.
fn fio(socket: &Path) -> Child {
    let uri = format!("--uri={}", uri(socket));
    let words = "--name=x --ioengine=nbd --rw=randrw --bs=4k --iodepth=8 --offset=8M --size=8M --loops=5 --rate_iops=500,500 \
                 --verify=crc32c --verify_fatal=1 --verify_state_save=0 --output-format=terse";
    let fio = Command::new("fio")
        .args(words.split_whitespace())
        .arg(uri)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    fio.expect("scripts/install test installs fio")
}

fn ended_well(fio: Child) {
    let output = fio.wait_with_output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "fio: {}{}",
        said(&output.stdout),
        said(&output.stderr)
    );
}

#[test]
fn one_of_two_paths_is_cut_and_the_other_and_the_target_killed_and_no_program_notices() {
    let (place, url) = node("attach-paths");
    let portal: std::net::SocketAddr = url["iscsi://".len()..]
        .split('/')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let daemon = place.start();
    place.run(0, "share create vm01 --size 16M --for *");
    let relays = ["127.0.0.2", "127.0.0.3"].map(|ip| Relay::new(ip, portal));
    let [one, other] = [0, 1].map(|at: usize| relays[at].portal);
    let url = format!("iscsi://{one},{other}/iqn.2026-11.io.causeway:vm01/0");
    let (socket, state) = socket_of(&place);
    let from = ["--from", "127.0.0.1", "--from", "127.0.0.2"];
    let attached = Attached::with(&url, &socket, &state, &from);
    let load = Load::start(&socket, 512);
    let mut fio = fio(&socket);
    let mut under_load = |what: &dyn Fn()| {
        load.wait(200);
        assert!(fio.try_wait().unwrap().is_none(), "fio has ended too early");
        what();
        load.wait(200);
    };
    under_load(&|| relays[0].cut());
    under_load(&|| relays[0].mend());
    // The first may not be trusted again yet; then a program waits until it is.
    under_load(&|| relays[1].cut());
    under_load(&|| relays[1].mend());
    let daemon = std::cell::Cell::new(Some(daemon));
    under_load(&|| {
        daemon.take().unwrap().kill();
        daemon.set(Some(place.start()));
    });
    let acknowledged = load.end();
    ended_well(fio);
    let checked = check(&socket, &acknowledged);
    assert!(checked > 400, "{checked}");
    let (code, log) = attached.stop();
    assert_eq!(code, Some(0), "{log}");
    let lost = log
        .lines()
        .filter(|line| line.contains("state=\"down\"") || line.contains("down"));
    assert!(lost.count() >= 2, "both paths were lost: {log}");
    daemon.take().unwrap().stop();
}

/// A volume of 4096-byte blocks says so; clients that ask fit their requests to it, and a part of a
/// block is refused: a server that read, changed and wrote a whole block for it would lose what
/// another connection writes into the same block meanwhile.
#[test]
fn a_lun_of_4096_byte_blocks_serves_the_usual_clients_and_refuses_parts_of_blocks() {
    let (place, url) = node("attach-4k");
    let daemon = place.start();
    place.run(0, "share create vm01 --size 64M --for * --block-size 4096");
    let (socket, state) = socket_of(&place);
    let attached = Attached::start(&url, &socket, &state);
    let uri = uri(&socket);
    let output = tool("nbdinfo", &["--json", &uri]);
    let answer: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        answer["exports"][0]["block_size_minimum"], 4096,
        "{answer:#}"
    );
    copy_and_compare(&place, &uri);
    let fio = format!("--uri={uri}");
    let words = "--name=x --ioengine=nbd --rw=randrw --bs=4k --iodepth=16 --size=8M --verify=crc32c --verify_state_save=0";
    let words: Vec<&str> = words.split(' ').chain([fio.as_str()]).collect();
    tool("fio", &words);
    // A client that never asked for sizes of blocks.
    const EINVAL: u32 = 22;
    let mut client = Client::connect(&socket);
    let whole = vec![7; 4096];
    client.write(4096, &whole, true).unwrap();
    for (at, length) in [(4096, 512), (4608, 4096), (4097, 1), (0, 4095)] {
        assert_eq!(client.write(at, &vec![9; length], false), Err(Some(EINVAL)));
        assert_eq!(client.try_read(at, length), Err(Some(EINVAL)));
    }
    assert!(client.read(4096, 4096) == whole, "nothing of it was done");
    assert_eq!(attached.stop().0, Some(0));
    daemon.stop();
}
