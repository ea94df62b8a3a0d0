//! Policies by name, what they know of paths, and what they are asked.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// After how much round robin goes on to the next path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RotateAfter {
    /// After so many commands (VMware: 1000 by default, 1 recommended; Linux `rr_min_io_rq`: 1).
    Commands(u32),
    /// After so many bytes (VMware: 10 MiB).
    Bytes(u64),
}

/// How a path is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Policy {
    /// The first path by rank, then by number.
    Failover,
    /// Each active path in turn; with none, the first standby.
    RoundRobin(RotateAfter),
    /// Each active path in turn; with none, each standby in turn (Windows: Round Robin with
    /// Subset).
    RoundRobinSubset(RotateAfter),
    /// The fewest commands in flight; among equals the one that was used longest ago (Linux
    /// `queue-length`, Windows Least Queue Depth).
    LeastQueueDepth,
    /// The fewest bytes in flight; among equals the one that was used longest ago (Windows Least
    /// Blocks).
    LeastBytes,
    /// The least (bytes in flight + this command's) / relative throughput; among equals the higher
    /// throughput, then the one that was used longest ago; throughput 0 only if there is nothing
    /// else (Linux `service-time`).
    ServiceTime,
    /// The lowest rank; equals in turn (Windows Weighted Paths, where the lowest weight wins).
    WeightedMin,
    /// In proportion to shares, as evenly spread as possible; share 0 only if there is nothing
    /// else.
    WeightedShare,
    /// By measured speed and latency, load on shared ports, and health.
    #[default]
    Adaptive,
}

/// Not a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPolicy(String);

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no policy: failover, round-robin, round-robin-subset (both with :COMMANDS or :bytes=N), least-queue-depth, \
             least-bytes, service-time, weighted-min, weighted-share or adaptive",
            self.0
        )
    }
}

impl std::error::Error for BadPolicy {}

impl FromStr for RotateAfter {
    type Err = ();

    /// `1000` or `bytes=10485760`; at least 1.
    fn from_str(text: &str) -> Result<Self, ()> {
        let turn = match text.strip_prefix("bytes=") {
            Some(bytes) => bytes.parse().ok().filter(|it| *it > 0).map(Self::Bytes),
            None => text.parse().ok().filter(|it| *it > 0).map(Self::Commands),
        };
        turn.ok_or(())
    }
}

impl fmt::Display for RotateAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(commands) => write!(f, "{commands}"),
            Self::Bytes(bytes) => write!(f, "bytes={bytes}"),
        }
    }
}

impl FromStr for Policy {
    type Err = BadPolicy;

    /// `NAME` or `NAME:ARG`.
    fn from_str(text: &str) -> Result<Self, BadPolicy> {
        let bad = || BadPolicy(text.to_owned());
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (
                name,
                Some(argument.parse::<RotateAfter>().map_err(|()| bad())?),
            ),
            None => (text, None),
        };
        let turn = argument.unwrap_or(RotateAfter::Commands(1));
        let policy = match name {
            "round-robin" => return Ok(Self::RoundRobin(turn)),
            "round-robin-subset" => return Ok(Self::RoundRobinSubset(turn)),
            "failover" => Self::Failover,
            "least-queue-depth" => Self::LeastQueueDepth,
            "least-bytes" => Self::LeastBytes,
            "service-time" => Self::ServiceTime,
            "weighted-min" => Self::WeightedMin,
            "weighted-share" => Self::WeightedShare,
            "adaptive" => Self::Adaptive,
            _ => return Err(bad()),
        };
        if argument.is_some() {
            Err(bad())
        } else {
            Ok(policy)
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failover => write!(f, "failover"),
            Self::RoundRobin(turn) => write!(f, "round-robin:{turn}"),
            Self::RoundRobinSubset(turn) => write!(f, "round-robin-subset:{turn}"),
            Self::LeastQueueDepth => write!(f, "least-queue-depth"),
            Self::LeastBytes => write!(f, "least-bytes"),
            Self::ServiceTime => write!(f, "service-time"),
            Self::WeightedMin => write!(f, "weighted-min"),
            Self::WeightedShare => write!(f, "weighted-share"),
            Self::Adaptive => write!(f, "adaptive"),
        }
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

impl TryFrom<String> for Policy {
    type Error = BadPolicy;

    fn try_from(text: String) -> Result<Self, BadPolicy> {
        text.parse()
    }
}

/// Whether a path takes commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Use {
    /// Yes.
    Active,
    /// If there is no active one.
    Standby,
    /// No: failed, draining, or not logged in.
    #[default]
    No,
}

/// What a policy knows of a path beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Whether it takes commands.
    pub usage: Use,
    /// For failover and weighted-min: lower is better.
    pub rank: u32,
    /// For weighted-share and adaptive: more is more.
    pub share: u32,
    /// For service-time: relative throughput.
    pub throughput: u32,
    /// Number of the host's port; paths with the same number share it.
    pub host_port: u16,
    /// Number of the target's port.
    pub target_port: u16,
    /// Bytes per second of one stream.
    pub speed: u64,
    /// Bytes per second of the host's port.
    pub host_speed: u64,
    /// Bytes per second of the target's port.
    pub target_speed: u64,
    /// Most commands in flight: the queue depth of the session or the unit.
    pub window: u32,
}

impl Settings {
    /// Of a path that shares no port with another, of so many bytes per second from end to end, and
    /// that takes nothing yet.
    #[must_use]
    pub const fn alone(speed: u64) -> Self {
        Self {
            usage: Use::No,
            rank: 0,
            share: 1,
            throughput: 1,
            host_port: 0,
            target_port: 0,
            speed,
            host_speed: speed,
            target_speed: speed,
            window: 1024,
        }
    }
}

/// The direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the host.
    Read,
    /// To the target, or none.
    Write,
}

/// A command that wants a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The direction of its data.
    pub direction: Direction,
    /// First byte on the volume.
    pub start: u64,
    /// How many bytes.
    pub bytes: u64,
}
