//! Inspects a journal without opening it: nothing is written, and nobody is kept from it.

use crate::journal_file::{cannot_open, superblock_in};
use env::file::{length, read, read_piece};
use env::{CoreHandle, File, OpenHow};
use journal::{BLOCK, Checkpoint, CopiesState, Replay, RingSurvey, Step, Superblock, Survey};
use std::path::Path;
use std::rc::Rc;
use volume::{OpenError, OpenErrorKind};

/// What the journal at `path` holds, as far as it can be read. What is written to it meanwhile may
/// be reported in part.
///
/// # Errors
/// Nothing there can be read as a journal.
pub async fn survey(core: &CoreHandle, path: &Path) -> Result<(Superblock, Survey), OpenError> {
    let (file, bytes) = opened(core, path).await?;
    let superblock = superblock(&file, bytes).await.map_err(|why| OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!("{} cannot be read as a journal: {why}", path.display()),
        next_step: "name the file or device of a journal".to_owned(),
    })?;
    let mut survey = Survey::default();
    for ring in 0..superblock.layout.rings {
        let inspected = of_ring(&file, &superblock, ring, &mut survey).await;
        let inspected = inspected.unwrap_or_else(|why| RingSurvey::unreadable(ring, &why));
        survey.rings.push(inspected);
    }
    Ok((superblock, survey))
}

async fn opened(core: &CoreHandle, path: &Path) -> Result<(Rc<dyn File>, u64), OpenError> {
    let reading = OpenHow {
        direct: true,
        ..OpenHow::READ
    };
    let opened = core.files().open(path, reading).await;
    let file = opened.map_err(|error| cannot_open(path, &error))?;
    let bytes = length(&file).await;
    let bytes = bytes.map_err(|error| cannot_open(path, &error))?;
    Ok((file, bytes))
}

/// How what a journal keeps twice is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Which of its two copies can be read.
    pub superblock: CopiesState,
    /// The checkpoints of each ring.
    pub checkpoints: Vec<CopiesState>,
}

/// How both copies of the superblock are, and of each ring's checkpoint, in a journal of which
/// `superblock` was read.
///
/// # Errors
/// They cannot be read.
pub async fn kept(
    core: &CoreHandle,
    path: &Path,
    superblock: &Superblock,
) -> Result<Kept, OpenError> {
    let (file, bytes) = opened(core, path).await?;
    let block = async |at: u64| {
        let block = read(&file, at, BLOCK).await;
        block.map_err(|error| cannot_open(path, &error))
    };
    let copies = [block(0).await?, block(BLOCK as u64).await?];
    let [first, second] = copies.each_ref().map(Vec::as_slice);
    let mut kept = Kept {
        superblock: Superblock::copies_state([first, second], bytes),
        checkpoints: Vec::new(),
    };
    let layout = superblock.layout;
    for ring in 0..layout.rings {
        let slots = [
            block(layout.checkpoint_at(ring, 0)).await?,
            block(layout.checkpoint_at(ring, 1)).await?,
        ];
        let [first, second] = slots.each_ref().map(Vec::as_slice);
        let places = Checkpoint::copies_state([first, second], superblock.journal, ring);
        kept.checkpoints.push(places);
    }
    Ok(kept)
}

async fn superblock(file: &Rc<dyn File>, bytes: u64) -> Result<Superblock, String> {
    let found = superblock_in(file, bytes).await;
    let found = found.map_err(|error| error.to_string())?;
    found.map_err(|damage| damage.to_string())
}

async fn of_ring(
    file: &Rc<dyn File>,
    superblock: &Superblock,
    ring: u32,
    survey: &mut Survey,
) -> Result<RingSurvey, String> {
    let layout = superblock.layout;
    let failed = |error: std::io::Error| error.to_string();
    let mut slots: Vec<Vec<u8>> = Vec::new();
    for slot in 0..2 {
        let block = read(file, layout.checkpoint_at(ring, slot), BLOCK).await;
        slots.push(block.map_err(failed)?);
    }
    let checkpoint = Checkpoint::newest([&slots[0], &slots[1]], superblock.journal, ring);
    let checkpoint = checkpoint.map_err(|why| format!("its checkpoints: {why}"))?;
    let mut inspected = RingSurvey::new(ring, checkpoint);
    let mut replay = Replay::new((superblock.journal, ring), layout.ring_blocks, checkpoint);
    loop {
        match replay.step() {
            Step::Read { at, bytes } => {
                let block = read_piece(file, layout.ring_at(ring) + at, bytes).await;
                replay.fill(at, block.map_err(failed)?);
            }
            Step::Found(batch) => survey.take(&mut inspected, &batch),
            Step::End => break,
        }
    }
    match replay.into_ring() {
        Ok(opened) => inspected.used_blocks = opened.used_blocks(),
        Err(stop) => inspected.stop = Some(stop.to_string()),
    }
    Ok(inspected)
}
