//! What is known before any session: portals, ports, and which pairs of them can be paths.

use crate::discover::{Ask, Found, portals};
use crate::error::HostError;
use crate::options::Options;
use crate::ports::{facts, host_ports};
use crate::store::Store;
use crate::url::{Url, check_name};
use env::CoreHandle;
use iscsi::initiator_side::InitiatorConfig;
use machine::{Follower, Roots};
use paths::overrides::Overrides;
use paths::plan::{PlannedPath, Reason};
use paths::{Facts, PathName, Plan, Speed};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Speed of a port of which nobody knows any, in bits per second.
const NOMINAL: Speed = Speed::gigabits(1);
/// All that is known before any session: what `path plan` shows.
pub struct Prepared {
    /// What was asked for, with portal, target and LUN.
    pub url: Url,
    /// This host's name.
    pub initiator: String,
    /// Ports of both sides, corrected by the administrator's file.
    pub facts: Facts,
    /// The planner's options.
    pub planner: paths::Options,
    /// What the operator should know.
    pub notices: Vec<String>,
    pub(crate) follower: Follower,
    pub(crate) portals: Vec<crate::discover::Portal>,
    pub(crate) overrides: Overrides,
    pub(crate) login: InitiatorConfig,
    pub(crate) store: Store,
    /// Which paths carry load is planned.
    pub(crate) planned: bool,
}

/// Discovers the target's portals and inspects this host's ports.
///
/// # Errors
/// What is wrong, and what to do.
pub async fn prepare(
    core: &CoreHandle,
    url: &Url,
    options: &Options,
) -> Result<Prepared, HostError> {
    let given = url
        .resolve()
        .map_err(|error| HostError::usage(error.to_string(), "addresses need no resolver"))?;
    let overrides = options.overrides()?;
    let store = Store::new(options.state_dir());
    let initiator = match &options.initiator_name {
        Some(name) => {
            check_name(name).map_err(|error| {
                HostError::usage(
                    format!("--initiator-name: {}", error.cause),
                    "write it like iqn.2026-11.com.example:host",
                )
            })?;
            name.clone()
        }
        None => store.initiator_name(core).await?,
    };
    let follower = Follower::start(core, Roots::default())
        .await
        .map_err(|error| {
            HostError::failed(
                format!("this system does not report its interfaces: {error}"),
                "the program needs netlink (AF_NETLINK sockets)",
            )
        })?;
    let hosts = host_ports(follower.machine(), &options.from)?;
    let mut login = login(&initiator, options)?;
    let from: Vec<IpAddr> = if options.from.is_empty() {
        Vec::new()
    } else {
        let addresses = hosts.iter().flat_map(|port| port.addresses.iter());
        addresses.map(|at| at.ip).collect()
    };
    let ask = Ask {
        url,
        given: &given,
        from: &from,
        login: &login,
    };
    let Found { portals, notices } = portals(core, &ask, !options.no_discover).await?;
    login.target_name = Some(url.iqn.clone());
    let facts = facts(&initiator, hosts, &portals, &overrides)?;
    Ok(Prepared {
        url: url.clone(),
        initiator,
        facts,
        planner: overrides.planner.clone(),
        notices,
        follower,
        portals,
        overrides,
        login,
        store,
        planned: !options.no_plan,
    })
}

fn login(initiator: &str, options: &Options) -> Result<InitiatorConfig, HostError> {
    let isid = iscsi::Isid([0x80, 0, 0, 0, 0, 0]);
    let mut config = InitiatorConfig::new(initiator, None, isid);
    config.chap = options.credentials()?;
    config.offer = options.offer();
    config.login_timeout = Duration::from_secs(5);
    // The paths' own machines ping.
    config.ping_after = None;
    Ok(config)
}

impl Prepared {
    /// The plan for these facts.
    #[must_use]
    pub fn plan(&self) -> Plan {
        paths::plan::plan(&self.facts, &self.planner, &[])
    }

    pub(crate) fn wanted(&self, plan: &Plan) -> Result<Vec<Candidate>, HostError> {
        let found: Vec<Candidate> = plan.paths.iter().filter_map(Candidate::of).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let why = plan
            .paths
            .iter()
            .map(|it| format!("{}: {}", it.path, it.reason));
        let why: Vec<String> = why.collect();
        let why = if why.is_empty() {
            "this host has no port with an address".to_owned()
        } else {
            why.join("; ")
        };
        Err(HostError::failed(
            format!(
                "no port of this host reaches a portal of {}: {why}",
                self.url.iqn
            ),
            "`causeway path plan URL` shows ports and reasons",
        ))
    }
}

/// A pair of ports that can be logged in.
pub(crate) struct Candidate {
    pub(crate) name: PathName,
    pub(crate) from: IpAddr,
    pub(crate) portal: SocketAddr,
    pub(crate) speed: Speed,
}

impl Candidate {
    pub(crate) fn of(planned: &PlannedPath) -> Option<Self> {
        // What is barred for good has no addresses.
        if matches!(planned.reason, Reason::Barred(_)) && planned.source.is_none() {
            return None;
        }
        Some(Self {
            name: planned.path.clone(),
            from: planned.source?,
            portal: planned.portal?,
            speed: planned.stream.map_or(NOMINAL, |it| it.speed),
        })
    }
}
