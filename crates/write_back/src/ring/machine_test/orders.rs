//! The worlds.

use super::*;

/// Goes through all orders; answers how many steps that were.
fn explore(world: &World) -> u64 {
    let steps = world.steps();
    if steps.is_empty() {
        world.check_end();
        return 0;
    }
    let mut count = 0;
    for step in steps {
        let mut next = world.clone();
        next.step(step);
        next.writer_polls_in_vain();
        next.check();
        count += 1 + explore(&next);
    }
    count
}

#[track_caller]
fn all_orders(programs: &[(u16, &[Op])], with: &[With], at_least: u64) {
    all_orders_of(SECTORS, programs, with, at_least);
}

#[track_caller]
fn all_orders_of(places: Places, programs: &[(u16, &[Op])], with: &[With], at_least: u64) {
    let steps = explore(&World::new(places, programs, with));
    println!("{steps} steps");
    assert!(steps >= at_least, "{steps} steps");
}

#[test]
fn two_hosts_at_the_same_blocks_are_answered_in_order_and_read_what_is_newest() {
    let first = [Op::Write(0, 2), Op::Write(1, 3)];
    let second = [Op::Zero(1, 2), Op::Write(0, 1)];
    all_orders(&[(0, &first), (0, &second)], &[], 1_000);
    all_orders(&[(0, &first), (1, &second)], &[], 1_000);
}

#[test]
fn a_log_that_fails_leaves_nobody_without_an_answer() {
    let first = [Op::Write(0, 2), Op::Write(1, 3)];
    let second = [Op::Volatile(2, 3), Op::Flush];
    let with = [With::LogFails];
    all_orders(&[(0, &first), (0, &second)], &with, 1_000);
}

#[test]
fn what_goes_around_the_log_meets_no_change_that_waits_and_is_named_while_it_is_half_way() {
    let first = [Op::Write(0, 2)];
    let second = [Op::Around(1, 3)];
    all_orders(&[(0, &first), (0, &second)], &[With::Rounds(1)], 1_000);
    let third = [Op::Volatile(0, 2), Op::Flush];
    all_orders(&[(0, &first), (0, &third)], &[], 300);
    all_orders(&[(0, &third), (0, &third[..1])], &[], 300);
    all_orders(&[(0, &second), (0, &[Op::Around(0, 2)])], &[], 150);
}

#[test]
fn what_goes_around_the_log_into_a_cache_is_not_undone_by_what_the_log_has_not_given_up() {
    let later = [Op::Write(0, 2), Op::Volatile(0, 2)];
    all_orders(&[(0, &later)], &[With::Rounds(1)], 500);
    let with = [With::Rounds(2), With::BackingFails];
    all_orders(&[(0, &later)], &with, 1_000);
}

#[test]
fn rounds_of_the_destager_bring_back_nothing_and_lose_nothing() {
    let zeroes = [Op::Zero(1, 2)];
    let first = [Op::Write(0, 2)];
    all_orders(&[(0, &first), (0, &zeroes)], &[With::Rounds(1)], 1_000);
    let twice = [Op::Write(0, 2), Op::Write(0, 1)];
    all_orders(&[(0, &twice)], &[With::Rounds(2)], 1_000);
}

#[test]
fn what_cannot_be_destaged_is_relocated_and_read_as_before() {
    let twice = [Op::Write(0, 2), Op::Write(0, 1)];
    let with = [With::Rounds(1), With::BackingFails];
    all_orders(&[(0, &twice)], &with, 1_000);
    all_orders(&[(0, &twice[..1]), (1, &twice[1..])], &with, 1_000);
    let with = [With::Rounds(2), With::BackingFails];
    all_orders(&[(0, &twice[..1])], &with, 50);
}

