//! What of a volume changed since a copy on another node had all of it.
//!
//! ```text
//!   committing: from this number on, which blocks are committed is noted --> a cut is made
//!         --> committed: those blocks
//!   changed_since(cut): what the history says
//! ```
//!
//! Whoever has all changes below that number lacks what the history says, and those blocks: what
//! was committed before the cut's own record counts as before the cut.

use crate::addresses::{blocks, parts, sectors};
use crate::history::changed;
use crate::lane::WriteBack;
use crate::ring::{Effect, Event, Ring};
use env::CoreHandle;
use journal::{Sequence, Slot};
use std::rc::Rc;
use units::{Lba, LbaRange};
use volume::{Cut, Done, ExtentKind, IoError};

/// Blocks of a volume whose changes are noted in one ring when they are committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Committing {
    /// The number of the ring whose log commits them.
    pub ring: u32,
    /// All changes with lower numbers were committed before.
    pub below: Sequence,
    number: u64,
}

/// What changed since a cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedSince {
    /// From the first block that was asked for on, perhaps not all.
    pub range: LbaRange,
    /// Which of them changed, in whole parts of 64 KiB.
    pub changed: Vec<LbaRange>,
}

impl WriteBack {
    /// Notes which blocks are committed in a ring from now on, until that is
    /// [asked for](WriteBack::committed) or the volume leaves.
    ///
    /// # Errors
    /// [`IoError::Unavailable`]: the volume is not open, or the ring stops.
    pub async fn committing(&self, core: &CoreHandle, ring: u32) -> Result<Committing, IoError> {
        let shape = self.backing().shape();
        let all = LbaRange::new(Lba(0), shape.block_count).expect("it has so many");
        let all = sectors(all, shape.block_size);
        let begun = self.on_ring(core, ring, move |here: Rc<Ring>, slot: Slot| {
            Box::pin(async move {
                let below = here.machine().order(slot).committed;
                let watch = Event::Watch(slot, all);
                let number = here.ask(watch, |effects| match effects {
                    [Effect::Watched(number)] => *number,
                    other => unreachable!("{other:?} is no answer"),
                });
                Ok(Committing {
                    ring,
                    below,
                    number,
                })
            })
        });
        begun.await
    }

    /// Which blocks were committed since then, in no order. No more is noted.
    ///
    /// # Errors
    /// As [`WriteBack::committing`]; so it is if the volume has left meanwhile.
    pub async fn committed(
        &self,
        core: &CoreHandle,
        since: Committing,
    ) -> Result<Vec<LbaRange>, IoError> {
        let block_size = self.backing().shape().block_size;
        let found = self.on_ring(core, since.ring, move |here: Rc<Ring>, _: Slot| {
            Box::pin(async move {
                let found = here.machine().committed(since.number).map(|all| {
                    let all = all.iter().filter(|it| !it.is_empty());
                    all.map(|it| blocks(it, block_size)).collect()
                });
                here.apply(Event::EndWatch(since.number));
                found.ok_or(IoError::Unavailable)
            })
        });
        found.await
    }

    /// Data of the volume was damaged in a ring's log: reads of it fail until it is written again.
    ///
    /// # Errors
    /// As [`WriteBack::committing`].
    pub async fn has_lost(&self, core: &CoreHandle, ring: u32) -> Result<bool, IoError> {
        let id = self.id();
        let found = self.on_ring(core, ring, move |here: Rc<Ring>, _: Slot| {
            Box::pin(async move {
                let lost = here.status(ring).lost_sectors;
                Ok(lost.get(&id).is_some_and(|sectors| *sectors > 0))
            })
        });
        found.await
    }

    /// Which of the first of these blocks changed since a cut, those that lie in one ring. Where
    /// that is not known, all.
    ///
    /// # Errors
    /// The history cannot be read, the volume is not open, or the ring stops.
    pub async fn changed_since(
        &self,
        core: &CoreHandle,
        range: LbaRange,
        since: Cut,
    ) -> Result<ChangedSince, IoError> {
        let block_size = self.backing().shape().block_size;
        let all = parts(self.id(), range, block_size, self.journal().sharding());
        let first = *all.first().expect("a range has blocks");
        let found = self.on_ring(core, first.ring, move |here: Rc<Ring>, slot: Slot| {
            let history = here.backings().of(slot).history.clone();
            Box::pin(async move {
                let changed = changed(history, block_size, first.range, since).await?;
                let Done::Extents(extents) = changed else {
                    unreachable!("extents answer extents")
                };
                let (one, last) = (extents.first(), extents.last());
                let (one, last) = one.zip(last).expect("a range has blocks");
                let range = LbaRange::between(one.range.start(), last.range.end());
                let mapped = extents.iter().filter(|it| it.kind == ExtentKind::Mapped);
                Ok(ChangedSince {
                    range: range.expect("in order"),
                    changed: mapped.map(|it| it.range).collect(),
                })
            })
        });
        found.await
    }
}
