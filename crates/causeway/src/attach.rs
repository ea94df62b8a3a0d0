//! `causeway attach`: a volume for the programs of this machine, through an NBD socket.

use crate::completion::{CompletedArgument, Kind, POLICIES};
use crate::serve::Signals;
use bench_command::open::{Opened, open};
use clap::Args;
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use host::{Located, Status};
use manifest::code::{Code, Exit};
use manifest::config::LogFormat;
use manifest::problem::Problem;
use nbd::{Export, Server};
use output::Output;
use rustix::thread::{CpuSet, sched_getaffinity};
use service::{Log, Lost};
use service::{NotifyState, notify};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use volume::{Volume, VolumeEvent};

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] =
    &[(&["attach"], "policy", Kind::Words(POLICIES))];

/// What to attach, and where.
#[derive(Args, Debug)]
#[command(
    after_help = "To use it:\n  qemu-img info nbd+unix:///?socket=PATH\n  \
    nbdcopy image.raw nbd+unix:///?socket=PATH"
)]
pub(crate) struct AttachFlags {
    /// iscsi://HOST[:PORT][,HOST[:PORT]...]/IQN/LUN; to try it also memory:SIZE, a file or a block
    /// device
    #[arg(value_name = "URL")]
    pub(crate) volume: String,
    /// Where programs find it: nbd+unix:PATH
    #[arg(long, value_name = "nbd+unix:PATH")]
    pub(crate) export: String,
    /// Programs may only read
    #[arg(long)]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) paths: host::Options,
}

/// Cores that connections are spread over.
const CORES_MAX: usize = 4;

/// How long a stop waits for what is in flight. Where a path lives it takes no time; where none
/// does, it would take for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the paths, and what of the log is lost, are read for the log.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until a signal ends it.
pub(crate) fn run(flags: &AttachFlags, output: &Output) -> Exit {
    let log = Log::start(LogFormat::Text);
    let attached = attach(flags, &log.lost());
    drop(log);
    match attached {
        Ok(()) => Exit::Done,
        Err(problem) => {
            output.problem(&problem);
            problem.exit()
        }
    }
}

/// `nbd+unix:PATH`, or the URI that clients use, `nbd+unix:///?socket=PATH`.
fn socket_path(export: &str) -> Result<PathBuf, Problem> {
    let wrong = || {
        let detail = format!("--export {export} is not of the form nbd+unix:PATH");
        Problem::new(Code::VolumeUsage, detail).hint("such as --export nbd+unix:/run/vm01.sock")
    };
    let rest = export.strip_prefix("nbd+unix:").ok_or_else(wrong)?;
    let path = match rest.strip_prefix("///?socket=") {
        Some(path) => path,
        None if rest.contains("?socket=") => return Err(wrong()),
        None => rest,
    };
    if path.is_empty() {
        return Err(wrong());
    }
    std::path::absolute(path).map_err(|_| wrong())
}

fn internal(error: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("{error}"))
}

fn start_runtime() -> Result<Runtime, Problem> {
    let allowed = sched_getaffinity(None).map_err(internal)?;
    let processors = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
    let config = RuntimeConfig {
        cores: Cores::List(processors.take(CORES_MAX).collect()),
        ..RuntimeConfig::default()
    };
    Runtime::start(&config).map_err(internal)
}

/// What lives on core 0 for as long as it is attached.
#[derive(Default)]
struct Here(RefCell<Option<(Server, Opened)>>);

fn socket_problem(path: &std::path::Path, error: &io::Error) -> Problem {
    let detail = format!("{}: {error}", path.display());
    Problem::new(Code::ExportSocket, detail)
}

/// Opens the volume, and listens.
async fn begin(core: CoreHandle, flags: Begin) -> Result<String, Problem> {
    let opened = open(&core, &flags.volume, &flags.paths).await?;
    let shape = opened.volume.shape();
    let export = Export::new(shape, format!("causeway: {}", opened.name), flags.read_only);
    let server = Server::new(export, Arc::clone(&opened.volume));
    let listener = core.net().listen_local(&flags.socket);
    let listener = listener.map_err(|error| socket_problem(&flags.socket, &error))?;
    let located = opened.attached.as_ref().map(|attached| attached.located());
    let (accepting, there) = (server.clone(), Rc::clone(&core));
    core.spawn(Box::pin(
        async move { accepting.run(there, listener).await },
    ));
    core.spawn(Box::pin(log_growth(
        Rc::clone(&core),
        Arc::clone(&opened.volume),
        shape.byte_count().0,
    )));
    if let Some(located) = located {
        core.spawn(Box::pin(log_paths(Rc::clone(&core), located)));
    }
    let size = format!(
        "{} bytes in blocks of {}",
        shape.byte_count().0,
        shape.block_size.bytes()
    );
    *core.locals().get::<Here>().0.borrow_mut() = Some((server, opened));
    Ok(size)
}

