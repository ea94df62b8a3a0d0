//! The two traits.

use crate::io::{Done, Io, IoError};
use crate::shape::{Epoch, Shape};
use env::{Answer, CoreHandle, LocalFuture};
use std::fmt;
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

/// Why a lane could not be opened: an operator's problem, in words for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError {
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
}

/// The stream of a volume's events.
pub trait VolumeEvents {
    /// The next event; pending for ever where there will be none.
    fn next(&self) -> LocalFuture<VolumeEvent>;
}
