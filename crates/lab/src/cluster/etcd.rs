//! Three members of a real etcd: one with each node, one on a machine of its own.

use super::net::{NODES, Net, THIRD, address};
use super::program::Program;
use crate::error::LabError;
use crate::tool::inside;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde::Deserialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Where the members are.
const PLACES: [&str; 3] = [NODES[0], NODES[1], THIRD];
const NETWORK: u8 = 3;
const CLIENT: u16 = 2379;
const PEER: u16 = 2380;
/// What a start takes at most.
const START_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Etcd {
    pub(super) members: Vec<Program>,
    /// From where it is asked.
    namespaces: Vec<String>,
    /// Its certificates.
    dir: PathBuf,
}

/// What `etcdctl endpoint status` says of a member.
#[derive(Deserialize)]
struct Reported {
    #[serde(rename = "Status")]
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    header: Header,
    leader: u64,
}

#[derive(Deserialize)]
struct Header {
    member_id: u64,
}

fn url(at: usize, port: u16) -> String {
    format!("https://{}:{port}", address(PLACES[at], NETWORK))
}

/// What clients are given.
pub(super) fn endpoints() -> Vec<String> {
    (0..PLACES.len()).map(|at| url(at, CLIENT)).collect()
}

/// Whether there is one here, and why not.
///
/// # Errors
/// Why not.
pub fn has_etcd() -> Result<(), LabError> {
    for program in ["etcd", "etcdctl"] {
        let found = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()));
        if !found {
            return Err(LabError::not_here(
                format!("there is no program `{program}` here"),
                "install etcd (packages etcd-server and etcd-client, or etcd)",
            ));
        }
    }
    Ok(())
}

/// Options for certificates: of servers, of what connects, and of members among each other.
const FILES: [(&str, &str); 6] = [
    ("--trusted-ca-file", CA),
    ("--cert-file", "member.pem"),
    ("--key-file", "member.key"),
    ("--peer-trusted-ca-file", CA),
    ("--peer-cert-file", "member.pem"),
    ("--peer-key-file", "member.key"),
];
/// Who signs, and what a node or `etcdctl` shows.
pub(super) const CA: &str = "ca.pem";
pub(super) const CERTIFICATE: &str = "node.pem";
pub(super) const KEY: &str = "node.key";

/// Who signs for members and nodes, and the certificates of both.
fn certificates(dir: &Path) -> Result<(), LabError> {
    let failed = |error: rcgen::Error| {
        LabError::new(
            format!("certificates for etcd: {error}"),
            "see the cause in the message",
        )
    };
    let write = |name: &str, text: String| {
        let done = fs::write(dir.join(name), text);
        done.map_err(|error| LabError::system("writing a file of the lab", &error))
    };
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "etcd's");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().map_err(failed)?;
    let authority = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
    write(CA, authority.pem())?;
    let addresses = PLACES.map(|part| address(part, NETWORK).to_string());
    for name in ["member", "node"] {
        let mut params = CertificateParams::new(addresses.to_vec()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().map_err(failed)?;
        let signed = params.signed_by(&key, &authority).map_err(failed)?;
        write(&format!("{name}.pem"), signed.pem())?;
        write(&format!("{name}.key"), key.serialize_pem())?;
    }
    Ok(())
}

fn words(at: usize, certificates: &Path, data: OsString) -> Vec<OsString> {
    let all = (0..PLACES.len()).map(|it| format!("etcd-{}={}", it + 1, url(it, PEER)));
    let all: Vec<String> = all.collect();
    let options = [
        ("--name", format!("etcd-{}", at + 1)),
        ("--listen-client-urls", url(at, CLIENT)),
        ("--advertise-client-urls", url(at, CLIENT)),
        ("--listen-peer-urls", url(at, PEER)),
        ("--initial-advertise-peer-urls", url(at, PEER)),
        ("--initial-cluster", all.join(",")),
        ("--initial-cluster-token", "causeway-lab".to_owned()),
        ("--initial-cluster-state", "new".to_owned()),
        ("--logger", "zap".to_owned()),
        ("--log-level", "warn".to_owned()),
    ];
    let mut words: Vec<OsString> = vec!["etcd".into()];
    for (name, value) in options {
        words.extend([name.into(), value.into()]);
    }
    for (name, file) in FILES {
        words.extend([name.into(), certificates.join(file).into_os_string()]);
    }
    for flag in ["--client-cert-auth", "--peer-client-cert-auth"] {
        words.push(flag.into());
    }
    words.extend(["--data-dir".into(), data]);
    words
}

impl Etcd {
    pub(super) async fn start(net: &Net) -> Result<Self, LabError> {
        certificates(net.claim().dir())?;
        let mut members = Vec::new();
        for (at, part) in PLACES.iter().enumerate() {
            let name = format!("etcd-{}", at + 1);
            let dir = net.claim().dir().join(&name);
            let made = fs::create_dir_all(&dir);
            made.map_err(|error| LabError::system("a directory of the lab", &error))?;
            let words = words(at, net.claim().dir(), dir.join("data").into_os_string());
            members.push(Program::new(&name, &net.namespace(part), dir, words));
        }
        let mut etcd = Self {
            members,
            namespaces: PLACES.map(|part| net.namespace(part)).to_vec(),
            dir: net.claim().dir().to_owned(),
        };
        for member in &mut etcd.members {
            member.start()?;
        }
        etcd.well().await?;
        Ok(etcd)
    }

    /// Waits until it answers by a majority.
    pub(super) async fn well(&mut self) -> Result<(), LabError> {
        let until = Instant::now() + START_MAX;
        while self.leader().await.is_none() {
            let ended = self.members.iter_mut().find_map(Program::ended);
            if ended.is_some() || Instant::now() > until {
                return Err(LabError::new(
                    format!("etcd does not work: {}", ended.unwrap_or_default()),
                    "see the cause in the message",
                ));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// The place of the member that leads, as one says that it knows.
    pub(super) async fn leader(&self) -> Option<usize> {
        let mut ids = Vec::new();
        let mut leader = None;
        for (at, member) in self.members.iter().enumerate() {
            let status = if member.runs() {
                self.status(at).await
            } else {
                None
            };
            if let Some(status) = &status {
                leader = (status.leader != 0).then_some(status.leader).or(leader);
            }
            ids.push(status.map(|it| it.header.member_id));
        }
        ids.iter().position(|id| id.is_some() && *id == leader)
    }

    /// What a member says of itself, asked on its machine.
    async fn status(&self, at: usize) -> Option<Status> {
        let url = url(at, CLIENT);
        let file = |name: &str| self.dir.join(name).display().to_string();
        let (ca, certificate, key) = (file(CA), file(CERTIFICATE), file(KEY));
        let words = [
            "env",
            "ETCDCTL_API=3",
            "etcdctl",
            "--endpoints",
            &url,
            "--cacert",
            &ca,
            "--cert",
            &certificate,
            "--key",
            &key,
            "--command-timeout",
            "1s",
            "endpoint",
            "status",
            "-w",
            "json",
        ];
        let said = inside(&self.namespaces[at], &words).await.ok()?;
        let all: Vec<Reported> = serde_json::from_str(&said).ok()?;
        all.into_iter().next().map(|it| it.status)
    }
}
