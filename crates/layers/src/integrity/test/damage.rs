//! Bits that flip, writes that land elsewhere, and writes that never land: each is caught at
//! exactly its block.

use super::super::{Finding, Integrity, IntegrityLane, Repair};
use super::disk::{
    CHECKSUMS, DATA, KINDS, Kind, PAGES, flush, make, on_file, open, open_with, range, raw_read,
    raw_write, read, write,
};
use crate::integrity::Blank;
use crate::test::simulate;
use checksums::{Level, PAGE, PageId};
use env::{CoreHandle, LocalFuture};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use units::{Buf, Lba, LbaRange};
use volume::{IoError, Volume};
use volume_test::draw::Draw;

/// Checksums of the volumes here: two pages of them and a bit.
const BLOCKS: u64 = 2050;

/// Writes on which damage is done.
struct Bed {
    core: CoreHandle,
    below: Arc<dyn Volume>,
    volume: Arc<Integrity>,
    lane: Rc<IntegrityLane>,
    kind: Kind,
    draw: Draw,
    /// Which blocks with a checksum were written.
    written: Vec<u64>,
}

impl Bed {
    async fn new(core: &CoreHandle, kind: Kind, seed: u64) -> Self {
        let below = on_file(kind, BLOCKS * kind.unit());
        make(core, &below, Blank::Zeroes).await;
        let (volume, _) = open(core, &below).await;
        let lane = volume.lane(core).await.unwrap();
        let mut bed = Self {
            core: Rc::clone(core),
            below,
            volume,
            lane,
            kind,
            draw: Draw::new(seed),
            written: vec![0, 1, 2, 700, 1007, 1008, 1009, 1500, 2016, 2049],
        };
        for block in bed.written.clone() {
            bed.write(block, 1).await;
        }
        flush(&bed.lane).await;
        bed
    }

    fn at(&self, block: u64) -> LbaRange {
        range(block * self.kind.unit(), self.kind.unit())
    }

    fn contents(&self, block: u64, version: u8) -> Vec<u8> {
        contents(self.kind, block, version)
    }

    /// What a block holds on the disk, whatever its checksum says.
    async fn raw(&self, block: u64) -> Vec<u8> {
        let bytes = self.kind.bytes();
        let len = usize::try_from(bytes).unwrap();
        raw_read(&self.core, DATA, block * bytes, len).await
    }

    /// Puts something there behind the back of its checksum.
    async fn put(&self, block: u64, bytes: &[u8]) {
        raw_write(&self.core, DATA, block * self.kind.bytes(), bytes).await;
    }

    async fn write(&mut self, block: u64, version: u8) {
        write(&self.lane, self.at(block), &self.contents(block, version))
            .await
            .unwrap();
    }

    fn any(&mut self) -> u64 {
        self.written[usize::try_from(self.draw.below(self.written.len() as u64)).unwrap()]
    }

    async fn reopen(&mut self, cleanly: bool) {
        if cleanly {
            self.volume.close(&self.core).await.unwrap();
        }
        let (volume, _) = open(&self.core, &self.below).await;
        self.lane = volume.lane(&self.core).await.unwrap();
        self.volume = volume;
    }

    /// Reads what was written block by block, and some that never was: which ones are refused, by
    /// exactly their first block. What is not refused is as it was written.
    async fn refused(&self, version: impl Fn(u64) -> u8) -> BTreeSet<u64> {
        let mut refused = BTreeSet::new();
        for &block in self.written.iter().chain(&[5, 1200, 2030]) {
            match read(&self.lane, self.at(block)).await {
                Ok(bytes) if self.written.contains(&block) => {
                    assert_eq!(
                        bytes,
                        self.contents(block, version(block)),
                        "block {block} is wrong, silently"
                    );
                }
                Ok(bytes) => assert!(
                    bytes.iter().all(|&byte| byte == 0),
                    "block {block} is wrong, silently"
                ),
                Err(error) => {
                    assert_eq!(
                        error,
                        IoError::Integrity {
                            lba: self.at(block).start()
                        }
                    );
                    refused.insert(block);
                }
            }
        }
        refused
    }
}

