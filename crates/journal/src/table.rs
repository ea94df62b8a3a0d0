//! A hash table that grows a piece at a time.
//!
//! ```text
//!   hash:  | which page of the directory | which slot of the table | ...
//!   directory:  [0] [1] [2] [3]       several places may lead to one table
//!                |    \   /   |
//!               table  table  table   4096 slots of 16 bytes each, open addressing
//! ```
//!
//! A table that is seven eighths full is split in two by the next bit of the hash, alone: no
//! insertion ever moves more than one table, and memory never doubles.

/// Slots of a table.
const SLOTS: usize = 4096;
const FULL: usize = SLOTS / 8 * 7;

/// A key that is never used: an empty slot.
const NOBODY: u64 = u64::MAX;

/// What is kept for a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) at: u32,
    pub(crate) mask: u8,
}

const EMPTY: Entry = Entry {
    key: NOBODY,
    at: 0,
    mask: 0,
};

#[derive(Clone)]
struct Table {
    /// Bits of the hash that all its keys share.
    depth: u32,
    used: usize,
    slots: Box<[Entry]>,
}

/// The table as a whole.
#[derive(Clone)]
pub(crate) struct Tables {
    /// Bits of the hash that choose a place of the directory.
    depth: u32,
    directory: Vec<u32>,
    tables: Vec<Table>,
    used: usize,
}

