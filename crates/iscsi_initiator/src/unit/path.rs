//! One path to a unit: how to log in there, and what went through it.

use iscsi::Lun;
use iscsi::initiator_side::InitiatorConfig;
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// One path.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// Where the target listens.
    pub portal: SocketAddr,
    /// The host's address.
    pub from: Option<IpAddr>,
    /// The host's interface, where the routes alone would not choose it.
    pub interface: Option<String>,
    /// Names, ISID, credentials and offers. The ISID is this path's own, and no other session's of
    /// this host with the target.
    pub login: InitiatorConfig,
    /// The unit.
    pub lun: Lun,
    /// A command that is not answered in this time is aborted ([`COMMAND_TIMEOUT`]).
    pub command_timeout: Duration,
}

/// What is usual for [`PathConfig::command_timeout`].
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// What a path has carried since it was made.
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) reads: Cell<u64>,
    pub(super) writes: Cell<u64>,
    pub(super) read_bytes: Cell<u64>,
    pub(super) written_bytes: Cell<u64>,
}

impl Counters {
    pub(super) fn carried(&self, bytes: usize, writes: bool) {
        let (ios, sum) = if writes {
            (&self.writes, &self.written_bytes)
        } else {
            (&self.reads, &self.read_bytes)
        };
        ios.set(ios.get() + 1);
        sum.set(sum.get().saturating_add(bytes as u64));
    }
}
