//! Each rule against facts that it is about, at its bounds.

use super::at;
use crate::{
    EndedSeen, Ending, Facts, Finding, HostSeen, LunSeen, Object, Path, PortalSeen, Reading,
    Severity,
};
use crate::{RuleSettings, Settings, TargetSeen, Verdict, Watch};
use manifest::facts::{PoolFacts, StallFacts};
use manifest::forecast::ForecastFacts;
use manifest::journal::{DestageError, JournalFacts, JournalState, LostBlocks};
use manifest::scrub::{ScrubFacts, ScrubState};
use manifest::time::rfc3339;
use serde_json::json;

fn read(facts: &Facts) -> Vec<Reading> {
    Watch::default().read(facts, &Settings::default(), at(0))
}

/// Rule, object, verdict of each reading.
fn said(readings: &[Reading]) -> Vec<(&str, &str, bool)> {
    let each = readings.iter();
    each.map(|it| {
        (
            it.rule.id,
            it.object.name.as_str(),
            it.verdict == Verdict::Bad,
        )
    })
    .collect()
}

fn path(session: u64, target: &str, from: &str, portal: &str) -> Path {
    Path {
        session,
        initiator: "iqn.1998-01.com.example:h".to_owned(),
        target: target.to_owned(),
        from: from.to_owned(),
        portal: portal.to_owned(),
    }
}

fn host(name: &str, paths: Vec<Path>) -> HostSeen {
    let (name, is_granted) = (name.to_owned(), true);
    HostSeen {
        name,
        is_granted,
        paths,
    }
}

fn pool(used: u64) -> PoolFacts {
    let pool = json!({
        "name": "p", "path": "/p", "total": 1000_u64 << 30, "available": (1000 - used) << 30, "used": used << 30,
        "provisioned_bytes": 0,
    });
    serde_json::from_value(pool).unwrap()
}

fn pools(all: Vec<PoolFacts>) -> Facts {
    Facts {
        pools: all,
        ..Facts::default()
    }
}

#[test]
fn nothing_is_said_of_a_node_that_is_well() {
    let facts = Facts {
        hosts: vec![host(
            "h",
            vec![path(1, "t", "a", "p"), path(2, "t", "b", "q")],
        )],
        luns: vec![LunSeen {
            name: "l".to_owned(),
            ..LunSeen::default()
        }],
        pools: vec![pool(500)],
        portals: vec![PortalSeen::default()],
        ..Facts::default()
    };
    assert_eq!(said(&read(&facts)), []);
}

#[test]
fn one_path_to_any_target_is_a_single_path_whatever_sessions_there_are() {
    let of = |paths: Vec<Path>| {
        let target = |name: &str, portals: &[&str]| TargetSeen {
            name: name.to_owned(),
            portals: portals.iter().map(|it| (*it).to_owned()).collect(),
        };
        let facts = Facts {
            hosts: vec![host("esx01", paths)],
            targets: vec![target("t", &["p", "q"]), target("u", &["p"])],
            ..Facts::default()
        };
        read(&facts)
    };
    let two = || vec![path(1, "t", "a", "p"), path(2, "t", "b", "q")];
    assert_eq!(of(two()), []);
    assert_eq!(
        of(vec![path(1, "t", "a", "p"), path(2, "t", "a", "q")]),
        [],
        "two portals"
    );
    assert_eq!(
        of(vec![path(1, "t", "a", "p"), path(2, "t", "b", "p")]),
        [],
        "two NICs of the host"
    );
    let twice = of(vec![path(1, "t", "a", "p"), path(2, "t", "a", "p")]);
    assert_eq!(
        said(&twice),
        [("host_single_path", "esx01", true)],
        "two sessions, one path"
    );
    assert_eq!(
        twice[0].cause,
        "host esx01 has one path to target t: from a to portal p"
    );
    assert!(
        twice[0]
            .next_step
            .contains("another portal of target t as well (q)")
    );
    let mut other = two();
    other.push(path(3, "u", "a", "p"));
    let other = of(other);
    assert!(
        other[0].next_step.contains("one portal only"),
        "{}",
        other[0].next_step
    );
    let mut cluster = two();
    cluster.push(Path {
        initiator: "iqn.x".to_owned(),
        ..path(4, "t", "c", "p")
    });
    assert!(
        of(cluster)[0]
            .cause
            .contains("host esx01 (iqn.x) has one path")
    );
    assert_eq!(said(&of(vec![])), [], "it was never there");
}

