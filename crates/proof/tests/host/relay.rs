//! A wire between host and target that a test cuts, silences and mends: a TCP relay for each path.

use crate::bench::runtime;
use env::real::{Poster, Runtime};
use env::{CoreHandle, CoreId, Listener, Stream};
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

/// What a wire does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Wire {
    /// It carries.
    Good,
    /// It swallows nothing and carries nothing: both ends see silence. What was sent arrives when
    /// it is good again.
    Silent,
    /// Connections end, and new ones end at once.
    Cut,
    /// Everything takes 100 ms more.
    Slow,
}

/// A relay from a portal of its own to the target's.
pub(crate) struct Relay {
    pub(crate) portal: SocketAddr,
    wire: Arc<AtomicU8>,
    forth: Arc<AtomicU64>,
    target: Arc<Mutex<SocketAddr>>,
    poster: Poster,
    _runtime: Runtime,
}

/// What a slow wire adds.
const DELAY: Duration = Duration::from_millis(100);
const PROBE_INTERVAL: Duration = Duration::from_millis(2);

impl Relay {
    /// A good wire to `target`, entered at `127.0.0.LAST`.
    pub(crate) fn new(last: u8, target: SocketAddr) -> Self {
        let runtime = runtime(1);
        let wire = Arc::new(AtomicU8::new(0));
        let forth = Arc::new(AtomicU64::new(0));
        let target = Arc::new(Mutex::new(target));
        let shared = Shared {
            target: Arc::clone(&target),
            wire: Arc::clone(&wire),
            forth: Arc::clone(&forth),
        };
        let (reported, portal) = mpsc::channel();
        let poster = runtime.poster();
        let at = SocketAddr::from(([127, 0, 0, last], 0));
        poster.post(
            CoreId(0),
            Box::new(move |core| {
                let listener = core.net().listen(at).expect("a free port");
                reported.send(listener.local()).expect("the test waits");
                core.spawn(Box::pin(accept(Rc::clone(core), listener, shared)));
            }),
        );
        Self {
            portal: portal.recv().expect("the relay listens"),
            wire,
            forth,
            target,
            poster,
            _runtime: runtime,
        }
    }

    /// Bytes that have come from the host.
    pub(crate) fn forth(&self) -> u64 {
        self.forth.load(Ordering::SeqCst)
    }

    /// Leads connections that begin from now on to another portal.
    pub(crate) fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().expect("nobody panicked") = target;
    }

    pub(crate) fn set(&self, wire: Wire) {
        self.wire.store(wire as u8, Ordering::SeqCst);
        // What runs on its core sees it at once.
        self.poster.post(CoreId(0), Box::new(|_| {}));
    }
}

/// What all connections of a relay share.
#[derive(Clone)]
struct Shared {
    target: Arc<Mutex<SocketAddr>>,
    wire: Arc<AtomicU8>,
    forth: Arc<AtomicU64>,
}

async fn accept(core: CoreHandle, listener: Rc<dyn Listener>, shared: Shared) {
    loop {
        let Ok(stream) = poll_fn(|cx| listener.poll_accept(cx)).await else {
            continue;
        };
        let stream = core.net().adopt(stream).expect("a stream");
        let there = connection(Rc::clone(&core), stream, shared.clone());
        core.spawn(Box::pin(there));
    }
}

async fn connection(core: CoreHandle, host: Rc<dyn Stream>, shared: Shared) {
    let to = *shared.target.lock().expect("nobody panicked");
    if shared.wire.load(Ordering::SeqCst) == Wire::Cut as u8 {
        return host.abort();
    }
    let Ok(target) = core.net().connect(to, None).await else {
        return host.abort();
    };
    let back = copy(
        Rc::clone(&core),
        Rc::clone(&target),
        Rc::clone(&host),
        (Arc::clone(&shared.wire), Arc::default()),
    );
    core.spawn(Box::pin(back));
    copy(core, host, target, (shared.wire, shared.forth)).await;
}

/// One direction, for as long as the wire carries; its bytes are counted.
async fn copy(
    core: CoreHandle,
    from: Rc<dyn Stream>,
    to: Rc<dyn Stream>,
    (wire, count): (Arc<AtomicU8>, Arc<AtomicU64>),
) {
    let mut buffer = vec![0; 64 << 10];
    while let Some(got) = receive(&core, &*from, &mut buffer, &wire).await {
        count.fetch_add(got as u64, Ordering::SeqCst);
        if wire.load(Ordering::SeqCst) == Wire::Slow as u8 {
            core.sleep_until(core.now().after(DELAY)).await;
        }
        let mut sent = 0;
        while sent < got {
            let piece = [IoSlice::new(&buffer[sent..got])];
            match poll_fn(|cx| to.poll_send(cx, &piece)).await {
                Ok(bytes) => sent += bytes,
                Err(_) => return from.shutdown(),
            }
        }
    }
    for end in [from, to] {
        end.abort();
        end.shutdown();
    }
}

/// The next bytes while the wire is good; none at the end, or when it is cut.
async fn receive(
    core: &CoreHandle,
    from: &dyn Stream,
    buffer: &mut [u8],
    wire: &AtomicU8,
) -> Option<usize> {
    loop {
        let mut inspect = core.sleep_until(core.now().after(PROBE_INTERVAL));
        let polled = poll_fn(|cx| {
            let now = wire.load(Ordering::SeqCst);
            if now == Wire::Cut as u8 {
                return Poll::Ready(Some(0));
            }
            let good = now == Wire::Good as u8 || now == Wire::Slow as u8;
            if let (true, Poll::Ready(got)) = (good, poll_if(good, || from.poll_recv(cx, buffer))) {
                return Poll::Ready(Some(got.unwrap_or(0)));
            }
            // The wire's state may change without a byte.
            inspect.as_mut().poll(cx).map(|()| None)
        });
        if let Some(got) = polled.await {
            return (got > 0).then_some(got);
        }
    }
}

fn poll_if<T>(yes: bool, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    if yes { poll() } else { Poll::Pending }
}