fn contents(kind: Kind, block: u64, version: u8) -> Vec<u8> {
    let word = block * 1000 + u64::from(version);
    word.to_le_bytes()
        .repeat(usize::try_from(kind.bytes() / 8).unwrap())
}

/// One kind of damage to the data, and that it is caught where it is, until the block is written
/// again.
async fn hurt(bed: &mut Bed, kind: u64) {
    let (one, other) = (bed.any(), bed.any());
    let mut hurt = bed.raw(one).await;
    let mut place = one;
    match kind {
        0 => {
            let bit = usize::try_from(bed.draw.below(bed.kind.bytes() * 8)).unwrap();
            hurt[bit / 8] ^= 1 << (bit % 8);
        }
        1 if one != other => hurt = bed.raw(other).await,
        // The next write of it does not arrive.
        2 => {
            bed.write(one, 2).await;
            flush(&bed.lane).await;
        }
        // Something lands where nothing was ever written.
        _ => place = 1200,
    }
    bed.put(place, &hurt).await;
    assert_eq!(bed.refused(|_| 1).await, BTreeSet::from([place]), "{kind}");
    if place == 1200 {
        bed.put(place, &vec![0; hurt.len()]).await;
    } else {
        bed.write(one, 1).await;
    }
    // Written again, it is good again.
    assert_eq!(bed.refused(|_| 1).await, BTreeSet::new());
    flush(&bed.lane).await;
}

async fn hurt_often(core: CoreHandle, kind: Kind) {
    let mut bed = Bed::new(&core, kind, 5).await;
    for round in 0..200 {
        hurt(&mut bed, round % 4).await;
        match round % 100 {
            49 => bed.reopen(true).await,
            99 => bed.reopen(false).await,
            _ => {}
        }
    }
    // Block 1200, which nobody wrote, may be remembered.
    assert!(bed.volume.counts().bad_blocks <= 1);
}

#[test]
fn each_flipped_bit_misdirected_write_and_lost_write_of_data_is_caught_at_its_block() {
    for kind in KINDS {
        simulate(11, |core| Box::pin(hurt_often(core, kind)));
    }
    println!(
        "of each 100 flipped bits, misdirected and lost writes, and writes into blank space, all were caught"
    );
}

#[derive(Default)]
struct Tally {
    named: u64,
    harmless: u64,
    mended: u64,
}

/// A bit of a page of checksums, anywhere in both its places.
async fn flip(bed: &mut Bed, place: PageId) {
    let slot = bed.draw.below(2) * PAGE as u64;
    let bit = bed.draw.below(PAGE as u64 * 8);
    let offset = place.pair_at() + slot + bit / 8;
    let mut byte = raw_read(&bed.core, CHECKSUMS, offset, 1).await;
    byte[0] ^= 1 << (bit % 8);
    raw_write(&bed.core, CHECKSUMS, offset, &byte).await;
}

/// While the page is in memory nobody suffers, and a scrub mends the file.
async fn flip_of_resident(bed: &mut Bed, place: PageId, tally: &mut Tally) {
    bed.refused(|_| 1).await;
    flip(bed, place).await;
    assert_eq!(bed.refused(|_| 1).await, BTreeSet::new());
    tally.mended += bed
        .lane
        .check_map(bed.volume.shape().whole())
        .await
        .unwrap();
    bed.reopen(true).await;
    assert_eq!(bed.refused(|_| 1).await, BTreeSet::new());
}

