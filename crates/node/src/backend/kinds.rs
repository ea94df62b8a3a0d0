//! The table of kinds: which code opens the door for what node.toml or a LUN names.

use super::disk::Device;
use super::door::{Backend, Pool, Work};
use super::image::InImage;
use super::memory::Memory;
use super::pools::Pools;
use crate::inner::Inner;
use crate::pool::{members, path, rbd};
use manifest::config::{self, Place};
use manifest::objects::{BackendSpec, Backing, Objects};
use manifest::problem::Problem;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The kinds of pools: opens one of node.toml, by its number there. By the objects it is known
/// whether it may be new.
fn open<'a>(
    node: &'a Rc<Inner>,
    (index, pool): (usize, &'a config::Pool),
    objects: &'a Rc<Objects>,
) -> Work<'a, Result<Rc<dyn Pool>, Problem>> {
    match &pool.place {
        Place::Path(at) => path::open(node, (index, pool), at, objects),
        Place::Members { members, layout } => {
            members::open(node, pool, (members, *layout), objects)
        }
        Place::Rbd(place) => rbd::open(node, pool, place),
    }
}

/// The kinds that need no pool, which a LUN names itself. `Err`: the pool that it names.
fn alone(backing: &Backing) -> Result<Rc<dyn Backend>, &str> {
    match backing {
        Backing::Own(BackendSpec::Memory) => Ok(Rc::new(Memory)),
        Backing::Own(BackendSpec::Block(path)) => Ok(Rc::new(Device(path.clone()))),
        Backing::Own(BackendSpec::Vhdx(path)) => Ok(Rc::new(InImage(path.clone()))),
        Backing::Pool(name) => Err(name),
    }
}

/// Before pools are opened.
pub(crate) fn no_pools() -> Pools {
    Pools::new(BTreeMap::new(), alone)
}

/// Opens all pools, and makes those that are new. One that cannot be used is there and says why.
///
/// # Errors
/// One cannot be made.
pub(crate) async fn open_pools(node: &Rc<Inner>, objects: &Rc<Objects>) -> Result<Pools, Problem> {
    let mut pools = BTreeMap::new();
    for (index, pool) in node.config.pools.iter().enumerate() {
        let opened = open(node, (index, pool), objects).await?;
        pools.insert(pool.name.clone(), opened);
    }
    Ok(Pools::new(pools, alone))
}
