//! From a URL to a volume.

use crate::discover::{Ask, Found, portals};
use crate::error::HostError;
use crate::follow::{Following, follow};
use crate::grant;
use crate::home::{Attached, Home, Homes, Way};
use crate::isids::Isids;
use crate::options::Options;
use crate::ports::{facts, host_ports, interface};
use crate::status::Ends;
use crate::store::Store;
use crate::url::{Url, check_name};
use env::{CoreHandle, LocalFuture};
use iscsi::Lun;
use iscsi::initiator_side::InitiatorConfig;
use iscsi_initiator::unit::{PathConfig, Unit, UnitFacts, UnitPort, ask_living, probe};
use machine::{Follower, Roots};
use multipath::Multipath;
use multipath::{Config, PathSpec};
use paths::health::Wanted;
use paths::overrides::Overrides;
use paths::plan::{Keeper, PlannedPath, Reason, Timing};
use paths::policy::{Settings, Use};
use paths::{Facts, PathName, Plan, Speed};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use units::ByteCount;

/// Commands in flight on one path, before a target's window and BUSY say otherwise.
const WINDOW: u32 = 1024;
/// Speed of a port of which nobody knows any, in bits per second.
const NOMINAL: Speed = Speed::gigabits(1);
/// Paths that are asked who the unit is.
const PROBES_MAX: usize = 16;

static VOLUMES: AtomicU64 = AtomicU64::new(0);

/// All that is known before any session: what `path plan` shows.
pub struct Prepared {
    /// The URL.
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
    store: Store,
}

