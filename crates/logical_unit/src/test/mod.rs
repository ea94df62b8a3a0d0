//! The promises of the task set, on four cores, with a backend that hangs.

mod aborted_by_others;
mod behind_a_function;
mod bench;
mod copies;
mod forward;
mod groups;
mod stored;

use crate::{Attribute, LogicalUnit, UnitAttention};
use bench::{Bench, compare_and_write, filled, read_10, write_10};
use scsi::{Sense, SenseKey, Status};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volume::{OpenError, OpenErrorKind};

const SOON: Duration = Duration::from_millis(50);

#[test]
fn what_was_written_on_one_core_is_read_on_another() {
    let bench = Bench::new(1);
    let (writer, reader) = (bench.nexus(0, "a"), bench.nexus(3, "b"));
    let wrote = bench.start(
        &writer,
        &write_10(7, 2),
        Attribute::Simple,
        1,
        &filled(0x5a, 2),
    );
    bench.settle(SOON);
    assert_eq!(wrote.response().status, Status::Good);
    let read = bench.start(&reader, &read_10(7, 2), Attribute::Simple, 1, &[]);
    bench.settle(SOON);
    assert_eq!(read.response().data_in.to_vec(), filled(0x5a, 2));
}

// spec: SBC-3 5.2 "COMPARE AND WRITE command".
#[test]
fn hosts_that_compete_by_compare_and_write_never_both_win() {
    for seed in 0..40 {
        let bench = Bench::new(seed);
        let slots: Vec<_> = (0..8u8)
            .map(|host| {
                let nexus = bench.nexus(u16::from(host % 4), &format!("host{host}"));
                let data = [filled(0, 1), filled(host + 1, 1)].concat();
                (
                    bench.start(&nexus, &compare_and_write(9), Attribute::Simple, 1, &data),
                    nexus,
                )
            })
            .collect();
        bench.settle(Duration::from_secs(1));
        let won = slots
            .iter()
            .filter(|(slot, _)| slot.response().status == Status::Good)
            .count();
        assert_eq!(won, 1, "seed {seed}");
    }
}

#[test]
fn an_ordered_write_comes_after_older_and_before_newer_ones() {
    for seed in 0..40 {
        let bench = Bench::new(seed);
        let nexus = bench.nexus(2, "a");
        let all: Vec<_> = (1..=9u8)
            .map(|byte| {
                let attribute = if byte == 5 {
                    Attribute::Ordered
                } else {
                    Attribute::Simple
                };
                // Every write but the ordered one goes to its own block and to block 0 as well.
                let block = if byte < 5 { 0 } else { u32::from(byte == 5) };
                bench.start(
                    &nexus,
                    &write_10(block, 2),
                    attribute,
                    u32::from(byte),
                    &filled(byte, 2),
                )
            })
            .collect();
        bench.settle(Duration::from_secs(1));
        assert!(
            all.iter()
                .all(|slot| slot.response().status == Status::Good)
        );
        // Block 0 saw 1-4 (in any order), then 6-9; block 1 saw 1-4, then 5, then 6-9: never 5 or
        // less.
        assert!(
            bench.medium.first_byte(0) > 5 && bench.medium.first_byte(1) > 5,
            "seed {seed}"
        );
        assert_eq!(bench.medium.first_byte(2), 5);
    }
}

#[test]
fn an_abort_is_answered_in_time_and_the_old_write_never_lands_on_a_newer_one() {
    for seed in 0..20 {
        let bench = Bench::new(seed);
        let (host, other) = (bench.nexus(0, "a"), bench.nexus(2, "b"));
        bench.medium.hang();
        let old = bench.start(&host, &write_10(4, 4), Attribute::Simple, 1, &filled(1, 4));
        bench.settle(SOON);
        let before = bench.node.core(0).now();
        let aborting = Rc::clone(&host);
        bench.run(async move { aborting.abort_task(1).await });
        assert!(bench.node.core(0).now().since(before) < Duration::from_secs(2));
        // A newer write and a read of the same blocks wait; the rest of the unit goes on.
        let newer = bench.start(&other, &write_10(6, 1), Attribute::Simple, 2, &filled(2, 1));
        let read = bench.start(&other, &read_10(5, 1), Attribute::Simple, 3, &[]);
        let given = bench.medium.given();
        bench.settle(Duration::from_secs(30));
        assert!(!newer.ended() && !read.ended() && !old.ended());
        assert_eq!(
            bench.medium.given(),
            given,
            "nothing that overlaps was handed down"
        );
        bench.medium.release();
        bench.settle(SOON);
        assert_eq!(newer.response().status, Status::Good);
        assert!(old.is_silent());
        assert_eq!(bench.medium.first_byte(6), 2, "seed {seed}");
    }
}

