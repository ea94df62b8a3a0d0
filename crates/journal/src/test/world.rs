//! A disk that forgets and tears, with one ring on it, and a list of what was written and
//! acknowledged.

use crate::*;
use std::collections::BTreeMap;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

pub(super) const OF: (JournalId, u32) = (JournalId([7; 16]), 3);

/// A generator of numbers that a seed repeats.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// What was put into a batch.
pub(super) type Contents = Vec<(Change, Vec<u8>)>;

pub(super) enum Target {
    Slot(usize),
    Log(u64),
}

/// A write that the disk has and has not answered.
pub(super) struct Pending {
    pub(super) target: Target,
    pub(super) bytes: Vec<u8>,
    /// `None` for a checkpoint.
    pub(super) number: Option<u64>,
}

/// A disk with one ring, and what is known of it.
pub(super) struct World {
    pub(super) random: Random,
    pub(super) blocks: u64,
    pub(super) slots: [Vec<u8>; 2],
    pub(super) log: Vec<u8>,
    pub(super) pending: Vec<Pending>,
    /// What each batch holds that was handed to the disk last under its number.
    pub(super) issued: BTreeMap<u64, Contents>,
    /// What each one may need: batches below are released, in a checkpoint or not yet.
    pub(super) acknowledged: u64,
    pub(super) released: u64,
    pub(super) sequence: u64,
}

impl World {
    /// What the log has to write is on its way, each batch shown first; `false` where it is full.
    pub(super) fn takes(&mut self, log: &mut Log, mut see: impl FnMut(&BatchWrite)) -> bool {
        while let Some(next) = log.next_step() {
            self.pending.push(match next {
                Next::Write(write) => {
                    see(&write);
                    Pending {
                        target: Target::Log(write.at),
                        bytes: write.bytes.to_vec(),
                        number: Some(write.number),
                    }
                }
                Next::Checkpoint(write) => Pending {
                    target: Target::Slot(write.slot.into()),
                    bytes: write.bytes,
                    number: None,
                },
                Next::Full => return false,
            });
        }
        true
    }

    /// The disk answers one write, whichever; what is known then where it was a batch.
    pub(super) fn ends_one(&mut self, log: &mut Log) -> Option<Ended> {
        let count = self.pending.len() as u64;
        if count == 0 {
            return None;
        }
        let which = usize::try_from(self.random.below(count)).unwrap();
        let write = self.pending.swap_remove(which);
        self.put(&write.target, &write.bytes, |_| true);
        let Some(number) = write.number else {
            log.checkpoint_written(true);
            return None;
        };
        Some(log.written(number, true))
    }

