//! Where a target listens: the portals of the URL, or what SendTargets answers.

use crate::error::HostError;
use crate::url::{PORT, Url};
use env::CoreHandle;
use initiator::{LoginError, discover_by};
use iscsi::discovery::TargetRecord;
use iscsi::initiator::InitiatorConfig;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// A portal takes no longer to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A portal of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Portal {
    pub(crate) address: SocketAddr,
    /// Target portal group tag; 1 where nobody told.
    pub(crate) tag: u16,
}

/// Portals, and what the operator should know of how they were found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Found {
    pub(crate) portals: Vec<Portal>,
    pub(crate) notices: Vec<String>,
}

/// How to ask.
pub(crate) struct Ask<'a> {
    pub(crate) url: &'a Url,
    /// The URL's hosts as addresses.
    pub(crate) given: &'a [SocketAddr],
    /// Addresses of this host to ask from; empty: any.
    pub(crate) from: &'a [IpAddr],
    /// A login without a target.
    pub(crate) login: &'a InitiatorConfig,
}

/// The portals that the URL names, or with one host those that the target tells.
pub(crate) async fn portals(
    core: &CoreHandle,
    ask: &Ask<'_>,
    discover: bool,
) -> Result<Found, HostError> {
    let given = || {
        let portals = ask.given.iter();
        portals
            .map(|address| Portal {
                address: *address,
                tag: 1,
            })
            .collect()
    };
    if !discover || ask.url.hosts.len() > 1 {
        return Ok(Found {
            portals: given(),
            notices: Vec::new(),
        });
    }
    let mut why = Vec::new();
    for at in ask.given {
        match send_targets(core, ask, *at).await {
            Ok(targets) => return of_target(ask, *at, &targets),
            Err(error) => why.push(format!("{at}: {error}")),
        }
    }
    // A target without discovery still has the portal that it was asked at.
    Ok(Found {
        portals: given(),
        notices: vec![format!(
            "discovery failed, only the portals of the URL are used: {}",
            why.join("; ")
        )],
    })
}

async fn send_targets(
    core: &CoreHandle,
    ask: &Ask<'_>,
    at: SocketAddr,
) -> Result<Vec<TargetRecord>, String> {
    let same_family = ask.from.iter().filter(|it| it.is_ipv4() == at.is_ipv4());
    let mut sources: Vec<Option<IpAddr>> = same_family.map(|it| Some(*it)).collect();
    if sources.is_empty() {
        sources.push(None);
    }
    let mut last = String::new();
    for from in sources {
        let mut login = ask.login.clone();
        let credentials = login.chap.take();
        let mut asked = in_time(core, discover_by(core, at, from, &login)).await;
        // Discovery mostly is open; where it is not, the target's credentials may do.
        if credentials.is_some() && matches!(asked, Some(Err(LoginError::Refused { .. }))) {
            login.chap = credentials;
            asked = in_time(core, discover_by(core, at, from, &login)).await;
        }
        match asked {
            Some(Ok(targets)) => return Ok(targets),
            Some(Err(error)) => last = error.to_string(),
            None => last = "the portal does not answer".to_owned(),
        }
    }
    Err(last)
}

fn of_target(ask: &Ask<'_>, at: SocketAddr, targets: &[TargetRecord]) -> Result<Found, HostError> {
    let Some(target) = targets.iter().find(|it| it.name == ask.url.iqn) else {
        let mut names: Vec<&str> = targets.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        let shown = match names.as_slice() {
            [] => "no target at all for this initiator".to_owned(),
            names => names.join(", "),
        };
        return Err(HostError::not_found(
            format!("the portal {at} has no target {}", ask.url.iqn),
            format!("it has {shown}; targets show themselves only to initiators that have a grant"),
        ));
    };
    let mut found = Found::default();
    for portal in &target.addresses {
        match address(&portal.address) {
            Some(address) => {
                let ip = address.ip();
                // A target that listens everywhere means the address that it was asked at.
                let ip = if ip.is_unspecified() { at.ip() } else { ip };
                let portal = Portal {
                    address: SocketAddr::new(ip, address.port()),
                    tag: portal.portal_group_tag,
                };
                let known = found.portals.iter().any(|it| it.address == portal.address);
                if !known {
                    found.portals.push(portal);
                }
            }
            None => found.notices.push(format!(
                "the target tells a portal that is no address: {}",
                portal.address
            )),
        }
    }
    if found.portals.is_empty() {
        // RFC 7143 appendix C: no address means the one that was asked.
        found.portals.push(Portal {
            address: at,
            tag: 1,
        });
    }
    Ok(found)
}

/// `192.0.2.1:3260`, `[2001:db8::1]:3260`, either without a port.
fn address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        Some(SocketAddr::new(bare.parse().ok()?, PORT))
    })
}

async fn in_time<T>(core: &CoreHandle, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut timer = core.sleep_until(core.now().after(ANSWER_MAX));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}
