//! Ports of the host that change while a volume is open, and sessions that keep to theirs: a
//! verified load in a bed, inspected from outside as an administrator does.

use crate::{ALONE, causeway};
use lab::{Disk, Port, Rate, Rig, Side, Topology};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::future::Future;
use std::process::Stdio;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Two NICs and two ports in one network.
fn topology() -> Topology {
    let port = |name: &str| Port::new(name, name).rate(Rate::megabits(100));
    Topology {
        host: vec![port("eth0"), port("eth1")],
        target: vec![port("p0"), port("p1")],
        buffer_kib: 64,
        mtu: 9000,
    }
}

/// Runs `test` in a bed; where this machine cannot have one, says so.
fn in_a_bed<F: Future<Output = ()>>(test: impl FnOnce(Bench) -> F) {
    if let Err(error) = lab::can_have_one() {
        println!("skipped: {error}");
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let program = env!("CARGO_BIN_EXE_causeway").as_ref();
        match Rig::start(program, topology(), &Disk::default()).await {
            Ok(rig) => test(Bench(rig)).await,
            Err(error) if error.to_string().contains("a lab needs") => println!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        }
    });
}

struct Bench(Rig);

impl Bench {
    /// A line for `ip` in the host's namespace.
    async fn ip(&self, line: &str) {
        let namespace = self.0.bed().namespace(Side::Host);
        let words = ["-n", &namespace].into_iter().chain(line.split(' '));
        let output = Command::new("ip").args(words).output().await;
        let output = output.expect("iproute2 is here");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {line}: {said}");
    }

    /// The host answers as `ip`, by a table of that name.
    async fn address(&self, ip: &str, nic: &str, table: u32) {
        self.ip(&format!("addr add {ip}/24 dev {nic}")).await;
        let rule = format!("rule add from {ip} table {table}");
        self.ip(&rule).await;
        let route = format!("route replace 10.77.0.0/24 dev {nic} src {ip} table {table}");
        self.ip(&route).await;
    }

