//! From how a node is to what happened in it: pure.
//!
//! Two moments are compared. So each change is reported within the time between two samples, and
//! one that was undone in that time is not; sessions and scrubs are, as their sources list them.

use crate::journal_events::JournalEvents;
use crate::pairs::Older;
use crate::{copy_events, disk_events};
use controller::{ChangedObjects, JobChange, JobWhat, Moment};
use events::{Code, Happened, Object};
use manifest::activity::SessionActivity;
use manifest::facts::{LunState, PoolFacts, PoolState, PortalFacts, RefusalFacts, StallFacts};
use manifest::journal::JournalState;
use manifest::pulse::{EndedSession, LunPulse};
use manifest::redundancy::{Route, paths};
use manifest::scrub::{ScrubFacts, ScrubState};
use std::collections::{BTreeMap, BTreeSet};

/// A session that was reported as open, for when it is reported as over.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Open {
    host: String,
    initiator: String,
    target: String,
    from: String,
    /// Empty where nobody knows: it was over before it was seen.
    portal: String,
}

/// The sessions that were reported as open. Discoveries are none: hosts make them all the time.
#[derive(Default)]
pub struct Observed {
    open: BTreeMap<u64, Open>,
    journals: JournalEvents,
}

impl Observed {
    /// What happened until `now`; `before`: the moment before, none at the start.
    pub fn take(&mut self, before: Option<&Moment>, now: &Moment) -> Vec<Happened> {
        let mut happened = Vec::new();
        let since = before.map_or(now.generation, |before| before.generation);
        // Several may have been made in one second.
        let made = (since.saturating_add(1)..=now.generation).rev();
        let mut made: Vec<u64> = made.take(GENERATIONS_MAX).collect();
        made.reverse();
        let node = &now.activity.node;
        happened.extend(
            made.into_iter()
                .map(|it| of_generation(node, it, now.changed.get(&it))),
        );
        of_luns(before, now, &mut happened);
        for pool in &now.pools {
            let pools = before.iter().flat_map(|before| &before.pools);
            let older = pools.into_iter().find(|older| older.name == pool.name);
            of_pool(older, pool, &mut happened);
            of_journal(older, pool, &mut happened);
        }
        self.journals.take(&now.pools, &mut happened);
        if let Some(before) = before {
            disk_events::between(&before.disks, &now.disks, &mut happened);
        }
        for portal in &now.portals {
            let portals = before.iter().flat_map(|before| &before.portals);
            let same = |older: &&PortalFacts| {
                (&older.group, &older.address) == (&portal.group, &portal.address)
            };
            happened.extend(of_portal(portals.into_iter().find(same), portal));
        }
        let known = before.map_or(&[][..], |before| &before.refusals);
        // Those of before the start are none of this daemon's.
        let refused = now.refusals.iter().rev();
        happened.extend(refused.filter_map(|refusal| of_refusal(refusal, known)));
        happened.extend(now.jobs.iter().map(of_job));
        self.sessions(now, &mut happened);
        happened
    }

    fn sessions(&mut self, now: &Moment, happened: &mut Vec<Happened>) {
        let before = counted(&self.open);
        let mut unmeant = BTreeSet::new();
        let over: BTreeSet<u64> = now.ended.sessions.iter().map(|it| it.id).collect();
        for ended in &now.ended.sessions {
            let Some(session) = Open::that_ended(ended) else {
                continue;
            };
            let session = self.open.remove(&ended.id).unwrap_or_else(|| {
                happened.push(session.opened(ended.id));
                session
            });
            happened.push(session.closed(ended.id, &ended.reason));
            if ended.reason != LOGOUT {
                unmeant.insert(session.pair());
            }
        }
        let there: BTreeMap<u64, Open> = now
            .activity
            .sessions
            .iter()
            // One that ended since the list was made is reported already.
            .filter(|session| !over.contains(&session.id))
            .filter_map(|session| Some((session.id, Open::of(session)?)))
            .collect();
        // Of these nobody knows why: too many ended at once.
        for (id, session) in self.open.iter().filter(|(id, _)| !there.contains_key(id)) {
            happened.push(session.closed(*id, ""));
            unmeant.insert(session.pair());
        }
        let new = there.iter().filter(|(id, _)| !self.open.contains_key(id));
        happened.extend(new.map(|(id, session)| session.opened(*id)));
        self.open = there;
        of_paths(&before, &counted(&self.open), &unmeant, happened);
    }
}

