//! The checker accepts what can have happened and finds what cannot, planted or at random.

use super::*;
use env::sim::Rng;
use units::BlockCount;
use volume_test::stamp::Stamp;

const STEPS: u64 = 100_000;

fn at(lba: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(lba), BlockCount(len)).unwrap()
}

fn value(sequence: u64) -> Value {
    Value::Stamp(Stamp {
        lba: Lba(0),
        writer: 0,
        sequence,
    })
}

fn write(sequence: u64) -> Call {
    Call::Write {
        range: at(0, 1),
        values: vec![value(sequence)],
    }
}

fn read() -> Call {
    Call::Read { range: at(0, 1) }
}

fn swap(from: &[Value], to: &[Value]) -> Call {
    Call::CompareAndWrite {
        range: at(0, from.len() as u64),
        expected: from.to_vec(),
        values: to.to_vec(),
    }
}

fn saw(sequence: u64) -> Answer {
    Answer::Saw(vec![value(sequence)])
}

fn is_wrong(history: &History) -> bool {
    match history.check(STEPS) {
        Verdict::Right => false,
        Verdict::Wrong(_) => true,
        Verdict::Undecided(lba) => panic!("undecided at {lba:?}"),
    }
}

/// Two writes that overlap, and a read of what the first one left; each with its place in the
/// queue.
fn queue(first: Queue, second: Queue, answer: Answer) -> History {
    let mut history = History::default();
    let one = history.begin(1, write(1));
    history.queued(one, first);
    let two = history.begin(1, write(2));
    history.queued(two, second);
    history.end(two, Answer::Done);
    history.end(one, answer);
    let id = history.begin(2, read());
    history.end(id, saw(1));
    history
}

#[test]
fn an_ordered_write_that_does_not_keep_its_place_is_found() {
    let simple = queue(Queue::Simple, Queue::Simple, Answer::Done);
    assert!(!is_wrong(&simple));
    for (first, second) in [
        (Queue::Simple, Queue::Ordered),
        (Queue::Ordered, Queue::Simple),
        (Queue::Ordered, Queue::Ordered),
        (Queue::Head, Queue::Ordered),
    ] {
        for answer in [Answer::Done, Answer::Unknown] {
            assert!(
                is_wrong(&queue(first, second, answer)),
                "{first:?} {second:?}"
            );
        }
    }
    // The head of the queue may pass.
    let head = queue(Queue::Ordered, Queue::Head, Answer::Done);
    assert!(!is_wrong(&head));
}

#[test]
fn what_never_took_place_holds_up_no_queue() {
    let mut history = History::default();
    let one = history.begin(1, write(1));
    history.queued(one, Queue::Simple);
    let two = history.begin(1, write(2));
    history.queued(two, Queue::Ordered);
    history.end(two, Answer::Done);
    history.end(one, Answer::Unknown);
    let id = history.begin(2, read());
    history.end(id, saw(2));
    assert!(!is_wrong(&history));
}

#[test]
fn a_stale_read_is_found() {
    let mut history = History::default();
    for sequence in [1, 2] {
        let id = history.begin(1, write(sequence));
        history.end(id, Answer::Done);
    }
    let mut fine = history.clone();
    let id = fine.begin(2, read());
    fine.end(id, saw(2));
    assert!(!is_wrong(&fine));
    let id = history.begin(2, read());
    history.end(id, saw(1));
    assert!(is_wrong(&history));
}

#[test]
fn two_reads_may_not_see_new_then_old() {
    for (first, second, wrong) in [(1, 1, false), (0, 1, false), (1, 0, true)] {
        let zero_or = |n| {
            if n == 0 {
                Answer::Saw(vec![Value::Zero])
            } else {
                saw(n)
            }
        };
        let mut history = History::default();
        let writing = history.begin(1, write(1));
        for seen in [first, second] {
            let id = history.begin(2, read());
            history.end(id, zero_or(seen));
        }
        history.end(writing, Answer::Done);
        assert_eq!(is_wrong(&history), wrong, "{first} then {second}");
    }
}

#[test]
fn an_unknown_write_takes_effect_once_or_never() {
    for (seen, wrong) in [
        (vec![2, 2], false),
        (vec![1, 1], false),
        (vec![2, 1], true),
        (vec![1, 2], true),
    ] {
        let mut history = History::default();
        let id = history.begin(1, write(1));
        history.end(id, Answer::Done);
        let id = history.begin(1, write(2));
        history.end(id, Answer::Unknown);
        for seen in &seen {
            let id = history.begin(2, read());
            history.end(id, saw(*seen));
        }
        assert_eq!(is_wrong(&history), wrong, "{seen:?}");
    }
}

#[test]
fn a_write_of_open_fate_may_come_late_but_only_once() {
    for (seen, wrong) in [(vec![1, 2], false), (vec![1, 2, 1], true)] {
        let mut history = History::default();
        history.begin(1, write(2));
        let id = history.begin(1, write(1));
        history.end(id, Answer::Done);
        for seen in &seen {
            let id = history.begin(2, read());
            history.end(id, saw(*seen));
        }
        assert_eq!(is_wrong(&history), wrong, "{seen:?}");
    }
}

#[test]
fn two_compare_and_writes_of_the_same_value_cannot_both_succeed() {
    let mut history = History::default();
    let first = history.begin(1, swap(&[Value::Zero], &[value(1)]));
    let second = history.begin(2, swap(&[Value::Zero], &[value(2)]));
    history.end(first, Answer::Done);
    let mut fine = history.clone();
    fine.end(second, Answer::Miscompare { place: 0 });
    assert!(!is_wrong(&fine));
    history.end(second, Answer::Done);
    assert!(is_wrong(&history));
}

