//! Which core a new connection goes to: the one that works least, by what was measured.

use crate::load;
use crate::server::Shared;
use env::{CoreHandle, CoreId, DetachedStream, call_all};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

/// Gives a connection to the core that works least, unless too many have not logged in yet.
pub(crate) fn place(
    core: &CoreHandle,
    shared: &Arc<Shared>,
    stream: DetachedStream,
    portal_group_tag: u16,
) {
    let Some(permit) = shared.permit_login() else {
        // Nothing that comes before authentication may exhaust the daemon: the socket is closed at once.
        shared.refusals().too_many_logins(stream.peer);
        return;
    };
    let place = Place::choose(shared, &[]);
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

/// Measures all cores for as long as there are connections, for ever. Runs on core 0.
pub(crate) async fn measure(core: CoreHandle, shared: Arc<Shared>) {
    loop {
        poll_fn(|cx| shared.loads().poll_any(cx)).await;
        core.sleep_until(core.now().after(load::TICK)).await;
        let told = call_all(&core, |core| {
            let told = load::look(core);
            Box::pin(async move { told })
        })
        .await;
        shared.loads().measured(&told);
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
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.loads().leave(self.core);
    }
}

/// One connection that has not logged in yet.
pub(crate) struct LoginPermit(Arc<Shared>);

impl LoginPermit {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

impl Drop for LoginPermit {
    fn drop(&mut self) {
        self.0.give_login_back();
    }
}
