//! From task tag to task: an open-addressed table that allocates only when it grows.
//!
//! Tags are the initiator's choice; a peer that picks colliding ones slows down its own connection
//! only, and no further than its command window. Iteration follows the slots and is deterministic.

use crate::ids::Itt;

/// Tasks of a connection by initiator task tag.
pub(crate) struct TaskTable<T> {
    /// A power of two of slots, at most half of them taken.
    slots: Vec<Option<(Itt, T)>>,
    len: usize,
}

const SLOTS_MIN: usize = 16;

impl<T> TaskTable<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get_mut(&mut self, itt: Itt) -> Option<&mut T> {
        let index = self.find(itt)?;
        self.slots.get_mut(index)?.as_mut().map(|(_, task)| task)
    }

    pub(crate) fn get(&self, itt: Itt) -> Option<&T> {
        let index = self.find(itt)?;
        self.slots.get(index)?.as_ref().map(|(_, task)| task)
    }

    pub(crate) fn contains(&self, itt: Itt) -> bool {
        self.find(itt).is_some()
    }

    /// Adds a task; the caller has checked that the tag is free.
    pub(crate) fn insert(&mut self, itt: Itt, task: T) {
        debug_assert!(!self.contains(itt), "a task tag names one task");
        if self.len.saturating_mul(2) >= self.slots.len() {
            self.grow();
        }
        let mut index = self.home(itt);
        while self.slots.get(index).is_some_and(Option::is_some) {
            index = self.after(index);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some((itt, task));
            self.len = self.len.saturating_add(1);
        }
    }

    pub(crate) fn remove(&mut self, itt: Itt) -> Option<T> {
        self.remove_if(itt, |_| true)
    }

    /// Removes a task that `goes` says yes to; looked up once.
    #[inline]
    pub(crate) fn remove_if(&mut self, itt: Itt, goes: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut hole = self.find(itt)?;
        let slot = self.slots.get_mut(hole)?;
        let (_, task) = slot.take_if(|(_, task)| goes(task))?;
        self.len = self.len.saturating_sub(1);
        // Move back whatever the hole would cut off from its home.
        let mut index = self.after(hole);
        while let Some(Some((moved, _))) = self.slots.get(index) {
            let home = self.home(*moved);
            let from_home = index.wrapping_sub(home) & self.mask();
            if from_home >= index.wrapping_sub(hole) & self.mask() {
                self.slots.swap(hole, index);
                hole = index;
            }
            index = self.after(index);
        }
        Some(task)
    }

    /// Every task, by reference.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten().map(|(_, task)| task)
    }

    /// Every task.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Itt, T)> {
        self.len = 0;
        core::mem::take(&mut self.slots).into_iter().flatten()
    }

    fn find(&self, itt: Itt) -> Option<usize> {
        let mut index = self.home(itt);
        loop {
            match self.slots.get(index)? {
                Some((here, _)) if *here == itt => return Some(index),
                Some(_) => index = self.after(index),
                None => return None,
            }
        }
    }

    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    fn home(&self, itt: Itt) -> usize {
        let hash = u64::from(itt.get()).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        usize::try_from(hash).unwrap_or(0) & self.mask()
    }

    fn after(&self, index: usize) -> usize {
        index.wrapping_add(1) & self.mask()
    }

    fn grow(&mut self) {
        let slots = self.slots.len().saturating_mul(2).max(SLOTS_MIN);
        let mut bigger = Self {
            slots: Vec::new(),
            len: 0,
        };
        bigger.slots.resize_with(slots, || None);
        for (itt, task) in self.drain() {
            bigger.insert(itt, task);
        }
        *self = bigger;
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Tags that collide often.
    fn colliding(tag: u32) -> Itt {
        Itt::from_wire(tag.wrapping_mul(0x1000_0001) & 0x7FFF_FFFF).unwrap()
    }

    proptest! {
        #[test]
        fn it_is_a_map(ops in proptest::collection::vec((any::<bool>(), 0u32..40), 0..300)) {
            let (mut table, mut model) = (TaskTable::new(), BTreeMap::new());
            for (step, (insert, tag)) in ops.into_iter().enumerate() {
                let itt = colliding(tag);
                if insert && !table.contains(itt) {
                    table.insert(itt, step);
                    model.insert(itt, step);
                } else {
                    prop_assert_eq!(table.remove(itt), model.remove(&itt));
                }
                prop_assert_eq!(table.len(), model.len());
                for tag in 0..40u32 {
                    let itt = colliding(tag);
                    prop_assert_eq!(table.get(itt), model.get(&itt));
                }
            }
            let rest: BTreeMap<_, _> = table.drain().collect();
            prop_assert_eq!(rest, model);
        }
    }
}