#[test]
fn a_hung_write_does_not_hold_up_other_blocks_or_a_reset() {
    let bench = Bench::new(3);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
    bench.medium.hang();
    let hung = bench.start(&host, &write_10(0, 1), Attribute::Simple, 1, &filled(1, 1));
    bench.settle(SOON);
    let before = bench.node.core(0).now();
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(3));
    let asks = other.port().clone();
    bench.run(async move {
        LogicalUnit::reset(&unit, &core, &asks, UnitAttention::LogicalUnitReset).await;
    });
    assert!(bench.node.core(0).now().since(before) < Duration::from_secs(2));
    let attention = bench.start(&other, &[0; 6], Attribute::Simple, 2, &[]);
    bench.settle(SOON);
    assert_eq!(
        attention.response().status,
        Status::CheckCondition,
        "the reset is reported"
    );
    let reserve = bench.start(
        &other,
        &compare_and_write(9),
        Attribute::Simple,
        3,
        &filled(0, 2),
    );
    bench.settle(SOON);
    assert!(!reserve.ended(), "the backend hangs for this one, too");
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(reserve.response().status, Status::Good);
    assert_eq!(hung.response().status, Status::TaskAborted);
}

#[test]
fn a_task_that_was_aborted_before_its_turn_is_never_handed_down() {
    let bench = Bench::new(4);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(2, "b"));
    bench.medium.hang();
    let first = bench.start(
        &host,
        &compare_and_write(4),
        Attribute::Simple,
        1,
        &filled(0, 2),
    );
    bench.settle(SOON);
    let waiting = bench.start(&other, &write_10(4, 1), Attribute::Simple, 2, &filled(9, 1));
    bench.settle(SOON);
    let given = bench.medium.given();
    let aborting = Rc::clone(&other);
    bench.run(async move { aborting.abort_task(2).await });
    assert!(waiting.is_silent());
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(first.response().status, Status::Good);
    assert_eq!(
        bench.medium.given(),
        given + 1,
        "only the write half of the compare and write"
    );
    assert_eq!(bench.medium.first_byte(4), 0);
}

#[test]
fn closing_a_nexus_leaves_nothing_that_can_still_write() {
    let bench = Bench::new(5);
    let host = bench.nexus(0, "a");
    bench.medium.hang();
    let old = bench.start(&host, &write_10(3, 1), Attribute::Simple, 1, &filled(7, 1));
    bench.settle(SOON);
    let closing = Rc::clone(&host);
    bench.run(async move { closing.close(crate::Closing::Lost).await });
    let again = bench.nexus(3, "a");
    let newer = bench.start(&again, &write_10(3, 1), Attribute::Simple, 1, &filled(8, 1));
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(newer.response().status, Status::Good);
    assert!(old.is_silent());
    assert_eq!(bench.medium.first_byte(3), 8);
}

#[test]
fn a_task_aborted_between_its_start_and_its_first_step_leaves_the_task_set_once() {
    for seed in 0..30 {
        let bench = Bench::new(seed);
        let host = bench.nexus(0, "a");
        let other = bench.nexus(1, "b");
        let data = [filled(0, 1), filled(1, 1)].concat();
        // Started, but its core has not run it yet.
        let started = bench.start(&host, &compare_and_write(1), Attribute::Simple, 1, &data);
        let aborting = Rc::clone(&host);
        bench.run(async move { aborting.abort_task(1).await });
        bench.settle(SOON);
        assert!(started.ended());
        assert_eq!(host.unit().live_tasks(), 0);
        let next = bench.start(&other, &compare_and_write(1), Attribute::Simple, 2, &data);
        bench.settle(SOON);
        assert_eq!(next.response().status, Status::Good);
        assert_eq!(other.unit().live_tasks(), 0);
    }
}

