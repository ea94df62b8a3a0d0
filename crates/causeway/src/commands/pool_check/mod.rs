//! `causeway pool check`: what stands on the members of a pool or in its directory, without a
//! daemon; changes nothing.

mod directory;
mod members;
mod on_members;
mod sidecar;
mod view;

use super::journal_check;
use super::path::on_a_core;
use crate::output::Output;
use manifest::problem::Problem;
use std::path::{Path, PathBuf};

pub(crate) fn run(paths: &[PathBuf], state_dir: &Path, output: &Output) -> Result<(), Problem> {
    if let [only] = paths
        && !only.is_dir()
        && journal_check::is_journal(only)
    {
        return journal(only, output);
    }
    let (paths, state_dir) = (paths.to_vec(), state_dir.to_owned());
    let view = on_a_core(move |core| {
        Box::pin(async move {
            match paths.as_slice() {
                [only] if only.is_dir() => directory::inspect(&core, only).await,
                all => members::inspect(&core, all, &state_dir).await,
            }
        })
    })??;
    output.show(&view, view::PoolView::people);
    view.problem().map_or(Ok(()), Err)
}

/// A journal, which is examined alone: it may be a file or a device.
fn journal(path: &Path, output: &Output) -> Result<(), Problem> {
    let view = journal_check::inspect(path)?;
    output.show(&view, journal_check::JournalView::people);
    view.problem().map_or(Ok(()), Err)
}