/// Why a session ended that its host wanted to end.
pub(crate) const LOGOUT: &str = "logout";

impl Open {
    fn of(session: &SessionActivity) -> Option<Self> {
        Some(Self {
            host: session.host.clone(),
            initiator: session.initiator.clone(),
            target: session.target.clone()?,
            from: session.from.clone(),
            portal: session.portal.clone(),
        })
    }

    fn that_ended(session: &EndedSession) -> Option<Self> {
        Some(Self {
            host: session.host.clone(),
            initiator: session.initiator.clone(),
            target: session.target.clone()?,
            from: session.from.clone(),
            portal: String::new(),
        })
    }

    fn pair(&self) -> Pair {
        Pair {
            host: self.host.clone(),
            initiator: self.initiator.clone(),
            target: self.target.clone(),
        }
    }

    fn opened(&self, id: u64) -> Happened {
        self.event(Code::SessionOpened, id, "logged in")
    }

    fn closed(&self, id: u64, reason: &str) -> Happened {
        if reason.is_empty() {
            return self.event(Code::SessionClosed, id, "is gone");
        }
        let closed = self.event(Code::SessionClosed, id, &format!("ended: {reason}"));
        closed.with("reason", reason)
    }

    fn event(&self, code: Code, id: u64, what: &str) -> Happened {
        let Self {
            host,
            initiator,
            target,
            from,
            portal,
        } = self;
        // A session may outlive its host's place among the objects.
        let (kind, name) = if host.is_empty() {
            ("initiator", initiator)
        } else {
            ("host", host)
        };
        let message = format!("session {id} of {kind} {name} with target {target} {what} ({from})");
        let event = Happened::new(code, Object::new(kind, name), message)
            .with("session", id)
            .with("initiator", initiator.as_str())
            .with("from", from.as_str())
            .with("target", target.as_str());
        if portal.is_empty() {
            return event;
        }
        event.with("portal", portal.as_str())
    }
}

/// Of what paths are counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pair {
    host: String,
    initiator: String,
    target: String,
}

/// How many paths there are.
type Counted = BTreeMap<Pair, usize>;

fn counted(open: &BTreeMap<u64, Open>) -> Counted {
    let routes = open.values().map(|session| Route {
        initiator: &session.initiator,
        target: &session.target,
        from: &session.from,
        portal: &session.portal,
    });
    let paths = paths(routes);
    let count = |session: &Open| {
        let of_pair = paths.get(&(&*session.initiator, &*session.target));
        (session.pair(), of_pair.map_or(0, BTreeSet::len))
    };
    open.values().map(count).collect()
}

/// A host has fewer paths to a target than before, and did not mean to; or has more.
fn of_paths(
    before: &Counted,
    now: &Counted,
    unmeant: &BTreeSet<Pair>,
    happened: &mut Vec<Happened>,
) {
    let all: BTreeSet<&Pair> = before.keys().chain(now.keys()).collect();
    for pair in all {
        let count = |paths: &Counted| paths.get(pair).copied().unwrap_or(0);
        let (was, is) = (count(before), count(now));
        let Pair {
            host,
            initiator,
            target,
        } = pair;
        let (code, message) = if is < was && unmeant.contains(pair) {
            let message = match is {
                0 => format!("host {host} has lost its last path to target {target}"),
                1 => format!("host {host} has a single path to target {target}, and had {was}"),
                _ => format!("host {host} has {is} paths to target {target}, and had {was}"),
            };
            (Code::PathLost, message)
        } else if is > was && is > 1 {
            let message = format!("host {host} has {is} paths to target {target}");
            (Code::PathAdded, message)
        } else {
            continue;
        };
        let event = Happened::new(code, Object::new("host", host), message);
        let event = event.with("initiator", initiator.as_str());
        let event = event.with("target", target.as_str());
        happened.push(event.with("paths", is).with("before", was));
    }
}

