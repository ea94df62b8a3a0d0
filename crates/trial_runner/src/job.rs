//! The job that a run or a bed is, for whoever lists what goes on.

use controller::{Ending, Handle, NewJob};
use manifest::job::JobUnit;

/// A job that was begun.
#[derive(Clone)]
pub(crate) struct Job {
    handle: Handle,
    /// `None`: core 0 is gone, and nobody lists it.
    id: Option<u64>,
}

/// A run or a bed, for lists of what goes on.
pub(crate) struct Of<'a> {
    pub(crate) kind: &'a str,
    pub(crate) object: &'a str,
    pub(crate) by: &'a str,
    pub(crate) seconds: u64,
    /// Where more is said of it.
    pub(crate) link: String,
}

impl Job {
    /// Begins; `stop` is called where somebody cancels it.
    pub(crate) async fn begin(
        handle: &Handle,
        of: Of<'_>,
        stop: impl FnOnce() + Send + 'static,
    ) -> Self {
        let new = NewJob {
            kind: of.kind.to_owned(),
            object: of.object.to_owned(),
            by: of.by.to_owned(),
            unit: JobUnit::Seconds,
            total: of.seconds,
            link: Some(of.link),
            ..NewJob::default()
        };
        let begun = handle.call(move |controller| {
            Box::pin(async move { controller.begin_job(new, Box::new(stop)) })
        });
        Self {
            id: begun.await.ok(),
            handle: handle.clone(),
        }
    }

    /// It is so far, in seconds. Nobody waits for it.
    pub(crate) fn progress(&self, done: f64, total: f64) {
        let Some(id) = self.id else { return };
        let (done, total) = (whole(done), whole(total));
        let handle = self.handle.clone();
        tokio::spawn(async move {
            let note = handle.call(move |controller| {
                Box::pin(async move { controller.job_progress(id, done, total) })
            });
            // Where core 0 is gone, nobody lists it.
            let _gone = note.await;
        });
    }

    /// Nothing of it goes on any more.
    pub(crate) async fn end(&self, ending: Ending) {
        let Some(id) = self.id else { return };
        let end = self
            .handle
            .call(move |controller| Box::pin(async move { controller.end_job(id, &ending) }));
        let _gone = end.await;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of an hour"
)]
fn whole(seconds: f64) -> u64 {
    seconds.max(0.0) as u64
}
