//! Every layer against the model, and each against what it is for.

use crate::meter::size_bin;
use crate::*;
use env::sim::{World, WorldConfig};
use env::{Answer, CoreHandle, LocalFuture};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Histogram, Lba, LbaRange};
use volume::{
    Checked, Done, Durability, Io, IoError, IoFuture, IoResult, Lane, Op, OpKind, Origin, Shape,
    Support, Volume, Wrap, Zeroing, over,
};
use volume_test::model::{Plan, conforms};
use volume_test::{Action, FaultRule, Faults, Odds, Plain};

const MINUTE: Duration = Duration::from_secs(60);

fn memory(block_size: BlockSize) -> Arc<dyn Volume> {
    Plain::make(block_size, BlockCount(256))
}

/// A volume that can do little: small transfers, no stable writes, no zeroes, and a cache that it
/// reports.
struct Poor;

impl Wrap for Poor {
    fn shape(&self, below: Shape) -> Shape {
        let mut shape = below;
        shape.caps.stable_write = Support::Absent;
        shape.caps.write_zeroes = Support::Absent;
        shape.caps.discard = Support::Absent;
        shape.limits.write_zeroes_blocks_max = BlockCount(0);
        shape.limits.discard_blocks_max = BlockCount(0);
        shape.limits.transfer_blocks_max = BlockCount(5);
        shape
    }

    fn lane(&self, _core: &CoreHandle, below: Rc<dyn Lane>, _shape: Shape) -> Rc<dyn Lane> {
        below
    }
}

/// Below: memory that can do little, with the contract asserted.
pub(crate) fn poor(block_size: BlockSize) -> Arc<dyn Volume> {
    over(Checked, over(Poor, memory(block_size)))
}

pub(crate) fn simulate(seed: u64, test: impl FnOnce(CoreHandle) -> LocalFuture<()>) {
    let world = World::new(seed, WorldConfig::default());
    let node = world.node("node");
    let test = test(node.core(0));
    world.block_on(&node, MINUTE, test).unwrap();
}

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

fn write(at: LbaRange, byte: u8, durability: Durability) -> Io {
    let data = Buf::copy_of(&vec![byte; usize::try_from(at.len().0).unwrap() * 512]);
    let op = Op::Write {
        range: at,
        data,
        durability,
    };
    Io::new(op, Origin::default())
}

/// The first byte of each block.
async fn bytes(lane: &Rc<dyn Lane>, at: LbaRange) -> Vec<u8> {
    let op = Op::Read {
        range: at,
        into: None,
    };
    let done = lane.submit(Io::new(op, Origin::default())).await;
    let Ok(Done::Data(data)) = done else {
        panic!("{done:?}")
    };
    data.to_vec().chunks(512).map(|block| block[0]).collect()
}

#[test]
fn every_layer_conforms_over_rich_and_poor_volumes_of_both_block_sizes() {
    type Build = fn(BlockSize) -> Arc<dyn Volume>;
    let table: [(&str, Build); 16] = [
        ("checked", |size| over(Checked, memory(size))),
        ("meter", |size| over(Meter::new(), memory(size))),
        ("faults, none", |size| over(Faults::new(), memory(size))),
        ("stable write, rich", |size| over(StableWrite, memory(size))),
        ("stable write, poor", |size| over(StableWrite, poor(size))),
        ("emulate, rich", |size| over(Emulate, memory(size))),
        ("emulate, poor", |size| over(Emulate, poor(size))),
        ("all, poor", |size| {
            over(Meter::new(), over(Emulate, over(StableWrite, poor(size))))
        }),
        ("poor", poor),
        ("limit, none", |size| over(Limit::new(), memory(size))),
        ("read cache", |size| {
            over(ReadCache::new(1 << 20, size), memory(size))
        }),
        ("read cache, tiny", |size| {
            over(ReadCache::new(20 << 10, size), poor(size))
        }),
        ("read cache, slow", |size| {
            let faults = Faults::new();
            let slow = Odds {
                delay: 2,
                ..Odds::default()
            };
            faults.by_chance(5, slow);
            let slow = over(faults, over(Emulate, over(StableWrite, poor(size))));
            over(ReadCache::new(100 << 10, size), slow)
        }),
        ("write through", |size| {
            over(WriteThrough::new(true), memory(size))
        }),
        ("write through, poor", |size| {
            over(WriteThrough::new(true), over(StableWrite, poor(size)))
        }),
        ("write through, off", |size| {
            over(WriteThrough::new(false), memory(size))
        }),
    ];
    for (name, build) in table {
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            for seed in 0..6 {
                println!("{name}, {block_size:?}, seed {seed}");
                simulate(seed, |core| {
                    Box::pin(conforms_slowly(core, build(block_size), seed))
                });
            }
        }
    }
}

