//! Pools of `node.toml` that are taken away through the API.

use super::{Merged, NewPool, OwnSettings, Places, fault, quoted};
use crate::problem::FieldFault;
use std::collections::BTreeMap;

/// What `node.toml` said of a pool, by key.
pub(super) type PoolText = BTreeMap<String, String>;

impl Places {
    pub(super) fn pool_says(&self, name: &str) -> Option<PoolText> {
        let at = self.pools.iter().position(|it| it == name)?;
        let section = format!("pool[{at}].");
        let keys = self.written.iter();
        let keys = keys.filter_map(|(key, it)| {
            let key = key.strip_prefix(&section)?;
            Some((key.to_owned(), it.value.clone()))
        });
        Some(keys.collect())
    }
}

impl OwnSettings {
    /// Pools of `node.toml` that are gone, for as long as that says the same of them.
    pub(super) fn pools_less<'s>(
        &'s self,
        places: &'s Places,
    ) -> impl Iterator<Item = (&'s String, &'s PoolText)> {
        let gone = self.removed_pools.iter();
        gone.filter(|(name, of)| places.pool_says(name).as_ref() == Some(*of))
    }

    /// Pools that `node.toml` does not have by now, or that are gone of it.
    pub(super) fn pools_more<'s>(
        &'s self,
        places: &'s Places,
    ) -> impl Iterator<Item = &'s NewPool> {
        let pools = self.pools.iter();
        pools.filter(|pool| !places.pools.contains(&pool.name))
    }

    pub(super) fn merge_pools(&self, places: &Places, merged: &mut Merged, behind: &mut String) {
        let gone = self.pools_less(places).map(|(name, _)| name.clone());
        merged.instead.no_pools = gone.collect();
        let kept = places.pools.len() - merged.instead.no_pools.len();
        for (at, pool) in self.pools_more(places).enumerate() {
            merged.keys.insert(format!("pool[{}].", kept + at));
            behind.push_str(&pool.section());
        }
        let more = self.pools.iter().map(|pool| &pool.name);
        let less = self.removed_pools.keys();
        let less = less.filter(|name| !merged.instead.no_pools.contains(*name));
        for name in more.chain(less).filter(|name| places.pools.contains(name)) {
            merged.overtaken.insert(format!("pool {name}"));
        }
    }

    /// Of settings without what `node.toml` has overtaken.
    pub(super) fn remove_pool(
        &mut self,
        places: &Places,
        name: &str,
    ) -> Result<(), Vec<FieldFault>> {
        let more = self.pools.len();
        self.pools.retain(|pool| pool.name != name);
        if self.pools.len() < more {
            return Ok(());
        }
        let is_gone = |name: &String| self.removed_pools.contains_key(name);
        if let Some(of) = places
            .pool_says(name)
            .filter(|_| !is_gone(&name.to_owned()))
        {
            self.removed_pools.insert(name.to_owned(), of);
            return Ok(());
        }
        let more = self.pools.iter().map(|pool| &pool.name);
        let known = places.pools.iter().filter(|name| !is_gone(name));
        let known: Vec<&str> = known.chain(more).map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "none".to_owned(),
            known => known.join(", "),
        };
        let name = name.escape_debug();
        let message = format!("there is no pool \"{name}\"; there is {known}");
        Err(fault("remove_pool", message))
    }

    /// Whether a pool of `node.toml` that is gone is back with this.
    ///
    /// # Errors
    /// `node.toml` has one of this name.
    pub(super) fn is_back(
        &mut self,
        places: &Places,
        pool: &NewPool,
    ) -> Result<bool, Vec<FieldFault>> {
        if !places.pools.contains(&pool.name) {
            return Ok(false);
        }
        let name = &pool.name;
        let Some(of) = self.removed_pools.get(name) else {
            let message = format!("there is a pool \"{name}\" already");
            return Err(fault("add_pool.name", message));
        };
        let keys = [
            ("name", Some(name)),
            ("path", Some(&pool.path)),
            ("journal", pool.journal.as_ref()),
            ("journal_size", pool.journal_size.as_ref()),
        ];
        let keys = keys.into_iter().filter_map(|(key, value)| {
            let value = quoted(value?);
            Some((key.to_owned(), value))
        });
        if *of == keys.collect::<PoolText>() {
            self.removed_pools.remove(name);
            return Ok(true);
        }
        let message = format!(
            "node.toml has another pool \"{name}\", which was removed here: choose another name, or take it out of node.toml"
        );
        Err(fault("add_pool.name", message))
    }
}
