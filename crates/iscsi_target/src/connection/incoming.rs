//! What a connection keeps of receiving.

use super::alone::Alone;
use super::coalescing::Coalescing;
use super::receive::Receive;
use crate::session::Received;
use env::CoreHandle;
use std::time::Duration;
use units::Now;

pub(super) struct Incoming {
    pub(super) receive: Receive,
    /// When it takes what has come.
    pub(super) coalescing: Coalescing,
    pub(super) alone: Alone,
    /// PDUs that began in what was received last.
    pub(super) begun: u64,
    /// When the first byte was there of what is handed to the machine, and when all of it.
    pub(super) at: (Now, Now),
    /// What was not reported to the session yet.
    pub(super) since: Received,
}

impl Incoming {
    pub(super) fn new(core: &CoreHandle, wait_max: Duration) -> Self {
        Self {
            receive: Receive::new(core),
            coalescing: Coalescing::new(core.recent(), wait_max),
            alone: Alone::new(core),
            begun: 0,
            at: (Now::ZERO, Now::ZERO),
            since: Received::default(),
        }
    }
}
