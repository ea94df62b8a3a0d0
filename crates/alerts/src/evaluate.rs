//! The rules that need no memory, each a function of the facts.

use crate::facts::{Facts, Finding, HostSeen, Path};
use crate::object::Object;
use crate::rule::{
    CERTIFICATE_ENDING, DESTAGE_ERROR, DEVICE_HEALTH, JOURNAL_FILLING, JOURNAL_LOST,
    JOURNAL_OFFLINE, LUN_COPY_MISSING, LUN_OFFLINE, LUN_STALLED, NOT_SERVED, POOL_FILLING,
    POOL_NEARLY_FULL, POOL_OFFLINE, POOL_OVERCOMMITTED, PORTAL_OFFLINE, RECORDS_DAMAGED, Rule,
    SCRUB_FINDINGS,
};
use crate::settings::{InForce, Settings};
use crate::severity::Severity;
use crate::time::Moment;
use manifest::facts::{PoolFacts, StallFacts};
use manifest::journal::{JournalFacts, JournalState};
use manifest::redundancy::{Route, paths};
use manifest::size::rounded;
use manifest::time::{about, rfc3339};
use std::collections::{BTreeMap, BTreeSet};
use units::text::counted;

/// What a rule says of an object, where it does not say that all is well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The condition holds.
    Bad,
    /// It does not hold, and is not over either: between two bounds, or not to be seen now.
    Between,
}

/// What a rule says of an object. Of objects that are well nothing is said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Which says it.
    pub rule: &'static Rule,
    /// What it speaks of.
    pub object: Object,
    /// What it says.
    pub verdict: Verdict,
    /// How bad it would be.
    pub severity: Severity,
    /// What is wrong, in a sentence with figures.
    pub cause: String,
    /// The next step for the administrator.
    pub next_step: String,
}

/// Where readings of one rule are put.
pub(crate) struct Sink<'a> {
    pub(crate) rule: &'static Rule,
    pub(crate) in_force: InForce<'a>,
    pub(crate) out: &'a mut Vec<Reading>,
}

impl Sink<'_> {
    pub(crate) fn bound(&self, name: &str) -> u64 {
        self.in_force.bound(name)
    }

    pub(crate) fn bad(&mut self, object: Object, cause: String) {
        self.push(object, Verdict::Bad, cause, self.rule.next_step.to_owned());
    }

    pub(crate) fn bad_with(&mut self, object: Object, cause: String, next_step: String) {
        self.push(object, Verdict::Bad, cause, next_step);
    }

    pub(crate) fn between(&mut self, object: Object, cause: String) {
        self.push(
            object,
            Verdict::Between,
            cause,
            self.rule.next_step.to_owned(),
        );
    }

    pub(crate) fn push(
        &mut self,
        object: Object,
        verdict: Verdict,
        cause: String,
        next_step: String,
    ) {
        self.out.push(Reading {
            rule: self.rule,
            object,
            verdict,
            severity: self.in_force.severity(None),
            cause,
            next_step,
        });
    }
}

