//! How many connections, and how many streams, there may be in all and of one source.

use accounts::Source;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most connections over TCP.
pub(crate) const ALL_MAX: usize = 1024;

/// The most of one address (of IPv6: of its 64 bits' network), and the most through unix sockets,
/// which have places of their own.
pub(crate) const OF_ONE_MAX: usize = 256;

/// Who has how many. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Places {
    taken: Arc<Mutex<BTreeMap<Source, usize>>>,
    all_max: usize,
    of_one_max: usize,
}

/// Those of connections.
impl Default for Places {
    fn default() -> Self {
        Self::of(ALL_MAX, OF_ONE_MAX)
    }
}

/// A place, free again when it is dropped.
pub(crate) struct Place {
    places: Places,
    source: Source,
}

impl Places {
    /// So many over TCP, and so many of one address or through unix sockets.
    pub(crate) fn of(all_max: usize, of_one_max: usize) -> Self {
        Self {
            taken: Arc::default(),
            all_max,
            of_one_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Source, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more; `None` where all are taken.
    pub(crate) fn take(&self, source: Source) -> Option<Place> {
        let mut taken = self.lock();
        let of_network = taken.iter().filter(|(whose, _)| **whose != Source::Local);
        let all: usize = of_network.map(|(_, count)| count).sum();
        if source != Source::Local && all >= self.all_max {
            return None;
        }
        let mine = taken.entry(source).or_insert(0);
        if *mine >= self.of_one_max {
            return None;
        }
        *mine += 1;
        Some(Place {
            places: self.clone(),
            source,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(mine) = taken.get_mut(&self.source) {
            *mine -= 1;
            if *mine == 0 {
                taken.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn one_source_has_a_part_of_the_places_and_this_machine_always_finds_one() {
        let places = Places::default();
        let mut held = Vec::new();
        let take = |source, held: &mut Vec<Place>| match places.take(source) {
            Some(place) => {
                held.push(place);
                true
            }
            None => false,
        };
        for _ in 0..OF_ONE_MAX {
            assert!(take(Source::V4(1), &mut held));
        }
        assert!(!take(Source::V4(1), &mut held), "its part is taken");
        assert!(take(Source::V4(2), &mut held), "others have theirs");
        held.pop();
        let mut other = 2;
        while held.len() < ALL_MAX {
            other += u32::from(!take(Source::V4(other), &mut held));
        }
        assert!(!take(Source::V4(99), &mut held), "all are taken");
        assert!(take(Source::Local, &mut held));
        held.clear();
        assert!(places.lock().is_empty());
    }
}
