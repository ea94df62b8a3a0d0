//! What cannot go home, or is lost, moves on in the log, so that the room around it can be used
//! again.
//!
//! The record keeps its number: it is the same change at another place. Nothing newer of its blocks
//! is on its way when it moves, and whatever comes later comes behind it in the log.

use crate::carry::Held;
use crate::contents::{BareChange, HeldParts, live_bare};
use crate::shard::{Shard, State};
use journal::{
    Change, DATA_BYTES_MAX, Kind, Lying, RECORDS_MAX, Refused, SECTOR, Segment, Sequence, Write,
    newest,
};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{BlockSize, Buf, Lba, LbaRange};

/// Data in one batch of what moves: half as much as a batch can have, so that less is left free
/// where the ring begins anew.
const MOVED_BYTES_MAX: usize = DATA_BYTES_MAX / 2;

/// Blocks of the log that must have come since the last lap, before another one is worth it: as
/// many as a round has.
const FRESH_BLOCKS: u64 = 1024;

/// From this part of the log on it is worth it for less.
const SCARCE: f64 = 0.7;

/// Something that moves.
enum Moving {
    Data(Lying, Sequence),
    Bare(BareChange),
}

impl HeldParts {
    pub(crate) fn is_any(&self) -> bool {
        !self.data.is_empty() || !self.bare.is_empty()
    }
}

/// Moves on what the segment still has, if that is worth it; then nothing needs the segment any
/// more.
pub(crate) async fn move_on(
    shard: &Rc<Shard>,
    segment: &Segment,
    data: &Buf,
    held: HeldParts,
) -> Result<(), Held> {
    if !is_worth_it(shard) {
        return Err(Held::Home);
    }
    let with_data = held.data.into_iter().map(|(it, by)| Moving::Data(it, by));
    let bare = held.bare.into_iter().map(Moving::Bare);
    let mut left: VecDeque<Moving> = with_data.chain(bare).collect();
    while !left.is_empty() {
        let put = shard
            .state
            .borrow_mut()
            .move_some(&mut left, segment, data)?;
        let Some((write, moving)) = put else {
            on_its_way_ends(shard).await?;
            continue;
        };
        let (number, at, data_at) = (write.number, write.at, write.data_at.clone());
        shard.counts.borrow_mut().moved_bytes += write.bytes.len() as u64;
        crate::pump::start(shard, write);
        until_stable(shard, number).await?;
        let mut state = shard.state.borrow_mut();
        // What has no data is known by its number, wherever it lies.
        for (it, data_at) in moving.into_iter().zip(data_at) {
            if let Moving::Data(lying, _) = it {
                let to = (at + u64::from(data_at)) / SECTOR;
                let to = u32::try_from(to).expect("a ring has 2 TiB at most");
                let (slot, sectors) = (lying.slot, lying.sectors);
                state.index.relocate(slot, sectors, lying.at, to);
            }
        }
    }
    Ok(())
}

/// There is enough in the log that has not moved yet: a lap over nothing else would win nothing.
fn is_worth_it(shard: &Shard) -> bool {
    let state = shard.state.borrow();
    let ring = state.log.ring();
    let fresh = state.fresh_blocks();
    let enough = FRESH_BLOCKS.min(ring.room_blocks() / 8);
    let scarce = state.full || shard.hurry.get() > 0 || shard.fill_of(&state) >= SCARCE;
    fresh >= enough || (scarce && fresh > 0)
}

/// Until the batches that are on their way are stable.
async fn on_its_way_ends(shard: &Shard) -> Result<(), Held> {
    let newest = shard.state.borrow().log.ring().next_number() - 1;
    until_stable(shard, newest).await
}

async fn until_stable(shard: &Shard, number: u64) -> Result<(), Held> {
    shard.moving.set(true);
    let result = loop {
        let moved = shard.moved.notified();
        {
            let state = shard.state.borrow();
            if state.log.ring().has_failed() {
                break Err(Held::Log);
            }
            if state.log.ring().stable() >= number {
                break Ok(());
            }
        }
        moved.await;
    };
    shard.moving.set(false);
    result
}

impl State {
    /// Blocks of the log that came from hosts.
    pub(crate) fn fresh_blocks(&self) -> u64 {
        let ring = self.log.ring();
        ring.unreleased_blocks().saturating_sub(self.moved_blocks())
    }

    /// Blocks of the log that have moved on.
    pub(crate) fn moved_blocks(&self) -> u64 {
        self.moved.iter().map(|(_, blocks)| blocks).sum()
    }

    /// As [`journal::Log::seal`]; such a batch is not fresh.
    pub(crate) fn seal(&mut self) -> Option<Write> {
        let before = self.log.ring().unreleased_blocks();
        let write = self.log.seal()?;
        let blocks = self.log.ring().unreleased_blocks() - before;
        self.moved.push_back((write.number, blocks));
        Some(write)
    }

