//! `causeway serve`: the daemon's life from its configuration to its end.

use crate::secret_file;
use crate::version::COMMIT;
use controller::{Controller, Handle, Reached};
use engine::Engine;
use env::real::{self, FilesMode, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use host::TargetAnswer;
use manifest::code::{Code, Exit};
use manifest::config::{Config, Cores, Driver, Store};
use manifest::problem::Problem;
use manifest::secret::Secret;
use manifest::served::{Answer, Probe};
use membership::Membership;
use mirrors::{LunsHere, Members, Mirrors};
use node::Node;
use output::Output;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use service::{Log, Lost};
use service::{NotifyState, begin_anew, notify};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, timeout};
use units::Reserves;

/// How often the runtime's notices are read and the watchdog is notified.
const TICK: Duration = Duration::from_secs(1);

/// Payload memory of each core that commands of hosts cannot take, for write-back and for recovery
/// each.
const RESERVE_BYTES: usize = 8 << 20;

/// What a flush takes longer where a bench asks for slow ones: about what it takes a disk with a
/// volatile cache.
const SLOW_FLUSH: Duration = Duration::from_millis(1);

/// How long a stop may take before the rest is given up; systemd's own limit is longer.
const STOP_TIME_MAX: Duration = Duration::from_secs(150);

/// Why the daemon ended in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was asked to stop.
    Stopped,
    /// It is to begin anew.
    Restart,
}

impl Ended {
    fn announce(self) {
        match self {
            Self::Stopped => notify(&[NotifyState::Stopping]),
            Self::Restart => service::begins(),
        }
        tracing::info!("stopping: what is in flight is answered first");
    }
}

fn cannot_go_on(why: String) -> Problem {
    Problem::new(Code::Internal, why).hint(
        "start it again (systemd does so by itself); hosts log in again; please report this with the log",
    )
}

/// Runs the daemon until a signal ends it.
pub(crate) fn run(file: &Path, output: &Output) -> Exit {
    let config = match settings::read_config(file) {
        Ok(config) => config,
        Err(problem) => {
            output.problem(&problem);
            return Exit::Usage;
        }
    };
    let log = Log::start(config.log);
    match serve(&config, log) {
        Ok(Ended::Stopped) => Exit::Done,
        Ok(Ended::Restart) => {
            let detail = format!("the program cannot be run anew: {}", begin_anew());
            output.problem(&Problem::new(Code::Internal, detail));
            Exit::Failed
        }
        Err(problem) => {
            output.problem(&problem);
            problem.exit()
        }
    }
}

/// Every LUN in a file or on a device takes two descriptors, and every session one.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(
            "the limit of open files stays at {:?}: {error}",
            limit.current
        );
    }
}

fn start_runtime(config: &Config) -> Result<Runtime, Problem> {
    let wanted = RuntimeConfig {
        cores: match &config.cores {
            Cores::Auto => real::Cores::Auto,
            Cores::List(list) => real::Cores::List(list.clone()),
        },
        driver: match config.driver {
            Driver::Auto => real::Driver::Auto,
            Driver::Uring => real::Driver::Uring,
            Driver::Poll => real::Driver::Poll,
        },
        pool_reserves: Reserves {
            write_back: RESERVE_BYTES,
            recovery: RESERVE_BYTES,
        },
        poll: Duration::from_micros(config.poll_us.into()),
        files: match config.store {
            Store::Ordinary => FilesMode::Ordinary,
            Store::ForgetUnsynced => FilesMode::ForgetUnsynced,
            Store::SlowFlush => FilesMode::SlowFlush(SLOW_FLUSH),
        },
        ..RuntimeConfig::default()
    };
    Runtime::start(&wanted).map_err(|error| {
        let key = if config.driver == Driver::Uring {
            "runtime.driver"
        } else {
            "runtime.cores"
        };
        let detail = format!("{}: {error}", config.place(key));
        Problem::new(Code::ConfigEnvironment, detail)
    })
}

/// A portal group may be pinned to cores that there are, which only the runtime knows where they
/// are not listed.
fn check_pins(config: &Config, cores: u16) -> Result<(), Problem> {
    for (index, group) in config.portal_groups.iter().enumerate() {
        if let Some(missing) = group.cores.iter().find(|core| **core >= cores) {
            let place = config.place(&format!("portal_group[{index}].cores"));
            let last = cores.saturating_sub(1);
            let detail =
                format!("{place}: there is no core {missing} (they are numbered from 0 to {last})");
            return Err(Problem::new(Code::ConfigEnvironment, detail)
                .hint("name cores as `causeway session ls` shows them, not processors; or leave the key out"));
        }
    }
    Ok(())
}

/// What the runtime has to say, for core 0 to read.
type Notices = Arc<Mutex<Vec<String>>>;

