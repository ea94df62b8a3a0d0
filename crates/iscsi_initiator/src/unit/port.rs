//! Logging in by one path, and looking who answers there.

use super::Unit;
use super::facts::{UnitFacts, has_port_groups};
use super::fence::Fencing;
use super::growth::{self, Growth};
use super::identity::{Difference, Identity};
use super::link::{Link, Living, Login, Seat, port_number};
use super::outcome::Outcome;
use super::probe::{Asker, NoAnswer, Why};
use super::session::{Gate, Inner, UnitSession};
use crate::login::{LoginError, connect_by};
use crate::session::Session;
use env::{CoreHandle, LocalFuture, StreamMeasures};
use iscsi::Lun;
use iscsi::initiator_side::InitiatorConfig;
use multipath::ConnectError;
use paths::stale::Nexus;
use paths::verdict::PathSays;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

/// A login with all its questions takes no longer.
pub(super) const LOGIN_MAX: Duration = Duration::from_secs(20);
/// A unit behind a session that lives already answers within this time, or is asked by a session of
/// its own.
const ASK_MAX: Duration = Duration::from_secs(2);
pub(super) const TOO_LONG: &str = "the login took too long";
/// Redirections that are followed.
const REDIRECTS_MAX: u32 = 4;
/// The port where none is named (RFC 7143 15 "IANA Considerations").
const ISCSI_PORT: u16 = 3260;

/// One path.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// Where the target listens.
    pub portal: SocketAddr,
    /// The host's address.
    pub from: Option<IpAddr>,
    /// The host's interface, where the routes alone would not choose it.
    pub interface: Option<String>,
    /// Names, ISID, credentials and offers. The ISID is this path's own, and no other session's of
    /// this host with the target.
    pub login: InitiatorConfig,
    /// The unit.
    pub lun: Lun,
    /// A command that is not answered in this time is aborted ([`COMMAND_TIMEOUT`]).
    pub command_timeout: Duration,
}

/// What is usual for [`PathConfig::command_timeout`].
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// What a path has carried since it was made.
#[derive(Debug, Default)]
pub struct Counters {
    reads: Cell<u64>,
    writes: Cell<u64>,
    read_bytes: Cell<u64>,
    written_bytes: Cell<u64>,
}

impl Counters {
    pub(super) fn carried(&self, bytes: usize, writes: bool) {
        let (ios, sum) = if writes {
            (&self.writes, &self.written_bytes)
        } else {
            (&self.reads, &self.read_bytes)
        };
        ios.set(ios.get() + 1);
        sum.set(sum.get().saturating_add(bytes as u64));
    }
}

/// A path as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkStatus {
    /// Operations that read or asked.
    pub reads: u64,
    /// Operations that changed something.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Which session it uses: units of this core that show the same number share one.
    pub link: u64,
    /// TCP segments that its sessions have sent again, for all units that share them.
    pub retransmitted: u64,
    /// What the system measures of the connection, if there is one.
    pub measured: Option<StreamMeasures>,
    /// Why the last attempt to log in failed, if none has succeeded since.
    pub error: Option<String>,
}

/// A path to a unit, for the multipath layer. Handles are cheap to clone.
#[derive(Clone)]
pub struct UnitPort(Rc<Way>);

struct Way {
    core: CoreHandle,
    config: RefCell<PathConfig>,
    unit: Rc<Unit>,
    link: RefCell<Rc<Link>>,
    number: u64,
    counters: Rc<Counters>,
    current: RefCell<Weak<Inner>>,
    error: RefCell<Option<String>>,
}

