//! Looks at a journal without opening it: nothing is written, and nobody is kept from it.

use super::journal_file::{cannot_open, length, superblock_in};
use super::replay::read;
use env::{Access, CoreHandle, Create, File, OpenHow};
use journal::{BLOCK, Checkpoint, Replay, RingSurvey, Step, Superblock, Survey};
use std::path::Path;
use std::rc::Rc;
use volume::OpenError;

/// What the journal at `path` holds, as far as it can be read. What is written to it meanwhile may be told in part.
///
/// # Errors
/// Nothing there can be read as a journal.
pub async fn survey(core: &CoreHandle, path: &Path) -> Result<(Superblock, Survey), OpenError> {
    let reading = OpenHow {
        access: Access::Read,
        create: Create::No,
        direct: true,
        lock: false,
    };
    let opened = core.files().open(path, reading).await;
    let file = opened.map_err(|error| cannot_open(path, &error))?;
    let bytes = length(&file).await;
    let bytes = bytes.map_err(|error| cannot_open(path, &error))?;
    let superblock = superblock(&file, bytes).await.map_err(|why| OpenError {
        cause: format!("{} cannot be read as a journal: {why}", path.display()),
        next_step: "name the file or device of a journal".to_owned(),
    })?;
    let mut survey = Survey::default();
    for ring in 0..superblock.layout.rings {
        let looked = of_ring(&file, &superblock, ring, &mut survey).await;
        let looked = looked.unwrap_or_else(|why| RingSurvey::unreadable(ring, &why));
        survey.rings.push(looked);
    }
    Ok((superblock, survey))
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
    let mut looked = RingSurvey::new(ring, checkpoint);
    let mut replay = Replay::new((superblock.journal, ring), layout.ring_blocks, checkpoint);
    loop {
        match replay.step() {
            Step::Read { at, bytes } => {
                let block = read(file, layout.ring_at(ring) + at, bytes).await;
                replay.fill(at, block.map_err(failed)?);
            }
            Step::Found(batch) => survey.take(&mut looked, &batch),
            Step::End => break,
        }
    }
    match replay.into_ring() {
        Ok(opened) => looked.used_blocks = opened.used_blocks(),
        Err(stop) => looked.stop = Some(stop.to_string()),
    }
    Ok(looked)
}