fn inspect_notices(runtime: &Runtime, notices: &Notices) {
    let all: Vec<String> = runtime.notices().iter().map(ToString::to_string).collect();
    let mut known = notices.lock().unwrap_or_else(PoisonError::into_inner);
    for new in all.iter().skip(known.len()) {
        tracing::warn!("{new}");
    }
    *known = all;
}

/// What the node records of itself, once that is there.
type Recording = Arc<OnceLock<api::Records>>;

/// Starts the node on core 0.
fn start_node(
    runtime: &Runtime,
    config: &Config,
    notices: &Notices,
    lost: Lost,
    records: &Recording,
) -> Result<(Handle, Secret), Problem> {
    let (config, notices) = (config.clone(), Arc::clone(notices));
    let records = Arc::clone(records);
    runtime.run(CoreId(0), move |core| {
        Box::pin(async move {
            let open = secret_file::readable_in(&config.state_dir);
            for open in &open {
                tracing::warn!("{open}");
            }
            let all_notices = move || {
                let known = notices.lock().unwrap_or_else(PoisonError::into_inner);
                let all = known.iter().chain(&open).cloned();
                let recorded = records.get().map(api::Records::notices);
                all.chain(lost.notice())
                    .chain(recorded.into_iter().flatten())
                    .collect()
            };
            let node = Node::new(Rc::clone(&core), config.clone(), Box::new(all_notices));
            let state_dir = config.state_dir.clone();
            let cluster = membership::Settings::of(&config)?;
            let mirrors = Mirrors::new(&core, &state_dir);
            if cluster.is_some() {
                node.set_mirrors(mirrors.door());
            }
            let engine: Rc<dyn Engine> = Rc::new(node);
            let name = config.node_name.clone();
            let controller = Controller::start(Rc::clone(&core), config, engine).await?;
            if let Some(settings) = cluster {
                in_cluster(&core, (settings, name), &controller, mirrors).await?;
            }
            let token = api::load_token(&core, &state_dir).await?;
            let follow = Controller::follow_served(Rc::downgrade(&controller), Box::new(attempt));
            core.spawn(Box::pin(follow));
            let (handle, serve) = Handle::new(controller);
            core.spawn(serve);
            Ok((handle, token))
        })
    })
}

/// What the node is to other nodes, as long as the daemon runs.
async fn in_cluster(
    core: &CoreHandle,
    (settings, name): (membership::Settings, String),
    controller: &Rc<Controller>,
    mirrors: Rc<Mirrors>,
) -> Result<(), Problem> {
    let status = controller.status().await;
    let own = membership::Own {
        id: status.node_id,
        name: name.clone(),
        version: status.version,
    };
    let luns = Rc::new(LunsHere::new(Rc::downgrade(controller)));
    let controller = Rc::downgrade(controller);
    let facts = move || -> LocalFuture<membership::Facts> {
        let controller = controller.upgrade();
        Box::pin(async move {
            let Some(controller) = controller else {
                return membership::Facts::default();
            };
            let journals = controller.pools().await.into_iter();
            let objects = controller.objects();
            let luns = objects.luns.values().chain(objects.removed.values());
            membership::Facts {
                rings: journals.filter_map(|it| Some(it.journal?.rings)).collect(),
                naas: luns.map(|it| it.naa.clone()).collect(),
            }
        })
    };
    let membership = Membership::start(core, settings, (own, Box::new(facts))).await?;
    let members = Members::new(Rc::new(membership), &name);
    core.spawn(Box::pin(mirrors.run(Rc::new(members), luns)));
    Ok(())
}

/// Tries a portal of the node's own.
fn attempt(core: &CoreHandle, name: &str, probe: &Probe) -> LocalFuture<Answer> {
    let (core, name, probe) = (Rc::clone(core), name.to_owned(), probe.clone());
    Box::pin(async move {
        match host::try_target(&core, probe.portal, &name, &probe.iqn).await {
            TargetAnswer::Here => Answer::Here,
            TargetAnswer::Busy => Answer::Busy,
            TargetAnswer::Missing(said) => Answer::Missing(said),
            TargetAnswer::Unreachable(why) => Answer::Unreachable(why),
        }
    })
}

/// What of its settings the administrator should know.
fn warn_of_settings(config: &Config) {
    for key in config.overtaken() {
        let file = config.file.display();
        tracing::warn!(
            "{key} was changed by `config set`, and {file} says something else by now, which holds"
        );
    }
    for open in config.open_api() {
        tracing::warn!("{open}");
    }
}

fn warn_of_addresses(config: &Config, reached: &Reached) {
    for (address, why) in reached.away() {
        let place = config.place("api.listen");
        tracing::warn!("{place}: {address}: {why}: it is tried again every second");
    }
}

/// What this program says of itself.
fn program(log: &Log) -> api::Program {
    let tail = log.tail();
    api::Program {
        commit: COMMIT,
        log: Arc::new(move || tail.text()),
    }
}