#[test]
fn a_resize_is_adopted_by_every_core_and_every_host_is_reported() {
    let bench = Bench::new(8);
    let nexuses: Vec<_> = (0..4u16)
        .map(|core| bench.nexus(core, &format!("host{core}")))
        .collect();
    let beyond = u32::try_from(bench::BLOCKS).unwrap();
    let early = bench.start(&nexuses[0], &read_10(beyond, 1), Attribute::Simple, 1, &[]);
    bench.settle(SOON);
    assert_eq!(early.response().status, Status::CheckCondition);
    bench.medium.grow(bench::BLOCKS + 8);
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(2));
    bench.run(async move { unit.reshape(&core).await }).unwrap();
    for nexus in &nexuses {
        let reported = bench.start(nexus, &[0; 6], Attribute::Simple, 2, &[]);
        let read = bench.start(nexus, &read_10(beyond, 1), Attribute::Simple, 3, &[]);
        bench.settle(SOON);
        let sense = scsi::Sense::parse(&reported.response().sense.unwrap().to_vec()).unwrap();
        assert_eq!(sense.code, scsi::AdditionalSense::CAPACITY_DATA_HAS_CHANGED);
        assert_eq!(read.response().status, Status::Good);
    }
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    let endings = bench.run(async move { unit.endings(&core).await });
    let out_of_range = endings
        .iter()
        .find(|(ending, _)| ending.sense == Some((5, 0x21, 0)));
    assert_eq!(out_of_range.map(|(_, count)| *count), Some(1));
}

#[test]
fn a_command_that_waits_while_its_blocks_are_cut_is_out_of_range() {
    let bench = Bench::new(9);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
    bench.medium.hang();
    let first = bench.start(&host, &write_10(0, 1), Attribute::Simple, 1, &filled(1, 1));
    bench.settle(SOON);
    bench.medium.grow(8);
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(2));
    let reshaped = Rc::new(Cell::new(false));
    let reported = Rc::clone(&reshaped);
    bench.node.core(2).spawn(Box::pin(async move {
        unit.reshape(&core).await.unwrap();
        reported.set(true);
    }));
    bench.settle(SOON);
    assert!(!reshaped.get(), "it waits for the first write");
    let waiting = [
        bench.start(
            &other,
            &write_10(12, 1),
            Attribute::Simple,
            2,
            &filled(2, 1),
        ),
        bench.start(&other, &read_10(12, 1), Attribute::Simple, 3, &[]),
    ];
    bench.settle(SOON);
    assert!(waiting.iter().all(|command| !command.ended()), "held");
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(first.response().status, Status::Good);
    assert!(reshaped.get());
    for command in waiting {
        let response = command.response();
        assert_eq!(response.status, Status::CheckCondition);
        let sense = scsi::Sense::parse(&response.sense.unwrap().to_vec()).unwrap();
        assert_eq!(
            sense.code,
            scsi::AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE
        );
    }
}

#[test]
fn write_same_up_to_the_last_block_keeps_its_limit_when_the_unit_grows_before_its_data_comes() {
    let bench = Bench::new(10);
    let host = bench.nexus(0, "a");
    // WRITE SAME (16) of no blocks from block 8 on.
    let mut cdb = [0; 16];
    (cdb[0], cdb[9]) = (0x93, 8);
    let write = |tag| bench::begin(&host, &cdb, Attribute::Simple, tag, &filled(7, 1));
    let [early, late] = [write(1), write(2)];
    let outcome = bench.run(early);
    let crate::Outcome::Respond(response) = outcome else {
        panic!("it is answered")
    };
    assert_eq!(response.status, Status::Good);
    assert_eq!(bench.medium.first_byte(bench::BLOCKS - 1), 7);
    bench.medium.grow((1 << 15) + 9);
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(2));
    bench.run(async move { unit.reshape(&core).await }).unwrap();
    let given = bench.medium.given();
    let crate::Outcome::Respond(response) = bench.run(late) else {
        panic!("it is answered")
    };
    assert_eq!(response.status, Status::CheckCondition);
    let sense = scsi::Sense::parse(&response.sense.unwrap().to_vec()).unwrap();
    assert_eq!(sense.code, scsi::AdditionalSense::INVALID_FIELD_IN_CDB);
    assert_eq!(bench.medium.given(), given, "nothing is written");
}

