//! What a LUN of a pool has beside its data: beside its file, or on the members of its pool.

use crate::lun::unit::{Ground, file_of};
use crate::pool::members::{MemberPool, lun_id};
use crate::pool::remembered;
use ::members::BesideLun;
use ::sidecar::Sidecar;
use env::file::{OpenHow, is_there};
use env::{CoreHandle, durable};
use manifest::config::Config;
use manifest::objects::{Backing, Lun};
use manifest::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use volume::OpenError;

/// The map of its checksums, as such a file's name ends.
pub(crate) const SUMS: &str = "sums";
/// The history of its changes.
pub(crate) const CHANGES: &str = "changes";

/// What the LUN is.
pub(crate) use manifest::orphan::RECORD;

/// How the name of its file ends.
const fn ending(what: BesideLun) -> &'static str {
    match what {
        BesideLun::Sums => SUMS,
        BesideLun::Changes | BesideLun::Coming => CHANGES,
    }
}

/// The file beside its own; `None` for a LUN that is in no pool, or in one that is not there. What
/// belongs to a LUN of a pool of members stands on the members; where that could not be, in this
/// file.
pub(crate) fn beside(config: &Config, lun: &Lun, what: &str) -> Option<PathBuf> {
    if let Some(file) = file_of(config, lun) {
        return Some(file.with_extension(what));
    }
    let Backing::Pool(pool) = &lun.backing else {
        return None;
    };
    let directory = remembered::beside(&config.state_dir, pool);
    Some(directory.join(format!("{}.{what}", lun.naa)))
}

fn pool_of<'a>((_, members): Ground<'a>, lun: &Lun) -> Option<&'a Rc<MemberPool>> {
    match &lun.backing {
        Backing::Pool(pool) => members.get(pool),
        Backing::Memory | Backing::Block(_) => None,
    }
}

/// The size of a file in bytes; 0 where it cannot be opened.
async fn size_of_file(core: &CoreHandle, path: &Path) -> u64 {
    let Ok(file) = core.files().open(path, OpenHow::READ).await else {
        return 0;
    };
    env::file::length(&file).await.unwrap_or(0)
}

/// Removes a file, where it is there.
async fn remove(core: &CoreHandle, path: &Path) -> io::Result<()> {
    match durable::remove_file(&*core.files(), path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Files of `state_dir` up to this size move to members when their LUN is opened. A larger one
/// stays: hosts would wait for the copy.
const MOVED_BYTES_MAX: u64 = 64 << 20;

/// Where it stands, with room for so many bytes; `is_new`: it is made where it is not there. What
/// stands in `state_dir` and belongs on members is moved there. `None` for a LUN that is in no
/// pool.
pub(crate) async fn stand(
    core: &CoreHandle,
    ground: Ground<'_>,
    (lun, what): (&Lun, BesideLun),
    bytes: u64,
    is_new: bool,
) -> Option<Sidecar> {
    let path = beside(ground.0, lun, ending(what))?;
    let Some(pool) = pool_of(ground, lun) else {
        return Some(Sidecar::File(path));
    };
    let has = pool.has_beside(lun_id(lun), what);
    let old = is_there(&*core.files(), &path).await;
    let is_elsewhere = !has && !old && !is_new;
    let stays = !has && old && size_of_file(core, &path).await > MOVED_BYTES_MAX;
    if is_elsewhere || stays || pool.is_in_file(lun_id(lun), what) {
        return Some(Sidecar::File(path));
    }
    let moves = Some(path.as_path()).filter(|_| old && !has);
    let made = pool.make_room_beside(core, (lun, what), bytes, moves).await;
    if let Err(error) = made {
        tracing::warn!(
            lun = lun.naa,
            "{} has no room on the members of its pool, so that it is not adopted where state_dir is lost: {error}",
            path.display()
        );
    } else if old && let Err(error) = remove(core, &path).await {
        // What stands on the members counts from now on.
        tracing::warn!("{} is of no use any more: {error}", path.display());
    }
    match pool.open_beside(core, lun, what).await {
        Ok(part) => Some(part),
        Err(error) if pool.has_beside(lun_id(lun), what) => {
            tracing::error!(lun = lun.naa, "{error}");
            // It cannot be opened there, and says so.
            Some(Sidecar::File(path))
        }
        Err(_) => {
            if what == BesideLun::Changes {
                // The journal has it open until it is closed.
                pool.stays_in_file(lun_id(lun), what);
            }
            Some(Sidecar::File(path))
        }
    }
}

/// It has room for a LUN that becomes larger, where it stands on members.
pub(crate) async fn grow(
    core: &CoreHandle,
    ground: Ground<'_>,
    (lun, what): (&Lun, BesideLun),
    bytes: u64,
) -> Result<(), OpenError> {
    match pool_of(ground, lun) {
        Some(pool) if pool.has_beside(lun_id(lun), what) => {
            let grown = pool.make_room_beside(core, (lun, what), bytes, None);
            grown.await?;
            pool.open_beside(core, lun, what).await.map(|_| ())
        }
        Some(_) | None => Ok(()),
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
    what: BesideLun,
) -> Result<(), OpenError> {
    if let Some(pool) = pool_of(ground, lun) {
        pool.give_back_beside(core, lun_id(lun), what).await?;
    }
    let Some(path) = beside(ground.0, lun, ending(what)) else {
        return Ok(());
    };
    remove(core, &path).await.map_err(|error| OpenError {
        cause: format!("{} cannot be removed: {error}", path.display()),
        next_step: "check the disk and its permissions".to_owned(),
    })
}

/// Destroys the files, where there are any.
pub(crate) async fn destroy(core: &CoreHandle, config: &Config, lun: &Lun) -> Result<(), Problem> {
    for path in [SUMS, CHANGES, RECORD]
        .iter()
        .filter_map(|what| beside(config, lun, what))
    {
        let removed = remove(core, &path).await;
        removed.map_err(|error| crate::lun::failed::failed(&error, &path, "remove"))?;
    }
    Ok(())
}
