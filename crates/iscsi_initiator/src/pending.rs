//! What belongs to each command in flight, found by its tag without a search.
//!
//! Tags count upwards, so the commands in flight mostly differ in their last bits. One that is much
//! slower than the others may meet a newer one in its place; the newer one then lives beside the
//! table until it ends.

use iscsi::Itt;
use std::collections::BTreeMap;

/// Places of a new table.
const PLACES_MIN: usize = 64;

/// A map from task tags to whatever the owner keeps for a command. It allocates only when it grows.
pub struct Pending<T> {
    /// A power of two of places.
    places: Vec<Option<(Itt, T)>>,
    newer: BTreeMap<Itt, T>,
    len: usize,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            newer: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<T> Pending<T> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn place(&self, itt: Itt) -> usize {
        itt.get() as usize & self.places.len().wrapping_sub(1)
    }

    /// Adds what belongs to `itt`, which the connection has just given out.
    pub fn insert(&mut self, itt: Itt, value: T) {
        if self.len * 2 >= self.places.len() {
            self.grow();
        }
        self.len += 1;
        let place = self.place(itt);
        match &mut self.places[place] {
            free @ None => *free = Some((itt, value)),
            Some(_) => {
                self.newer.insert(itt, value);
            }
        }
    }

    /// What belongs to `itt`.
    pub fn get_mut(&mut self, itt: Itt) -> Option<&mut T> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(itt);
        match self.places.get_mut(place) {
            Some(Some((here, value))) if *here == itt => Some(value),
            Some(_) | None => self.newer.get_mut(&itt),
        }
    }

    /// Takes out what belongs to `itt`.
    pub fn remove(&mut self, itt: Itt) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(itt);
        let value = match self.places.get_mut(place) {
            Some(found) if found.as_ref().is_some_and(|(here, _)| *here == itt) => {
                found.take().map(|(_, value)| value)
            }
            Some(_) | None => self.newer.remove(&itt),
        };
        self.len -= usize::from(value.is_some());
        value
    }

    /// The tags, in no particular order.
    #[must_use]
    pub fn tags(&self) -> Vec<Itt> {
        let places = self.places.iter().flatten().map(|(itt, _)| *itt);
        places.chain(self.newer.keys().copied()).collect()
    }

    /// Takes everything out, in no particular order.
    pub fn drain(&mut self) -> impl Iterator<Item = (Itt, T)> + use<T> {
        self.len = 0;
        let places = std::mem::take(&mut self.places);
        let newer = std::mem::take(&mut self.newer);
        places.into_iter().flatten().chain(newer)
    }

    fn grow(&mut self) {
        let count = (self.places.len() * 2).max(PLACES_MIN);
        let mut bigger = Self {
            places: Vec::new(),
            ..Self::default()
        };
        bigger.places.resize_with(count, || None);
        for (itt, value) in self.drain() {
            bigger.insert(itt, value);
        }
        *self = bigger;
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn itt(tag: u32) -> Itt {
        Itt::from_wire(tag).unwrap()
    }

    #[test]
    fn it_is_a_map_also_where_tags_share_a_place() {
        let (mut table, mut model) = (Pending::default(), BTreeMap::new());
        let mut state = 1u64;
        for step in 0..20_000u32 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let tag = u32::try_from(state >> 33).unwrap() % 512 * 64 % 4099;
            if model.len() < 100 && !model.contains_key(&tag) {
                table.insert(itt(tag), step);
                model.insert(tag, step);
            } else {
                assert_eq!(table.remove(itt(tag)), model.remove(&tag));
            }
            assert_eq!(table.len(), model.len());
            assert_eq!(table.get_mut(itt(tag)).copied(), model.get(&tag).copied());
        }
        let rest: BTreeMap<u32, u32> = table.drain().map(|(itt, v)| (itt.get(), v)).collect();
        assert_eq!(rest, model);
        assert!(table.is_empty());
    }

    #[test]
    fn one_slow_command_does_not_make_the_table_grow() {
        let mut table = Pending::default();
        table.insert(itt(0), 0);
        for tag in 1..100_000 {
            table.insert(itt(tag), tag);
            assert_eq!(table.remove(itt(tag)), Some(tag));
        }
        assert_eq!(table.places.len(), PLACES_MIN);
        assert_eq!(table.remove(itt(0)), Some(0));
    }
}
