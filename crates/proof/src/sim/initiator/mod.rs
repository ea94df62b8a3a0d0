//! An iSCSI host: the project's initiator machine on a simulated network, as a lane.
//!
//! It behaves as a careful host does. A command without an answer is given up by ABORT TASK or LOGICAL
//! UNIT RESET; a connection that is lost or silent is made again with the same ISID, which reinstates the
//! session. A command whose connection was lost ends only when the new session stands: from then on the
//! target may not carry it out any more.

mod command;
mod driver;

use driver::Driver;
use env::{Answer, CoreHandle};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use units::BlockSize;
use volume::{Io, IoError, IoFuture, IoResult, Lane, Op};

/// Where and as whom to log in.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The portal.
    pub portal: SocketAddr,
    /// The target's name.
    pub target: String,
    /// Our name.
    pub name: String,
    /// Logical block of LUN 0.
    pub block_size: BlockSize,
    /// The unit says that it can unmap.
    pub unmaps: bool,
    /// Nothing on the network is ever lost for good: a task management function must be answered.
    pub strict: bool,
    /// Varies what is offered in the login, and how the host reacts.
    pub salt: u64,
}

/// What hosts found that no host should see.
pub type Complaints = Rc<RefCell<Vec<String>>>;

struct Request {
    op: Op,
    reply: oneshot::Sender<IoResult>,
}

/// A host's path to LUN 0. Dropping it ends the session.
pub struct Host {
    requests: mpsc::UnboundedSender<Request>,
}

impl Host {
    /// A host that keeps a session alive; ready once it is logged in.
    pub async fn start(core: &CoreHandle, config: HostConfig, complaints: Complaints) -> Self {
        let (requests, incoming) = mpsc::unbounded_channel();
        let (ready, logged_in) = oneshot::channel();
        let driver = Driver::new(Rc::clone(core), config, incoming, complaints, ready);
        core.spawn(Box::pin(driver.run()));
        // The driver ends only after its owner; then nobody waits here.
        drop(logged_in.await);
        Self { requests }
    }
}

impl Lane for Host {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, _) = io.into_parts();
        let (reply, answer) = oneshot::channel();
        if self.requests.send(Request { op, reply }).is_err() {
            return Answer::ready(Err(IoError::Unavailable));
        }
        Answer::wait(async move { answer.await.unwrap_or(Err(IoError::Unavailable)) })
    }
}