/// What is said of host `h`, after a restart each time; each step comes so many seconds after the
/// one before.
struct Hosts {
    watch: Watch,
    now: u64,
    is_granted: bool,
}

impl Hosts {
    fn new() -> Self {
        let (watch, now, is_granted) = (Watch::default(), 0, true);
        Self {
            watch,
            now,
            is_granted,
        }
    }

    fn say(&mut self, span: u64, paths: u64, ended: &[bool]) -> Vec<Reading> {
        self.now += span;
        let paths = (0..paths).map(|it| path(it, "t", &it.to_string(), "p"));
        let mut host = host("h", paths.collect());
        host.is_granted = self.is_granted;
        let ended = ended.iter().map(|logged_out| EndedSeen {
            host: "h".to_owned(),
            logged_out: *logged_out,
        });
        let facts = Facts {
            hosts: vec![host],
            ended: ended.collect(),
            ..Facts::default()
        };
        let learned = crate::Learned::read(&self.watch.learned().write()).unwrap();
        self.watch = Watch::new(learned);
        self.watch.read(&facts, &Settings::default(), at(self.now))
    }

    fn is_away(&mut self, span: u64, paths: u64, ended: &[bool]) -> bool {
        let said = self.say(span, paths, ended);
        said.iter()
            .any(|it| it.rule.id == "host_away" && it.verdict == Verdict::Bad)
    }
}

#[test]
fn a_host_that_loses_all_its_paths_is_away_until_it_is_back_or_a_day_is_over() {
    let mut hosts = Hosts::new();
    assert!(!hosts.is_away(10, 0, &[]), "it was never there");
    assert!(!hosts.is_away(10, 2, &[]));
    let said_of = hosts.say(10, 0, &[false, false]);
    assert_eq!(
        said(&said_of),
        [("host_away", "h", true), ("host_single_path", "h", false)]
    );
    assert_eq!(
        said_of[0].cause,
        "host h has lost all its paths: it had sessions until 10 seconds ago, and did not log out"
    );
    assert!(hosts.is_away(60, 0, &[]), "known over restarts");
    assert!(!hosts.is_away(60, 1, &[]), "it is back");
    assert!(hosts.is_away(10, 0, &[]), "although nobody says why");
    hosts.is_granted = false;
    assert!(!hosts.is_away(10, 0, &[]), "nothing is for it any more");
    hosts.is_granted = true;
    assert!(hosts.is_away(86_300, 0, &[]));
    assert_eq!(said(&hosts.say(100, 0, &[])), [], "a day is over");
}

#[test]
fn a_host_that_logs_out_was_shut_down_and_is_no_loss() {
    let mut hosts = Hosts::new();
    assert!(!hosts.is_away(10, 2, &[]));
    assert!(!hosts.is_away(10, 0, &[true, true]));
    assert!(!hosts.is_away(3_600, 0, &[]), "still");
    assert!(!hosts.is_away(10, 2, &[]), "it boots");
    // One path is taken out of service, the other is cut.
    assert!(!hosts.is_away(10, 1, &[true]));
    assert!(hosts.is_away(10, 0, &[false]));
    // It ended between the list of sessions and the list of those that ended.
    assert!(!hosts.is_away(10, 1, &[true]));
    assert!(!hosts.is_away(10, 0, &[]));
    // It came back, and the daemon was killed: what was long ago says nothing.
    assert!(!hosts.is_away(10, 2, &[]));
    assert!(hosts.is_away(10, 0, &[]));
}

#[test]
fn a_path_flaps_when_it_comes_back_often_and_a_boot_is_none() {
    let mut watch = Watch::default();
    let eight = |first: u64| {
        (0..8)
            .map(|it| path(first + it, "t", &it.to_string(), "p"))
            .collect::<Vec<_>>()
    };
    let mut now = 0;
    let mut say = |paths: Vec<Path>, span: u64| {
        now += span;
        let facts = Facts {
            hosts: vec![host("h", paths)],
            ..Facts::default()
        };
        let readings = watch.read(&facts, &Settings::default(), at(now));
        let flapping: Vec<Reading> = readings
            .into_iter()
            .filter(|it| it.rule.id == "path_flapping")
            .collect();
        flapping
            .first()
            .map(|it| (it.verdict == Verdict::Bad, it.cause.clone()))
    };
    assert_eq!(say(vec![], 5), None);
    assert_eq!(say(eight(1), 5), None, "a boot");
    assert_eq!(say(vec![], 5), None);
    assert_eq!(say(eight(11), 5), None, "a reboot");
    // One of eight comes and goes, also too fast to be seen away.
    for (round, expected) in [(0, Some(false)), (1, Some(true)), (2, Some(true))] {
        let mut paths = eight(11);
        paths[3].session = 100 + round;
        assert_eq!(say(paths, 60).map(|it| it.0), expected, "{round}");
    }
    let mut paths = eight(11);
    paths[3].session = 102;
    let (_, cause) = say(paths.clone(), 5).unwrap();
    assert_eq!(
        cause,
        "a path of host h came back 4 times within 15 minutes: from 3 to portal p, target t"
    );
    assert_eq!(say(paths, 900), None, "it is long ago");
}