/// SYNCHRONIZE CACHE (10), START STOP UNIT (stop): both with IMMED.
const IMMEDIATE: [[u8; 10]; 2] = [
    [0x35, 2, 0, 0, 0, 0, 0, 0, 0, 0],
    [0x1b, 1, 0, 0, 0, 0, 0, 0, 0, 0],
];

// spec: SBC-3 5.21 "SYNCHRONIZE CACHE (10) command".
#[test]
fn synchronizations_that_nobody_waits_for_do_not_pile_up() {
    let bench = Bench::new(11);
    let host = bench.nexus(0, "a");
    bench.medium.hang();
    let given = bench.medium.given();
    for tag in 0..100 {
        let cdb = IMMEDIATE[(tag % 2) as usize];
        let flush = bench.start(&host, &cdb, Attribute::Simple, 1 + tag, &[]);
        bench.settle(SOON);
        assert_eq!(flush.response().status, Status::Good, "answered at once");
    }
    assert_eq!(bench.medium.given() - given, 1, "one is in flight");
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(
        bench.medium.flushes(),
        2,
        "and one that began after the last was asked for"
    );
    let again = bench.start(&host, &IMMEDIATE[0], Attribute::Simple, 200, &[]);
    bench.settle(SOON);
    assert_eq!(again.response().status, Status::Good);
    assert_eq!(bench.medium.flushes(), 3);
}

/// MODE SENSE (6) of the caching page: its WCE.
fn write_cache(bench: &Bench, nexus: &Rc<crate::Nexus>, tag: u32) -> bool {
    let sense = bench.start(nexus, &[0x1a, 8, 8, 0, 64, 0], Attribute::Simple, tag, &[]);
    bench.settle(SOON);
    // The header has four bytes, and WCE is bit 2 of the page's third.
    sense.response().data_in.to_vec()[6] & 4 != 0
}

#[test]
fn a_cache_that_a_host_switched_off_for_good_is_off_when_the_disk_comes_after_the_start() {
    for (switched_off, volatile) in [(true, true), (false, true), (true, false), (false, false)] {
        let store: Arc<dyn crate::UnitStore> =
            Arc::new(crate::DirectoryStore::new("/state/units".into()));
        let mut bench = Bench::with_store(29, Arc::clone(&store));
        let host = bench.nexus(0, "a");
        if switched_off {
            let sense = bench.start(&host, &[0x1a, 8, 8, 0, 64, 0], Attribute::Simple, 1, &[]);
            bench.settle(SOON);
            let mut list = sense.response().data_in.to_vec();
            (list[0], list[2]) = (0, 0);
            list[4] &= 0x3f;
            list[6] &= !4;
            let len = u8::try_from(list.len()).unwrap();
            // PF and SP.
            let cdb = [0x15, 0x11, 0, 0, len, 0];
            let select = bench.start(&host, &cdb, Attribute::Simple, 2, &list);
            bench.settle(SOON);
            assert_eq!(select.response().status, Status::Good);
        }
        bench.medium.set_volatile(volatile);
        bench.starts_without(store);
        let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
        let medium = Arc::new(bench.medium.clone());
        let resumed = bench.run(async move { unit.resume(&core, medium).await });
        assert_eq!(resumed, Ok(()));
        let is_on = write_cache(&bench, &bench.nexus(1, "a"), 1);
        assert_eq!(
            is_on,
            volatile && !switched_off,
            "{switched_off} {volatile}"
        );
    }
}