async fn flip_of_closed(bed: &mut Bed, place: PageId, tally: &mut Tally) {
    bed.reopen(true).await;
    bed.volume.close(&bed.core).await.unwrap();
    flip(bed, place).await;
    let (volume, findings) = open(&bed.core, &bed.below).await;
    bed.lane = volume.lane(&bed.core).await.unwrap();
    bed.volume = volume;
    let of_page = bed
        .written
        .iter()
        .copied()
        .filter(|block| block / 1008 == place.index);
    let of_page: BTreeSet<u64> = of_page.collect();
    let refused = bed.refused(|_| 1).await;
    if refused.is_empty() {
        tally.harmless += 1;
    } else {
        tally.named += 1;
        assert!(of_page.is_subset(&refused), "{of_page:?}, {refused:?}");
        assert!(refused.iter().all(|block| block / 1008 == place.index));
        let first = Lba(place.index * 1008 * bed.kind.unit());
        let names = |it: &Finding| matches!(it, Finding::MapDamaged { blocks, .. } if blocks.start == first);
        assert!(findings.lock().unwrap().iter().any(names));
    }
    // The last resort: to live with what is there.
    bed.lane.adopt(bed.volume.shape().whole()).await.unwrap();
    flush(&bed.lane).await;
    assert_eq!(bed.refused(|_| 1).await, BTreeSet::new());
}

#[test]
fn damage_of_the_map_is_mended_or_named_and_nothing_is_wrong_in_silence() {
    for kind in KINDS {
        simulate(12, move |core| Box::pin(hurt_map_often(core, kind)));
    }
}

async fn hurt_map_often(core: CoreHandle, kind: Kind) {
    let mut bed = Bed::new(&core, kind, 9).await;
    let mut tally = Tally::default();
    for round in 0..150_u64 {
        let level = Level::Checksums;
        let place = PageId {
            level,
            index: round / 3 % 3,
        };
        if round % 3 == 0 {
            flip_of_resident(&mut bed, place, &mut tally).await;
        } else {
            flip_of_closed(&mut bed, place, &mut tally).await;
        }
    }
    let Tally {
        named,
        harmless,
        mended,
    } = tally;
    assert!(named > 20 && mended > 10, "{named}, {mended}");
    println!(
        "bits of the map: {named} named, {harmless} in the older place, {mended} mended from memory"
    );
}

/// A bit of what stands above pages of checksums, anywhere in both its places: a scrub mends what
/// would be missed, and nothing is weaker after it.
async fn flip_above(bed: &mut Bed, pair_at: u64, tally: &mut Tally) {
    assert_eq!(bed.lane.check_above().await, 0, "nothing was damaged");
    let both = 2 * PAGE;
    let before = raw_read(&bed.core, CHECKSUMS, pair_at, both).await;
    let bit = bed.draw.below(both as u64 * 8);
    let mut hurt = before.clone();
    hurt[usize::try_from(bit / 8).unwrap()] ^= 1 << (bit % 8);
    raw_write(&bed.core, CHECKSUMS, pair_at, &hurt).await;
    let found = bed.lane.check_above().await;
    let after = raw_read(&bed.core, CHECKSUMS, pair_at, both).await;
    if found == 0 {
        tally.harmless += 1;
        raw_write(&bed.core, CHECKSUMS, pair_at, &before).await;
    } else {
        assert_eq!((found, after), (1, before));
        tally.mended += 1;
        assert_eq!(bed.lane.check_above().await, 0, "it was mended");
    }
    // What says which pages are the newest is there for the next one.
    bed.volume.close(&bed.core).await.unwrap();
    let (volume, findings) = open(&bed.core, &bed.below).await;
    bed.lane = volume.lane(&bed.core).await.unwrap();
    bed.volume = volume;
    assert_eq!(bed.refused(|_| 1).await, BTreeSet::new());
    assert_eq!(*findings.lock().unwrap(), []);
}

