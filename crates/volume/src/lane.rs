//! The two traits.

use crate::io::{Done, Io, IoError};
use crate::shape::{Epoch, Shape};
use env::{Answer, CoreHandle, LocalFuture};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// What a request ends with.
pub type IoResult = Result<Done, IoError>;

/// The answer to a request; often there at once, and then without an allocation.
pub type IoFuture = Answer<IoResult>;

/// One core's handle on one volume. The whole data plane is this method.
pub trait Lane {
    /// Starts a request. It runs to its end even if the answer is dropped (C4).
    fn submit(&self, io: Io) -> IoFuture;
}

/// What is wrong where something could not be opened: as much of it as anybody decides on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpenErrorKind {
    /// It is not there, and comes back when somebody brings it back.
    Missing,
    /// Somebody else has it.
    InUse,
    /// What stands there cannot be used: it is damaged, or a part of it is lost.
    Damaged,
    /// There is no space for what an opening or a change has to write.
    NoSpace,
    /// It does not answer.
    Hung,
    /// It is there and well, and is not to be used so: the configuration says otherwise, it is
    /// another's, or a right is lacking.
    Refused,
    /// This process was shut out from it, because another one has taken over.
    Fenced,
    /// It cannot do what is asked of it, or another version of this program wrote it.
    Unsupported,
    /// Anything else: a person has to read the cause.
    Other,
}

impl OpenErrorKind {
    /// What the system's error comes to.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind as Io;
        const KINDS: [(&[Io], OpenErrorKind); 6] = [
            (&[Io::NotFound], OpenErrorKind::Missing),
            (&[Io::WouldBlock, Io::ResourceBusy], OpenErrorKind::InUse),
            (
                &[Io::StorageFull, Io::QuotaExceeded],
                OpenErrorKind::NoSpace,
            ),
            (&[Io::TimedOut], OpenErrorKind::Hung),
            (
                &[Io::PermissionDenied, Io::ReadOnlyFilesystem],
                OpenErrorKind::Refused,
            ),
            (&[Io::Unsupported], OpenErrorKind::Unsupported),
        ];
        let found = KINDS.iter().find(|(all, _)| all.contains(&error.kind()));
        found.map_or(Self::Other, |(_, kind)| *kind)
    }
}

/// Why a lane could not be opened: an operator's problem, in words for the operator. Programs
/// decide by its kind alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError {
    /// For programs.
    pub kind: OpenErrorKind,
    /// What is wrong, with the path or device.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cause, self.next_step)
    }
}

impl std::error::Error for OpenError {}

/// The shared half: what the volume is, and how a core gets a lane to it.
pub trait Volume: Send + Sync {
    /// The facts as of now.
    fn shape(&self) -> Shape;

    /// Opens a lane on this core. Resolves to an error, never hangs, where the backing is missing.
    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>>;

    /// Follows what happens to the volume by itself, from now on, on this core.
    fn events(self: Arc<Self>, core: &CoreHandle) -> Rc<dyn VolumeEvents>;
}

/// Something that happened to a volume by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VolumeEvent {
    /// The facts changed; lanes of older epochs still work within the smaller of both sizes.
    Reshaped(Epoch),
    /// It cannot be reached any more, and why.
    Lost(String),
    /// It can be reached again.
    Back,
    /// Whether hosts are served of it here has changed.
    Access(Access),
    /// While hosts are served of it here, these nodes forward what comes to them: a bit for the
    /// number of each.
    Through(u64),
    /// What other nodes say of their paths to it has changed.
    Paths,
}

/// Whether hosts are served of a volume where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// They are, or will be in a moment.
    Served,
    /// The node with this number serves them, and takes what comes to this one.
    Forwarded(u8),
    /// They are not: the node with this number does so, or nobody is known to.
    Elsewhere(Option<u8>),
    /// They are not, and nobody knows for how long: what waits here is given up, so that they ask
    /// other nodes.
    Nowhere,
}

/// The stream of a volume's events.
pub trait VolumeEvents {
    /// The next event; pending for ever where there will be none.
    fn next(&self) -> LocalFuture<VolumeEvent>;
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_the_system_says_has_the_kind_that_somebody_decides_on() {
        for (error, kind) in [
            (io::ErrorKind::NotFound, OpenErrorKind::Missing),
            (io::ErrorKind::WouldBlock, OpenErrorKind::InUse),
            (io::ErrorKind::StorageFull, OpenErrorKind::NoSpace),
            (io::ErrorKind::QuotaExceeded, OpenErrorKind::NoSpace),
            (io::ErrorKind::PermissionDenied, OpenErrorKind::Refused),
            (io::ErrorKind::InvalidData, OpenErrorKind::Other),
        ] {
            assert_eq!(OpenErrorKind::of_io(&error.into()), kind, "{error}");
        }
    }
}
