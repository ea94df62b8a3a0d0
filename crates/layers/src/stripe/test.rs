//! The map by counting, and the volume against the model over parts of both block sizes.

use super::*;
use crate::read_cache::ReadCache;
use crate::write_through::WriteThrough;
use crate::{Emulate, StableWrite};
use env::sim::{World, WorldConfig};
use std::time::Duration;
use units::BlockSize;
use volume::{Checked, Durability, OpKind, Origin, over};
use volume_test::Odds;
use volume_test::draw::Draw;
use volume_test::fault::{Action, FaultRule, Faults};
use volume_test::model::{Plan, conforms};
use volume_test::plain::Plain;

const PART_BLOCKS: u64 = 64;

fn column(part: usize, start: u64) -> Column {
    Column {
        part,
        start: Lba(start),
    }
}

/// Rows over three parts, as pools make them: spans of any length, stripes of whole units.
fn random_map(draw: &mut Draw) -> Map {
    let unit = 1 << draw.below(4);
    let mut used = [0_u64; 3];
    let mut rows = Vec::new();
    for _ in 0..1 + draw.below(4) {
        if draw.once_in(2) {
            let part = usize::try_from(draw.below(3)).unwrap();
            let blocks = 1 + draw.below(20);
            rows.push(Row {
                columns: vec![column(part, used[part])],
                blocks,
            });
            used[part] += blocks;
        } else {
            let blocks = unit * (1 + draw.below(16 / unit));
            let columns = (0..3).map(|part| column(part, used[part]));
            rows.push(Row {
                columns: columns.collect(),
                blocks,
            });
            used.iter_mut().for_each(|used| *used += blocks);
        }
    }
    Map::new(rows, unit).unwrap()
}

/// The places of all blocks, one by one: columns, turns and units as they are meant.
fn by_counting(map: &Map) -> Vec<(usize, u64)> {
    let mut all = Vec::new();
    for row in map.rows() {
        if let [only] = row.columns.as_slice() {
            all.extend((0..row.blocks).map(|at| (only.part, only.start.0 + at)));
            continue;
        }
        for unit in 0..row.blocks / map.unit() {
            for column in &row.columns {
                let first = column.start.0 + unit * map.unit();
                all.extend((first..first + map.unit()).map(|block| (column.part, block)));
            }
        }
    }
    all
}

/// Notes where the blocks of a piece lie; each is noted once.
fn note(piece: &Piece, found: &mut [Option<(usize, u64)>]) {
    let mut block = piece.range.start().0;
    let fragments = piece.fragments.iter();
    for at in fragments.flat_map(|fragment| fragment.at..fragment.at + fragment.len) {
        assert_eq!(piece.request_block(Lba(block)), at);
        let place = found[usize::try_from(at).unwrap()].replace((piece.part, block));
        assert_eq!(place, None, "block {at} twice");
        block += 1;
    }
    assert_eq!(block, piece.range.end().0);
}

#[test]
fn pieces_cover_every_range_once_at_the_places_that_counting_finds() {
    let mut several = 0;
    for seed in 0..200 {
        let mut draw = Draw::new(seed);
        let map = random_map(&mut draw);
        let places = by_counting(&map);
        assert_eq!(map.blocks().0, places.len() as u64);
        for _ in 0..20 {
            let start = draw.below(map.blocks().0);
            let len = 1 + draw.below(map.blocks().0 - start);
            let range = LbaRange::new(Lba(start), BlockCount(len)).unwrap();
            let pieces = map.pieces(range);
            several += usize::from(pieces.len() > 1);
            let mut found = vec![None; usize::try_from(len).unwrap()];
            for piece in &pieces {
                note(piece, &mut found);
            }
            let wanted = &places[usize::try_from(start).unwrap()..][..found.len()];
            let found: Vec<_> = found.into_iter().map(Option::unwrap).collect();
            assert_eq!(found, wanted, "seed {seed}");
        }
    }
    assert!(several > 1_000, "{several}");
}

#[test]
fn a_large_range_over_a_stripe_is_one_piece_for_each_part() {
    let columns = (0..4).map(|part| column(part, 16)).collect();
    let map = Map::new(
        vec![Row {
            columns,
            blocks: 64,
        }],
        8,
    )
    .unwrap();
    let range = LbaRange::new(Lba(3), BlockCount(200)).unwrap();
    assert_eq!(map.pieces(range).len(), 4);
}

fn stripe(block_size: BlockSize, parts: Vec<Arc<dyn Volume>>, unit: u64) -> Arc<dyn Volume> {
    assert_eq!(parts.len(), 3);
    let rows = vec![
        Row {
            columns: vec![column(1, 50)],
            blocks: 7,
        },
        Row {
            columns: (0..3).map(|part| column(part, 8)).collect(),
            blocks: 16,
        },
        Row {
            columns: vec![column(2, 40)],
            blocks: 9,
        },
    ];
    let map = Map::new(rows, unit).unwrap();
    let volume = Stripe::new(parts, map).unwrap();
    assert_eq!(volume.shape().block_size, block_size);
    volume
}

fn plain(block_size: BlockSize) -> Arc<dyn Volume> {
    Plain::make(block_size, BlockCount(PART_BLOCKS))
}

