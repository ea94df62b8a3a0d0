//! A journal alone: its superblock, its rings up to the last batch, and what in them is damaged.

use env::CoreHandle;
use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use units::hex;
use volume::OpenError;
use write_back::{
    CopiesState, Damaged, Kept, RingSurvey, Superblock, Survey, SurveyedVolume, VolumeId, kept,
    survey,
};

/// Bytes of a block of a journal.
const BLOCK_BYTES: u64 = 4096;

/// What a journal begins with.
const MAGIC: &[u8] = b"CWJOURNL";

/// A journal as it was found.
#[derive(Debug, Serialize)]
pub struct JournalView {
    /// Its file or device.
    pub path: String,
    /// Its own number.
    pub journal: String,
    /// The number of the pool that it belongs to.
    pub pool: String,
    /// Bytes of all that it has.
    pub size: u64,
    /// Nothing in it is damaged or lost.
    pub good: bool,
    /// How both copies are.
    pub superblock: String,
    /// By number.
    pub rings: Vec<RingView>,
    /// LUNs that have changes in it.
    pub luns: Vec<HeldView>,
    /// Changes whose data is not what was written.
    pub damaged: Vec<DamagedView>,
    /// Blocks that were damaged in it before, and were not written again.
    pub lost: Vec<DamagedView>,
}

/// What is in the part that one core writes.
#[derive(Debug, Serialize)]
pub struct RingView {
    /// Its number.
    pub ring: u32,
    /// How often it was opened.
    pub openings: u64,
    /// Bytes of it that are in use.
    pub used: u64,
    /// Batches that are not destaged.
    pub batches: u64,
    /// Changes in them.
    pub changes: u64,
    /// How both copies are.
    pub checkpoint: String,
    /// `good`, or where it stops and why: for people.
    pub state: String,
    /// Nothing stops a replay of it.
    #[serde(skip)]
    pub is_good: bool,
}

/// What it holds of a LUN.
#[derive(Debug, Serialize)]
pub struct HeldView {
    /// The end of its NAA identifier.
    pub lun: String,
    /// Changes that are not destaged.
    pub changes: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Those of them that are damaged.
    pub damaged: u64,
}

/// Blocks whose data in it is not what was written.
#[derive(Debug, Serialize)]
pub struct DamagedView {
    /// The end of the NAA identifier of their LUN.
    pub lun: String,
    /// The first one.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// The number of the batch that has them.
    pub batch: u64,
}

/// Something at `path` says that it is a journal.
#[must_use]
pub fn is_journal(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let says = |at: u64| {
        let mut magic = [0; 8];
        file.read_exact_at(&mut magic, at).is_ok() && magic == MAGIC
    };
    says(0) || says(BLOCK_BYTES)
}

/// Reads it to its end.
///
/// # Errors
/// It is no journal, or cannot be read.
pub async fn inspect(core: &CoreHandle, path: &Path) -> Result<JournalView, Problem> {
    let (superblock, survey, kept) = read(core, path).await.map_err(|error| {
        Problem::new(Code::PoolUnreadable, error.cause.clone()).hint(error.next_step)
    })?;
    Ok(view(path, &superblock, &survey, &kept))
}

async fn read(core: &CoreHandle, path: &Path) -> Result<(Superblock, Survey, Kept), OpenError> {
    let (superblock, survey) = survey(core, path).await?;
    let kept = kept(core, path, &superblock).await?;
    Ok((superblock, survey, kept))
}

/// The end of the NAA identifier of the LUN that the journal knows by this number.
fn lun(volume: VolumeId) -> String {
    format!("...{:016x}", volume.0)
}

fn view(path: &Path, superblock: &Superblock, survey: &Survey, kept: &Kept) -> JournalView {
    let rings = survey.rings.iter().zip(&kept.checkpoints);
    let ring = |(ring, checkpoint): (&RingSurvey, &CopiesState)| RingView {
        checkpoint: checkpoint.to_string(),
        ring: ring.ring,
        openings: ring.epoch,
        used: ring.used_blocks * BLOCK_BYTES,
        batches: ring.batches,
        changes: ring.changes,
        is_good: ring.stop.is_none(),
        state: ring
            .stop
            .clone()
            .map_or_else(|| "good".to_owned(), |why| format!("STOPS: {why}")),
    };
    let held = |(volume, held): (&VolumeId, &SurveyedVolume)| HeldView {
        lun: lun(*volume),
        changes: held.changes,
        bytes: held.bytes,
        damaged: held.damaged,
    };
    let damaged = |it: &Damaged| DamagedView {
        lun: lun(it.volume),
        lba: it.range.start().0,
        blocks: it.range.len().0,
        batch: it.batch,
    };
    JournalView {
        path: path.display().to_string(),
        journal: hex(&superblock.journal.0),
        pool: hex(&superblock.pool),
        size: superblock.layout.checkpoint_at(superblock.layout.rings, 0),
        good: survey.is_good(),
        superblock: kept.superblock.to_string(),
        rings: rings.map(ring).collect(),
        luns: survey.volumes.iter().map(held).collect(),
        damaged: survey.damaged.iter().map(damaged).collect(),
        lost: survey.lost.iter().map(damaged).collect(),
    }
}

impl JournalView {
    /// What is wrong with it, as one problem; `None`: nothing is.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        if self.good {
            return None;
        }
        let stopped = self.rings.iter().filter(|ring| !ring.is_good);
        let stopped: Vec<String> = stopped
            .map(|ring| format!("ring {}: {}", ring.ring, ring.state))
            .collect();
        let damaged: u64 = self.luns.iter().map(|lun| lun.damaged).sum();
        let lost: u64 = self.lost.iter().map(|it| it.blocks).sum();
        let mut detail = format!("{}: {damaged} changes are damaged", self.path);
        if lost > 0 {
            detail.push_str(&format!(", and {lost} blocks were before"));
        }
        if !stopped.is_empty() {
            detail.push_str(&format!("; {}", stopped.join("; ")));
        }
        Some(Problem::new(Code::JournalUnusable, detail).hint(
            "a damaged change costs exactly its blocks, until they are written again; a ring that stops keeps the LUNs \
             offline until the journal is given up",
        ))
    }
}
