//! What storage fields need to know of what holds a LUN: its pool, and what a pool had of one that
//! is adopted.

use super::{FIELDS, Storage};

/// A pool, as far as storage fields need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolBrief<'a> {
    /// As node.toml has it.
    pub name: &'a str,
    /// It has a file or device for writes that are acknowledged before they are at their place.
    pub has_journal: bool,
    /// It makes stable whatever it acknowledges, without one.
    pub is_stable: bool,
}

/// A LUN that no object names, on its way into service.
#[derive(Clone, Copy, Debug)]
pub struct Adoption<'a> {
    /// What objects call it from now on, for notices.
    pub name: &'a str,
    /// Its map of checksums is there.
    pub has_checksums: bool,
    /// What holds its blocks.
    pub pool: PoolBrief<'a>,
}

/// The rules between a LUN's storage fields and what holds it that are broken, each with its key;
/// `pool` is `None` where no pool holds it.
pub(crate) fn check_place(
    storage: &Storage,
    pool: Option<PoolBrief<'_>>,
) -> Vec<(&'static str, String)> {
    let broken = FIELDS.iter().filter_map(|field| {
        let rule = field.fits(storage, pool).err()?;
        Some((field.name(), rule))
    });
    broken.collect()
}

/// The rule of a field that needs the journal of a pool.
///
/// # Errors
/// There is none.
pub(super) fn needs_journal(pool: Option<PoolBrief<'_>>) -> Result<(), String> {
    match pool {
        Some(pool) if pool.has_journal => Ok(()),
        Some(pool) => Err(format!(
            "pool \"{}\" has no journal, which this needs; add journal = \"data/journal\" to it in node.toml and \
             restart, or leave this out",
            pool.name
        )),
        None => Err(
            "it needs the journal of a pool, and no pool holds this LUN; leave it out".to_owned(),
        ),
    }
}
