//! How much of a log a volume may have, so that others always find room.
//!
//! One volume alone may have three quarters of it, and half of a very small one, and so may those
//! together that are known not to be destaged: with the eighth that may [wait](super::Permits) an
//! eighth is always left. Where those that are not destaged have half of it and nothing but them
//! is relocated any more, their writes get the error that the backing volume gives.

use journal::BATCH_BLOCKS_MAX;

/// Volumes that cannot be destaged may together have the log's room divided by this.
const FAILED_PART_MAX: u64 = 2;

/// Blocks of the log that what is relocated may take for itself, beside what it relocates: batches
/// that are not full.
const RELOCATING_BLOCKS: u64 = 256;

/// Blocks that what waits for other copies leaves free when the log has nothing else: those of the
/// largest change, which was let in last, and what is left free before the ring begins anew.
/// Else no epoch could begin, and nothing would ever be committed.
const FREE_OF_HELD_BLOCKS: u64 = 2 * BATCH_BLOCKS_MAX;

/// The share of a volume in a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// Blocks that the log has room for.
    room: u64,
}

impl Share {
    /// In a log that has room for so many blocks.
    pub(crate) fn of_log(room: u64) -> Self {
        Self { room }
    }

    /// With so many blocks of the log in use, every volume may have more.
    pub(crate) fn is_free(self, used: u64) -> bool {
        used < self.room / 2
    }

    /// A volume with so many pages in the log may have more, and so may those that are not destaged
    /// with so many together.
    pub(crate) fn has_room(self, pages: u64) -> bool {
        pages < self.room / 4 * 3 - RELOCATING_BLOCKS.min(self.room / 4)
    }

    /// A volume of which something waits for other copies may have more, where so many pages of all
    /// such volumes do. What waits for long is relocated, again and again: half of the log, so that
    /// others have the rest.
    pub(crate) fn has_room_to_hold(self, held_pages: u64) -> bool {
        let left = self.room.saturating_sub(FREE_OF_HELD_BLOCKS);
        let most = left.max(self.room / 8).min(self.room / FAILED_PART_MAX);
        held_pages < most
    }

    /// Volumes that are not destaged, with so many pages together, of which so many blocks were
    /// relocated, have all that they may have: half of the log, so that others have the rest.
    pub(crate) fn is_spent(self, failed_pages: u64, relocated_blocks: u64) -> bool {
        let most = self.room / FAILED_PART_MAX;
        // What only waits for its turn does not count: it is relocated when that comes, if it must.
        failed_pages >= most && relocated_blocks >= most / 2
    }
}

#[cfg(test)]
mod test {
    use super::*;

    /// The most pages that a volume may have in a log with this room.
    fn most(room: u64) -> u64 {
        let share = Share::of_log(room);
        let most = (0..=room).find(|pages| !share.has_room(*pages));
        most.expect("it is bounded")
    }

    #[test]
    fn one_volume_leaves_a_quarter_and_what_is_relocated_finds_its_blocks() {
        for room in [8, 64, 1000, 1024, 4096, 100_000] {
            let (most, quarter) = (most(room), room / 4);
            assert!(most <= 3 * quarter, "{room}: {most}");
            assert!(most >= 2 * quarter, "{room}: {most}");
            let left = room - most - quarter;
            assert!(left >= RELOCATING_BLOCKS.min(quarter), "{room}: {left}");
        }
    }

    #[test]
    fn while_half_of_the_log_is_free_nobody_is_bounded() {
        let share = Share::of_log(1000);
        assert!(share.is_free(499));
        assert!(!share.is_free(500));
    }

    #[test]
    fn what_is_not_destaged_is_refused_at_half_and_only_when_relocating_it_helps_no_more() {
        let share = Share::of_log(1000);
        assert!(share.is_spent(500, 250));
        assert!(!share.is_spent(499, 1000));
        assert!(!share.is_spent(1000, 249));
    }

    #[test]
    fn what_waits_for_other_copies_leaves_room_for_an_epoch_in_the_smallest_log_too() {
        for (room, most) in [
            (100_000, 50_000),
            (2000, 1000),
            (1000, 1000 - FREE_OF_HELD_BLOCKS),
        ] {
            let share = Share::of_log(room);
            assert!(share.has_room_to_hold(most - 1) && !share.has_room_to_hold(most));
        }
        let share = Share::of_log(512);
        assert!(share.has_room_to_hold(63) && !share.has_room_to_hold(64));
    }
}