async fn conforms_slowly(core: CoreHandle, volume: Arc<dyn Volume>, seed: u64) {
    let slow = Odds {
        delay: 3,
        ..Odds::default()
    };
    let faults = Faults::new();
    faults.by_chance(seed, slow);
    let volume = over(faults.clone(), volume);
    let shape = volume.shape();
    let tally = conforms(&core, volume, Plan::new(seed)).await;
    tally.assert_covers(&shape);
    assert!(faults.hits() > 0);
}

/// Notes the durability of every mutation that passes.
#[derive(Clone, Default)]
struct Durabilities(Arc<std::sync::Mutex<Vec<Durability>>>);

struct DurabilitiesLane(Durabilities, Rc<dyn Lane>);

impl Wrap for Durabilities {
    fn lane(&self, _: &CoreHandle, below: Rc<dyn Lane>, _: Shape) -> Rc<dyn Lane> {
        Rc::new(DurabilitiesLane(self.clone(), below))
    }
}

impl Lane for DurabilitiesLane {
    fn submit(&self, mut io: Io) -> IoFuture {
        let asked = io.op_mut().durability_mut().map(|asked| *asked);
        self.0.0.lock().unwrap().extend(asked);
        self.1.submit(io)
    }
}

#[test]
fn through_write_through_every_change_is_stable_and_there_is_no_volatile_cache() {
    simulate(1, |core| {
        Box::pin(async move {
            let (seen, mode) = (Durabilities::default(), WriteThrough::new(true));
            let volume = over(mode.clone(), over(seen.clone(), memory(BlockSize::B512)));
            assert!(!volume.shape().caps.volatile_cache);
            let stable = Arc::clone(&volume).open(&core).await.unwrap();
            stable
                .submit(write(range(0, 1), 1, Durability::Cached))
                .await
                .unwrap();
            for op in [
                Op::WriteZeroes {
                    range: range(1, 1),
                    zeroing: Zeroing::MayUnmap,
                    durability: Durability::Cached,
                },
                Op::Discard {
                    range: range(2, 1),
                    to: volume::Provision::Deallocated,
                    durability: Durability::Cached,
                },
            ] {
                stable.submit(Io::new(op, Origin::default())).await.unwrap();
            }
            assert_eq!(*seen.0.lock().unwrap(), [Durability::Stable; 3]);
            mode.set(false);
            assert!(volume.shape().caps.volatile_cache);
            let cached = Arc::clone(&volume).open(&core).await.unwrap();
            cached
                .submit(write(range(0, 1), 1, Durability::Cached))
                .await
                .unwrap();
            assert_eq!(seen.0.lock().unwrap().pop(), Some(Durability::Cached));
        })
    });
}

#[test]
fn failures_and_torn_writes_leave_old_or_new_blocks_and_never_others() {
    let mut failed = 0;
    for seed in 0..20 {
        let all = Rc::new(RefCell::new(0));
        let sum = Rc::clone(&all);
        simulate(seed, |core| {
            Box::pin(async move {
                let faults = Faults::new();
                faults.by_chance(
                    seed,
                    Odds {
                        fail: 20,
                        fail_after: 20,
                        tear: 10,
                        space: 20,
                        delay: 5,
                    },
                );
                let volume = over(Emulate, over(faults.clone(), poor(BlockSize::B512)));
                let shape = volume.shape();
                let plan = Plan {
                    errors: true,
                    ..Plan::new(seed)
                };
                // The reading at the end must not fail: it goes around the faults.
                let below = Arc::clone(&volume);
                let tally = conforms(&core, Quiet::over(below, &faults, plan), plan).await;
                assert_eq!(shape.block_count, BlockCount(256));
                *sum.borrow_mut() += tally.failed;
            })
        });
        failed += *all.borrow();
    }
    assert!(failed > 200, "{failed} operations failed");
}

