//! The target role.

mod answers;
mod config;
mod connection;
mod event;
mod full_feature;
mod login;
mod output;
mod owed;
mod parked;
mod parking;
mod policy;
mod state;
mod task;
mod text;

#[cfg(test)]
pub(crate) mod test;
#[cfg(test)]
mod test_breaches;

pub use config::TargetConfig;
pub use connection::TargetConnection;
pub use event::{
    AsyncEvent, LoginOutcome, LogoutAnswer, LogoutReason, ReferencedTask, Response, SendTargets,
    SessionType, TargetCommand, TargetEvent, TaskFunction, TaskManagement, TaskManagementAnswer,
};
pub use owed::Owed;
pub use policy::{
    Authentication, ChapTerms, LoginAsk, LoginPolicy, LoginRefusal, LoginTerms, MutualChap,
};

/// The most memory that a connection holds here before its login is complete, in bytes: the text of
/// one request chain, one data segment, the answer, and the fixed parts.
pub const UNAUTHENTICATED_BYTES_MAX: usize = 96 << 10;
