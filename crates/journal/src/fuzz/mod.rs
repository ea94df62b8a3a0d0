//! Entry points for fuzzers: arbitrary bytes in, and a panic if an oracle is broken.

mod history;

pub use history::history;

use crate::batch::{Change, Commit, Kind, Sequence, VolumeId, data_at};
use crate::layout::{BLOCK, BatchPosition, Checkpoint, JournalId, Layout, Superblock};
use crate::replay::{Found, Replay, Step, Stop};
use crate::ring::Ring;
use formats::seal;
use std::collections::BTreeMap;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

const OF: (JournalId, u32) = (JournalId(*b"journal of fuzz!"), 1);

/// Blocks of the ring: it begins anew every few batches.
const BLOCKS: u64 = 48;

const SECTOR: usize = 512;

/// A superblock and a checkpoint. Oracles: what is accepted is written as the same bytes, and
/// refused with a bit changed.
///
/// # Panics
/// If not.
pub fn blocks(bytes: &[u8]) {
    let mut block = bytes.to_vec();
    block.resize(BLOCK, 0);
    let bit = bytes.iter().map(|&byte| usize::from(byte)).sum::<usize>() % (BLOCK * 8);
    let hurt = |block: &[u8]| {
        let mut hurt = block.to_vec();
        hurt[bit / 8] ^= 1 << (bit % 8);
        hurt
    };
    for magic in [b"CWJOURNL", b"CWJCHECK"] {
        if bytes.first().is_none_or(|first| first.is_multiple_of(2)) {
            block[..8].copy_from_slice(magic);
            seal(&mut block);
        }
        if let Ok(found) = Superblock::read(&block, 1 << 40) {
            let again = Superblock::read(&found.write(), 1 << 40);
            assert_eq!(again, Ok(found), "a superblock is read as it was written");
            let hurt = Superblock::read(&hurt(&block), 1 << 40);
            assert!(hurt.is_err(), "bit {bit} of a superblock is not covered");
            let least = Layout::bytes_min(found.layout.rings);
            assert!(least <= 1 << 40, "rings that no device has room for");
        }
        if let Ok(found) = Checkpoint::read(&block, OF.0, OF.1) {
            let again = Checkpoint::read(&found.write(OF.0, OF.1), OF.0, OF.1);
            assert_eq!(again, Ok(found), "a checkpoint is read as it was written");
            let hurt = Checkpoint::read(&hurt(&block), OF.0, OF.1);
            assert!(hurt.is_err(), "bit {bit} of a checkpoint is not covered");
        }
    }
}

/// A log that is written as the first bytes say, and hurt as the others do: sectors flipped,
/// zeroed, put elsewhere, or as they once were. Oracles: what a replay finds, where it finds it,
/// was written there under that number; what it calls damaged was; it finds all that was stable, or
/// says that something is lost. It may take stable batches for a torn end only where no header
/// after them is as it was written. What can be replayed can be gone on with.
///
/// # Panics
/// If not.
pub fn replay(bytes: &[u8]) {
    let mut script = Script(bytes);
    let mut disk = Disk::new();
    let mut ring = disk.open();
    for _ in 0..script.byte() % 40 {
        match script.byte() % 8 {
            0..=4 => disk.append(&mut ring, &mut script),
            5 | 6 => disk.release(&mut ring, script.byte()),
            _ => ring = disk.open(),
        }
    }
    disk.hurt(&mut script);
    disk.judge();
}

/// Bytes as decisions; zeroes where there are none.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }
}

/// A batch as it was written.
struct Written {
    place: BatchPosition,
    contents: Vec<(Change, Vec<u8>)>,
    header: Vec<u8>,
}

/// A disk with one ring, which answers at once, and what was written to it.
struct Disk {
    slots: [Vec<u8>; 2],
    log: Vec<u8>,
    /// The log, some time ago.
    once: Vec<u8>,
    checkpoints: Vec<Checkpoint>,
    batches: BTreeMap<u64, Written>,
    sequence: u64,
}

impl Disk {
    fn new() -> Self {
        let log = vec![0; usize::try_from(BLOCKS).expect("few") * BLOCK];
        Self {
            slots: [Checkpoint::FIRST.write(OF.0, OF.1), vec![0; BLOCK]],
            once: log.clone(),
            log,
            checkpoints: vec![Checkpoint::FIRST],
            batches: BTreeMap::new(),
            sequence: 0,
        }
    }

    fn newest(&self) -> Option<Checkpoint> {
        let [even, odd] = &self.slots;
        Checkpoint::newest([even, odd], OF.0, OF.1).ok()
    }

