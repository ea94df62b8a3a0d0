//! What stands on a pool's members, in its directory or in its journal, read without a daemon.
//!
//! ```text
//!   pool --is a directory--> directory --+
//!     |                                  +--> sidecar: checksums and history of each LUN
//!     +--are members-------> members ----+
//!   journal --> its superblock, its rings up to the last batch
//! ```
//!
//! **Contract.** Nothing is written and nothing is locked. What a daemon would leave offline is
//! named with its reason, in the words in which the daemon says it.

mod directory;
pub mod journal;
mod members;
mod on_members;
mod sidecar;
mod view;

pub use view::{LunView, MemberView, PoolView};

use env::CoreHandle;
use manifest::problem::Problem;
use std::path::{Path, PathBuf};

/// Examines a pool: one directory, or members; `state_dir`: where the daemon keeps what it knows of
/// members that are away.
///
/// # Errors
/// No pool can be made out there.
pub async fn pool(
    core: &CoreHandle,
    paths: &[PathBuf],
    state_dir: &Path,
) -> Result<PoolView, Problem> {
    match paths {
        [only] if only.is_dir() => directory::inspect(core, only).await,
        all => self::members::inspect(core, all, state_dir).await,
    }
}
