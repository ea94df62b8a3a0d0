//! What a LUN stands on: the pools of a node, and the kinds that need none.

use super::door::{Backend, Pool};
use manifest::config::Config;
use manifest::objects::Backing;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use volume::{OpenError, OpenErrorKind};

/// What LUNs are made on.
pub(crate) type Ground<'a> = (&'a Config, &'a Pools);

/// What stands in no pool is made, opened and destroyed by; `Err`: the pool that is named.
pub(crate) type Alone = fn(&Backing) -> Result<Rc<dyn Backend>, &str>;

/// The node's pools by name, and the kinds that need none.
pub(crate) struct Pools {
    by_name: BTreeMap<String, Rc<dyn Pool>>,
    alone: Alone,
}

impl Pools {
    pub(crate) fn new(by_name: BTreeMap<String, Rc<dyn Pool>>, alone: Alone) -> Self {
        Self { by_name, alone }
    }
}

impl Deref for Pools {
    type Target = BTreeMap<String, Rc<dyn Pool>>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

/// What this LUN's blocks are made, opened and destroyed by.
///
/// # Errors
/// node.toml has no such pool.
pub(crate) fn of(pools: &Pools, backing: &Backing) -> Result<Rc<dyn Backend>, OpenError> {
    (pools.alone)(backing).or_else(|name| match pools.get(name) {
        Some(pool) => Ok(Rc::clone(pool) as Rc<dyn Backend>),
        None => Err(unknown(name)),
    })
}

/// Why a pool of this name cannot be used that node.toml does not have.
pub(crate) fn unknown(name: &str) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Missing,
        cause: format!("node.toml has no pool \"{name}\""),
        next_step: "bring the pool back into node.toml and restart".to_owned(),
    }
}