#[test]
fn nothing_is_under_way_in_a_cut_or_an_exchange() {
    let around = [Op::Volatile(0, 2), Op::Write(0, 1)];
    all_orders(&[(0, &around)], &[With::Cut], 200);
    all_orders(&[(0, &around)], &[With::Exchange], 100);
    let stable = [Op::Around(0, 2), Op::Zero(0, 1)];
    all_orders(&[(0, &stable)], &[With::Cut], 200);
    all_orders(&[(0, &stable)], &[With::Exchange], 100);
    let with = [With::Exchange, With::Rounds(1)];
    all_orders(&[(0, &[Op::Write(0, 2)])], &with, 200);
    let write = [Op::Write(2, 3)];
    all_orders(&[(0, &around[..1]), (0, &write)], &[With::Exchange], 500);
}

#[test]
fn reads_and_flushes_wait_for_an_exchange_and_for_no_cut() {
    let (read, flush) = ([Op::Read(0, 3)], [Op::Flush]);
    let (write, volatile) = ([Op::Write(0, 2), Op::Flush], [Op::Volatile(0, 2)]);
    for with in [With::Cut, With::Exchange] {
        all_orders(&[(0, &read), (0, &write)], &[with], 1_000);
        all_orders(&[(1, &read), (0, &write)], &[with], 1_000);
        all_orders(&[(0, &volatile), (0, &read)], &[with], 1_000);
        all_orders(&[(0, &volatile), (0, &flush)], &[with], 500);
    }
    let with = [With::Exchange, With::Rounds(1)];
    all_orders(&[(0, &write[..1]), (0, &read)], &with, 1_000);
    let with = [With::Exchange, With::LogFails];
    all_orders(&[(0, &write), (0, &flush)], &with, 1_000);
}

#[test]
fn of_a_volume_that_has_left_nothing_is_done() {
    let mut machine = World::new(SECTORS, &[], &[]).machine;
    let (slot, blocks) = (Slot(1), range(&(0..2)));
    let mut effects = Effects::new();
    machine.apply(Event::Leave(VolumeId(1)), &mut effects);
    let gone = Some(NotNow::Refused(IoError::Unavailable));
    assert_eq!(machine.read(slot, blocks).err(), gone);
    assert_eq!(machine.extents(slot, blocks, 1).err(), gone);
    assert_eq!(machine.reports_changes(slot).err(), gone);
    machine.apply(Event::Flush(slot), &mut effects);
    let [Effect::Refused(IoError::Unavailable)] = effects[..] else {
        panic!("{effects:?} is no refusal")
    };
}

#[test]
fn a_writer_that_lost_its_right_gets_nothing_into_a_batch() {
    let first = [Op::Write(0, 1), Op::Fence, Op::Write(0, 1)];
    let second = [Op::Write(0, 2)];
    all_orders(&[(0, &first), (0, &second)], &[], 500);
}

#[test]
fn a_right_that_is_lost_while_changes_are_under_way_stops_those_that_are_in_no_batch() {
    let first = [Op::Write(0, 2), Op::Zero(1, 3)];
    let second = [Op::Write(0, 1)];
    all_orders(&[(0, &first), (0, &second)], &[With::Raise], 1_000);
    all_orders(&[(0, &first), (1, &second)], &[With::Raise], 1_000);
    let with = [With::Raise, With::LogFails];
    all_orders(&[(0, &first), (0, &second)], &with, 1_000);
    for around in [Op::Around(0, 2), Op::Volatile(0, 2)] {
        let first = [around, Op::Write(1, 2)];
        all_orders(&[(0, &first), (0, &second)], &[With::Raise], 1_000);
    }
    let flush = [Op::Write(1, 2), Op::Flush];
    all_orders(&[(0, &first[..1]), (0, &flush)], &[With::Raise], 500);
    let with = [With::Raise, With::Rounds(1)];
    all_orders(&[(0, &first[..1]), (0, &second)], &with, 1_000);
}

#[test]
fn what_may_be_half_way_is_said_and_no_other_block() {
    let (whole, across) = (Op::Write(0, 2), Op::Write(1, 3));
    let with = [With::Rounds(1)];
    all_orders_of(HALVES, &[(0, &[whole, across])], &with, 200);
    all_orders_of(HALVES, &[(0, &[whole]), (0, &[Op::Zero(0, 1)])], &with, 200);
    all_orders_of(HALVES, &[(0, &[whole]), (1, &[across])], &with, 200);
    let around = [Op::Around(1, 4), Op::Write(0, 2)];
    all_orders_of(HALVES, &[(0, &around)], &with, 100);
    all_orders_of(HALVES, &[(0, &around[..1]), (0, &[whole])], &with, 1_000);
    let both = [With::Rounds(1), With::BackingFails];
    all_orders_of(HALVES, &[(0, &[whole, Op::Write(0, 1)])], &both, 500);
    let both = [With::Rounds(1), With::LogFails];
    all_orders_of(HALVES, &[(0, &around[..1]), (0, &[across])], &both, 500);
}