/// What goes to core 0.
struct Begin {
    volume: String,
    socket: PathBuf,
    read_only: bool,
    paths: host::Options,
}

/// NBD clients get the size once, when they connect to the export: a larger one is for the next
/// attach.
async fn log_growth(core: CoreHandle, volume: Arc<dyn Volume>, exported: u64) {
    let events = Arc::clone(&volume).events(&core);
    loop {
        if let VolumeEvent::Reshaped(_) = events.next().await {
            let bytes = volume.shape().byte_count().0;
            tracing::warn!(
                bytes,
                exported,
                "the LUN has another size; the export keeps its own until it is attached again"
            );
        }
    }
}

/// Logs every path whose state has changed.
async fn log_paths(core: CoreHandle, located: Located) {
    let mut known: BTreeMap<String, &'static str> = BTreeMap::new();
    while let Some(status) = located.status(&core) {
        log_changes(&status, &mut known);
        core.sleep_until(core.now().after(PROBE_INTERVAL)).await;
    }
}

fn log_changes(status: &Status, known: &mut BTreeMap<String, &'static str>) {
    for path in &status.paths {
        let before = known.insert(path.path.clone(), path.state);
        if before == Some(path.state) {
            continue;
        }
        match before {
            None => tracing::info!(path = path.path, state = path.state, why = path.why, "path"),
            Some(before) if matches!(path.state, "active" | "standby") => {
                let (state, why) = (path.state, &path.why);
                tracing::info!(path = path.path, state, before, why, "path");
            }
            Some(before) => {
                tracing::warn!(
                    path = path.path,
                    state = path.state,
                    before,
                    why = path.why,
                    "path"
                );
            }
        }
    }
}

/// Finishes what is in flight, and logs out.
async fn end(core: CoreHandle) -> bool {
    let Some((server, opened)) = core.locals().get::<Here>().0.take() else {
        return true;
    };
    let finished = server.stop(&core, PATIENCE).await;
    if let Some(attached) = &opened.attached {
        attached.stop(&core).await;
    }
    finished
}

fn attach(flags: &AttachFlags, lost: &Lost) -> Result<(), Problem> {
    let socket = socket_path(&flags.export)?;
    let main = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let main = main.map_err(internal)?;
    // The signals are caught from here on, so that an early one is not lost.
    let mut stop = main.block_on(async { Signals::new() })?;
    let runtime = start_runtime()?;
    let wanted = Begin {
        volume: flags.volume.clone(),
        socket: socket.clone(),
        read_only: flags.read_only,
        paths: flags.paths.clone(),
    };
    let (answer, begun) = oneshot::channel();
    runtime.spawn_on(CoreId(0), move |core| {
        // Nobody waits any more where a signal has ended the process.
        Box::pin(async move { drop(answer.send(begin(core, wanted).await)) })
    });
    let begun = main.block_on(async {
        tokio::select! {
            begun = begun => Some(begun),
            () = stop.next() => None,
        }
    });
    let Some(begun) = begun else {
        // Nothing was served yet.
        return Ok(());
    };
    let reported =
        begun.map_err(|_| internal(format!("a task panicked: {:?}", runtime.notices())))??;
    notify(&[NotifyState::Ready]);
    tracing::info!(socket = %socket.display(), volume = flags.volume, size = reported, "attached");
    main.block_on(async {
        while timeout(PROBE_INTERVAL, stop.next()).await.is_err() {
            lost.report();
        }
    });
    notify(&[NotifyState::Stopping]);
    tracing::info!("stopping: what is in flight is finished first");
    let finished = runtime.run(CoreId(0), |core| Box::pin(end(core)));
    for notice in runtime.shutdown() {
        tracing::debug!("{notice}");
    }
    if !finished {
        let detail = format!("not everything ended within {} s", PATIENCE.as_secs());
        return Err(Problem::new(Code::StoppedInFlight, detail));
    }
    tracing::info!("stopped");
    Ok(())
}

#[cfg(test)]
mod test {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_socket_is_named_by_its_path_or_by_the_uri_of_clients() {
        for text in [
            "nbd+unix:/run/a b.sock",
            "nbd+unix:///?socket=/run/a b.sock",
        ] {
            assert_eq!(
                socket_path(text).unwrap(),
                Path::new("/run/a b.sock"),
                "{text}"
            );
        }
        assert!(socket_path("nbd+unix:here.sock").unwrap().is_absolute());
        for text in [
            "nbd:/x",
            "nbd+unix:",
            "/run/x",
            "nbd+unix://host/?socket=/x",
        ] {
            let problem = socket_path(text).unwrap_err();
            assert!(problem.detail.contains("nbd+unix:PATH"), "{problem}");
        }
    }
}