fn of_portal(before: Option<&PortalFacts>, now: &PortalFacts) -> Option<Happened> {
    let had = before.is_some_and(|before| before.problem.is_some());
    let PortalFacts { group, address, .. } = now;
    let object = Object::new("portal", address);
    let event = match &now.problem {
        Some(problem) if !had => {
            let message = format!("portal {address} does not listen: {problem}");
            Happened::new(Code::PortalSilent, object, message).with("reason", problem.as_str())
        }
        None if had => {
            let message = format!("portal {address} listens");
            Happened::new(Code::PortalListens, object, message)
        }
        Some(_) | None => return None,
    };
    Some(event.with("group", group.as_str()))
}

fn of_luns(before: Option<&Moment>, now: &Moment, happened: &mut Vec<Happened>) {
    let mut older = Older::new(before.map_or(&[], |it| &it.luns));
    for lun in &now.luns {
        let older = older.of(lun, |_| {});
        of_lun(older, lun, before.is_none(), happened);
        copy_events::between(older, lun, happened);
    }
}

/// Of so many generations at most a moment reports: the newest.
const GENERATIONS_MAX: usize = 100;

fn of_generation(node: &str, generation: u64, changed: Option<&ChangedObjects>) -> Happened {
    let named = changed.map(ToString::to_string).unwrap_or_default();
    let what = if named.is_empty() { "objects" } else { &named };
    let message = format!("changed: {what} (generation {generation})");
    let event = Happened::new(Code::ConfigApplied, Object::new("node", node), message);
    let event = event.with("generation", generation);
    if named.is_empty() {
        event
    } else {
        event.with("objects", named)
    }
}

