//! Pools of several members: what stands on each of them ([`superblock`]), which of them fit
//! together ([`assembly`]), and which part of them is whose ([`table`]). Pure: no file, no clock.
//!
//! ```text
//!   member:  [ superblock, even events | superblock, odd events | chunk 0 | chunk 1 | ... ]
//! ```
//!
//! **Contract.** A superblock is written whole to the place of its event, never over the newest
//! one, and is stable on every member before anything is done that it allows; so a crash leaves old
//! or new. Whoever opens a pool writes again what it found, and then two events before it touches
//! data, three to a member that lagged: one that was away and was written elsewhere, or an old copy
//! of one, then has an event that nobody expects, and is refused.
//!
//! **Failure model.** A LUN is served where all members that hold a part of it are there and none
//! of them is stale. Nothing is made, grown or given back while a member is away.
//!
//! The format is described in `docs/formats/pool.md`.

pub mod assembly;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod run;
pub mod superblock;
pub mod table;
#[cfg(test)]
mod test;

pub use assembly::{Assembly, Refused, Seen, State, assemble};
pub use formats::Damage;
pub use run::Run;
pub use superblock::{
    AREA_BYTES, DATA_OFFSET, Found, Layout, LunId, Member, MemberId, PoolId, RECORD_BYTES_MAX,
    SidecarKind, Superblock, VERSION, find, offset_of,
};
pub use table::{Extent, Full};
