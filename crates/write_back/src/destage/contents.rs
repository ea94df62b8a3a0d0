//! What a segment of the log says, and what of it is still needed.

use crate::ring::{BareChange, Event, Machine, Ring};
use journal::{
    Again, BatchPosition, Change, Kind, Lying, Record, SECTOR, Segment, Sequence, Slot, Stable,
    newest,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use units::Buf;

/// What a segment holds.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) lying: Vec<Lying>,
    /// Which changes they are.
    by: Vec<Sequence>,
    pub(super) bare: Vec<BareChange>,
    /// What waits for other copies.
    held: Vec<Stable>,
    /// What is relocated whether it could be destaged or not: an older change of the same blocks
    /// lies behind it in the log.
    overtaken: Left,
    /// What is lost cannot be destaged, and must not be forgotten.
    lost: Vec<BareChange>,
    /// Cuts, epochs, and what was written around the log: of some volumes the log must go on to say
    /// it.
    pub(super) notes: Vec<BareChange>,
    /// The number after the newest change of each volume.
    pub(super) next: BTreeMap<Slot, Sequence>,
}

/// What of a segment cannot be given up.
#[derive(Default)]
pub(super) struct Left {
    pub(super) data: Vec<(Lying, Sequence)>,
    pub(super) bare: Vec<BareChange>,
    pub(super) held: Vec<Stable>,
    /// Some of it is there to stay in order only: it is destaged in the next round.
    pub(super) has_overtaken: bool,
}

impl Left {
    pub(super) fn is_any(&self) -> bool {
        !self.data.is_empty() || !self.bare.is_empty() || !self.held.is_empty()
    }
}

/// What the segment says. What is damaged in it is lost from now on, if nothing newer is known.
pub(super) fn contents(ring: &Rc<Ring>, segment: &Segment, data: &Buf) -> Contents {
    let mut contents = Contents::default();
    let mut unread: Vec<Range<u32>> = Vec::new();
    for batch in segment.batches(data) {
        match batch {
            Again::Found {
                place,
                records,
                damaged,
            } => {
                for record in &records {
                    contents.take(&ring.machine(), segment, place, record);
                }
                for record in &damaged {
                    let at = segment.sector_of(place, record);
                    let sectors = record.change.sectors();
                    let count = u32::try_from(sectors.end - sectors.start);
                    // Of what waits a part may lie elsewhere by now, and the rest behind its begin.
                    unread.push(at..at + count.expect("a record is short"));
                    let is_gone = ring.machine().is_gone(&record.change, place.number);
                    if !is_gone {
                        let lost = lose(ring, segment, place, record);
                        contents.lost.push(lost);
                    }
                }
            }
            Again::Damaged { sectors } => {
                unread.push(sectors.clone());
                ring.apply(Event::BatchLost(&sectors));
                // Which changes without data it held nobody says any more: all that are known are
                // destaged now.
                let bare = ring.machine().all_bare().into_iter();
                let (lost, bare): (Vec<_>, Vec<_>) = bare.partition(|it| it.kind == Kind::Lost);
                contents.lost.extend(lost);
                let overtaken = |it: &BareChange| ring.machine().is_overtaken_by_any(it);
                let (overtaken, bare): (Vec<_>, Vec<_>) = bare.into_iter().partition(overtaken);
                contents.bare.extend(bare);
                contents.overtaken.bare.extend(overtaken);
            }
        }
    }
    let held = ring.machine().held_in(segment);
    for it in held {
        let at = it.data_at / SECTOR;
        let is_unread = |sectors: &Range<u32>| {
            it.change.kind == Kind::Write
                && (u64::from(sectors.start)..u64::from(sectors.end)).contains(&at)
        };
        if unread.iter().any(is_unread) {
            ring.apply(Event::HeldLost(&it));
        }
    }
    contents.held = ring.machine().held_in(segment);
    contents
}