/// Takes the faults away once all planned operations were submitted.
struct Quiet {
    faults: Faults,
    left: u32,
}

impl Quiet {
    fn over(below: Arc<dyn Volume>, faults: &Faults, plan: Plan) -> Arc<dyn Volume> {
        let (faults, left) = (faults.clone(), plan.steps / 2);
        over(Self { faults, left }, below)
    }
}

struct QuietLane {
    below: Rc<dyn Lane>,
    faults: Faults,
    left: RefCell<u32>,
}

impl Wrap for Quiet {
    fn lane(&self, _core: &CoreHandle, below: Rc<dyn Lane>, _shape: Shape) -> Rc<dyn Lane> {
        Rc::new(QuietLane {
            below,
            faults: self.faults.clone(),
            left: RefCell::new(self.left),
        })
    }
}

impl Lane for QuietLane {
    fn submit(&self, io: Io) -> IoFuture {
        let mut left = self.left.borrow_mut();
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.faults.clear();
        }
        self.below.submit(io)
    }
}

#[test]
fn a_hung_write_lands_when_released_even_if_nobody_waits() {
    simulate(1, |core| {
        Box::pin(async move {
            let faults = Faults::new();
            let volume = over(faults.clone(), memory(BlockSize::B512));
            let lane = volume.open(&core).await.unwrap();
            faults.once(OpKind::Write, Action::Hang);
            drop(lane.submit(write(range(0, 2), 7, Durability::Cached)));
            core.sleep_until(core.now().after(MINUTE / 4)).await;
            assert_eq!(faults.hanging(), 1);
            assert_eq!(bytes(&lane, range(0, 2)).await, [0, 0]);
            faults.release();
            core.sleep_until(core.now().after(MINUTE / 4)).await;
            assert_eq!(faults.hanging(), 0);
            assert_eq!(bytes(&lane, range(0, 2)).await, [7, 7]);
        })
    });
}

#[test]
fn scripted_faults_do_what_they_say() {
    simulate(1, |core| {
        Box::pin(async move {
            let faults = Faults::new();
            let volume = over(faults.clone(), memory(BlockSize::B512));
            let lane = volume.open(&core).await.unwrap();
            let error = IoError::SpaceExhausted;
            for (action, left) in [
                (Action::Fail(error), [0, 0, 0]),
                (Action::Tear(BlockCount(2), error), [2, 2, 0]),
                (Action::FailAfter(error), [3, 3, 3]),
            ] {
                faults.once(OpKind::Write, action);
                let all = range(0, 3);
                let byte = left[0].max(1);
                let refused = lane.submit(write(all, byte, Durability::Cached)).await;
                assert_eq!(refused.unwrap_err(), error);
                assert_eq!(bytes(&lane, all).await, left);
            }
            faults.add(FaultRule {
                kinds: vec![OpKind::Read],
                range: Some(range(8, 1)),
                skip: 1,
                times: 1,
                action: Action::Fail(error),
            });
            let mut failed = Vec::new();
            for at in [0, 8, 0, 8, 8] {
                let op = Op::Read {
                    range: range(at, 1),
                    into: None,
                };
                failed.push(lane.submit(Io::new(op, Origin::default())).await.is_err());
            }
            assert_eq!(failed, [false, false, false, true, false]);
            assert_eq!(faults.hits(), 4);
        })
    });
}

/// Answers everything with success, and keeps what it was asked.
#[derive(Default)]
struct Log {
    seen: RefCell<Vec<String>>,
}

impl Lane for Log {
    fn submit(&self, io: Io) -> IoFuture {
        let durability = match io.op() {
            Op::Write { durability, .. } => format!(" {durability:?}"),
            Op::Read { .. }
            | Op::WriteZeroes { .. }
            | Op::Discard { .. }
            | Op::CompareAndWrite { .. }
            | Op::Extents { .. }
            | Op::Flush => String::new(),
        };
        let name = OpKind::of(io.op()).name();
        self.seen.borrow_mut().push(format!("{name}{durability}"));
        Answer::ready(Ok(Done::Nothing))
    }
}

