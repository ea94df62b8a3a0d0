//! What can go wrong, typed for programs and in words for people.

use crate::ffi::{Errno, LibraryError};
use std::fmt;
use volume::{OpenError, OpenErrorKind};

/// Why something could not be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RbdError {
    /// For programs.
    pub kind: ErrorKind,
    /// What is wrong, with the names of what it is about.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
}

/// What kind of thing went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// librados or librbd is not installed, or too old.
    LibraryMissing,
    /// The cluster's configuration file is not there or says nonsense.
    Configuration,
    /// The cluster does not answer.
    Unreachable,
    /// The key is missing, wrong, or gives no right to this.
    Denied,
    /// The cluster has no such pool.
    NoPool,
    /// The pool has no such image.
    NoImage,
    /// There is one of this name.
    Exists,
    /// Another client has the image's exclusive lock.
    Locked(Holder),
    /// Somebody has the image open, or it has snapshots.
    InUse,
    /// This connection was shut out of the cluster: it must be made anew.
    Blocklisted,
    /// The cluster or the pool is full.
    NoSpace,
    /// The image cannot be a volume as it is.
    Unsuitable,
    /// The image belongs to something else.
    Taken,
    /// What was asked makes no sense.
    Invalid,
    /// Something else, with the errno.
    Failed(i32),
}

/// Who holds an exclusive lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holder {
    /// The client's name in the cluster: `client.4123`.
    pub client: String,
    /// Its address, of this connection alone.
    pub address: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.client, self.address)
    }
}

impl RbdError {
    pub(crate) fn new(kind: ErrorKind, cause: String, next_step: impl Into<String>) -> Self {
        Self {
            kind,
            cause,
            next_step: next_step.into(),
        }
    }
}

impl fmt::Display for RbdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cause, self.next_step)
    }
}

impl std::error::Error for RbdError {}

impl From<RbdError> for OpenError {
    fn from(error: RbdError) -> Self {
        Self {
            kind: error.kind.of_opening(),
            cause: error.cause,
            next_step: error.next_step,
        }
    }
}

impl ErrorKind {
    /// What it comes to where a volume cannot be opened.
    fn of_opening(&self) -> OpenErrorKind {
        match self {
            Self::NoPool | Self::NoImage => OpenErrorKind::Missing,
            Self::Locked(_) | Self::InUse => OpenErrorKind::InUse,
            Self::Unreachable => OpenErrorKind::Hung,
            Self::Denied | Self::Exists | Self::Taken => OpenErrorKind::Refused,
            Self::Blocklisted => OpenErrorKind::Fenced,
            Self::NoSpace => OpenErrorKind::NoSpace,
            Self::LibraryMissing | Self::Unsuitable => OpenErrorKind::Unsupported,
            Self::Configuration | Self::Invalid | Self::Failed(_) => OpenErrorKind::Other,
        }
    }
}

impl From<LibraryError> for RbdError {
    fn from(error: LibraryError) -> Self {
        let cause = match error {
            LibraryError::Missing { library, said } => {
                format!("{library} cannot be opened: {said}")
            }
            LibraryError::Function(name) => {
                format!("the Ceph libraries that are installed have no {name}: they are too old")
            }
        };
        Self::new(
            ErrorKind::LibraryMissing,
            cause,
            "install librbd1 and librados2 of Ceph 16.2 (Pacific) or newer: apt-get install librbd1, or dnf install \
             librbd1; no restart is needed",
        )
    }
}

/// What a call said that was about `what` ("image lun-1 of pool rbd"): `doing` says what it did.
pub(crate) fn of_call(doing: &str, what: &str, errno: Errno) -> RbdError {
    let (kind, next_step) = match errno.0 {
        libc::ESHUTDOWN => return blocklisted(what),
        libc::ENOENT => (ErrorKind::NoImage, "make it, or correct its name"),
        libc::EEXIST => (
            ErrorKind::Exists,
            "choose another name, or adopt the image that is there",
        ),
        libc::EACCES | libc::EPERM => (
            ErrorKind::Denied,
            "give the user the capabilities of profile rbd: ceph auth caps client.USER mon 'profile rbd' osd 'profile rbd \
             pool=POOL'",
        ),
        libc::ENOSPC | libc::EDQUOT => (
            ErrorKind::NoSpace,
            "make room in the pool, raise its quota, or add OSDs",
        ),
        libc::EBUSY | libc::ENOTEMPTY => (
            ErrorKind::InUse,
            "stop what has it open (rbd status), and remove its snapshots (rbd snap ls)",
        ),
        libc::ETIMEDOUT | libc::ENOTCONN => (
            ErrorKind::Unreachable,
            "check the cluster's health (ceph status) and the network to it",
        ),
        libc::EINVAL => (ErrorKind::Invalid, "correct what was asked for"),
        other => (
            ErrorKind::Failed(other),
            "check the cluster's health (ceph status) and its log",
        ),
    };
    let said = std::io::Error::from_raw_os_error(errno.0);
    RbdError::new(kind, format!("{doing} {what} failed: {said}"), next_step)
}

/// The connection was shut out.
pub(crate) fn blocklisted(what: &str) -> RbdError {
    RbdError::new(
        ErrorKind::Blocklisted,
        format!("this client was shut out of the cluster (blocklisted), and with it {what}"),
        "another client has taken over; to serve again here, connect anew",
    )
}

/// Nothing was answered in time.
pub(crate) fn unreachable(doing: &str, what: &str, seconds: u64) -> RbdError {
    RbdError::new(
        ErrorKind::Unreachable,
        format!("{doing} {what}: the cluster has not answered for {seconds} s"),
        "check the cluster's health (ceph status) and the network to it; it is tried again",
    )
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_what_to_install() {
        let missing = LibraryError::Missing {
            library: "librbd.so.1".to_owned(),
            said: "no such file".to_owned(),
        };
        for error in [missing, LibraryError::Function("rbd_aio_write_zeroes")] {
            let error = RbdError::from(error);
            assert_eq!(error.kind, ErrorKind::LibraryMissing);
            assert!(error.next_step.contains("install librbd1"), "{error}");
            assert!(error.cause.contains("rbd"), "{error}");
        }
    }

    #[test]
    fn what_a_call_says_has_a_kind_that_programs_can_act_on() {
        let kind = |errno| of_call("opening", "image a of pool b", Errno(errno)).kind;
        assert_eq!(kind(libc::ENOENT), ErrorKind::NoImage);
        assert_eq!(kind(libc::EEXIST), ErrorKind::Exists);
        assert_eq!(kind(libc::ESHUTDOWN), ErrorKind::Blocklisted);
        assert_eq!(kind(libc::ENOSPC), ErrorKind::NoSpace);
        assert_eq!(kind(libc::EDQUOT), ErrorKind::NoSpace);
        assert_eq!(kind(libc::EBUSY), ErrorKind::InUse);
        assert_eq!(kind(libc::EPERM), ErrorKind::Denied);
        assert_eq!(kind(libc::ETIMEDOUT), ErrorKind::Unreachable);
        assert_eq!(kind(libc::EIO), ErrorKind::Failed(libc::EIO));
    }
}
