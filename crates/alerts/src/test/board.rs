//! The board against a model that scans all that was ever said.

use super::{at, bad, reading, rule};
use crate::{
    Alert, AlertState, Board, Change, Document, Object, RuleSettings, Severity, Verdict,
    WantedSilence,
};
use manifest::code::Code;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What a rule says of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Well,
    Between,
    Bad,
}

/// All that was said of one object since its alert fired or was resolved last, and whether it
/// fires.
#[derive(Clone, Default)]
struct Model {
    said: Vec<(u64, Said)>,
    fires: bool,
}

impl Model {
    /// What becomes of it.
    fn take(&mut self, now: u64, said: Said, hold: u64, clear: u64) -> Option<bool> {
        self.said.push((now, said));
        let (wanted, span) = if self.fires {
            (Said::Well, clear)
        } else {
            (Said::Bad, hold)
        };
        let run = self.said.iter().rev().take_while(|(_, it)| *it == wanted);
        let begun = run.last().map(|(at, _)| *at);
        if begun.is_none_or(|begun| now - begun < span) {
            return None;
        }
        self.fires = !self.fires;
        self.said.clear();
        Some(self.fires)
    }
}

fn settings(hold: u64, clear: u64) -> RuleSettings {
    RuleSettings {
        hold_seconds: Some(hold),
        clear_seconds: Some(clear),
        ..RuleSettings::default()
    }
}

fn board(hold: u64, clear: u64) -> Board {
    let mut board = Board::new(&Document::default(), at(0).wall);
    board
        .set_rule("lun_offline", settings(hold, clear))
        .unwrap();
    board
}

fn readings(said: &[Said]) -> Vec<crate::Reading> {
    let each = said.iter().enumerate().filter_map(|(object, said)| {
        let verdict = match said {
            Said::Well => return None,
            Said::Between => Verdict::Between,
            Said::Bad => Verdict::Bad,
        };
        Some(reading("lun_offline", &object.to_string(), verdict))
    });
    each.collect()
}

fn fires(board: &Board, object: usize) -> bool {
    let name = object.to_string();
    board.firing().any(|alert| alert.object.name == name)
}

#[test]
fn every_short_history_of_one_object_ends_as_the_model_says() {
    const ALL: [Said; 3] = [Said::Well, Said::Between, Said::Bad];
    let mut transitions = 0;
    for (hold, clear) in [(0, 0), (10, 0), (0, 10), (10, 20), (20, 10), (15, 15)] {
        for number in 0..3_u32.pow(8) {
            let (mut board, mut model) = (board(hold, clear), Model::default());
            for step in 0..8 {
                let said = ALL[usize::try_from(number / 3_u32.pow(step) % 3).unwrap()];
                let now = u64::from(step) * 10;
                let changes = board.take(at(now), readings(&[said]));
                let expected = model.take(now, said, hold, clear);
                let came = changes.first().map(|change| match change {
                    Change::Fired(_) => true,
                    Change::Resolved(_) => false,
                    Change::Raised(_) => panic!("nothing became worse"),
                });
                assert_eq!(came, expected, "{hold} {clear} {number} at {step}");
                assert_eq!(fires(&board, 0), model.fires);
                transitions += u32::from(came.is_some());
            }
        }
    }
    assert!(transitions > 30_000, "{transitions}");
}

/// What may happen to the board.
#[derive(Clone, Debug)]
enum Event {
    Said([u8; 4], u64),
    Acknowledge(usize),
    Unacknowledge(usize),
    Silence(usize, u64),
    Restart,
    /// The wall clock is set, by so many hours.
    Clock(i64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        8 => (prop::array::uniform4(0..3_u8), 1..40_u64).prop_map(|(said, after)| Event::Said(said, after)),
        1 => (0..4_usize).prop_map(Event::Acknowledge),
        1 => (0..4_usize).prop_map(Event::Unacknowledge),
        1 => (0..4_usize, 1..3_u64).prop_map(|(object, hours)| Event::Silence(object, hours)),
        1 => Just(Event::Restart),
        1 => (-30..30_i64).prop_map(Event::Clock),
    ];
    prop::collection::vec(one, 1..120)
}

fn id_of(board: &Board, object: usize) -> Option<u64> {
    let name = object.to_string();
    let mut firing = board.firing();
    firing
        .find(|alert| alert.object.name == name)
        .map(|alert| alert.id)
}

