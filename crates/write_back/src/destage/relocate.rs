//! What cannot be destaged, or is lost, is relocated in the log, so that the room around it can be
//! used again.
//!
//! The record keeps its number: it is the same change at another place. Nothing newer of its blocks
//! is on its way when it is relocated, and whatever comes later comes behind it in the log.
//!
//! What waits for other copies is relocated as well, where its volume's neighbours need the room.
//! Then newer changes of its blocks may lie before it. They, too, wait or are relocated when their
//! turn comes ([`journal::Log::is_overtaken`]), so that a replay finds the newest last.

use super::contents::Left;
use crate::ring::{BareChange, Blocked, Condition, Effect, Event, Machine, Ring};
use journal::{
    Change, Commit, DATA_BYTES_MAX, Kind, Lying, RECORDS_MAX, SECTOR, Segment, Sequence, Stable,
    newest,
};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{BlockSize, Buf, Lba, LbaRange};

/// Data in one batch of what is relocated: half as much as a batch can have, so that less is left
/// free where the ring begins anew.
const RELOCATED_BYTES_MAX: usize = DATA_BYTES_MAX / 2;

/// Blocks of the log that must have come since the last lap, before another one is worth it: as
/// many as a round has.
const FRESH_BLOCKS: u64 = 1024;

/// Something that is relocated.
enum Piece {
    Data(Lying, Sequence),
    Bare(BareChange),
    /// It waits for other copies, or did so when the round began.
    Held(Stable),
}

/// What goes into one batch.
#[derive(Default)]
struct Together {
    changes: Vec<(Change, Buf)>,
    pieces: Vec<Piece>,
    bytes: usize,
}

/// A batch that is on its way: its number, its first byte in the log, and where from there the data
/// of each change lies.
struct Begun {
    number: u64,
    at: u64,
    data_at: Vec<u32>,
}

/// Relocates what the segment still has, if that is worth it; then nothing needs the segment any
/// more.
pub(super) async fn relocate(
    ring: &Rc<Ring>,
    segment: &Segment,
    data: &Buf,
    left: Left,
) -> Result<(), Blocked> {
    if !left.has_overtaken && !is_worth_it(&ring.machine()) {
        return Err(Blocked::Backing);
    }
    let held = left.held.into_iter().map(Piece::Held);
    let with_data = left.data.into_iter().map(|(it, by)| Piece::Data(it, by));
    let bare = left.bare.into_iter().map(Piece::Bare);
    let mut left: VecDeque<Piece> = with_data.chain(bare).chain(held).collect();
    while !left.is_empty() {
        // In one poll, so that nothing gets ahead of it.
        let together = together(&ring.machine(), &mut left, segment, data);
        if together.changes.is_empty() {
            on_its_way_ends(ring).await?;
            continue;
        }
        let Begun {
            number,
            at,
            data_at,
        } = begin(ring, &together.changes)?;
        until(ring, Condition::IsStable { number }).await?;
        let mut relocated = Vec::new();
        // What has no data is known by its number, wherever it lies.
        for (it, data_at) in together.pieces.into_iter().zip(data_at) {
            let lying = match it {
                Piece::Data(lying, _) => Some(lying),
                // It may have been committed meanwhile.
                Piece::Held(it) => lying_of(&ring.machine(), &it),
                Piece::Bare(_) => None,
            };
            if let Some(lying) = lying {
                let to = (at + u64::from(data_at)) / SECTOR;
                let to = u32::try_from(to).expect("a ring has 2 TiB at most");
                relocated.push((lying, to));
            }
        }
        ring.apply(Event::Relocated(&relocated));
    }
    Ok(())
}

/// Has these changes written to the log again.
fn begin(ring: &Rc<Ring>, changes: &[(Change, Buf)]) -> Result<Begun, Blocked> {
    let (begun, bytes) = ring.ask(Event::Relocate(changes), |effects| {
        if let Some(Effect::Blocked(blocked)) = effects.first() {
            return Err(*blocked);
        }
        let Some(Effect::WriteBatch(write)) = effects.first() else {
            unreachable!("it is written, or blocked")
        };
        let begun = Begun {
            number: write.number,
            at: write.at,
            data_at: write.data_at.clone(),
        };
        Ok((begun, write.bytes.len()))
    })?;
    ring.counts.borrow_mut().relocated_bytes += bytes as u64;
    Ok(begun)
}

/// There is enough in the log that was not relocated yet: a lap over nothing else would win
/// nothing.
fn is_worth_it(machine: &Machine) -> bool {
    let fresh = machine.fresh_blocks();
    let enough = FRESH_BLOCKS.min(machine.ring().room_blocks() / 8);
    let scarce = machine.is_pressed() || machine.is_scarce();
    fresh >= enough || (scarce && fresh > 0)
}

/// Until the batches that are on their way are stable.
async fn on_its_way_ends(ring: &Rc<Ring>) -> Result<(), Blocked> {
    let number = ring.machine().ring().next_number() - 1;
    until(ring, Condition::IsStable { number }).await
}

async fn until(ring: &Rc<Ring>, condition: Condition) -> Result<(), Blocked> {
    ring.apply(Event::AwaitRelocation(true));
    ring.wait_until(condition).await;
    ring.apply(Event::AwaitRelocation(false));
    if ring.machine().ring().has_failed() {
        return Err(Blocked::Log);
    }
    Ok(())
}