#[test]
fn luns_that_are_offline_or_damaged_are_named_with_the_reason() {
    let facts = Facts {
        luns: vec![
            LunSeen {
                name: "a".to_owned(),
                offline: Some("device missing".to_owned()),
                ..LunSeen::default()
            },
            LunSeen {
                name: "b".to_owned(),
                damage: vec!["3 bad blocks".to_owned(), "x".to_owned()],
                ..LunSeen::default()
            },
        ],
        ..Facts::default()
    };
    let readings = read(&facts);
    let expected = [
        ("lun_offline", "a", true),
        ("scrub_findings", "a", false),
        ("scrub_findings", "b", true),
    ];
    assert_eq!(said(&readings), expected);
    assert_eq!(readings[0].cause, "LUN a is offline: device missing");
    assert_eq!(readings[2].cause, "LUN b: 3 bad blocks; x");
}

#[test]
fn a_copy_that_is_missing_is_named_with_how_the_lun_is() {
    let of = |copies: Option<&str>| {
        let lun = LunSeen {
            name: "vm01".to_owned(),
            copies: copies.map(str::to_owned),
            ..LunSeen::default()
        };
        read(&Facts {
            luns: vec![lun],
            ..Facts::default()
        })
    };
    assert_eq!(of(None), []);
    let missing = of(Some("served here; a has all of it alone, b is behind"));
    assert_eq!(said(&missing), [("lun_copy_missing", "vm01", true)]);
    assert_eq!(missing[0].severity, Severity::Warning);
    assert!(missing[0].cause.contains("b is behind"));
}

#[test]
fn storage_that_hangs_is_named_with_how_long_and_what_it_is() {
    let of = |stalled: Option<StallFacts>| {
        let lun = LunSeen {
            name: "vm01".to_owned(),
            below: "pool nvme at /srv/nvme".to_owned(),
            stalled,
            ..LunSeen::default()
        };
        read(&Facts {
            luns: vec![lun],
            ..Facts::default()
        })
    };
    assert_eq!(of(None), []);
    let (seconds, operations) = (31, 4);
    let stalled = of(Some(StallFacts {
        seconds,
        operations,
    }));
    assert_eq!(said(&stalled), [("lun_stalled", "vm01", true)]);
    assert_eq!(stalled[0].severity, Severity::Critical);
    assert_eq!(
        stalled[0].cause,
        "LUN vm01: its storage (pool nvme at /srv/nvme) has answered nothing for 31 s, with 4 operations under way"
    );
}

#[test]
fn pools_fill_at_their_bounds_and_not_where_luns_have_all_they_were_given() {
    let of = |used: u64| {
        let readings = read(&pools(vec![pool(used)]));
        let says = |id: &str| {
            readings
                .iter()
                .find(|it| it.rule.id == id)
                .map(|it| it.verdict)
        };
        (says("pool_filling"), says("pool_nearly_full"))
    };
    let (bad, between) = (Some(Verdict::Bad), Some(Verdict::Between));
    for (used, expected) in [
        (770, (None, None)),
        (780, (between, None)),
        (800, (between, None)),
        (809, (between, None)),
        (810, (bad, None)),
        (879, (bad, None)),
        (880, (bad, between)),
        (910, (bad, bad)),
        (1000, (bad, bad)),
    ] {
        assert_eq!(of(used), expected, "{used}");
    }
    let cause = &read(&pools(vec![pool(910)]))[0].cause;
    assert_eq!(cause, "pool p is 91 % full: 90 GiB are left");
    let member = json!({ "path": "/m", "last_event": 1, "state": "present" });
    let mut of_members = pool(990);
    of_members.members = vec![serde_json::from_value(member).unwrap()];
    assert_eq!(read(&pools(vec![of_members])), []);
    // One that does not answer keeps what was known of it.
    let mut away = pool(910);
    away.problem = Some("it is not mounted".to_owned());
    let readings = read(&pools(vec![away]));
    let expected = [
        ("pool_offline", "p", true),
        ("pool_filling", "p", false),
        ("pool_nearly_full", "p", false),
    ];
    assert_eq!(said(&readings), expected);
    let bounds = [
        ("above_percent".to_owned(), 95),
        ("below_percent".to_owned(), 90),
    ];
    let wanted = RuleSettings {
        bounds: bounds.into(),
        ..RuleSettings::default()
    };
    let settings = Settings::default().with("pool_filling", wanted).unwrap();
    let readings = Watch::default().read(&pools(vec![pool(950)]), &settings, at(0));
    assert_eq!(
        said(&readings),
        [
            ("pool_filling", "p", false),
            ("pool_nearly_full", "p", true)
        ]
    );
}

