//! Accepting connections, and stopping.

use crate::connection::Connection;
use crate::execute::Unit;
use crate::export::Export;
use env::{CoreHandle, CoreId, DetachedStream, Listener};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future as _;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use volume::{Io, Op, Origin, Volume};

/// Connections at a time; further ones wait in the system's queue.
pub const CONNECTIONS_MAX: u64 = 16;

/// How often a stop looks whether all has ended.
const STOP_LOOK: Duration = Duration::from_millis(5);

/// How long to rest where no connection can be accepted.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// What has happened since the start.
#[derive(Default, Debug)]
pub struct Counters {
    /// Connections now.
    pub connections: AtomicU64,
    /// Requests since the start.
    pub requests: AtomicU64,
    /// Connections that broke the protocol.
    pub violations: AtomicU64,
}

/// Wakers of what waits on this core, so that it notices a stop.
#[derive(Default)]
struct Sleepers(RefCell<BTreeMap<u64, Waker>>);

/// Whether the server stops, as one task sees it.
pub(crate) struct Stop {
    stopping: Arc<AtomicBool>,
    sleepers: Rc<Sleepers>,
    number: u64,
}

impl Stop {
    fn new(server: &Server, core: &CoreHandle) -> Self {
        Self {
            stopping: Arc::clone(&server.stopping),
            sleepers: core.locals().get::<Sleepers>(),
            number: server.tasks.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// It stops; else the task is woken when it does.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> bool {
        if self.stopping.load(Ordering::Acquire) {
            return true;
        }
        let mut sleepers = self.sleepers.0.borrow_mut();
        match sleepers.get_mut(&self.number) {
            Some(known) => known.clone_from(cx.waker()),
            None => drop(sleepers.insert(self.number, cx.waker().clone())),
        }
        false
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let _mine = self.sleepers.0.borrow_mut().remove(&self.number);
    }
}

/// One export, served.
#[derive(Clone)]
pub struct Server {
    export: Export,
    volume: Arc<dyn Volume>,
    stopping: Arc<AtomicBool>,
    counters: Arc<Counters>,
    tasks: Arc<AtomicU64>,
}

impl Server {
    /// Serves `volume` as `export`.
    #[must_use]
    pub fn new(export: Export, volume: Arc<dyn Volume>) -> Self {
        Self {
            export,
            volume,
            stopping: Arc::default(),
            counters: Arc::default(),
            tasks: Arc::default(),
        }
    }

    /// What has happened since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Accepts until the server stops; connections go to the cores in turn, this one first.
    pub async fn run(&self, core: CoreHandle, listener: Rc<dyn Listener>) {
        let stop = Stop::new(self, &core);
        let mut next = core.id().0;
        loop {
            let accepted = poll_fn(|cx| {
                if stop.poll(cx) {
                    return Poll::Ready(None);
                }
                if self.counters.connections.load(Ordering::Acquire) >= CONNECTIONS_MAX {
                    // Looked at again when one ends, or after the rest below.
                    return Poll::Ready(Some(Err(std::io::ErrorKind::WouldBlock.into())));
                }
                listener.poll_accept(cx).map(Some)
            });
            match accepted.await {
                None => return,
                Some(Ok(stream)) => {
                    self.hand_over(&core, CoreId(next), stream);
                    next = (next + 1) % core.core_count();
                }
                Some(Err(_)) => core.sleep_until(core.now().after(ACCEPT_REST)).await,
            }
        }
    }

    fn hand_over(&self, core: &CoreHandle, to: CoreId, stream: DetachedStream) {
        self.counters.connections.fetch_add(1, Ordering::AcqRel);
        let server = self.clone();
        let job = move |core: &CoreHandle| {
            let there = Rc::clone(core);
            core.spawn(Box::pin(async move {
                server.serve(there, stream).await;
                server.counters.connections.fetch_sub(1, Ordering::AcqRel);
            }));
        };
        if to == core.id() {
            job(core);
        } else {
            core.post(to, Box::new(job));
        }
    }

    async fn serve(&self, core: CoreHandle, stream: DetachedStream) {
        let Ok(stream) = core.net().adopt(stream) else {
            return;
        };
        let Ok(lane) = Arc::clone(&self.volume).open(&core).await else {
            return;
        };
        let stop = Stop::new(self, &core);
        let export = Rc::new(self.export.clone());
        let unit = Unit { core, lane, export };
        let connection = Connection::new(unit, stream, stop, Arc::clone(&self.counters));
        if connection.run().await.is_err() {
            self.counters.violations.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes nothing more, finishes what was taken, and makes it stable. Says whether all of it
    /// ended within `patience`.
    pub async fn stop(&self, core: &CoreHandle, patience: Duration) -> bool {
        self.stopping.store(true, Ordering::Release);
        let _all = env::call_all(core, |core| {
            let sleepers = core.locals().get::<Sleepers>().0.take();
            sleepers.into_values().for_each(Waker::wake);
            Box::pin(async {})
        })
        .await;
        let end = core.now().after(patience);
        while self.counters.connections.load(Ordering::Acquire) > 0 {
            if core.now() >= end {
                return false;
            }
            core.sleep_until(core.now().after(STOP_LOOK)).await;
        }
        let Ok(lane) = Arc::clone(&self.volume).open(core).await else {
            return false;
        };
        let flushed = env::detach(core, async move {
            lane.submit(Io::new(Op::Flush, Origin::default()))
                .await
                .is_ok()
        });
        let mut flushed = std::pin::pin!(flushed);
        let mut timer = core.sleep_until(end);
        poll_fn(|cx| match flushed.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| false),
        })
        .await
    }
}