proptest! {
    #[test]
    fn whatever_happens_objects_fire_as_the_model_says_and_what_is_over_never_changes(
        events in events(), hold in 0..60_u64, clear in 0..60_u64,
    ) {
        let mut board = board(hold, clear);
        let mut models = vec![Model::default(); 4];
        let mut over: BTreeMap<u64, Alert> = BTreeMap::new();
        let (mut now, mut last_id, mut hours) = (0, 0, 40_i64);
        let when = |now: u64, hours: i64| {
            let hours = u64::try_from(hours.max(0)).unwrap();
            crate::Moment { wall: at(hours * 3_600 + now).wall, ..at(now) }
        };
        for event in events {
            let moment = when(now, hours);
            match event {
                Event::Said(said, after) => {
                    now += after;
                    let moment = when(now, hours);
                    let said = said.map(|it| [Said::Well, Said::Between, Said::Bad][usize::from(it)]);
                    let changes = board.take(moment, readings(&said));
                    for (object, (model, said)) in models.iter_mut().zip(said).enumerate() {
                        let expected = model.take(now, said, hold, clear);
                        let of_object = |id: &u64| board.alert(*id).unwrap().object.name == object.to_string();
                        let came = changes.iter().find_map(|change| match change {
                            Change::Fired(id) => of_object(id).then_some(true),
                            Change::Resolved(id) => of_object(id).then_some(false),
                            Change::Raised(_) => None,
                        });
                        prop_assert_eq!(came, expected);
                    }
                    for change in changes {
                        match change {
                            Change::Fired(id) => {
                                prop_assert!(id > last_id, "numbers rise");
                                last_id = id;
                            }
                            Change::Resolved(id) => {
                                over.insert(id, board.alert(id).unwrap().clone());
                            }
                            Change::Raised(_) => {}
                        }
                    }
                }
                Event::Acknowledge(object) => {
                    if let Some(id) = id_of(&board, object) {
                        board.acknowledge(id, "eve", "on it", moment).unwrap();
                    }
                }
                Event::Unacknowledge(object) => {
                    if let Some(id) = id_of(&board, object) {
                        board.unacknowledge(id, "eve", moment).unwrap();
                        prop_assert!(board.alert(id).unwrap().acknowledged.is_none());
                    }
                }
                Event::Silence(object, hours) => {
                    if let Some(id) = id_of(&board, object) {
                        let wanted = WantedSilence { hours: Some(hours), ..WantedSilence::default() };
                        last_id = last_id.max(board.silence_alert(id, wanted, "eve", moment).unwrap());
                    }
                }
                Event::Restart => {
                    let written = board.document().write();
                    let read = Document::read(&written).unwrap();
                    prop_assert_eq!(&read, &board.document());
                    board = Board::new(&read, moment.wall);
                    // What did not fire yet, and what was well for a while, is not stored.
                    for model in &mut models {
                        model.said.clear();
                    }
                }
                Event::Clock(by) => hours = (hours + by).clamp(0, 1_000),
            }
            for (object, model) in models.iter().enumerate() {
                prop_assert_eq!(fires(&board, object), model.fires);
            }
            for (id, alert) in &over {
                prop_assert_eq!(board.alert(*id), Some(alert));
                prop_assert!(board.acknowledge(*id, "eve", "", moment).is_err());
            }
            let counts = board.counts(moment.wall);
            let sum = counts.critical + counts.warning + counts.info + counts.acknowledged + counts.silenced;
            prop_assert_eq!(usize::try_from(sum).unwrap(), board.firing().count());
        }
    }
}

/// A board whose one alert fires, and its number.
fn one() -> (Board, u64) {
    let mut board = board(0, 0);
    let changes = board.take(at(1), vec![bad("lun_offline", "vm01")]);
    let [Change::Fired(id)] = changes[..] else {
        panic!("{changes:?}");
    };
    (board, id)
}

fn state(board: &Board, id: u64, seconds: u64) -> AlertState {
    let alert = board.alert(id).unwrap();
    board.view(alert, at(seconds).wall).state
}

fn silence(hours: u64) -> WantedSilence {
    WantedSilence {
        hours: Some(hours),
        ..WantedSilence::default()
    }
}