#[test]
fn a_pool_is_overcommitted_by_any_byte_or_by_the_share_that_somebody_set() {
    let mut over = pool(100);
    over.overcommitted_bytes = 1;
    assert_eq!(
        said(&read(&pools(vec![over.clone()]))),
        [("pool_overcommitted", "p", true)]
    );
    let wanted = RuleSettings {
        bounds: [("above_percent".to_owned(), 50)].into(),
        ..RuleSettings::default()
    };
    let settings = Settings::default()
        .with("pool_overcommitted", wanted)
        .unwrap();
    for (bytes, expected) in [
        (0, 0),
        (1, 0),
        (500 << 30, 0),
        ((500 << 30) + 1, 1),
        (2_000 << 30, 1),
    ] {
        over.overcommitted_bytes = bytes;
        let readings = Watch::default().read(&pools(vec![over.clone()]), &settings, at(0));
        assert_eq!(readings.len(), expected, "{bytes}");
    }
}

#[test]
fn journals_are_named_when_they_are_closed_full_damaged_or_hold_what_cannot_go() {
    let of = |change: &dyn Fn(&mut JournalFacts)| {
        let mut journal = JournalFacts::missing("/j".to_owned(), "it is away".to_owned());
        (journal.state, journal.problem) = (JournalState::Open, None);
        journal.size_bytes = 1_000;
        change(&mut journal);
        let mut pool = pool(100);
        pool.journal = Some(journal);
        read(&pools(vec![pool]))
    };
    assert_eq!(of(&|_| {}), []);
    let missing = of(&|it| {
        it.state = JournalState::Missing;
        it.problem = Some("it is away".to_owned());
    });
    assert_eq!(
        missing[0].cause,
        "the journal /j of pool p is missing: it is away"
    );
    assert_eq!(said(&missing)[0], ("journal_offline", "p", true));
    let full = of(&|it| (it.state, it.full) = (JournalState::Failed, true));
    assert!(full[0].next_step.contains("make room"));
    for (used, expected) in [
        (699, None),
        (700, Some(false)),
        (809, Some(false)),
        (810, Some(true)),
        (1_000, Some(true)),
    ] {
        let readings = of(&|it| it.used_bytes = used);
        assert_eq!(said(&readings).first().map(|it| it.2), expected, "{used}");
    }
    let lost = of(&|it| {
        it.lost = vec![LostBlocks {
            lun: "l".to_owned(),
            lba: 7,
            blocks: 2,
        }];
        it.lost_blocks = [("l".to_owned(), 2), ("m".to_owned(), 3)].into();
    });
    assert!(
        lost[0]
            .cause
            .starts_with("5 acknowledged blocks are damaged"),
        "{}",
        lost[0].cause
    );
    let errors = of(&|it| {
        let error = |lun: &str| DestageError {
            lun: lun.to_owned(),
            reason: "no space".to_owned(),
        };
        it.destage_errors = vec![error("l"), error("m")];
    });
    assert_eq!(
        said(&errors),
        [("destage_error", "l", true), ("destage_error", "m", true)]
    );
}

