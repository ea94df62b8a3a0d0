//! What a segment of the log says, and what of it is still needed.

use crate::ring::{BareChange, Event, Machine, Ring};
use journal::{Again, BatchPosition, Kind, Lying, Record, Segment, Sequence, Slot, newest};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::Buf;

/// What a segment holds.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) lying: Vec<Lying>,
    /// Which changes they are.
    by: Vec<Sequence>,
    pub(super) bare: Vec<BareChange>,
    /// What is lost cannot be destaged, and must not be forgotten.
    lost: Vec<BareChange>,
    /// Cuts, and what was written around the log: of some volumes the log must go on to say it.
    pub(super) notes: Vec<BareChange>,
    /// The number after the newest change of each volume.
    pub(super) next: BTreeMap<Slot, Sequence>,
}

/// What of a segment cannot be given up.
#[derive(Default)]
pub(super) struct Left {
    pub(super) data: Vec<(Lying, Sequence)>,
    pub(super) bare: Vec<BareChange>,
}

impl Left {
    pub(super) fn is_any(&self) -> bool {
        !self.data.is_empty() || !self.bare.is_empty()
    }
}

/// What the segment says. What is damaged in it is lost from now on, if nothing newer is known.
pub(super) fn contents(ring: &Rc<Ring>, segment: &Segment, data: &Buf) -> Contents {
    let mut contents = Contents::default();
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
                let is_void = |it: &&Record| ring.machine().is_void(&it.change, place.number);
                for record in damaged.iter().filter(|it| !is_void(it)) {
                    let lost = lose(ring, segment, place, record);
                    contents.lost.push(lost);
                }
            }
            Again::Damaged { sectors } => {
                ring.apply(Event::BatchLost(&sectors));
                // Which changes without data it held nobody says any more: all that are known are
                // destaged now.
                let bare = ring.machine().all_bare().into_iter();
                let (lost, bare): (Vec<_>, Vec<_>) = bare.partition(|it| it.kind == Kind::Lost);
                contents.lost.extend(lost);
                contents.bare.extend(bare);
            }
        }
    }
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
        if machine.is_void(&change, place.number) {
            return;
        }
        let slot = machine.slot(change.volume);
        let slot = slot.expect("the log knows its volumes");
        let next = self.next.entry(slot).or_insert(Sequence(0));
        *next = (*next).max(Sequence(change.sequence.0 + 1));
        let bare = |kind| BareChange {
            slot,
            sectors: change.sectors(),
            by: change.sequence,
            kind,
        };
        match change.kind {
            Kind::Write => {
                let at = segment.sector_of(place, record);
                self.lying.push(machine.lying(&change, at));
                self.by.push(change.sequence);
            }
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor => self.bare.push(bare(change.kind)),
            Kind::Lost => self.lost.push(bare(Kind::Lost)),
            Kind::Cut => self.notes.push(bare(Kind::Cut)),
            Kind::WriteAround | Kind::Touched => self.notes.push(bare(Kind::Touched)),
            Kind::Gone | Kind::Epoch | Kind::RelocatedEpoch => {}
        }
    }

    /// What of it is still the newest, and nowhere else.
    ///
    /// Of volumes whose history could not be saved, and of those that nobody has opened since the
    /// log was found, cuts and what was written around the log as well: a layer below has to know
    /// what was on its way to the backing volume when the power failed.
    pub(super) fn left(&self, machine: &Machine, unsaved: &BTreeSet<Slot>) -> Left {
        let with_by = self.lying.iter().zip(&self.by);
        let data = with_by.flat_map(|(lying, by)| {
            let parts = newest(machine.index(), lying).into_iter();
            parts.map(move |part| (part, *by))
        });
        let bare = machine.live_bare(&self.bare).into_iter();
        let is_needed =
            |it: &&BareChange| machine.volume(it.slot).is_unverified || unsaved.contains(&it.slot);
        let notes = self.notes.iter().filter(is_needed);
        Left {
            data: data.collect(),
            bare: bare
                .chain(machine.live_bare(&self.lost))
                .chain(notes.cloned())
                .collect(),
        }
    }
}
