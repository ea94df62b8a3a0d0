//! Those who wait for their changes to be stable, as the machine knows them by their tokens.

use crate::admission::Permit;
use journal::Token;
use std::collections::VecDeque;
use tokio::sync::oneshot;
use volume::IoError;

/// Somebody who waits for his change.
struct Waiter {
    answer: oneshot::Sender<Result<(), IoError>>,
    /// Given back when the log has the change.
    permit: Option<Permit>,
}

/// All who wait.
#[derive(Default)]
pub(super) struct Answers {
    /// By token, from `first` on; `None` once answered.
    waiters: VecDeque<Option<Waiter>>,
    first: u64,
    sync_points: Vec<oneshot::Sender<()>>,
}

impl Answers {
    /// The change with the next token was taken.
    pub(super) fn expect(
        &mut self,
        token: Token,
        permit: Permit,
    ) -> oneshot::Receiver<Result<(), IoError>> {
        let next = self.first + self.waiters.len() as u64;
        assert_eq!(token.0, next, "tokens follow each other");
        let (answer, answered) = oneshot::channel();
        let permit = Some(permit);
        self.waiters.push_back(Some(Waiter { answer, permit }));
        answered
    }

    /// Somebody waits for the next sync point.
    pub(super) fn expect_sync_point(&mut self) -> oneshot::Receiver<()> {
        let (pass, passed) = oneshot::channel();
        self.sync_points.push(pass);
        passed
    }

    /// Whoever waits at this place need not any more.
    pub(super) fn pass_sync_point(&mut self, place: usize) {
        // Who asked may have gone.
        let _ = self.sync_points.remove(place).send(());
    }

    /// The change is in the log, and waits for other copies: that takes nothing from who waits for
    /// the log.
    pub(super) fn held(&mut self, token: Token) {
        let place = usize::try_from(token.0 - self.first).expect("it is in memory");
        let waiter = self.waiters.get_mut(place).and_then(Option::as_mut);
        drop(waiter.expect("it is not answered").permit.take());
    }

    pub(super) fn answer(&mut self, token: Token, result: Result<(), IoError>) {
        let place = usize::try_from(token.0 - self.first).expect("it is in memory");
        let waiter = self.waiters.get_mut(place).and_then(Option::take);
        let Waiter { answer, permit } = waiter.expect("a change is answered once");
        while matches!(self.waiters.front(), Some(None)) {
            self.waiters.pop_front();
            self.first += 1;
        }
        // Who asked may have gone.
        let _ = answer.send(result);
        drop(permit);
    }
}
