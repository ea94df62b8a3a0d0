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
use iscsi::initiator::Completion;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use units::{BlockSize, Buf};
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
    /// A session that is lost is made again; otherwise it is the host's end, and every command of it, sent
    /// or not, ends as `Unavailable`.
    pub reconnects: bool,
    /// Varies what is offered in the login, and how the host reacts.
    pub salt: u64,
}

/// What hosts found that no host should see.
pub type Complaints = Rc<RefCell<Vec<String>>>;

enum Request {
    /// An operation of the waist.
    Op {
        op: Op,
        reply: oneshot::Sender<IoResult>,
    },
    /// A command as it is.
    Raw {
        cdb: [u8; 16],
        data_out: Buf,
        data_in_bytes: usize,
        reply: oneshot::Sender<Completion>,
    },
}

impl Request {
    /// Ends it without an answer of the target.
    fn fail(self, error: IoError) {
        match self {
            // Nobody may wait any more.
            Self::Op { reply, .. } => drop(reply.send(Err(error))),
            // Whoever waits sees that no answer comes.
            Self::Raw { reply, .. } => drop(reply),
        }
    }
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

    /// Sends a command as it is, and again after each unit attention. `None` where its session was lost.
    pub async fn command(
        &self,
        cdb: [u8; 16],
        data_out: Buf,
        data_in_bytes: usize,
    ) -> Option<Completion> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Raw {
            cdb,
            data_out,
            data_in_bytes,
            reply,
        };
        self.requests.send(request).ok()?;
        answer.await.ok()
    }
}

impl Lane for Host {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, _) = io.into_parts();
        let (reply, answer) = oneshot::channel();
        if self.requests.send(Request::Op { op, reply }).is_err() {
            return Answer::ready(Err(IoError::Unavailable));
        }
        Answer::wait(async move { answer.await.unwrap_or(Err(IoError::Unavailable)) })
    }
}
