//! Logging in by one path, and finding out who answers there.

use super::Unit;
use super::facts::{UnitFacts, has_port_groups};
use super::growth::{self, Growth};
use super::identity::{Difference, Identity};
use super::login::Living;
use super::open::{LOGIN_MAX, TOO_LONG, open};
use super::path::{Counters, PathConfig};
use super::probe::{Asker, NoAnswer, Why};
use super::session::{Abilities, Gate, Inner, Membership, UnitSession};
use super::shared_session::{Seat, SharedSession, User, port_number};
use super::within::within;
use crate::login::LoginError;
use env::{CoreHandle, LocalFuture, StreamMeasures};
use multipath::ConnectError;
use paths::stale::Nexus;
use paths::verdict::PathSays;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A unit behind a session that lives already answers within this time, or is asked by a session of
/// its own.
const ASK_MAX: Duration = Duration::from_secs(2);
/// A path as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortStatus {
    /// Operations that read or asked.
    pub reads: u64,
    /// Operations that changed something.
    pub writes: u64,
    /// Payload that came over this port, in bytes.
    pub read_bytes: u64,
    /// Payload that went over this port, in bytes.
    pub written_bytes: u64,
    /// Which session it uses: units of this core that show the same number share one.
    pub session: u64,
    /// TCP segments that its sessions have sent again, for all units that share them.
    pub retransmitted: u64,
    /// What the system measures of the connection, if there is one.
    pub measured: Option<StreamMeasures>,
    /// Why the last attempt to log in failed, if none has succeeded since.
    pub error: Option<String>,
}

/// A path to a unit, for the multipath layer. Handles are cheap to clone.
#[derive(Clone)]
pub struct UnitPort(Rc<PortInner>);

struct PortInner {
    core: CoreHandle,
    config: RefCell<PathConfig>,
    unit: Rc<Unit>,
    shared: RefCell<Rc<SharedSession>>,
    number: u64,
    counters: Rc<Counters>,
    current: RefCell<Weak<Inner>>,
    error: RefCell<Option<String>>,
}

impl UnitPort {
    /// A path that has not been tried.
    #[must_use]
    pub fn new(core: &CoreHandle, config: PathConfig, unit: &Rc<Unit>) -> Self {
        Self(Rc::new(PortInner {
            core: Rc::clone(core),
            shared: RefCell::new(SharedSession::of(core, &config)),
            number: port_number(core),
            config: RefCell::new(config),
            unit: Rc::clone(unit),
            counters: Rc::default(),
            current: RefCell::default(),
            error: RefCell::default(),
        }))
    }

    /// The host's end of the path has another address: its next login comes from there, with the
    /// ISID that it has, and so ends what the session before had left.
    pub fn move_to(&self, from: IpAddr, interface: Option<String>) {
        let mut config = self.0.config.borrow_mut();
        (config.from, config.interface) = (Some(from), interface);
        self.0
            .shared
            .replace(SharedSession::of(&self.0.core, &config));
    }

    /// It has a session.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        let session = self.0.current.borrow().upgrade();
        session.is_some_and(|it| !it.session.is_over() && !it.membership.left.get())
    }

    /// As it is now.
    #[must_use]
    pub fn status(&self) -> PortStatus {
        let counters = &self.0.counters;
        let connected = self.is_connected();
        PortStatus {
            reads: counters.reads.get(),
            writes: counters.writes.get(),
            read_bytes: counters.read_bytes.get(),
            written_bytes: counters.written_bytes.get(),
            session: self.0.shared.borrow().number(),
            retransmitted: self.0.shared.borrow().retransmitted(),
            measured: self.0.shared.borrow().measured().filter(|_| connected),
            error: self
                .0
                .error
                .borrow()
                .clone()
                .or(self.0.shared.borrow().trouble()),
        }
    }
}

impl PortInner {
    async fn log_in(&self, nexus: Nexus) -> Result<Rc<Inner>, ConnectError> {
        let asked = within(&self.core, LOGIN_MAX, self.join(nexus)).await;
        let result = asked.unwrap_or_else(|| Err(ConnectError::Silent(TOO_LONG.to_owned())));
        match &result {
            Ok(inner) => {
                self.current.replace(Rc::downgrade(inner));
                self.error.replace(None);
            }
            Err(error) => {
                self.error.replace(Some(error.to_string()));
            }
        }
        result
    }