#[test]
fn a_stable_write_becomes_write_then_flush_and_a_cached_one_stays_one() {
    simulate(1, |core| {
        Box::pin(async move {
            let log = Rc::new(Log::default());
            let below = Rc::clone(&log) as Rc<dyn Lane>;
            let lane = StableWrite.lane(&core, below, poor(BlockSize::B512).shape());
            for durability in [Durability::Stable, Durability::Cached] {
                lane.submit(write(range(0, 1), 1, durability))
                    .await
                    .unwrap();
            }
            let seen = log.seen.borrow().join(", ");
            assert_eq!(seen, "write Cached, flush, write Cached");
        })
    });
}

#[test]
fn zeroes_are_written_in_pieces_that_the_volume_below_takes() {
    simulate(1, |core| {
        Box::pin(async move {
            let log = Rc::new(Log::default());
            let below = Rc::clone(&log) as Rc<dyn Lane>;
            let lane = Emulate.lane(&core, below, poor(BlockSize::B512).shape());
            let op = Op::WriteZeroes {
                range: range(0, 12),
                zeroing: Zeroing::MayUnmap,
                durability: Durability::Stable,
            };
            lane.submit(Io::new(op, Origin::default())).await.unwrap();
            let seen = log.seen.borrow().join(", ");
            assert_eq!(seen, "write Stable, write Stable, write Stable");
        })
    });
}

#[test]
fn a_meter_counts_what_happened_on_every_core() {
    simulate(1, |core| {
        Box::pin(async move {
            let (meter, faults) = (Meter::new(), Faults::new());
            let volume = over(meter, over(faults.clone(), memory(BlockSize::B512)));
            let other = Arc::clone(&volume);
            let there = env::call(&core, env::CoreId(1), move |core: &CoreHandle| {
                let opened = other.open(core);
                Box::pin(async move {
                    let lane = opened.await.unwrap();
                    let io = write(range(0, 3), 1, Durability::Cached);
                    assert!(lane.submit(io).await.is_ok());
                }) as LocalFuture<()>
            });
            there.await.unwrap();
            let lane = Arc::clone(&volume).open(&core).await.unwrap();
            bytes(&lane, range(0, 3)).await;
            faults.once(OpKind::Write, Action::Fail(IoError::SpaceExhausted));
            let refused = lane.submit(write(range(0, 1), 1, Durability::Cached)).await;
            assert!(refused.is_err());
            faults.once(OpKind::Flush, Action::Delay(Duration::from_millis(3)));
            let flush = Io::new(Op::Flush, Origin::default());
            lane.submit(flush).await.unwrap();
            faults.once(OpKind::Flush, Action::Hang);
            drop(lane.submit(Io::new(Op::Flush, Origin::default())));
            let counters = meter.read(&core).await;
            let writes = counters.of(OpKind::Write);
            assert_eq!((writes.started, writes.done, writes.failed), (2, 1, 1));
            assert_eq!((writes.blocks, counters.space_exhausted), (3, 1));
            assert_eq!(counters.of(OpKind::Read).blocks, 3);
            // What failed has no size; three blocks are two or more, and less than four.
            assert_eq!(counters.sizes_of(OpKind::Write).unwrap()[..3], [0, 1, 0]);
            for (blocks, bin) in [(1, 0), (4, 2), (7, 2), (255, 7), (256, 8)] {
                bytes(&lane, range(0, blocks)).await;
                let counters = meter.read(&core).await;
                let sizes = counters.sizes_of(OpKind::Read).unwrap();
                assert!(sizes[bin] > 0, "{blocks} blocks: {sizes:?}");
                let counted: u64 = sizes.iter().sum();
                assert_eq!(counted, counters.of(OpKind::Read).done);
            }
            assert_eq!([2047, 2048, 4096, u64::MAX].map(size_bin), [10, 11, 11, 11]);
            assert_eq!(counters.sizes_of(OpKind::Flush), None);
            let counters = meter.read(&core).await;
            let flushes = counters.of(OpKind::Flush);
            assert_eq!(
                (flushes.started, flushes.done, flushes.abandoned),
                (2, 1, 1)
            );
            let counted = flushes.latency.buckets().iter();
            let bucket = counted.clone().position(|count| *count > 0).unwrap();
            let bound = Histogram::bound(bucket).unwrap();
            assert_eq!((bound, counted.sum()), (Duration::from_micros(3072), 1));
            assert!(flushes.latency.sum_nanos() >= 3_000_000);
            let both = vec![Meter::new(), meter];
            let all = Meter::read_all(&core, both.clone()).await;
            assert_eq!(all, [Counters::default(), counters.clone()]);
            let brief = Meter::briefs(&core, both).await[1];
            let reads = counters.of(OpKind::Read);
            assert_eq!(
                (brief.read.ops, brief.read.blocks),
                (reads.done, reads.blocks)
            );
            assert_eq!((brief.write.ops, brief.other_ops), (2, 1));
            assert_eq!(brief.progress.under_way(), 0);
        })
    });
}

