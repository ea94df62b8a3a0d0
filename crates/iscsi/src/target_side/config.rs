//! What the owner of a target connection chooses.

use core::time::Duration;

/// Limits of a connection that are the owner's choice.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// A login that takes longer is closed.
    pub login_timeout: Duration,
    /// Silence after which the initiator is pinged by NOP-In; `None`: never.
    pub ping_after: Option<Duration>,
    /// Silence after a ping that ends the connection.
    pub ping_timeout: Duration,
    /// Non-immediate commands that may be in progress: the size of the CmdSN window.
    pub command_depth: u32,
    /// Bytes of writes in progress beyond which the CmdSN window does not open further.
    pub write_bytes_max: u64,
    /// Bytes of unsolicited data that may wait for the owner's memory, of all commands together.
    pub parked_bytes_max: usize,
    /// Immediate requests that may be in progress; more are rejected.
    pub immediate_max: u32,
}

impl Default for TargetConfig {
    fn default() -> Self {
        Self {
            login_timeout: Duration::from_secs(15),
            ping_after: Some(Duration::from_secs(15)),
            ping_timeout: Duration::from_secs(15),
            command_depth: 256,
            write_bytes_max: 64 << 20,
            parked_bytes_max: 8 << 20,
            immediate_max: 64,
        }
    }
}
