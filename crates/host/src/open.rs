//! From a URL to a volume.

use crate::attached::Attached;
use crate::error::HostError;
use crate::follow::{Following, follow};
use crate::grant;
use crate::home::{Home, Homes};
use crate::isids::Isids;
use crate::joining::{PortNumbers, configs, paths};
use crate::options::Options;
use crate::ports::interface;
use crate::prepare::{Prepared, prepare};
use crate::store::Store;
use crate::url::Url;
use env::{CoreHandle, LocalFuture};
use iscsi::Lun;
use iscsi_initiator::unit::{PathConfig, ProbeError, Unit, UnitFacts, ask_living, probe};
use multipath::{Config, Multipath};
use paths::plan::{MonitorTiming, PlanMonitor};
use paths::{Plan, Policy};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use units::ByteCount;

/// Paths that are asked who the unit is.
const PROBES_MAX: usize = 16;

static VOLUMES: AtomicU64 = AtomicU64::new(0);

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
    let mut numbers = PortNumbers::default();
    let joining = candidates.iter().zip(configs);
    let (paths, specs) = paths(core, &prepared.facts, &mut numbers, joining, &unit);
    let shape = unit.facts().shape();
    let multipath = if options.no_plan {
        let specs = specs.into_iter().map(|(_, spec)| spec).collect();
        Multipath::new(core, shape, config, specs)
    } else {
        let (facts, planner) = (prepared.facts.clone(), prepared.planner.clone());
        let monitor = PlanMonitor::new(facts, planner, MonitorTiming::default());
        Multipath::planned(core, shape, config, monitor, specs)
    };
    let home = Rc::new(Home {
        url: url.clone(),
        multipath: RefCell::new(Some(Rc::new(multipath))),
        paths: RefCell::new(paths),
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
        numbers,
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
    policy: Policy,
) -> Result<(), HostError> {
    let store = Store::new(options.state_dir());
    store.set_policy(core, url, policy).await
}

/// Who the unit is, as the first path that answers says.
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
    let mut asked: Vec<Option<LocalFuture<Result<UnitFacts, ProbeError>>>> = Vec::new();
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
                Err(error) => why.push((name.clone(), error)),
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
fn none_answers(url: &Url, configs: &[PathConfig], why: &[(String, ProbeError)]) -> HostError {
    let silent = |(_, why): &(String, ProbeError)| matches!(why, ProbeError::Silent(_));
    let unproved = |(_, why): &(String, ProbeError)| matches!(why, ProbeError::Unproved(_));
    let is_unproved = !why.is_empty() && why.iter().all(unproved);
    let initiator = configs.first().map(|it| it.login.initiator_name.as_str());
    let next_step = match initiator.filter(|_| !why.iter().all(silent)) {
        Some(_) if is_unproved => {
            "see that user and secret are those that the target has for this initiator: --chap USER:FILE"
                .to_owned()
        }
        Some(initiator) => format!(
            "see that the target knows this initiator and has a grant of the LUN for it: {}",
            grant::ask_for(url, initiator)
        ),
        None => {
            "see that the target runs, listens at these portals, and that no firewall is between"
                .to_owned()
        }
    };
    let why: Vec<String> = why
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    let cause = format!("no path answers: {}", why.join("; "));
    if is_unproved {
        HostError::refused(cause, next_step)
    } else {
        HostError::failed(cause, next_step)
    }
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
    let mut waiting: Vec<(String, Option<LocalFuture<Option<ProbeError>>>)> = Vec::new();
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
        return Err(none_answers(&prepared.url, &configs, &failed));
    }
    let failed = failed.into_iter();
    Ok(failed.map(|(name, why)| (name, why.to_string())).collect())
}