/// Discovers the target's portals and looks at this host's ports.
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
                format!("this system does not tell its interfaces: {error}"),
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

    fn wanted(&self, plan: &Plan) -> Result<Vec<Candidate>, HostError> {
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
    portal: SocketAddr,
    speed: Speed,
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

/// Opens the unit of `url`. This core is the volume's home.
///
/// # Errors
/// What is wrong, and what to do. Where no path answers, each one's reason.
pub async fn open(
    core: &CoreHandle,
    url: &Url,
    options: &Options,
) -> Result<Arc<Attached>, HostError> {
    let prepared = prepare(core, url, options).await?;
    let plan = prepared.plan();
    let candidates = prepared.wanted(&plan)?;
    let isids = Isids::take(core, &prepared.store, url, &how(&prepared, options)).await?;
    let lun = scsi::lun::encode(url.lun).map(Lun).unwrap_or_default();
    let timeout = options.command_timeout();
    let configs = configs(&prepared, &candidates, &isids, (lun, timeout)).await?;
    let facts = identify(core, url, &configs, &isids).await?;
    let unit = Unit::with_key(facts, options.reservation_key.map(|it| it.0));
    let policy = match options.policy {
        Some(policy) => policy,
        None => prepared.store.policy(core, url).await.unwrap_or_default(),
    };
    let config = Config {
        policy,
        sharing: options.sharing.into(),
        mode: options.write_failover.into(),
        no_path_timeout: options.patience(),
        piece: ByteCount(256 << 10),
        ..Config::default()
    };
    let mut places = Places::default();
    let joining = candidates.iter().zip(configs);
    let (ways, specs) = ways(core, &prepared.facts, &mut places, joining, &unit);
    let shape = unit.facts().shape();
    let multipath = if options.no_plan {
        let specs = specs.into_iter().map(|(_, spec)| spec).collect();
        Multipath::new(core, shape, config, specs)
    } else {
        let (facts, planner) = (prepared.facts.clone(), prepared.planner.clone());
        let keeper = Keeper::new(facts, planner, Timing::default());
        Multipath::planned(core, shape, config, keeper, specs)
    };
    let home = Rc::new(Home {
        url: url.clone(),
        multipath: RefCell::new(Some(Rc::new(multipath))),
        ways: RefCell::new(ways),
        unit,
        notices: RefCell::new(prepared.notices.clone()),
        planned: !options.no_plan,
        write_failover: options.write_failover,
        store: prepared.store.clone(),
        isids: RefCell::new(Some(Rc::new(isids))),
        stopped: Cell::new(false),
    });
    let following = Following {
        prepared,
        places,
        from: options.from.clone(),
        target: (lun, timeout),
        rediscover: options.rediscover(url),
    };
    follow(core, &home, following);
    let volume = VOLUMES.fetch_add(1, Ordering::Relaxed);
    let _known = core.locals().get::<Homes>();
    Ok(Attached::new(core, volume, home))
}

/// How a program logs in: volumes that do it differently cannot share sessions.
fn how(prepared: &Prepared, options: &Options) -> String {
    format!(
        "{} {:?} {:?} {:?} {:?}",
        prepared.initiator,
        options.chap,
        options.mutual_chap,
        options.digests,
        options.command_timeout()
    )
}

/// Keeps a policy for a volume that nobody has open.
///
/// # Errors
/// It cannot be kept.
pub async fn keep_policy(
    core: &CoreHandle,
    url: &Url,
    options: &Options,
    policy: paths::Policy,
) -> Result<(), HostError> {
    let store = Store::new(options.state_dir());
    store.set_policy(core, url, policy).await
}

pub(crate) async fn configs(
    prepared: &Prepared,
    candidates: &[Candidate],
    isids: &Isids,
    (lun, command_timeout): (Lun, Duration),
) -> Result<Vec<PathConfig>, HostError> {
    let mut found = Vec::new();
    for it in candidates {
        let isid = isids.of_path(it.from, it.portal).await.map_err(|error| {
            HostError::failed(
                format!("the ISID of {} cannot be kept: {error}", it.name),
                "name a directory that this user may write: --initiator-state DIR",
            )
        })?;
        let mut login = prepared.login.clone();
        login.isid = isid;
        found.push(PathConfig {
            portal: it.portal,
            from: Some(it.from),
            interface: interface(prepared.follower.machine(), it.from),
            login,
            lun,
            command_timeout,
        });
    }
    Ok(found)
}

/// Who the unit is, as the first path that answers tells.
async fn identify(
    core: &CoreHandle,
    url: &Url,
    configs: &[PathConfig],
    isids: &Isids,
) -> Result<UnitFacts, HostError> {
    // Other units of the target may be open already: then no login is needed.
    for config in configs {
        if let Some(facts) = ask_living(core, config).await {
            return Ok(facts);
        }
    }
    let mut asked: Vec<Option<LocalFuture<Result<UnitFacts, String>>>> = Vec::new();
    let mut of: Vec<String> = Vec::new();
    for config in configs.iter().take(PROBES_MAX) {
        let (core, mut config) = (Rc::clone(core), config.clone());
        // Another ISID than the path's: a late answer must not end the path's own session.
        config.login.isid = isids.of_probe();
        let from = config
            .from
            .map_or_else(String::new, |it| format!("{it} > "));
        of.push(format!("{from}{}", config.portal));
        asked.push(Some(Box::pin(async move { probe(&core, &config).await })));
    }
    let mut why = Vec::new();
    let first = poll_fn(|cx| {
        for (ask, name) in asked.iter_mut().zip(&of) {
            let Some(future) = ask else { continue };
            let Poll::Ready(answer) = future.as_mut().poll(cx) else {
                continue;
            };
            *ask = None;
            match answer {
                Ok(facts) => return Poll::Ready(Some(facts)),
                Err(error) => why.push(format!("{name}: {error}")),
            }
        }
        if asked.iter().all(Option::is_none) {
            return Poll::Ready(None);
        }
        Poll::Pending
    });
    first.await.ok_or_else(|| none_answers(url, configs, &why))
}

/// Why no path gives the unit, and what to do about it.
fn none_answers(url: &Url, configs: &[PathConfig], why: &[String]) -> HostError {
    let silent = |why: &String| why.contains("cannot be reached") || why.contains("took too long");
    let initiator = configs.first().map(|it| it.login.initiator_name.as_str());
    let next_step = match initiator.filter(|_| !why.iter().all(silent)) {
        Some(initiator) => format!(
            "see that the target knows this initiator and has a grant of the LUN for it: {}",
            grant::ask_for(url, initiator)
        ),
        None => {
            "see that the target runs, listens at these portals, and that no firewall is between"
                .to_owned()
        }
    };
    HostError::failed(format!("no path answers: {}", why.join("; ")), next_step)
}

/// Logs in on every path of the plan that can be, apart from whatever is open already, and asks the
/// unit who it is: the reason of each that does not work, by its name.
///
/// # Errors
/// There is no path to try, or none of them works.
pub async fn try_logins(
    core: &CoreHandle,
    prepared: &Prepared,
    plan: &Plan,
    options: &Options,
) -> Result<Vec<(String, String)>, HostError> {
    let candidates = prepared.wanted(plan)?;
    let lun = scsi::lun::encode(prepared.url.lun)
        .map(Lun)
        .unwrap_or_default();
    let mut random = [0; 3];
    core.fill_random(&mut random);
    let [a, b, c] = random;
    let mut asked = Vec::new();
    for (number, it) in candidates.iter().take(PROBES_MAX).enumerate() {
        let mut login = prepared.login.clone();
        // RFC 7143 11.12.5 "ISID": type 2 is random. No session of another program has it.
        let [_, low] = u16::try_from(number).unwrap_or(0).to_be_bytes();
        login.isid = iscsi::Isid([0x80, a, b, c, 0xFE, low]);
        let config = PathConfig {
            portal: it.portal,
            from: Some(it.from),
            interface: interface(prepared.follower.machine(), it.from),
            login,
            lun,
            command_timeout: options.command_timeout(),
        };
        let core = Rc::clone(core);
        asked.push((it.name.to_string(), config.clone(), async move {
            probe(&core, &config).await.err()
        }));
    }
    let mut configs = Vec::new();
    let mut waiting: Vec<(String, Option<LocalFuture<Option<String>>>)> = Vec::new();
    for (name, config, ask) in asked {
        configs.push(config);
        waiting.push((name, Some(Box::pin(ask))));
    }
    let tried = waiting.len();
    let mut failed = Vec::new();
    poll_fn(|cx| {
        for (name, ask) in &mut waiting {
            let Some(Poll::Ready(error)) = ask.as_mut().map(|ask| ask.as_mut().poll(cx)) else {
                continue;
            };
            *ask = None;
            failed.extend(error.map(|error| (name.clone(), error)));
        }
        if waiting.iter().all(|(_, ask)| ask.is_none()) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    if failed.len() == tried {
        let why: Vec<String> = failed
            .iter()
            .map(|(name, error)| format!("{name}: {error}"))
            .collect();
        return Err(none_answers(&prepared.url, &configs, &why));
    }
    Ok(failed)
}

/// Numbers of ports for the policies: whatever becomes of the list of ports, a port keeps its own.
#[derive(Default)]
pub(crate) struct Places {
    hosts: Vec<String>,
    targets: Vec<String>,
}

fn place(names: &mut Vec<String>, name: &str) -> u16 {
    let at = names.iter().position(|it| it == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// The paths for the layer, and for whoever looks at them.
pub(crate) fn ways<'a>(
    core: &CoreHandle,
    facts: &Facts,
    places: &mut Places,
    joining: impl Iterator<Item = (&'a Candidate, PathConfig)>,
    unit: &Rc<Unit>,
) -> (Vec<Way>, Vec<(PathName, PathSpec)>) {
    let (mut ways, mut specs) = (Vec::new(), Vec::new());
    for (rank, (it, config)) in joining.enumerate() {
        let host = facts
            .hosts
            .iter()
            .position(|port| port.name == it.name.host);
        let target = facts
            .targets
            .iter()
            .position(|port| port.name == it.name.target);
        let host_speed = host.and_then(|at| facts.hosts[at].speed);
        let target_speed = target.and_then(|at| facts.targets[at].speed);
        let bytes = |speed: Option<Speed>| speed.unwrap_or(it.speed).0 / 8;
        let settings = Settings {
            usage: Use::No,
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            share: 1,
            throughput: 1,
            host_port: place(&mut places.hosts, &it.name.host),
            target_port: place(&mut places.targets, &it.name.target),
            speed: bytes(None).max(1),
            host_speed: bytes(host_speed).max(1),
            target_speed: bytes(target_speed).max(1),
            window: WINDOW,
        };
        let port = UnitPort::new(core, config, unit);
        let spec = PathSpec {
            port: Rc::new(port.clone()),
            settings,
            // Without a planner everything carries I/O; with one, the layer asks it.
            wanted: Wanted::Active,
        };
        ways.push(Way {
            name: it.name.clone(),
            port,
            ends: Ends {
                path: it.name.to_string(),
                from: it.from,
                portal: it.portal,
            },
        });
        specs.push((it.name.clone(), spec));
    }
    (ways, specs)
}
