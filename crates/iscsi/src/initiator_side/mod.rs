//! The initiator role.

mod connection;
mod event;
mod login;
mod session;

pub use connection::InitiatorConnection;
pub use event::{
    Completion, InitiatorChap, InitiatorCommand, InitiatorConfig, InitiatorEvent, TargetProof,
};
