//! Why a command has no answer.

use iscsi::CloseReason;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a connection is over, or a command has no answer: nobody knows whether it was carried out,
/// but for [`Lost::Unsent`].
#[derive(Clone, Debug)]
pub enum Lost {
    /// The connection failed.
    Socket(Arc<io::Error>),
    /// The target closed the connection without a word.
    PeerClosed,
    /// The protocol ended it: a breach, silence, a logout.
    Protocol(CloseReason),
    /// The target rejected the command (reason code of RFC 7143 11.17.1); the session goes on.
    Rejected(u8),
    /// A task management function of ours has ended the command; the session goes on.
    Aborted,
    /// We have destroyed the connection ([`crate::Session::abort`]).
    Destroyed,
    /// Its unit does not use the session any more ([`crate::Session::give_up`]); the session goes
    /// on.
    Left,
    /// The session ended before any byte of the command had left: it was not carried out.
    Unsent,
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self::Socket(Arc::new(error))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "the connection failed: {error}"),
            Self::PeerClosed => write!(f, "the target closed the connection"),
            Self::Protocol(CloseReason::LoggedOut) => write!(f, "logout"),
            Self::Protocol(CloseReason::LoginFailed) => write!(f, "the login failed"),
            Self::Protocol(CloseReason::KeepaliveTimedOut) => {
                write!(f, "the target did not answer a ping")
            }
            Self::Protocol(CloseReason::Violation(violation)) => {
                write!(f, "the target broke the protocol: {violation:?}")
            }
            Self::Aborted => write!(f, "aborted by a task management function"),
            Self::Destroyed => write!(f, "this side has ended the connection"),
            Self::Left => write!(f, "its unit uses the session no more"),
            Self::Unsent => write!(f, "the session ended before the command was sent"),
            Self::Rejected(reason) => write!(f, "the target rejected it, reason {reason:#04x}"),
        }
    }
}

impl std::error::Error for Lost {}
