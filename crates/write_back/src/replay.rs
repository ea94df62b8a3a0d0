//! Opens a ring on its core: what the log holds goes into the index.

use crate::destage::destage;
use crate::history::FoundChange;
use crate::ring::{Backings, Device, JournalKey, Machine, OnCore, Ring, write_batches};
use crate::unverified;
use env::file::{is_no_space, read, read_piece};
use env::{CoreHandle, Durable, File, FileOp};
use journal::{
    BLOCK, Change, Checkpoint, Damage, Index, Kind, Layout, Log, Replay, Sequence, Slot, Stable,
    Step, Stop, Superblock, Uncommitted, VolumeId,
};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use units::Buf;
use volume::{OpenError, OpenErrorKind, UnverifiedBlocks};

/// What a ring says of itself when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingFound {
    /// The number of its journal.
    pub journal: [u8; 16],
    /// The number of the ring.
    pub ring: u32,
    /// How often it was opened before.
    pub openings: u64,
    /// The last batch that was found in it.
    pub stable: u64,
}

/// Says why a ring is not to be used. It is asked before anything is written, on the ring's core.
pub type Accept = Arc<dyn Fn(&RingFound) -> Result<(), OpenError> + Send + Sync>;

/// What was found in a ring.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Replayed {
    pub(crate) batches: u64,
    pub(crate) damaged: Vec<Change>,
    /// What may have been half-way written.
    pub(crate) unverified: BTreeMap<VolumeId, UnverifiedBlocks>,
}

/// Reads the ring and starts what serves it.
pub(crate) async fn open_ring(
    core: &CoreHandle,
    file: Rc<dyn File>,
    (key, superblock): (JournalKey, Superblock),
    ring: u32,
    accept: &Accept,
) -> Result<Replayed, OpenError> {
    let layout = superblock.layout;
    let checkpoints_at = checkpoints_at(layout, ring);
    let failed = |error: &io::Error| cannot_read(ring, error);
    let mut slots: Vec<Vec<u8>> = Vec::new();
    for at in checkpoints_at {
        let block = read(&file, at, BLOCK).await;
        slots.push(block.map_err(|error| failed(&error))?);
    }
    let checkpoint = Checkpoint::newest([&slots[0], &slots[1]], superblock.journal, ring);
    let checkpoint = checkpoint.map_err(|damage| no_checkpoint(ring, damage))?;
    let of = (superblock.journal, ring);
    let mut replay = Replay::new(of, layout.ring_blocks, checkpoint);
    let mut found = Found::default();
    loop {
        match replay.step() {
            Step::Read { at, bytes } => {
                let block = read_piece(&file, layout.ring_at(ring) + at, bytes).await;
                replay.fill(at, block.map_err(|error| failed(&error))?);
            }
            Step::Found(batch) => found.take(&batch, layout.ring_blocks)?,
            Step::End => break,
        }
    }
    let unsure = replay.unsure();
    let mut opened = replay.into_ring().map_err(|stop| stopped(ring, stop))?;
    accept(&RingFound {
        journal: superblock.journal.0,
        ring,
        openings: opened.openings(),
        stable: opened.stable(),
    })?;
    // What was read may lie in the device's cache only, and the checkpoint says that it is there.
    let synced = file.submit(FileOp::Sync).await;
    synced.map_err(|error| failed(&error))?;
    for bytes in unsure {
        let at = layout.ring_at(ring) + bytes.start;
        let again = write_again(&file, at, bytes.end - bytes.start).await;
        again.map_err(|error| failed(&error))?;
    }
    let opening = opened.opening().expect("a ring that was just opened");
    let written = file.submit(FileOp::Write {
        offset: checkpoints_at[usize::from(opening.slot)],
        data: Buf::from(opening.bytes),
        durable: Durable::Yes,
    });
    written.await.map_err(|error| failed(&error))?;
    opened.checkpoint_written(true);
    Ok(start(core, file, (key, superblock, ring), opened, found))
}

/// Writes what is read there once more, so that it is stable.
async fn write_again(file: &Rc<dyn File>, offset: u64, bytes: u64) -> io::Result<()> {
    let bytes = usize::try_from(bytes).expect("a batch is in memory");
    let data = Buf::from(read(file, offset, bytes).await?);
    let durable = Durable::Yes;
    let op = FileOp::Write {
        offset,
        data,
        durable,
    };
    file.submit(op).await.map(drop)
}

/// The first bytes of both checkpoints of a ring.
fn checkpoints_at(layout: Layout, ring: u32) -> [u64; 2] {
    [layout.checkpoint_at(ring, 0), layout.checkpoint_at(ring, 1)]
}

