//! Requests through eight layers that count: a hop is an eighth of it, and the leaf.

use proof::hops::{Counting, Once};
use std::cell::Cell;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Io, IoFuture, Lane, Op, Origin};

/// Layers over the leaf.
const HOPS: u32 = 8;

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
            Once::default().await;
            Ok(Done::Data(data))
        })
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