#[test]
fn an_alert_says_who_did_what_about_it_and_when() {
    let (mut board, id) = one();
    board.acknowledge(id, "eve", " on my way ", at(5)).unwrap();
    assert_eq!(state(&board, id, 5), AlertState::Acknowledged);
    board.silence_alert(id, silence(1), "eve", at(6)).unwrap();
    assert_eq!(state(&board, id, 7), AlertState::Silenced);
    assert_eq!(
        state(&board, id, 3_607),
        AlertState::Acknowledged,
        "it has an end"
    );
    board.take(at(3_700), Vec::new());
    let view = board.view(board.alert(id).unwrap(), at(3_701).wall);
    assert_eq!(view.state, AlertState::Resolved);
    let steps: Vec<String> = view
        .steps
        .iter()
        .map(|step| format!("{} {} {}", step.what, step.by, step.note))
        .collect();
    assert_eq!(
        steps,
        [
            "fired  vm01 is bad",
            "acknowledged eve on my way",
            "resolved  "
        ]
    );
    assert_eq!(view.acknowledged.unwrap().note, "on my way");
    // The same again is another alert, and nobody has acknowledged it.
    let changes = board.take(at(3_800), vec![bad("lun_offline", "vm01")]);
    let [Change::Fired(again)] = changes[..] else {
        panic!("{changes:?}");
    };
    assert!(again > id && state(&board, again, 3_801) == AlertState::Firing);
    assert_eq!(board.list(false, at(0).wall).len(), 1);
    assert_eq!(board.list(true, at(0).wall).len(), 2);
}

#[test]
fn a_finding_that_becomes_worse_says_so_and_one_that_becomes_milder_stays() {
    let (mut board, id) = one();
    let with = |severity| crate::Reading {
        severity,
        ..bad("lun_offline", "vm01")
    };
    assert_eq!(board.take(at(2), vec![with(Severity::Warning)]), []);
    assert_eq!(
        board.take(at(3), vec![with(Severity::Critical)]),
        [Change::Raised(id)]
    );
    let alert = board.alert(id).unwrap();
    assert_eq!(
        alert.steps.last().unwrap().note,
        "warning before, critical now"
    );
    // For ever up and down: what is kept of it is bounded.
    for round in 0..1_000 {
        let severity = Severity::ALL[usize::try_from(round % 3).unwrap()];
        board.take(at(10 + round), vec![with(severity)]);
    }
    let alert = board.alert(id).unwrap();
    assert!(alert.steps.len() <= 50 && alert.steps[0].what == crate::What::Fired);
}

#[test]
fn silences_cover_by_rule_kind_and_name_and_each_ends() {
    let (mut board, id) = one();
    let silenced = |board: &Board| state(board, id, 10) == AlertState::Silenced;
    let of = |rule: &str, kind: &str, object: &str| {
        let some = |text: &str| Some(text.to_owned()).filter(|it| !it.is_empty());
        WantedSilence {
            rule: some(rule),
            kind: some(kind),
            object: some(object),
            ..silence(1)
        }
    };
    for (wanted, covers) in [
        (of("", "", ""), true),
        (of("lun_offline", "", ""), true),
        (of("lun_slow", "", ""), false),
        (of("", "lun", "vm01"), true),
        (of("", "pool", "vm01"), false),
        (of("", "", "vm*"), true),
        (of("", "", "vm"), false),
        (of("", "", "x*"), false),
    ] {
        let made = board.silence(wanted.clone(), "eve", at(9)).unwrap();
        assert_eq!(silenced(&board), covers, "{wanted:?}");
        let shown = board.silences(at(9).wall);
        assert_eq!((shown.len(), shown[0].silenced), (1, usize::from(covers)));
        board.end_silence(made).unwrap();
        assert!(!silenced(&board) && board.end_silence(made).is_err());
    }
    let no_end = WantedSilence::default();
    let past = WantedSilence {
        until: Some("2026-01-01T00:00:00.000Z".to_owned()),
        ..WantedSilence::default()
    };
    for bad in [
        no_end,
        past,
        silence(0),
        silence(100_000),
        of("no_rule", "", ""),
    ] {
        assert!(board.silence(bad.clone(), "eve", at(9)).is_err(), "{bad:?}");
    }
    // One alert: the newest says until when, and a wider one is not ended by the way.
    board.silence_alert(id, silence(1), "eve", at(9)).unwrap();
    board.silence_alert(id, silence(2), "eve", at(9)).unwrap();
    assert_eq!(board.silences(at(9).wall).len(), 1);
    board.unsilence_alert(id, at(9)).unwrap();
    assert!(!silenced(&board));
    let wide = board.silence(of("", "lun", ""), "eve", at(9)).unwrap();
    let problem = board.unsilence_alert(id, at(9)).unwrap_err();
    assert_eq!(problem.code, Code::InUse);
    assert!(problem.hint.contains(&wide.to_string()));
    board.take(at(4_000), vec![bad("lun_offline", "vm01")]);
    assert!(
        board.document().silences.is_empty(),
        "what has ended is not kept"
    );
}

