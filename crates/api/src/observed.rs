//! From how a node is to what happened in it: pure.
//!
//! Two moments are compared. So each change is reported within the time between two samples,
//! whatever caused it, and one that was undone in that time is not.

use controller::Sample;
use events::{Code, Happened, Object};
use manifest::activity::{ActivityView, SessionActivity};
use manifest::facts::{LunFacts, LunState, PoolFacts, PoolState, RefusalFacts};
use manifest::journal::JournalState;
use manifest::scrub::{ScrubFacts, ScrubState};
use std::collections::BTreeMap;

/// What is compared of the objects.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) node: String,
    pub(crate) generation: u64,
    pub(crate) luns: BTreeMap<String, LunSeen>,
    pub(crate) pools: Vec<PoolFacts>,
    pub(crate) refusals: Vec<RefusalFacts>,
}

/// What is compared of a LUN.
#[derive(Clone, Debug)]
pub(crate) struct LunSeen {
    state: LunState,
    scrub: Option<ScrubFacts>,
}

impl LunSeen {
    pub(crate) fn of(facts: &LunFacts) -> Self {
        Self {
            state: facts.state.clone(),
            scrub: facts.scrub.clone(),
        }
    }
}

impl Seen {
    pub(crate) fn of(node: &str, sample: &Sample, refusals: Vec<RefusalFacts>) -> Self {
        let luns = sample.luns.iter();
        Self {
            node: node.to_owned(),
            generation: sample.generation,
            luns: luns
                .map(|(name, facts)| (name.clone(), LunSeen::of(facts)))
                .collect(),
            pools: sample.pools.clone(),
            refusals,
        }
    }
}

/// What was seen last.
#[derive(Default)]
pub(crate) struct Observed {
    sessions: Option<BTreeMap<u64, SessionActivity>>,
    online: BTreeMap<String, bool>,
    seen: Option<Seen>,
}

impl Observed {
    /// What happened to sessions. The second answer: a LUN came or went, or nothing was compared
    /// yet, so that the objects are to be seen now.
    pub(crate) fn activity(&mut self, view: &ActivityView) -> (Vec<Happened>, bool) {
        let brief = |session: &SessionActivity| SessionActivity {
            latency: session.latency.summary(),
            ..session.clone()
        };
        let now: BTreeMap<u64, SessionActivity> = view
            .sessions
            .iter()
            .map(|session| (session.id, brief(session)))
            .collect();
        let before = self.sessions.take().unwrap_or_default();
        let opened = now.iter().filter(|(id, _)| !before.contains_key(id));
        let closed = before.iter().filter(|(id, _)| !now.contains_key(id));
        let opened = opened.map(|(_, session)| of_session(session, Code::SessionOpened));
        let closed = closed.map(|(_, session)| of_session(session, Code::SessionClosed));
        let happened = closed.chain(opened).collect();
        self.sessions = Some(now);
        let luns = view.luns.iter();
        let online = luns.map(|lun| (lun.name.clone(), lun.online)).collect();
        let changed = self.seen.is_none() || online != self.online;
        self.online = online;
        (happened, changed)
    }

    /// What happened to objects.
    pub(crate) fn objects(&mut self, now: Seen) -> Vec<Happened> {
        let mut happened = Vec::new();
        let before = self.seen.as_ref();
        if before.is_some_and(|before| before.generation != now.generation) {
            happened.push(of_generation(&now));
        }
        for (name, lun) in &now.luns {
            let older = before.and_then(|before| before.luns.get(name));
            of_lun(name, older, lun, before.is_none(), &mut happened);
        }
        for pool in &now.pools {
            let pools = before.iter().flat_map(|before| &before.pools);
            let older = pools.into_iter().find(|older| older.name == pool.name);
            of_pool(older, pool, &mut happened);
            of_journal(older, pool, &mut happened);
        }
        let known = before.map_or(&[][..], |before| &before.refusals);
        // Those of before the start are none of this daemon's.
        happened.extend(
            now.refusals
                .iter()
                .rev()
                .filter_map(|refusal| of_refusal(refusal, known)),
        );
        self.seen = Some(now);
        happened
    }
}

fn of_generation(now: &Seen) -> Happened {
    let message = format!(
        "objects were changed: generation {} is in force",
        now.generation
    );
    let node = Object::new("node", &now.node);
    Happened::new(Code::ConfigApplied, node, message).with("generation", now.generation)
}

