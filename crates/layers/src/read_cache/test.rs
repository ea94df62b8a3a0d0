//! That nothing old is ever read: over threads, over cores with a slow volume, and against the
//! model.

use super::*;
use env::sim::{World, WorldConfig};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{BufMut, ByteCount};
use volume::{Durability, Origin, Provision, Volume, Zeroing, over};
use volume_test::draw::Draw;
use volume_test::fault::{Faults, Odds};
use volume_test::plain::Plain;

const CORES: u16 = 4;

fn page_of(number: u64) -> Buf {
    let mut memory = BufMut::zeroed(PAGE);
    memory.copy_at(0, &number.to_le_bytes());
    memory.freeze()
}

fn number_of(page: &Buf) -> u64 {
    let mut bytes = [0; 8];
    page.copy_to(0, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// A page, its contents below, and what was acknowledged: the first rises before the second.
#[derive(Default)]
struct Place {
    below: AtomicU64,
    acknowledged: AtomicU64,
}

/// What is there, by the cache or from below, is not older than what was acknowledged before.
fn inspect(pages: &Pages, places: &[Place], at: u64, hits: &AtomicU64) {
    let place = &places[usize::try_from(at).unwrap()];
    let oldest = place.acknowledged.load(Ordering::SeqCst);
    let found = if let Some(page) = pages.get(at..at + 1) {
        hits.fetch_add(1, Ordering::Relaxed);
        number_of(&page)
    } else {
        let fill = pages.begin_fill(at..at + 1);
        let number = place.below.load(Ordering::SeqCst);
        pages.fill(fill, &page_of(number));
        number
    };
    assert!(found >= oldest, "{found} after {oldest} was acknowledged");
}

#[test]
fn on_threads_a_page_is_never_older_than_what_was_acknowledged_when_it_was_asked_for() {
    const PLACES: u64 = 8;
    let pages = Pages::new(1 << 20, 1);
    let places: Vec<Place> = (0..PLACES).map(|_| Place::default()).collect();
    let hits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2_u64 {
            let (pages, places) = (&pages, &places);
            scope.spawn(move || {
                for round in 1..20_000_u64 {
                    // Each writer has its own places.
                    let at = 2 * (round % (PLACES / 2)) + writer;
                    let place = &places[usize::try_from(at).unwrap()];
                    let change = pages.begin_change(at..at + 1);
                    place.below.store(round, Ordering::SeqCst);
                    pages.end_change(change, (round % 3 > 0).then_some(&page_of(round)));
                    place.acknowledged.store(round, Ordering::SeqCst);
                }
            });
        }
        for reader in 0..2_u64 {
            let (pages, places, hits) = (&pages, &places, &hits);
            scope.spawn(move || {
                let mut draw = Draw::new(reader);
                for _ in 0..40_000 {
                    inspect(pages, places, draw.below(PLACES), hits);
                }
            });
        }
    });
    assert!(hits.load(Ordering::Relaxed) > 1_000);
    for (at, place) in (0..).zip(&places) {
        let newest = place.below.load(Ordering::SeqCst);
        let there = pages.get(at..at + 1).map(|page| number_of(&page));
        assert!(there.is_none_or(|number| number == newest), "I1 at rest");
    }
}

