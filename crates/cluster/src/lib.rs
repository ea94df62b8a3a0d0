//! LUNs with copies on several nodes: what has sockets, timers and tasks around the machines that
//! decide.

mod copy_file;
mod tcp;
mod transport;

pub use copy_file::{CopyFile, CopyStore};
pub use tcp::TcpTransport;
pub use transport::{Channel, Transport};
