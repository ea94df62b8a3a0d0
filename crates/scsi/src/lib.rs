//! SPC and SBC as data and decisions: what a logical unit answers, without doing any I/O.
//!
//! **Contract.** Pure functions and synchronous machines: no sockets, clocks, threads or files.
//! Bytes of an initiator come in and never panic; typed commands, exact sense data and pages go
//! out. The executor above this crate only wires them to a volume.
//!
//! Where things are: [`cdb`] and [`opcode`] turn bytes into commands and back; [`admission`] says
//! whether a unit can do one; [`description`] is what a unit is, from which [`inquiry`], [`vpd`]
//! and [`capacity`] derive pages; [`mode`], [`log`], [`reports`] and [`alua`] hold what else is
//! reported; [`reservation`] and [`unit_attention`] are the machines that remember;
//! [`provisioning`] and [`copy`] read the parameter lists that name blocks; [`lun`] is addressing;
//! [`sense`] and [`status`] say how it ended; [`fuzz`] has entry points with oracles.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod admission;
pub mod alua;
mod bytes;
pub mod capacity;
pub mod cdb;
pub mod copy;
pub mod description;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod inquiry;
pub mod log;
pub mod lun;
pub mod mode;
pub mod opcode;
mod parse;
pub mod provisioning;
pub mod reports;
pub mod reservation;
pub mod sense;
pub mod status;
pub mod unit_attention;
pub mod vpd;

pub use cdb::{CdbError, Command};
pub use description::{TargetDescription, UnitDescription};
pub use opcode::Opcode;
pub use sense::{AdditionalSense, Sense, SenseFormat, SenseKey};
pub use status::Status;
