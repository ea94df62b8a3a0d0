//! One connection, from the accepted socket to its last byte: the shell around the protocol
//! machine.
//!
//! ```text
//!            +------------------------- one task, on one core --------------------------+
//!  socket -->| receive: scratch or straight into the final buffer --> TargetConnection   |
//!            |                                     events |   ^ respond                  |
//!            |                                            v   |                          |
//!            |                             commands --> Nexus::arrive --> Task::run      |
//!  socket <--| send: one vectored send for everything that is waiting                    |
//!            +---------------------------------------------------------------------------+
//! ```
//!
//! **Contract.** Commands go to the logical unit in CmdSN order. Most end at once, in the same turn
//! that received them, and their replies leave in one vectored send. What must be waited for (the
//! backend, a hold, a task management function) is a future apart from the loop, so that nothing
//! holds up anything else. When the connection ends, its tasks are aborted and then driven to
//! their end by tasks of the core.

mod alarm;
mod alone;
mod answered;
mod awaited;
mod coalescing;
mod command;
mod commands;
mod departure;
mod driver;
mod ending;
mod full_feature;
mod function;
mod incoming;
mod log_limit;
mod login;
mod memory;
mod outgoing;
mod phase;
mod reading;
mod receive;
mod receiving;
mod sending;
mod travel;
mod units;
mod unmapped;

use crate::login_places::LoginPermit;
use crate::placement::Placement;
use crate::shared::Shared;
use driver::Driver;
use env::{CoreHandle, DetachedStream};
use std::sync::Arc;

/// Serves one connection to its end.
pub(crate) async fn serve(
    core: CoreHandle,
    shared: Arc<Shared>,
    stream: DetachedStream,
    portal_group_tag: u16,
    permit: LoginPermit,
    place: Placement,
) {
    let peer = stream.peer;
    match core.net().adopt(stream) {
        Ok(stream) => {
            let driver = Driver::new(core, shared, stream, portal_group_tag, permit);
            travel::drive(driver, place).await;
        }
        Err(error) => tracing::warn!(%peer, %error, "a connection could not be taken over"),
    }
}

#[cfg(test)]
mod test {
    use super::driver::Driver;
    use crate::export::{Export, Settings};
    use crate::login_places::LoginPermit;
    use crate::server::Server;
    use env::sim::{World, WorldConfig};
    use env::{DetachedStream, Stream, Woken};
    use std::cell::Cell;
    use std::io::{self, IoSlice};
    use std::net::SocketAddr;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// A connection on which nothing comes, and that can no longer say how it wakes.
    struct Broken(Rc<Cell<u32>>);

    fn somewhere() -> SocketAddr {
        "192.0.2.1:3260".parse().unwrap()
    }

    impl Stream for Broken {
        fn local(&self) -> SocketAddr {
            somewhere()
        }

        fn peer(&self) -> SocketAddr {
            somewhere()
        }

        fn poll_recv(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_send(&self, _: &mut Context<'_>, _: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn shutdown(&self) {}

        fn detach(&self) -> io::Result<DetachedStream> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn coalesce(&self, _: &mut Context<'_>, _: Option<(u32, Duration)>) -> io::Result<Woken> {
            self.0.set(self.0.get() + 1);
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    #[test]
    fn a_connection_that_may_never_be_woken_again_ends_at_once() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("san");
        let core = node.core(0);
        let asked = Rc::new(Cell::new(0));
        let stream = Rc::new(Broken(Rc::clone(&asked)));
        let done = world.block_on(&node, Duration::from_secs(1), async move {
            let export = Export {
                generation: 1,
                targets: Vec::new(),
                portal_groups: Vec::new(),
                settings: Settings::default(),
            };
            let server = Server::start(&core, export);
            let shared = Arc::clone(server.shared());
            let settings = &shared.export().settings;
            let places = shared.login_places();
            let permit = LoginPermit::take(places, settings, 0, core.now(), somewhere().ip());
            let permit = permit.expect("there is room");
            let mut driver = Driver::new(core, shared, stream, 1, permit);
            driver.run().await;
        });
        assert!(done.is_ok(), "it waits for what nobody reports to it");
        assert_eq!(asked.get(), 1, "and asks nothing more");
    }
}
