//! Batches that hold what was relocated, and not what came from hosts: a lap over nothing else
//! would win nothing.

use std::collections::VecDeque;

/// Them, with their blocks, from the oldest on.
#[derive(Clone, Default)]
pub(crate) struct Relocated(VecDeque<(u64, u64)>);

impl Relocated {
    pub(crate) fn add(&mut self, batch: u64, blocks: u64) {
        debug_assert!(
            self.0.back().is_none_or(|it| it.0 < batch),
            "in their order"
        );
        self.0.push_back((batch, blocks));
    }

    /// Batches below this one are given up.
    pub(crate) fn release(&mut self, batch: u64) {
        while self.0.front().is_some_and(|it| it.0 < batch) {
            self.0.pop_front();
        }
    }

    /// This batch is one of them.
    pub(crate) fn has(&self, batch: u64) -> bool {
        self.0.binary_search_by_key(&batch, |it| it.0).is_ok()
    }

    /// Blocks of all of them.
    pub(crate) fn blocks(&self) -> u64 {
        self.0.iter().map(|(_, blocks)| blocks).sum()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn blocks_count_until_their_batch_is_given_up() {
        let mut relocated = Relocated::default();
        relocated.add(3, 10);
        relocated.add(7, 5);
        assert_eq!(relocated.blocks(), 15);
        relocated.release(3);
        assert_eq!(relocated.blocks(), 15);
        relocated.release(4);
        assert_eq!(relocated.blocks(), 5);
        assert!(relocated.has(7) && !relocated.has(3));
        relocated.release(8);
        assert_eq!(relocated.blocks(), 0);
    }
}
