//! `causeway pool check`: what stands on the members of a pool, in its directory or in its journal,
//! without a daemon; changes nothing.

mod show;

use super::path::on_a_core;
use manifest::problem::Problem;
use output::Output;
use pool_check::journal;
use std::path::{Path, PathBuf};

pub(crate) fn run(paths: &[PathBuf], state_dir: &Path, output: &Output) -> Result<(), Problem> {
    if let [only] = paths
        && !only.is_dir()
        && journal::is_journal(only)
    {
        return alone(only, output);
    }
    let (paths, state_dir) = (paths.to_vec(), state_dir.to_owned());
    let view = on_a_core(move |core| {
        Box::pin(async move { pool_check::pool(&core, &paths, &state_dir).await })
    })??;
    output.show(&view, show::pool);
    view.problem().map_or(Ok(()), Err)
}

/// A journal, which is examined alone: it may be a file or a device.
fn alone(path: &Path, output: &Output) -> Result<(), Problem> {
    let at = path.to_owned();
    let view = on_a_core(move |core| Box::pin(async move { journal::inspect(&core, &at).await }))??;
    output.show(&view, show::journal);
    view.problem().map_or(Ok(()), Err)
}
