//! One volume over several paths to it: no I/O error while a path lives, and no stale write ever.
//!
//! ```text
//!            Io
//!             |
//!        Multipath  ---- paths::policy   which path
//!             |     ---- paths::stale    may it be sent, again, acknowledged
//!             |     ---- paths::verdict  what an answer asks for
//!             |     ---- paths::health   one for each path
//!     Session Session ...                one each; the initiator's, or memory with faults
//! ```
//!
//! **Contract.** That of the waist, with stricter order: mutations that overlap go one after the
//! other. An operation is answered with an error only if the unit itself says so, or if no path has
//! lived for `no_path_timeout`; then nobody knows whether it was executed. Everything lives on one
//! core: one lane is the volume's only one, because the pending table that keeps stale writes out
//! has to know every write of this host. A lane that is dropped ends its sessions and answers
//! nobody any more.
//!
//! A [`Port`] logs in with the path's own ISID, which reinstates the session before, and returns
//! only when the target has ended that session's tasks; it checks identity and size before it
//! returns.

mod command;
mod cut;
mod driver;
mod engine;
mod fence;
mod flight;
mod gauge;
mod marginal;
mod pending;
mod pieces;
mod places;
mod planned;
mod planning;
mod route;
mod service;
mod sessions;
mod straight;
#[cfg(test)]
mod test;
#[cfg(test)]
mod test_flight;
#[cfg(test)]
mod test_marginal;
#[cfg(test)]
mod test_moved;
mod wait;
#[cfg(test)]
mod wires;

pub use gauge::Segments;

use engine::Engine;
use env::{Answer, CoreHandle, LocalFuture};
use paths::health::{AccessState, Seen, State, Timing, Wanted};
use paths::plan::PlanMonitor;
use paths::policy::{Policy, Settings, Use};
use paths::stale::{Mode, Nexus, Sharing};
use paths::verdict::Verdict;
use paths::{Facts, PathName, Plan};
use planned::Planned;
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use units::{ByteCount, Now};
use volume::{Io, IoError, IoFuture, IoResult, Lane, Shape};

/// How an operation on a session ended.
#[derive(Debug)]
pub enum Ended {
    /// With an answer for whoever asked: success, or an error that is the same on every path.
    Done(IoResult),
    /// With an answer that asks for something else, by [`paths::verdict`]'s table; the error is
    /// what is answered if that leads nowhere.
    Again(Verdict, IoError),
    /// With the session.
    Lost {
        /// Any byte of it may have left this host.
        sent: bool,
    },
}

/// An operation that a session was given.
pub enum Begun {
    /// It has ended.
    Ended(Ended),
    /// It is under way, by this number.
    Numbered(usize),
    /// It goes on when it is polled.
    Waiting(LocalFuture<Ended>),
}

/// Why a path cannot be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// Nothing can be reached there, or nothing comes back in time, in words.
    Silent(String),
    /// The target does not let this host in, in words.
    Refused(String),
    /// It does not take this host's reservation key, in words.
    Reservation(String),
    /// It failed in another way, in words; another attempt may not.
    Failed(String),
    /// Another unit answers there, or it has another size: no further attempt.
    OtherIdentity(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(why) | Self::Refused(why) | Self::Reservation(why) | Self::Failed(why) => {
                write!(f, "no session: {why}")
            }
            Self::OtherIdentity(why) => write!(f, "another unit answers: {why}"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// One path to the unit.
pub trait Port {
    /// Logs in; `nexus` names the session from then on.
    fn connect(&self, nexus: Nexus) -> LocalFuture<Result<Rc<dyn Session>, ConnectError>>;
}

/// One session.
pub trait Session {
    /// Starts an operation. It always ends: by an answer, or with the session.
    fn submit(&self, io: Io) -> Answer<Ended>;

    /// The same without a future where it can do without: then the operation has begun, and
    /// [`Session::poll_numbered`] asks for its end. The operation stays with whoever asks, who may
    /// have to send it again; a read has no memory of its own to be filled (`into`).
    fn begin(&self, io: &Io) -> Begun {
        match self.submit(io.fork()).now() {
            Ok(ended) => Begun::Ended(ended),
            Err(future) => Begun::Waiting(future),
        }
    }

    /// How an operation ended that [`Session::begin`] has numbered. It is asked until it is ready,
    /// and never again; the session does not call back meanwhile.
    fn poll_numbered(&self, number: usize, cx: &mut Context<'_>) -> Poll<Ended> {
        let _ = (number, cx);
        Poll::Pending
    }

    /// Sends a NOP-Out; completes when it is answered, true, or with the session, false.
    fn ping(&self) -> LocalFuture<bool>;

    /// Asks the target to fence another session of this host; true when nothing of it is executed
    /// any more. False where the target cannot.
    fn fence(&self, nexus: Nexus) -> LocalFuture<bool>;

    /// The access state of the unit through this port; `None` with the session.
    fn access(&self) -> LocalFuture<Option<AccessState>>;

    /// When bytes came last.
    fn received_at(&self) -> Now;

    /// What the system counts of its TCP segments; `None` where nobody counts.
    fn segments(&self) -> Option<Segments> {
        None
    }

    /// Completes when the session is over.
    fn ended(&self) -> LocalFuture<()>;

    /// Destroys the connection, for every unit that uses it: every operation ends now.
    fn close(&self);

    /// Ends this unit's use of the session, which other units may go on with: every operation ends
    /// now. What the target still has of them is aborted, and neither [`Session::fence`] nor the
    /// port's next login succeeds before that is answered.
    fn leave(&self) {
        self.close();
    }
}

/// A path and what the policy should know of it.
pub struct PathSpec {
    /// The path.
    pub port: Rc<dyn Port>,
    /// Ports, speeds, rank and share; `usage` is the layer's.
    pub settings: Settings,
    /// What the plan wants of it.
    pub wanted: Wanted,
}

/// How the paths are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Which path takes a command.
    pub policy: Policy,
    /// Who else uses the unit.
    pub sharing: Sharing,
    /// What has to show that a lost session is at rest.
    pub mode: Mode,
    /// How long a target may go on with what a lost session sent ([`Mode::Timed`]).
    pub quiesce: Duration,
    /// Times of the paths' health.
    pub timing: Timing,
    /// How long operations wait for a path before they fail.
    pub no_path_timeout: Duration,
    /// Reads and writes of two such pieces or more are cut into them, each by the policy's choice;
    /// 0: never.
    pub piece: ByteCount,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            sharing: Sharing::default(),
            mode: Mode::default(),
            quiesce: Duration::from_secs(30),
            timing: Timing::default(),
            no_path_timeout: Duration::from_secs(60),
            piece: ByteCount(256 << 10),
        }
    }
}