#[test]
fn a_rule_that_is_switched_off_ends_its_alerts_and_only_its_own_bounds_can_be_set() {
    let mut board = board(0, 3_600);
    board.take(
        at(1),
        vec![bad("lun_offline", "a"), bad("scrub_findings", "a")],
    );
    let off = RuleSettings {
        enabled: Some(false),
        ..RuleSettings::default()
    };
    board.set_rule("lun_offline", off).unwrap();
    assert!(!board.rule("lun_offline").unwrap().enabled);
    let changes = board.take(at(2), vec![bad("scrub_findings", "a")]);
    assert_eq!(changes.len(), 1, "at once, whatever its time: {changes:?}");
    assert_eq!(board.firing().count(), 1);
    board
        .set_rule("lun_offline", RuleSettings::default())
        .unwrap();
    assert!(board.rule("lun_offline").unwrap().enabled);
    let bounds = |all: &[(&str, u64)]| RuleSettings {
        bounds: all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        ..RuleSettings::default()
    };
    let set = |board: &mut Board, id: &str, wanted| board.set_rule(id, wanted);
    for (id, bad, field) in [
        (
            "pool_filling",
            bounds(&[("above_percent", 101)]),
            "bounds.above_percent",
        ),
        (
            "pool_filling",
            bounds(&[("above_percent", 70)]),
            "bounds.below_percent",
        ),
        (
            "pool_filling",
            bounds(&[("abowe_percent", 70)]),
            "bounds.abowe_percent",
        ),
        ("lun_offline", settings(100_000, 0), "hold_seconds"),
        (
            "lun_slow",
            bounds(&[("clear_factor", 9)]),
            "bounds.clear_factor",
        ),
    ] {
        let problem = set(&mut board, id, bad).expect_err(field);
        assert_eq!(problem.fields[0].field, field);
    }
    assert_eq!(
        set(&mut board, "lun_of", settings(0, 0)).unwrap_err().code,
        Code::NotFound
    );
    set(&mut board, "pool_filling", bounds(&[("above_percent", 85)])).unwrap();
    let view = board.rule("pool_filling").unwrap();
    assert!(
        view.is_changed && view.condition.contains("85 %"),
        "{}",
        view.condition
    );
    let read = Document::read(&board.document().write()).unwrap();
    assert_eq!(Board::new(&read, at(3).wall).rules(), board.rules());
}

#[test]
fn what_another_version_or_a_crash_left_is_taken_as_far_as_it_goes() {
    let (board, id) = one();
    let mut document = board.document();
    document.firing[0].rule = "of_a_later_version".to_owned();
    document.next_id = 1;
    let board = Board::new(&document, at(9).wall);
    assert_eq!(board.firing().count(), 0);
    assert!(board.alert(id).unwrap().resolved.is_some());
    let mut board = board;
    board.set_rule("lun_offline", settings(0, 0)).unwrap();
    let changes = board.take(at(10), vec![bad("lun_offline", "x")]);
    assert_eq!(changes, [Change::Fired(id + 1)], "no number is used twice");
    for damaged in [
        "",
        "{}",
        "[]",
        "{\"schema\":2,\"next_id\":1}",
        "{\"schema\":1}",
    ] {
        assert!(Document::read(damaged.as_bytes()).is_err(), "{damaged}");
    }
    let text = board.document().write();
    for cut in [1, text.len() / 2, text.len() - 3] {
        assert!(Document::read(&text[..cut]).is_err());
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let mut board = board(0, 0);
    for round in 0..5 {
        let many = (0..6_000).map(|it| bad("lun_offline", &format!("{round}-{it}")));
        board.take(at(round * 2), many.collect());
        board.take(at(round * 2 + 1), Vec::new());
    }
    assert_eq!(board.document().resolved.len(), 2_000);
    let many = (0..30_000).map(|it| bad("lun_offline", &it.to_string()));
    board.take(at(100), many.collect());
    assert_eq!((board.firing().count(), board.left_out()), (20_000, 10_000));
    assert_eq!(rule("lun_offline").id, board.firing().next().unwrap().rule);
    assert_eq!(
        board.firing().next().unwrap().object,
        Object::new("lun", "0")
    );
}
