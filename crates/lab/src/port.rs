//! NICs and ports, and what can happen to their links.

use crate::rate::Rate;
use serde::Serialize;

/// One NIC of the host, or one port of the target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Port {
    /// Its name in its namespace.
    pub name: String,
    /// The card that it sits on.
    pub card: String,
    /// The controller that it belongs to; the target only.
    pub controller: Option<String>,
    /// Its line rate.
    pub rate: Rate,
    /// Its network: ports of one network reach each other.
    pub network: u8,
}

impl Port {
    /// A port at 1 Gb/s in network 0.
    #[must_use]
    pub fn new(name: &str, card: &str) -> Self {
        Self {
            name: name.to_owned(),
            card: card.to_owned(),
            controller: None,
            rate: Rate::GIGABIT,
            network: 0,
        }
    }

    /// It belongs to this controller.
    #[must_use]
    pub fn controller(mut self, name: &str) -> Self {
        self.controller = Some(name.to_owned());
        self
    }

    /// What the port carries at most, in each direction.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = rate;
        self
    }

    /// The IP subnet that it is in: ports of one number reach each other.
    #[must_use]
    pub fn network(mut self, network: u8) -> Self {
        self.network = network;
        self
    }
}

/// What happens to a link. Each is undone by [`Bed::mend`](crate::Bed::mend).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harm {
    /// The cable is pulled: both ends lose the carrier.
    Cut,
    /// The switch forwards nothing to it and from it any more, and neither end is notified.
    BlackHole,
    /// Nothing comes in any more, what goes out arrives, and neither end is notified.
    Deaf,
    /// Nothing gets out any more, what is sent to it arrives, and neither end is notified.
    Mute,
    /// It carries this much only.
    Slow(Rate),
}