    fn put_checkpoint(&mut self, slot: u8, bytes: Vec<u8>) {
        let written = Checkpoint::read(&bytes, OF.0, OF.1).expect("it was just made");
        self.checkpoints.push(written);
        self.slots[usize::from(slot)] = bytes;
    }

    fn replayed(&self, checkpoint: Checkpoint) -> (Vec<Found>, Result<Ring, Stop>) {
        let mut replay = Replay::new(OF, BLOCKS, checkpoint);
        let mut found = Vec::new();
        loop {
            match replay.step() {
                Step::Read { at, bytes } => {
                    let from = usize::try_from(at).expect("inside of the log");
                    replay.fill(at, Buf::copy_of(&self.log[from..from + bytes]));
                }
                Step::Found(batch) => found.push(batch),
                Step::End => return (found, replay.into_ring()),
            }
        }
    }

    /// Opens the ring, which nobody has hurt yet.
    fn open(&mut self) -> Ring {
        let (_, ring) = self.replayed(self.newest().expect("there is one"));
        let mut ring = ring.expect("nothing is lost");
        self.go_on(&mut ring);
        ring
    }

    fn go_on(&mut self, ring: &mut Ring) {
        let opening = ring.opening().expect("it was just opened");
        self.put_checkpoint(opening.slot, opening.bytes);
        ring.checkpoint_written(true);
    }

    fn append(&mut self, ring: &mut Ring, script: &mut Script<'_>) {
        let mut contents = Vec::new();
        for _ in 0..script.byte() % 5 {
            self.sequence += 1;
            let kinds = [Kind::Write, Kind::Write, Kind::Zeroes, Kind::WriteAround];
            let change = Change {
                volume: VolumeId(u64::from(script.byte() % 2)),
                sequence: Sequence(self.sequence),
                range: LbaRange::new(
                    Lba(script.byte().into()),
                    BlockCount(u64::from(script.byte() % 9) + 1),
                )
                .expect("a short range"),
                block_size: BlockSize::B512,
                kind: kinds[usize::from(script.byte() % 4)],
                commit: Commit::AtOnce,
            };
            let bytes = change.data_bytes().expect("a short change");
            let stamp = self.sequence.to_le_bytes();
            let data = stamp.into_iter().cycle().take(bytes).collect();
            contents.push((change, data));
        }
        let changes: Vec<(Change, Buf)> = contents
            .iter()
            .map(|(change, data): &(Change, Vec<u8>)| (*change, Buf::copy_of(data)))
            .collect();
        let position = self.batches.values().next_back();
        let before = position.map_or(0, |it| it.place.position);
        let Ok(write) = ring.append(&changes) else {
            return;
        };
        let bytes = write.bytes.to_vec();
        let at = usize::try_from(write.at).expect("inside of the log");
        self.log[at..at + bytes.len()].copy_from_slice(&bytes);
        ring.written(write.number, true);
        let lap = before / BLOCKS * BLOCKS + write.at / BLOCK as u64;
        let position = if lap < before { lap + BLOCKS } else { lap };
        let data = write.data_at.first().copied().unwrap_or(u32::MAX);
        let header = usize::try_from(data).unwrap_or(bytes.len());
        let written = Written {
            place: BatchPosition {
                number: write.number,
                position,
            },
            contents,
            header: bytes[..header.min(bytes.len())].to_vec(),
        };
        self.batches.insert(write.number, written);
    }

    fn release(&mut self, ring: &mut Ring, part: u8) {
        let (from, to) = (ring.released().number, ring.stable() + 1);
        let number = from + (to - from) * u64::from(part) / 255;
        ring.release(number);
        if let Some(write) = ring.checkpoint() {
            self.put_checkpoint(write.slot, write.bytes);
            ring.checkpoint_written(true);
        }
        self.once.clone_from(&self.log);
    }

    /// Harm to a few sectors.
    fn hurt(&mut self, script: &mut Script<'_>) {
        while !script.0.is_empty() {
            let what = script.byte();
            let mut place = || {
                let number = u16::from_le_bytes([script.byte(), script.byte()]);
                usize::from(number) % (self.log.len() / SECTOR)
            };
            let (at, other) = (place() * SECTOR, place() * SECTOR);
            match what % 6 {
                0 => self.log[at + usize::from(what)] ^= 1 << (what % 8),
                1 => self.log[at..at + SECTOR].fill(0),
                2 => self.log.copy_within(at..at + SECTOR, other),
                3 => self.log[at..at + SECTOR].copy_from_slice(&self.once[at..at + SECTOR]),
                4 => self.slots[usize::from(what) / 6 % 2][at % BLOCK] ^= 1 << (what % 8),
                // A whole block that was never written.
                _ => {
                    let at = at / BLOCK * BLOCK;
                    self.log[at..at + BLOCK].copy_from_slice(&self.once[at..at + BLOCK]);
                }
            }
        }
    }