fn of_lun(before: Option<&LunPulse>, now: &LunPulse, is_first: bool, happened: &mut Vec<Happened>) {
    let name: &str = &now.name;
    let object = || Object::new("lun", name);
    let was = before.map(|before| &before.state);
    match (&now.state, was) {
        // After a start all others are online.
        (LunState::Online, None) if is_first => {}
        (LunState::Online, None | Some(LunState::Offline(_))) => {
            let message = format!("LUN {name} is in service");
            happened.push(Happened::new(Code::LunOnline, object(), message));
        }
        (LunState::Offline(reason), None | Some(LunState::Online)) => {
            let message = format!("LUN {name} is out of service: {reason}");
            let offline = Happened::new(Code::LunOffline, object(), message);
            happened.push(offline.with("reason", reason.as_str()));
        }
        (LunState::Online, Some(LunState::Online))
        | (LunState::Offline(_), Some(LunState::Offline(_))) => {}
    }
    let stalled = before.and_then(|before| before.stalled);
    match (stalled, now.stalled) {
        (
            None,
            Some(StallFacts {
                seconds,
                operations,
            }),
        ) => {
            let message = format!("the storage of LUN {name} has answered nothing for {seconds} s");
            let stalls = Happened::new(Code::LunStalled, object(), message);
            happened.push(
                stalls
                    .with("seconds", seconds)
                    .with("operations", operations),
            );
        }
        (Some(_), None) => {
            let message = format!("the storage of LUN {name} answers again");
            happened.push(Happened::new(Code::LunAnswers, object(), message));
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
    if let Some(scrub) = &now.scrub {
        let before = before.and_then(|before| before.scrub.as_deref());
        of_scrub(name, before, scrub, is_first, happened);
    }
}

/// All that a scrub found.
fn findings(scrub: &ScrubFacts) -> u64 {
    let journal = scrub
        .journal
        .as_ref()
        .map_or(0, manifest::scrub::JournalScrub::damage);
    let metadata = u64::try_from(scrub.metadata.len()).unwrap_or(u64::MAX);
    scrub.unreadable_blocks + scrub.mismatched_blocks + scrub.map_pages + journal + metadata
}

fn of_scrub(
    name: &str,
    before: Option<&ScrubFacts>,
    now: &ScrubFacts,
    is_first: bool,
    happened: &mut Vec<Happened>,
) {
    let object = || Object::new("lun", name);
    let same = before.filter(|before| before.started == now.started);
    let ran = same.is_some_and(|before| before.state == ScrubState::Running);
    let runs = now.state == ScrubState::Running;
    // What was over before the start was reported then.
    if is_first && !runs {
        return;
    }
    if !ran && (runs || same.is_none()) {
        let message = format!("the scrub of LUN {name} runs");
        happened.push(Happened::new(Code::ScrubBegan, object(), message));
    }
    let found = findings(now);
    if found > same.map_or(0, findings) {
        let message = format!("the scrub of LUN {name} found damage in {found} places");
        happened.push(Happened::new(Code::ScrubFound, object(), message).with("findings", found));
    }
    if !runs && (ran || same.is_none()) {
        let (state, how) = match now.state {
            ScrubState::Finished => ("finished", "has read everything"),
            ScrubState::GivenUp => ("given_up", "was given up"),
            ScrubState::Stopped | ScrubState::Running => ("stopped", "was stopped"),
        };
        let message = format!("the scrub of LUN {name} {how}");
        let ended = Happened::new(Code::ScrubEnded, object(), message).with("state", state);
        happened.push(match &now.reason {
            Some(reason) => ended.with("reason", reason.as_str()),
            None => ended,
        });
    }
}

fn is_away(state: PoolState) -> bool {
    match state {
        PoolState::Ok | PoolState::Low | PoolState::Full => false,
        PoolState::Missing | PoolState::Silent | PoolState::Unusable => true,
    }
}

fn of_pool(before: Option<&PoolFacts>, now: &PoolFacts, happened: &mut Vec<Happened>) {
    let was = before.map_or(PoolState::Ok, |before| before.state);
    if was == now.state {
        return;
    }
    let name = &now.name;
    let new = |code, message: String| Happened::new(code, Object::new("pool", name), message);
    if is_away(now.state) {
        if !is_away(was) {
            let reason = now.problem.as_deref().unwrap_or("it does not answer");
            let away = new(
                Code::PoolAway,
                format!("pool {name} cannot be used: {reason}"),
            );
            happened.push(away.with("reason", reason));
        }
        return;
    }
    if is_away(was) {
        happened.push(new(
            Code::PoolBack,
            format!("pool {name} can be used again"),
        ));
    }
    let (code, how) = match now.state {
        PoolState::Full => (
            Code::PoolFull,
            "is full: less than a hundredth of it is free",
        ),
        PoolState::Low => (Code::PoolLow, "has less than a tenth free"),
        PoolState::Ok if !is_away(was) => (Code::PoolHasRoom, "has room again"),
        PoolState::Ok | PoolState::Missing | PoolState::Silent | PoolState::Unusable => return,
    };
    let room = new(code, format!("pool {name} {how}"));
    let room = room.with("available_bytes", now.available);
    happened.push(room.with("size_bytes", now.total));
}

fn of_journal(before: Option<&PoolFacts>, now: &PoolFacts, happened: &mut Vec<Happened>) {
    let Some(journal) = &now.journal else {
        return;
    };
    let before = before.and_then(|before| before.journal.as_ref());
    let was = before.map_or(JournalState::Open, |before| before.state);
    if was == journal.state {
        return;
    }
    let (name, state) = (&now.name, journal.state);
    let object = Object::new("pool", name);
    if state == JournalState::Open {
        let message = format!("the journal of pool {name} takes writes");
        happened.push(Happened::new(Code::JournalWell, object, message));
        return;
    }
    let reason = journal.problem.as_deref().unwrap_or("no reason is known");
    let message = format!("the journal of pool {name} is {state}: {reason}");
    let failing = Happened::new(Code::JournalFailing, object, message);
    happened.push(failing.with("state", state.name()).with("reason", reason));
}

fn of_refusal(refusal: &RefusalFacts, known: &[RefusalFacts]) -> Option<Happened> {
    let RefusalFacts {
        initiator,
        from,
        target,
        reason,
        ..
    } = refusal;
    let same = known.iter().find(|known| {
        (
            &known.initiator,
            &known.from,
            &known.target,
            known.code,
            &known.reason,
        ) == (initiator, from, target, refusal.code, reason)
    });
    if same.is_some_and(|known| known.times >= refusal.times) {
        return None;
    }
    let who = if initiator.is_empty() {
        from
    } else {
        initiator
    };
    let message = format!("a login of {who} from {from} was refused: {reason}");
    let refused = Happened::new(Code::LoginRefused, Object::new("initiator", who), message)
        .with("reason", refusal.code.to_string())
        .with("from", from.as_str());
    Some(if target.is_empty() {
        refused
    } else {
        refused.with("target", target.as_str())
    })
}

fn of_job(change: &JobChange) -> Happened {
    let JobChange {
        id, kind, object, ..
    } = change;
    let (code, what) = match change.what {
        JobWhat::Began => (Code::JobBegan, "begins"),
        JobWhat::Finished => (Code::JobFinished, "is done"),
        JobWhat::Cancelled => (Code::JobCancelled, "was cancelled"),
        JobWhat::Failed => (Code::JobFailed, "failed"),
    };
    let why = change.reason.as_deref().map(|why| format!(": {why}"));
    let message = format!(
        "job {id} ({kind} of {object}) {what}{}",
        why.unwrap_or_default()
    );
    let happened = Happened::new(code, Object::new("job", &id.to_string()), message)
        .with("kind", kind.as_str())
        .with("of", object.as_str())
        .with("by", change.by.as_str());
    match &change.reason {
        Some(reason) => happened.with("reason", reason.as_str()),
        None => happened,
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;
    use manifest::journal::JournalFacts;
    use manifest::latency::Latency;
    use serde_json::{Value, json};

    fn pool(state: &str, journal: Option<JournalState>) -> PoolFacts {
        let mut pool = fixture::pool("p");
        pool.state = serde_json::from_value(json!(state)).unwrap();
        if state != "ok" {
            pool.problem = Some("its file system is not mounted".to_owned());
        }
        pool.journal = journal.map(|state| JournalFacts {
            state,
            ..JournalFacts::missing("/j".to_owned(), "it is not there".to_owned())
        });
        pool
    }

    fn moment(luns: &[(&str, LunState, Option<ScrubFacts>)], pools: Vec<PoolFacts>) -> Moment {
        let luns = luns.iter().cloned().map(|(name, state, scrub)| LunPulse {
            state,
            scrub: scrub.map(Box::new),
            ..fixture::lun(name)
        });
        Moment {
            pools,
            ..fixture::moment(luns.collect())
        }
    }

    /// One moment after the other.
    #[derive(Default)]
    struct Run {
        observed: Observed,
        before: Option<Moment>,
    }

    impl Run {
        fn take(&mut self, now: Moment) -> Vec<Happened> {
            let happened = self.observed.take(self.before.as_ref(), &now);
            self.before = Some(now);
            happened
        }
    }

    fn codes(happened: &[Happened]) -> Vec<&'static str> {
        happened
            .iter()
            .map(|happened| happened.code.entry().name)
            .collect()
    }

    #[test]
    fn a_lun_is_reported_when_it_goes_and_when_it_comes() {
        let offline = || LunState::Offline("its device is missing".to_owned());
        let mut run = Run::default();
        let mut now = |a: LunState, others: &[&str]| {
            let mut luns = vec![("a", a, None)];
            luns.extend(others.iter().map(|name| (*name, LunState::Online, None)));
            codes(&run.take(moment(&luns, Vec::new())))
        };
        assert_eq!(
            now(LunState::Online, &[]),
            [""; 0],
            "after a start all are online"
        );
        assert_eq!(now(offline(), &[]), ["lun_offline"]);
        assert_eq!(now(offline(), &["b"]), ["lun_online"], "a new one");
        assert_eq!(now(LunState::Online, &[]), ["lun_online"]);
        let mut run = Run::default();
        let start = moment(&[("a", offline(), None)], Vec::new());
        assert_eq!(codes(&run.take(start)), ["lun_offline"], "at a start, too");
    }

    #[test]
    fn each_generation_is_reported_also_where_several_are_made_in_a_second() {
        let mut run = Run::default();
        let mut now = |generation: u64| {
            let happened = run.take(Moment {
                generation,
                ..moment(&[], Vec::new())
            });
            let numbers = happened.iter().map(|it| it.fields["generation"].as_u64());
            numbers.flatten().collect::<Vec<u64>>()
        };
        assert_eq!(now(7), [0; 0], "what was there at the start");
        assert_eq!(now(7), [0; 0]);
        assert_eq!(now(8), [8]);
        assert_eq!(now(11), [9, 10, 11]);
        assert_eq!(now(1_000).len(), GENERATIONS_MAX);
        let mut named = moment(&[], Vec::new());
        let lun = |number: u32| format!("LUN vm{number}");
        let changed = ChangedObjects::of((1..=5).map(lun));
        (named.generation, named.changed) = (1_001, [(1_001, changed)].into());
        let happened = run.take(named);
        let wanted = "changed: LUN vm1, LUN vm2, LUN vm3 and 2 more (generation 1001)";
        assert_eq!(happened[0].message, wanted);
        assert_eq!(
            happened[0].fields["objects"],
            "LUN vm1, LUN vm2, LUN vm3 and 2 more"
        );
    }

    #[test]
    fn storage_that_answers_nothing_is_reported_when_it_stops_and_when_it_answers() {
        let mut run = Run::default();
        let mut now = |seconds: Option<u64>| {
            let mut moment = moment(&[("a", LunState::Online, None)], Vec::new());
            moment.luns[0].stalled = seconds.map(|seconds| StallFacts {
                seconds,
                operations: 2,
            });
            run.take(moment)
        };
        assert_eq!(codes(&now(None)), [""; 0]);
        let stalls = now(Some(6));
        assert_eq!(codes(&stalls), ["lun_stalled"]);
        assert_eq!(
            Value::from(stalls[0].fields.clone()),
            json!({ "seconds": 6, "operations": 2 })
        );
        assert_eq!(codes(&now(Some(7))), [""; 0], "once");
        assert_eq!(codes(&now(None)), ["lun_answers"]);
    }

    #[test]
    fn a_scrub_is_reported_from_its_beginning_to_its_end_with_what_it_finds() {
        let mut run = Run::default();
        let mut now = |scrub: Option<ScrubFacts>| {
            codes(&run.take(moment(&[("a", LunState::Online, scrub)], Vec::new())))
        };
        let scrub = |started: &str, state: ScrubState, bad: u64| ScrubFacts {
            state,
            unreadable_blocks: bad,
            ..ScrubFacts::begun(started.to_owned(), 100)
        };
        assert_eq!(now(None), [""; 0]);
        assert_eq!(
            now(Some(scrub("1", ScrubState::Running, 0))),
            ["scrub_began"]
        );
        assert_eq!(
            now(Some(scrub("1", ScrubState::Running, 2))),
            ["scrub_found"]
        );
        assert_eq!(now(Some(scrub("1", ScrubState::Running, 2))), [""; 0]);
        assert_eq!(
            now(Some(scrub("1", ScrubState::Stopped, 2))),
            ["scrub_ended"]
        );
        assert_eq!(
            now(Some(scrub("1", ScrubState::Running, 2))),
            ["scrub_began"],
            "it goes on"
        );
        assert_eq!(
            now(Some(scrub("1", ScrubState::Finished, 3))),
            ["scrub_found", "scrub_ended"]
        );
        // One that was over before it was seen.
        let short = now(Some(scrub("2", ScrubState::Finished, 0)));
        assert_eq!(short, ["scrub_began", "scrub_ended"]);
    }

    #[test]
    fn pools_and_journals_are_reported_when_they_change() {
        let mut run = Run::default();
        let mut now = |state: &str, journal: Option<JournalState>| {
            codes(&run.take(moment(&[], vec![pool(state, journal)])))
        };
        assert_eq!(now("ok", Some(JournalState::Open)), [""; 0]);
        assert_eq!(now("low", Some(JournalState::Open)), ["pool_low"]);
        assert_eq!(
            now("full", Some(JournalState::Failed)),
            ["pool_full", "journal_failing"]
        );
        assert_eq!(
            now("missing", Some(JournalState::Missing)),
            ["pool_away", "journal_failing"]
        );
        assert_eq!(now("silent", Some(JournalState::Missing)), [""; 0]);
        assert_eq!(
            now("full", Some(JournalState::Open)),
            ["pool_back", "pool_full", "journal_well"]
        );
        assert_eq!(now("ok", None), ["pool_has_room"]);
        assert_eq!(now("unusable", None), ["pool_away"]);
        assert_eq!(now("ok", None), ["pool_back"]);
    }

    #[test]
    fn jobs_that_begin_and_end_are_reported_with_their_reasons() {
        let change = |what, reason: Option<&str>| JobChange {
            what,
            id: 7,
            kind: "lun_grow".to_owned(),
            object: "vm01".to_owned(),
            by: "eve".to_owned(),
            reason: reason.map(str::to_owned),
        };
        let jobs = vec![
            change(JobWhat::Began, None),
            change(JobWhat::Failed, Some("no space")),
            change(JobWhat::Cancelled, None),
            change(JobWhat::Finished, None),
        ];
        let happened = Run::default().take(Moment {
            jobs,
            ..moment(&[], Vec::new())
        });
        let expected = ["job_began", "job_failed", "job_cancelled", "job_finished"];
        assert_eq!(codes(&happened), expected);
        let failed = &happened[1];
        assert_eq!(failed.object, Object::new("job", "7"));
        assert_eq!(failed.message, "job 7 (lun_grow of vm01) failed: no space");
        let fields = json!({ "kind": "lun_grow", "of": "vm01", "by": "eve", "reason": "no space" });
        assert_eq!(Value::from(failed.fields.clone()), fields);
    }

    #[test]
    fn a_refused_login_is_reported_each_time() {
        let refusal = |times: u64| -> RefusalFacts {
            let facts = json!({
                "at": "2026-01-01T00:00:00.000Z", "times": times, "initiator": "iqn.1998-01.com.example:h",
                "from": "10.0.0.9", "target": "t", "portal": "p", "code": "CWY2003", "status": "0202", "reason": "no grant",
            });
            serde_json::from_value(facts).unwrap()
        };
        let mut run = Run::default();
        let mut now = |refusals: Vec<RefusalFacts>| {
            run.take(Moment {
                refusals,
                ..moment(&[], Vec::new())
            })
        };
        assert_eq!(codes(&now(Vec::new())), [""; 0]);
        let first = now(vec![refusal(1)]);
        assert_eq!(
            first[0].object,
            Object::new("initiator", "iqn.1998-01.com.example:h")
        );
        assert_eq!(first[0].fields["target"], Value::from("t"));
        assert_eq!(codes(&now(vec![refusal(1)])), [""; 0]);
        assert_eq!(codes(&now(vec![refusal(3)])), ["login_refused"]);
    }

    fn session(id: u64, target: Option<&str>) -> SessionActivity {
        SessionActivity {
            id,
            host: "esx01".to_owned(),
            initiator: "iqn.1998-01.com.example:h".to_owned(),
            target: target.map(str::to_owned),
            from: format!("192.0.2.{id}:40000"),
            portal: "192.0.2.200:3260".to_owned(),
            core: 0,
            load_permille: 0,
            in_flight: 0,
            commands: 0,
            bytes_in: 0,
            bytes_out: 0,
            latency: Latency::default(),
        }
    }

    fn over(id: u64, reason: &str) -> EndedSession {
        let session = session(id, Some("t"));
        EndedSession {
            id,
            host: session.host,
            initiator: session.initiator,
            target: session.target,
            from: session.from,
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn sessions_and_paths_are_reported_however_short_they_are() {
        let mut run = Run::default();
        let mut now = |there: &[u64], ended: &[(u64, &str)]| {
            let mut moment = moment(&[], Vec::new());
            let sessions = there.iter().map(|id| session(*id, Some("t")));
            moment.activity.sessions = sessions.chain([session(99, None)]).collect();
            let ended = ended.iter().map(|(id, reason)| over(*id, reason));
            moment.ended.sessions = ended.collect();
            codes(&run.take(moment))
        };
        assert_eq!(now(&[], &[]), [""; 0], "a discovery is no event");
        assert_eq!(now(&[1], &[]), ["session_opened"]);
        assert_eq!(now(&[1, 2], &[]), ["session_opened", "path_added"]);
        assert_eq!(now(&[1, 2], &[]), [""; 0]);
        // It ended when the list had been made.
        let cut = now(&[1, 2], &[(2, "the connection failed: reset")]);
        assert_eq!(cut, ["session_closed", "path_lost"]);
        assert_eq!(now(&[1], &[]), [""; 0], "reported once");
        // One that came and went between two samples, and one that took another's place.
        let short = now(&[1], &[(3, "logout")]);
        assert_eq!(short, ["session_opened", "session_closed"]);
        let again = now(&[4], &[(1, "the same initiator port logged in again")]);
        assert_eq!(
            again,
            ["session_closed", "session_opened"],
            "no path is lost"
        );
        assert_eq!(
            now(&[], &[(4, "logout")]),
            ["session_closed"],
            "as its host meant"
        );
        assert_eq!(now(&[5], &[]), ["session_opened"]);
        assert_eq!(
            now(&[], &[]),
            ["session_closed", "path_lost"],
            "although nobody says why"
        );
    }

    #[test]
    fn a_session_that_ends_says_which_way_it_went_where_that_was_seen() {
        let mut run = Run::default();
        let mut now = |there: &[u64], ended: &[u64]| {
            let mut moment = moment(&[], Vec::new());
            let sessions = there.iter().map(|id| session(*id, Some("t")));
            moment.activity.sessions = sessions.collect();
            moment.ended.sessions = ended.iter().map(|id| over(*id, "reset")).collect();
            run.take(moment)
        };
        let portal = Some(Value::from("192.0.2.200:3260"));
        assert_eq!(now(&[1], &[])[0].fields.get("portal").cloned(), portal);
        assert_eq!(now(&[], &[1])[0].fields.get("portal").cloned(), portal);
        let short = now(&[], &[2]);
        assert_eq!(codes(&short), ["session_opened", "session_closed"]);
        assert_eq!(short[1].fields.get("portal"), None, "nobody saw it");
    }

    #[test]
    fn a_second_session_between_the_same_addresses_is_no_second_path() {
        let mut run = Run::default();
        let mut now = |there: &[(u64, &str, &str)]| {
            let mut moment = moment(&[], Vec::new());
            let sessions = there.iter().map(|(id, from, initiator)| SessionActivity {
                from: (*from).to_owned(),
                initiator: (*initiator).to_owned(),
                ..session(*id, Some("t"))
            });
            moment.activity.sessions = sessions.collect();
            codes(&run.take(moment))
        };
        let one = (1, "192.0.2.1:1", "i");
        assert_eq!(now(&[one]), ["session_opened"]);
        let twice = (2, "192.0.2.1:2", "i");
        assert_eq!(now(&[one, twice]), ["session_opened"], "the same path");
        assert_eq!(now(&[one]), ["session_closed"], "and none is lost");
        let other_machine = (3, "192.0.2.3:1", "j");
        assert_eq!(now(&[one, other_machine]), ["session_opened"]);
        let path = (4, "192.0.2.4:1", "i");
        let added = now(&[one, other_machine, path]);
        assert_eq!(added, ["session_opened", "path_added"]);
        let lost = now(&[one, other_machine]);
        assert_eq!(lost, ["session_closed", "path_lost"]);
    }

    #[test]
    fn a_portal_is_reported_when_it_does_not_listen_and_when_it_does() {
        let mut run = Run::default();
        let mut now = |problem: Option<&str>| {
            let mut moment = moment(&[], Vec::new());
            moment.portals.push(PortalFacts {
                group: "default".to_owned(),
                tag: 1,
                address: "192.0.2.9:3260".to_owned(),
                interface: None,
                problem: problem.map(str::to_owned),
            });
            codes(&run.take(moment))
        };
        assert_eq!(now(None), [""; 0]);
        assert_eq!(now(Some("no such address")), ["portal_silent"]);
        assert_eq!(now(Some("still not")), [""; 0]);
        assert_eq!(now(None), ["portal_listens"]);
    }
}
