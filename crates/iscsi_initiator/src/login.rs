//! From an address to a session, and what targets there are.

use crate::connection::Connection;
use crate::lost::Lost;
use env::CoreHandle;
use iscsi::LoginStatus;
use iscsi::chap::ChapAlgorithm;
use iscsi::discovery::{self, TargetRecord};
use iscsi::extension_keys::port::{ASK, PORTS, ReportedPorts, decode};
use iscsi::initiator_side::{InitiatorChap, InitiatorConfig, InitiatorEvent};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

/// A target that does not know a key of ours says so at once; one that says nothing is not waited
/// for longer.
const PORTS_TIME_MAX: Duration = Duration::from_secs(1);

/// Why there is no session.
#[derive(Debug)]
pub enum LoginError {
    /// The portal cannot be reached.
    Connect(io::Error),
    /// The target refused, or did something that we refuse.
    Refused {
        /// The status that the target gave, if it came that far.
        status: Option<LoginStatus>,
        /// What went wrong.
        reason: String,
        /// Where a redirection leads (TargetAddress).
        redirect: Option<String>,
    },
    /// The connection ended during the login.
    Lost(Lost),
}

impl LoginError {
    /// The target found something in what we said, and will find it again.
    fn is_initiator_error(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: Some(LoginStatus::InitiatorError),
                ..
            }
        )
    }

    /// The target did not take our proof of who we are.
    #[must_use]
    pub fn is_authentication(&self) -> bool {
        let status = match self {
            Self::Refused { status, .. } => *status,
            Self::Connect(_) | Self::Lost(_) => None,
        };
        matches!(
            status,
            Some(LoginStatus::InitiatorError | LoginStatus::AuthenticationFailure)
        )
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "the portal cannot be reached: {error}"),
            Self::Refused { reason, .. } => write!(f, "no login: {reason}"),
            Self::Lost(lost) => write!(f, "no login: {lost}"),
        }
    }
}

impl std::error::Error for LoginError {}

/// Connects to a portal, from the local address `from` where one is given, and logs in. Where the
/// configuration asks the target to prove itself, the challenge is drawn here.
///
/// # Errors
/// Why there is no session.
pub async fn connect(
    core: &CoreHandle,
    portal: SocketAddr,
    from: Option<IpAddr>,
    config: &InitiatorConfig,
) -> Result<Connection, LoginError> {
    connect_by(core, portal, from, None, config).await
}

/// The same by an interface, whatever the routes say; for hosts with several ports in one network.
///
/// # Errors
/// Why there is no session.
pub async fn connect_by(
    core: &CoreHandle,
    portal: SocketAddr,
    from: Option<IpAddr>,
    interface: Option<&str>,
    config: &InitiatorConfig,
) -> Result<Connection, LoginError> {
    let refused = match attempt(core, portal, from, interface, config.clone()).await {
        Err(error) if error.is_authentication() => error,
        other => return other,
    };
    // Some targets take number 7 for SHA-1 (the registry has SHA-256 there), choose it, and fail:
    // MD5 means the same to all.
    let many = |chap: &&mut InitiatorChap| chap.algorithms.len() > 1;
    let mut again = config.clone();
    let chap = again.chap.as_mut().filter(many);
    // A target that is hung up by a key that it does not know gets none.
    let keyed = refused.is_initiator_error() && again.nic.take().is_some();
    if chap.is_none() && !keyed {
        return Err(refused);
    }
    if let Some(chap) = chap {
        chap.algorithms = vec![ChapAlgorithm::Md5];
    }
    attempt(core, portal, from, interface, again).await
}

async fn attempt(
    core: &CoreHandle,
    portal: SocketAddr,
    from: Option<IpAddr>,
    interface: Option<&str>,
    mut config: InitiatorConfig,
) -> Result<Connection, LoginError> {
    let proof = config.chap.as_mut().and_then(|chap| chap.target.as_mut());
    if let Some(proof) = proof {
        core.fill_random(&mut proof.challenge);
        core.fill_random(std::slice::from_mut(&mut proof.identifier));
    }
    let stream = core.net().connect_by(portal, from, interface).await;
    let stream = stream.map_err(LoginError::Connect)?;
    let mut connection = Connection::begin(core, stream, &config);
    loop {
        let event = poll_fn(|cx| connection.poll_event(cx)).await;
        match event.map_err(LoginError::Lost)? {
            InitiatorEvent::LoggedIn { .. } => return Ok(connection),
            InitiatorEvent::LoginFailed {
                status,
                reason,
                redirect,
            } => {
                return Err(LoginError::Refused {
                    status,
                    reason,
                    redirect,
                });
            }
            InitiatorEvent::Response { .. }
            | InitiatorEvent::TaskManagement { .. }
            | InitiatorEvent::Text { .. }
            | InitiatorEvent::LoggedOut { .. }
            | InitiatorEvent::Rejected { .. }
            | InitiatorEvent::Async { .. }
            | InitiatorEvent::Pong { .. }
            | InitiatorEvent::Closed(_) => {}
        }
    }
}

