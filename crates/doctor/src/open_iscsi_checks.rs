//! The kernel's own iSCSI sessions: what a dead path costs, and whether paths of one LUN are one
//! disk.

use crate::finding::{Finding, Verdict};
use crate::open_iscsi::{OpenIscsi, PathDisk};
use crate::scene::Scene;
use std::collections::{BTreeMap, BTreeSet};

/// Seconds that a dead path may cost. `share create` prints settings that need 4.
const DEAD_PATH_MAX: u32 = 5;
/// Seconds that a disk which nothing stands in for should wait for its path.
const ALONE_MIN: u32 = 30;

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
                 the data. multipathd makes no map of a LUN that it was not given, where find_multipaths is strict",
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

/// Never asked: nothing but TCP notices, after many minutes.
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
        .because(
            "commands wait that long before they take another path (silence + answer + recovery)",
        )
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