    pub(super) fn new(seed: u64, blocks: u64) -> Self {
        let first = Checkpoint::FIRST.write(OF.0, OF.1);
        let size = usize::try_from(blocks).unwrap() * BLOCK;
        Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            blocks,
            slots: [first, vec![0; BLOCK]],
            log: vec![0; size],
            pending: Vec::new(),
            issued: BTreeMap::new(),
            acknowledged: 0,
            released: 1,
            sequence: 0,
        }
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        let slots = [&self.slots[0][..], &self.slots[1][..]];
        Checkpoint::newest(slots, OF.0, OF.1).unwrap()
    }

    pub(super) fn replay(&self) -> (Vec<Found>, Result<Ring, Stop>) {
        let (found, replay) = self.read();
        (found, replay.into_ring())
    }

    /// What is found, and who has read it.
    pub(super) fn read(&self) -> (Vec<Found>, Replay) {
        let mut replay = Replay::new(OF, self.blocks, self.checkpoint());
        let mut found = Vec::new();
        loop {
            match replay.step() {
                Step::Read { at, bytes } => {
                    let from = usize::try_from(at).unwrap();
                    replay.fill(at, Buf::copy_of(&self.log[from..from + bytes]));
                }
                Step::Found(batch) => found.push(batch),
                Step::End => return (found, replay),
            }
        }
    }

    /// Data of a record, as it lies on the disk.
    pub(super) fn data(&self, place: BatchPosition, record: &Record) -> &[u8] {
        let from = place.position % self.blocks * BLOCK as u64 + u64::from(record.data_at);
        let from = usize::try_from(from).unwrap();
        &self.log[from..from + record.change.data_bytes().unwrap()]
    }

    /// A batch says what was put into it.
    pub(super) fn holds(&self, found: &Found) {
        let issued = &self.issued[&found.place.number];
        assert_eq!(found.damaged, [], "nothing was damaged");
        assert_eq!(found.records.len(), issued.len());
        for (record, (change, data)) in found.records.iter().zip(issued) {
            assert_eq!(record.change, *change);
            assert_eq!(self.data(found.place, record), data);
        }
    }

    /// Opens the ring after whatever happened, and checks what it finds.
    pub(super) fn open(&mut self) -> Ring {
        let tail = self.checkpoint().tail.number;
        let (found, ring) = self.replay();
        let numbers: Vec<u64> = found.iter().map(|it| it.place.number).collect();
        let last = numbers.last().map_or(tail - 1, |&last| last);
        assert_eq!(numbers, (tail..=last).collect::<Vec<u64>>(), "no gap");
        assert!(
            last >= self.acknowledged,
            "{last}: {} was acknowledged",
            self.acknowledged
        );
        assert!(tail <= self.released, "only what was released is forgotten");
        for batch in &found {
            self.holds(batch);
        }
        (self.acknowledged, self.released) = (last, tail);
        let ring = ring.unwrap();
        let opening = ring.opening().unwrap();
        self.pending.push(Pending {
            target: Target::Slot(opening.slot.into()),
            bytes: opening.bytes,
            number: None,
        });
        ring
    }

    /// A few changes, each with data that nothing else has.
    pub(super) fn changes(&mut self, most: u64) -> Contents {
        let count = self.random.below(most + 1);
        let change = |_| {
            self.sequence += 1;
            let blocks = 1 + self.random.below(24);
            let kind = [Kind::Write, Kind::Write, Kind::Zeroes, Kind::WriteAround]
                [usize::try_from(self.random.below(4)).unwrap()];
            let change = Change {
                volume: VolumeId(self.random.below(3)),
                sequence: Sequence(self.sequence),
                range: LbaRange::new(Lba(self.random.below(1000)), BlockCount(blocks)).unwrap(),
                block_size: BlockSize::B512,
                kind,
                commit: Commit::AtOnce,
            };
            let stamp = self.sequence.to_le_bytes();
            let bytes = change.data_bytes().unwrap();
            let data: Vec<u8> = stamp.into_iter().cycle().take(bytes).collect();
            (change, data)
        };
        (0..count).map(change).collect()
    }

    /// A short write of a volume, whose data says this over and over.
    pub(super) fn write(&mut self, volume: VolumeId, stamp: u64) -> Wanted {
        let blocks = 1 + self.random.below(16);
        let bytes = usize::try_from(blocks * 512).unwrap();
        let stamp = stamp.to_le_bytes();
        let data: Vec<u8> = stamp.into_iter().cycle().take(bytes).collect();
        Wanted {
            volume,
            range: LbaRange::new(Lba(self.random.below(500)), BlockCount(blocks)).unwrap(),
            block_size: BlockSize::B512,
            kind: Kind::Write,
            data: Buf::copy_of(&data),
        }
    }

    pub(super) fn append(&mut self, ring: &mut Ring, most: u64) -> Result<(), Refused> {
        let contents = self.changes(most);
        self.append_all(contents, |changes| ring.append(changes))
    }

    /// The oldest batch once more, in the room that is kept for it.
    pub(super) fn relocate(&mut self, ring: &mut Ring) -> Result<(), Refused> {
        let oldest = ring.oldest(1).map(|it| it.first());
        let contents = oldest.map_or_else(Vec::new, |it| self.issued[&it].clone());
        self.append_all(contents, |changes| ring.relocate(changes))
    }

    fn append_all(
        &mut self,
        contents: Contents,
        append: impl FnOnce(&[(Change, Buf)]) -> Result<BatchWrite, Refused>,
    ) -> Result<(), Refused> {
        let changes: Vec<(Change, Buf)> = contents
            .iter()
            .map(|(change, data)| (*change, Buf::copy_of(data)))
            .collect();
        let write = append(&changes)?;
        for ((_, data), at) in contents.iter().zip(&write.data_at) {
            let at = *at as usize;
            assert_eq!(write.bytes.slice(at..at + data.len()).to_vec(), *data);
        }
        self.issued.insert(write.number, contents);
        self.pending.push(Pending {
            target: Target::Log(write.at),
            bytes: write.bytes.to_vec(),
            number: Some(write.number),
        });
        Ok(())
    }

    pub(super) fn put(&mut self, target: &Target, bytes: &[u8], sectors: impl Fn(usize) -> bool) {
        let into = match *target {
            Target::Slot(slot) => &mut self.slots[slot][..],
            Target::Log(at) => &mut self.log[usize::try_from(at).unwrap()..],
        };
        for (sector, part) in bytes.chunks(512).enumerate() {
            if sectors(sector) {
                into[sector * 512..][..part.len()].copy_from_slice(part);
            }
        }
    }

    /// The disk answers one write, whichever.
    pub(super) fn complete(&mut self, ring: &mut Ring) {
        if self.pending.is_empty() {
            return;
        }
        let which = self.random.below(self.pending.len() as u64);
        let write = self.pending.swap_remove(usize::try_from(which).unwrap());
        self.put(&write.target, &write.bytes, |_| true);
        match write.number {
            Some(number) => ring.written(number, true),
            None => ring.checkpoint_written(true),
        }
        let stable = ring.stable();
        assert!(
            stable >= self.acknowledged,
            "what was acknowledged stays so"
        );
        self.acknowledged = stable;
    }

    /// Of each write that was not answered, all, nothing, or any of its sectors is there.
    pub(super) fn crash(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            let kept: Vec<bool> = match self.random.below(3) {
                0 => continue,
                1 => vec![true; write.bytes.len() / 512],
                _ => (0..write.bytes.len() / 512)
                    .map(|_| self.random.one_in(2))
                    .collect(),
            };
            self.put(&write.target, &write.bytes, |sector| kept[sector]);
        }
    }

    pub(super) fn release(&mut self, ring: &mut Ring) {
        let stable = ring.stable();
        if stable < self.released {
            return;
        }
        self.released += self.random.below(stable + 2 - self.released);
        ring.release(self.released);
        if let Some(write) = ring.checkpoint() {
            self.pending.push(Pending {
                target: Target::Slot(write.slot.into()),
                bytes: write.bytes,
                number: None,
            });
        }
    }

    /// Answers everything, so that all is stable, and the ring is at rest.
    pub(super) fn settle(&mut self, ring: &mut Ring) {
        while !self.pending.is_empty() {
            self.complete(ring);
        }
    }
}
