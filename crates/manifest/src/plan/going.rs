//! LUNs in pools that the node does without from its next start on: pure.

use crate::code::Code;
use crate::objects::{Lun, Objects};
use crate::problem::Problem;
use std::collections::BTreeSet;

/// No LUN of `after` that is none of `before`, in service or removed, lies in a pool of `going`.
///
/// # Errors
/// One does, and the change is not to be made.
pub fn none_in(going: &BTreeSet<String>, before: &Objects, after: &Objects) -> Result<(), Problem> {
    if going.is_empty() {
        return Ok(());
    }
    let known = before.luns.values().chain(before.removed.values());
    let known: BTreeSet<&str> = known.map(|lun| lun.naa.as_str()).collect();
    let lies = |lun: &Lun| {
        let pool = lun.backing.pool().filter(|pool| going.contains(*pool))?;
        (!known.contains(lun.naa.as_str())).then(|| pool.to_owned())
    };
    let found = after.luns.iter();
    match found
        .filter_map(|(name, lun)| Some((name, lies(lun)?)))
        .next()
    {
        None => Ok(()),
        Some((name, pool)) => {
            let detail = format!(
                "LUN {name} would lie in pool {pool}, which the node does without from its next restart on"
            );
            Err(Problem::new(Code::PoolGoes, detail))
        }
    }
}
