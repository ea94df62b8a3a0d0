//! Group commit: changes wait while batches are on their way, and go together in the next one.
//!
//! ```text
//!   submit --> waiting --> batch (at most two on their way)
//!         --> stable: acknowledged in order, with the place in the log
//! ```
//!
//! **Contract.** Changes become stable in the order in which they were submitted, and those of a
//! volume are committed in this order: with their batch where the volume has one copy, and else
//! when [`Log::commit`] says so. Each gets the next number of its volume when it is put into a
//! batch, so that numbers have no gap however many batches are lost with a crash. A change that was
//! refused, or is answered as failed, has no number that anyone will see again.
//!
//! **Failure.** After a write that failed everything that waits or is on its way has failed: nobody
//! knows what the device holds.

use crate::batch::{
    Change, Commit, DATA_ALIGNMENT, DATA_BYTES_MAX, Kind, RECORDS_MAX, Record, Sequence, VolumeId,
};
use crate::replay::Found;
use crate::ring::{BatchWrite, CheckpointWrite, Refused, Ring};
use crate::stable::{Ended, Stable, Token};
use crate::uncommitted::{Epoch, Uncommitted};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use units::{BlockSize, Buf, Lba, LbaRange};

/// Batches on their way at once. With one, the device rests while the next is put together; with
/// more, each holds fewer changes, and a flush is paid for each.
const BATCHES_MAX: usize = 2;

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

/// What the log knows of a volume.
#[derive(Clone, Copy)]
struct Served {
    /// The number that its next change gets.
    next: Sequence,
    /// When its changes are committed.
    commit: Commit,
}