type Asked = fn(&Facts, Moment, &mut Sink<'_>);

/// The rules that need no memory.
const OF_THE_MOMENT: [(&Rule, Asked); 17] = [
    (&LUN_OFFLINE, offline_luns),
    (&LUN_COPY_MISSING, missing_copies),
    (&LUN_STALLED, stalled_luns),
    (&SCRUB_FINDINGS, damage),
    (&POOL_OFFLINE, offline_pools),
    (&POOL_FILLING, filling_pools),
    (&POOL_NEARLY_FULL, filling_pools),
    (&POOL_OVERCOMMITTED, overcommitted_pools),
    (&JOURNAL_OFFLINE, offline_journals),
    (&JOURNAL_FILLING, filling_journals),
    (&JOURNAL_LOST, lost_blocks),
    (&DESTAGE_ERROR, destage_errors),
    (&PORTAL_OFFLINE, offline_portals),
    (&NOT_SERVED, |facts, _, sink| {
        findings(&facts.unserved, sink);
    }),
    (&CERTIFICATE_ENDING, certificates),
    (&DEVICE_HEALTH, |facts, _, sink| {
        findings(&facts.disks, sink);
    }),
    (&RECORDS_DAMAGED, |facts, _, sink| {
        findings(&facts.records, sink);
    }),
];

/// What those rules say that are switched on.
pub(crate) fn of_the_moment(
    facts: &Facts,
    settings: &Settings,
    at: Moment,
    out: &mut Vec<Reading>,
) {
    for (rule, asked) in OF_THE_MOMENT {
        let in_force = settings.of(rule);
        if in_force.enabled() {
            asked(
                facts,
                at,
                &mut Sink {
                    rule,
                    in_force,
                    out,
                },
            );
        }
    }
}

/// Hosts with one path; `was_there`: whether one without any was there a short time ago.
pub(crate) fn single_paths(facts: &Facts, was_there: &dyn Fn(&str) -> bool, sink: &mut Sink<'_>) {
    for host in &facts.hosts {
        let object = Object::new("host", &host.name);
        if host.paths.is_empty() {
            // Nobody knows whether it is off or cut off: what was known of it stays for a while.
            if host.is_granted && was_there(&host.name) {
                let cause = format!("host {} has no session with this node", host.name);
                sink.between(object, cause);
            }
            continue;
        }
        if let Some((cause, next_step)) = single_path(host, facts) {
            sink.bad_with(object, cause, next_step);
        }
    }
}

/// The first of the host's initiators that has a single path to a target, in words.
fn single_path(host: &HostSeen, facts: &Facts) -> Option<(String, String)> {
    let by_use = paths(host.paths.iter().map(|path| Route {
        initiator: &path.initiator,
        target: &path.target,
        from: &path.from,
        portal: &path.portal,
    }));
    let initiators: BTreeSet<&str> = by_use.keys().map(|(initiator, _)| *initiator).collect();
    let mut single = by_use.iter().filter(|(_, places)| places.len() == 1);
    let ((initiator, target), places) = single.next()?;
    let more = single.count();
    let (from, portal) = *places.first()?;
    let who = if initiators.len() > 1 {
        format!("host {} ({initiator})", host.name)
    } else {
        format!("host {}", host.name)
    };
    let others = match more {
        0 => String::new(),
        more => format!(" (and {more} more like it)"),
    };
    let cause =
        format!("{who} has one path to target {target}: from {from} to portal {portal}{others}");
    let known = facts.targets.iter().find(|it| it.name == *target);
    let other_portals: Vec<&str> = known
        .map(|it| it.portals.iter().map(String::as_str))
        .into_iter()
        .flatten()
        .filter(|it| *it != portal)
        .collect();
    let next_step = if other_portals.is_empty() {
        format!(
            "target {target} can be reached at one portal only: add an address on another NIC to its portal group in node.toml, then \
             log in there too"
        )
    } else {
        format!(
            "log in at another portal of target {target} as well ({}), best from another NIC of the host; causeway doctor, run on the \
             host, says what is in the way",
            other_portals.join(", ")
        )
    };
    Some((cause, next_step))
}

fn offline_luns(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for lun in &facts.luns {
        if let Some(reason) = &lun.offline {
            let cause = format!("LUN {} is offline: {reason}", lun.name);
            sink.bad(Object::new("lun", &lun.name), cause);
        }
    }
}

fn missing_copies(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for lun in &facts.luns {
        if let Some(problem) = &lun.copies {
            let cause = format!("LUN {}: {problem}", lun.name);
            sink.bad(Object::new("lun", &lun.name), cause);
        }
    }
}

fn stalled_luns(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for lun in &facts.luns {
        if let Some(StallFacts {
            seconds,
            operations,
        }) = lun.stalled
        {
            let operations = counted(operations, "operation");
            let cause = format!(
                "LUN {}: its storage ({}) has answered nothing for {seconds} s, with {operations} under way",
                lun.name, lun.below
            );
            sink.bad(Object::new("lun", &lun.name), cause);
        }
    }
}

fn damage(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for lun in &facts.luns {
        let object = Object::new("lun", &lun.name);
        if !lun.damage.is_empty() {
            let cause = format!("LUN {}: {}", lun.name, lun.damage.join("; "));
            sink.bad(object, cause);
        } else if lun.offline.is_some() {
            let cause = format!(
                "LUN {} is offline, so that nobody knows how it is",
                lun.name
            );
            sink.between(object, cause);
        }
    }
}

fn offline_pools(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for pool in &facts.pools {
        if let Some(problem) = &pool.problem {
            let cause = format!("pool {}: {problem}", pool.name);
            sink.bad(Object::new("pool", &pool.name), cause);
        }
    }
}

/// So many percent of a pool are used, as df(1) counts; `None`: nobody knows now.
fn used_percent(pool: &PoolFacts) -> Option<u64> {
    let is_known = pool.problem.is_none() && pool.age_seconds.is_none();
    let all = pool.used.saturating_add(pool.available);
    let share = (u128::from(pool.used) * 100).checked_div(u128::from(all));
    share
        .filter(|_| is_known)
        .and_then(|it| u64::try_from(it).ok())
}

fn filling_pools(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    // LUNs of members have all of their space: nobody is refused anything.
    for pool in facts.pools.iter().filter(|it| it.members.is_empty()) {
        let object = Object::new("pool", &pool.name);
        let Some(used) = used_percent(pool) else {
            let cause = format!("pool {} does not say how full it is", pool.name);
            sink.between(object, cause);
            continue;
        };
        let soon = pool.full_in_seconds.map(|seconds| {
            let span = about(seconds);
            format!("; full in about {span} at the rate of the last hour")
        });
        let forecast = pool.forecast.as_ref();
        let dated = forecast.filter(|it| it.full_at.is_some());
        let forecast = dated.map(|it| format!("; {}", it.text)).or(soon);
        let free = rounded(pool.available);
        let forecast = forecast.unwrap_or_default();
        let cause = format!(
            "pool {} is {used} % full: {free} are left{forecast}",
            pool.name
        );
        if used > sink.bound("above_percent") {
            sink.bad(object, cause);
        } else if used >= sink.bound("below_percent") {
            sink.between(object, cause);
        }
    }
}

fn overcommitted_pools(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for pool in &facts.pools {
        let object = Object::new("pool", &pool.name);
        let over = pool.overcommitted_bytes;
        let bound = u128::from(pool.total) * u128::from(sink.bound("above_percent"));
        let cause = format!(
            "pool {}: its LUNs may still take {} more than is free: they were given {}, and {} of {} are free",
            pool.name,
            rounded(over),
            rounded(pool.provisioned_bytes),
            rounded(pool.available),
            rounded(pool.total)
        );
        let is_unknown = pool.age_seconds.is_some() || pool.total == 0 && pool.problem.is_some();
        if is_unknown {
            sink.between(object, cause);
        } else if pool.total > 0 && u128::from(over) * 100 > bound {
            // At 0 % any byte counts.
            sink.bad(object, cause);
        }
    }
}

/// The journals, each with its pool.
fn journals(facts: &Facts) -> impl Iterator<Item = (&PoolFacts, &JournalFacts)> {
    let pools = facts.pools.iter();
    pools.filter_map(|pool| Some((pool, pool.journal.as_ref()?)))
}

fn offline_journals(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for (pool, journal) in journals(facts) {
        if journal.state == JournalState::Open {
            continue;
        }
        let reason = journal.problem.as_deref().unwrap_or("no reason is known");
        let cause = format!(
            "the journal {} of pool {} is {}: {reason}",
            journal.path, pool.name, journal.state
        );
        let object = Object::new("pool", &pool.name);
        match (journal.state, journal.full) {
            (JournalState::Failed, true) => {
                let next_step =
                    "make room where the journal lies: it is opened anew by itself then";
                sink.bad_with(object, cause, next_step.to_owned());
            }
            (JournalState::Failed | JournalState::Missing | JournalState::Open, _) => {
                sink.bad(object, cause);
            }
        }
    }
}

fn filling_journals(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for (pool, journal) in journals(facts) {
        let object = Object::new("pool", &pool.name);
        let percent = journal.fill_permille() / 10;
        let cause = format!(
            "the journal of pool {} is {percent} % full: {} of {}; {}/s are destaged",
            pool.name,
            rounded(journal.used_bytes),
            rounded(journal.size_bytes),
            rounded(journal.destaged_bytes_per_second)
        );
        if journal.state != JournalState::Open {
            sink.between(object, cause);
        } else if percent > sink.bound("above_percent") {
            sink.bad(object, cause);
        } else if percent >= sink.bound("below_percent") {
            sink.between(object, cause);
        }
    }
}

fn lost_blocks(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for (pool, journal) in journals(facts) {
        let object = Object::new("pool", &pool.name);
        if let Some(first) = journal.lost.first() {
            let blocks: u64 = journal.lost_blocks.values().sum();
            let cause = format!(
                "{blocks} acknowledged blocks are damaged in the journal {} of pool {}, the first at {} of LUN {}",
                journal.path, pool.name, first.lba, first.lun
            );
            sink.bad(object, cause);
        } else if journal.state != JournalState::Open {
            let cause = format!("the journal of pool {} cannot be read", pool.name);
            sink.between(object, cause);
        }
    }
}

fn destage_errors(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for (pool, journal) in journals(facts) {
        for error in &journal.destage_errors {
            let cause = format!(
                "what the journal of pool {} holds of LUN {} cannot be destaged: {}",
                pool.name, error.lun, error.reason
            );
            sink.bad(Object::new("lun", &error.lun), cause);
        }
    }
}

fn offline_portals(facts: &Facts, _: Moment, sink: &mut Sink<'_>) {
    for portal in &facts.portals {
        if let Some(problem) = &portal.problem {
            let (address, group) = (&portal.address, &portal.group);
            let cause = format!("portal {address} of group {group} does not listen: {problem}");
            sink.bad(Object::new("portal", address), cause);
        }
    }
}

fn certificates(facts: &Facts, at: Moment, sink: &mut Sink<'_>) {
    for certificate in &facts.certificates {
        let left = certificate.at.0.saturating_sub(at.wall.0) / 1_000_000_000;
        if left >= sink.bound("days") * 86_400 {
            continue;
        }
        let end = rfc3339(certificate.at);
        let when = if left == 0 {
            format!("has ended on {end}")
        } else {
            format!("ends on {end}, in {}", about(left))
        };
        let cause = format!("the certificate {} {when}", certificate.place);
        let object = Object::new("certificate", &certificate.name);
        sink.bad_with(object, cause, certificate.next_step.clone());
    }
}

/// What others found, put together by object: the worst of each counts.
fn findings(all: &[Finding], sink: &mut Sink<'_>) {
    let mut by_object: BTreeMap<&Object, Vec<&Finding>> = BTreeMap::new();
    for finding in all {
        by_object.entry(&finding.object).or_default().push(finding);
    }
    for (object, mut found) in by_object {
        found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let Some(worst) = found.first() else { continue };
        let causes: Vec<&str> = found.iter().map(|it| it.cause.as_str()).collect();
        sink.out.push(Reading {
            rule: sink.rule,
            object: object.clone(),
            verdict: Verdict::Bad,
            severity: sink.in_force.severity(Some(worst.severity)),
            cause: causes.join("; "),
            next_step: worst.next_step.clone(),
        });
    }
}

/// A path, in words.
pub(crate) fn words(path: &Path) -> String {
    let Path {
        from,
        portal,
        target,
        ..
    } = path;
    format!("from {from} to portal {portal}, target {target}")
}