// spec: SPC-4 5.14 "Unit attention condition", SBC-3 6.5.5 "Caching mode page".
#[test]
fn a_change_of_the_cache_is_flushed_adopted_by_every_core_and_reported_to_every_host() {
    let store: Arc<dyn crate::UnitStore> =
        Arc::new(crate::DirectoryStore::new("/state/units".into()));
    let bench = Bench::with_store(11, Arc::clone(&store));
    let nexuses: Vec<_> = (0..4u16)
        .map(|core| bench.nexus(core, &format!("host{core}")))
        .collect();
    for nexus in &nexuses {
        assert!(write_cache(&bench, nexus, 1));
    }
    for (round, volatile) in [false, true, false].into_iter().enumerate() {
        bench.medium.set_volatile(volatile);
        let before = bench.medium.flushes();
        let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(3));
        bench
            .run(async move { unit.adopt_cache(&core).await })
            .unwrap();
        let flushed = bench.medium.flushes() > before;
        assert_eq!(
            flushed, !volatile,
            "what was acknowledged before is made safe"
        );
        let tag = 2 + 4 * u32::try_from(round).unwrap();
        for nexus in &nexuses {
            let reported = bench.start(nexus, &[0; 6], Attribute::Simple, tag, &[]);
            bench.settle(SOON);
            let sense = Sense::parse(&reported.response().sense.unwrap().to_vec()).unwrap();
            assert_eq!(sense.code, scsi::AdditionalSense::MODE_PARAMETERS_CHANGED);
            assert_eq!(write_cache(&bench, nexus, tag + 1), volatile);
        }
    }
    let Bench {
        world,
        node,
        medium,
        ..
    } = bench;
    node.crash();
    node.restart();
    let again = Bench::bring_up(world, node, medium, store);
    assert!(!write_cache(&again, &again.nexus(1, "a"), 1));
}

// spec: SPC-4 5.13.5 "Preserving persistent reservations and registrations".
#[test]
fn a_reservation_shuts_out_writers_on_every_core_and_survives_a_restart() {
    let store: Arc<dyn crate::UnitStore> =
        Arc::new(crate::DirectoryStore::new("/state/units".into()));
    let bench = Bench::with_store(9, Arc::clone(&store));
    let (holder, other) = (bench.nexus(0, "a"), bench.nexus(3, "b"));
    // REGISTER AND IGNORE EXISTING KEY with APTPL, then RESERVE Write Exclusive.
    let mut register = [0; 24];
    register[15] = 7;
    register[20] = 1;
    let mut reserve = [0; 24];
    reserve[7] = 7;
    for (tag, action, kind, list) in [(1, 6, 0, register), (2, 1, 1, reserve)] {
        let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
        let done = bench.start(&holder, &cdb, Attribute::Simple, tag, &list);
        bench.settle(SOON);
        assert_eq!(done.response().status, Status::Good);
    }
    let refused = bench.start(&other, &write_10(0, 1), Attribute::Simple, 1, &filled(1, 1));
    bench.settle(SOON);
    assert_eq!(refused.response().status, Status::ReservationConflict);
    let Bench {
        world,
        node,
        medium,
        ..
    } = bench;
    node.crash();
    node.restart();
    let again = Bench::bring_up(world, node, medium, store);
    let (holder, other) = (again.nexus(2, "a"), again.nexus(1, "b"));
    let refused = again.start(&other, &write_10(0, 1), Attribute::Simple, 1, &filled(1, 1));
    let allowed = again.start(
        &holder,
        &write_10(0, 1),
        Attribute::Simple,
        2,
        &filled(2, 1),
    );
    again.settle(SOON);
    assert_eq!(refused.response().status, Status::ReservationConflict);
    assert_eq!(allowed.response().status, Status::Good);
}

#[test]
fn an_ordered_task_stops_even_commands_that_only_report_something_but_never_inquiry() {
    let bench = Bench::new(10);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(0, "b"));
    bench.medium.hang();
    let older = bench.start(&host, &write_10(0, 1), Attribute::Simple, 1, &filled(1, 1));
    bench.settle(SOON);
    let ordered = bench.start(&host, &[0; 6], Attribute::Ordered, 2, &[]);
    let newer = bench.start(&other, &[0; 6], Attribute::Simple, 3, &[]);
    let inquiry = bench.start(&other, &[0x12, 0, 0, 0, 36, 0], Attribute::Simple, 4, &[]);
    bench.settle(SOON);
    assert!(inquiry.ended());
    assert!(!older.ended() && !ordered.ended() && !newer.ended());
    bench.medium.release();
    bench.settle(SOON);
    assert!(
        [older, ordered, newer]
            .iter()
            .all(|slot| slot.response().status == Status::Good)
    );
}

