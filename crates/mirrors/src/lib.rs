//! LUNs with copies in the daemon: the stream's TLS, role records, objects of LUNs on several
//! nodes.
//!
//! ```text
//!   cluster: Pair --Transport--> TlsTransport --dial, incoming--> membership ~~~ other node
//!            Line --Channel----> TlsChannel: TLS over one connection of env
//! ```
//!
//! **Contract.** Who is at the other end of a [`TlsTransport`]'s channel is what the cluster's
//! records say, on both sides. Bytes come as they were sent, in order, or the channel ends.
//!
//! **Failure model.** A channel ends where the connection does, where anybody changes a byte of it,
//! and when its node leaves the cluster. `cluster` dials anew, and is refused while the other node
//! is not one of the cluster.

mod channel;
mod nodes;
mod transport;

pub use nodes::{known, own};
pub use transport::TlsTransport;
