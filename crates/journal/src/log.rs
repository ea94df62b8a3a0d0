//! Group commit: changes wait while batches are on their way, and go together in the next one.
//!
//! ```text
//!   submit --> waiting --> batch (at most two on their way)
//!         --> stable: acknowledged in order, with the place in the log
//! ```
//!
//! **Contract.** Changes become stable in the order in which they were submitted. Each gets the
//! next number of its volume when it is put into a batch, so that numbers have no gap however many
//! batches are lost with a crash. A change that was refused, or is answered as failed, has no
//! number that anyone will see again.
//!
//! **Failure.** After a write that failed everything that waits or is on its way has failed: nobody
//! knows what the device holds.

use crate::batch::{
    Change, Commit, DATA_ALIGNMENT, DATA_BYTES_MAX, Kind, RECORDS_MAX, Record, Sequence, VolumeId,
};
use crate::replay::Found;
use crate::ring::{BatchWrite, CheckpointWrite, Refused, Ring};
use std::collections::{BTreeMap, VecDeque};
use units::{BlockSize, Buf, LbaRange};

/// Batches on their way at once. With one, the device rests while the next is put together; with
/// more, each holds fewer changes, and a flush is paid for each.
const BATCHES_MAX: usize = 2;

/// Who waits for a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token(pub u64);

/// A change that is to be made stable.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The volume that is changed.
    pub volume: VolumeId,
    /// Of which blocks.
    pub range: LbaRange,
    /// How large a block is.
    pub block_size: BlockSize,
    /// Whether blocks are written, zeroed or given back, or only noted.
    pub kind: Kind,
    /// The data of a write, as long as its blocks; else nothing.
    pub data: Buf,
}

/// A change that is stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stable {
    /// Who waited for it.
    pub token: Token,
    /// The change, with its number.
    pub change: Change,
    /// The batch that holds it.
    pub batch: u64,
    /// The first byte of its data in the ring's log.
    pub data_at: u64,
}

/// What to do next.
#[derive(Debug)]
pub enum Next {
    /// Write a batch, past every volatile cache, and say how it ended by [`Log::written`].
    Write(BatchWrite),
    /// Write a checkpoint likewise, and say how it ended by [`Log::checkpoint_written`].
    Checkpoint(CheckpointWrite),
    /// Changes wait, but the ring has no room: something must be released.
    Full,
}

#[derive(Clone)]
struct OnItsWay {
    number: u64,
    holds: Vec<Stable>,
}

/// A ring with what waits for it.
#[derive(Clone)]
pub struct Log {
    ring: Ring,
    waiting: VecDeque<(Token, Wanted)>,
    on_their_way: VecDeque<OnItsWay>,
    /// The number that each volume's next change gets.
    sequences: BTreeMap<VolumeId, Sequence>,
}

