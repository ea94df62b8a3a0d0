//! Accepting connections, and stopping.

use crate::connection::Connection;
use crate::execute::Unit;
use crate::export::Export;
use crate::stop::{Counters, Stop};
use env::{CoreHandle, CoreId, DetachedStream, Listener};
use std::future::Future as _;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use volume::{Io, Op, Origin, Volume};

/// Connections at a time; further ones wait in the system's queue.
pub const CONNECTIONS_MAX: u64 = 16;

/// How often a stop checks whether all has ended.
const STOP_PROBE_INTERVAL: Duration = Duration::from_millis(5);

/// How long to rest where no connection can be accepted.
const ACCEPT_REST: Duration = Duration::from_millis(100);

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

    /// The stop, as a further task on this core sees it.
    fn sight(&self, core: &CoreHandle) -> Stop {
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        Stop::new(&self.stopping, number, core)
    }

    /// What has happened since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Accepts until the server stops; connections go to the cores in turn, this one first.
    pub async fn run(&self, core: CoreHandle, listener: Rc<dyn Listener>) {
        let stop = self.sight(&core);
        let mut next = core.id().0;
        loop {
            let accepted = poll_fn(|cx| {
                if stop.poll(cx) {
                    return Poll::Ready(None);
                }
                if self.counters.connections.load(Ordering::Acquire) >= CONNECTIONS_MAX {
                    // Checked again when one ends, or after the rest below.
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
        let stop = self.sight(&core);
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
            Stop::wake_all(core);
            Box::pin(async {})
        })
        .await;
        let end = core.now().after(patience);
        while self.counters.connections.load(Ordering::Acquire) > 0 {
            if core.now() >= end {
                return false;
            }
            core.sleep_until(core.now().after(STOP_PROBE_INTERVAL))
                .await;
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
