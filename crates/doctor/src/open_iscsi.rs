//! The kernel's own iSCSI sessions and what multipath makes of their disks: what a dead path costs,
//! and whether paths of one LUN are one disk.

use env::{CoreHandle, Files};
use machine::Roots;
use std::path::Path;
use std::rc::Rc;

/// What open-iscsi and device-mapper do here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenIscsi {
    /// The kernel's sessions.
    pub sessions: Vec<Session>,
    /// Disks behind them.
    pub disks: Vec<PathDisk>,
    /// What later logins will use.
    pub records: Vec<Record>,
    /// multipath's files say what becomes of commands of our LUNs without a path: they wait.
    pub waits: bool,
}

/// A session of the kernel's initiator. Times are in seconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Session {
    /// The kernel's name, such as `session1`.
    pub name: String,
    /// The target's iSCSI name.
    pub target: String,
    /// Silence after which the target is asked; 0: never.
    pub interval: u32,
    /// Within it the target must answer; 0: never too late.
    pub timeout: u32,
    /// A lost connection may come back within it, before commands fail.
    pub recovery: u32,
}

/// A disk that is one path to a LUN.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathDisk {
    /// Its name, such as `sda`.
    pub name: String,
    /// The session that it is behind.
    pub session: String,
    /// The LUN's name, which is the same over every path.
    pub unit: String,
    /// It is a LUN of a target of ours.
    pub ours: bool,
    /// The multipath map that it belongs to.
    pub map: Option<String>,
}

/// A place where the times of later logins stand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Of what: a target and portal, or the defaults of new ones.
    pub of: String,
    /// As in [`Session`], where it is reported.
    pub interval: Option<u32>,
    /// As in [`Session`], where it is reported.
    pub timeout: Option<u32>,
}

/// Reads them. What is not there is left out.
pub(crate) async fn read(core: &CoreHandle, roots: &Roots) -> OpenIscsi {
    let files = core.files();
    let sessions = sessions(&files, &roots.sys).await;
    let disks = disks(&files, &roots.sys).await;
    // open-iscsi keeps its records in the one place or the other, by distribution.
    let mut records = Vec::new();
    for dir in ["iscsi/nodes", "../var/lib/iscsi/nodes"] {
        records.extend(node_records(&files, &roots.etc.join(dir)).await);
    }
    // With records, what is for new ones is not what logins use.
    let defaults = files.read_fact(&roots.etc.join("iscsi/iscsid.conf")).await;
    if let (true, Ok(text)) = (records.is_empty(), defaults) {
        records.push(record("new targets (iscsid.conf)".to_owned(), &text));
    }
    let mut waits = waits(&files, &roots.etc.join("multipath.conf")).await;
    let more = roots.etc.join("multipath/conf.d");
    for name in names(&files, &more).await {
        waits |= name.ends_with(".conf") && self::waits(&files, &more.join(&name)).await;
    }
    OpenIscsi {
        sessions,
        disks,
        records,
        waits,
    }
}

/// A file of multipath lets commands of our LUNs wait for a path: in a section about them, or for
/// all.
async fn waits(files: &Rc<dyn Files>, path: &Path) -> bool {
    let text = files.read_fact(path).await.unwrap_or_default();
    let mut sections: Vec<(String, bool)> = Vec::new();
    for line in text.lines() {
        let line = line.split(['#', '!']).next().unwrap_or("").trim();
        let mut words = line.split_whitespace();
        let (key, value) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let value = value.trim_matches('"');
        if line.ends_with('{') {
            sections.push((key.trim_end_matches('{').to_owned(), false));
        } else if key.starts_with('}') {
            sections.pop();
        } else if let Some((section, ours)) = sections.last_mut() {
            *ours |= key == "vendor" && value.starts_with("CAUSEWAY");
            let concerns_us = *ours || section != "device";
            if key == "no_path_retry" && value == "queue" && concerns_us {
                return true;
            }
        }
    }
    false
}

async fn names(files: &Rc<dyn Files>, dir: &Path) -> Vec<String> {
    let entries = files.list(dir).await.unwrap_or_default();
    let mut names: Vec<String> = entries
        .iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

async fn sessions(files: &Rc<dyn Files>, sys: &Path) -> Vec<Session> {
    let class = sys.join("class/iscsi_session");
    let mut found = Vec::new();
    for name in names(files, &class).await {
        let dir = class.join(&name);
        // The first connection bears the session's number. Linux makes no other.
        let connection = name.replace("session", "connection") + ":0";
        let connection = sys.join("class/iscsi_connection").join(connection);
        let number =
            async |path: &Path| -> Option<u32> { files.read_fact(path).await.ok()?.parse().ok() };
        let target = files.read_fact(&dir.join("targetname")).await;
        let times = (
            number(&connection.join("recv_tmo")).await,
            number(&connection.join("ping_tmo")).await,
            number(&dir.join("recovery_tmo")).await,
        );
        if let (Ok(target), (Some(interval), Some(timeout), Some(recovery))) = (target, times) {
            found.push(Session {
                name,
                target,
                interval,
                timeout,
                recovery,
            });
        }
    }
    found
}

async fn disks(files: &Rc<dyn Files>, sys: &Path) -> Vec<PathDisk> {
    let block = sys.join("block");
    let mut found = Vec::new();
    for name in names(files, &block).await {
        let dir = block.join(&name);
        let Ok(device) = files.resolve(&dir.join("device")).await else {
            continue;
        };
        let session = device
            .components()
            .filter_map(|part| part.as_os_str().to_str())
            .find(|part| {
                part.strip_prefix("session")
                    .is_some_and(|rest| rest.parse::<u32>().is_ok())
            });
        let unit = files.read_fact(&dir.join("device/wwid")).await;
        let (Some(session), Ok(unit)) = (session, unit) else {
            continue;
        };
        let mut map = None;
        for holder in names(files, &dir.join("holders")).await {
            let dm = block.join(holder).join("dm");
            let uuid = files.read_fact(&dm.join("uuid")).await.unwrap_or_default();
            if uuid.starts_with("mpath-") {
                map = files.read_fact(&dm.join("name")).await.ok();
            }
        }
        let vendor = files.read_fact(&dir.join("device/vendor")).await;
        found.push(PathDisk {
            name,
            session: session.to_owned(),
            unit,
            ours: vendor.is_ok_and(|it| it.trim() == "CAUSEWAY"),
            map,
        });
    }
    found
}

/// `nodes/TARGET/PORTAL`, a file or a directory with a file for each interface.
async fn node_records(files: &Rc<dyn Files>, nodes: &Path) -> Vec<Record> {
    let mut found = Vec::new();
    for target in names(files, nodes).await {
        let dir = nodes.join(&target);
        for portal in names(files, &dir).await {
            let of = format!("{target} at {portal}");
            let at = dir.join(&portal);
            if let Ok(text) = files.read_fact(&at).await {
                found.push(record(of, &text));
                continue;
            }
            for interface in names(files, &at).await {
                if let Ok(text) = files.read_fact(&at.join(interface)).await {
                    found.push(record(of.clone(), &text));
                }
            }
        }
    }
    found
}

/// Lines of `name = value`.
fn record(of: String, text: &str) -> Record {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(it, _)| it.trim() == name)?;
        found.1.trim().parse().ok()
    };
    Record {
        of,
        interval: value("node.conn[0].timeo.noop_out_interval"),
        timeout: value("node.conn[0].timeo.noop_out_timeout"),
    }
}