#[test]
fn damage_above_the_pages_of_checksums_is_found_and_mended_by_a_scrub() {
    for kind in KINDS {
        simulate(15, move |core| {
            Box::pin(async move {
                let mut bed = Bed::new(&core, kind, 10).await;
                let mut tally = Tally::default();
                let above = [Level::Groups, Level::Regions].map(|level| PageId { level, index: 0 });
                let pairs = [above[0].pair_at(), above[1].pair_at(), 0];
                for round in 0..90 {
                    let block = bed.any();
                    bed.write(block, 1).await;
                    flush(&bed.lane).await;
                    flip_above(&mut bed, pairs[round % 3], &mut tally).await;
                }
                let Tally {
                    harmless, mended, ..
                } = tally;
                assert!(harmless > 20 && mended > 20, "{harmless}, {mended}");
            })
        });
    }
}

#[test]
fn a_lost_write_of_data_and_of_its_page_of_checksums_is_caught_by_the_page_above() {
    let (mut open_still, mut stopped) = (0, 0);
    simulate(13, |core| {
        Box::pin(async move {
            for seed in 0..40_usize {
                let mut bed = Bed::new(&core, KINDS[seed % 3], u64::try_from(seed).unwrap()).await;
                let block = bed.any();
                let (place, _) = PageId::of_block(block);
                let (data, pair) = (
                    bed.raw(block).await,
                    raw_read(&core, CHECKSUMS, place.pair_at(), 2 * PAGE).await,
                );
                bed.write(block, 2).await;
                flush(&bed.lane).await;
                if seed % 2 == 0 {
                    bed.reopen(true).await;
                }
                // Both writes never were.
                bed.put(block, &data).await;
                raw_write(&core, CHECKSUMS, place.pair_at(), &pair).await;
                if seed % 2 == 1 {
                    // While the map is open, and the page has left the memory.
                    let whole = bed.volume.shape().whole();
                    let found = bed.lane.check_map(whole).await.unwrap();
                    assert_eq!(found, 1, "a scrub finds it in memory");
                } else {
                    bed.reopen(false).await;
                }
                assert!(
                    bed.refused(|it| if it == block { 2 } else { 1 })
                        .await
                        .contains(&block)
                );
                for path in [DATA, CHECKSUMS] {
                    core.files()
                        .remove(std::path::Path::new(path))
                        .await
                        .unwrap();
                }
            }
        })
    });
    open_still += 20;
    stopped += 20;
    println!("both lost: {open_still} while open, {stopped} after a stop, all caught");
}

struct Other(u8);

impl Repair for Other {
    fn copy_of(self: Arc<Self>, _core: &CoreHandle, range: LbaRange) -> LocalFuture<Option<Buf>> {
        let version = self.0;
        Box::pin(async move { Some(Buf::copy_of(&contents(PAGES, range.start().0, version))) })
    }
}

#[test]
fn another_copy_is_written_where_it_fits_and_refused_where_not() {
    for (version, fits) in [(1, true), (3, false)] {
        simulate(14, move |core| {
            Box::pin(async move {
                let bed = Bed::new(&core, PAGES, 1).await;
                bed.volume.close(&core).await.unwrap();
                raw_write(&core, DATA, 700 * 4096 + 77, &[1]).await;
                let (volume, findings) = open_with(&core, &bed.below, |options| {
                    options.repair = Some(Arc::new(Other(version)));
                })
                .await;
                let lane = volume.lane(&core).await.unwrap();
                let answer = read(&lane, range(699, 3)).await;
                let reported = findings.lock().unwrap().clone();
                let at = range(700, 1);
                if fits {
                    assert_eq!(answer.unwrap()[4096..8192], contents(PAGES, 700, 1));
                    assert_eq!(reported, [Finding::Mismatch(at), Finding::Repaired(at)]);
                    assert_eq!(
                        raw_read(&core, DATA, 700 * 4096, 4096).await,
                        contents(PAGES, 700, 1)
                    );
                } else {
                    assert_eq!(answer, Err(IoError::Integrity { lba: Lba(700) }));
                    assert_eq!(reported, [Finding::Mismatch(at)]);
                }
                assert_eq!(volume.counts().repaired, u64::from(fits));
            })
        });
    }
}
