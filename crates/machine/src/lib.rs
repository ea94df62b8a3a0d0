//! What this host is: its NICs and the cards that they sit on, addresses, links and TCP settings.
//!
//! ```text
//!   netlink (links, addresses)   \
//!   sysfs (card, NUMA, speed)     >--  Machine  --- ports() --->  paths::HostPort
//!   ethtool (rings, offloads)    /        |
//!   procfs (TCP settings)       /      changes() between two of them
//! ```
//!
//! **Contract.** Reads only, and only through [`env`]. What the system does not tell is absent and
//! never guessed: a virtual NIC has no card and often no speed, and the administrator's file
//! ([`paths::overrides`]) says what it stands for. Names and numbers are those of `ip link` and
//! `lspci`.
//!
//! **Failure model.** An interface that goes while it is read is read as one without facts; only a
//! system that tells nothing of its interfaces is an error.

mod card;
mod changes;
mod nic;
mod ports;
mod tcp;

pub use changes::{Change, Follower, changes};
pub use nic::{Duplex, Kind, Nic};
pub use ports::UnknownPort;
pub use tcp::TcpSettings;

use env::{CoreHandle, Files, InterfaceAddress, InterfaceLink};
use std::io;
use std::path::PathBuf;

/// Where the system shows itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// sysfs: `/sys`.
    pub sys: PathBuf,
    /// procfs: `/proc`.
    pub proc: PathBuf,
    /// Configuration: `/etc`.
    pub etc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            etc: "/etc".into(),
        }
    }
}

/// A host at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Machine {
    /// Every interface, the loopback and virtual ones included, sorted by name.
    pub nics: Vec<Nic>,
    /// How its TCP is set.
    pub tcp: TcpSettings,
}

impl Machine {
    /// The NIC of this name.
    #[must_use]
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.name == name)
    }
}

/// Reads what the host is now.
///
/// # Errors
/// Where the system does not tell its interfaces.
pub async fn read(core: &CoreHandle, roots: &Roots) -> io::Result<Machine> {
    let watch = core.net().watch_interfaces()?;
    look(core, roots, &watch.links(), &watch.current()).await
}

/// Bytes that an interface has received and sent since it came up; `None` where it is not there.
pub async fn traffic(core: &CoreHandle, roots: &Roots, nic: &str) -> Option<(u64, u64)> {
    let counters = roots.sys.join("class/net").join(nic).join("statistics");
    let files = core.files();
    let received = nic::number(&*files, &counters.join("rx_bytes")).await?;
    let sent = nic::number(&*files, &counters.join("tx_bytes")).await?;
    Some((received, sent))
}

/// As [`read`], with the interfaces as a watch tells them.
async fn look(
    core: &CoreHandle,
    roots: &Roots,
    links: &[InterfaceLink],
    addresses: &[InterfaceAddress],
) -> io::Result<Machine> {
    let mut machine = assemble(&*core.files(), roots, links, addresses).await;
    for nic in &mut machine.nics {
        nic.driver = core.net().driver(&nic.name).unwrap_or_default();
    }
    Ok(machine)
}

/// What files and the kernel's lists together say.
async fn assemble(
    files: &dyn Files,
    roots: &Roots,
    links: &[InterfaceLink],
    addresses: &[InterfaceAddress],
) -> Machine {
    let mut nics = Vec::new();
    for link in links {
        nics.push(nic::read(files, roots, link, addresses).await);
    }
    nics.sort_by(|a: &Nic, b| a.name.cmp(&b.name));
    Machine {
        nics,
        tcp: tcp::read(files, roots).await,
    }
}

#[cfg(test)]
mod test;