    /// Nothing below this batch is needed any more.
    pub(crate) fn release(&mut self, number: u64) {
        self.log.release(number);
        while self.moved.front().is_some_and(|it| it.0 < number) {
            self.moved.pop_front();
        }
    }

    /// Puts a batch together of what still is to move and may now; `None` where nothing may. In one
    /// poll, so that nothing gets ahead of it.
    fn move_some(
        &mut self,
        left: &mut VecDeque<Moving>,
        segment: &Segment,
        data: &Buf,
    ) -> Result<Option<(Write, Vec<Moving>)>, Held> {
        let (mut later, mut moving, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut changes: Vec<(Change, Buf)> = Vec::new();
        while let Some(next) = left.pop_front() {
            let mut parts = self.live(&next).into_iter();
            while let Some(part) = parts.next() {
                let (change, len) = self.change_of(&part);
                if self.log.is_on_its_way(&change) {
                    later.push(part);
                    continue;
                }
                if changes.len() == RECORDS_MAX || bytes + len > MOVED_BYTES_MAX {
                    let rest: Vec<Moving> = std::iter::once(part).chain(parts).collect();
                    rest.into_iter().rev().for_each(|it| left.push_front(it));
                    left.extend(later);
                    return self.moved(&changes, moving).map(Some);
                }
                changes.push((change, data_of(&part, segment, data)));
                moving.push(part);
                bytes += len;
            }
        }
        left.extend(later);
        if changes.is_empty() {
            return Ok(None);
        }
        self.moved(&changes, moving).map(Some)
    }

    fn moved(
        &mut self,
        changes: &[(Change, Buf)],
        moving: Vec<Moving>,
    ) -> Result<(Write, Vec<Moving>), Held> {
        let before = self.log.ring().unreleased_blocks();
        match self.log.relocate(changes) {
            Ok(write) => {
                let blocks = self.log.ring().unreleased_blocks() - before;
                self.moved.push_back((write.number, blocks));
                self.newest_data = self.newest_data.max(write.number);
                Ok((write, moving))
            }
            Err(Refused::Full) => Err(Held::Room),
            Err(Refused::Failed) => Err(Held::Log),
        }
    }

    /// What of it still is the newest, none larger than a batch takes.
    fn live(&self, it: &Moving) -> Vec<Moving> {
        match it {
            Moving::Data(lying, by) => {
                let parts = newest(&self.index, lying).into_iter();
                parts
                    .flat_map(|part| halves(&part))
                    .map(|part| Moving::Data(part, *by))
                    .collect()
            }
            // They say nothing of where data is.
            Moving::Bare(bare) if matches!(bare.kind, Kind::Touched | Kind::Cut) => {
                vec![Moving::Bare(bare.clone())]
            }
            Moving::Bare(bare) => live_bare(self, std::slice::from_ref(bare))
                .into_iter()
                .map(Moving::Bare)
                .collect(),
        }
    }

    /// The record that it gets, in sectors, and the bytes of its data.
    fn change_of(&self, it: &Moving) -> (Change, usize) {
        let (slot, sectors, sequence, kind) = match it {
            Moving::Data(lying, by) => (lying.slot, &lying.sectors, *by, Kind::Write),
            Moving::Bare(bare) => (bare.slot, &bare.sectors, bare.by, bare.kind),
        };
        let range = LbaRange::between(Lba(sectors.start), Lba(sectors.end)).expect("in order");
        let change = Change {
            volume: self.home(slot).id,
            sequence,
            range,
            block_size: BlockSize::B512,
            kind,
        };
        (change, change.data_bytes().expect("cut to size"))
    }
}

fn data_of(it: &Moving, segment: &Segment, data: &Buf) -> Buf {
    match it {
        Moving::Data(lying, _) => {
            let from = segment.sector_at(lying.at);
            let sectors = lying.sectors.end - lying.sectors.start;
            let len = usize::try_from(sectors * SECTOR).expect("a record is in memory");
            data.slice(from..from + len)
        }
        Moving::Bare(_) => Buf::empty(),
    }
}

/// A part that is too long for one batch, in two.
fn halves(part: &Lying) -> Vec<Lying> {
    let most = MOVED_BYTES_MAX as u64 / SECTOR;
    let middle = part.sectors.end.min(part.sectors.start + most);
    let first = Lying {
        sectors: part.sectors.start..middle,
        ..part.clone()
    };
    if middle == part.sectors.end {
        return vec![first];
    }
    let ahead = u32::try_from(most).expect("half a batch");
    let second = Lying {
        slot: part.slot,
        sectors: middle..part.sectors.end,
        at: part.at + ahead,
    };
    vec![first, second]
}
