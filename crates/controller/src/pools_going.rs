//! Pools that the node does without from its next start on: no LUN is made in them any more.
//!
//! **Contract.** A pool that is to be empty is empty when it is let go, and no change that was
//! under way then has put a LUN there, nor does one that comes later.

use super::Controller;
use manifest::objects::Objects;
use manifest::plan::{SessionBrief, lies_in, none_in};
use manifest::problem::Problem;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What goes, and what is on its way.
#[derive(Default)]
pub(crate) struct Going {
    pools: RefCell<BTreeSet<String>>,
    /// The objects of the change that is being made.
    coming: RefCell<Option<Rc<Objects>>>,
}

impl Going {
    /// Nothing new lies in a pool that goes.
    pub(crate) fn allows(&self, before: &Objects, after: &Objects) -> Result<(), Problem> {
        none_in(&self.pools.borrow(), before, after)
    }

    /// The same, and the change is made from now on; until [`Going::over`] nobody lets a pool go
    /// that it puts something into.
    pub(crate) fn comes(&self, before: &Objects, after: &Rc<Objects>) -> Result<(), Problem> {
        self.allows(before, after)?;
        *self.coming.borrow_mut() = Some(Rc::clone(after));
        Ok(())
    }

    /// It is made, or not.
    pub(crate) fn over(&self) {
        *self.coming.borrow_mut() = None;
    }
}

impl Controller {
    /// From its next start on the node does without these pools, and without no other one. `empty`:
    /// the one of them in which nothing may lie; where something does, it is answered, and nothing
    /// is changed.
    pub async fn let_pools_go(&self, pools: BTreeSet<String>, empty: Option<&str>) -> Vec<String> {
        let briefs = self.briefs().await;
        // Nothing is waited for from here on, so that no change comes between.
        let lies = empty.map(|pool| self.lie_in(pool, &briefs));
        let lies = lies.unwrap_or_default();
        if lies.is_empty() {
            *self.going.pools.borrow_mut() = pools;
        }
        lies
    }

    /// What lies in a pool and would be served no longer without it, a line each.
    pub async fn lies_in(&self, pool: &str) -> Vec<String> {
        self.lie_in(pool, &self.briefs().await)
    }

    /// The same, with what a change that is being made puts there.
    fn lie_in(&self, pool: &str, sessions: &[SessionBrief]) -> Vec<String> {
        let lies = lies_in(&self.objects(), pool, sessions);
        match &*self.going.coming.borrow() {
            Some(coming) if lies.is_empty() => lies_in(coming, pool, sessions),
            Some(_) | None => lies,
        }
    }
}
