//! A session: commands and task management functions of any kind, several at a time, over
//! connections that are made again when they are lost.

use super::driver::Driver;
use super::job::{Job, Outcome, Request, Seen};
use super::{Complaints, SessionConfig};
use env::CoreHandle;
use std::future::Future;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};

/// A session that is kept alive. Dropping the last handle ends it.
#[derive(Clone)]
pub struct Session {
    requests: mpsc::UnboundedSender<Request>,
    seen: Rc<Seen>,
}

impl Session {
    /// A session that is kept alive; ready once it is logged in.
    pub async fn start(core: &CoreHandle, config: SessionConfig, complaints: Complaints) -> Self {
        let (requests, incoming) = mpsc::unbounded_channel();
        let (ready, logged_in) = oneshot::channel();
        let seen = Rc::new(Seen::default());
        let reported = Rc::clone(&seen);
        let driver = Driver::new(
            Rc::clone(core),
            config,
            incoming,
            complaints,
            reported,
            ready,
        );
        core.spawn(Box::pin(driver.run()));
        // The driver ends only after its owner; then nobody waits here.
        drop(logged_in.await);
        Self { requests, seen }
    }

    /// Sends now, so that what is asked first has the lower CmdSN; waits where the answer is
    /// awaited.
    pub fn send(&self, job: Job) -> impl Future<Output = Outcome> + use<> {
        let (reply, answer) = oneshot::channel();
        drop(self.requests.send(Request { job, reply }));
        async move { answer.await.unwrap_or(Outcome::Lost) }
    }

    /// What it has seen.
    #[must_use]
    pub fn seen(&self) -> Rc<Seen> {
        Rc::clone(&self.seen)
    }
}