impl Log {
    /// A log that goes on where a ring was opened; the volumes that it serves are added by
    /// [`Log::serve`].
    #[must_use]
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            waiting: VecDeque::new(),
            on_their_way: VecDeque::new(),
            sequences: BTreeMap::new(),
        }
    }

    /// Takes a volume in, whose next change gets the number `next`.
    pub fn serve(&mut self, volume: VolumeId, next: Sequence) {
        self.sequences.insert(volume, next);
    }

    /// The number of a volume's next change; `None` where it is not served.
    #[must_use]
    pub fn next_sequence(&self, volume: VolumeId) -> Option<Sequence> {
        self.sequences.get(&volume).copied()
    }

    /// Where its blocks lie in the journal's file, and which are free.
    #[must_use]
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Changes that wait for a batch.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A change that is to be made stable. Ask [`Log::next_step`] afterwards.
    ///
    /// # Errors
    /// [`Refused::Failed`] after a write has failed.
    ///
    /// # Panics
    /// If the volume is not served, or the data is not as long as its blocks, or more than a batch
    /// holds.
    pub fn submit(&mut self, token: Token, wanted: Wanted) -> Result<(), Refused> {
        assert!(
            self.sequences.contains_key(&wanted.volume),
            "volumes are served first"
        );
        let bytes = wanted.change(Sequence(0)).data_bytes();
        assert_eq!(bytes, Some(wanted.data.len()), "changes are cut to size");
        if self.ring.has_failed() {
            return Err(Refused::Failed);
        }
        self.waiting.push_back((token, wanted));
        Ok(())
    }

    /// Takes those back that wait for a batch and must not get into one any more.
    pub fn withdraw(&mut self, mut gone: impl FnMut(Token) -> bool) -> Vec<Token> {
        let mut withdrawn = Vec::new();
        self.waiting.retain(|(token, _)| {
            let gone = gone(*token);
            if gone {
                withdrawn.push(*token);
            }
            !gone
        });
        withdrawn
    }

    /// What is to be done now; call it until it says `None` or [`Next::Full`].
    pub fn next_step(&mut self) -> Option<Next> {
        if let Some(write) = self.ring.checkpoint() {
            return Some(Next::Checkpoint(write));
        }
        if self.waiting.is_empty() || self.on_their_way.len() >= BATCHES_MAX {
            return None;
        }
        let mut count = self.fit();
        loop {
            let changes: Vec<(Change, Buf)> = self.numbered(count);
            match self.ring.append(&changes) {
                Ok(write) => {
                    self.put_on_its_way(&write, &changes);
                    return Some(Next::Write(write));
                }
                // Fewer of them may find room, and what they are waiting for may be these.
                Err(Refused::Full) if count > 1 => count /= 2,
                Err(Refused::Full) => return Some(Next::Full),
                Err(Refused::Failed) => return None,
            }
        }
    }

    /// A batch of what lies in the oldest ones and cannot be given up, with the numbers that it
    /// has: it goes ahead of all that waits. Nothing that is on its way may touch it, see
    /// [`Log::is_on_its_way`]. It is stable as soon as [`Ring::stable`] says so.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    ///
    /// # Panics
    /// As [`Ring::append`].
    pub fn relocate(&mut self, relocated: &[(Change, Buf)]) -> Result<BatchWrite, Refused> {
        let write = self.ring.relocate(relocated)?;
        self.on_their_way.push_back(OnItsWay {
            number: write.number,
            holds: Vec::new(),
        });
        Ok(write)
    }

    /// A change of the same blocks is in a batch that is not stable yet.
    #[must_use]
    pub fn is_on_its_way(&self, change: &Change) -> bool {
        let sectors = change.sectors();
        let mut changes = self.on_their_way.iter().flat_map(|it| &it.holds);
        changes.any(|it| {
            let other = it.change.sectors();
            let same = it.change.volume == change.volume;
            same && other.start < sectors.end && sectors.start < other.end
        })
    }

    /// How many of those that wait fit into one batch.
    fn fit(&self) -> usize {
        let mut bytes = 0;
        let fits = self
            .waiting
            .iter()
            .take(RECORDS_MAX)
            .take_while(|(_, wanted)| {
                bytes += wanted.data.len().next_multiple_of(DATA_ALIGNMENT);
                bytes <= DATA_BYTES_MAX
            });
        fits.count()
    }

    /// The first of those that wait, with the numbers that they would get.
    fn numbered(&self, count: usize) -> Vec<(Change, Buf)> {
        let mut ahead: BTreeMap<VolumeId, u64> = BTreeMap::new();
        let numbered = self.waiting.iter().take(count).map(|(_, wanted)| {
            let ahead = ahead.entry(wanted.volume).or_default();
            let next = self.sequences[&wanted.volume].0 + *ahead;
            *ahead += 1;
            (wanted.change(Sequence(next)), wanted.data.clone())
        });
        numbered.collect()
    }

    fn put_on_its_way(&mut self, write: &BatchWrite, changes: &[(Change, Buf)]) {
        let taken = self.waiting.drain(..changes.len());
        let holds = taken.zip(changes).zip(&write.data_at);
        let holds = holds.map(|(((token, _), (change, _)), data_at)| Stable {
            token,
            change: *change,
            batch: write.number,
            data_at: write.at + u64::from(*data_at),
        });
        let holds: Vec<Stable> = holds.collect();
        for stable in &holds {
            let next = Sequence(stable.change.sequence.0 + 1);
            self.sequences.insert(stable.change.volume, next);
        }
        self.on_their_way.push_back(OnItsWay {
            number: write.number,
            holds,
        });
    }

    /// A batch's write has ended: these are stable now, in the order in which they were submitted.
    pub fn written(&mut self, number: u64, succeeded: bool) -> Vec<Stable> {
        self.ring.written(number, succeeded);
        let stable = self.ring.stable();
        let mut stable_now = Vec::new();
        while self
            .on_their_way
            .front()
            .is_some_and(|it| it.number <= stable)
        {
            let batch = self.on_their_way.pop_front();
            stable_now.extend(batch.into_iter().flat_map(|it| it.holds));
        }
        stable_now
    }

    /// Where the ring has failed: everyone who waits for something that will never be known to be
    /// stable, and for what was on its way the change, which the next replay may find.
    pub fn given_up(&mut self) -> Vec<(Token, Option<Change>)> {
        if !self.ring.has_failed() {
            return Vec::new();
        }
        let on_their_way = self.on_their_way.drain(..).flat_map(|it| it.holds);
        let mut given_up: Vec<_> = on_their_way.map(|it| (it.token, Some(it.change))).collect();
        given_up.extend(self.waiting.drain(..).map(|(token, _)| (token, None)));
        given_up
    }

    /// A checkpoint's write has ended.
    pub fn checkpoint_written(&mut self, succeeded: bool) {
        self.ring.checkpoint_written(succeeded);
    }

    /// As [`Ring::release`].
    pub fn release(&mut self, number: u64) {
        self.ring.release(number);
    }

    /// The log is at rest, and its last batch should be sealed: an empty batch to write, if there
    /// is room.
    pub fn seal(&mut self) -> Option<BatchWrite> {
        if !self.waiting.is_empty() || !self.ring.wants_seal() {
            return None;
        }
        let write = self.ring.append(&[]).ok()?;
        self.put_on_its_way(&write, &[]);
        Some(write)
    }
}

impl Wanted {
    const fn change(&self, sequence: Sequence) -> Change {
        Change {
            volume: self.volume,
            sequence,
            range: self.range,
            block_size: self.block_size,
            kind: self.kind,
            commit: Commit::AtOnce,
        }
    }
}

/// What a volume's changes say after a replay: the number of its next one.
pub fn sequences<'a>(
    found: impl IntoIterator<Item = &'a Found>,
    known: &mut BTreeMap<VolumeId, Sequence>,
) {
    for batch in found {
        let right = batch.records.iter().map(|record: &Record| record.change);
        for change in right.chain(batch.damaged.iter().copied()) {
            let next = known.entry(change.volume).or_insert(Sequence(0));
            *next = (*next).max(Sequence(change.sequence.0 + 1));
        }
    }
}
