//! A host at one moment, read.

use crate::nic::{self, Nic};
use crate::roots::Roots;
use crate::tcp::{self, TcpSettings};
use env::{CoreHandle, Files, InterfaceAddress, InterfaceLink};
use std::io;

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
/// Where the system does not report its interfaces.
pub async fn read(core: &CoreHandle, roots: &Roots) -> io::Result<Machine> {
    let watch = core.net().watch_interfaces()?;
    inspect(core, roots, &watch.links(), &watch.current()).await
}

/// Bytes that an interface has received and sent since it came up; `None` where it is not there.
pub async fn traffic(core: &CoreHandle, roots: &Roots, nic: &str) -> Option<(u64, u64)> {
    let counters = roots.sys.join("class/net").join(nic).join("statistics");
    let files = core.files();
    let received = nic::number(&*files, &counters.join("rx_bytes")).await?;
    let sent = nic::number(&*files, &counters.join("tx_bytes")).await?;
    Some((received, sent))
}

/// As [`read`], with the interfaces as a watch reports them.
pub(crate) async fn inspect(
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
pub(crate) async fn assemble(
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
