//! What this host is: its NICs and the cards that they sit on, addresses, links and TCP settings;
//! the disks of its block devices, and its memory.
//!
//! ```text
//!   netlink (links, addresses)   \
//!   sysfs (card, NUMA, speed)     >--  Machine  --- ports() --->  paths::HostPort
//!   ethtool (rings, offloads)    /        |
//!   procfs (TCP settings)       /      changes() between two of them
//! ```
//!
//! **Contract.** Reads only, and only through [`env`]. What the system does not report is absent
//! and never guessed: a virtual NIC has no card and often no speed, and the administrator's file
//! ([`paths::overrides`]) says what it stands for. Names and numbers are those of `ip link` and
//! `lspci`.
//!
//! **Failure model.** An interface that goes while it is read is read as one without facts; only a
//! system that reports nothing of its interfaces is an error.

mod card;
mod changes;
pub mod disk;
pub mod memory;
mod nic;
mod ports;
mod read;
mod roots;
mod tcp;

pub use changes::{Change, Follower, changes};
pub use nic::{Duplex, Kind, Nic};
pub use paths::{HostPort, Subnet};
pub use ports::UnknownPort;
pub use read::{Machine, read, traffic};
pub use roots::Roots;
pub use tcp::TcpSettings;

#[cfg(test)]
mod test;
