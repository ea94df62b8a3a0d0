//! A READ and a WRITE of 4 KiB through the multipath layer over one session in memory, with others
//! in flight: from the issuer's submit to its answer. The session numbers them and makes everyone
//! wait once, as one with a target does.

use env::sim::{World, WorldConfig};
use env::{Answer, CoreHandle, LocalFuture};
use multipath::Multipath;
use multipath::{Begun, Config, ConnectError, Ended, PathSpec, Port, Session};
use paths::health::{AccessState, Wanted};
use paths::policy::Settings;
use paths::stale::Nexus;
use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange, Now};
use volume::{Done, Durability, Io, Lane, Op, Origin, Volume};

const BLOCKS: u64 = 1 << 20;
/// Operations in flight beside the one that is counted.
const OTHERS: u64 = 31;

struct Memory {
    core: CoreHandle,
    data: Buf,
    /// What was asked, and what it will be answered.
    under_way: RefCell<Vec<(bool, Option<Buf>)>>,
}

impl Session for Memory {
    /// What waited for the login.
    fn submit(&self, _: Io) -> Answer<Ended> {
        Answer::ready(Ended::Done(Ok(Done::Data(self.data.clone()))))
    }

    fn begin(&self, io: &Io) -> Begun {
        if io
            .op()
            .range()
            .is_some_and(|range| range.start().0 < OTHERS * 8)
        {
            return Begun::Waiting(Box::pin(pending()));
        }
        let data = (!io.op().mutates()).then(|| self.data.clone());
        let mut under_way = self.under_way.borrow_mut();
        under_way.push((false, data));
        Begun::Numbered(under_way.len() - 1)
    }

    fn poll_numbered(&self, number: usize, cx: &mut Context<'_>) -> Poll<Ended> {
        let mut under_way = self.under_way.borrow_mut();
        let (inspected, data) = &mut under_way[number];
        if !std::mem::replace(inspected, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let done = data.take().map_or(Done::Nothing, Done::Data);
        // One at a time.
        under_way.pop();
        Poll::Ready(Ended::Done(Ok(done)))
    }

    fn ping(&self) -> LocalFuture<bool> {
        Box::pin(async { true })
    }

    fn fence(&self, _: Nexus) -> LocalFuture<bool> {
        Box::pin(async { false })
    }

    fn access(&self) -> LocalFuture<Option<AccessState>> {
        Box::pin(async { Some(AccessState::ActiveOptimized) })
    }

    fn received_at(&self) -> Now {
        self.core.now()
    }

    fn ended(&self) -> LocalFuture<()> {
        Box::pin(pending())
    }

    fn close(&self) {}
}

struct TestPort(CoreHandle);

impl Port for TestPort {
    fn connect(&self, _: Nexus) -> LocalFuture<Result<Rc<dyn Session>, ConnectError>> {
        let session: Rc<dyn Session> = Rc::new(Memory {
            core: Rc::clone(&self.0),
            data: Buf::zeroes(4096),
            under_way: RefCell::default(),
        });
        Box::pin(async move { Ok(session) })
    }
}

fn io(write: Option<&Buf>, at: u64) -> Io {
    let range = LbaRange::new(Lba(at * 8 % BLOCKS), BlockCount(8)).expect("a small address");
    let op = match write {
        Some(data) => Op::Write {
            range,
            data: data.clone(),
            durability: Durability::Cached,
        },
        None => Op::Read { range, into: None },
    };
    Io::new(op, Origin::default())
}

async fn operations(core: CoreHandle, write: Option<Buf>, count: u64) {
    const SPEED: u64 = 1_250_000_000;
    let memory = backends::MemoryVolume::new(
        BlockSize::B512,
        BlockCount(BLOCKS),
        3,
        logical_unit::LogicalUnit::fences_for(),
    );
    let path = PathSpec {
        port: Rc::new(TestPort(Rc::clone(&core))),
        settings: Settings::alone(SPEED),
        wanted: Wanted::Active,
    };
    let layer = Multipath::new(&core, memory.shape(), Config::default(), vec![path]);
    layer
        .submit(io(None, OTHERS))
        .await
        .expect("the session answers");
    let data = Buf::zeroes(4096);
    let mut others: Vec<_> = (0..OTHERS)
        .map(|at| layer.submit(io(Some(&data), at)))
        .collect();
    poll_fn(|cx| {
        let begun = others
            .iter_mut()
            .all(|it| Pin::new(it).poll(cx).is_pending());
        assert!(begun, "they never end");
        Poll::Ready(())
    })
    .await;
    let places = BLOCKS / 8 - OTHERS;
    for number in 0..count {
        let at = OTHERS + number.wrapping_mul(2_654_435_761) % places;
        let mut answer = layer.submit(io(write.as_ref(), at));
        let mut context = Context::from_waker(Waker::noop());
        let result = loop {
            if let Poll::Ready(result) = Pin::new(&mut answer).poll(&mut context) {
                break result;
            }
        };
        black_box(result).expect("the session answers");
    }
}

fn run(write: Option<Buf>, count: u64) {
    let world = World::new(1, WorldConfig::default());
    let node = world.node("node");
    let core = node.core(0);
    let done = world.block_on(
        &node,
        Duration::from_secs(1),
        operations(core, write, count),
    );
    done.expect("it ends");
}

pub(super) fn read(count: u64) {
    run(None, count);
}

pub(super) fn write(count: u64) {
    run(Some(Buf::copy_of(&[0xA5; 4096])), count);
}
