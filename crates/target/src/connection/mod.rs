//! One connection, from the accepted socket to its last byte: the shell around the protocol machine.
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
//! **Contract.** Commands go to the logical unit in CmdSN order. Most end at once, in the same turn that
//! received them, and their replies leave in one vectored send. What must be waited for (the backend, a hold,
//! a task management function) is a future beside the loop, so that nothing holds up anything else.
//! When the connection ends, its tasks are aborted and then driven to their end by tasks of the core.

mod alarm;
mod alone;
mod answered;
mod awaited;
mod coalescing;
mod command;
mod driver;
mod function;
mod login;
mod memory;
mod receive;
mod travel;
mod units;
mod unmapped;

use crate::login_places::LoginPermit;
use crate::placement::Place;
use crate::server::Shared;
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
    place: Place,
) {
    let peer = stream.peer;
    match core.net().adopt(stream) {
        Ok(stream) => {
            let driver = Driver::new(core, shared, stream, portal_group_tag, permit);
            drive(driver, place).await;
        }
        Err(error) => tracing::warn!(%peer, %error, "a connection could not be taken over"),
    }
}

/// Serves a connection until it ends, or goes to another core.
async fn drive(mut driver: Driver, place: Place) {
    driver.run().await;
    match driver.departure.take() {
        Some(departure) => driver.depart(departure, place),
        None => {
            driver.finish().await;
            drop(place);
        }
    }
}
