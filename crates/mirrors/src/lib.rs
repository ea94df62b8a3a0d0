//! LUNs with copies on several nodes, as the daemon has them.
//!
//! ```text
//!   node --over, close--> Mirrors --entries--> begin: copy file, role record --> Cluster::open
//!                            |                                  |
//!        Members: nodes, TLS, arbiter                       Arbiter: luns/NAA/role, luns/NAA/lun
//!                            '--follow, steps: LUNs become here what the records say
//!   controller --agree, change--> luns/NAA/lun is swapped first
//!
//!   cluster: Pair --Transport--> TlsTransport --dial, incoming--> membership ~~~ other node
//!            Line --Channel----> TlsChannel: TLS over one connection of env
//! ```
//!
//! **Contract.** A LUN that names nodes has a copy on each: the node on which it was made writes
//! its role record and its object, and the others make their copies by these. A copy of which this
//! node has kept nothing counts as one that has nothing. Hosts are served by the node that the role
//! record says, once it says so.
//!
//! Who is at the other end of a [`TlsTransport`]'s channel is what the cluster's records say, on
//! both sides. Bytes come as they were sent, in order, or the channel ends.
//!
//! **Failure model.** Without the arbiter nobody begins to own a LUN, and none is made elsewhere;
//! what is owned goes on. What keeps a copy from beginning is said by the LUN, and tried again. A
//! channel ends where the connection does, where anybody changes a byte of it, and when its node
//! leaves the cluster: `cluster` dials anew, and is refused while the other node is not one of it.

mod agree;
mod ask;
mod begin;
mod change;
mod channel;
mod entry;
mod facts;
mod follow;
mod forward;
mod found;
mod guests;
mod luns_here;
mod members;
mod nodes;
mod object;
mod ports;
mod service;
mod state;
mod steps;
mod transport;

pub use found::{Found, Luns, Nodes};
pub use luns_here::LunsHere;
pub use members::Members;
pub use nodes::{known, own};
pub use service::Mirrors;
pub use transport::TlsTransport;