#[test]
fn a_unit_whose_backing_is_gone_says_not_ready_and_still_reports_who_it_is() {
    let bench = Bench::new(11);
    let host = bench.nexus(1, "a");
    let set = |offline: Option<OpenError>| {
        let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
        bench.run(async move { unit.publish_offline(&core, offline).await });
    };
    let run = |cdb: &[u8], tag| {
        let slot = bench.start(&host, cdb, Attribute::Simple, tag, &[]);
        bench.settle(SOON);
        slot.response()
    };
    set(Some(OpenError {
        kind: OpenErrorKind::Missing,
        cause: "its disk is gone".to_owned(),
        next_step: "bring it back".to_owned(),
    }));
    let not_ready = |bytes: &[u8]| {
        let sense = Sense::parse(bytes).unwrap();
        assert_eq!((sense.key, sense.code.asc), (SenseKey::NotReady, 0x04));
    };
    let read_capacity = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (tag, cdb) in [(1, &[0; 6][..]), (2, &read_10(0, 1)), (3, &read_capacity)] {
        let response = run(cdb, tag);
        assert_eq!(response.status, Status::CheckCondition, "{cdb:?}");
        not_ready(&response.sense.unwrap().to_vec());
    }
    let reported = run(&[0x03, 0, 0, 0, 252, 0], 4);
    assert_eq!(reported.status, Status::Good);
    not_ready(&reported.data_in.to_vec());
    // INQUIRY, page 83h, MODE SENSE, RECEIVE DIAGNOSTIC RESULTS.
    let asked = [
        [0x12, 0, 0, 0, 36, 0],
        [0x12, 1, 0x83, 0, 255, 0],
        [0x1a, 8, 0x3f, 0, 255, 0],
        [0x1c, 1, 0, 0, 255, 0],
    ];
    for (tag, cdb) in (5..).zip(asked) {
        assert_eq!(run(&cdb, tag).status, Status::Good, "{cdb:?}");
    }
    set(None);
    assert_eq!(run(&[0; 6], 9).status, Status::Good);
    let reported = run(&[0x03, 0, 0, 0, 252, 0], 10);
    assert_eq!(
        Sense::parse(&reported.data_in.to_vec()).unwrap().key,
        SenseKey::NoSense
    );
}

// spec: SPC-4 6.28 "RECEIVE DIAGNOSTIC RESULTS command".
#[test]
fn the_list_of_diagnostic_pages_is_cut_to_its_allocation_and_no_other_page_is_given() {
    let bench = Bench::new(14);
    let host = bench.nexus(0, "a");
    let run = |cdb: [u8; 6], tag| {
        let slot = bench.start(&host, &cdb, Attribute::Simple, tag, &[]);
        bench.settle(SOON);
        slot.response()
    };
    let list = [0, 0, 0, 1, 0];
    for (tag, allocation) in (1..).zip([255, 5, 4, 0]) {
        let response = run([0x1c, 1, 0, 0, allocation, 0], tag);
        assert_eq!(response.status, Status::Good);
        let most = list.len().min(allocation.into());
        assert_eq!(response.data_in.to_vec(), list[..most]);
    }
    assert_eq!(run([0x1c, 0, 0, 0, 255, 0], 9).data_in.to_vec(), list);
    let refused = run([0x1c, 1, 0x40, 0, 255, 0], 10);
    assert_eq!(refused.status, Status::CheckCondition);
    let sense = Sense::parse(&refused.sense.unwrap().to_vec()).unwrap();
    assert_eq!(sense, Sense::invalid_field_in_cdb(2, None));
}

#[test]
fn a_volume_that_goes_and_comes_back_larger_leaves_sessions_and_is_reported_to_them() {
    let bench = Bench::new(31);
    let host = bench.nexus(2, "a");
    let run = |cdb: &[u8], tag, data: &[u8]| {
        let slot = bench.start(&host, cdb, Attribute::Simple, tag, data);
        bench.settle(SOON);
        slot.response()
    };
    let wrote = run(&write_10(7, 2), 1, &filled(0x5a, 2));
    assert_eq!(wrote.status, Status::Good);
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    bench.run(async move {
        let why = OpenError {
            kind: OpenErrorKind::Missing,
            cause: "its journal is gone".to_owned(),
            next_step: "bring it back".to_owned(),
        };
        unit.suspend(&core, why).await;
    });
    let refused = run(&read_10(7, 2), 2, &[]).sense.unwrap().to_vec();
    assert_eq!(Sense::parse(&refused).unwrap().key, SenseKey::NotReady);
    bench.medium.grow(4096);
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    let medium = Arc::new(bench.medium.clone());
    let resumed = bench.run(async move { unit.resume(&core, medium).await });
    assert_eq!(resumed, Ok(()));
    let reported = run(&[0; 6], 3, &[]).sense.unwrap().to_vec();
    let reported = Sense::parse(&reported).unwrap();
    // CAPACITY DATA HAS CHANGED.
    assert_eq!(reported.key, SenseKey::UnitAttention);
    assert_eq!((reported.code.asc, reported.code.ascq), (0x2a, 0x09));
    let read = run(&read_10(7, 2), 4, &[]);
    assert_eq!(read.data_in.to_vec(), filled(0x5a, 2));
}

