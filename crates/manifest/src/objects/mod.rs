//! The objects that an administrator handles: LUNs, targets, hosts, and grants that tie them
//! together.
//!
//! ```text
//!   objects.toml --file--> ObjectSet (what is wanted) --plan--> Objects (what is stored)
//!                 <--export--                        <-export--
//! ```
//!
//! **Contract.** Nothing is open unless a grant says so. An [`ObjectSet`] leaves out what is to
//! have its default or to stay as it is; [`Objects`] says everything.

mod backing;
mod check;
mod export;
mod file;
#[cfg(any(test, feature = "test_support"))]
pub mod fixture;
mod model;
mod patch;
mod sections;
mod spec;
mod storage;

pub use backing::{BackendSpec, Backing};
pub use check::{
    BLOCK_SIZES, CHAP_BYTES_MAX, LUN_ID_MAX, MAINTENANCE_GRACE_SECONDS_MAX, SECRET_BYTES_MIN,
    check_each,
};
pub(crate) use check::{SAME_SECRET, check_whole_blocks};
pub use export::{export, to_toml};
pub use file::{FileObjects, ReadSecret, parse};
pub use model::{
    Chap, Grant, GrantKey, Host, Lun, MAINTENANCE_GRACE_SECONDS, MIRRORED_PORTS, MutualChap,
    ONE_HOST_ANY, Objects, Redirect, Target,
};
pub use patch::{GrantPatch, HostPatch, LunPatch, Patch, PatchOf, TargetPatch};
pub use sections::{SECTION_GRANT, SECTION_HOST, SECTION_LUN, SECTION_TARGET};
pub use spec::{ChapSpec, GrantSpec, HostSpec, LunSpec, ObjectSet, SecretSpec, TargetSpec};

#[cfg(test)]
pub(crate) use storage::VOLATILE_RISK;
pub(crate) use storage::check_place;
pub(crate) use storage::read_among_others;
// All that fields and layers have of their own: a new one needs no line here.
pub use storage::*;

#[cfg(test)]
mod test;