/// The data of a write is damaged: what of it is the newest is lost. What was lost before is said
/// again.
fn lose(ring: &Rc<Ring>, segment: &Segment, place: BatchPosition, record: &Record) -> BareChange {
    let at = segment.sector_of(place, record);
    let lying = ring.machine().lying(&record.change, at);
    let by = record.change.sequence;
    ring.apply(Event::RecordLost { lying: &lying, by });
    BareChange {
        slot: lying.slot,
        sectors: lying.sectors,
        by,
        kind: Kind::Lost,
    }
}

impl Contents {
    fn take(
        &mut self,
        machine: &Machine,
        segment: &Segment,
        place: BatchPosition,
        record: &Record,
    ) {
        let change = record.change;
        // What the log goes on with has the number of the next change.
        if machine.is_gone(&change, place.number) || change.goes_on() {
            return;
        }
        let slot = machine.slot(change.volume);
        let slot = slot.expect("the log knows its volumes");
        let next = self.next.entry(slot).or_insert(Sequence(0));
        *next = (*next).max(Sequence(change.sequence.0 + 1));
        let is_overtaken = machine.is_overtaken(&change, place.number);
        let bare = |kind| BareChange {
            slot,
            sectors: change.sectors(),
            by: change.sequence,
            kind,
        };
        match change.kind {
            Kind::Write => {
                let lying = machine.lying(&change, segment.sector_of(place, record));
                if is_overtaken {
                    self.overtaken.data.push((lying, change.sequence));
                } else {
                    self.lying.push(lying);
                    self.by.push(change.sequence);
                }
            }
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor if is_overtaken => {
                self.overtaken.bare.push(bare(change.kind));
            }
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor => self.bare.push(bare(change.kind)),
            Kind::Lost => self.lost.push(bare(Kind::Lost)),
            Kind::Cut => self.notes.push(bare(Kind::Cut)),
            Kind::WriteAround | Kind::Touched => self.notes.push(bare(Kind::Touched)),
            Kind::Epoch | Kind::RelocatedEpoch => self.notes.push(bare(Kind::RelocatedEpoch)),
            Kind::Gone => {}
        }
    }

    /// Volumes that nobody has opened since the log was found, of which it has notes.
    pub(super) fn unopened(&self, machine: &Machine) -> BTreeSet<Slot> {
        let slots = self.notes.iter().map(|it| it.slot);
        slots
            .filter(|slot| machine.volume(*slot).is_unverified)
            .collect()
    }

    /// What of it is still the newest, and nowhere else.
    ///
    /// Of volumes whose history was not saved, cuts, epochs and what was written around the log as
    /// well. So of those that were not open: a layer below has to know what was on its way to the
    /// backing volume when the power failed.
    pub(super) fn left(&self, machine: &Machine, unsaved: &BTreeSet<Slot>) -> Left {
        let with_by = self.lying.iter().cloned().zip(self.by.iter().copied());
        let newest_of = |(lying, by): (Lying, Sequence)| {
            let parts = newest(machine.index(), &lying).into_iter();
            parts.map(move |part| (part, by))
        };
        let data: Vec<_> = with_by.flat_map(newest_of).collect();
        let overtaken = self.overtaken.data.iter().cloned();
        let overtaken: Vec<_> = overtaken.flat_map(newest_of).collect();
        let overtaken_bare = machine.live_bare(&self.overtaken.bare);
        let has_overtaken = !overtaken.is_empty() || !overtaken_bare.is_empty();
        let notes = self.notes.iter().filter(|it| unsaved.contains(&it.slot));
        let bare = machine.live_bare(&self.bare).into_iter();
        let lost = machine.live_bare(&self.lost).into_iter();
        let bare = bare.chain(overtaken_bare).chain(lost);
        Left {
            data: data.into_iter().chain(overtaken).collect(),
            bare: bare.chain(notes.cloned()).collect(),
            held: self.held.clone(),
            has_overtaken,
        }
    }

    /// What the log says of the history of a volume was committed in this round: it is saved in the
    /// next one.
    pub(super) fn has_new_notes(&self, machine: &Machine) -> bool {
        let mut notes = self.held.iter().filter(|it| is_note(&it.change));
        notes.any(|it| machine.is_committed(&it.change))
    }
}

/// It is of no blocks.
fn is_note(change: &Change) -> bool {
    matches!(change.kind, Kind::Cut | Kind::Epoch)
}
