//! A new connection: whether there is a place for it, and on which core.

use crate::login_places::LoginPermit;
use crate::placement::Placement;
use crate::shared::Shared;
use env::{CoreHandle, DetachedStream};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Gives a connection to the core that works least, unless there are as many sessions as may be.
pub(crate) fn place(
    core: &CoreHandle,
    shared: &Arc<Shared>,
    stream: DetachedStream,
    portal_group_tag: u16,
) {
    let Some(permit) = permit(core, shared, stream.peer.ip()) else {
        // Nothing that comes before authentication may exhaust the daemon: the socket is closed at
        // once.
        shared
            .refusals()
            .turn_away(core.wall_clock(), stream.peer, stream.local);
        return;
    };
    let place = Placement::choose(shared, shared.export().pinned(portal_group_tag));
    let to = place.core();
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

fn permit(core: &CoreHandle, shared: &Shared, address: IpAddr) -> Option<LoginPermit> {
    let (export, connections) = (shared.export(), shared.loads().connections());
    let places = shared.login_places();
    LoginPermit::take(places, &export.settings, connections, core.now(), address)
}
