//! The cost of a hop through a [`Lane`], beside the same hop through generics.
//!
//! A leaf that answers at once shows the common case; a leaf that makes its caller wait once shows
//! what a boxed future costs. The least of several repetitions counts, because machines are noisy.

use super::clock;
use crate::hops::{Counting, Once};
use std::cell::Cell;
use std::fmt::Write as _;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Io, IoFuture, IoResult, Lane, Op, Origin};

/// Layers over the leaf.
const HOPS: u32 = 4;
/// Requests of a repetition.
const REQUESTS: u64 = 100_000;
const REPETITIONS: usize = 31;

/// Above this many static hops, a dynamic hop that waits has become too dear.
pub const RATIO_MAX: f64 = 4.0;

fn answer(io: &Io, data: &Buf) -> IoResult {
    Ok(match io.op() {
        Op::Read { .. } => Done::Data(data.clone()),
        Op::Write { .. }
        | Op::WriteZeroes { .. }
        | Op::Discard { .. }
        | Op::CompareAndWrite { .. }
        | Op::Extents { .. }
        | Op::Flush => Done::Nothing,
    })
}

struct Leaf {
    data: Buf,
    waits: bool,
}

impl Lane for Leaf {
    fn submit(&self, io: Io) -> IoFuture {
        if !self.waits {
            return IoFuture::ready(answer(&io, &self.data));
        }
        let data = self.data.clone();
        IoFuture::wait(async move {
            Once::default().await;
            answer(&io, &data)
        })
    }
}

/// Moves addresses: a layer with work before the request only.
struct Offset(Rc<dyn Lane>);

impl Lane for Offset {
    fn submit(&self, mut io: Io) -> IoFuture {
        if let Some(range) = io.op_mut().range_mut() {
            let start = Lba(range.start().0 + 8);
            *range = LbaRange::new(start, range.len()).expect("far from the end of addresses");
        }
        self.0.submit(io)
    }
}

trait StaticLane {
    async fn submit(&self, io: Io) -> IoResult;
}

impl StaticLane for Leaf {
    async fn submit(&self, io: Io) -> IoResult {
        if self.waits {
            Once::default().await;
        }
        answer(&io, &self.data)
    }
}

struct StaticCounting<N> {
    next: N,
    done: Rc<Cell<u64>>,
}

/// Layers of real size are not inlined into each other; without this the compiler would fold four
/// counters into one addition and the comparison would be with nothing.
struct OutOfLine<F>(F);

impl<F: Future> Future for OutOfLine<Pin<&mut F>> {
    type Output = F::Output;
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<N: StaticLane> StaticLane for StaticCounting<N> {
    async fn submit(&self, io: Io) -> IoResult {
        let result = OutOfLine(pin!(self.next.submit(io))).await;
        self.done.set(self.done.get() + 1);
        result
    }
}

fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
    }
}

fn read(at: u64) -> Io {
    let range = LbaRange::new(Lba(at & 0xffff), BlockCount(8)).expect("a small address");
    Io::new(Op::Read { range, into: None }, Origin::default())
}

/// Nanoseconds that a request takes, over one repetition.
fn time(mut one: impl FnMut(u64)) -> f64 {
    let start = clock();
    (0..REQUESTS).for_each(&mut one);
    let requests = u32::try_from(REQUESTS).expect("a small number");
    start.elapsed().as_secs_f64() * 1e9 / f64::from(requests)
}

fn dynamic(lane: &Rc<dyn Lane>) -> f64 {
    // As a front does it: poll first, wait only for what is left.
    time(|at| {
        let result = match lane.submit(read(at)).now() {
            Ok(result) => result,
            Err(waiting) => finish(waiting),
        };
        black_box(result).expect("the leaf always answers");
    })
}

fn generic(lane: &impl StaticLane) -> f64 {
    time(|at| drop(black_box(finish(lane.submit(read(at))))))
}

fn leaf(waits: bool) -> Leaf {
    Leaf {
        data: Buf::zeroes(4096),
        waits,
    }
}

/// The least times of: leaf, counting layers, address layers, leaf through generics, counting
/// through generics. They take turns, so that what else runs on the machine falls on all of them.
fn least_times(waits: bool) -> [f64; 5] {
    let done = Rc::new(Cell::new(0));
    let bottom: Rc<dyn Lane> = Rc::new(leaf(waits));
    let stack = |layer: &dyn Fn(Rc<dyn Lane>) -> Rc<dyn Lane>| {
        (0..HOPS).fold(Rc::clone(&bottom), |lane, _| layer(lane))
    };
    let counting = stack(&|next| {
        let done = Rc::clone(&done);
        Rc::new(Counting { next, done })
    });
    let offset = stack(&|next| Rc::new(Offset(next)));
    let alone = leaf(waits);
    let generics = four(&done, leaf(waits));
    let mut least = [f64::MAX; 5];
    for _ in 0..REPETITIONS {
        let times = [
            dynamic(&bottom),
            dynamic(&counting),
            dynamic(&offset),
            generic(&alone),
            generic(&generics),
        ];
        for (least, time) in least.iter_mut().zip(times) {
            *least = least.min(time);
        }
    }
    least
}

/// The table, and whether the gate holds.
#[must_use]
pub fn measure() -> (String, bool) {
    let mut out =
        format!("waist: nanoseconds a hop (least of {REPETITIONS}), leaf and {HOPS} layers\n");
    let mut ratio = 0.0;
    for (waits, name) in [
        (false, "leaf answers at once"),
        (true, "leaf makes wait once"),
    ] {
        let [alone, counting, offset, static_alone, generics] = least_times(waits);
        let hop = |stack: f64, leaf: f64| ((stack - leaf) / f64::from(HOPS)).max(0.01);
        let (dynamic, offset) = (hop(counting, alone), hop(offset, alone));
        let generics = hop(generics, static_alone);
        ratio = dynamic / generics;
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "  {name}: leaf {alone:5.1}  dyn {dynamic:5.1}  dyn, addresses only {offset:5.1}  \
             generics {generics:5.1}  ratio {ratio:4.1}"
        );
    }
    let pass = ratio <= RATIO_MAX;
    let verdict = if pass { "PASS" } else { "FAIL" };
    let _ = writeln!(
        out,
        "  {verdict}: a dynamic hop that waits costs {ratio:.1} static ones; {RATIO_MAX} are allowed"
    );
    (out, pass)
}

fn four(done: &Rc<Cell<u64>>, leaf: impl StaticLane) -> impl StaticLane {
    fn over<N: StaticLane>(done: &Rc<Cell<u64>>, next: N) -> StaticCounting<N> {
        StaticCounting {
            next,
            done: Rc::clone(done),
        }
    }
    over(done, over(done, over(done, over(done, leaf))))
}