#[test]
fn whoever_is_in_a_batch_is_answered_also_when_the_ring_closes() {
    let first = [Op::Write(0, 1), Op::Write(1, 2)];
    all_orders(&[(0, &first)], &[With::Close, With::Rounds(1)], 200);
    all_orders(&[(0, &first), (1, &first[..1])], &[With::Close], 500);
}

#[test]
fn a_round_waits_for_no_write_around_the_log_that_waits_for_room() {
    let mut machine = World::new(SECTORS, &[], &[]).machine;
    let mut effects = Effects::new();
    let stable = MayGoAround {
        stable: true,
        ..MayGoAround::default()
    };
    let change = HostChange {
        slot: Slot(0),
        range: range(&(0..1)),
        kind: Kind::Write,
        data: Buf::zeroes(512),
        around: stable,
        fence: Fence::default(),
        is_current: true,
        now: Now(7),
    };
    machine.apply(Event::Change(change), &mut effects);
    let Some(Effect::Begun(id, event::Around::Stable)) = effects.first() else {
        panic!("{effects:?} goes not around the log")
    };
    let (id, mut effects) = (*id, Effects::new());
    // As long as the log has no room for its record.
    assert_eq!(machine.newest_write_around(), None);
    machine.apply(Event::WriteNext(&|_, _| true), &mut effects);
    let Some(Effect::WriteBatch(write)) = effects.first() else {
        panic!("{effects:?} is no batch")
    };
    let (number, result) = (write.number, Ok(()));
    assert_eq!(machine.newest_write_around(), None);
    machine.apply(Event::BatchEnded { number, result }, &mut Effects::new());
    // What comes behind its record may be destaged now, and must not be overtaken by it.
    assert_eq!(machine.newest_write_around(), Some(id));
    machine.apply(Event::EndWriteAround(id), &mut Effects::new());
    assert_eq!(machine.newest_write_around(), None);
}

#[test]
fn a_long_change_is_in_several_records_or_in_none() {
    let mut machine = World::new(SECTORS, &[], &[]).machine;
    let mut change = |kind, bytes: usize, data: Buf, is_current| {
        let sectors = bytes as u64 / SECTOR;
        let mut effects = Effects::new();
        let change = Event::Change(HostChange {
            slot: Slot(0),
            range: range(&(0..sectors)),
            kind,
            data,
            around: MayGoAround::default(),
            fence: Fence::default(),
            is_current,
            now: Now(7),
        });
        machine.apply(change, &mut effects);
        effects
    };
    let in_records = |effects: Effects, all: &[usize]| {
        let (last, records) = effects.split_last().unwrap();
        assert!(matches!(last, Effect::WakeWriter), "{last:?}");
        let found = records.iter().map(|it| {
            let Effect::Submitted { bytes, .. } = it else {
                panic!("{it:?} is no record")
            };
            *bytes
        });
        assert_eq!(found.collect::<Vec<usize>>(), all);
    };
    let (long, part) = (5 << 19, 1 << 20);
    let written = change(Kind::Write, long, Buf::zeroes(long), true);
    in_records(written, &[part, part, part / 2]);
    let zeroed = change(Kind::Zeroes, (64 << 20) + 512, Buf::empty(), true);
    in_records(zeroed, &[0, 0]);
    let refused = change(Kind::Write, long, Buf::zeroes(long), false);
    let [Effect::Refused(error)] = refused[..] else {
        panic!("{refused:?} is not refused as a whole")
    };
    assert_eq!(error, IoError::Fenced.of_a_part());
    assert_eq!(machine.changed_at(), Now(7));
}
