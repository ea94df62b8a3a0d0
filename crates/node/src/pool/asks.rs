//! What pools are asked while a change of LUNs goes on.
//!
//! **Contract.** A pool whose directory does not answer costs a change [`ASK_TIME_MAX`] once for
//! each thing that it is asked, and no time as long as that question is unanswered; nothing is
//! asked twice at once. What was begun goes on.

use crate::inner::Inner;
use env::{detach, in_time};
use std::time::Duration;

/// How long an answer is waited for.
const ASK_TIME_MAX: Duration = Duration::from_secs(5);

impl Inner {
    /// The answer to one thing; `None` where it does not come in time, or an earlier one has not
    /// come.
    pub(crate) async fn ask<T: Unpin + 'static>(
        &self,
        what: String,
        work: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        let open = self.asks.clone();
        if !open.0.borrow_mut().insert(what.clone()) {
            return None;
        }
        let asked = detach(&self.core, async move {
            let answer = work.await;
            open.0.borrow_mut().remove(&what);
            answer
        });
        in_time(&self.core, ASK_TIME_MAX, asked).await
    }
}