impl UnitPort {
    /// A path that has not been tried.
    #[must_use]
    pub fn new(core: &CoreHandle, config: PathConfig, unit: &Rc<Unit>) -> Self {
        Self(Rc::new(Way {
            core: Rc::clone(core),
            link: RefCell::new(Link::of(core, &config)),
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
        self.0.link.replace(Link::of(&self.0.core, &config));
    }

    /// It has a session.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        let session = self.0.current.borrow().upgrade();
        session.is_some_and(|it| !it.session.is_over() && !it.left.get())
    }

    /// As it is now.
    #[must_use]
    pub fn status(&self) -> LinkStatus {
        let counters = &self.0.counters;
        let connected = self.is_connected();
        LinkStatus {
            reads: counters.reads.get(),
            writes: counters.writes.get(),
            read_bytes: counters.read_bytes.get(),
            written_bytes: counters.written_bytes.get(),
            link: self.0.link.borrow().number(),
            retransmitted: self.0.link.borrow().retransmitted(),
            measured: self.0.link.borrow().measured().filter(|_| connected),
            error: self
                .0
                .error
                .borrow()
                .clone()
                .or(self.0.link.borrow().trouble()),
        }
    }
}

impl Way {
    async fn log_in(&self, nexus: Nexus) -> Result<Rc<Inner>, ConnectError> {
        let asked = within(&self.core, LOGIN_MAX, self.look(nexus)).await;
        let result = asked.unwrap_or_else(|| Err(ConnectError::Failed(TOO_LONG.to_owned())));
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

    async fn look(&self, nexus: Nexus) -> Result<Rc<Inner>, ConnectError> {
        let path = self.config.borrow().clone();
        let (lun, link) = (path.lun, Rc::clone(&self.link.borrow()));
        let seat = link.seat(self.number, lun).await;
        let seat = seat.map_err(ConnectError::Failed)?;
        let living = seat.join().await.map_err(ConnectError::Failed)?;
        let asker = Asker {
            session: &living.session,
            lun,
        };
        let (group, port_groups, stands_by) = self.who(&asker).await?;
        if let Some(reservation) = self.unit.reservation.as_ref().filter(|_| !stands_by) {
            let registered = reservation.join(&asker).await;
            registered.map_err(ConnectError::Failed)?;
        }
        self.unit.joined(nexus, &living.login);
        let inner = self.inner(nexus, seat, living, (group, port_groups), path);
        link.serves(lun, &inner);
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
            left: Cell::new(false),
            over: Outcome::default(),
            through: seat.number(),
            seat: RefCell::new(Some(seat)),
            lun: path.lun,
            unit: Rc::clone(&self.unit),
            group,
            port_groups,
            features: facts.features,
            limits: facts.limits,
            block: usize::try_from(block).expect("512 or 4096"),
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
            // A port that stands by need not tell the size.
            Err(Why::NoAnswer(NoAnswer::Refused(_))) if stands_by => {
                return Ok((None, has_port_groups(&inquiry), true));
            }
            Err(why) => return Err(of_why(why)),
        };
        if stands_by {
            // Nor need it tell the right one.
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
            // Another path may have told of it meanwhile, or of more.
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
        let way = Rc::clone(&self.0);
        Box::pin(async move {
            let inner = way.log_in(nexus).await?;
            let session: Rc<dyn multipath::Session> = Rc::new(UnitSession(inner));
            Ok(session)
        })
    }
}

/// Logs in, and follows the target to another portal where it asks for that.
pub(super) async fn open(
    core: &CoreHandle,
    config: &PathConfig,
) -> Result<(Session, Login), LoginError> {
    let interface = config.interface.as_deref();
    let mut portal = config.portal;
    let mut hops = 0;
    let connection = loop {
        match connect_by(core, portal, config.from, interface, &config.login).await {
            Err(LoginError::Refused {
                redirect: Some(to), ..
            }) if hops < REDIRECTS_MAX && address(&to).is_some() => {
                portal = address(&to).unwrap_or(portal);
                hops += 1;
            }
            other => break other?,
        }
    };
    let login = Login {
        isid: config.login.isid,
        tsih: connection.tsih(),
        group_tag: connection.portal_group_tag(),
        fencing: Fencing::default(),
    };
    Ok((Session::new(core, connection), login))
}

/// TargetAddress of a redirection: address and port, and perhaps a portal group tag (RFC 7143 13.8
/// "TargetAddress").
fn address(text: &str) -> Option<SocketAddr> {
    let text = text.split_once(',').map_or(text, |(address, _)| address);
    let with_port = text.parse().ok();
    with_port.or_else(|| {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        Some(SocketAddr::new(bare.parse().ok()?, ISCSI_PORT))
    })
}

/// Asks the unit behind a path for its facts, in a session of its own that ends before the answer.
///
/// # Errors
/// Why there are none, in words.
pub async fn probe(core: &CoreHandle, config: &PathConfig) -> Result<UnitFacts, String> {
    let asked = within(core, LOGIN_MAX, async {
        let (session, _) = open(core, config).await.map_err(|it| it.to_string())?;
        let asker = Asker {
            session: &session,
            lun: config.lun,
        };
        let facts = asker.facts().await.map_err(|it| it.to_string());
        session.logout().await;
        facts.map(|(facts, _)| facts)
    });
    match asked.await {
        Some(result) => result,
        None => Err(TOO_LONG.to_owned()),
    }
}

/// Asks the unit behind a path for its facts through the session that other units of the target
/// have on it; `None` where there is no such session, or it does not answer soon.
pub async fn ask_living(core: &CoreHandle, config: &PathConfig) -> Option<UnitFacts> {
    let link = Link::living(core, config)?;
    let asked = within(core, ASK_MAX, async {
        let seat = link.seat(port_number(core), config.lun).await.ok()?;
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

/// What `work` gives, if it does in time.
pub(super) async fn within<T>(
    core: &CoreHandle,
    span: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut timer = core.sleep_until(core.now().after(span));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}
