//! The memory of data that waits for its owner's.

use crate::ids::Itt;

/// What all tasks of a session park together.
pub(super) struct Parking {
    /// Memory that is taken, in bytes.
    pub(super) bytes: usize,
    /// The most that may be.
    pub(super) bytes_max: usize,
    /// A task whose data could not be parked, until its PDU is over.
    pub(super) crowded: Option<Itt>,
}

/// Unsolicited data that came before the owner gave a buffer, from byte 0 on.
#[derive(Default)]
pub(super) struct Parked(Vec<u8>);

impl Parked {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of memory that it has taken.
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(super) fn part_mut(&mut self, range: core::ops::Range<usize>) -> &mut [u8] {
        self.0.get_mut(range).unwrap_or_default()
    }

    /// Makes it `end` bytes long, in memory for `whole`. `all` is what all tasks have taken, at
    /// most `most` after it; `false`: that would be too much, and nothing has changed.
    pub(super) fn grow(
        &mut self,
        end: usize,
        (whole, most): (usize, usize),
        all: &mut usize,
    ) -> bool {
        let (had, needs) = (self.0.capacity(), whole.max(end));
        if needs > had {
            if all.saturating_sub(had).saturating_add(needs) > most {
                return false;
            }
            self.0.reserve_exact(needs.saturating_sub(self.0.len()));
            *all = all.saturating_sub(had).saturating_add(self.0.capacity());
        }
        self.0.resize(end, 0);
        true
    }

    /// Takes what is parked out of it, and its memory off `all`.
    pub(super) fn take(&mut self, all: &mut usize) -> Vec<u8> {
        self.leave(all);
        core::mem::take(&mut self.0)
    }

    /// Takes its memory off `all`: its task is about to go, and it with it.
    #[inline]
    pub(super) fn leave(&self, all: &mut usize) {
        *all = all.saturating_sub(self.0.capacity());
    }
}