    /// Some batch after this one says that it was stable, and is as it was written.
    fn is_witnessed(&self, number: u64) -> bool {
        let later = self.batches.range(number + 1..);
        let mut later = later.map(|(_, it)| it);
        later.any(|it| {
            let at = usize::try_from(it.place.position % BLOCKS).expect("few") * BLOCK;
            self.log[at..].starts_with(&it.header)
        })
    }

    fn judge(&mut self) {
        let Some(checkpoint) = self.newest() else {
            return;
        };
        assert!(
            self.checkpoints.contains(&checkpoint),
            "a checkpoint that nobody wrote: {checkpoint:?}"
        );
        let (found, ring) = self.replayed(checkpoint);
        let mut next = checkpoint.tail.number;
        for batch in &found {
            assert_eq!(batch.place.number, next, "batches come in order");
            next += 1;
            self.was_written(batch);
        }
        let Ok(mut ring) = ring else {
            return;
        };
        let last = self.batches.keys().next_back().copied().unwrap_or(0);
        for number in next..=last {
            assert!(
                !self.is_witnessed(number),
                "batch {number} was stable, a later one says so, and it is taken for a torn end"
            );
        }
        self.goes_on(&mut ring, &found);
    }

    fn was_written(&self, found: &Found) {
        let number = found.place.number;
        let written = self.batches.get(&number);
        let written = written.unwrap_or_else(|| panic!("nobody wrote batch {number}"));
        for record in &found.records {
            let of_it = |(change, _): &&(Change, Vec<u8>)| *change == record.change;
            let (_, data) = written.contents.iter().find(of_it).unwrap_or_else(|| {
                panic!("batch {number} never held {:?}", record.change);
            });
            let from = data_at(found.place, record, BLOCKS);
            let from = usize::try_from(from).expect("inside of the log");
            let there = self.log.get(from..from + data.len());
            assert_eq!(
                there,
                Some(&data[..]),
                "data that nobody wrote in batch {number}"
            );
        }
        for damaged in &found.damaged {
            let known = written.contents.iter().any(|(it, _)| it == damaged);
            assert!(
                known,
                "batch {number} never held {damaged:?}, which is lost"
            );
        }
        let all = found.records.len() + found.damaged.len();
        assert_eq!(
            all,
            written.contents.len(),
            "a change of batch {number} is missing"
        );
    }

    /// A batch more is found by the next opening, after all that was found before.
    fn goes_on(&mut self, ring: &mut Ring, before: &[Found]) {
        self.go_on(ring);
        let mut script = Script(&[1, 0, 3, 2, 0]);
        let number = ring.next_number();
        self.batches.retain(|&it, _| it < number);
        self.append(ring, &mut script);
        let (found, again) = self.replayed(self.newest().expect("it was just written"));
        let appended = self.batches.contains_key(&number);
        assert!(again.is_ok(), "it was opened before: {:?}", again.err());
        let numbers = |found: &[Found]| found.iter().map(|it| it.place.number).collect::<Vec<_>>();
        let mut expected = numbers(before);
        expected.extend(appended.then_some(number));
        assert_eq!(
            numbers(&found),
            expected,
            "after an opening and a batch more"
        );
    }
}

/// Inputs to start from, by the names of their targets.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let superblock = Superblock {
        journal: OF.0,
        pool: [3; 16],
        layout: Layout {
            rings: 2,
            ring_blocks: 2048,
        },
        shard_bytes: 1 << 30,
    };
    let mut seeds = vec![
        ("journal_blocks", superblock.write()),
        ("journal_blocks", Checkpoint::FIRST.write(OF.0, OF.1)),
    ];
    // Batches, a release, an opening between, and one harm of each kind.
    let batch = [0, 2, 0, 10, 4, 0, 1, 200, 8, 1];
    for harm in 0..6 {
        let mut script = vec![25];
        for step in 0..20 {
            script.extend(batch);
            if step % 6 == 5 {
                script.extend([5, 180]);
            }
            if step == 9 {
                script.push(7);
            }
        }
        script.extend([harm, 40, 0, 80, 0]);
        seeds.push(("journal_replay", script));
    }
    seeds.extend(history::seeds());
    seeds
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_not_hurt_is_found() {
        for (name, bytes) in seeds() {
            if name == "journal_replay" {
                replay(&bytes[..bytes.len() - 5]);
            }
            if name == "history" {
                history(&bytes[..bytes.len() - 4]);
            }
        }
    }
}
