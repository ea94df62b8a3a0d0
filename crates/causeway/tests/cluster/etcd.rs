//! A real etcd of one member, by TLS with certificates of its own authority. It goes with the test
//! however that ends.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use test_ports::free_port;

/// How long it may take to be well.
const START_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Etcd {
    dir: PathBuf,
    client: u16,
    peer: u16,
    process: Option<Child>,
}

/// Who signs for members and nodes.
fn certificates(dir: &Path) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "etcd's");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(params, key).unwrap();
    fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    for name in ["member", "node"] {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &authority).unwrap();
        fs::write(dir.join(format!("{name}.pem")), signed.pem()).unwrap();
        fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

impl Etcd {
    /// `None`, and said so, where there is no etcd.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let has = |program: &str, word: &str| Command::new(program).arg(word).output().is_ok();
        if !has("etcd", "--version") || !has("etcdctl", "version") {
            println!("skipped: etcd is not here (scripts/install etcd)");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("cw-etcd-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        certificates(&dir);
        let mut etcd = Self {
            dir,
            client: free_port(),
            peer: free_port(),
            process: None,
        };
        etcd.up();
        Some(etcd)
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.client)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Starts it on its data.
    pub(crate) fn up(&mut self) {
        let peer = format!("https://127.0.0.1:{}", self.peer);
        let log = fs::File::create(self.file("log")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "etcd", "--name", "n", "--data-dir"]);
        command.arg(self.file("data"));
        for name in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([name, &self.url()]);
        }
        for name in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            command.args([name, &peer]);
        }
        let cluster = format!("n={peer}");
        command.args(["--initial-cluster", &cluster, "--client-cert-auth"]);
        command.args([
            "--peer-client-cert-auth",
            "--logger",
            "zap",
            "--log-level",
            "warn",
        ]);
        for (name, of) in [
            ("--trusted-ca-file", "ca.pem"),
            ("--cert-file", "member.pem"),
            ("--key-file", "member.key"),
        ] {
            command.arg(name).arg(self.file(of));
            command
                .arg(name.replacen("--", "--peer-", 1))
                .arg(self.file(of));
        }
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        self.process = Some(quiet.stderr(log).spawn().unwrap());
        let mut left = START_MAX;
        let step = Duration::from_millis(50);
        while self.ctl(&["get", "x"]).is_none() {
            left = left.saturating_sub(step);
            let log = fs::read_to_string(self.file("log")).unwrap_or_default();
            assert!(!left.is_zero(), "etcd is not well: {log}");
            std::thread::park_timeout(step);
        }
    }

    /// `etcdctl ...`; none: it failed.
    pub(crate) fn ctl(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3");
        command.args(["--endpoints", &self.url(), "--command-timeout", "5s"]);
        for (name, of) in [
            ("--cacert", "ca.pem"),
            ("--cert", "node.pem"),
            ("--key", "node.key"),
        ] {
            command.arg(name).arg(self.file(of));
        }
        let output = command.args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// A backup of all that it has by now.
    pub(crate) fn back_up(&mut self) {
        self.kill();
        copy(&self.file("data"), &self.file("backup"));
        self.up();
    }

    /// It has again what it had at the backup.
    pub(crate) fn restore(&mut self) {
        self.kill();
        fs::remove_dir_all(self.file("data")).unwrap();
        copy(&self.file("backup"), &self.file("data"));
        self.up();
    }

    /// It loses all that it has.
    pub(crate) fn empty(&mut self) {
        self.kill();
        fs::remove_dir_all(self.file("data")).unwrap();
        self.up();
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
        let _left = fs::remove_dir_all(&self.dir);
    }
}