/// Spreads keys that differ in few bits (the last step of `SplitMix64`).
const fn hash(key: u64) -> u64 {
    let mut hash = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

/// The slot where a hash belongs, by its low bits; the directory goes by its high ones.
fn slot(hash: u64) -> usize {
    usize::try_from(hash % SLOTS as u64).expect("few slots")
}

impl Table {
    fn new(depth: u32) -> Self {
        Self {
            depth,
            used: 0,
            slots: vec![EMPTY; SLOTS].into_boxed_slice(),
        }
    }

    /// The slot that has the key, or the one where it would go.
    fn find(&self, key: u64) -> usize {
        let mut at = slot(hash(key));
        while self.slots[at].key != key && self.slots[at].key != NOBODY {
            at = (at + 1) % SLOTS;
        }
        at
    }

    fn put(&mut self, entry: Entry) -> Option<Entry> {
        let at = self.find(entry.key);
        let before = std::mem::replace(&mut self.slots[at], entry);
        if before.key == NOBODY {
            self.used += 1;
            return None;
        }
        Some(before)
    }

    /// Takes a key out, and moves up what was put behind it because it was there.
    fn take(&mut self, key: u64) -> Option<Entry> {
        let mut hole = self.find(key);
        let taken = self.slots[hole];
        if taken.key == NOBODY {
            return None;
        }
        self.used -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) % SLOTS;
            let entry = self.slots[at];
            if entry.key == NOBODY {
                self.slots[hole] = EMPTY;
                return Some(taken);
            }
            let home = slot(hash(entry.key));
            // It may move if its own place is not between the hole and where it lies.
            let reach = (at + SLOTS - home) % SLOTS;
            if reach >= (at + SLOTS - hole) % SLOTS {
                self.slots[hole] = entry;
                hole = at;
            }
        }
    }
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            depth: 0,
            directory: vec![0],
            tables: vec![Table::new(0)],
            used: 0,
        }
    }

    /// How many keys there are.
    pub(crate) const fn len(&self) -> usize {
        self.used
    }

    /// Memory that is in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.len() * (SLOTS * size_of::<Entry>() + size_of::<Table>())
            + self.directory.capacity() * size_of::<u32>()
    }

    fn place(&self, key: u64) -> usize {
        let high = hash(key).checked_shr(u64::BITS - self.depth).unwrap_or(0);
        usize::try_from(high).expect("the directory is in memory")
    }

    fn table(&self, key: u64) -> usize {
        self.directory[self.place(key)] as usize
    }

    pub(crate) fn get(&self, key: u64) -> Option<Entry> {
        let table = &self.tables[self.table(key)];
        let entry = table.slots[table.find(key)];
        (entry.key == key).then_some(entry)
    }

    /// Puts an entry in place of what was there for its key.
    pub(crate) fn put(&mut self, entry: Entry) -> Option<Entry> {
        debug_assert!(entry.key != NOBODY, "the last key means nobody");
        while self.tables[self.table(entry.key)].used >= FULL {
            self.split(entry.key);
        }
        let table = self.table(entry.key);
        let before = self.tables[table].put(entry);
        self.used += usize::from(before.is_none());
        before
    }

    pub(crate) fn take(&mut self, key: u64) -> Option<Entry> {
        let table = self.table(key);
        let taken = self.tables[table].take(key);
        self.used -= usize::from(taken.is_some());
        if self.used == 0 && self.tables.len() > 1 {
            *self = Self::new();
        }
        taken
    }

    /// All entries, in an order that only their history decides.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let slots = self.tables.iter().flat_map(|table| table.slots.iter());
        slots.filter(|entry| entry.key != NOBODY).copied()
    }

    /// Splits the table of a key.
    fn split(&mut self, key: u64) {
        let old = self.table(key);
        if self.tables[old].depth == self.depth {
            self.depth += 1;
            self.directory = self.directory.iter().flat_map(|&it| [it, it]).collect();
        }
        let depth = self.tables[old].depth + 1;
        let new = self.tables.len();
        let before = std::mem::replace(&mut self.tables[old], Table::new(depth));
        self.tables.push(Table::new(depth));
        let number = u32::try_from(new).expect("few tables");
        // Of the places that lead to the old one, those whose next bit is one lead to the new one.
        let next = self.depth - depth;
        for (place, table) in self.directory.iter_mut().enumerate() {
            if *table as usize == old && (place >> next) & 1 == 1 {
                *table = number;
            }
        }
        for entry in before.slots.iter().filter(|entry| entry.key != NOBODY) {
            let table = self.table(entry.key);
            self.tables[table].put(*entry);
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_table_of_any_size_does_what_a_map_does() {
        for (seed, keys) in [(1_u64, 300_u64), (2, 5_000), (3, 60_000)] {
            let (mut tables, mut model) = (Tables::new(), BTreeMap::new());
            let mut random = seed;
            for step in 0..200_000_u32 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let key = (random >> 20) % keys;
                if random % 5 < 2 {
                    let taken = tables.take(key).map(|it| it.at);
                    assert_eq!(taken, model.remove(&key));
                } else {
                    let mask = 1;
                    let before = tables.put(Entry {
                        key,
                        at: step,
                        mask,
                    });
                    assert_eq!(before.map(|it| it.at), model.insert(key, step));
                }
                assert_eq!(tables.len(), model.len());
                let other = (random >> 40) % keys;
                assert_eq!(
                    tables.get(other).map(|it| it.at),
                    model.get(&other).copied()
                );
            }
            let mut all: Vec<(u64, u32)> = tables.entries().map(|it| (it.key, it.at)).collect();
            all.sort_unstable();
            assert_eq!(all, model.into_iter().collect::<Vec<(u64, u32)>>());
        }
    }

    #[test]
    fn a_million_pages_take_less_than_a_hundredth_of_what_they_index() {
        let mut tables = Tables::new();
        for number in 0..1_000_000_u64 {
            // A run, and single pages far away.
            let key = if number.is_multiple_of(2) {
                number
            } else {
                number << 24
            };
            tables.put(Entry {
                key,
                at: 0,
                mask: 1,
            });
            let bound = tables.len() * 4096 / 100 + (SLOTS + 1) * size_of::<Entry>();
            assert!(
                tables.bytes() <= bound,
                "{} for {}",
                tables.bytes(),
                tables.len()
            );
        }
    }
}
