//! An iSCSI host: the project's initiator machine on a simulated network, as a lane.
//!
//! It behaves as a careful host does. A command without an answer is given up by ABORT TASK or
//! LOGICAL UNIT RESET; a connection that is lost or silent is made again with the same ISID, which
//! reinstates the session. A command whose connection was lost ends only when the new session
//! stands: from then on the target may not carry it out any more.

mod command;
mod driver;
mod job;
mod session;

use command::{Verdict, build, judge};
use env::{Answer, CoreHandle};
use iscsi::bhs::Attribute;
use iscsi::initiator_side::Completion;
use iscsi::{DigestChoice, Lun, Offer};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use units::{BlockSize, Buf};
use volume::{Io, IoError, IoFuture, IoResult, Lane, Op};

pub use job::{Job, Outcome, Seen, Wire};
pub use session::Session;

/// Where and as whom to log in.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Where the connection goes.
    pub portal: SocketAddr,
    /// The target's name.
    pub target: String,
    /// Our name.
    pub name: String,
    /// Nothing on the network is ever lost for good: a task management function must be answered.
    pub strict: bool,
    /// A session that is lost is made again; otherwise it is the host's end, and every command of
    /// it, sent or not, is lost.
    pub reconnects: bool,
    /// Varies what is offered in the login, and how the session reacts to silence.
    pub salt: u64,
}

/// Where and as whom to log in, for a host of LUN 0 only.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where the sessions go.
    pub portal: SocketAddr,
    /// The target's name.
    pub target: String,
    /// Our name.
    pub name: String,
    /// Logical block of LUN 0.
    pub block_size: BlockSize,
    /// The unit says that it can unmap.
    pub unmaps: bool,
    /// As [`SessionConfig::strict`].
    pub strict: bool,
    /// As [`SessionConfig::reconnects`].
    pub reconnects: bool,
    /// As [`SessionConfig::salt`].
    pub salt: u64,
}

/// What a host offers in its login.
pub(super) fn offer(salt: u64) -> Offer {
    let mut offer = Offer {
        initial_r2t: salt & 1 == 0,
        immediate_data: salt & 2 == 0,
        data_digest: match salt & 8 {
            0 => DigestChoice::Required,
            _ => DigestChoice::Allowed,
        },
        ..Offer::default()
    };
    if salt & 4 == 0 {
        offer.max_recv_data_segment_length = 512;
        offer.first_burst_length = 1024;
        offer.max_burst_length = 2048;
    }
    offer
}

/// What hosts found that no host should see.
pub type Complaints = Rc<RefCell<Vec<String>>>;

/// A host's path to one unit.
#[derive(Clone)]
pub struct Host {
    session: Session,
    name: String,
    complaints: Complaints,
    /// The unit.
    lun: Lun,
    block_size: BlockSize,
    unmaps: bool,
    flushes_ordered: bool,
}

impl Host {
    /// A host of LUN 0 with a session of its own; ready once it is logged in.
    pub async fn start(core: &CoreHandle, config: HostConfig, complaints: Complaints) -> Self {
        let facts = (config.block_size, config.unmaps);
        let config = SessionConfig {
            portal: config.portal,
            target: config.target,
            name: config.name,
            strict: config.strict,
            reconnects: config.reconnects,
            salt: config.salt,
        };
        let session = Session::start(core, config.clone(), Rc::clone(&complaints)).await;
        Self::new(session, &config, Lun::default(), facts, complaints)
    }

    /// Sends a command as it is, and again after each unit attention. `None` where its session was
    /// lost.
    pub async fn command(
        &self,
        cdb: [u8; 16],
        data_out: Buf,
        data_in: usize,
    ) -> Option<Completion> {
        let wire = Wire {
            lun: self.lun,
            cdb,
            attribute: Attribute::Simple,
            data_out,
            data_in,
        };
        loop {
            let outcome = self.session.send(Job::Command(wire.clone())).await;
            match outcome {
                Outcome::Ended(_) if outcome.is_attention() => {}
                Outcome::Ended(completion) => return Some(completion),
                Outcome::Aborted | Outcome::Lost | Outcome::Function(_) => return None,
            }
        }
    }

    /// A path on a session that stands.
    #[must_use]
    pub fn new(
        session: Session,
        config: &SessionConfig,
        lun: Lun,
        (block_size, unmaps): (BlockSize, bool),
        complaints: Complaints,
    ) -> Self {
        Self {
            session,
            name: config.name.clone(),
            complaints,
            lun,
            block_size,
            unmaps,
            flushes_ordered: config.salt & 16 == 0,
        }
    }

    /// Its only session, which logs in again by itself where the host is to reconnect.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// A command for `op`, as it goes onto the wire.
    #[must_use]
    pub fn wire(&self, op: &Op, attribute: Attribute) -> Wire {
        let built = build(op, self.block_size, self.unmaps);
        Wire {
            lun: self.lun,
            cdb: built.cdb,
            attribute,
            data_out: built.data_out,
            data_in: built.data_in,
        }
    }

    /// What `outcome` means for `op`; `None` where a unit attention kept it from being done.
    pub fn result(&self, op: &Op, outcome: &Outcome) -> Option<IoResult> {
        let completion = match outcome {
            Outcome::Ended(completion) => completion,
            Outcome::Aborted => return Some(Err(IoError::Aborted)),
            Outcome::Lost | Outcome::Function(_) => return Some(Err(IoError::Unavailable)),
        };
        match judge(op, completion) {
            Verdict::Ended(result) => Some(result),
            Verdict::Again => None,
            Verdict::Absurd(what) => {
                let what = format!("{}: {what}", self.name);
                self.complaints.borrow_mut().push(what);
                Some(Err(IoError::Aborted))
            }
        }
    }
}

impl Lane for Host {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, _) = io.into_parts();
        let attribute = if matches!(op, Op::Flush) && self.flushes_ordered {
            Attribute::Ordered
        } else {
            Attribute::Simple
        };
        let wire = self.wire(&op, attribute);
        let sent = self.session.send(Job::Command(wire.clone()));
        let host = self.clone();
        Answer::wait(async move {
            let mut outcome = sent.await;
            loop {
                if let Some(result) = host.result(&op, &outcome) {
                    return result;
                }
                outcome = host.session.send(Job::Command(wire.clone())).await;
            }
        })
    }
}
