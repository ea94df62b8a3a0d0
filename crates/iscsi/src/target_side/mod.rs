//! The target role.

mod answers;
mod connection;
mod event;
mod full_feature;
mod link;
mod login;
mod owed;
mod parking;
mod policy;
mod task;
mod text;

#[cfg(test)]
pub(crate) mod test;
#[cfg(test)]
mod test_breaches;

pub use connection::{TargetConfig, TargetConnection};
pub use event::{
    AsyncEvent, CloseReason, Command, Event, LoginOutcome, LogoutAnswer, LogoutReason,
    ReferencedTask, Response, SendTargets, SessionType, TaskFunction, TaskManagement,
    TaskManagementAnswer,
};
pub use owed::Owed;
pub use policy::{
    Authentication, ChapTerms, LoginAsk, LoginPolicy, LoginRefusal, LoginTerms, MutualChap,
};

/// The most memory that a connection holds here before its login is complete, in bytes: the text of
/// one request chain, one data segment, the answer, and the fixed parts.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 96 << 10;
