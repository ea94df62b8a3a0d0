//! Closures on their way to the thread, and their answers back.

use crate::Failed;
use rusqlite::Connection;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The answer to a closure, on any runtime or none.
#[must_use]
pub struct Answer<T>(oneshot::Receiver<Result<T, Failed>>);

impl<T> Answer<T> {
    /// Waits for it, for threads that run no tasks.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn wait(self) -> Result<T, Failed> {
        self.0.blocking_recv().unwrap_or(Err(Failed::Closed))
    }

    /// Nobody needs it; what is dropped is counted all the same.
    pub fn forget(self) {}
}

impl<T> Future for Answer<T> {
    type Output = Result<T, Failed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|answer| answer.unwrap_or(Err(Failed::Closed)))
    }
}

/// A write: run inside a transaction, answered after it.
pub(crate) trait Write: Send {
    /// Does it.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;
    /// Says what became of it.
    fn answer(self: Box<Self>, failed: Option<Failed>);
}

/// A read, answered at once.
pub(crate) trait Read: Send {
    /// Does it; says what the error was, where there was one.
    fn run(self: Box<Self>, connection: &Connection) -> rusqlite::Result<()>;
    /// It cannot be done.
    fn refuse(self: Box<Self>, why: Failed);
}

pub(crate) enum Job {
    Write(Box<dyn Write>),
    Read(Box<dyn Read>),
    /// There is another bound.
    Bound,
}

impl Job {
    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Self::Write(_))
    }

    pub(crate) fn refuse(self, why: Failed) {
        match self {
            Self::Write(write) => write.answer(Some(why)),
            Self::Read(read) => read.refuse(why),
            Self::Bound => {}
        }
    }
}

pub(crate) struct Writing<T, F> {
    work: Option<F>,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, Failed>>,
}

impl<T, F> Writing<T, F> {
    pub(crate) fn new(work: F) -> (Self, Answer<T>) {
        let (answer, answered) = oneshot::channel();
        let this = Self {
            work: Some(work),
            done: None,
            answer,
        };
        (this, Answer(answered))
    }
}

impl<T, F> Write for Writing<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(work) = self.work.take() {
            self.done = Some(work(connection)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, failed: Option<Failed>) {
        let result = match (failed, self.done) {
            (None, Some(done)) => Ok(done),
            (Some(why), _) => Err(why),
            (None, None) => Err(Failed::Closed),
        };
        // Whoever asked may have gone.
        let _ = self.answer.send(result);
    }
}

pub(crate) struct Reading<T, F> {
    work: F,
    answer: oneshot::Sender<Result<T, Failed>>,
}

impl<T, F> Reading<T, F> {
    pub(crate) fn new(work: F) -> (Self, Answer<T>) {
        let (answer, answered) = oneshot::channel();
        (Self { work, answer }, Answer(answered))
    }
}

impl<T, F> Read for Reading<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
{
    fn run(self: Box<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let (result, error) = match (self.work)(connection) {
            Ok(found) => (Ok(found), Ok(())),
            Err(error) => (Err(Failed::File(error.to_string())), Err(error)),
        };
        // Whoever asked may have gone.
        let _ = self.answer.send(result);
        error
    }

    fn refuse(self: Box<Self>, why: Failed) {
        let _ = self.answer.send(Err(why));
    }
}
