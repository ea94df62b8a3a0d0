//! What the objects name and the node does not serve, and what a login of the node's own needs that
//! tries it.

use std::net::SocketAddr;

/// Something that is to be served and is not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unserved {
    /// `lun`, `target` or `portal`.
    pub kind: &'static str,
    /// The object's name, or the portal's address.
    pub name: String,
    /// What is missing, in a sentence.
    pub cause: String,
}

/// A login that the node tries at itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Probe {
    /// The portal, as this machine reaches it.
    pub portal: SocketAddr,
    /// The portal, as the node listens at it.
    pub address: String,
    /// The target's name.
    pub target: String,
    /// Its iSCSI name.
    pub iqn: String,
}

/// What such a login has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The target is there.
    Here,
    /// There is too much to do: nobody knows.
    Busy,
    /// The portal answers something else, in words: hosts get that as well.
    Missing(String),
    /// The portal cannot be reached.
    Unreachable(String),
}
