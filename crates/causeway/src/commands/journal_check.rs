//! `causeway pool check` of a journal: its superblock, its rings up to the last batch, and what in
//! them is damaged.

use super::path::on_a_core;
use crate::output::{rounded, table};
use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use units::hex;
use volume::OpenError;
use write_back::{
    Damaged, Kept, Places, RingSurvey, Superblock, Survey, SurveyedVolume, VolumeId, kept, survey,
};

/// Bytes of a block of a journal.
const BLOCK_BYTES: u64 = 4096;

/// What a journal begins with.
const MAGIC: &[u8] = b"CWJOURNL";

/// A journal as it is told.
#[derive(Serialize)]
pub(super) struct JournalView {
    path: String,
    journal: String,
    pool: String,
    size: u64,
    good: bool,
    /// How both copies are.
    superblock: String,
    rings: Vec<RingView>,
    luns: Vec<HeldView>,
    damaged: Vec<DamagedView>,
    lost: Vec<DamagedView>,
}

#[derive(Serialize)]
struct RingView {
    ring: u32,
    openings: u64,
    used: u64,
    batches: u64,
    changes: u64,
    /// How both copies are.
    checkpoint: String,
    state: String,
}

#[derive(Serialize)]
struct HeldView {
    lun: String,
    changes: u64,
    bytes: u64,
    damaged: u64,
}

#[derive(Serialize)]
struct DamagedView {
    lun: String,
    lba: u64,
    blocks: u64,
    batch: u64,
}

impl DamagedView {
    fn row(&self) -> Vec<String> {
        let numbers = [self.lba, self.blocks, self.batch].map(|it| it.to_string());
        let mut row = vec![self.lun.clone()];
        row.extend(numbers);
        row
    }
}

/// Something at `path` says that it is a journal.
pub(super) fn is_journal(path: &Path) -> bool {
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
pub(super) fn inspect(path: &Path) -> Result<JournalView, Problem> {
    let at: PathBuf = path.to_owned();
    let inspected = on_a_core(move |core| {
        Box::pin(async move {
            let (superblock, survey) = survey(&core, &at).await?;
            let kept = kept(&core, &at, &superblock).await?;
            Ok::<_, OpenError>((superblock, survey, kept))
        })
    })?;
    let (superblock, survey, kept) = inspected.map_err(|error| {
        Problem::new(Code::PoolUnreadable, error.cause.clone()).hint(error.next_step)
    })?;
    Ok(view(path, &superblock, &survey, &kept))
}

/// The end of the NAA identifier of the LUN that the journal knows by this number.
fn lun(volume: VolumeId) -> String {
    format!("...{:016x}", volume.0)
}

fn view(path: &Path, superblock: &Superblock, survey: &Survey, kept: &Kept) -> JournalView {
    let rings = survey.rings.iter().zip(&kept.checkpoints);
    let ring = |(ring, checkpoint): (&RingSurvey, &Places)| RingView {
        checkpoint: checkpoint.to_string(),
        ring: ring.ring,
        openings: ring.epoch,
        used: ring.used_blocks * BLOCK_BYTES,
        batches: ring.batches,
        changes: ring.changes,
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
    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<Problem> {
        if self.good {
            return None;
        }
        let stopped = self.rings.iter().filter(|ring| ring.state != "good");
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

    /// As lines of a terminal; the same facts as the JSON.
    pub(super) fn people(&self) -> String {
        let rings = self.rings.iter().map(|ring| {
            vec![
                ring.ring.to_string(),
                ring.openings.to_string(),
                rounded(ring.used),
                ring.batches.to_string(),
                ring.changes.to_string(),
                ring.checkpoint.clone(),
                ring.state.clone(),
            ]
        });
        let rings: Vec<Vec<String>> = rings.collect();
        let mut out = format!(
            "journal {} of pool {}, {}, rings: {}, {}\nsuperblock: {}\n\n{}",
            self.path,
            self.pool,
            rounded(self.size),
            self.rings.len(),
            if self.good { "good" } else { "DAMAGED" },
            self.superblock,
            table(
                &[
                    "RING",
                    "OPENINGS",
                    "USED",
                    "BATCHES",
                    "CHANGES",
                    "CHECKPOINT",
                    "STATE"
                ],
                &rings
            )
        );
        let luns = self.luns.iter().map(|lun| {
            vec![
                lun.lun.clone(),
                lun.changes.to_string(),
                rounded(lun.bytes),
                lun.damaged.to_string(),
            ]
        });
        let luns: Vec<Vec<String>> = luns.collect();
        if !luns.is_empty() {
            let head = ["LUN (NAA)", "CHANGES", "BYTES", "DAMAGED"];
            out.push_str(&format!("\n{}", table(&head, &luns)));
        }
        for (what, all) in [("DAMAGED: LUN", &self.damaged), ("LOST: LUN", &self.lost)] {
            let rows: Vec<Vec<String>> = all.iter().map(DamagedView::row).collect();
            if !rows.is_empty() {
                let head = [what, "FIRST BLOCK", "BLOCKS", "BATCH"];
                out.push_str(&format!("\n{}", table(&head, &rows)));
            }
        }
        out
    }
}