fn serve(config: &Config, log: Log) -> Result<Ended, Problem> {
    raise_descriptor_limit();
    // The signals are caught from here on, so that an early one is not lost.
    let main = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let main = main.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let mut stop = main.block_on(async { Signals::new() })?;
    let mut hangup = main.block_on(async { catch(SignalKind::hangup()) })?;
    let runtime = start_runtime(config)?;
    check_pins(config, runtime.core_count())?;
    let notices = Notices::default();
    inspect_notices(&runtime, &notices);
    let recording = Recording::default();
    let (handle, token) = start_node(&runtime, config, &notices, log.lost(), &recording)?;
    // The node has made the state directory.
    let records = api::Records::start(&config.state_dir, &config.node_name, config.history)?;
    let records = recording.get_or_init(|| records);
    let bound = api::bind_what_can_be(&config.api);
    let reached = bound.reached();
    warn_of_settings(config);
    warn_of_addresses(config, &reached);
    let sampler = api::Sampler::start(records.clone(), handle.clone())?;
    let handle_of_api = handle.clone();
    let server = api::Server::start(
        bound,
        handle_of_api,
        token,
        config,
        records.clone(),
        program(&log),
    )?;
    let served = main.block_on(async {
        let addresses = reached.addresses().join(" ");
        let announced =
            handle.call(move |controller| Box::pin(async move { controller.set_api(reached) }));
        announced.await?;
        disk_watch::start(&handle, config, server.live()).await?;
        tracing::info!(node = config.node_name, api = addresses, "serving");
        notify(&[NotifyState::Ready]);
        service::is_over();
        let lost = log.lost();
        let ended = tokio::select! {
            ended = watch(&runtime, &notices, &lost, &handle, &mut stop) => ended,
            () = reload(&mut hangup, &server) => Ok(Ended::Stopped),
            () = server.restart_wanted() => Ok(Ended::Restart),
        };
        // What hangs on a core would hold up a stop in order. All that was acknowledged as stable
        // is.
        let ended = ended.map_err(cannot_go_on)?;
        ended.announce();
        // What ends from here on ends because the daemon does.
        sampler.stop();
        server.end_work();
        records.node_stopping();
        records.end_streams();
        stop_node(&handle).await;
        Ok::<Ended, Problem>(ended)
    });
    let ended = match served {
        Ok(ended) => ended,
        Err(problem) => {
            drop(log);
            eprintln!("{problem}");
            std::process::exit(i32::from(problem.exit() as u8));
        }
    };
    server.stop();
    records.stop();
    for notice in runtime.shutdown() {
        tracing::debug!("{notice}");
    }
    tracing::info!("stopped");
    // Who stops it while it restarts means that more.
    let stopped = main.block_on(async { timeout(Duration::ZERO, stop.next()).await.is_ok() });
    Ok(if stopped { Ended::Stopped } else { ended })
}

/// Ends what hosts do, and stores what is to be stored.
async fn stop_node(handle: &Handle) {
    let stopped = handle.call(|controller| Box::pin(async move { controller.stop().await }));
    if timeout(STOP_TIME_MAX, stopped).await.is_err() {
        tracing::error!("not everything ended in time; the rest is given up");
    }
}

fn catch(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Problem> {
    signal(kind).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// SIGHUP: what can be read again is.
async fn reload(hangup: &mut tokio::signal::unix::Signal, server: &api::Server) {
    while hangup.recv().await.is_some() {
        tracing::info!("SIGHUP: the certificate and the settings are read again");
        server.reload();
    }
    std::future::pending::<()>().await;
}

/// The signals that end a process in order.
pub(crate) struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Problem> {
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        let (terminate, interrupt) = (&mut self.terminate, &mut self.interrupt);
        std::future::poll_fn(|cx| {
            if terminate.poll_recv(cx).is_ready() || interrupt.poll_recv(cx).is_ready() {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
    }
}

/// Until a signal: reads notices, and notifies the watchdog while every core answers. The error
/// says why the process cannot go on.
async fn watch(
    runtime: &Runtime,
    notices: &Notices,
    lost: &Lost,
    handle: &Handle,
    stop: &mut Signals,
) -> Result<Ended, String> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if timeout(TICK, stop.next()).await.is_ok() {
            return Ok(Ended::Stopped);
        }
        ticks.tick().await;
        inspect_notices(runtime, notices);
        lost.report();
        if let Some(why) = runtime.failure() {
            return Err(why);
        }
        let alive = handle.call(|controller| Box::pin(async move { controller.is_alive().await }));
        match timeout(TICK * 5, alive).await {
            Ok(Ok(true)) => notify(&[NotifyState::Watchdog]),
            Ok(Ok(false)) => return Err("a core takes no more work".to_owned()),
            Ok(Err(problem)) => return Err(format!("core 0: {}", problem.detail)),
            Err(_) => tracing::error!("a core does not answer"),
        }
    }
}