    /// A verified load through these ports of the host; all, where none is named.
    fn load(&self, from: &[&str]) -> Load {
        const WORDS: &str = "netns exec NAMESPACE PROGRAM bench -Rjson --destroy -b16K -t1 -o4 -r -w50 -f16M -W0 -C0 -d60 --verify";
        let (dir, namespace) = (self.0.bed().dir(), self.0.bed().namespace(Side::Host));
        let mut command = Command::new("ip");
        for word in WORDS.split(' ') {
            command.arg(match word {
                "NAMESPACE" => &namespace,
                "PROGRAM" => env!("CARGO_BIN_EXE_causeway"),
                word => word,
            });
        }
        for nic in from {
            command.args(["--from", nic]);
        }
        let child = command
            .arg(self.0.url())
            .env("CAUSEWAY_INITIATOR_STATE", dir.join("initiator"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        Load(child.expect("ip can be started"))
    }

    /// Bytes that this NIC has sent.
    async fn sent(&self, nic: &str) -> u64 {
        let path = format!("/sys/class/net/{nic}/statistics/tx_bytes");
        let words = [
            "netns",
            "exec",
            &self.0.bed().namespace(Side::Host),
            "cat",
            &path,
        ];
        let output = Command::new("ip").args(words).output().await.unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        printed.trim().parse().expect("the kernel counts")
    }

    /// The target's sessions, by the ISID of each: where they come from.
    fn sessions(&self) -> Vec<(String, String)> {
        let api = format!("unix:{}", self.0.bed().dir().join("api.sock").display());
        let output = causeway(&["--api", &api, "-o", "json", "session", "ls"]);
        let answer: Value = serde_json::from_slice(&output.stdout).expect("a document");
        let all = answer.as_array().expect("sessions").iter();
        let word = |it: &Value| it.as_str().expect("text").to_owned();
        all.map(|it| (word(&it["keys"]["ISID"]), word(&it["from"])))
            .collect()
    }
}

/// `causeway bench` at work.
struct Load(Child);

impl Load {
    /// The paths that it has now.
    fn paths(&self) -> Vec<Value> {
        let output = causeway(&["-o", "json", "path", "ls"]);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let pid = self.0.id();
        let all = answer.as_array().into_iter().flatten();
        let own = all.filter(|it| it["pid"].as_u64() == pid.map(u64::from));
        own.flat_map(|it| it["paths"].as_array().cloned().unwrap_or_default())
            .collect()
    }

    /// Waits until the paths are so.
    async fn until(&mut self, what: &str, so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let until = Instant::now() + LIMIT;
        loop {
            let paths = self.paths();
            if so(&paths) {
                return paths;
            }
            let ended = self.0.try_wait().expect("our child");
            assert!(
                ended.is_none() && Instant::now() < until,
                "{what}: {paths:#?}"
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until paths from this address carry I/O that they did not carry before.
    async fn carries(&mut self, from: &str) -> Vec<Value> {
        let ios = |paths: &[Value]| {
            let mine = paths
                .iter()
                .filter(|it| it["from"] == from && it["state"] == "active");
            mine.map(|it| it["ios"].as_u64().unwrap_or(0)).sum::<u64>()
        };
        let before = ios(&self.paths());
        let what = format!("{from} carries");
        self.until(&what, |paths| ios(paths) > before + 20).await
    }

    /// Ends it: no operation has failed, and every block was right.
    async fn ends_well(self) {
        let pid = self.0.id().and_then(|it| Pid::from_raw(it.cast_signed()));
        kill_process(pid.expect("it runs"), Signal::INT).expect("it runs");
        let output = self.0.wait_with_output().await.expect("our child");
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).expect(&said);
        assert_eq!(report["errors"], 0, "{said}");
        assert_eq!(report["verify"]["bad"], 0, "{said}");
        assert!(report["verify"]["checked"].as_u64() > Some(0), "{said}");
    }
}

#[test]
fn a_host_port_that_gets_another_address_goes_on_from_there_under_its_own_names() {
    in_a_bed(|bench| async move {
        let mut load = bench.load(&[]);
        load.carries("10.77.0.1").await;
        load.carries("10.77.0.2").await;
        let isids = |of: &str| {
            let all = bench.sessions().into_iter();
            let mine = all.filter(|(_, from)| from.starts_with(&format!("{of}:")));
            let mut mine: Vec<String> = mine.map(|(isid, _)| isid).collect();
            mine.sort();
            mine
        };
        let before = isids("10.77.0.1");
        assert!(!before.is_empty(), "{:?}", bench.sessions());
        bench.ip("addr del 10.77.0.1/24 dev eth0").await;
        bench.address("10.77.0.31", "eth0", 131).await;
        let paths = load.carries("10.77.0.31").await;
        assert!(
            paths.iter().all(|it| it["from"] != "10.77.0.1"),
            "{paths:#?}"
        );
        let after = isids("10.77.0.31");
        assert!(
            !after.is_empty() && after.iter().all(|it| before.contains(it)),
            "{before:?} {after:?}"
        );
        assert_eq!(
            isids("10.77.0.1"),
            Vec::<String>::new(),
            "they were reinstated"
        );
        load.ends_well().await;
    });
}

#[test]
fn a_nic_that_comes_up_after_the_open_becomes_paths_of_the_volume() {
    in_a_bed(|bench| async move {
        bench.ip("addr del 10.77.0.2/24 dev eth1").await;
        bench.ip("link set eth1 down").await;
        let mut load = bench.load(&[]);
        let paths = load.carries("10.77.0.1").await;
        assert!(
            paths.iter().all(|it| it["from"] == "10.77.0.1"),
            "{paths:#?}"
        );
        // It is up before it has an address: nobody may log in from another one's (R: a link
        // without an address).
        bench.ip("link set eth1 up").await;
        bench.ip("addr add 10.77.0.2/24 dev eth1").await;
        bench
            .ip("route replace 10.77.0.0/24 dev eth1 src 10.77.0.2 table 101")
            .await;
        load.carries("10.77.0.2").await;
        load.carries("10.77.0.1").await;
        load.ends_well().await;
    });
}

/// No rule says to the kernel which NIC a session's address means, and its first route leads
/// through `eth0`.
#[test]
fn sessions_leave_by_the_nic_that_from_names_whatever_the_routes_say() {
    in_a_bed(|bench| async move {
        for (ip, table) in [("10.77.0.1", 100), ("10.77.0.2", 101)] {
            bench.ip(&format!("rule del from {ip} table {table}")).await;
        }
        let before = [bench.sent("eth0").await, bench.sent("eth1").await];
        let mut load = bench.load(&["eth1"]);
        load.carries("10.77.0.2").await;
        load.carries("10.77.0.2").await;
        let sent = [
            bench.sent("eth0").await - before[0],
            bench.sent("eth1").await - before[1],
        ];
        // What is not iSCSI is some packets for neighbours.
        assert!(sent[0] < 5_000 && sent[1] > 200_000, "{sent:?}");
        load.ends_well().await;
        let before = [bench.sent("eth0").await, bench.sent("eth1").await];
        let mut load = bench.load(&["eth0", "eth1"]);
        load.carries("10.77.0.1").await;
        load.carries("10.77.0.2").await;
        let sent = [
            bench.sent("eth0").await - before[0],
            bench.sent("eth1").await - before[1],
        ];
        assert!(sent.iter().all(|it| *it > 200_000), "{sent:?}");
        load.ends_well().await;
    });
}
