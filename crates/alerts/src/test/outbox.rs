//! What receivers get, against the rules of the outbox.

use super::{at, bad};
use crate::{
    Board, Document, Failure, Message, Moment, Outbox, Reason, Receiver, RuleSettings, Severity,
    WantedReceiver, WantedSilence,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

fn receiver(change: &serde_json::Value) -> Receiver {
    let mut value = json!({ "name": "r", "command": { "name": "c" } });
    for (name, it) in change.as_object().unwrap() {
        value[name] = it.clone();
    }
    let wanted: WantedReceiver = serde_json::from_value(value).unwrap();
    wanted.make().unwrap()
}

fn board() -> Board {
    let mut board = Board::new(&Document::default(), at(0).wall);
    let at_once = RuleSettings {
        hold_seconds: Some(0),
        clear_seconds: Some(0),
        ..RuleSettings::default()
    };
    board.set_rule("lun_offline", at_once).unwrap();
    board
}

fn poll(outbox: &mut Outbox, receiver: &Receiver, board: &Board, at: Moment) -> Option<Message> {
    outbox.poll(("san-a", receiver), board, at)
}

/// The reasons and objects of a message.
fn listed(message: &Message) -> Vec<(Reason, &str)> {
    let each = message.alerts.iter();
    each.map(|it| (it.reason, it.alert.object.as_str()))
        .collect()
}

#[test]
fn ten_thousand_alerts_are_one_message_that_lists_the_worst() {
    let (mut board, mut outbox, receiver) = (board(), Outbox::default(), receiver(&json!({})));
    let mut many: Vec<_> = (0..10_000)
        .map(|it| bad("lun_offline", &it.to_string()))
        .collect();
    for reading in many.iter_mut().take(9_990) {
        reading.severity = Severity::Warning;
    }
    board.take(at(0), many.clone());
    assert_eq!(
        poll(&mut outbox, &receiver, &board, at(0)),
        None,
        "more may come"
    );
    board.take(at(9), many.clone());
    assert_eq!(poll(&mut outbox, &receiver, &board, at(9)), None);
    let message = poll(&mut outbox, &receiver, &board, at(10)).unwrap();
    assert_eq!(
        (message.fired, message.alerts.len(), message.left_out),
        (10_000, 100, 9_900)
    );
    assert_eq!(message.severity, Severity::Critical);
    let critical = |it: &&crate::Notice| it.alert.severity == Severity::Critical;
    assert_eq!(message.alerts.iter().take(10).filter(critical).count(), 10);
    assert_eq!(
        message.text,
        "san-a: alerts: 10000 fired; first: 9990 is bad"
    );
    assert!(message.body().len() < 40_000 && serde_json::to_vec(&message).unwrap().len() < 100_000);
    assert!(message.body().contains("and 9900 more"));
    outbox.ended(Ok(()), at(11));
    for second in (12..3_600).step_by(60) {
        assert_eq!(poll(&mut outbox, &receiver, &board, at(second)), None);
    }
    board.take(at(3_600), Vec::new());
    poll(&mut outbox, &receiver, &board, at(3_601));
    let message = poll(&mut outbox, &receiver, &board, at(3_611)).unwrap();
    // Of all that were resolved, the board knows the last 2,000.
    assert_eq!((message.resolved, message.fired), (2_000, 0));
    assert!(
        message.text.starts_with("san-a: alerts: 2000 resolved"),
        "{}",
        message.text
    );
}

#[test]
fn a_receiver_that_was_away_gets_what_matters_when_it_is_back() {
    let (mut board, mut outbox, receiver) = (board(), Outbox::default(), receiver(&json!({})));
    let failed = || Err(Failure("no answer".to_owned()));
    board.take(
        at(0),
        vec![bad("lun_offline", "short"), bad("lun_offline", "long")],
    );
    let mut attempts = Vec::new();
    for second in 0..7_200 {
        if second == 600 {
            board.take(
                at(600),
                vec![bad("lun_offline", "long"), bad("lun_offline", "late")],
            );
        }
        if poll(&mut outbox, &receiver, &board, at(second)).is_some() {
            attempts.push(second);
            outbox.ended(failed(), at(second));
        }
    }
    let gaps: Vec<u64> = attempts.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(
        gaps[..8],
        [10, 20, 40, 80, 160, 320, 640, 900],
        "later and later"
    );
    assert!(gaps[8..].iter().all(|gap| *gap == 900));
    assert_eq!(
        outbox.delivery().failing,
        u32::try_from(attempts.len()).unwrap()
    );
    assert_eq!(
        outbox.delivery().last_failure.as_ref().unwrap().1,
        "no answer"
    );
    outbox.hurry();
    let message = poll(&mut outbox, &receiver, &board, at(7_200)).unwrap();
    let expected = [
        (Reason::Fired, "long"),
        (Reason::Fired, "late"),
        (Reason::Resolved, "short"),
    ];
    assert_eq!(listed(&message), expected);
    assert_eq!(
        poll(&mut outbox, &receiver, &board, at(7_201)),
        None,
        "one at a time"
    );
    assert!(outbox.ended(Ok(()), at(7_202)));
    assert_eq!(poll(&mut outbox, &receiver, &board, at(7_300)), None);
    assert_eq!(outbox.delivery().failing, 0);
}

#[test]
fn reminders_come_for_what_nobody_has_acknowledged_or_silenced() {
    let (mut board, mut outbox) = (board(), Outbox::default());
    let receiver = receiver(&json!({ "remind_hours": 2, "group_seconds": 0 }));
    let all = || ["a", "b", "c"].map(|it| bad("lun_offline", it)).to_vec();
    board.take(at(0), all());
    let hour = |hours: u64| at(hours * 3_600);
    assert_eq!(
        poll(&mut outbox, &receiver, &board, at(0)).unwrap().fired,
        3
    );
    outbox.ended(Ok(()), at(0));
    assert_eq!(poll(&mut outbox, &receiver, &board, hour(1)), None);
    let id = |board: &Board, name: &str| {
        let mut firing = board.firing();
        firing.find(|it| it.object.name == name).unwrap().id
    };
    let (a, b) = (id(&board, "a"), id(&board, "b"));
    board.acknowledge(a, "eve", "", hour(1)).unwrap();
    let wanted = WantedSilence {
        hours: Some(3),
        ..WantedSilence::default()
    };
    board.silence_alert(b, wanted, "eve", hour(1)).unwrap();
    let message = poll(&mut outbox, &receiver, &board, hour(2)).unwrap();
    assert_eq!(listed(&message), [(Reason::Reminder, "c")]);
    outbox.ended(Ok(()), hour(2));
    // The silence is over.
    let message = poll(&mut outbox, &receiver, &board, hour(4)).unwrap();
    assert_eq!(
        listed(&message),
        [(Reason::Reminder, "b"), (Reason::Reminder, "c")]
    );
    outbox.ended(Ok(()), hour(4));
    // A restart forgets nothing of it.
    let sent = json!(outbox.sent());
    let mut outbox = Outbox::new(serde_json::from_value(sent).unwrap());
    assert_eq!(poll(&mut outbox, &receiver, &board, hour(5)), None);
    board.take(hour(5), Vec::new());
    let message = poll(&mut outbox, &receiver, &board, hour(5)).unwrap();
    assert_eq!(message.resolved, 3, "also of what was acknowledged");
}

#[test]
fn a_receiver_gets_its_own_severities_and_rules_and_no_end_where_it_wants_none() {
    let mut board = board();
    let mut warning = bad("lun_offline", "mild");
    warning.severity = Severity::Warning;
    board.take(
        at(0),
        vec![
            warning.clone(),
            bad("lun_offline", "hard"),
            bad("scrub_findings", "x"),
        ],
    );
    let get = |change: serde_json::Value, board: &Board| {
        let (mut outbox, receiver) = (Outbox::default(), receiver(&change));
        let first = poll(&mut outbox, &receiver, board, at(100));
        let message = first.or_else(|| poll(&mut outbox, &receiver, board, at(200)));
        outbox.ended(Ok(()), at(200));
        (message.map(|it| it.fired), outbox, receiver)
    };
    assert_eq!(get(json!({}), &board).0, Some(3));
    assert_eq!(get(json!({ "least": "critical" }), &board).0, Some(2));
    assert_eq!(
        get(json!({ "rules": ["scrub_findings"] }), &board).0,
        Some(1)
    );
    assert_eq!(get(json!({ "enabled": false }), &board).0, None);
    let (_, mut outbox, receiver) = get(json!({ "resolved": false, "least": "critical" }), &board);
    // It becomes worse.
    board.take(at(300), vec![bad("lun_offline", "mild")]);
    poll(&mut outbox, &receiver, &board, at(300));
    let message = poll(&mut outbox, &receiver, &board, at(310)).unwrap();
    assert_eq!(listed(&message), [(Reason::Fired, "mild")]);
    outbox.ended(Ok(()), at(310));
    board.take(at(400), Vec::new());
    assert_eq!(poll(&mut outbox, &receiver, &board, at(500)), None);
    assert!(outbox.sent().is_empty());
}

#[test]
fn names_and_reasons_that_others_choose_begin_no_line_and_hide_nothing() {
    let mut board = board();
    let mut hostile = bad("lun_offline", "x");
    hostile.cause = format!(
        "a\r\nBcc: you\u{202e}\u{0}\u{7}<b>{}",
        "long ".repeat(1_000)
    );
    board.take(at(0), vec![hostile]);
    let (mut outbox, receiver) = (Outbox::default(), receiver(&json!({ "group_seconds": 0 })));
    let message = poll(&mut outbox, &receiver, &board, at(1)).unwrap();
    let subject = message.subject();
    assert!(!subject.contains(['\r', '\n', '\u{202e}', '\u{0}']) && subject.len() < 200);
    assert!(!message.body().contains("\nBcc") && message.body().lines().all(|it| it.len() < 500));
    assert_eq!(subject.get(..16), Some("[san-a] critical"));
}

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    /// These objects are bad, after so many seconds.
    Said(BTreeSet<u8>, u64),
    Poll(u64),
    End(bool),
    Acknowledge(u8),
    Silence(u8, u64),
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        4 => (prop::collection::btree_set(0..4_u8, 0..4), 0..400_u64).prop_map(|(bad, after)| Event::Said(bad, after)),
        6 => (0..4_000_u64).prop_map(Event::Poll),
        6 => prop::bool::weighted(0.6).prop_map(Event::End),
        1 => (0..4_u8).prop_map(Event::Acknowledge),
        1 => (0..4_u8, 1..3_u64).prop_map(|(object, hours)| Event::Silence(object, hours)),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec(one, 1..150)
}