/// What serves the ring from now on.
fn start(
    core: &CoreHandle,
    file: Rc<dyn File>,
    (key, superblock, ring): (JournalKey, Superblock, u32),
    opened: journal::Ring,
    found: Found,
) -> Replayed {
    let layout = superblock.layout;
    let mut log = Log::with_uncommitted(opened, found.uncommitted);
    for (volume, next) in &found.next {
        log.serve(*volume, *next);
    }
    let device = Device {
        file,
        log_at: layout.ring_at(ring),
        checkpoints_at: checkpoints_at(layout, ring),
    };
    let backings = Backings::found(found.slots.len(), found.history);
    let unverified = found.replayed.unverified.keys();
    let machine = Machine::new(log, found.index, found.slots, unverified, core.now());
    let opened = Ring::new(core, device, machine, backings, core.now());
    let rings = core.locals().get::<OnCore>();
    rings.0.borrow_mut().insert((key, ring), Rc::clone(&opened));
    core.spawn(Box::pin(write_batches(Rc::clone(&opened))));
    core.spawn(Box::pin(destage(opened)));
    found.replayed
}

/// What to do about what another version has written.
pub(crate) const OTHER_VERSION: &str =
    "run the version of causeway that wrote it: it may hold writes that are nowhere else";

const DAMAGED: &str = "look for errors of the device in the kernel's log, and bring back what stood on it; writes \
     that were acknowledged and not yet destaged may be lost";

fn no_checkpoint(ring: u32, damage: Damage) -> OpenError {
    let next_step = match damage {
        Damage::Version { .. } => OTHER_VERSION,
        Damage::Foreign | Damage::Checksum | Damage::Contradiction(_) => DAMAGED,
    };
    OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!("ring {ring} of the journal has no checkpoint that can be used: {damage}"),
        next_step: next_step.to_owned(),
    }
}

fn stopped(ring: u32, stop: Stop) -> OpenError {
    let (kind, how, next_step) = match stop {
        Stop::Lost { .. } => (OpenErrorKind::Damaged, "is damaged", DAMAGED),
        Stop::Version(_) => {
            let kind = OpenErrorKind::Unsupported;
            (kind, "cannot be used", OTHER_VERSION)
        }
    };
    OpenError {
        kind,
        cause: format!("ring {ring} of the journal {how}: {stop}"),
        next_step: next_step.to_owned(),
    }
}

fn cannot_read(ring: u32, error: &io::Error) -> OpenError {
    let next_step = if is_no_space(error) {
        "make room in the file system where it lies, and it is opened soon after"
    } else {
        "check the journal's device and the kernel's log"
    };
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: format!("ring {ring} of the journal cannot be read or written: {error}"),
        next_step: next_step.to_owned(),
    }
}

/// What was found, as far as it was read.
#[derive(Default)]
pub(crate) struct Found {
    index: Index,
    slots: BTreeMap<VolumeId, Slot>,
    next: BTreeMap<VolumeId, Sequence>,
    history: BTreeMap<VolumeId, Vec<FoundChange>>,
    /// Whoever knows the other copies says what of it is committed.
    uncommitted: Uncommitted,
    pub(crate) replayed: Replayed,
}

impl Found {
    /// What a batch changed, in its order.
    pub(crate) fn take(
        &mut self,
        batch: &journal::Found,
        ring_blocks: u64,
    ) -> Result<(), OpenError> {
        self.replayed.batches += 1;
        let right = batch.records.iter().map(|it| &it.change);
        for change in right.chain(&batch.damaged) {
            self.slot(change.volume)?;
            self.add_unverified(change);
        }
        for it in self.uncommitted.found(batch, ring_blocks) {
            self.adopt(&it);
        }
        self.replayed.damaged.extend(&batch.damaged);
        journal::sequences([batch], &mut self.next);
        Ok(())
    }

    /// A change that is committed.
    fn adopt(&mut self, it: &Stable) {
        let (slot, sectors) = (self.slots[&it.change.volume], it.change.sectors());
        self.history
            .entry(it.change.volume)
            .or_default()
            .push(FoundChange::of(&it.change));
        match it.change.kind {
            Kind::Write if !it.is_damaged => {
                let at = u32::try_from(it.data_at / journal::SECTOR);
                self.index
                    .put(slot, sectors, at.expect("a ring has 2 TiB at most"));
            }
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor => {
                self.index
                    .zero(slot, sectors, it.change.sequence, it.change.kind);
            }
            Kind::WriteAround => self.index.remove(slot, sectors),
            Kind::Cut | Kind::Touched | Kind::Epoch | Kind::RelocatedEpoch => {}
            Kind::Gone => {
                self.index.forget(slot);
                self.history.remove(&it.change.volume);
            }
            Kind::Write | Kind::Lost => self.index.lose(slot, sectors, it.change.sequence),
        }
    }

    #[cfg(test)]
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    fn add_unverified(&mut self, change: &Change) {
        let blocks = self.replayed.unverified.entry(change.volume);
        unverified::add(blocks.or_default(), change);
    }

    fn slot(&mut self, volume: VolumeId) -> Result<Slot, OpenError> {
        if let Some(slot) = self.slots.get(&volume) {
            return Ok(*slot);
        }
        let slot = u16::try_from(self.slots.len()).map_err(|_| OpenError {
            kind: OpenErrorKind::Damaged,
            cause: "the journal holds changes of more than 65,535 volumes".to_owned(),
            next_step: "it was not written by this program".to_owned(),
        })?;
        self.slots.insert(volume, Slot(slot));
        Ok(Slot(slot))
    }
}
