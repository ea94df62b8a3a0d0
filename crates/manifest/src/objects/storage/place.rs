//! The rules between a LUN's storage fields and what holds it.

use super::{CacheMode, Storage};

/// The rules that are broken, each with its key; `journal` says whether its pool has
/// one, and is `None` where no pool holds it.
pub(crate) fn check_place(
    storage: &Storage,
    pool: Option<(&str, bool)>,
) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if storage.shares.is_some() && pool.is_none() {
        let why = "shares are of what the LUNs of a pool have in common, and no pool holds this one; leave it out";
        out.push(("shares", why.to_owned()));
    }
    if pool.is_some_and(|(_, journal)| journal) {
        return out;
    }
    let why = match pool {
        Some((pool, _)) => format!(
            "pool \"{pool}\" has no journal, which this needs; add journal = \"data/journal\" to it in node.toml and \
             restart, or leave this out"
        ),
        None => {
            "it needs the journal of a pool, and no pool holds this LUN; leave it out".to_owned()
        }
    };
    if storage.cache == Some(CacheMode::WriteBack) {
        out.push(("cache", why.clone()));
    }
    if storage.is_checked() {
        out.push(("integrity", why));
    }
    out
}
