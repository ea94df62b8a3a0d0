//! Where a target listens: the portals of the URL, or what SendTargets answers; and what a target
//! of ours reports of the ports behind its portals, in the same discovery session, or in one of its
//! own where nothing else is to be discovered.

use crate::error::HostError;
use crate::grant;
use crate::url::{PORT, Url};
use env::CoreHandle;
use iscsi::Isid;
use iscsi::discovery::TargetRecord;
use iscsi::extension_keys::port::{PortRecord, ReportedPorts};
use iscsi::initiator_side::InitiatorConfig;
use iscsi_initiator::{LoginError, ask_ports, discover_ports};
use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// A portal takes no longer to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// What only makes a plan better is not waited for longer.
const FACTS_MAX: Duration = Duration::from_secs(1);

/// A portal of the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Portal {
    pub(crate) address: SocketAddr,
    /// Target portal group tag; 1 where nobody reported it.
    pub(crate) tag: u16,
    /// What the target reports of the port behind it.
    pub(crate) reported: PortRecord,
}

impl Portal {
    fn new(address: SocketAddr, tag: u16) -> Self {
        Self {
            address,
            tag,
            reported: PortRecord::default(),
        }
    }
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

/// The portals that the URL names, or with one host those that the target reports.
pub(crate) async fn portals(
    core: &CoreHandle,
    ask: &Ask<'_>,
    discover: bool,
) -> Result<Found, HostError> {
    if !discover || ask.url.hosts.len() > 1 {
        let mut found = Found::given(ask);
        // Those that are silent hold nobody up; the first of the others that knows speaks for all.
        let asked = ask.given.iter().map(|at| facts_only(core, ask, *at));
        let reported = in_time(core, FACTS_MAX, join_first(asked)).await;
        found.add(reported.flatten());
        return Ok(found);
    }
    let mut why = Vec::new();
    for at in ask.given {
        match send_targets(core, ask, *at).await {
            Ok((targets, reported)) => {
                let mut found = of_target(ask, *at, &targets)?;
                found.add(reported);
                return Ok(found);
            }
            // No other portal would know another user.
            Err(error) if error.is_authentication() => return Err(not_taken(ask, *at, &error)),
            Err(error) => why.push(format!("{at}: {error}")),
        }
    }
    // A target without discovery still has the portal that it was asked at.
    let mut found = Found::given(ask);
    found.notices.push(format!(
        "discovery failed, only the portals of the URL are used: {}",
        why.join("; ")
    ));
    let asked = ask.given.iter().map(|at| facts_by_login(core, ask, *at));
    let reported = in_time(core, FACTS_MAX, join_first(asked)).await;
    found.add(reported.flatten());
    Ok(found)
}

/// Why a portal does not report what there is.
enum Unasked {
    Login(LoginError),
    Silent,
}

impl Unasked {
    fn is_authentication(&self) -> bool {
        match self {
            Self::Login(error) => error.is_authentication(),
            Self::Silent => false,
        }
    }
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Login(error) => write!(f, "{error}"),
            Self::Silent => f.write_str("the portal does not answer"),
        }
    }
}

fn not_taken(ask: &Ask<'_>, at: SocketAddr, error: &Unasked) -> HostError {
    let cause = format!("the portal {at} does not say what targets it has: {error}");
    let next_step = match &ask.login.chap {
        Some(_) => {
            "see that user and secret are those that the target has for this initiator; where \
                    only its discovery wants others, leave that out: --no-discover"
        }
        None => {
            "name user and secret: --chap USER:FILE; where only its discovery wants them, leave \
                 that out: --no-discover"
        }
    };
    HostError::refused(cause, next_step)
}

impl Found {
    /// The portals of the URL.
    fn given(ask: &Ask<'_>) -> Self {
        let portals = ask.given.iter().map(|at| Portal::new(*at, 1));
        Self {
            portals: portals.collect(),
            notices: Vec::new(),
        }
    }