fn of_session(session: &SessionActivity, code: Code) -> Happened {
    let SessionActivity {
        id,
        host,
        initiator,
        from,
        ..
    } = session;
    let target = session.target.as_deref();
    let where_to = target.map_or_else(|| "discovery".to_owned(), |it| format!("target {it}"));
    let what = if code == Code::SessionOpened {
        "logged in"
    } else {
        "is gone"
    };
    let message =
        format!("session {id} of host {host} with {where_to} {what} ({initiator} from {from})");
    let happened = Happened::new(code, Object::new("host", host), message)
        .with("session", *id)
        .with("initiator", initiator.as_str())
        .with("from", from.as_str());
    match target {
        Some(target) => happened.with("target", target),
        None => happened,
    }
}

fn of_lun(
    name: &str,
    before: Option<&LunSeen>,
    now: &LunSeen,
    is_first: bool,
    happened: &mut Vec<Happened>,
) {
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
    if let Some(scrub) = &now.scrub {
        let before = before.and_then(|before| before.scrub.as_ref());
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

#[cfg(test)]
mod test {
    use super::*;
    use manifest::journal::JournalFacts;
    use serde_json::{Value, json};

    fn pool(state: &str, journal: Option<JournalState>) -> PoolFacts {
        let mut pool = json!({
            "name": "p", "path": "/p", "total": 1000, "available": 5, "state": state, "provisioned_bytes": 0,
        });
        if state != "ok" {
            pool["problem"] = json!("its file system is not mounted");
        }
        let mut pool: PoolFacts = serde_json::from_value(pool).unwrap();
        pool.journal = journal.map(|state| JournalFacts {
            state,
            ..JournalFacts::missing("/j".to_owned(), "it is not there".to_owned())
        });
        pool
    }

    fn seen(luns: &[(&str, LunState, Option<ScrubFacts>)], pools: Vec<PoolFacts>) -> Seen {
        let luns = luns
            .iter()
            .cloned()
            .map(|(name, state, scrub)| (name.to_owned(), LunSeen { state, scrub }));
        Seen {
            node: "n".to_owned(),
            generation: 1,
            luns: luns.collect(),
            pools,
            refusals: Vec::new(),
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
        let mut observed = Observed::default();
        let mut now = |a: LunState, others: &[&str]| {
            let mut luns = vec![("a", a, None)];
            luns.extend(others.iter().map(|name| (*name, LunState::Online, None)));
            codes(&observed.objects(seen(&luns, Vec::new())))
        };
        assert_eq!(
            now(LunState::Online, &[]),
            [""; 0],
            "after a start all are online"
        );
        assert_eq!(now(offline(), &[]), ["lun_offline"]);
        assert_eq!(now(offline(), &["b"]), ["lun_online"], "a new one");
        assert_eq!(now(LunState::Online, &[]), ["lun_online"]);
        let mut observed = Observed::default();
        let start = seen(&[("a", offline(), None)], Vec::new());
        assert_eq!(
            codes(&observed.objects(start)),
            ["lun_offline"],
            "at a start, too"
        );
    }

    #[test]
    fn a_scrub_is_reported_from_its_beginning_to_its_end_with_what_it_finds() {
        let mut observed = Observed::default();
        let mut now = |scrub: Option<ScrubFacts>| {
            codes(&observed.objects(seen(&[("a", LunState::Online, scrub)], Vec::new())))
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
        let mut observed = Observed::default();
        let mut now = |state: &str, journal: Option<JournalState>| {
            codes(&observed.objects(seen(&[], vec![pool(state, journal)])))
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
    fn a_refused_login_is_reported_each_time() {
        let refusal = |times: u64| -> RefusalFacts {
            let facts = json!({
                "at": "2026-01-01T00:00:00.000Z", "times": times, "initiator": "iqn.1998-01.com.example:h",
                "from": "10.0.0.9", "target": "t", "portal": "p", "code": "CWY2003", "status": "0202", "reason": "no grant",
            });
            serde_json::from_value(facts).unwrap()
        };
        let mut observed = Observed::default();
        let mut now = |refusals: Vec<RefusalFacts>| {
            let seen = Seen {
                refusals,
                ..seen(&[], Vec::new())
            };
            observed.objects(seen)
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
}
