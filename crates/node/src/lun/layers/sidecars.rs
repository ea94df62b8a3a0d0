//! What the layers of a LUN keep in sidecars, whether it is in service or not.

use super::{STACK, kind_of};
use crate::backend::pools::Ground;
use crate::journal::pool_journal::PoolJournal;
use env::CoreHandle;
use manifest::objects::Lun;
use manifest::problem::Problem;
use volume::OpenError;

/// Makes those of a LUN that was just made.
///
/// # Errors
/// What cannot be made.
pub(crate) async fn create(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    for kind in &STACK {
        if let Some(sidecar) = kind.sidecar {
            sidecar.create(core, ground, &kind.lun(lun)).await?;
        }
    }
    Ok(())
}

/// Makes the one of the layer that follows this field, for a LUN that has contents.
///
/// # Errors
/// Why it cannot be made.
pub(crate) async fn create_later(
    field: &str,
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    let kind = kind_of(field);
    match kind.sidecar {
        Some(sidecar) => sidecar.create_later(core, ground, &kind.lun(lun)).await,
        None => Ok(()),
    }
}

/// Removes the one of the layer that follows this field.
///
/// # Errors
/// Why it is still there.
pub(crate) async fn retire(
    field: &str,
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), OpenError> {
    let kind = kind_of(field);
    match kind.sidecar {
        Some(sidecar) => sidecar.retire(core, ground, &kind.lun(lun)).await,
        None => Ok(()),
    }
}

/// All have room for a LUN that becomes as large as this one says; those next to its blocks first.
///
/// # Errors
/// There is none.
pub(crate) async fn grow(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    journal: &PoolJournal,
) -> Result<(), Problem> {
    for kind in STACK.iter().rev() {
        if let Some(sidecar) = kind.sidecar {
            sidecar.grow(core, ground, &kind.lun(lun), journal).await?;
        }
    }
    Ok(())
}