/// Takes out of what is `left` what may be relocated now, as much as fits into a batch. Of what is
/// not the newest any more nothing stays.
fn together(
    machine: &Machine,
    left: &mut VecDeque<Piece>,
    segment: &Segment,
    data: &Buf,
) -> Together {
    let mut together = Together::default();
    let mut later = Vec::new();
    while let Some(next) = left.pop_front() {
        let mut parts = live(machine, &next).into_iter();
        while let Some(part) = parts.next() {
            let (change, len) = change_of(machine, &part);
            let waits = match &part {
                Piece::Held(_) => !machine.may_relocate(&change),
                Piece::Data(..) | Piece::Bare(_) => machine.is_on_its_way(&change),
            };
            if waits {
                later.push(part);
                continue;
            }
            let is_full =
                together.changes.len() == RECORDS_MAX || together.bytes + len > RELOCATED_BYTES_MAX;
            if is_full {
                let rest: Vec<Piece> = std::iter::once(part).chain(parts).collect();
                rest.into_iter().rev().for_each(|it| left.push_front(it));
                left.extend(later);
                return together;
            }
            together
                .changes
                .push((change, data_of(machine, &part, segment, data)));
            together.pieces.push(part);
            together.bytes += len;
        }
    }
    left.extend(later);
    together
}

/// What of it still is the newest, none larger than a batch takes.
fn live(machine: &Machine, it: &Piece) -> Vec<Piece> {
    match it {
        Piece::Data(lying, by) => {
            let parts = newest(machine.index(), lying).into_iter();
            parts
                .flat_map(|part| halves(&part))
                .map(|part| Piece::Data(part, *by))
                .collect()
        }
        // They say nothing of where data is.
        Piece::Bare(bare)
            if matches!(bare.kind, Kind::Touched | Kind::Cut | Kind::RelocatedEpoch) =>
        {
            vec![Piece::Bare(bare.clone())]
        }
        Piece::Bare(bare) => machine
            .live_bare(std::slice::from_ref(bare))
            .into_iter()
            .map(Piece::Bare)
            .collect(),
        Piece::Held(it) => live_held(machine, it),
    }
}

/// What waits for other copies; what was committed meanwhile is as everything else, and what is
/// void is nothing.
fn live_held(machine: &Machine, it: &Stable) -> Vec<Piece> {
    let parts = machine.held_there(it);
    if !parts.is_empty() {
        let parts = parts.iter().flat_map(|part| {
            let lying = lying_of(machine, part);
            let halves = lying.map(|it| halves(&it)).unwrap_or_default();
            let halves: Vec<Stable> = halves.iter().map(|it| part.part(&it.sectors)).collect();
            if halves.is_empty() {
                vec![*part]
            } else {
                halves
            }
        });
        return parts.map(Piece::Held).collect();
    }
    let by = it.change.sequence;
    if let Some(lying) = lying_of(machine, it) {
        return live(machine, &Piece::Data(lying, by));
    }
    if matches!(it.change.kind, Kind::Cut | Kind::Epoch) {
        return Vec::new();
    }
    // The data of a write is damaged: else it would lie somewhere.
    let kind = if it.change.kind == Kind::Write {
        Kind::Lost
    } else {
        it.change.kind
    };
    let slot = machine.slot(it.change.volume);
    let bare = BareChange {
        slot: slot.expect("the log knows its volumes"),
        sectors: it.change.sectors(),
        by,
        kind,
    };
    live(machine, &Piece::Bare(bare))
}

/// Where its data lies, if it has some.
fn lying_of(machine: &Machine, it: &Stable) -> Option<Lying> {
    let has_data = it.change.kind == Kind::Write && !it.is_damaged;
    has_data.then(|| {
        let at = u32::try_from(it.data_at / SECTOR);
        machine.lying(&it.change, at.expect("a ring has 2 TiB at most"))
    })
}

/// The record that it gets, in sectors, and the bytes of its data.
fn change_of(machine: &Machine, it: &Piece) -> (Change, usize) {
    let (slot, sectors, sequence, kind) = match it {
        Piece::Data(lying, by) => (lying.slot, &lying.sectors, *by, Kind::Write),
        Piece::Bare(bare) => (bare.slot, &bare.sectors, bare.by, bare.kind),
        Piece::Held(it) => {
            let mut change = it.change.relocated();
            if it.is_damaged {
                change.kind = Kind::Lost;
            }
            return (change, change.data_bytes().expect("cut to size"));
        }
    };
    let range = LbaRange::between(Lba(sectors.start), Lba(sectors.end)).expect("in order");
    let change = Change {
        volume: machine.volume(slot).id,
        sequence,
        range,
        block_size: BlockSize::B512,
        kind,
        // It was committed when it was written first.
        commit: Commit::AtOnce,
    };
    (change, change.data_bytes().expect("cut to size"))
}

fn data_of(machine: &Machine, it: &Piece, segment: &Segment, data: &Buf) -> Buf {
    let lying = match it {
        Piece::Data(lying, _) => Some(lying.clone()),
        Piece::Held(it) => lying_of(machine, it),
        Piece::Bare(_) => None,
    };
    let Some(lying) = lying else {
        return Buf::empty();
    };
    let from = segment.sector_at(lying.at);
    let sectors = lying.sectors.end - lying.sectors.start;
    let len = usize::try_from(sectors * SECTOR).expect("a record is in memory");
    data.slice(from..from + len)
}

/// A part that is too long for one batch, in two.
fn halves(part: &Lying) -> Vec<Lying> {
    let most = RELOCATED_BYTES_MAX as u64 / SECTOR;
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