#[test]
fn stopping_the_unit_writes_its_cache_first_unless_reported_not_to() {
    let bench = Bench::new(12);
    let host = bench.nexus(0, "a");
    // Byte 4, and whether the medium is asked to flush: stop, stop with NO_FLUSH, start, standby,
    // active.
    for (tag, (byte, flushes)) in (1..).zip([
        (0x00, true),
        (0x04, false),
        (0x01, false),
        (0x30, true),
        (0x10, false),
    ]) {
        let before = bench.medium.given();
        let slot = bench.start(
            &host,
            &[0x1b, 0, 0, 0, byte, 0],
            Attribute::Simple,
            tag,
            &[],
        );
        bench.settle(SOON);
        assert_eq!(slot.response().status, Status::Good);
        assert_eq!(
            bench.medium.given() - before,
            u64::from(flushes),
            "{byte:#04x}"
        );
    }
    // What cannot be written is said.
    bench.medium.hang();
    let slot = bench.start(&host, &[0x1b, 0, 0, 0, 0, 0], Attribute::Simple, 9, &[]);
    bench.settle(SOON);
    assert!(!slot.ended(), "it is answered when the cache is written");
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(slot.response().status, Status::Good);
}

#[test]
fn a_write_that_the_medium_has_when_its_nexus_may_only_read_is_carried_out_before_that_is_reported()
{
    let bench = Bench::new(13);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(3, "b"));
    bench.medium.hang();
    let begun = bench.start(&host, &write_10(0, 1), Attribute::Simple, 1, &filled(1, 1));
    bench.settle(SOON);
    // It waits for the one before.
    let both = [filled(1, 1), filled(2, 1)].concat();
    let waits = bench.start(&host, &compare_and_write(0), Attribute::Simple, 2, &both);
    let others = bench.start(&other, &write_10(9, 1), Attribute::Simple, 1, &filled(3, 1));
    bench.settle(SOON);
    let reported = host.set_read_only(true).expect("it was not before");
    assert!(host.set_read_only(true).is_none(), "nothing changes");
    bench.settle(SOON);
    let refused = |bytes: &[u8]| {
        let sense = Sense::parse(bytes).unwrap();
        assert_eq!((sense.key, sense.code.asc), (SenseKey::DataProtect, 0x27));
    };
    refused(&waits.response().sense.unwrap().to_vec());
    assert!(!begun.ended() && !others.ended());
    bench.medium.release();
    bench.run(reported);
    assert_eq!(bench.medium.first_byte(0), 1);
    assert_eq!(begun.response().status, Status::Good);
    assert_eq!(others.response().status, Status::Good);
    let late = bench.start(&host, &write_10(0, 1), Attribute::Simple, 3, &filled(4, 1));
    bench.settle(SOON);
    refused(&late.response().sense.unwrap().to_vec());
    assert!(host.set_read_only(false).is_none());
    let again = bench.start(&host, &write_10(0, 1), Attribute::Simple, 4, &filled(5, 1));
    bench.settle(SOON);
    assert_eq!(again.response().status, Status::Good);
}

