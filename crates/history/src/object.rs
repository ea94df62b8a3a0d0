//! What has figures.

use serde::{Deserialize, Serialize};

/// What kind of thing an object is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The node as a whole.
    Node,
    /// A LUN.
    Lun,
    /// A host: its sessions together.
    Host,
    /// A target: the sessions with it together.
    Target,
    /// A pool.
    Pool,
    /// A network interface of the node.
    Nic,
}

impl Kind {
    /// All, in the order of the numbers that they have in files.
    pub const ALL: [Self; 6] = [
        Self::Node,
        Self::Lun,
        Self::Host,
        Self::Target,
        Self::Pool,
        Self::Nic,
    ];

    /// As parameters and documents have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Lun => "lun",
            Self::Host => "host",
            Self::Target => "target",
            Self::Pool => "pool",
            Self::Nic => "nic",
        }
    }

    pub(crate) fn number(self) -> i64 {
        let place = Self::ALL.into_iter().position(|kind| kind == self);
        place
            .and_then(|place| i64::try_from(place).ok())
            .unwrap_or(0)
    }

    pub(crate) fn numbered(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// Something that has figures.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Object {
    /// LUN, host, pool, NIC or node.
    pub kind: Kind,
    /// As the objects, `node.toml` or the machine have it.
    pub name: String,
}
