//! Operations that end by a callback.
//!
//! ```text
//!   a core: submit --> [librbd]
//!         --> callback on one of its threads: into the inbox of the core that asked, and wake it
//!   that core: Inbox::poll_ended
//!         --> InFlight::end: return value, release of the completion, memory back
//! ```
//!
//! **Contract.** Memory, image and connection stay as long as an operation is in flight:
//! [`InFlight`] owns or keeps all of them, and belongs to librbd from the submission to the
//! callback. The callback only hands it over.

use super::image::ImageHandle;
use super::prototypes::{Api, Completion, RawImage, THICK};
use libc::{c_int, c_void, iovec};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use units::{Buf, BufMut};

/// An operation, in bytes of the image.
#[derive(Debug)]
pub(crate) enum Request {
    Read {
        offset: u64,
        into: BufMut,
    },
    Write {
        offset: u64,
        data: Buf,
    },
    Discard {
        offset: u64,
        len: u64,
    },
    WriteZeroes {
        offset: u64,
        len: usize,
        keep_allocated: bool,
    },
    /// Both payloads are contiguous.
    CompareAndWrite {
        offset: u64,
        expected: Buf,
        data: Buf,
    },
    Flush,
}

/// How an operation has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What it was, with its memory.
    pub(crate) request: Request,
    /// Bytes, or a negative errno.
    pub(crate) value: i64,
    /// Where a comparison has found a difference.
    pub(crate) mismatch_at: u64,
}

/// An operation that librbd has, or that has ended and waits for its core. `A` is whoever asked.
pub(crate) struct InFlight<A> {
    request: Request,
    /// Where the request's memory lies.
    pieces: Vec<iovec>,
    mismatch_at: u64,
    completion: Option<Held>,
    /// What librbd said when it did not take it.
    refused: Option<i64>,
    #[expect(dead_code, reason = "it is open as long as this is in flight")]
    image: Arc<ImageHandle>,
    inbox: Option<Arc<Inbox<A>>>,
    asker: A,
}

// SAFETY: what is not `Send` by itself are pointers to memory that `request` owns, and a completion
// of librbd, which may be used on any thread. One thread has them at a time: the core that submits,
// then librbd, then the core again.
unsafe impl<A: Send> Send for InFlight<A> {}

/// A completion, to be released once.
struct Held {
    api: &'static Api,
    raw: Completion,
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it is ours, and its operation has ended or was never begun.
        unsafe { (self.api.rbd_aio_release)(self.raw) };
    }
}

/// What has ended and waits for one core.
pub(crate) struct Inbox<A>(Mutex<State<A>>);

struct State<A> {
    ended: Vec<Box<InFlight<A>>>,
    waker: Option<Waker>,
}

impl<A> Default for Inbox<A> {
    fn default() -> Self {
        Self(Mutex::new(State {
            ended: Vec::new(),
            waker: None,
        }))
    }
}

impl<A> Inbox<A> {
    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, one: Box<InFlight<A>>) {
        let mut state = self.lock();
        state.ended.push(one);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// All that has ended, at least one.
    pub(crate) fn poll_ended(&self, cx: &Context<'_>) -> Poll<Vec<Box<InFlight<A>>>> {
        let mut state = self.lock();
        if state.ended.is_empty() {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut state.ended))
    }
}

impl<A> InFlight<A> {
    /// Takes apart what has ended.
    pub(crate) fn end(self) -> (A, Ended) {
        let value = match (self.refused, &self.completion) {
            (Some(refused), _) => refused,
            // SAFETY: the completion is ours until it is released, and its operation has ended.
            (None, Some(it)) => unsafe { (it.api.rbd_aio_get_return_value)(it.raw) as i64 },
            (None, None) => i64::from(-libc::EIO),
        };
        let ended = Ended {
            request: self.request,
            value,
            mismatch_at: self.mismatch_at,
        };
        (self.asker, ended)
    }

    /// Nothing will call back: it has ended with this.
    fn refuse(mut self: Box<Self>, said: i64) {
        self.refused = Some(said);
        if let Some(inbox) = self.inbox.take() {
            inbox.put(self);
        }
    }
}

extern "C" fn ended<A: Send>(_completion: Completion, token: *mut c_void) {
    // SAFETY: the token is the box that `submit` gave away for exactly this call.
    let mut one = unsafe { Box::from_raw(token.cast::<InFlight<A>>()) };
    if let Some(inbox) = one.inbox.take() {
        inbox.put(one);
    }
}