#[test]
fn a_compare_and_write_between_whose_halves_another_one_ran_is_found() {
    // Client 1 swaps both blocks; client 2 compares the new first block with the old second one.
    let (old, new) = ([Value::Zero, Value::Zero], [value(1), value(2)]);
    let mixed = [value(1), Value::Zero];
    let mut history = History::default();
    let first = history.begin(1, swap(&old, &new));
    let second = history.begin(2, swap(&mixed, &[value(3), value(4)]));
    history.end(first, Answer::Done);
    let mut fine = history.clone();
    fine.end(second, Answer::Miscompare { place: 1 });
    assert!(
        !is_wrong(&fine),
        "it saw the new first block and the new second one"
    );
    history.end(second, Answer::Done);
    assert!(is_wrong(&history));
}

#[test]
fn a_miscompare_that_nothing_explains_is_found() {
    let mut history = History::default();
    let id = history.begin(1, swap(&[Value::Zero], &[value(1)]));
    history.end(id, Answer::Miscompare { place: 0 });
    assert!(is_wrong(&history));
}

#[test]
fn reads_of_several_blocks_need_not_be_atomic() {
    let mut history = History::default();
    let both = Call::Write {
        range: at(0, 2),
        values: vec![value(1), value(1)],
    };
    let writing = history.begin(1, both);
    let id = history.begin(2, Call::Read { range: at(0, 2) });
    history.end(id, Answer::Saw(vec![Value::Zero, value(1)]));
    history.end(writing, Answer::Done);
    assert!(!is_wrong(&history));
}

/// Runs `clients` against real registers in a random order, with effects at a random moment of each
/// command, and answers the history. With `stale`, one read in ten sees what was there before.
fn random_history(seed: u64, stale: bool) -> (History, bool) {
    let rng = &mut Rng::new(seed);
    let mut history = History::default();
    let mut blocks = [Value::Zero; 4];
    let mut before = blocks;
    let mut pending: Vec<(CallId, Call)> = Vec::new();
    let mut planted = false;
    for sequence in 1..200 {
        if pending.len() < 4 && rng.below(2) == 0 {
            let range = at(rng.below(3), rng.between(1, 2));
            let touched = usize::try_from(range.start().0).unwrap();
            let len = usize::try_from(range.len().0).unwrap();
            let call = match rng.below(3) {
                0 => Call::Read { range },
                1 => Call::Write {
                    range,
                    values: vec![value(sequence); len],
                },
                _ => Call::CompareAndWrite {
                    range,
                    expected: blocks[touched..touched + len].to_vec(),
                    values: vec![value(sequence); len],
                },
            };
            let id = history.begin(u32::try_from(pending.len()).unwrap(), call.clone());
            pending.push((id, call));
            continue;
        }
        if pending.is_empty() {
            continue;
        }
        let (id, call) = pending.swap_remove(rng.index(pending.len()));
        let first = usize::try_from(call.range().start().0).unwrap();
        let here = first..first + usize::try_from(call.range().len().0).unwrap();
        let answer = match call {
            Call::Read { .. } if stale && rng.below(10) == 0 => {
                planted |= before[here.clone()] != blocks[here.clone()];
                Answer::Saw(before[here].to_vec())
            }
            Call::Read { .. } => Answer::Saw(blocks[here].to_vec()),
            Call::Write { values, .. } => {
                before = blocks;
                let unknown = rng.below(8) == 0;
                if !unknown || rng.below(2) == 0 {
                    blocks[here].copy_from_slice(&values);
                }
                if unknown {
                    Answer::Unknown
                } else {
                    Answer::Done
                }
            }
            Call::CompareAndWrite {
                expected, values, ..
            } => {
                let differs = |place: &usize| blocks[first + place] != expected[*place];
                match (0..expected.len()).find(differs) {
                    Some(place) => Answer::Miscompare { place },
                    None => {
                        before = blocks;
                        blocks[here].copy_from_slice(&values);
                        Answer::Done
                    }
                }
            }
        };
        history.end(id, answer);
    }
    (history, planted)
}

#[test]
fn what_real_registers_did_is_never_called_wrong() {
    for seed in 0..200 {
        let (history, _) = random_history(seed, false);
        let verdict = history.check(STEPS);
        assert_eq!(verdict, Verdict::Right, "seed {seed}");
    }
}

#[test]
fn planted_stale_reads_are_found_in_random_histories() {
    let (mut planted, mut found) = (0, 0);
    for seed in 0..200 {
        let (history, stale) = random_history(seed, true);
        planted += u32::from(stale);
        let wrong = is_wrong(&history);
        assert!(stale || !wrong, "seed {seed}: alarm without a cause");
        found += u32::from(wrong);
    }
    // A stale read beside a write in flight can be right, so not every plant is a violation.
    assert!(found * 10 > planted * 6, "{found} of {planted} found");
}

#[test]
fn a_swap_that_the_medium_failed_may_have_written_any_of_its_blocks_but_only_over_what_it_compared()
{
    let (old, new) = ([Value::Zero, Value::Zero], [value(1), value(2)]);
    for (seen, right) in [
        ([value(1), Value::Zero], true),
        ([Value::Zero, value(2)], true),
        (old, true),
        (new, true),
        ([value(2), Value::Zero], false),
    ] {
        let mut history = History::default();
        let id = history.begin(1, swap(&old, &new));
        history.end(id, Answer::InPart);
        let id = history.begin(2, Call::Read { range: at(0, 2) });
        history.end(id, Answer::Saw(seen.to_vec()));
        assert_eq!(is_wrong(&history), !right, "{seen:?}");
    }
}