// spec: SPC-4 7.5.8 "Control mode page".
#[test]
fn what_an_administrator_has_fixed_of_tas_holds_over_resets_and_hosts_cannot_change_it() {
    let bench = Bench::new(14);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(3, "b"));
    let fix = |fixed| {
        let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(2));
        bench.run(async move { unit.fix_task_aborted_status(&core, fixed).await });
    };
    // MODE SENSE (6) of the control page: its sixth byte, of the current, changeable, default or
    // saved values.
    let tas = |nexus: &Rc<crate::Nexus>, values: u8| {
        let cdb = [0x1a, 8, values << 6 | 0x0a, 0, 64, 0];
        let sense = bench.start(nexus, &cdb, Attribute::Simple, 1, &[]);
        bench.settle(SOON);
        sense.response().data_in.to_vec()[4 + 5] & 0x40 != 0
    };
    let all = |nexus: &Rc<crate::Nexus>| [0, 1, 2, 3].map(|values| tas(nexus, values));
    let take = |nexus: &Rc<crate::Nexus>| {
        let reported = bench.start(nexus, &[0; 6], Attribute::Simple, 1, &[]);
        bench.settle(SOON);
        let sense = reported
            .response()
            .sense
            .map(|it| Sense::parse(&it.to_vec()).unwrap());
        sense.map(|sense| (sense.code.asc, sense.code.ascq))
    };
    assert_eq!(all(&host), [true, true, true, true]);
    fix(Some(false));
    for nexus in [&host, &other] {
        assert_eq!(take(nexus), Some((0x2a, 0x01)));
        assert_eq!(take(nexus), None);
        assert_eq!(all(nexus), [false, false, false, false]);
    }
    fix(Some(false));
    assert_eq!(take(&host), None, "nothing has changed");
    let (unit, core, asks) = (
        Arc::clone(&bench.unit),
        bench.node.core(0),
        other.port().clone(),
    );
    bench.run(async move {
        unit.reset(&core, &asks, UnitAttention::LogicalUnitReset)
            .await;
    });
    assert_eq!(take(&host), Some((0x29, 0x03)));
    assert_eq!(all(&host), [false, false, false, false]);
    // A host's again, as it is.
    fix(None);
    assert_eq!(take(&host), None);
    assert_eq!(all(&host), [false, true, true, false]);
}

// spec: SBC-3 5.47 "WRITE SAME (16) command".
#[test]
fn write_same_of_zeroes_is_data_where_the_volume_can_write_no_zeroes() {
    let bench = Bench::that_takes_no_zeroes(31);
    let nexus = bench.nexus(0, "a");
    let ask = |cdb: &[u8], data: &[u8]| {
        let slot = bench.start(&nexus, cdb, Attribute::Simple, 1, data);
        bench.settle(SOON);
        slot.response().status
    };
    let write = [0x2a, 0, 0, 0, 0, 3, 0, 0, 1, 0];
    assert_eq!(ask(&write, &[7; 512]), Status::Good);
    assert_eq!(bench.medium.first_byte(3), 7);
    // WRITE SAME (16) of eight blocks, with a block of zeroes and with none (NDOB).
    for (flags, data) in [(0, &[0; 512][..]), (1, &[])] {
        assert_eq!(ask(&write, &[7; 512]), Status::Good);
        let mut same = [0; 16];
        (same[0], same[1], same[13]) = (0x93, flags, 8);
        assert_eq!(ask(&same, data), Status::Good, "flags {flags}");
        assert_eq!(bench.medium.first_byte(3), 0, "flags {flags}");
    }
}

/// What is cut on its way is not written as a whole.
#[test]
fn no_more_is_reported_as_atomic_than_goes_to_the_volume_at_once() {
    let identity = crate::Identity {
        name: "vm01".to_owned(),
        serial: "0123456789abcdef".to_owned(),
        naa: [0x60; 16],
        store_key: "vm01".to_owned(),
        block_size: units::BlockSize::B512,
        physical_block_exponent: 0,
        thin: true,
    };
    let mut shape = volume::Shape::of_memory(identity.block_size, units::BlockCount(1 << 20));
    shape.limits.atomic_blocks_max = units::BlockCount(4096);
    for (transfer, reported) in [(1 << 16, 4096), (64, 64), (1, 0)] {
        shape.limits.transfer_blocks_max = units::BlockCount(transfer);
        let limits = crate::state::describe(&identity, Some(shape)).limits;
        assert_eq!(limits.atomic.blocks_max, reported, "{transfer} at once");
    }
    shape.limits.transfer_blocks_max = units::BlockCount(1 << 20);
    shape.limits.atomic_blocks_max = units::BlockCount(1 << 20);
    let limits = crate::state::describe(&identity, Some(shape)).limits;
    assert_eq!(limits.atomic.blocks_max, limits.transfer_blocks_max);
}
