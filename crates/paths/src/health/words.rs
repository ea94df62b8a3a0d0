//! The words that a path's state machine and its caller speak: times, causes, states, events,
//! effects.

use scsi::alua::AccessState;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The times and counts of a path's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Nothing received for so long, while something is expected: ping.
    pub quiet: Duration,
    /// A ping unanswered for so long: dead.
    pub answer: Duration,
    /// Pings of a path that carries nothing.
    pub idle_ping: Duration,
    /// A connection attempt takes no longer.
    pub connect: Duration,
    /// First pause between attempts; doubles.
    pub back_off: Duration,
    /// Longest pause.
    pub back_off_longest: Duration,
    /// A path that came back is watched for so long, doubled for each flap.
    pub hold: Duration,
    /// Longest watch.
    pub hold_longest: Duration,
    /// A flap is forgotten after so long.
    pub flap_memory: Duration,
    /// Errors and stalls count for so long.
    pub window: Duration,
    /// So many stalls in the window make it marginal.
    pub stalls: usize,
    /// So many errors in the window make it marginal.
    pub errors: usize,
    /// Retransmitting more than 1 % for so long makes it marginal.
    pub retransmitting: Duration,
    /// More than ten times as slow as its siblings for so long makes it marginal.
    pub slow: Duration,
    /// No reason to be marginal for so long ends it.
    pub pardon: Duration,
    /// A transition of the access state takes no longer, unless the target says otherwise.
    pub transition: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            quiet: seconds(1),
            answer: seconds(1),
            idle_ping: seconds(5),
            connect: seconds(5),
            back_off: Duration::from_millis(250),
            back_off_longest: seconds(15),
            hold: seconds(5),
            hold_longest: seconds(600),
            flap_memory: seconds(600),
            window: seconds(30),
            stalls: 3,
            errors: 2,
            retransmitting: seconds(5),
            slow: seconds(10),
            pardon: seconds(30),
            transition: seconds(60),
        }
    }
}

/// What the planner wants of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Carry I/O.
    Active,
    /// Be logged in.
    Hot,
    /// Not be logged in.
    #[default]
    Cold,
}

/// Why a path is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It has never been up.
    New,
    /// The host's port has no carrier, or no address.
    LinkDown,
    /// The connection was closed or reset, or could not be made.
    Closed,
    /// Nothing came for `quiet`, and no answer to a ping.
    NoAnswer,
    /// Digests were wrong again and again.
    Digests,
    /// The unit is not behind it any more.
    UnitGone,
    /// Something that it stands on is lost.
    Domain,
    /// The planner does not want it.
    NotWanted,
}

/// Where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for the next attempt, for a carrier, or to be wanted.
    Down(Cause),
    /// Connects, logs in, checks identity and reservations.
    Connecting,
    /// Logged in, and watched before it is trusted.
    Proving,
    /// Trusted.
    Up,
    /// It showed another unit under the name of ours: only an administrator lets it go on.
    Quarantined,
    /// Switched off by the administrator.
    Disabled,
}

/// What the caller saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The host's port has a carrier and an address again, or a new address.
    LinkUp,
    /// It has none.
    LinkDown,
    /// Logged in; identity, size and reservations are as they should be.
    LoggedIn,
    /// Logged in, and it is another unit, or another size.
    OtherIdentity,
    /// The connection is over, or could not be made.
    Closed,
    /// Bytes came.
    Received,
    /// A ping was answered.
    PingAnswered,
    /// A command was sent that will be answered.
    Sent,
    /// Every command has been answered.
    NothingExpected,
    /// A command stalled: many times its usual time.
    Stall,
    /// An error that speaks against the path ([`crate::verdict::PathSays::Error`]).
    Error,
    /// A digest was wrong.
    DigestError,
    /// More than 1 % is retransmitted (or no longer).
    Retransmitting(bool),
    /// More than ten times as slow as its siblings (or no longer).
    Slow(bool),
    /// The access state of the unit through this port.
    Access(AccessState),
    /// How long transitions may take here, in seconds, from REPORT TARGET PORT GROUPS.
    TransitionTime(u8),
    /// ILLEGAL REQUEST, LOGICAL UNIT NOT SUPPORTED.
    UnitGone,
    /// Something that it stands on is lost ([`crate::plan::Change::Fail`]).
    DomainLost,
    /// Another path is silent: whether this one lives should be known by the time that that one is
    /// given up.
    Suspected,
    /// No path lives: trust this one as soon as it is logged in, and try it every second.
    OnlyHope,
    /// The administrator switches it off.
    Disable,
    /// The administrator switches it on, or lets it out of quarantine.
    Enable,
    /// What the planner wants of it.
    Want(Wanted),
}

/// What the machine of a path asks of its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Do {
    /// Connect, log in with the path's own ISID, check identity, size and reservations; then
    /// [`Seen::LoggedIn`].
    Connect,
    /// Send a NOP-Out that asks for an answer.
    Ping,
    /// The connection is dead: close it at once, without a logout.
    Close,
    /// The unit does not use this path any more: log out, or leave the session to the units that go
    /// on with it.
    LogOut,
    /// The path failed: notify the monitor, and hand what it carried to the rules against stale
    /// writes.
    Failed(Cause),
    /// The path is trusted again: notify the monitor.
    Recovered,
    /// [`PathHealth::usage`] is another now: notify the selector.
    UsageChanged,
    /// REPORT TARGET PORT GROUPS, then [`Seen::Access`].
    ReadAccess,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::New => "it has not been tried yet",
            Self::LinkDown => "the host's port has no carrier or no address",
            Self::Closed => "the connection was closed or could not be made",
            Self::NoAnswer => "the target does not answer",
            Self::Digests => "digests were wrong again and again",
            Self::UnitGone => "the unit is not behind it any more",
            Self::Domain => "a part that it shares with other paths is lost",
            Self::NotWanted => "the plan does not need it",
        };
        f.write_str(words)
    }
}