/// Answers some operations late.
fn slow(below: Arc<dyn Volume>, seed: u64) -> Arc<dyn Volume> {
    let faults = Faults::new();
    faults.by_chance(
        seed,
        Odds {
            delay: 3,
            ..Odds::default()
        },
    );
    over(faults, below)
}

#[test]
fn a_stripe_conforms_alone_and_under_and_over_other_layers_with_both_block_sizes() {
    type Build = fn(BlockSize, u64) -> Arc<dyn Volume>;
    let table: [(&str, Build); 5] = [
        ("alone", |size, _| {
            stripe(size, (0..3).map(|_| plain(size)).collect(), 4)
        }),
        ("slow parts", |size, seed| {
            let parts = (0..3).map(|part| slow(plain(size), seed * 3 + part));
            stripe(size, parts.collect(), 1)
        }),
        ("under all layers", |size, seed| {
            let parts = (0..3).map(|part| slow(plain(size), seed * 3 + part));
            let all = over(StableWrite, over(Emulate, stripe(size, parts.collect(), 2)));
            let cached = over(ReadCache::new(60 << 10, size), all);
            over(WriteThrough::new(true), cached)
        }),
        ("over cached parts", |size, seed| {
            let parts = (0..3).map(|part| {
                let part = slow(plain(size), seed * 3 + part);
                over(ReadCache::new(40 << 10, size), part)
            });
            stripe(size, parts.collect(), 8)
        }),
        ("stripes of stripes", |size, seed| {
            let parts = (0..3).map(|part| {
                let inner = (0..3).map(|_| plain(size)).collect();
                let map = Map::new(
                    vec![Row {
                        columns: (0..3).map(|part| column(part, 0)).collect(),
                        blocks: 32,
                    }],
                    2,
                );
                let inner: Vec<Arc<dyn Volume>> = inner;
                slow(Stripe::new(inner, map.unwrap()).unwrap(), seed + part)
            });
            stripe(size, parts.collect(), 4)
        }),
    ];
    for (name, build) in table {
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            for seed in 0..6 {
                println!("{name}, {block_size:?}, seed {seed}");
                let world = World::new(seed, WorldConfig::default());
                let node = world.node("node");
                let (core, volume) = (node.core(0), over(Checked, build(block_size, seed)));
                let run = async move {
                    let shape = volume.shape();
                    conforms(&core, volume, Plan::new(seed))
                        .await
                        .assert_covers(&shape);
                };
                world.block_on(&node, Duration::from_secs(60), run).unwrap();
            }
        }
    }
}

#[test]
fn a_failed_part_is_reported_with_the_lowest_block_as_the_volume_counts() {
    let world = World::new(1, WorldConfig::default());
    let node = world.node("node");
    let core = node.core(0);
    let faults = Faults::new();
    let (size, failing) = (BlockSize::B512, faults.clone());
    let parts = vec![plain(size), over(failing, plain(size)), plain(size)];
    let volume = stripe(size, parts, 4);
    let run = async move {
        let lane = volume.open(&core).await.unwrap();
        // Block 7 + 4 + 1 is the second of part 1's first unit: its block 9.
        let there = LbaRange::new(Lba(9), BlockCount(1)).unwrap();
        let error = IoError::MediumError { lba: Lba(9) };
        faults.add(FaultRule {
            kinds: vec![OpKind::Read, OpKind::Write],
            range: Some(there),
            skip: 0,
            times: 3,
            action: Action::Fail(error),
        });
        let read = |start, len| {
            let range = LbaRange::new(Lba(start), BlockCount(len)).unwrap();
            Io::new(Op::Read { range, into: None }, Origin::default())
        };
        let wanted = Err(IoError::MediumError { lba: Lba(12) });
        assert_eq!(lane.submit(read(0, 50)).await.map(drop), wanted);
        assert_eq!(lane.submit(read(12, 1)).await.map(drop), wanted);
        let range = LbaRange::new(Lba(8), BlockCount(12)).unwrap();
        let data = Buf::copy_of(&[1; 12 * 512]);
        let write = Op::Write {
            range,
            data,
            durability: Durability::Cached,
        };
        let failed = lane.submit(Io::new(write, Origin::default())).await;
        assert_eq!(failed.map(drop), wanted);
        let Ok(Done::Data(data)) = lane.submit(read(8, 12)).await else {
            panic!()
        };
        let bytes: Vec<u8> = data.to_vec().chunks(512).map(|block| block[0]).collect();
        assert_eq!(
            bytes,
            [1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1],
            "the other parts did theirs"
        );
    };
    world.block_on(&node, Duration::from_secs(9), run).unwrap();
}

#[test]
fn parts_of_different_blocks_or_too_small_make_no_volume() {
    let map = || {
        let columns = vec![column(0, 0), column(1, 0)];
        Map::new(
            vec![Row {
                columns,
                blocks: 64,
            }],
            8,
        )
        .unwrap()
    };
    let refused = |parts| Stripe::new(parts, map()).err().unwrap().cause;
    let mixed = vec![plain(BlockSize::B512), plain(BlockSize::B4096)];
    assert!(refused(mixed).contains("logical blocks have different sizes"));
    let short = Plain::make(BlockSize::B512, BlockCount(63));
    assert!(refused(vec![plain(BlockSize::B512), short]).contains("a part is too small"));
    assert!(refused(vec![plain(BlockSize::B512)]).contains("a part is missing"));
    assert!(Map::new(Vec::new(), 1).is_err());
}
