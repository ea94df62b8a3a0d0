//! The sidecars of a LUN: files next to its own, or parts of its pool's members.

use crate::backend::door::KeepsJournal;
use crate::backend::pools::Ground;
use ::sidecar::{Sidecar, SidecarKind};
use env::{CoreHandle, durable};
use manifest::objects::Lun;
use manifest::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};
use volume::{OpenError, OpenErrorKind};

/// The map of its checksums, as such a file's name ends.
pub(crate) const CHECKSUMS: &str = "checksums";
/// The history of its changes.
pub(crate) const CHANGES: &str = "changes";

/// What the LUN is.
pub(crate) use manifest::orphan::RECORD;

/// How the name of its file ends.
pub(crate) const fn ending(what: SidecarKind) -> &'static str {
    match what {
        SidecarKind::Checksums => CHECKSUMS,
        SidecarKind::Changes => CHANGES,
    }
}

/// What keeps it, where the LUN's pool does.
fn journals_of<'a>((_, pools): Ground<'a>, lun: &Lun) -> Option<&'a dyn KeepsJournal> {
    pools.get(lun.backing.pool()?)?.journals()
}

/// The sidecar's file, where its pool keeps it in one; `None` for a LUN that is in no pool, or
/// in one that is not there.
pub(crate) fn file(ground: Ground<'_>, lun: &Lun, what: &str) -> Option<PathBuf> {
    Some(journals_of(ground, lun)?.sidecar_file(lun, what))
}

/// Removes a file, where it is there.
pub(crate) async fn remove(core: &CoreHandle, path: &Path) -> io::Result<()> {
    match durable::remove_file(&*core.files(), path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where it stands, with room for so many bytes; `is_new`: it is made where it is not there. `None`
/// for a LUN that is in no pool.
pub(crate) async fn stand(
    ground: Ground<'_>,
    (lun, what): (&Lun, SidecarKind),
    bytes: u64,
    is_new: bool,
) -> Option<Sidecar> {
    let pool = journals_of(ground, lun)?;
    Some(pool.sidecar(lun, what, bytes, is_new).await)
}

/// It has room for a LUN that becomes larger.
pub(crate) async fn grow(
    ground: Ground<'_>,
    (lun, what): (&Lun, SidecarKind),
    bytes: u64,
) -> Result<(), OpenError> {
    match journals_of(ground, lun) {
        Some(pool) => pool.grow_sidecar(lun, what, bytes).await,
        None => Ok(()),
    }
}

/// It is of no use any more, wherever it stands.
///
/// # Errors
/// What kept it from being given up.
pub(crate) async fn give_up(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    what: SidecarKind,
) -> Result<(), OpenError> {
    if let Some(pool) = journals_of(ground, lun) {
        pool.give_up_sidecar(lun, what).await?;
    }
    let Some(path) = file(ground, lun, ending(what)) else {
        return Ok(());
    };
    remove(core, &path).await.map_err(|error| OpenError {
        kind: OpenErrorKind::of_io(&error),
        cause: format!("{} cannot be removed: {error}", path.display()),
        next_step: "check the disk and its permissions".to_owned(),
    })
}

/// Destroys the files, where there are any.
pub(crate) async fn destroy(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    for path in [CHECKSUMS, CHANGES, RECORD]
        .iter()
        .filter_map(|what| file(ground, lun, what))
    {
        let removed = remove(core, &path).await;
        removed.map_err(|error| crate::lun::failed::failed(&error, &path, "remove"))?;
    }
    Ok(())
}
