//! Requests through eight layers that count: a hop is an eighth of it, and the leaf.

use std::cell::Cell;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Io, IoFuture, Lane, Op, Origin};

/// Layers over the leaf.
const HOPS: u32 = 8;

/// Ready at the second look.
struct Once(bool);

impl Future for Once {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

struct Leaf {
    data: Buf,
    waits: bool,
}

impl Lane for Leaf {
    fn submit(&self, io: Io) -> IoFuture {
        black_box(&io);
        let data = self.data.clone();
        if !self.waits {
            return IoFuture::ready(Ok(Done::Data(data)));
        }
        IoFuture::wait(async move {
            Once(false).await;
            Ok(Done::Data(data))
        })
    }
}

/// What a layer does that looks at results.
struct Counting {
    next: Rc<dyn Lane>,
    done: Rc<Cell<u64>>,
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

fn requests(waits: bool, count: u64) {
    let done = Rc::new(Cell::new(0));
    let mut lane: Rc<dyn Lane> = Rc::new(Leaf {
        data: Buf::zeroes(4096),
        waits,
    });
    for _ in 0..HOPS {
        lane = Rc::new(Counting {
            next: lane,
            done: Rc::clone(&done),
        });
    }
    for at in 0..count {
        let range = LbaRange::new(Lba(at & 0xffff), BlockCount(8)).expect("a small address");
        let io = Io::new(Op::Read { range, into: None }, Origin::default());
        let mut future = pin!(lane.submit(io));
        let mut context = Context::from_waker(Waker::noop());
        while future.as_mut().poll(&mut context).is_pending() {}
    }
    assert_eq!(done.get(), count * u64::from(HOPS));
}

pub(super) fn ready(count: u64) {
    requests(false, count);
}

pub(super) fn waits(count: u64) {
    requests(true, count);
}