/// Hands an operation to librbd, which does not wait. What has ended comes to `inbox`, also where
/// it was refused.
pub(crate) fn submit<A: Send>(
    image: Arc<ImageHandle>,
    mut request: Request,
    inbox: Arc<Inbox<A>>,
    asker: A,
) {
    let (raw, api) = (image.raw, image.api());
    let pieces = pieces(&mut request);
    let mut one = Box::new(InFlight {
        request,
        pieces,
        mismatch_at: 0,
        completion: None,
        refused: None,
        image,
        inbox: Some(inbox),
        asker,
    });
    let token: *mut InFlight<A> = &raw mut *one;
    let mut completion = null_mut();
    // SAFETY: the token is what the callback expects, and the completion is written. Nothing is
    // called yet.
    let made =
        unsafe { (api.rbd_aio_create_completion)(token.cast(), ended::<A>, &raw mut completion) };
    if made < 0 {
        return one.refuse(i64::from(made));
    }
    one.completion = Some(Held {
        api,
        raw: completion,
    });
    let call = Call::of(&mut one);
    // The callback takes it back, perhaps before `hand_over` returns: nothing here touches it
    // unless librbd refuses.
    let token = Box::into_raw(one);
    // SAFETY: the image is open and kept by what the token is of, as is the memory that the call
    // names.
    let taken = unsafe { call.hand_over(api, raw, completion) };
    if taken < 0 {
        // SAFETY: librbd has refused the operation and calls nothing, so that this is ours again.
        unsafe { Box::from_raw(token) }.refuse(taken);
    }
}

/// Where the memory of a request lies: what is written, read into, or compared and then written.
fn pieces(request: &mut Request) -> Vec<iovec> {
    let piece = |bytes: &[u8]| iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    match request {
        Request::Read { into, .. } => into
            .pieces_mut()
            .map(|bytes| iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: bytes.len(),
            })
            .collect(),
        Request::Write { data, .. } => data.segments().map(piece).collect(),
        Request::CompareAndWrite { expected, data, .. } => [expected, data]
            .into_iter()
            .flat_map(|it| it.segments().map(piece))
            .collect(),
        Request::Discard { .. } | Request::WriteZeroes { .. } | Request::Flush => Vec::new(),
    }
}

/// An operation as librbd's functions take it: numbers and pointers, which outlive the call by
/// [`InFlight`]'s contract.
#[derive(Clone, Copy)]
enum Call {
    Read(u64, *const iovec, c_int),
    Write(u64, *const iovec, c_int),
    Discard(u64, u64),
    WriteZeroes(u64, usize, c_int),
    CompareAndWrite(u64, iovec, iovec, *mut u64),
    Flush,
}

impl Call {
    fn of<A>(one: &mut InFlight<A>) -> Self {
        let (vectors, count) = (one.pieces.as_ptr(), one.pieces.len());
        let count = c_int::try_from(count).expect("memory has fewer pieces than that");
        match &one.request {
            Request::Read { offset, .. } => Self::Read(*offset, vectors, count),
            Request::Write { offset, .. } => Self::Write(*offset, vectors, count),
            Request::Discard { offset, len } => Self::Discard(*offset, *len),
            Request::WriteZeroes {
                offset,
                len,
                keep_allocated,
            } => Self::WriteZeroes(*offset, *len, if *keep_allocated { THICK } else { 0 }),
            Request::CompareAndWrite { offset, .. } => {
                let [expected, data] = one.pieces[..] else {
                    panic!("both payloads are contiguous");
                };
                Self::CompareAndWrite(*offset, expected, data, &raw mut one.mismatch_at)
            }
            Request::Flush => Self::Flush,
        }
    }

    /// # Safety
    /// The image is open, the completion is for this alone, and the memory that is named stays, and
    /// for a read belongs to nobody else, until the completion's callback is called.
    unsafe fn hand_over(self, api: &Api, image: RawImage, completion: Completion) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Read(at, pieces, count) => {
                    i64::from((api.rbd_aio_readv)(image, pieces, count, at, completion))
                }
                Self::Write(at, pieces, count) => {
                    i64::from((api.rbd_aio_writev)(image, pieces, count, at, completion))
                }
                Self::Discard(at, len) => {
                    i64::from((api.rbd_aio_discard)(image, at, len, completion))
                }
                Self::WriteZeroes(at, len, flags) => {
                    let write_zeroes = api.rbd_aio_write_zeroes;
                    i64::from(write_zeroes(image, at, len, completion, flags, 0))
                }
                Self::CompareAndWrite(at, expected, data, mismatch_at) => {
                    let len = expected.iov_len;
                    let [expected, data] =
                        [expected, data].map(|it| it.iov_base.cast_const().cast());
                    let compare_and_write = api.rbd_aio_compare_and_write;
                    compare_and_write(image, at, len, expected, data, completion, mismatch_at, 0)
                        as i64
                }
                Self::Flush => i64::from((api.rbd_aio_flush)(image, completion)),
            }
        }
    }
}