/// Asks a portal in a discovery session of its own what targets there are; `config` names no
/// target.
///
/// # Errors
/// Why there is no answer.
pub async fn discover(
    core: &CoreHandle,
    portal: SocketAddr,
    config: &InitiatorConfig,
) -> Result<Vec<TargetRecord>, LoginError> {
    discover_by(core, portal, None, config).await
}

/// The same from a local address.
///
/// # Errors
/// Why there is no answer.
pub async fn discover_by(
    core: &CoreHandle,
    portal: SocketAddr,
    from: Option<IpAddr>,
    config: &InitiatorConfig,
) -> Result<Vec<TargetRecord>, LoginError> {
    let mut connection = connect(core, portal, from, config).await?;
    let targets = send_targets(&mut connection).await?;
    part(connection).await;
    Ok(targets)
}

/// As [`discover_by`], and what the target reports of the ports behind its portals; `None`: it is
/// no target of ours.
///
/// # Errors
/// Why there is no answer to SendTargets. What comes after it, or does not, is no error.
pub async fn discover_ports(
    core: &CoreHandle,
    portal: SocketAddr,
    from: Option<IpAddr>,
    config: &InitiatorConfig,
) -> Result<(Vec<TargetRecord>, Option<ReportedPorts>), LoginError> {
    let mut connection = connect(core, portal, from, config).await?;
    let targets = send_targets(&mut connection).await?;
    let reported = ports(core, &mut connection).await;
    // A target that is hung up by a key that it does not know is not waited for.
    if reported.is_some() {
        part(connection).await;
    }
    Ok((targets, reported))
}

/// What the target reports of the ports behind its portals, in a session as `config` says; `None`:
/// it is no target of ours.
///
/// # Errors
/// Why there is no session.
pub async fn ask_ports(
    core: &CoreHandle,
    portal: SocketAddr,
    from: Option<IpAddr>,
    config: &InitiatorConfig,
) -> Result<Option<ReportedPorts>, LoginError> {
    let mut connection = connect(core, portal, from, config).await?;
    let reported = ports(core, &mut connection).await;
    if reported.is_some() {
        part(connection).await;
    }
    Ok(reported)
}

async fn send_targets(connection: &mut Connection) -> Result<Vec<TargetRecord>, LoginError> {
    let asked = connection.send_targets("All");
    let text = loop {
        let event = poll_fn(|cx| connection.poll_event(cx)).await;
        if let InitiatorEvent::Text { itt, text } = event.map_err(LoginError::Lost)?
            && itt == asked
        {
            break text;
        }
    };
    discovery::decode(&text).map_err(|violation| LoginError::Refused {
        status: None,
        reason: format!("the answer to SendTargets cannot be read: {violation:?}"),
        redirect: None,
    })
}

async fn ports(core: &CoreHandle, connection: &mut Connection) -> Option<ReportedPorts> {
    let asked = connection.text(&[(PORTS, ASK)]);
    let mut late = core.sleep_until(core.now().after(PORTS_TIME_MAX));
    let text = loop {
        let event = poll_fn(|cx| match connection.poll_event(cx) {
            Poll::Ready(event) => Poll::Ready(event.ok()),
            Poll::Pending => late.as_mut().poll(cx).map(|()| None),
        });
        match event.await? {
            InitiatorEvent::Text { itt, text } if itt == asked => break text,
            InitiatorEvent::Rejected { .. } | InitiatorEvent::Closed(_) => return None,
            InitiatorEvent::LoggedIn { .. }
            | InitiatorEvent::LoginFailed { .. }
            | InitiatorEvent::Response { .. }
            | InitiatorEvent::TaskManagement { .. }
            | InitiatorEvent::Text { .. }
            | InitiatorEvent::LoggedOut { .. }
            | InitiatorEvent::Async { .. }
            | InitiatorEvent::Pong { .. } => {}
        }
    };
    decode(&text)
}

/// Logs out. It ends by the answer, or otherwise: what was asked for is here.
async fn part(mut connection: Connection) {
    connection.logout();
    while poll_fn(|cx| connection.poll_event(cx)).await.is_ok() {}
}
