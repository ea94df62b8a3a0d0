//! Which core a new connection goes to.

use crate::server::Shared;
use env::{CoreHandle, CoreId, DetachedStream};
use std::rc::Rc;
use std::sync::Arc;

/// Gives a connection to the core that has the fewest, unless too many have not logged in yet.
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
    let to = shared.least_loaded(core.core_count());
    let place = shared.take_place(to);
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

/// A count on a core that is given back when dropped.
pub(crate) struct Place {
    shared: Arc<Shared>,
    core: CoreId,
}

impl Place {
    pub(crate) fn new(shared: Arc<Shared>, core: CoreId) -> Self {
        Self { shared, core }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.leave_place(self.core);
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