    /// Adds what the target reported of its ports. Portals that are not used may be reported: other
    /// hosts use them.
    fn add(&mut self, reported: Option<ReportedPorts>) {
        let Some(reported) = reported else { return };
        for portal in &mut self.portals {
            let address = portal.address;
            let of_it = |it: &&PortRecord| it.address.parse() == Ok(address);
            if let Some(record) = reported.ports.iter().find(of_it) {
                portal.reported = record.clone();
            }
        }
        let notices = reported.wrong.into_iter().map(|what| {
            format!(
                "the target reports of its ports what makes no sense, which is left out: {what}"
            )
        });
        self.notices.extend(notices);
    }
}

/// The first that reports something; all are asked at a time.
async fn join_first(
    asked: impl Iterator<Item = impl Future<Output = Option<ReportedPorts>>>,
) -> Option<ReportedPorts> {
    let mut asked: Vec<_> = asked.map(|it| Some(Box::pin(it))).collect();
    poll_fn(|cx| {
        for one in &mut asked {
            let Some(Poll::Ready(reported)) = one.as_mut().map(|it| it.as_mut().poll(cx)) else {
                continue;
            };
            if reported.is_some() {
                return Poll::Ready(reported);
            }
            *one = None;
        }
        if asked.iter().all(Option::is_none) {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}

/// What the target at `at` reports of its ports, in a discovery session; in a normal one where that
/// is refused, and with credentials: a target that wants them would enter a refused login.
async fn facts_only(core: &CoreHandle, ask: &Ask<'_>, at: SocketAddr) -> Option<ReportedPorts> {
    if ask.login.chap.is_some() {
        return facts_by_login(core, ask, at).await;
    }
    match ask_ports(core, at, ask.source(at), ask.login).await {
        Ok(reported) => reported,
        Err(LoginError::Refused { .. }) => facts_by_login(core, ask, at).await,
        Err(LoginError::Connect(_) | LoginError::Lost(_)) => None,
    }
}

/// The same in a session with the target, of a name that no other session has.
async fn facts_by_login(core: &CoreHandle, ask: &Ask<'_>, at: SocketAddr) -> Option<ReportedPorts> {
    let mut random = [0; 3];
    core.fill_random(&mut random);
    let [a, b, c] = random;
    let login = InitiatorConfig {
        target_name: Some(ask.url.iqn.clone()),
        // RFC 7143 11.12.5 "ISID": type 2 is random.
        isid: Isid([0x80, a, b, c, 0xFF, 0xFF]),
        ..ask.login.clone()
    };
    ask_ports(core, at, ask.source(at), &login).await.ok()?
}

impl Ask<'_> {
    /// An address of this host to ask `at` from; `None`: any.
    fn source(&self, at: SocketAddr) -> Option<IpAddr> {
        let mut from = self.from.iter();
        from.find(|it| it.is_ipv4() == at.is_ipv4()).copied()
    }
}

async fn send_targets(
    core: &CoreHandle,
    ask: &Ask<'_>,
    at: SocketAddr,
) -> Result<(Vec<TargetRecord>, Option<ReportedPorts>), Unasked> {
    let same_family = ask.from.iter().filter(|it| it.is_ipv4() == at.is_ipv4());
    let mut sources: Vec<Option<IpAddr>> = same_family.map(|it| Some(*it)).collect();
    if sources.is_empty() {
        sources.push(None);
    }
    let mut last = Unasked::Silent;
    for from in sources {
        let mut login = ask.login.clone();
        let credentials = login.chap.take();
        let mut asked = in_time(core, ANSWER_MAX, discover_ports(core, at, from, &login)).await;
        // Discovery mostly is open; where it is not, the target's credentials may do.
        if credentials.is_some() && matches!(asked, Some(Err(LoginError::Refused { .. }))) {
            login.chap = credentials;
            asked = in_time(core, ANSWER_MAX, discover_ports(core, at, from, &login)).await;
        }
        match asked {
            Some(Ok(found)) => return Ok(found),
            Some(Err(error)) => last = Unasked::Login(error),
            None => last = Unasked::Silent,
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
            format!(
                "it has {shown}; targets show themselves to initiators that have a grant: {}",
                grant::ask_for(ask.url, &ask.login.initiator_name)
            ),
        ));
    };
    let mut found = Found::default();
    for portal in &target.addresses {
        match address(&portal.address) {
            Some(address) => {
                let ip = address.ip();
                // A target that listens everywhere means the address that it was asked at.
                let ip = if ip.is_unspecified() { at.ip() } else { ip };
                let tag = portal.portal_group_tag;
                let portal = Portal::new(SocketAddr::new(ip, address.port()), tag);
                let known = found.portals.iter().any(|it| it.address == portal.address);
                if !known {
                    found.portals.push(portal);
                }
            }
            None => found.notices.push(format!(
                "the target reports a portal that is no address: {}",
                portal.address
            )),
        }
    }
    if found.portals.is_empty() {
        // RFC 7143 appendix C: no address means the one that was asked.
        found.portals.push(Portal::new(at, 1));
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

async fn in_time<T>(core: &CoreHandle, most: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut timer = core.sleep_until(core.now().after(most));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::error::Kind;
    use env::sim::{World, WorldConfig};
    use std::io::IoSlice;
    use std::rc::Rc;

    /// RFC 7143 11.13.5 "Status-Class and Status-Detail".
    const AUTHENTICATION_FAILURE: [u8; 2] = [2, 1];
    const OUT_OF_RESOURCES: [u8; 2] = [3, 2];

    /// Answers one login with this status.
    async fn refuse(stream: Rc<dyn env::Stream>, status: [u8; 2]) {
        let mut request = [0; 4096];
        let got = poll_fn(|cx| stream.poll_recv(cx, &mut request)).await;
        assert!(got.unwrap_or(0) >= 48, "a whole header comes at once");
        let mut response = [0; 48];
        // Login Response, with the task tag of the request.
        response[0] = 0x23;
        response[8..20].copy_from_slice(&request[8..20]);
        response[36..38].copy_from_slice(&status);
        let sent = poll_fn(|cx| stream.poll_send(cx, &[IoSlice::new(&response)])).await;
        assert_eq!(sent.unwrap_or(0), 48);
        let _end = poll_fn(|cx| stream.poll_recv(cx, &mut request)).await;
    }

    fn asked(status: [u8; 2]) -> Result<Found, HostError> {
        let world = World::new(5, WorldConfig::default());
        let (target, host) = (world.node("target"), world.node("host"));
        let core = target.core(0);
        let at = SocketAddr::new(target.ip(), PORT);
        let listener = core.net().listen(at).unwrap();
        let spawner = Rc::clone(&core);
        core.spawn(Box::pin(async move {
            while let Ok(stream) = poll_fn(|cx| listener.poll_accept(cx)).await {
                let stream = spawner.net().adopt(stream).unwrap();
                spawner.spawn(Box::pin(refuse(stream, status)));
            }
        }));
        let core = host.core(0);
        let run = async move {
            let url: Url = format!("iscsi://{at}/iqn.2026-11.io.causeway:t/0")
                .parse()
                .unwrap();
            let isid = Isid([0x80, 0, 0, 1, 0, 0]);
            let ask = Ask {
                url: &url,
                given: &[at],
                from: &[],
                login: &InitiatorConfig::new("iqn.2026-11.io.causeway:me", None, isid),
            };
            portals(&core, &ask, true).await
        };
        world.block_on(&host, Duration::from_secs(60), run).unwrap()
    }

    #[test]
    fn a_portal_that_does_not_take_the_proof_of_who_asks_is_no_portal_without_discovery() {
        let error = asked(AUTHENTICATION_FAILURE).unwrap_err();
        assert_eq!(error.kind, Kind::Refused, "{error}");
        let found = asked(OUT_OF_RESOURCES).unwrap();
        assert_eq!(found.portals.len(), 1);
        assert!(
            found.notices[0].starts_with("discovery failed"),
            "{found:?}"
        );
    }
}