    async fn join(&self, nexus: Nexus) -> Result<Rc<Inner>, ConnectError> {
        let path = self.config.borrow().clone();
        let (lun, shared) = (path.lun, Rc::clone(&self.shared.borrow()));
        let seat = shared.seat(self.number, lun).await?;
        let living = seat.join().await?;
        let asker = Asker {
            session: &living.session,
            lun,
        };
        let (group, port_groups, stands_by) = self.who(&asker).await?;
        if let Some(reservation) = self.unit.reservation.as_ref().filter(|_| !stands_by) {
            let registered = reservation.join(&asker).await;
            registered.map_err(|no| unregistered(&no))?;
        }
        self.unit.joined(nexus, &living.login);
        let inner = self.inner(nexus, seat, living, (group, port_groups), path);
        let user: Rc<dyn User> = inner.clone();
        shared.serves(lun, Rc::downgrade(&user));
        self.unit.lives(&inner);
        Ok(inner)
    }

    fn inner(
        &self,
        nexus: Nexus,
        seat: Seat,
        living: Living,
        (group, port_groups): (Option<u16>, bool),
        path: PathConfig,
    ) -> Rc<Inner> {
        let facts = self.unit.facts.borrow();
        let block = facts.identity.block_size.bytes();
        Rc::new(Inner {
            core: Rc::clone(&self.core),
            session: living.session,
            login: living.login,
            nexus,
            membership: Membership::new(seat),
            lun: path.lun,
            unit: Rc::clone(&self.unit),
            abilities: Abilities {
                group,
                port_groups,
                features: facts.features,
                limits: facts.limits,
                block: usize::try_from(block).expect("512 or 4096"),
            },
            counters: Rc::clone(&self.counters),
            gate: Gate::default(),
            questioned: Cell::new(false),
            quicks: RefCell::default(),
            path,
        })
    }

    /// Whether it is our unit: the port's group, whether it reports groups, and whether it stands
    /// by.
    async fn who(&self, asker: &Asker<'_>) -> Result<(Option<u16>, bool, bool), ConnectError> {
        let inquiry = asker.inquiry().await.map_err(of_why)?;
        let refusal = asker.settle().await.map_err(|it| of_why(it.into()))?;
        let stands_by = refusal.is_some_and(|it| {
            matches!(it.verdict.path, PathSays::NotServing | PathSays::Transition)
        });
        let (mut identity, group) = match asker.identity().await {
            Ok((identity, _, group)) => (identity, group),
            // A port that stands by need not report the size.
            Err(Why::NoAnswer(NoAnswer::Refused(_))) if stands_by => {
                return Ok((None, has_port_groups(&inquiry), true));
            }
            Err(why) => return Err(of_why(why)),
        };
        if stands_by {
            // Nor need it report the right one.
            identity.block_count = self.unit.facts.borrow().identity.block_count;
        }
        self.compare(&identity).await?;
        Ok((group, has_port_groups(&inquiry), stands_by))
    }

    /// Whether this is our unit, which may have grown.
    async fn compare(&self, here: &Identity) -> Result<(), ConnectError> {
        let Err(difference) = self.unit.check(here, false) else {
            return Ok(());
        };
        let grown = match &difference {
            Difference::Size { here, known } if here > known => {
                growth::judge(&self.core, &self.unit, self.number, *here).await
            }
            Difference::Size { .. } | Difference::Unit(_) => Growth::Denied,
        };
        match grown {
            // Another path may have announced it meanwhile, or of more.
            Growth::Agreed => self
                .unit
                .check(here, true)
                .map_err(|it| ConnectError::OtherIdentity(it.to_string())),
            Growth::Open => Err(ConnectError::Failed(format!(
                "{difference}: nothing is sent there until the other paths have shown whether the unit has grown"
            ))),
            Growth::Denied => Err(ConnectError::OtherIdentity(difference.to_string())),
        }
    }
}

fn unregistered(no: &NoAnswer) -> ConnectError {
    let why = format!("the reservation key cannot be registered: {no}");
    match no {
        NoAnswer::Refused(_) => ConnectError::Reservation(why),
        NoAnswer::Lost(_) => ConnectError::Failed(why),
    }
}

