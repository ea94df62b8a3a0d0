//! The kernel's own iSCSI sessions and what multipath makes of their disks: what a dead path costs,
//! and whether paths of one LUN are one disk.

use crate::{Finding, Scene, Verdict};
use env::{CoreHandle, Files};
use machine::Roots;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// Seconds that a dead path may cost. `share create` prints settings that need 4.
const DEAD_PATH_MAX: u32 = 5;
/// Seconds that a disk which nothing stands in for should wait for its path.
const ALONE_MIN: u32 = 30;

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
    /// As in [`Session`], where it is told.
    pub interval: Option<u32>,
    /// As in [`Session`], where it is told.
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

/// The checks. None where the kernel has no session and open-iscsi is not installed.
pub(crate) fn all(scene: &Scene) -> Vec<Finding> {
    let Some(open_iscsi) = &scene.open_iscsi else {
        return Vec::new();
    };
    if open_iscsi.sessions.is_empty() && open_iscsi.records.is_empty() {
        return Vec::new();
    }
    vec![
        one_disk(open_iscsi),
        dead_path(open_iscsi),
        later_logins(open_iscsi),
        no_path(open_iscsi),
    ]
}

const PASTE: &str = "paste what `causeway share show NAME` prints for Linux; a session takes its times at its login: \
                     `iscsiadm -m node -T TARGET --logout`, then `--login`, one path after the other";

fn one_disk(open_iscsi: &OpenIscsi) -> Finding {
    let mut units: BTreeMap<&str, Vec<&PathDisk>> = BTreeMap::new();
    for disk in &open_iscsi.disks {
        units.entry(&disk.unit).or_default().push(disk);
    }
    let listed = |disks: &[&PathDisk]| {
        let names: Vec<&str> = disks.iter().map(|it| it.name.as_str()).collect();
        names.join(" and ")
    };
    let several = units.values().filter(|disks| disks.len() > 1);
    let apart: Vec<String> = several
        .filter(|disks| disks.iter().any(|disk| disk.map.is_none()))
        .map(|disks| listed(disks))
        .collect();
    if !apart.is_empty() {
        let what = format!("one LUN each, and not one disk: {}", apart.join("; "));
        return Finding::new("one-disk", &[5], Verdict::Problem, what)
            .because(
                "each of these names is one path: what uses it stops with that path, and what uses two of them at once damages \
                 the data. multipathd makes no map of a LUN that it was not told of, where find_multipaths is strict",
            )
            .remedy("multipath -a /dev/NAME; multipathd reconfigure; then use /dev/mapper. The lines are in `causeway share show NAME`");
    }
    let single: Vec<String> = units
        .values()
        .filter(|disks| disks.len() == 1)
        .map(|disks| listed(disks))
        .collect();
    if !single.is_empty() {
        return Finding::new(
            "one-disk",
            &[5],
            Verdict::Advice,
            format!("one path only: {}", single.join(", ")),
        )
        .because("a cable or a portal takes it away")
        .remedy(
            "log in at every portal of the target: iscsiadm -m discovery, iscsiadm -m node --login",
        );
    }
    let maps: BTreeSet<&str> = open_iscsi
        .disks
        .iter()
        .filter_map(|it| it.map.as_deref())
        .collect();
    let what = format!(
        "{} LUNs of open-iscsi have a map over all their paths",
        maps.len()
    );
    Finding::good("one-disk", &[5], what)
}

/// Never asked: nothing but TCP tells, after many minutes.
fn is_deaf(interval: u32, timeout: u32) -> bool {
    interval == 0 || timeout == 0
}

fn dead_path(open_iscsi: &OpenIscsi) -> Finding {
    let mut slow = Vec::new();
    let mut never = Vec::new();
    let mut hasty = Vec::new();
    let mut longest = 0;
    for session in &open_iscsi.sessions {
        let (interval, timeout, recovery) = (session.interval, session.timeout, session.recovery);
        let mut disks = open_iscsi
            .disks
            .iter()
            .filter(|it| it.session == session.name);
        let of = format!("{} ({})", session.name, session.target);
        if is_deaf(interval, timeout) {
            never.push(of);
        } else if disks.clone().any(|it| it.map.is_none()) {
            if recovery < ALONE_MIN {
                hasty.push(format!("{of} {recovery} s"));
            }
        } else if disks.any(|it| it.map.is_some()) {
            let sum = interval.saturating_add(timeout).saturating_add(recovery);
            longest = longest.max(sum);
            if sum > DEAD_PATH_MAX {
                slow.push(format!(
                    "{of} {sum} s ({interval} + {timeout} + {recovery})"
                ));
            }
        }
    }
    if !never.is_empty() {
        let what = format!("never asked whether they live: {}", never.join(", "));
        return Finding::new("dead-path", &[], Verdict::Problem, what)
            .because("a path that dies without a sign holds its commands for many minutes")
            .remedy(PASTE);
    }
    if !hasty.is_empty() {
        let what = format!("fail without another path after: {}", hasty.join(", "));
        return Finding::new("dead-path", &[], Verdict::Problem, what)
            .because("these disks are in no map: a restart of the target is an error to what uses them")
            .remedy("let multipath have them, or set node.session.timeo.replacement_timeout to 120 and log in again");
    }
    if slow.is_empty() {
        let what = format!("a path that dies without a sign costs {longest} s at most");
        return Finding::good("dead-path", &[], what);
    }
    let what = format!("a path that dies without a sign costs: {}", slow.join(", "));
    Finding::new("dead-path", &[], Verdict::Advice, what)
        .because("commands wait that long before they go another way (silence + answer + recovery)")
        .remedy(PASTE)
}

fn no_path(open_iscsi: &OpenIscsi) -> Finding {
    let mut mapped = open_iscsi.disks.iter().filter(|it| it.map.is_some());
    if open_iscsi.waits || !mapped.any(|it| it.ours) {
        return Finding::good(
            "no-path",
            &[],
            "with no path left, commands of our LUNs wait for one",
        );
    }
    let what = "with no path left, commands of our LUNs fail".to_owned();
    Finding::new("no-path", &[], Verdict::Advice, what)
        .because("a restart of the target, or of the only switch, is then an error to applications, and a file system goes read-only")
        .remedy("no_path_retry \"queue\" for the vendor CAUSEWAY, below /etc/multipath/conf.d: paste what `causeway share show NAME` prints for Linux")
}

fn later_logins(open_iscsi: &OpenIscsi) -> Finding {
    let slow: BTreeSet<String> = open_iscsi
        .records
        .iter()
        .filter_map(|record| {
            let (interval, timeout) = (record.interval?, record.timeout?);
            let slow = is_deaf(interval, timeout)
                || interval.saturating_add(timeout).saturating_add(1) > DEAD_PATH_MAX;
            slow.then(|| format!("{} {interval} + {timeout} s", record.of))
        })
        .collect();
    if slow.is_empty() {
        return Finding::good(
            "later-logins",
            &[],
            "open-iscsi's records notice a dead path soon",
        );
    }
    let all: Vec<String> = slow.into_iter().collect();
    let what = format!("notice a dead path late: {}", all.join(", "));
    Finding::new("later-logins", &[], Verdict::Advice, what)
        .because("a login takes these times, and discovery writes those of iscsid.conf into new records")
        .remedy(
            "node.conn[0].timeo.noop_out_interval = 1 and noop_out_timeout = 2: in /etc/iscsi/iscsid.conf for new targets, with \
             `iscsiadm -m node -o update` for known ones",
        )
}

#[cfg(test)]
#[path = "open_iscsi_test.rs"]
mod test;
