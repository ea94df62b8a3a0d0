//! What a segment of the log says, and what of it is still needed.

use crate::parts::sectors;
use crate::shard::{Shard, State};
use journal::{Again, Kind, Lying, Place, Record, Segment, Sequence, Slot, Source, newest};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use units::Buf;

/// A change without data.
#[derive(Clone)]
pub(crate) struct BareChange {
    pub(crate) slot: Slot,
    pub(crate) sectors: Range<u64>,
    pub(crate) by: Sequence,
    pub(crate) kind: Kind,
}

/// What a segment holds.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) lying: Vec<Lying>,
    /// Which changes they are.
    pub(crate) by: Vec<Sequence>,
    pub(crate) bare: Vec<BareChange>,
    /// What is lost cannot be carried anywhere, and must not be forgotten.
    pub(crate) lost: Vec<BareChange>,
    /// Cuts, and what went home past the log: of some volumes the log must go on to say it.
    pub(crate) told: Vec<BareChange>,
    /// The number after the newest change of each volume.
    pub(crate) next: BTreeMap<Slot, Sequence>,
}

/// What of a segment cannot be given up.
#[derive(Default)]
pub(crate) struct HeldParts {
    pub(crate) data: Vec<(Lying, Sequence)>,
    pub(crate) bare: Vec<BareChange>,
}

/// What the segment says. What is damaged in it is lost from now on, if nothing newer is known.
pub(crate) fn contents(shard: &Rc<Shard>, segment: &Segment, data: &Buf) -> Contents {
    let mut state = shard.state.borrow_mut();
    let mut contents = Contents::default();
    for batch in segment.batches(data) {
        match batch {
            Again::Found {
                place,
                records,
                damaged,
            } => {
                for record in &records {
                    contents.take(&state, segment, place, record);
                }
                for record in &damaged {
                    contents.lost.push(state.lose(segment, place, record));
                }
            }
            Again::Damaged { sectors } => {
                state.lose_batch(&sectors);
                // Which changes without data it held nobody says any more: all that are known go
                // home now.
                let bare = state.all_bare().into_iter();
                let (lost, bare): (Vec<_>, Vec<_>) = bare.partition(|it| it.kind == Kind::Lost);
                contents.lost.extend(lost);
                contents.bare.extend(bare);
            }
        }
    }
    contents
}

impl Contents {
    fn take(&mut self, state: &State, segment: &Segment, place: Place, record: &Record) {
        let change = record.change;
        let slot = state.slots[&change.volume];
        let next = self.next.entry(slot).or_insert(Sequence(0));
        *next = (*next).max(Sequence(change.sequence.0 + 1));
        let bare = || BareChange {
            slot,
            sectors: sectors(change.range, change.block_size),
            by: change.sequence,
            kind: change.kind,
        };
        match change.kind {
            Kind::Write => {
                self.lying.push(Lying {
                    slot,
                    sectors: sectors(change.range, change.block_size),
                    at: segment.sector_of(place, record),
                });
                self.by.push(change.sequence);
            }
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor => self.bare.push(bare()),
            Kind::Lost => self.lost.push(bare()),
            Kind::Cut => self.told.push(bare()),
            Kind::WriteAround | Kind::Touched => self.told.push(BareChange {
                kind: Kind::Touched,
                ..bare()
            }),
            Kind::Gone => {}
        }
    }

    /// What of it is still the newest, and nowhere else.
    ///
    /// Of volumes whose history could not be saved, and of those that nobody has opened since the
    /// log was found, cuts and what went past the log as well: a layer below has to know what was
    /// on its way home when the power failed.
    pub(crate) fn held(&self, state: &State, unsaved: &BTreeSet<Slot>) -> HeldParts {
        let with_by = self.lying.iter().zip(&self.by);
        let data = with_by.flat_map(|(lying, by)| {
            let parts = newest(&state.index, lying).into_iter();
            parts.map(move |part| (part, *by))
        });
        let bare = live_bare(state, &self.bare).into_iter();
        let is_needed =
            |it: &&BareChange| state.home(it.slot).in_doubt || unsaved.contains(&it.slot);
        let told = self.told.iter().filter(is_needed);
        HeldParts {
            data: data.collect(),
            bare: bare
                .chain(live_bare(state, &self.lost))
                .chain(told.cloned())
                .collect(),
        }
    }
}

/// What still holds of changes without data.
pub(crate) fn live_bare(state: &State, all: &[BareChange]) -> Vec<BareChange> {
    let live = all.iter().flat_map(|it| {
        let ranges = state.index.bare(it.slot, it.sectors.clone(), it.by);
        ranges.into_iter().map(|sectors| BareChange {
            sectors,
            ..it.clone()
        })
    });
    live.collect()
}

impl State {
    /// The data of a write is damaged: what of it is the newest is lost. What was lost before is
    /// told again.
    pub(crate) fn lose(&mut self, segment: &Segment, place: Place, record: &Record) -> BareChange {
        let change = record.change;
        let lying = Lying {
            slot: self.slots[&change.volume],
            sectors: sectors(change.range, change.block_size),
            at: segment.sector_of(place, record),
        };
        for part in newest(&self.index, &lying) {
            self.index.lose(part.slot, part.sectors, change.sequence);
        }
        BareChange {
            slot: lying.slot,
            sectors: lying.sectors,
            by: change.sequence,
            kind: Kind::Lost,
        }
    }

    /// A batch is damaged, with the list of what it held: what the index has there is lost.
    fn lose_batch(&mut self, lying: &Range<u32>) {
        let (homes, log) = (&self.homes, &self.log);
        // The latest number of the volume: it is newer than whatever was there.
        self.index.lose_at(lying, |slot: Slot| {
            let next = log.next_sequence(homes[usize::from(slot.0)].id);
            Sequence(next.map_or(0, |it| it.0.saturating_sub(1)))
        });
    }

    pub(crate) fn all_bare(&self) -> Vec<BareChange> {
        let all = self
            .index
            .all_bare()
            .filter_map(|(slot, sectors, by, source)| {
                let kind = match source {
                    Source::Zeroes(kind) => kind,
                    Source::Lost => Kind::Lost,
                    Source::Backing | Source::Log(_) => return None,
                };
                Some(BareChange {
                    slot,
                    sectors,
                    by,
                    kind,
                })
            });
        all.collect()
    }
}