impl From<LoginError> for ConnectError {
    fn from(error: LoginError) -> Self {
        let why = error.to_string();
        match error {
            LoginError::Connect(_) => Self::Silent(why),
            LoginError::Refused { .. } => Self::Refused(why),
            LoginError::Lost(_) => Self::Failed(why),
        }
    }
}

fn of_why(why: Why) -> ConnectError {
    match why {
        Why::NoAnswer(_) | Why::Nothing(_) => ConnectError::Failed(why.to_string()),
        Why::Unfit(why) => ConnectError::OtherIdentity(why),
    }
}

impl multipath::Port for UnitPort {
    fn connect(
        &self,
        nexus: Nexus,
    ) -> LocalFuture<Result<Rc<dyn multipath::Session>, ConnectError>> {
        let path = Rc::clone(&self.0);
        Box::pin(async move {
            let inner = path.log_in(nexus).await?;
            let session: Rc<dyn multipath::Session> = Rc::new(UnitSession(inner));
            Ok(session)
        })
    }
}

/// Why the unit behind a path has not said what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeError {
    /// Nothing came back from the portal, in words: the fault is before the target's own checks.
    Silent(String),
    /// The target answered, and there is no unit for us behind it, in words.
    Refused(String),
    /// The target answered, and does not take the proof of who we are, in words.
    Unproved(String),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(why) | Self::Refused(why) | Self::Unproved(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ProbeError {}

impl From<ProbeError> for String {
    fn from(error: ProbeError) -> Self {
        error.to_string()
    }
}

impl From<LoginError> for ProbeError {
    fn from(error: LoginError) -> Self {
        let why = error.to_string();
        match error {
            _ if error.is_authentication() => Self::Unproved(why),
            LoginError::Connect(_) => Self::Silent(why),
            LoginError::Refused { .. } | LoginError::Lost(_) => Self::Refused(why),
        }
    }
}

/// Asks the unit behind a path for its facts, in a session of its own that ends before the answer.
///
/// # Errors
/// Why there are none.
pub async fn probe(core: &CoreHandle, config: &PathConfig) -> Result<UnitFacts, ProbeError> {
    let asked = within(core, LOGIN_MAX, async {
        let (session, _) = open(core, config).await?;
        let asker = Asker {
            session: &session,
            lun: config.lun,
        };
        let facts = asker.facts().await;
        session.logout().await;
        let (facts, _) = facts.map_err(|why| ProbeError::Refused(why.to_string()))?;
        Ok(facts)
    });
    match asked.await {
        Some(result) => result,
        None => Err(ProbeError::Silent(TOO_LONG.to_owned())),
    }
}

/// Asks the unit behind a path for its facts through the session that other units of the target
/// have on it; `None` where there is no such session, or it does not answer soon.
pub async fn ask_living(core: &CoreHandle, config: &PathConfig) -> Option<UnitFacts> {
    let shared = SharedSession::living(core, config)?;
    let asked = within(core, ASK_MAX, async {
        let seat = shared.seat(port_number(core), config.lun).await.ok()?;
        let living = seat.join().await.ok()?;
        let asker = Asker {
            session: &living.session,
            lun: config.lun,
        };
        let (facts, _group) = asker.facts().await.ok()?;
        Some(facts)
    });
    asked.await.flatten()
}

#[cfg(test)]
mod test {
    use super::*;
    use std::io;

    #[test]
    fn a_login_that_is_refused_differs_from_a_portal_that_nobody_reaches() {
        let refused = LoginError::Refused {
            status: Some(iscsi::LoginStatus::AuthenticationFailure),
            reason: "authentication failure".to_owned(),
            redirect: None,
        };
        assert!(matches!(refused.into(), ConnectError::Refused(_)));
        let silent = LoginError::Connect(io::ErrorKind::ConnectionRefused.into());
        assert!(matches!(silent.into(), ConnectError::Silent(_)));
        let lost = ConnectError::from(LoginError::Lost(crate::lost::Lost::PeerClosed));
        assert!(matches!(lost, ConnectError::Failed(_)), "{lost}");
        assert!(lost.to_string().starts_with("no session: "), "{lost}");
    }
}
