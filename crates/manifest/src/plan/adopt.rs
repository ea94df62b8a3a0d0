//! Storage of LUNs that no object names comes into service, as what it was.

use super::Surroundings;
use super::choice::choose;
use crate::code::Code;
use crate::name::check_object_name;
use crate::objects::{Backing, Lun, Objects, check_place, check_whole_blocks};
use crate::problem::Problem;

/// One that is to be adopted: the name that it had or shall have, and what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adopted {
    /// The wanted name; where it is taken, it gets a number behind it.
    pub name: String,
    /// The LUN's fields, as they will be stored.
    pub lun: Lun,
}

/// The objects with these.
pub(super) fn adopt(current: &Objects, all: &[Adopted]) -> Result<Objects, Problem> {
    let mut after = current.clone();
    for Adopted { name, lun } in all {
        let known = after.luns.iter().chain(&after.removed);
        let mut known = known.filter(|(_, known)| known.naa == lun.naa);
        if let Some((known, _)) = known.next() {
            let detail = format!("{} is LUN \"{known}\" already", lun.naa);
            return Err(Problem::new(Code::AlreadyExists, detail));
        }
        check_object_name(name).map_err(|rule| Problem::new(Code::BadRequest, rule))?;
        check_whole_blocks(lun.size, lun.block_size)
            .map_err(|rule| Problem::new(Code::BadRequest, format!("{name}: size: {rule}")))?;
        let name = free(&after, name);
        after.luns.insert(name, lun.clone());
    }
    Ok(after)
}

/// The objects with a copy of a LUN that another node has made: in the pool of the same name, or
/// in the one that new LUNs get.
pub(super) fn copy(
    current: &Objects,
    one: &Adopted,
    around: &Surroundings,
) -> Result<Objects, Problem> {
    let refused = |rule: String| Problem::new(Code::BadRequest, format!("{}: {rule}", one.name));
    let mut one = one.clone();
    let wanted = one
        .lun
        .backing
        .pool()
        .filter(|it| around.pools.iter().any(|pool| pool == it));
    let pool = choose(wanted, &around.pools, "pool").map_err(refused)?;
    let broken = check_place(&one.lun.storage, Some(around.pool(&pool)));
    if let Some((_, rule)) = broken.into_iter().next() {
        return Err(refused(rule));
    }
    one.lun.backing = Backing::Pool(pool);
    adopt(current, std::slice::from_ref(&one))
}

/// This name, or with a number behind it where it is taken.
pub(super) fn free(objects: &Objects, name: &str) -> String {
    let taken =
        |name: &String| objects.luns.contains_key(name) || objects.removed.contains_key(name);
    let numbered = (2_u64..).map(|number| {
        let tail = format!("-{number}");
        let kept = crate::name::NAME_CHARACTERS_MAX.saturating_sub(tail.len());
        let head: String = name.chars().take(kept).collect();
        head + &tail
    });
    let mut all = std::iter::once(name.to_owned()).chain(numbered);
    all.find(|name| !taken(name)).unwrap_or_default()
}
