//! Which core a new connection goes to: the one that works least, by what was measured.

use crate::balance::{Balancer, Step};
use crate::load;
use crate::login_places::LoginPermit;
use crate::server::Shared;
use crate::session;
use env::{CoreHandle, CoreId, DetachedStream, call_all};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives a connection to the core that works least, unless there are as many sessions as may be.
pub(crate) fn place(
    core: &CoreHandle,
    shared: &Arc<Shared>,
    stream: DetachedStream,
    portal_group_tag: u16,
) {
    let Some(permit) = LoginPermit::take(shared, core.now(), stream.peer.ip()) else {
        // Nothing that comes before authentication may exhaust the daemon: the socket is closed at
        // once.
        shared
            .refusals()
            .turn_away(core.wall_clock(), stream.peer, stream.local);
        return;
    };
    let place = Place::choose(shared, shared.export().pinned(portal_group_tag));
    let to = place.core;
    let shared = Arc::clone(shared);
    let start = move |core: &CoreHandle| {
        let running = crate::connection::serve(
            Rc::clone(core),
            shared,
            stream,
            portal_group_tag,
            permit,
            place,
        );
        core.spawn(Box::pin(running));
    };
    if to == core.id() {
        start(core);
    } else {
        core.post(to, Box::new(start));
    }
}

/// Measures all cores for as long as there are connections, for ever, and has sessions moved where
/// the load stays uneven. Runs on core 0.
pub(crate) async fn measure(core: CoreHandle, shared: Arc<Shared>) {
    let mut balancer = Balancer::default();
    loop {
        poll_fn(|cx| shared.loads().poll_any(cx)).await;
        core.sleep_until(core.now().after(load::TICK)).await;
        let told = call_all(&core, |core| {
            let told = load::look(core);
            Box::pin(async move { told })
        })
        .await;
        shared.loads().measured(&told);
        if let Some(step) = balancer.look(core.now(), &told) {
            let Step { session, from, to } = step;
            tracing::debug!(
                session = session.0,
                from = from.0,
                to = to.0,
                "a session should move"
            );
            core.post(
                from,
                Box::new(move |core| {
                    // It may have ended.
                    let _asked = session::ask_to_move(core, session, to);
                }),
            );
        }
    }
}

/// How often sessions went from core to core.
#[derive(Default)]
pub(crate) struct Moves {
    done: AtomicU64,
    given_up: AtomicU64,
}

impl Moves {
    pub(crate) fn done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.done), read(&self.given_up))
    }
}

/// A count on a core that is given back when dropped.
pub(crate) struct Place {
    shared: Arc<Shared>,
    core: CoreId,
}

impl Place {
    /// On the core that works least of these; of all where there are none.
    fn choose(shared: &Arc<Shared>, among: &[CoreId]) -> Self {
        Self {
            core: shared.loads().place(among),
            shared: Arc::clone(shared),
        }
    }

    /// The connection goes to another core.
    pub(crate) fn go_to(&mut self, core: CoreId) {
        self.shared.loads().enter(core);
        self.shared.loads().leave(self.core);
        self.core = core;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.loads().leave(self.core);
    }
}