fn blocks(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

struct Bench {
    world: World,
    node: env::sim::Node,
    cache: ReadCache,
    volume: Arc<dyn Volume>,
}

impl Bench {
    /// Over a volume that answers some operations late.
    fn new(seed: u64, bytes: u64) -> Self {
        let config = WorldConfig {
            cores: CORES,
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let node = world.node("node");
        let faults = Faults::new();
        faults.by_chance(
            seed,
            Odds {
                delay: 2,
                ..Odds::default()
            },
        );
        let slow = over(faults, Plain::make(BlockSize::B512, BlockCount(1024)));
        let cache = ReadCache::new(bytes, BlockSize::B512);
        Self {
            world,
            node,
            volume: over(cache.clone(), slow),
            cache,
        }
    }

    fn run<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        let span = Duration::from_secs(600);
        self.world.block_on(&self.node, span, work).unwrap()
    }
}

async fn read(lane: &Rc<dyn Lane>, range: LbaRange) -> Buf {
    let op = Op::Read { range, into: None };
    let done = lane.submit(Io::new(op, Origin::default())).await;
    let Ok(Done::Data(data)) = done else {
        panic!("{done:?}")
    };
    data
}

fn write(range: LbaRange, number: u64) -> Io {
    let mut all = Buf::empty();
    for _ in 0..range.len().0 {
        let mut block = BufMut::zeroed(512);
        block.copy_at(0, &number.to_le_bytes());
        all.append(&block.freeze());
    }
    let op = Op::Write {
        range,
        data: all,
        durability: Durability::Cached,
    };
    Io::new(op, Origin::default())
}

/// The numbers that writers have begun to write and have written, by page.
struct Numbers {
    begun: Vec<AtomicU64>,
    ended: Vec<AtomicU64>,
    reads: AtomicU64,
    working: AtomicU64,
}

const PAGES: u64 = 6;

const READERS: u64 = 6;

/// Writes rising numbers to a page: all of it, or the part that readers compare.
async fn write_page(core: CoreHandle, lane: Rc<dyn Lane>, page: u64, seed: u64, all: Arc<Numbers>) {
    let (mut draw, place) = (Draw::new(seed), usize::try_from(page).unwrap());
    for number in 1..60 {
        all.begun[place].store(number, Ordering::SeqCst);
        let len = if draw.below(3) == 0 { 3 } else { 8 };
        let io = write(blocks(page * 8, len), number);
        lane.submit(io).await.unwrap();
        all.ended[place].store(number, Ordering::SeqCst);
        let soon = core.now().after(Duration::from_micros(draw.below(3_000)));
        core.sleep_until(soon).await;
    }
    all.working.fetch_sub(1, Ordering::SeqCst);
}

async fn read_pages(lane: Rc<dyn Lane>, seed: u64, all: Arc<Numbers>) {
    let mut draw = Draw::new(seed);
    for _ in 1..60 {
        let at = draw.below(PAGES);
        let place = usize::try_from(at).unwrap();
        let oldest = all.ended[place].load(Ordering::SeqCst);
        let range = blocks(at * 8, 1 + draw.below(8));
        let found = number_of(&read(&lane, range).await);
        let newest = all.begun[place].load(Ordering::SeqCst);
        let allowed = oldest..=newest;
        assert!(
            allowed.contains(&found),
            "seed {seed}: {found} is not in {allowed:?}"
        );
        all.reads.fetch_add(1, Ordering::SeqCst);
    }
    all.working.fetch_sub(1, Ordering::SeqCst);
}

#[test]
fn over_cores_and_a_slow_volume_no_read_is_older_than_an_acknowledged_write_or_newer_than_any() {
    for seed in 0..30 {
        let bench = Bench::new(seed, 1 << 20);
        let numbers = || (0..PAGES).map(|_| AtomicU64::new(0)).collect();
        let all = Arc::new(Numbers {
            begun: numbers(),
            ended: numbers(),
            reads: AtomicU64::new(0),
            working: AtomicU64::new(PAGES + READERS),
        });
        for worker in 0..PAGES + READERS {
            let number = u16::try_from(worker % u64::from(CORES)).unwrap();
            let core = bench.node.core(number);
            let (volume, all, here) = (
                Arc::clone(&bench.volume),
                Arc::clone(&all),
                Rc::clone(&core),
            );
            let seed = seed * 100 + worker;
            core.spawn(Box::pin(async move {
                let lane = volume.open(&here).await.unwrap();
                if worker < PAGES {
                    write_page(here, lane, worker, seed, all).await;
                } else {
                    read_pages(lane, seed, all).await;
                }
            }));
        }
        let (core, waits) = (bench.node.core(0), Arc::clone(&all));
        bench.run(async move {
            while waits.working.load(Ordering::SeqCst) > 0 {
                let soon = core.now().after(Duration::from_millis(50));
                core.sleep_until(soon).await;
            }
        });
        assert_eq!(all.reads.load(Ordering::SeqCst), READERS * 59);
        let tally = bench.cache.tally();
        assert!(tally.hits > 20, "seed {seed}: {tally:?}");
    }
}

#[test]
fn a_scan_does_not_drive_out_what_is_read_again_and_again() {
    let pages = Pages::new(1 << 20, 1);
    let read = |page: u64| {
        if pages.get(page..page + 1).is_none() {
            let fill = pages.begin_fill(page..page + 1);
            pages.fill(fill, &page_of(page));
            return false;
        }
        true
    };
    for _ in 0..8 {
        for page in 0..100 {
            read(page);
        }
    }
    for page in 1_000..11_000 {
        read(page);
    }
    let kept = (0..100).filter(|page| read(*page)).count();
    assert!(kept >= 90, "{kept} of 100");
    let bytes = pages.tally().bytes;
    assert!(bytes <= 1 << 20, "{bytes}");
}

#[test]
fn what_is_written_is_read_without_the_volume_and_what_was_zeroed_or_discarded_is_gone() {
    let bench = Bench::new(7, 1 << 20);
    let (volume, core) = (Arc::clone(&bench.volume), bench.node.core(0));
    let cache = bench.cache.clone();
    bench.run(async move {
        let lane = volume.open(&core).await.unwrap();
        assert_eq!(number_of(&read(&lane, blocks(0, 8)).await), 0);
        lane.submit(write(blocks(0, 8), 5)).await.unwrap();
        let before = cache.tally().hits;
        assert_eq!(number_of(&read(&lane, blocks(2, 1)).await), 5);
        let into = Op::Read {
            range: blocks(1, 7),
            into: Some(BufMut::zeroed(7 * 512)),
        };
        let done = lane.submit(Io::new(into, Origin::default())).await.unwrap();
        let Done::Data(data) = done else { panic!() };
        assert_eq!(
            (number_of(&data), data.byte_count()),
            (5, ByteCount(7 * 512))
        );
        assert_eq!(cache.tally().hits, before + 2);
        for (number, op) in [
            (
                0,
                Op::WriteZeroes {
                    range: blocks(0, 1),
                    zeroing: Zeroing::MayUnmap,
                    durability: Durability::Cached,
                },
            ),
            (
                0,
                Op::Discard {
                    range: blocks(0, 1024),
                    to: Provision::Deallocated,
                    durability: Durability::Cached,
                },
            ),
        ] {
            lane.submit(write(blocks(0, 8), 9)).await.unwrap();
            assert_eq!(number_of(&read(&lane, blocks(0, 8)).await), 9);
            lane.submit(Io::new(op, Origin::default())).await.unwrap();
            assert_eq!(number_of(&read(&lane, blocks(0, 8)).await), number);
        }
        // An answer that nobody waits for leaves no page behind that is not so.
        drop(lane.submit(write(blocks(0, 8), 11)));
        let later = core.now().after(Duration::from_secs(1));
        core.sleep_until(later).await;
        for _ in 0..3 {
            assert_eq!(number_of(&read(&lane, blocks(0, 8)).await), 11);
        }
    });
}

#[test]
fn what_is_given_to_it_is_taken_only_where_nothing_changed_since_it_was_asked() {
    let bench = Bench::new(9, 1 << 20);
    let (volume, core) = (Arc::clone(&bench.volume), bench.node.core(1));
    let cache = bench.cache.clone();
    bench.run(async move {
        let lane = volume.open(&core).await.unwrap();
        lane.submit(write(blocks(0, 32), 3)).await.unwrap();
        let range = blocks(4, 20);
        let data = |number| {
            let (op, _) = write(range, number).into_parts();
            let Op::Write { data, .. } = op else { panic!() };
            data
        };
        let fill = cache.begin_fill(range).unwrap();
        lane.submit(write(blocks(8, 8), 4)).await.unwrap();
        // Of the two whole pages the first was written meanwhile.
        cache.fill(fill, range, &data(3));
        assert_eq!(cache.tally().bytes, PAGE as u64);
        assert_eq!(number_of(&read(&lane, blocks(8, 8)).await), 4);
        let before = cache.tally().misses;
        assert_eq!(number_of(&read(&lane, blocks(16, 8)).await), 3);
        assert_eq!(cache.tally().misses, before);
        // Another size begins with nothing.
        cache.set(2 << 20);
        assert_eq!(cache.tally(), Tally::default());
        assert!(
            cache.begin_fill(range).is_none(),
            "no lane has been opened yet"
        );
    });
}

/// Puts, removals and reads at random, of which some hold what they read for long. Reads of pages
/// that were put: found, and not.
fn churn(count: usize, pages: u64, slow: u64) -> (u32, u32) {
    let mut shard = shard::Shard::new(count);
    let mut draw = Draw::new(pages);
    let mut newest = std::collections::BTreeMap::new();
    let mut readers: Vec<(u64, Buf)> = Vec::new();
    let (mut found, mut absent) = (0, 0);
    for round in 1..30_000_u64 {
        let page = draw.below(pages);
        match draw.below(64) {
            0..24 => {
                shard.put(page, &page_of(round), 0);
                newest.insert(page, round);
            }
            24..28 => {
                shard.remove(page);
                newest.remove(&page);
            }
            28 if draw.below(20) == 0 => {
                shard.remove_all(&(page..page + 40));
                newest.retain(|other, _| !(page..page + 40).contains(other));
            }
            _ => {
                let mut all = Buf::empty();
                if shard.read(page..page + 1, &mut all) {
                    found += 1;
                    assert_eq!(Some(&number_of(&all)), newest.get(&page), "page {page}");
                    readers.push((number_of(&all), all));
                } else {
                    absent += u32::from(newest.contains_key(&page));
                }
            }
        }
        if readers.len() as u64 > slow {
            let place = usize::try_from(draw.below(slow)).unwrap();
            let (number, page) = readers.swap_remove(place);
            assert_eq!(number_of(&page), number, "what was read has changed");
        }
        assert!(shard.len() <= count);
    }
    (found, absent)
}

#[test]
fn a_page_that_somebody_reads_never_changes_and_what_is_read_was_put_last() {
    for (count, pages, slow) in [(20, 30, 4), (64, 90, 4), (600, 800, 12)] {
        let (found, absent) = churn(count, pages, slow);
        // Two thirds or three quarters of the pages have room.
        assert!(
            found > absent,
            "{count}: {found} were here, {absent} were not"
        );
    }
}
