//! Each rule against what the node reports, through the same door as in the daemon: no rule is
//! there that nothing could ever make fire.

use alerts::{Ending, Facts, Finding, Moment, Object, RULES, Settings, Severity, Verdict, Watch};
use controller::test_support::{FakeEngine, config, lab, session};
use controller::{Controller, How, Sample};
use env::sim::{World, WorldConfig};
use futures_util::FutureExt as _;
use manifest::disks::{DiskAlert, DiskSeverity};
use manifest::facts::{LunState, OpFacts, PortalFacts, StallFacts};
use manifest::journal::{DestageError, JournalFacts, JournalState, LostBlocks};
use manifest::objects::MirrorFacts;
use manifest::plan::Edit;
use manifest::scrub::{BadBlocks, Damage, ScrubFacts, ScrubState};
use manifest::served::Unserved;
use observed::{facts, of_unserved};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use units::{Now, WallClock};

const MINUTE: u64 = 60;
const DAY: u64 = 86_400;

/// What the node reports, and what the daemon knows beside.
struct Seen {
    sample: Sample,
    portals: Vec<PortalFacts>,
    disks: Vec<DiskAlert>,
    more: Facts,
}

impl Seen {
    /// A node that is well: a LUN, and a host with two paths to it.
    fn well() -> Self {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let engine = Rc::new(FakeEngine::default());
        let (core, shared) = (node.core(0), Rc::<FakeEngine>::clone(&engine));
        let ask = async move {
            let controller = Controller::start(core, config(), shared).await.unwrap();
            let set = lab();
            let apply = Edit::Apply { set, prune: false };
            controller.edit(&apply, How::default()).await.unwrap();
            (controller.sample().await, controller.portals().await)
        };
        let limit = Duration::from_secs(60);
        let (mut sample, portals) = world.block_on(&node, limit, ask).unwrap();
        let mut other = session(5);
        other.portal = "127.0.0.2:3260".to_owned();
        sample.sessions = vec![session(4), other];
        Self {
            sample,
            portals,
            disks: Vec::new(),
            more: Facts::default(),
        }
    }

    fn journal(&mut self, change: impl FnOnce(&mut JournalFacts)) {
        let mut journal = JournalFacts::missing("/j".to_owned(), "it is away".to_owned());
        (journal.state, journal.problem, journal.size_bytes) = (JournalState::Open, None, 1_000);
        change(&mut journal);
        self.sample.pools[0].journal = Some(journal);
    }

    fn scrub(&mut self, state: ScrubState, mismatched: u64) {
        let mut scrub = ScrubFacts::begun("2026-01-01T00:00:00.000Z".to_owned(), 10);
        (scrub.state, scrub.mismatched_blocks) = (state, mismatched);
        let (lba, damage) = (7, Damage::Mismatch);
        scrub.places = vec![BadBlocks {
            lba,
            blocks: mismatched,
            damage,
        }];
        self.sample.luns.get_mut("l").unwrap().scrub = Some(scrub);
    }

    /// So many reads in all, which took so many microseconds together.
    fn reads(&mut self, count: u64, us_sum: u64) {
        let mut op = OpFacts::default();
        (op.latency.total.count, op.latency.total.us_sum) = (count, us_sum);
        let lun = self.sample.luns.get_mut("l").unwrap();
        lun.ops.insert("read".to_owned(), op);
    }

    /// What the rules are asked about, as the daemon puts it together.
    fn facts(&self) -> Facts {
        let sample = Sample {
            luns: self.sample.luns.clone(),
            portals: self.portals.clone(),
            nics: Vec::new(),
            sessions: self.sample.sessions.clone(),
            pools: self.sample.pools.clone(),
            disks: std::sync::Arc::clone(&self.sample.disks),
            cores: Vec::new(),
            logins: Vec::new(),
            objects: Rc::clone(&self.sample.objects),
            generation: self.sample.generation,
            memory: self.sample.memory,
            moves: self.sample.moves,
            digests: self.sample.digests,
        };
        let facts = facts(sample, &self.portals, self.disks.clone(), None);
        // It gives way to others where there are many LUNs.
        let mut facts = facts.now_or_never().unwrap();
        facts.records.extend(self.more.records.iter().cloned());
        facts.certificates.clone_from(&self.more.certificates);
        facts.unserved.clone_from(&self.more.unserved);
        facts.scrub_every_days = self.more.scrub_every_days;
        facts
    }
}

fn at(seconds: u64) -> Moment {
    Moment {
        steady: Now(seconds * 1_000_000_000),
        wall: WallClock((1_800_000_000 + seconds) * 1_000_000_000),
    }
}

/// What fires when the node is well for a moment, and then as `next` has it: each time it is asked
/// a minute has passed, until it says that this was all.
fn fires(mut next: impl FnMut(&mut Seen, u64) -> bool) -> BTreeSet<&'static str> {
    let (mut watch, settings, mut seen) = (Watch::default(), Settings::default(), Seen::well());
    let readings = watch.read(&seen.facts(), &settings, at(0));
    assert_eq!(readings, [], "it is well");
    let mut minutes = 0;
    loop {
        minutes += 1;
        let goes_on = next(&mut seen, minutes);
        let readings = watch.read(&seen.facts(), &settings, at(minutes * MINUTE));
        let bad = readings.iter().filter(|it| it.verdict == Verdict::Bad);
        if !goes_on {
            return bad.map(|it| it.rule.id).collect();
        }
    }
}

