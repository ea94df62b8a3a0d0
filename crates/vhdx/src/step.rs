//! What an operation asks for, and how it is driven.
//!
//! ```text
//!   driver: next(None) -> Ask(request) -> does it -> next(Some(answer)) -> ... -> Done(result)
//! ```
//!
//! An operation is written as an `async` function whose only futures are those of a [`Port`]: the
//! compiler makes the machine. Nothing wakes anything, no executor is needed, and a driver that
//! stops in the middle, as a crash does, drops it.

use crate::error::Error;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What is to be done next. Nothing else of this operation is under way meanwhile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// In which file: 0 is the image itself, 1 its parent, and so on.
    pub file: usize,
    /// To be answered before anything else of the operation happens.
    pub action: Action,
}

/// What is to be done with a file.
///
/// Writes of any kind may be done in any order, and may be lost by a crash until a sync that began
/// after them has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// How many bytes the file has: answer [`Answer::Length`].
    Length,
    /// Read so many bytes: answer [`Answer::Bytes`], all of them. They are within the file.
    Read {
        /// From where.
        at: u64,
        /// How many.
        bytes: usize,
    },
    /// Write all of these, each at its place.
    Write(Vec<(u64, Vec<u8>)>),
    /// Make this part read as zeroes; it is within the file.
    Zero {
        /// From where.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// As [`Self::Zero`] beyond what is in use, and it shall have its space on the disk.
    Reserve {
        /// From where.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// Copy within the file, or to it from another one. The parts do not overlap.
    Copy {
        /// Of which file.
        file: usize,
        /// From where in it.
        from: u64,
        /// To where.
        to: u64,
        /// How many.
        bytes: u64,
    },
    /// Write these parts of what the caller has to write.
    Payload(Vec<Extent>),
    /// Make the file so long; what is new reads as zeroes.
    SetLength(u64),
    /// Everything that was done so far is on the disk, the file's length too.
    Sync,
}

/// A part of a request's data, and where in the file it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Bytes from the beginning of the request.
    pub at: u64,
    /// How many.
    pub bytes: u64,
    /// Where in the file.
    pub place: u64,
}

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// The file's length.
    Length(u64),
    /// What was read.
    Bytes(Vec<u8>),
    /// It was not done, and nothing is unknown because of that: there was no space for it, or
    /// whoever asked may write no more. A write that overwrites what is allocated may be done in
    /// part.
    NotDone,
    /// It failed.
    Failed,
}

/// What comes next.
#[derive(Debug)]
pub enum Step<T> {
    /// Do this, and give the answer to [`Operation::next`].
    Ask(Request),
    /// It has ended, and must not be driven on.
    Done(Result<T, Error>),
}

#[derive(Default)]
struct Slot {
    asked: RefCell<Option<Request>>,
    answer: RefCell<Option<Answer>>,
}

/// By which an operation asks for something in one file.
#[derive(Clone)]
pub(crate) struct Port {
    slot: Rc<Slot>,
    file: usize,
}

impl Port {
    /// The same operation's, for another file.
    pub(crate) fn of_file(&self, file: usize) -> Self {
        Self {
            slot: self.slot.clone(),
            file,
        }
    }

    async fn ask(&self, action: Action) -> Answer {
        let request = Request {
            file: self.file,
            action,
        };
        *self.slot.asked.borrow_mut() = Some(request);
        std::future::poll_fn(|_| match self.slot.answer.borrow_mut().take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    async fn act(&self, action: Action) -> Result<(), Error> {
        match self.ask(action).await {
            Answer::Done => Ok(()),
            Answer::NotDone => Err(Error::NotDone),
            Answer::Length(_) | Answer::Bytes(_) | Answer::Failed => Err(Error::Io),
        }
    }

    pub(crate) async fn length(&self) -> Result<u64, Error> {
        match self.ask(Action::Length).await {
            Answer::Length(length) => Ok(length),
            Answer::Done | Answer::Bytes(_) | Answer::NotDone | Answer::Failed => Err(Error::Io),
        }
    }

    pub(crate) async fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        match self.ask(Action::Read { at, bytes }).await {
            Answer::Bytes(read) if read.len() == bytes => Ok(read),
            Answer::Bytes(_)
            | Answer::Done
            | Answer::Length(_)
            | Answer::NotDone
            | Answer::Failed => Err(Error::Io),
        }
    }

    pub(crate) async fn write(&self, at: u64, bytes: Vec<u8>) -> Result<(), Error> {
        self.write_all(vec![(at, bytes)]).await
    }

    pub(crate) async fn write_all(&self, writes: Vec<(u64, Vec<u8>)>) -> Result<(), Error> {
        sure(self.act(Action::Write(writes)).await)
    }

    pub(crate) async fn zero(&self, at: u64, bytes: u64) -> Result<(), Error> {
        self.act(Action::Zero { at, bytes }).await
    }

    pub(crate) async fn reserve(&self, at: u64, bytes: u64) -> Result<(), Error> {
        self.act(Action::Reserve { at, bytes }).await
    }

    pub(crate) async fn copy(
        &self,
        file: usize,
        from: u64,
        to: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        let action = Action::Copy {
            file,
            from,
            to,
            bytes,
        };
        self.act(action).await
    }

    pub(crate) async fn payload(&self, extents: Vec<Extent>) -> Result<(), Error> {
        self.act(Action::Payload(extents)).await
    }

    pub(crate) async fn set_length(&self, bytes: u64) -> Result<(), Error> {
        self.act(Action::SetLength(bytes)).await
    }

    pub(crate) async fn sync(&self) -> Result<(), Error> {
        sure(self.act(Action::Sync).await)
    }
}

/// What of the tables was not written is unknown all the same: others of it may have been.
fn sure(done: Result<(), Error>) -> Result<(), Error> {
    done.map_err(|_| Error::Io)
}

/// Something that is under way.
pub struct Operation<'a, T> {
    future: Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>,
    slot: Rc<Slot>,
    asked: bool,
}

impl<'a, T> Operation<'a, T> {
    /// What `of` makes with its port, for file 0.
    pub(crate) fn new<F>(of: impl FnOnce(Port) -> F) -> Self
    where
        F: Future<Output = Result<T, Error>> + 'a,
    {
        let slot = Rc::new(Slot::default());
        let port = Port {
            slot: slot.clone(),
            file: 0,
        };
        Self {
            future: Box::pin(of(port)),
            slot,
            asked: false,
        }
    }

    /// What is to be done next, after this answer to what was asked for.
    ///
    /// # Panics
    /// If there is an answer to nothing, or none to a request, or the operation has ended.
    pub fn next(&mut self, answer: Option<Answer>) -> Step<T> {
        assert_eq!(self.asked, answer.is_some(), "an answer to each request");
        *self.slot.answer.borrow_mut() = answer;
        let mut context = Context::from_waker(Waker::noop());
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(result) => Step::Done(result),
            Poll::Pending => {
                let asked = self.slot.asked.borrow_mut().take();
                self.asked = true;
                Step::Ask(asked.expect("an operation waits for nothing but its port"))
            }
        }
    }

    /// Does it all by `answer`, for whoever can answer at once.
    ///
    /// # Errors
    /// What the operation ended with.
    pub fn run(mut self, mut answer: impl FnMut(Request) -> Answer) -> Result<T, Error> {
        let mut given = None;
        loop {
            match self.next(given.take()) {
                Step::Done(result) => return result,
                Step::Ask(request) => given = Some(answer(request)),
            }
        }
    }
}
