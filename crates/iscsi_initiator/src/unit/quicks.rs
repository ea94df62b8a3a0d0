//! Operations of one command that are on their way.

use crate::session::Answer;
use env::LocalFuture;
use multipath::Ended;
use std::task::Poll;
use units::LbaRange;

/// One of them, on its way.
pub(super) enum Quick {
    /// The target has it.
    Asked {
        answer: Answer,
        range: LbaRange,
        bytes: usize,
        writes: bool,
    },
    /// The target has refused it: what that means is found out.
    Refused(LocalFuture<Ended>),
}

/// Those that are known by a number.
#[derive(Default)]
pub(super) struct Quicks {
    places: Vec<Option<Quick>>,
    free: Vec<usize>,
}

impl Quicks {
    pub(super) fn insert(&mut self, quick: Quick) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(quick);
                number
            }
            None => {
                self.places.push(Some(quick));
                self.places.len() - 1
            }
        }
    }

    pub(super) fn poll(
        &mut self,
        number: usize,
        poll: impl FnOnce(&mut Quick) -> Poll<Ended>,
    ) -> Poll<Ended> {
        // One variable for every end: an answer is written where its taker wants it.
        let ended = match self.places.get_mut(number) {
            Some(Some(quick)) => poll(quick),
            Some(None) | None => Poll::Pending,
        };
        if ended.is_ready() {
            self.places[number] = None;
            self.free.push(number);
        }
        ended
    }
}