/// Answers everything with this.
struct Always(IoResult);

impl Lane for Always {
    fn submit(&self, _io: Io) -> IoFuture {
        Answer::ready(self.0.clone())
    }
}

#[test]
fn what_a_journal_answered_is_timed_apart_and_counted_with_all() {
    simulate(1, |core| {
        Box::pin(async move {
            let (meter, shape) = (Meter::new(), poor(BlockSize::B512).shape());
            for (answer, times) in [(Done::Logged, 3), (Done::Nothing, 2)] {
                let lane = meter.lane(&core, Rc::new(Always(Ok(answer))), shape);
                for _ in 0..times {
                    let op = write(range(0, 1), 1, Durability::Cached);
                    lane.submit(op).await.unwrap();
                }
                // It moves no bytes of its own.
                lane.submit(Io::new(Op::Flush, Origin::default()))
                    .await
                    .unwrap();
            }
            let counters = meter.read(&core).await;
            let writes = counters.of(OpKind::Write);
            assert_eq!((writes.done, writes.blocks), (5, 5));
            let counted = [&counters.journal, &writes.latency].map(Histogram::total);
            assert_eq!((counted, counters.journaled), ([3, 2], 3));
            assert_eq!(counters.of(OpKind::Flush).latency.total(), 2);
            let brief = Meter::briefs(&core, vec![meter]).await[0];
            assert_eq!((brief.write.ops, brief.write.journaled), (5, 3));
            assert_eq!(brief.read.journaled, 0);
            // What came since it was asked last: one write that a journal answered.
            Meter::latency_news(&core, vec![meter]).await;
            let lane = meter.lane(&core, Rc::new(Always(Ok(Done::Logged))), shape);
            let op = write(range(0, 1), 1, Durability::Cached);
            lane.submit(op).await.unwrap();
            let news = Meter::latency_news(&core, vec![meter]).await;
            let [read, write, journal] = &units::histogram::together(&news)[0];
            let counts = [read, write, journal].map(|all| all.iter().map(|it| it.1).sum::<u32>());
            assert_eq!(counts, [0, 0, 1]);
        })
    });
}

#[test]
fn broken_promises_of_both_sides_are_caught() {
    simulate(1, |core| {
        Box::pin(async move {
            let shape = poor(BlockSize::B512).shape();
            let broken = |answer: IoResult, op: Op| {
                let lane = Checked.lane(&core, Rc::new(Always(answer)), shape);
                let io = Io::new(op, Origin::default());
                catch_unwind(AssertUnwindSafe(|| drop(lane.submit(io)))).is_err()
            };
            let read = |at: LbaRange| Op::Read {
                range: at,
                into: None,
            };
            let short = Op::Write {
                range: range(0, 2),
                data: Buf::zeroes(512),
                durability: Durability::Cached,
            };
            let stable = Op::Write {
                range: range(0, 1),
                data: Buf::zeroes(512),
                durability: Durability::Stable,
            };
            let data = |len| Ok(Done::Data(Buf::zeroes(len)));
            assert!(!broken(data(512), read(range(0, 1))));
            assert!(broken(data(511), read(range(0, 1))), "short answer");
            assert!(broken(Ok(Done::Nothing), read(range(0, 1))), "wrong answer");
            assert!(broken(data(0), read(range(0, 0))), "empty range");
            assert!(broken(data(512), read(range(256, 1))), "past the end");
            assert!(broken(data(3072), read(range(0, 6))), "past the limit");
            assert!(broken(Ok(Done::Nothing), short), "short payload");
            assert!(broken(Ok(Done::Nothing), stable), "absent capability");
            let miscompare = Err(IoError::Miscompare {
                at: units::ByteCount(0),
            });
            assert!(broken(miscompare, Op::Flush), "a flush compares nothing");
        })
    });
}
