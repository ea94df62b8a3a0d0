//! What stands at the waist where a hop is measured, in time and in instructions.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use volume::{Io, IoFuture, Lane};

/// Ready at the second poll.
#[derive(Default)]
pub struct Once(bool);

impl Future for Once {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// Counts answers: a layer with work after the answer.
pub struct Counting {
    /// What is below.
    pub next: Rc<dyn Lane>,
    /// The count.
    pub done: Rc<Cell<u64>>,
}

impl Lane for Counting {
    fn submit(&self, io: Io) -> IoFuture {
        match self.next.submit(io).now() {
            Ok(result) => {
                self.done.set(self.done.get() + 1);
                IoFuture::ready(result)
            }
            Err(waiting) => {
                let done = Rc::clone(&self.done);
                IoFuture::wait(async move {
                    let result = waiting.await;
                    done.set(done.get() + 1);
                    result
                })
            }
        }
    }
}
