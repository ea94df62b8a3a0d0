//! What one core has asked of librbd, for all of its lanes: ends of operations come here and go to
//! whoever asked.

use crate::ffi::{Ended, Inbox, Request};
use crate::image::Image;
use crate::outcome::{difference, io_error};
use env::CoreHandle;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use units::LbaRange;
use volume::{Done, IoResult, OpKind};

/// One core's. A task of the core serves it as long as the core runs.
#[derive(Default)]
pub(crate) struct Desk {
    pub(crate) inbox: Arc<Inbox<Asker>>,
    is_served: Cell<bool>,
}

/// Who waits for the end of an operation.
pub(crate) struct Asker {
    pub(crate) image: Arc<Image>,
    pub(crate) kind: OpKind,
    pub(crate) range: LbaRange,
    pub(crate) answer: oneshot::Sender<IoResult>,
}

impl Desk {
    /// The core's.
    pub(crate) fn of(core: &CoreHandle) -> Rc<Self> {
        let desk = core.locals().get::<Self>();
        if !desk.is_served.replace(true) {
            core.spawn(Box::pin(serve(Arc::clone(&desk.inbox))));
        }
        desk
    }
}

async fn serve(inbox: Arc<Inbox<Asker>>) {
    loop {
        for one in poll_fn(|cx| inbox.poll_ended(cx)).await {
            let (asker, ended) = one.end();
            asker.complete(ended);
        }
    }
}

impl Asker {
    fn complete(self, ended: Ended) {
        let result = self.result(ended);
        if let Err(error) = result {
            self.image.has_failed(error);
        }
        // Nobody may be waiting any more; the work is done all the same.
        let _gone = self.answer.send(result);
    }

    fn place(&self, said: u64) -> u64 {
        let block = u64::from(self.image.spec().block_size.bytes());
        let (offset, len) = (self.range.start().0 * block, self.range.len().0 * block);
        difference(said, offset, len, self.image.facts().stripe_unit)
    }

    fn result(&self, ended: Ended) -> IoResult {
        let Ended {
            request,
            value,
            mismatch_at,
        } = ended;
        if value < 0 {
            let errno = i32::try_from(-value).unwrap_or(libc::EIO);
            return Err(io_error(
                self.kind,
                self.range,
                errno,
                self.place(mismatch_at),
            ));
        }
        match request {
            // The image has become shorter meanwhile.
            Request::Read { into, .. } if u64::try_from(value) != Ok(into.len() as u64) => {
                Err(io_error(self.kind, self.range, libc::EINVAL, 0))
            }
            Request::Read { into, .. } => Ok(Done::Data(into.freeze())),
            Request::Write { .. }
            | Request::Discard { .. }
            | Request::WriteZeroes { .. }
            | Request::CompareAndWrite { .. }
            | Request::Flush => Ok(Done::Nothing),
        }
    }
}