#[test]
fn portals_certificates_disks_and_files_are_named_as_they_are() {
    let certificate = |days: u64| Ending {
        name: "api".to_owned(),
        place: "/c.pem".to_owned(),
        at: at(days * 86_400).wall,
        next_step: "renew it".to_owned(),
    };
    let of_certificate = |days| {
        let facts = Facts {
            certificates: vec![certificate(days)],
            ..Facts::default()
        };
        read(&facts)
    };
    assert_eq!(of_certificate(21), []);
    let soon = of_certificate(20);
    assert!(soon[0].cause.ends_with(", in 20 days"), "{}", soon[0].cause);
    assert!(of_certificate(0)[0].cause.contains("has ended on"));
    let finding = |name: &str, severity, cause: &str| Finding {
        object: Object::new("disk", name),
        severity,
        cause: cause.to_owned(),
        next_step: format!("step {severity}"),
    };
    let facts = Facts {
        disks: vec![
            finding("sda", Severity::Info, "hot"),
            finding("sdb", Severity::Warning, "worn"),
            finding("sda", Severity::Critical, "spare 3 %"),
        ],
        portals: vec![PortalSeen {
            address: "10.0.0.1:3260".to_owned(),
            group: "g".to_owned(),
            problem: Some("in use".to_owned()),
        }],
        ..Facts::default()
    };
    let readings = read(&facts);
    let expected = [
        ("portal_offline", "10.0.0.1:3260", true),
        ("device_health", "sda", true),
        ("device_health", "sdb", true),
    ];
    assert_eq!(said(&readings), expected);
    let sda = &readings[1];
    assert_eq!(
        (sda.severity, sda.cause.as_str()),
        (Severity::Critical, "spare 3 %; hot")
    );
    assert_eq!(sda.next_step, "step critical");
}

#[test]
fn scrubs_are_overdue_by_the_schedule_and_remembered_over_restarts() {
    let day = 86_400;
    let lun = |state: Option<(ScrubState, u64)>| {
        let scrub = state.map(|(state, days)| ScrubFacts {
            state,
            ended: Some(rfc3339(at(days * day).wall)),
            ..ScrubFacts::begun(rfc3339(at(0).wall), 1)
        });
        LunSeen {
            name: "l".to_owned(),
            key: "naa".to_owned(),
            scrub,
            ..LunSeen::default()
        }
    };
    let mut watch = Watch::default();
    let mut say = |days: u64, every: Option<u32>, state| {
        let facts = Facts {
            luns: vec![lun(state)],
            scrub_every_days: every,
            ..Facts::default()
        };
        let learned = crate::Learned::read(&watch.learned().write()).unwrap();
        watch = Watch::new(learned);
        let readings = watch.read(&facts, &Settings::default(), at(days * day + 60));
        readings
            .first()
            .map(|it| (it.verdict == Verdict::Bad, it.cause.clone()))
    };
    assert_eq!(say(0, Some(7), None), None);
    assert_eq!(say(13, Some(7), None), None);
    let (bad, cause) = say(15, Some(7), None).unwrap();
    assert!(
        bad && cause == "LUN l has not been scrubbed whole in the 15 days that it is known",
        "{cause}"
    );
    assert_eq!(
        say(15, None, None),
        None,
        "without a schedule there is more time"
    );
    assert!(
        !say(16, Some(7), Some((ScrubState::Running, 0))).unwrap().0,
        "it runs"
    );
    assert_eq!(say(17, Some(7), Some((ScrubState::Finished, 17))), None);
    // The next one begins and is given up: the one before counts.
    assert_eq!(say(30, Some(7), Some((ScrubState::GivenUp, 29))), None);
    let (bad, cause) = say(32, Some(7), Some((ScrubState::GivenUp, 29))).unwrap();
    assert!(
        bad && cause.contains("last scrubbed whole 15 days ago; the last scrub was given up"),
        "{cause}"
    );
    assert!(say(110, None, None).unwrap().0);
}

#[test]
fn a_pool_that_fills_says_when_it_is_full_by_its_history_and_else_by_the_last_hour() {
    let cause = |forecast: Option<ForecastFacts>| {
        let mut filling = pool(850);
        filling.full_in_seconds = Some(7_200);
        filling.forecast = forecast;
        let readings = read(&pools(vec![filling]));
        let found = readings.iter().find(|it| it.rule.id == "pool_filling");
        found.unwrap().cause.clone()
    };
    let forecast = |full_at: Option<&str>| ForecastFacts {
        text: "full on about 14 March at this rate".to_owned(),
        full_at: full_at.map(str::to_owned),
        ..ForecastFacts::default()
    };
    let dated = cause(Some(forecast(Some("2027-03-14T00:00:00Z"))));
    assert!(
        dated.ends_with("; full on about 14 March at this rate"),
        "{dated}"
    );
    for undated in [None, Some(forecast(None))] {
        let undated = cause(undated);
        assert!(
            undated.ends_with("; full in about 2 hours at the rate of the last hour"),
            "{undated}"
        );
    }
}