/// A ring with what waits for it.
#[derive(Clone)]
pub struct Log {
    ring: Ring,
    waiting: VecDeque<(Token, Wanted)>,
    on_their_way: VecDeque<OnItsWay>,
    served: BTreeMap<VolumeId, Served>,
    uncommitted: Uncommitted,
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
            served: BTreeMap::new(),
            uncommitted: Uncommitted::default(),
        }
    }

    /// The same, with what was found in the ring and is not known to be committed.
    #[must_use]
    pub fn with_uncommitted(ring: Ring, uncommitted: Uncommitted) -> Self {
        let mut log = Self::new(ring);
        log.uncommitted = uncommitted;
        log.mark();
        log
    }

    /// Takes a volume in, whose next change gets the number `next`.
    pub fn serve(&mut self, volume: VolumeId, next: Sequence) {
        let commit = self.served.get(&volume).map(|it| it.commit);
        let commit = commit.unwrap_or_default();
        self.served.insert(volume, Served { next, commit });
    }

    /// The number of a volume's next change; `None` where it is not served.
    #[must_use]
    pub fn next_sequence(&self, volume: VolumeId) -> Option<Sequence> {
        self.served.get(&volume).map(|it| it.next)
    }

    /// When the changes of a volume are committed that are submitted from now on.
    ///
    /// # Panics
    /// If the volume is not served, or some of its changes wait for a batch.
    pub fn commits(&mut self, volume: VolumeId, commit: Commit) {
        let waits = self.waits_of(volume);
        let served = self.served.get_mut(&volume);
        let served = served.expect("volumes are served first");
        assert!(served.commit == commit || !waits, "none waits for a batch");
        // Nothing is known of what is on its way where it was so before.
        if commit == Commit::Later && served.commit != commit {
            self.uncommitted.serve(volume, served.next);
        }
        served.commit = commit;
    }

    fn waits_of(&self, volume: VolumeId) -> bool {
        self.waiting.iter().any(|(_, it)| it.volume == volume)
    }

    /// All changes of the volume with numbers below this one are committed: those of them that are
    /// stable here, and were not given out before, in their order. The others are given out with
    /// their batches. After [`Log::begin_epoch`] it is the numbers of that epoch that count.
    pub fn commit(&mut self, volume: VolumeId, below: Sequence) -> Vec<Stable> {
        let committed = self.uncommitted.commit(volume, below);
        self.mark();
        committed
    }

    /// Of a volume of several copies: all changes below the first number are stable here, and all
    /// below the second one are known to be committed.
    #[must_use]
    pub fn known(&self, volume: VolumeId) -> (Sequence, Sequence) {
        self.uncommitted.known(volume)
    }

    /// The epochs of a volume that its log knows, from the oldest on.
    pub fn epochs(&self, volume: VolumeId) -> impl Iterator<Item = Epoch> {
        self.uncommitted.epochs(volume)
    }

    /// Has the volume go on with number `first` in a later epoch: what is stable here with this
    /// number or a higher one, and not committed, is void as soon as the record of that is stable.
    /// A copy gives so up what only it has of an owner that is none any more.
    ///
    /// # Errors
    /// [`Refused::Failed`] after a write has failed.
    ///
    /// # Panics
    /// If the volume is not served, changes of it wait for a batch, or what is committed would be
    /// void.
    pub fn begin_epoch(
        &mut self,
        token: Token,
        (volume, epoch): (VolumeId, u64),
        first: Sequence,
    ) -> Result<(), Refused> {
        assert!(!self.waits_of(volume), "none waits for a batch");
        assert!(
            first >= self.known(volume).1,
            "what is committed is never void"
        );
        let range = LbaRange::between(Lba(epoch), Lba(epoch)).expect("in order");
        let record = Wanted {
            volume,
            range,
            block_size: BlockSize::B512,
            kind: Kind::Epoch,
            data: Buf::empty(),
        };
        self.submit(token, record)?;
        let served = self.served.get_mut(&volume);
        served.expect("it was just asked for").next = first;
        self.uncommitted.begins(volume, first);
        Ok(())
    }

    /// The ring knows which batch is the oldest that is not committed.
    fn mark(&mut self) {
        self.ring.set_uncommitted(self.uncommitted.oldest_batch());
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
            self.served.contains_key(&wanted.volume),
            "volumes are served first"
        );
        let bytes = wanted.change(Sequence(0), Commit::AtOnce).data_bytes();
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

    /// A change of the same blocks is in a batch that is not stable yet, or is not committed.
    #[must_use]
    pub fn is_on_its_way(&self, change: &Change) -> bool {
        let sectors = change.sectors();
        let mut changes = self.on_their_way.iter().flat_map(|it| &it.holds);
        changes.any(|it| it.change.volume == change.volume && it.touches(&sectors))
            || self.uncommitted.touch(change.volume, &sectors)
    }

    /// A change of these sectors of the volume is stable, and not committed.
    #[must_use]
    pub fn has_uncommitted(&self, volume: VolumeId, sectors: &Range<u64>) -> bool {
        self.uncommitted.touch(volume, sectors)
    }

    /// What this batch has of this change was never committed, and never will be.
    #[must_use]
    pub fn is_void(&self, change: &Change, batch: u64) -> bool {
        self.uncommitted.is_void(change, batch)
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
            let served = self.served[&wanted.volume];
            let next = Sequence(served.next.0 + *ahead);
            *ahead += 1;
            (wanted.change(next, served.commit), wanted.data.clone())
        });
        numbered.collect()
    }

    fn put_on_its_way(&mut self, write: &BatchWrite, changes: &[(Change, Buf)]) {
        let taken = self.waiting.drain(..changes.len());
        let holds = taken.zip(changes).zip(&write.data_at);
        let holds = holds.map(|(((token, _), (change, _)), data_at)| Stable {
            token: Some(token),
            change: *change,
            batch: write.number,
            data_at: write.at + u64::from(*data_at),
            is_damaged: false,
        });
        let holds: Vec<Stable> = holds.collect();
        for stable in &holds {
            let served = self.served.get_mut(&stable.change.volume);
            let served = served.expect("volumes are served first");
            served.next = Sequence(stable.change.sequence.0 + 1);
        }
        self.on_their_way.push_back(OnItsWay {
            number: write.number,
            holds,
        });
    }

    /// A batch's write has ended: this is stable now, and this is committed.
    pub fn written(&mut self, number: u64, succeeded: bool) -> Ended {
        self.ring.written(number, succeeded);
        let stable = self.ring.stable();
        let mut ended = Ended::default();
        while self
            .on_their_way
            .front()
            .is_some_and(|it| it.number <= stable)
        {
            let batch = self.on_their_way.pop_front();
            for it in batch.into_iter().flat_map(|it| it.holds) {
                match it.change.commit {
                    Commit::AtOnce => ended.committed.push(it),
                    Commit::Later => self.uncommitted.add(it, &mut ended),
                }
            }
        }
        self.mark();
        ended
    }

    /// Where the ring has failed: everyone who waits for something that will never be known to be
    /// stable or committed, and for what was on its way the change, which the next replay may find.
    pub fn given_up(&mut self) -> Vec<(Token, Option<Change>)> {
        if !self.ring.has_failed() {
            return Vec::new();
        }
        let uncommitted = self.uncommitted.give_up();
        let on_their_way = self.on_their_way.drain(..).flat_map(|it| it.holds);
        let with_change = |it: Stable| Some((it.token?, Some(it.change)));
        let given_up = uncommitted.into_iter().chain(on_their_way);
        let mut given_up: Vec<_> = given_up.filter_map(with_change).collect();
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
        self.uncommitted.release(number);
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
    const fn change(&self, sequence: Sequence, commit: Commit) -> Change {
        Change {
            volume: self.volume,
            sequence,
            range: self.range,
            block_size: self.block_size,
            kind: self.kind,
            commit,
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
            let (after, next) = (Sequence(change.sequence.0 + 1), known.entry(change.volume));
            let next = next.or_insert(Sequence(0));
            // What had the numbers behind it before is void.
            *next = if change.kind == Kind::Epoch {
                after
            } else {
                after.max(*next)
            };
        }
    }
}
