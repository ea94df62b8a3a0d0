//! Real etcd for a test: members on loopback with TLS and certificates of their own authority. They
//! go with the test however it ends.

use crate::Key;
use crate::etcd::{Endpoint, EtcdSettings, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use test_ports::free_port;

/// How long a member may take to be well.
const START_MAX: Duration = Duration::from_secs(20);

/// Tests of real clusters one after the other: they measure time.
static TURN: Mutex<()> = Mutex::new(());

pub(super) struct Bed {
    dir: PathBuf,
    members: Vec<Member>,
    _turn: MutexGuard<'static, ()>,
}

struct Member {
    client: u16,
    peer: u16,
    process: Option<Child>,
}

/// An authority, and what it has signed, in a directory.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(super) fn keep(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("ca.pem"), self.0.pem()).unwrap();
    }

    /// A certificate for this machine's loopback address, and its key.
    pub(super) fn signs(&self, dir: &Path, name: &str) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        // The gateway of a member asks the member itself with the certificate of the member.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.0).unwrap();
        fs::write(dir.join(format!("{name}.pem")), signed.pem()).unwrap();
        fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

impl Bed {
    /// So many members; `None`, and said so, where there is no etcd.
    pub(super) fn start(count: usize) -> Option<Self> {
        let has = |program: &str| Command::new(program).arg("version").output().is_ok();
        if Command::new("etcd").arg("--version").output().is_err() || !has("etcdctl") {
            println!("skipped: etcd is not here (scripts/install etcd)");
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("causeway-etcd-{}-{}", std::process::id(), free_port());
        let dir = std::env::temp_dir().join(name);
        let authority = Authority::new("etcd's");
        authority.keep(&dir);
        for name in ["member", "node"] {
            authority.signs(&dir, name);
        }
        let member = |_| Member {
            client: free_port(),
            peer: free_port(),
            process: None,
        };
        let mut bed = Self {
            dir,
            members: (0..count).map(member).collect(),
            _turn: turn,
        };
        (0..count).for_each(|at| bed.launch(at));
        (0..count).for_each(|at| bed.wait_for(at));
        Some(bed)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn url(&self, at: usize) -> String {
        format!("https://127.0.0.1:{}", self.members[at].client)
    }

    fn data(&self, at: usize) -> PathBuf {
        self.dir.join(format!("data{at}"))
    }

    fn cluster(&self) -> String {
        let members = self.members.iter().enumerate();
        let members = members.map(|(at, it)| format!("n{at}=https://127.0.0.1:{}", it.peer));
        members.collect::<Vec<_>>().join(",")
    }

    fn launch(&mut self, at: usize) {
        let (client, peer) = (
            self.url(at),
            format!("https://127.0.0.1:{}", self.members[at].peer),
        );
        let file = |name: &str| self.dir.join(name);
        let log = fs::File::create(file(&format!("log{at}"))).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "etcd"]);
        command
            .args(["--name", &format!("n{at}")])
            .arg("--data-dir")
            .arg(self.data(at));
        for name in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([name, &client]);
        }
        for name in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            command.args([name, &peer]);
        }
        command.args([
            "--initial-cluster",
            &self.cluster(),
            "--client-cert-auth",
            "--peer-client-cert-auth",
        ]);
        for (name, of) in [
            ("--trusted-ca-file", "ca.pem"),
            ("--cert-file", "member.pem"),
            ("--key-file", "member.key"),
        ] {
            command.arg(name).arg(file(of));
            command.arg(name.replacen("--", "--peer-", 1)).arg(file(of));
        }
        command.args(["--logger", "zap", "--log-level", "warn"]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.members[at].process = Some(child.unwrap());
    }

    /// Waits until a member answers, which needs a leader.
    fn wait_for(&mut self, at: usize) {
        let mut left = START_MAX;
        let step = Duration::from_millis(50);
        while self.try_ctl(&self.url(at), &["get", "x"]).is_err() {
            left = left.saturating_sub(step);
            let log = fs::read_to_string(self.dir.join(format!("log{at}"))).unwrap_or_default();
            assert!(!left.is_zero(), "member {at} is not well: {log}");
            std::thread::park_timeout(step);
        }
    }

    fn try_ctl(&self, urls: &str, words: &[&str]) -> Result<String, String> {
        let file = |name: &str| self.dir.join(name);
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", urls, "--command-timeout", "5s"]);
        command.arg("--cacert").arg(file("ca.pem"));
        command
            .arg("--cert")
            .arg(file("node.pem"))
            .arg("--key")
            .arg(file("node.key"));
        let output = command.args(words).output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(said(&output.stdout))
        } else {
            Err(said(&output.stderr))
        }
    }

    /// `etcdctl ...`, to one member.
    pub(super) fn ctl(&self, at: usize, words: &[&str]) -> String {
        let said = self.try_ctl(&self.url(at), words);
        said.unwrap_or_else(|why| panic!("etcdctl {words:?}: {why}"))
    }

    /// Who leads now.
    pub(super) fn leader(&self) -> usize {
        let leads = |at: &usize| {
            let said = self.try_ctl(&self.url(*at), &["endpoint", "status", "-w", "json"]);
            let said: serde_json::Value =
                serde_json::from_str(&said.unwrap_or_default()).unwrap_or_default();
            let status = &said[0]["Status"];
            status["leader"].is_u64() && status["leader"] == status["header"]["member_id"]
        };
        let mut all = 0..self.members.len();
        all.find(leads).expect("somebody leads")
    }

    fn signal(&mut self, at: usize, signal: &str) {
        let process = self.members[at].process.as_ref().expect("it runs").id();
        let done = Command::new("kill")
            .args([signal, &process.to_string()])
            .status();
        assert!(done.unwrap().success());
    }

    pub(super) fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.members[at].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// It hangs.
    pub(super) fn pause(&mut self, at: usize) {
        self.signal(at, "-STOP");
    }

    pub(super) fn resume(&mut self, at: usize) {
        self.signal(at, "-CONT");
    }

    /// Starts members again on their data.
    pub(super) fn up(&mut self, all: &[usize]) {
        all.iter().for_each(|at| self.launch(*at));
        all.iter().for_each(|at| self.wait_for(*at));
    }

    /// All members lose all that they have.
    pub(super) fn empty(&mut self) {
        let all: Vec<usize> = (0..self.members.len()).collect();
        for at in &all {
            self.kill(*at);
            fs::remove_dir_all(self.data(*at)).unwrap();
        }
        self.up(&all);
    }

    /// All members begin again with what a snapshot has.
    pub(super) fn restore(&mut self, snapshot: &Path) {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let snapshot = snapshot.to_str().unwrap();
        for at in &all {
            self.kill(*at);
            fs::remove_dir_all(self.data(*at)).unwrap();
            let peer = format!("https://127.0.0.1:{}", self.members[*at].peer);
            let (name, data) = (format!("n{at}"), self.data(*at));
            let words = [
                "snapshot",
                "restore",
                snapshot,
                "--name",
                &name,
                "--data-dir",
                data.to_str().unwrap(),
                "--initial-cluster",
                &self.cluster(),
                "--initial-advertise-peer-urls",
                &peer,
            ];
            self.ctl(*at, &words);
        }
        self.up(&all);
    }

    /// Of this bed, with the certificate of this name in this directory.
    pub(super) fn settings_by(&self, dir: &Path, name: &str) -> EtcdSettings {
        let all = 0..self.members.len();
        EtcdSettings {
            endpoints: all
                .map(|at| Endpoint::parse(&self.url(at)).unwrap())
                .collect(),
            tls: Some(TlsFiles {
                ca: self.dir.join("ca.pem"),
                certificate: dir.join(format!("{name}.pem")),
                key: dir.join(format!("{name}.key")),
            }),
            prefix: Key::new("causeway/test").unwrap(),
            memory: self.dir.join("memory"),
        }
    }

    pub(super) fn settings(&self) -> EtcdSettings {
        self.settings_by(&self.dir, "node")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        (0..self.members.len()).for_each(|at| self.kill(at));
        let _left = fs::remove_dir_all(&self.dir);
    }
}
