//! How commands of any core reach the connections of forwarding on the core of control.

use crate::forwarding::{Forwarding, Forwardings, Home, Ticket};
use crate::lun::Lun;
use crate::registry::Registry;
use env::{CoreHandle, CoreId, LocalFuture};
use peer::{Forward, ForwardedAnswer, ForwardedCommand, ForwardedEnd, ForwardedReset, Guest};
use replica::NodeSlot;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use units::Buf;
use write_back::VolumeId;

/// The links of the core of control, and the node that owns a LUN, where that is another one.
fn owner(core: &CoreHandle, id: VolumeId) -> Option<(Rc<Forwarding>, NodeSlot)> {
    let forwarding = core.locals().get::<Home>().get()?;
    let lun: Rc<Lun> = core.locals().get::<Registry>().get(id)?;
    let owner = lun.copy.borrow().owner_elsewhere()?;
    Some((forwarding, owner))
}

fn on_core(core: &CoreHandle, home: CoreId, work: impl FnOnce(&CoreHandle) + Send + 'static) {
    if core.id() == home {
        work(core);
    } else {
        core.post(home, Box::new(work));
    }
}

/// A command that was sent from any core.
pub struct Underway {
    /// What it ends with.
    pub ended: oneshot::Receiver<Forwardings>,
    core: CoreHandle,
    home: CoreId,
    ticket: Arc<Mutex<Option<Ticket>>>,
}

impl Underway {
    /// How it is aborted.
    #[must_use]
    pub fn abort(&self) -> Box<dyn FnOnce()> {
        let (core, home, ticket) = (Rc::clone(&self.core), self.home, Arc::clone(&self.ticket));
        Box::new(move || {
            on_core(&core, home, move |core| {
                let ticket = *ticket.lock().unwrap_or_else(PoisonError::into_inner);
                let forwarding = core.locals().get::<Home>().get();
                if let (Some(forwarding), Some(ticket)) = (forwarding, ticket) {
                    forwarding.abort(ticket);
                }
            });
        })
    }
}

/// Sends a command to the owner of its LUN; `home` is the core of the cluster.
#[must_use]
pub fn forward(core: &CoreHandle, home: CoreId, command: ForwardedCommand, data: Buf) -> Underway {
    let (done, ended) = oneshot::channel();
    let ticket: Arc<Mutex<Option<Ticket>>> = Arc::default();
    let place = Arc::clone(&ticket);
    on_core(core, home, move |core| {
        let Some((forwarding, to)) = owner(core, command.guest.volume) else {
            let _gone = done.send(Forwardings::NotBegun);
            return;
        };
        match forwarding.command(to, (command, data), done) {
            Ok(ticket) => {
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticket);
            }
            Err(done) => {
                let _gone = done.send(Forwardings::NotBegun);
            }
        }
    });
    Underway {
        ended,
        core: Rc::clone(core),
        home,
        ticket,
    }
}

/// Has the owner do a function for all of a unit; `false`: nobody knows whether it has.
pub fn forward_reset(
    core: &CoreHandle,
    home: CoreId,
    guest: Guest,
    what: ForwardedReset,
) -> LocalFuture<bool> {
    let (done, ended) = oneshot::channel();
    on_core(core, home, move |core| {
        let Some((forwarding, to)) = owner(core, guest.volume) else {
            return;
        };
        let what = Forward::Reset(Box::new(guest), what);
        drop(forwarding.ask(to, what, done));
    });
    Box::pin(async move {
        let done = ForwardedAnswer::Silent;
        matches!(ended.await, Ok(Forwardings::Answered(answer, _)) if answer == done)
    })
}

/// Has the owner end a nexus: ready when it has said that it does no more of it, or is the owner no
/// more.
pub fn forward_close(
    core: &CoreHandle,
    home: CoreId,
    guest: Guest,
    end: ForwardedEnd,
) -> LocalFuture<()> {
    let (done, ended) = oneshot::channel();
    on_core(core, home, move |core| {
        if let Some((forwarding, to)) = owner(core, guest.volume) {
            forwarding.close(to, (guest, end), done);
        } else if let Some(forwarding) = core.locals().get::<Home>().get() {
            // Where this node owns the LUN by now, the other one gets nothing committed any more.
            forwarding.close_everywhere(&guest, end);
        }
    });
    Box::pin(async move { drop(ended.await) })
}