proptest! {
    #[test]
    fn each_alert_is_sent_as_firing_then_in_reminders_then_once_as_over_and_none_is_lost(
        events in events(), group in 0..60_u64,
    ) {
        let mut board = board();
        let receiver = receiver(&json!({ "remind_hours": 1, "group_seconds": group }));
        let mut outbox = Outbox::default();
        // What came of each alert, as far as messages were taken.
        let mut got: BTreeMap<u64, Vec<Reason>> = BTreeMap::new();
        let mut under_way: Option<Message> = None;
        let mut silenced: BTreeSet<u64> = BTreeSet::new();
        let (mut now, mut bad_now) = (0, BTreeSet::new());
        let readings = |bad_now: &BTreeSet<u8>| bad_now.iter().map(|it| bad("lun_offline", &it.to_string())).collect();
        let id_of = |board: &Board, object: u8| {
            let mut firing = board.firing();
            firing.find(|it| it.object.name == object.to_string()).map(|it| it.id)
        };
        let take = |message: Option<Message>, got: &mut BTreeMap<u64, Vec<Reason>>| {
            for notice in message.into_iter().flat_map(|it| it.alerts) {
                got.entry(notice.alert.id).or_default().push(notice.reason);
            }
        };
        for event in events {
            match event {
                Event::Said(these, after) => {
                    now += after;
                    bad_now = these;
                    board.take(at(now), readings(&bad_now));
                }
                Event::Poll(after) => {
                    now += after;
                    if let Some(message) = outbox.poll(("n", &receiver), &board, at(now)) {
                        prop_assert!(under_way.is_none(), "one at a time");
                        for notice in &message.alerts {
                            let alert = board.alert(notice.alert.id).unwrap();
                            let silent = board.silence_of(alert, at(now).wall).is_some();
                            prop_assert!(!silent || notice.reason == Reason::Resolved);
                            let quiet = alert.acknowledged.is_some() && notice.reason == Reason::Reminder;
                            prop_assert!(!quiet, "no reminder of what was acknowledged");
                        }
                        under_way = Some(message);
                    }
                }
                Event::End(well) => {
                    let message = under_way.take();
                    let was = message.is_some();
                    let changed = outbox.ended(if well { Ok(()) } else { Err(Failure(String::new())) }, at(now));
                    prop_assert_eq!(changed, was && well);
                    if well {
                        take(message, &mut got);
                    }
                }
                Event::Acknowledge(object) => {
                    if let Some(id) = id_of(&board, object) {
                        board.acknowledge(id, "eve", "", at(now)).unwrap();
                    }
                }
                Event::Silence(object, hours) => {
                    if let Some(id) = id_of(&board, object) {
                        let wanted = WantedSilence { hours: Some(hours), ..WantedSilence::default() };
                        board.silence_alert(id, wanted, "eve", at(now)).unwrap();
                        silenced.extend(board.firing().map(|it| it.id));
                    }
                }
                Event::Restart => {
                    // A message that was under way may have been taken or not.
                    under_way = None;
                    outbox = Outbox::new(outbox.sent().clone());
                    board = Board::new(&board.document(), at(now).wall);
                }
            }
        }
        // All is well for a long time, and everything arrives.
        drop(under_way.take());
        outbox.ended(Err(Failure(String::new())), at(now));
        now += 5 * 3_600;
        let firing: Vec<u64> = { board.take(at(now), readings(&bad_now)); board.firing().map(|it| it.id).collect() };
        for _ in 0..6 {
            now += 1_000;
            if let Some(message) = outbox.poll(("n", &receiver), &board, at(now)) {
                outbox.ended(Ok(()), at(now));
                take(Some(message), &mut got);
            }
        }
        for id in firing {
            prop_assert!(got.get(&id).is_some_and(|it| it[0] == Reason::Fired), "{id} was lost: {got:?}");
        }
        board.take(at(now), Vec::new());
        for _ in 0..3 {
            now += 1_000;
            if let Some(message) = outbox.poll(("n", &receiver), &board, at(now)) {
                outbox.ended(Ok(()), at(now));
                take(Some(message), &mut got);
            }
        }
        for (id, reasons) in &got {
            let over = reasons.iter().filter(|it| **it == Reason::Resolved).count();
            prop_assert_eq!(over, 1, "{}: {:?}", id, reasons);
            prop_assert_eq!(reasons.last(), Some(&Reason::Resolved));
            let fired = reasons.iter().filter(|it| **it == Reason::Fired).count();
            prop_assert!(fired == 1 && reasons[0] == Reason::Fired || reasons.len() == 1, "{reasons:?}");
        }
    }
}
