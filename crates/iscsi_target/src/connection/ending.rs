//! How a connection ends, and why.

use crate::session::EndReason;
use env::LocalFuture;
use iscsi::CloseReason;
use std::fmt;
use std::task::Context;

/// How far its end is.
#[derive(Default)]
pub(super) enum Ending {
    /// It goes on.
    #[default]
    No,
    /// The machine is done; what it has queued is still to be sent, until the deadline.
    Closing {
        reason: CloseReason,
        deadline: LocalFuture<()>,
    },
    /// The loop is over.
    Over(End),
}

impl Ending {
    /// Nothing begins any more.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self, Self::No)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Over(_))
    }

    /// The first reason counts.
    pub(super) fn end_with(&mut self, end: End) {
        if !self.is_over() {
            *self = Self::Over(end);
        }
    }

    /// The machine is done, but not all of what it said is sent.
    pub(super) fn close(&mut self, reason: CloseReason, deadline: LocalFuture<()>) {
        if !self.is_over() {
            *self = Self::Closing { reason, deadline };
        }
    }

    /// Nothing waits to be sent; whether that was all that the connection was still there for.
    pub(super) fn all_is_sent(&mut self) -> bool {
        match std::mem::take(self) {
            Self::Closing { reason, .. } => {
                *self = Self::Over(End::Machine(reason));
                true
            }
            other @ (Self::No | Self::Over(_)) => {
                *self = other;
                false
            }
        }
    }

    /// Ends a connection whose peer did not take the last answer in time.
    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>) {
        if let Self::Closing { deadline, .. } = self
            && deadline.as_mut().poll(cx).is_ready()
        {
            self.all_is_sent();
        }
    }

    /// Why it ended; empty where it did not.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Over(end) => end.to_string(),
            Self::No | Self::Closing { .. } => String::new(),
        }
    }
}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    PeerClosed,
    Socket(std::io::Error),
    Machine(CloseReason),
    Ordered(EndReason),
    RightLost,
    /// Its place was needed for a login.
    PlaceNeeded,
    /// It takes nothing of what is sent to it.
    NotReading,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerClosed => write!(f, "the initiator closed the connection"),
            Self::Socket(error) => write!(f, "the connection failed: {error}"),
            Self::Machine(CloseReason::LoggedOut) => write!(f, "logout"),
            Self::Machine(CloseReason::LoginFailed) => write!(f, "the login failed"),
            Self::Machine(CloseReason::KeepaliveTimedOut) => {
                write!(f, "the initiator did not answer a ping")
            }
            Self::Machine(CloseReason::Violation(violation)) => {
                write!(f, "the initiator broke the protocol: {violation:?}")
            }
            Self::Ordered(EndReason::Dropped) => write!(f, "dropped by an administrator"),
            Self::Ordered(EndReason::Reinstated) => {
                write!(f, "the same initiator port logged in again")
            }
            Self::Ordered(EndReason::Fenced) => {
                write!(f, "the initiator asked for its end in another session")
            }
            Self::Ordered(EndReason::OtherTarget) => {
                write!(f, "its target was deleted, and another one has its name")
            }
            Self::Ordered(EndReason::OtherProof) => {
                write!(
                    f,
                    "it was shut out, and its host has another CHAP user or secret now"
                )
            }
            Self::Ordered(EndReason::Maintenance) => {
                write!(f, "its target is in maintenance and it did not log out")
            }
            Self::Ordered(EndReason::Stopping) => write!(f, "the daemon stops"),
            Self::RightLost => write!(f, "the right to serve was lost"),
            Self::PlaceNeeded => write!(f, "a new login needed its place"),
            Self::NotReading => write!(f, "the initiator did not read what was sent to it"),
        }
    }
}
