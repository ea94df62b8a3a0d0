//! Files that a LUN of a pool has beside its own.

use super::unit::file_of;
use crate::config::Config;
use crate::objects::{Backing, Lun};
use crate::problem::Problem;
use crate::remembered;
use env::{CoreHandle, durable};
use std::io;
use std::path::PathBuf;

/// What such a file is for, as its name ends.
pub(super) const SUMS: &str = "sums";
/// The history of its changes.
pub(super) const CHANGES: &str = "changes";

/// What the LUN is.
pub(super) use crate::orphan::RECORD;

/// Where it is; `None` for a LUN that is in no pool, or in one that is not there.
pub(super) fn beside(config: &Config, lun: &Lun, what: &str) -> Option<PathBuf> {
    if let Some(file) = file_of(config, lun) {
        return Some(file.with_extension(what));
    }
    let Backing::Pool(pool) = &lun.backing else {
        return None;
    };
    // Members have no names: it is where else is kept what belongs to the pool.
    let directory = remembered::beside(&config.state_dir, pool);
    Some(directory.join(format!("{}.{what}", lun.naa)))
}

/// Destroys them, where there are any.
pub(super) async fn destroy(core: &CoreHandle, config: &Config, lun: &Lun) -> Result<(), Problem> {
    for path in [SUMS, CHANGES, RECORD]
        .iter()
        .filter_map(|what| beside(config, lun, what))
    {
        match durable::remove_file(&*core.files(), &path).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(super::unit::failed(&error, &path, "remove"));
            }
            _ => {}
        }
    }
    Ok(())
}
