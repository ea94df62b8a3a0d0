//! What became different between two inspections of a host, and a view that follows it.

use crate::read::{Machine, inspect};
use crate::roots::Roots;
use env::{CoreHandle, InterfaceWatch};
use paths::HostPort;
use std::io;
use std::rc::Rc;

/// Something happened to a port of the host. Names are those of [`Machine::ports`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// It lost its carrier, was taken down, or is gone.
    LinkLost(String),
    /// It has a carrier again, or is new and has one.
    LinkBack(String),
    /// It has other addresses.
    Addresses(String),
    /// Speed, MTU, card or members are others.
    Facts(String),
}

/// What a plan must know of, by port; nothing where `after` is as `before`.
#[must_use]
pub fn changes(before: &Machine, after: &Machine) -> Vec<Change> {
    let (before, after) = (before.ports(), after.ports());
    let find = |ports: &[HostPort], name: &str| ports.iter().find(|it| it.name == name).cloned();
    let mut found = Vec::new();
    for old in &before {
        if find(&after, &old.name).is_none() && old.link {
            found.push(Change::LinkLost(old.name.clone()));
        }
    }
    for new in after {
        let name = new.name.clone();
        let Some(old) = find(&before, &name) else {
            if new.link {
                found.push(Change::LinkBack(name));
            }
            continue;
        };
        match (old.link, new.link) {
            (true, false) => found.push(Change::LinkLost(name.clone())),
            (false, true) => found.push(Change::LinkBack(name.clone())),
            (true, true) | (false, false) => {}
        }
        if old.addresses != new.addresses {
            found.push(Change::Addresses(name.clone()));
        }
        let rest = HostPort {
            link: new.link,
            addresses: new.addresses.clone(),
            // A link that is down has no speed; that alone is no news.
            speed: if new.link && old.link {
                old.speed
            } else {
                new.speed
            },
            ..old
        };
        if rest != new {
            found.push(Change::Facts(name));
        }
    }
    found
}

/// A view of the host that stays current.
pub struct Follower {
    core: CoreHandle,
    roots: Roots,
    watch: Rc<dyn InterfaceWatch>,
    known: Machine,
    /// The watch reported something that was not read yet.
    reported: bool,
}

impl Follower {
    /// Inspects the host, and follows it from here on.
    ///
    /// # Errors
    /// Where the system does not report its interfaces.
    pub async fn start(core: &CoreHandle, roots: Roots) -> io::Result<Self> {
        let watch = core.net().watch_interfaces()?;
        let known = inspect(core, &roots, &watch.links(), &watch.current()).await?;
        Ok(Self {
            core: core.clone(),
            roots,
            watch,
            known,
            reported: false,
        })
    }

    /// The host as last seen.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.known
    }

    /// Waits until a port is not as it was, and returns how. It may be dropped and asked again.
    ///
    /// # Errors
    /// Where the system no longer reports them.
    pub async fn changed(&mut self) -> io::Result<Vec<Change>> {
        loop {
            if !self.reported {
                self.watch.changed().await;
                self.reported = true;
            }
            let (links, addresses) = (self.watch.links(), self.watch.current());
            let now = inspect(&self.core, &self.roots, &links, &addresses).await?;
            let found = changes(&self.known, &now);
            self.known = now;
            self.reported = false;
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
}