/// One path as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStatus {
    /// Where it stands.
    pub state: State,
    /// What the plan wants of it.
    pub wanted: Wanted,
    /// Whether commands take it now.
    pub usage: Use,
    /// It works badly.
    pub marginal: bool,
    /// Operations in flight on it.
    pub in_flight: u32,
    /// Their bytes.
    pub bytes_in_flight: u64,
    /// Operations that have ended on it, of those whose time was taken (of a volume's only path one
    /// in sixteen), and the time that they took together.
    pub ended: (u64, Duration),
}

/// The lane over several paths.
pub struct Multipath(Rc<Engine>);

impl Multipath {
    /// Starts to log in everywhere and returns at once: operations wait for the first path.
    /// `shape`: the facts, which every path is to confirm.
    #[must_use]
    pub fn new(core: &CoreHandle, shape: Shape, config: Config, paths: Vec<PathSpec>) -> Self {
        Self(Engine::start(core, shape, config, paths, None))
    }

    /// The same with the planner behind it, which says from then on what is wanted of each path;
    /// `wanted` of the specs does not count. A path that the planner's facts do not know stays
    /// cold.
    #[must_use]
    pub fn planned(
        core: &CoreHandle,
        shape: Shape,
        config: Config,
        planner: PlanMonitor,
        paths: Vec<(PathName, PathSpec)>,
    ) -> Self {
        let (names, mut specs): (Vec<PathName>, Vec<PathSpec>) = paths.into_iter().unzip();
        let planned = Planned { planner, names };
        for (path, spec) in specs.iter_mut().enumerate() {
            spec.wanted = planned.wanted(path);
        }
        Self(Engine::start(core, shape, config, specs, Some(planned)))
    }

    /// The paths that the plan wants to carry I/O now; empty without a planner.
    #[must_use]
    pub fn active(&self) -> Vec<PathName> {
        let planned = self.0.planned.borrow();
        planned
            .as_ref()
            .map_or_else(Vec::new, |it| it.planner.active().to_vec())
    }

    /// The plan in force; `None` without a planner.
    #[must_use]
    pub fn plan(&self) -> Option<Plan> {
        let planned = self.0.planned.borrow();
        planned.as_ref().map(|it| it.planner.plan().clone())
    }

    /// Reports to the planner what its ports are now.
    pub fn set_facts(&self, facts: Facts) {
        self.0.plan_facts(facts);
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.0.state.borrow().selector.policy()
    }

    /// Another policy from the next operation on.
    pub fn set_policy(&self, policy: Policy) {
        self.0.set_policy(policy);
    }

    /// What the plan wants of a path now; the number is its place in the list that the layer was
    /// made with.
    pub fn want(&self, path: usize, wanted: Wanted) {
        self.0.want(path, wanted);
    }

    /// The host's own link of a path went down, or came up.
    pub fn link(&self, path: usize, up: bool) {
        self.0.link(path, up);
    }

    /// A path more; its place is the next number. With a planner it stays cold until
    /// [`Multipath::set_facts`] says of its ports.
    pub fn add(&self, name: PathName, spec: PathSpec) {
        self.0.add(name, spec);
    }

    /// The administrator lets a path out of quarantine: it logs in, and is probed like any
    /// other. False for one that is in none.
    #[must_use]
    pub fn release(&self, path: usize) -> bool {
        let status = self.0.status();
        let held = status
            .get(path)
            .is_some_and(|it| it.state == State::Quarantined);
        if held {
            self.0.see(path, Seen::Enable);
        }
        held
    }

    /// All paths as they are now.
    #[must_use]
    pub fn status(&self) -> Vec<PathStatus> {
        self.0.status()
    }
}

impl Lane for Multipath {
    fn submit(&self, io: Io) -> IoFuture {
        self.0.submit(io)
    }
}

impl Drop for Multipath {
    fn drop(&mut self) {
        self.0.close();
    }
}