/// The same of one change.
fn after(change: impl Fn(&mut Seen)) -> BTreeSet<&'static str> {
    fires(|seen, _| {
        change(seen);
        false
    })
}

fn of_luns() -> [(&'static str, BTreeSet<&'static str>); 7] {
    [
        (
            "lun_offline",
            after(|it| {
                let reason = LunState::Offline("its file is gone".to_owned());
                it.sample.luns.get_mut("l").unwrap().state = reason;
            }),
        ),
        (
            "lun_copy_missing",
            after(|it| {
                let mirror = MirrorFacts {
                    state: "solo".to_owned(),
                    ..MirrorFacts::default()
                };
                it.sample.luns.get_mut("l").unwrap().layers.mirror = Some(mirror);
            }),
        ),
        (
            "lun_stalled",
            after(|it| {
                let (seconds, operations) = (9, 1);
                it.sample.luns.get_mut("l").unwrap().stalled = Some(StallFacts {
                    seconds,
                    operations,
                });
            }),
        ),
        (
            // A day of 500 us, then ten minutes of 20 ms.
            "lun_slow",
            fires(|it, minute| {
                let slow = minute.saturating_sub(1_440);
                let us = minute.min(1_440) * 1_000 * 500 + slow * 1_000 * 20_000;
                it.reads(minute * 1_000, us);
                slow < 10
            }),
        ),
        (
            "scrub_overdue",
            fires(|it, minute| {
                it.more.scrub_every_days = Some(1);
                minute * MINUTE <= 8 * DAY
            }),
        ),
        (
            "scrub_findings",
            after(|it| it.scrub(ScrubState::Finished, 3)),
        ),
        (
            "destage_error",
            after(|it| {
                it.journal(|journal| {
                    let (lun, reason) = ("l".to_owned(), "no space".to_owned());
                    journal.destage_errors = vec![DestageError { lun, reason }];
                });
            }),
        ),
    ]
}

fn of_pools() -> [(&'static str, BTreeSet<&'static str>); 7] {
    let used = |percent: u64| {
        after(move |it| {
            let pool = &mut it.sample.pools[0];
            (pool.used, pool.available) = (percent << 30, (100 - percent) << 30);
        })
    };
    [
        (
            "pool_offline",
            after(|it| it.sample.pools[0].problem = Some("it is not mounted".to_owned())),
        ),
        ("pool_filling", used(85)),
        ("pool_nearly_full", used(95)),
        (
            "pool_overcommitted",
            after(|it| it.sample.pools[0].overcommitted_bytes = 1 << 30),
        ),
        (
            "journal_offline",
            after(|it| it.journal(|journal| journal.state = JournalState::Missing)),
        ),
        (
            "journal_filling",
            after(|it| it.journal(|journal| journal.used_bytes = 900)),
        ),
        (
            "journal_lost_blocks",
            after(|it| {
                it.journal(|journal| {
                    let (lun, lba, blocks) = ("l".to_owned(), 7, 2);
                    journal.lost = vec![LostBlocks { lun, lba, blocks }];
                });
            }),
        ),
    ]
}

fn of_the_rest() -> [(&'static str, BTreeSet<&'static str>); 8] {
    [
        (
            "host_single_path",
            after(|it| drop(it.sample.sessions.pop())),
        ),
        ("host_away", after(|it| it.sample.sessions.clear())),
        (
            // The second path comes back each minute as another session.
            "path_flapping",
            fires(|it, minute| {
                it.sample.sessions[1].id = 5 + minute;
                minute < 4
            }),
        ),
        (
            "portal_offline",
            after(|it| it.portals[0].problem = Some("the port is taken".to_owned())),
        ),
        (
            "not_served",
            after(|it| {
                let unserved = Unserved {
                    kind: "target",
                    name: "t".to_owned(),
                    cause: "it cannot be reached".to_owned(),
                };
                it.more.unserved = vec![of_unserved(unserved)];
            }),
        ),
        (
            "certificate_ending",
            after(|it| {
                it.more.certificates = vec![Ending {
                    name: "api".to_owned(),
                    place: "/c.pem".to_owned(),
                    at: at(5 * DAY).wall,
                    next_step: "renew it".to_owned(),
                }];
            }),
        ),
        (
            "device_health",
            after(|it| {
                it.disks = vec![DiskAlert {
                    severity: DiskSeverity::Warning,
                    object: "disk S1".to_owned(),
                    cause: "disk sda: spare blocks at 12 %".to_owned(),
                    next_step: "replace it".to_owned(),
                }];
            }),
        ),
        (
            "records_damaged",
            after(|it| {
                it.more.records = vec![Finding {
                    object: Object::new("file", "events.sqlite"),
                    severity: Severity::Warning,
                    cause: "it cannot be written".to_owned(),
                    next_step: "check the disk".to_owned(),
                }];
            }),
        ),
    ]
}

#[test]
fn each_rule_fires_by_what_the_node_reports_and_none_can_never_fire() {
    let rows = of_luns().into_iter().chain(of_pools());
    let rows = rows.chain(of_the_rest());
    let mut reached = BTreeSet::new();
    for (rule, fired) in rows {
        // Nearly full is filling as well, and offline LUNs of a journal have their own rule.
        assert!(fired.contains(rule), "{rule}: {fired:?}");
        assert!(fired.len() <= 2, "{rule}: {fired:?}");
        reached.insert(rule);
    }
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(reached, all);
}
