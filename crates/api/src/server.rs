//! The server's thread, from its start to its end.

use crate::accept::{Front, Listener, Times, accept, until_stopped};
use crate::alerts::Alerting;
use crate::auth::{BadProofs, Gate, TOKEN_FILE};
use crate::bench::program;
use crate::config::Settings;
use crate::documents::{self, Documents};
use crate::lab::may;
use crate::listen::{Bound, Socket, bind_one};
use crate::own_certificate::OwnCertificate;
use crate::places::Places;
use crate::records::Records;
use crate::routes::router;
use crate::store::{self, Store};
use crate::support_bundle::LogTail;
use crate::tls::Certificate;
use accounts::SessionTimes;
use axum::Router;
use controller::{Handle, StateFiles};
use manifest::code::Code;
use manifest::config::{ApiAddress, Config};
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use trial_runner::{Beds, Bench};

/// How long a stop waits for requests that are being answered.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// How soon an address that cannot be had is tried again, and files are checked.
const AGAIN: Duration = Duration::from_secs(1);

/// How soon a certificate of our own that could not be made anew is tried again.
const RENEW_AGAIN: Duration = Duration::from_secs(60);

/// How often the uses of tokens are stored.
const STORE_USES: Duration = Duration::from_secs(60);

/// The running server.
pub struct Server {
    thread: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    end_work: Arc<Notify>,
    sockets: Arc<Mutex<Vec<PathBuf>>>,
    reload: Arc<Notify>,
    restart: Arc<Notify>,
    live: Option<watch::Receiver<Arc<Config>>>,
}

/// What is served, and the work beside it.
struct Service {
    app: Router,
    tls: Option<TlsAcceptor>,
    certificate: Option<Arc<Certificate>>,
    gate: Option<Arc<Gate>>,
    alerting: Option<(Arc<Alerting>, Handle)>,
    /// What it has started.
    work: Option<(Arc<Bench>, Arc<Beds>)>,
    settings: Option<(Arc<Settings>, Handle)>,
}

/// What the program says of itself.
pub struct Program {
    /// The commit that it was built from; empty: nobody said it.
    pub commit: &'static str,
    /// What support bundles have of its log.
    pub log: LogTail,
}

/// What the thread has in common with the rest.
struct Shared {
    made: Arc<Mutex<Vec<PathBuf>>>,
    times: Times,
    stopped: watch::Receiver<bool>,
    reload: Arc<Notify>,
    end_work: Arc<Notify>,
}

impl Server {
    /// Serves the bound sockets on a thread of its own. When it returns the accounts are open and
    /// the certificate is there.
    ///
    /// # Errors
    /// The thread cannot be had, or files of the state directory neither be read nor made.
    pub fn start(
        bound: Bound,
        handle: Handle,
        token: Secret,
        config: &Config,
        records: Records,
        program: Program,
    ) -> Result<Self, Problem> {
        let with = (Times::default(), program);
        Self::start_with(bound, handle, token, config, records, with)
    }

    pub(crate) fn start_with(
        bound: Bound,
        handle: Handle,
        token: Secret,
        config: &Config,
        records: Records,
        (times, program): (Times, Program),
    ) -> Result<Self, Problem> {
        let restart = Arc::new(Notify::new());
        let asked = Arc::clone(&restart);
        let (live, known) = watch::channel(Arc::new(config.clone()));
        let mut server = Self::with(bound, times, async move || {
            open(handle, token, live, records, (times, program), asked).await
        })?;
        (server.restart, server.live) = (restart, Some(known));
        Ok(server)
    }

    /// Serves documents instead of the daemon's objects, on unix sockets only: whoever may open
    /// them may do everything.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start_documents(bound: Bound, documents: Documents) -> Result<Self, Problem> {
        Self::with(bound, Times::default(), async move || {
            Ok(Service {
                app: documents::router(&documents),
                tls: None,
                certificate: None,
                gate: None,
                alerting: None,
                work: None,
                settings: None,
            })
        })
    }

    fn with(
        bound: Bound,
        times: Times,
        open: impl AsyncFnOnce() -> Result<Service, Problem> + Send + 'static,
    ) -> Result<Self, Problem> {
        let failed = |error: io::Error| {
            let detail = format!("the API's thread: {error}");
            Problem::new(Code::ConfigEnvironment, detail)
        };
        let sockets = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = watch::channel(false);
        let reload = Arc::new(Notify::new());
        let end_work = Arc::new(Notify::new());
        let shared = Shared {
            made: Arc::clone(&sockets),
            times,
            stopped,
            reload: Arc::clone(&reload),
            end_work: Arc::clone(&end_work),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (ready, is_ready) = mpsc::channel();
        let thread = Builder::new().name("api".to_owned()).spawn(move || {
            runtime.block_on(async {
                match open().await {
                    Ok(service) => {
                        // Whoever starts it waits.
                        let _ = ready.send(Ok(()));
                        serve(bound, service, &shared).await;
                    }
                    Err(problem) => drop(ready.send(Err(problem))),
                }
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        let server = Self {
            thread: Some(thread.map_err(failed)?),
            stop,
            end_work,
            sockets,
            reload,
            restart: Arc::default(),
            live: None,
        };
        let gone = |_| Problem::new(Code::Internal, "the API's thread ended before it served");
        is_ready.recv().map_err(gone)??;
        Ok(server)
    }

    /// The settings, with the live ones as they are by now; of a daemon.
    #[must_use]
    pub fn live(&self) -> Option<watch::Receiver<Arc<Config>>> {
        self.live.clone()
    }

    /// Reads the certificate's files again, and the settings: live ones come into force.
    pub fn reload(&self) {
        self.reload.notify_one();
    }

    /// Until somebody who may has asked for a restart of the daemon.
    pub async fn restart_wanted(&self) {
        self.restart.notified().await;
    }

    /// Ends what it has started and goes on: runs of the bench, beds of the lab.
    pub fn end_work(&self) {
        self.end_work.notify_one();
    }

    /// Answers what is being answered, takes no more, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the API's thread was printed when it happened.
            let _ = thread.join();
        }
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &*sockets {
            // A socket that is left behind is recognised as stale by the next start.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

/// What addresses of https are served with, where there are any.
async fn certificate(
    files: &StateFiles,
    handle: &Handle,
    live: watch::Receiver<Arc<Config>>,
    names: &[String],
    records: &Records,
) -> Result<Option<Arc<Certificate>>, Problem> {
    let config = Arc::clone(&*live.borrow());
    let is_https = |address: &ApiAddress| matches!(address, ApiAddress::Https(_));
    if !config.api.iter().any(is_https) {
        return Ok(None);
    }
    let events = (records.events().clone(), config.node_name.clone());
    let certificate = match config.api_settings.certificate.clone() {
        Some(paths) => Certificate::given(paths, events)?,
        None => {
            let own = OwnCertificate::new(files.clone(), handle.clone(), live, names.to_vec());
            Certificate::own(own, events).await?
        }
    };
    let fingerprint = certificate.fingerprint();
    tracing::info!(fingerprint, "the API's certificate");
    Ok(Some(Arc::new(certificate)))
}

/// Opens the accounts and the certificate.
async fn open(
    handle: Handle,
    token: Secret,
    live: watch::Sender<Arc<Config>>,
    records: Records,
    (times, Program { commit, log }): (Times, Program),
    restart: Arc<Notify>,
) -> Result<Service, Problem> {
    let config = &Arc::clone(&*live.borrow());
    let known = live.subscribe();
    let files = StateFiles::new(handle.clone(), &config.state_dir);
    let names = host_names(config);
    let certificate = certificate(&files, &handle, known.clone(), &names, &records).await?;
    let server = certificate.as_ref().map(Certificate::server).transpose()?;
    let alerting = Alerting::open(
        files.clone(),
        known.clone(),
        certificate.clone(),
        records.clone(),
    );
    let alerting = Arc::new(alerting.await?);
    let token_made = std::fs::metadata(files.path(TOKEN_FILE)).and_then(|it| it.modified());
    let token_made = token_made.map(|at| at.duration_since(UNIX_EPOCH));
    let store = Store::open(files.clone(), login_times(config)).await?;
    store.lock().know_file_token(&token);
    let gate = Arc::new(Gate {
        commit,
        token_made: token_made.ok().and_then(Result::ok).map(|it| it.as_secs()),
        store,
        certificate: certificate.clone(),
        token,
        bad_proofs: BadProofs::default(),
        live: known,
        names,
        body_time: times.body,
        heartbeat: times.heartbeat,
    });
    let bench = Arc::new(Bench::open(files.clone(), handle.clone(), program()).await?);
    let beds = Arc::new(
        Beds::open(
            files.clone(),
            handle.clone(),
            program(),
            may(&config.node_name),
        )
        .await?,
    );
    let work = (bench, beds);
    if let Err(problem) = gate.store.whole() {
        alerting.add_record(store::FILE, &problem);
    }
    let settings = Arc::new(Settings::new(live, files.clone(), restart, records.clone()));
    Ok(Service {
        app: router(
            handle.clone(),
            Arc::clone(&gate),
            &records,
            &alerting,
            &work,
            &settings,
            (files, log),
        ),
        tls: server.map(TlsAcceptor::from),
        certificate,
        gate: Some(gate),
        alerting: Some((alerting, handle.clone())),
        work: Some(work),
        settings: Some((settings, handle)),
    })
}

fn login_times(config: &Config) -> SessionTimes {
    let settings = &config.api_settings;
    SessionTimes {
        idle: Duration::from_secs(settings.login_idle_seconds),
        life: Duration::from_secs(settings.login_life_seconds),
    }
}

/// Names by which the node may be asked for, in lower case, beside those that are live settings.
fn host_names(config: &Config) -> Vec<String> {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy().to_ascii_lowercase();
    let short = host.split('.').next().unwrap_or_default().to_owned();
    let mut names = vec![
        "localhost".to_owned(),
        config.node_name.to_ascii_lowercase(),
        host,
        short,
    ];
    names.sort();
    names.dedup();
    names.retain(|name| !name.is_empty());
    names
}

/// Has a socket served.
fn begin(serving: &mut JoinSet<()>, socket: Socket, front: &Arc<Front>, shared: &Shared) {
    let tcp = |socket, is_tls| {
        let socket = tokio::net::TcpListener::from_std(socket)?;
        Ok::<_, io::Error>(Listener::Tcp { socket, is_tls })
    };
    let listener = match socket {
        Socket::Unix(socket, path) => {
            let mut made = shared.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push(path);
            tokio::net::UnixListener::from_std(socket).map(Listener::Unix)
        }
        Socket::Tcp(socket) => tcp(socket, false),
        Socket::Https(socket) => tcp(socket, true),
    };
    if let Ok(listener) = listener {
        serving.spawn(accept(listener, Arc::clone(front)));
    }
}

async fn serve(bound: Bound, service: Service, shared: &Shared) {
    let mut serving = JoinSet::new();
    let front = Arc::new(Front {
        app: service.app,
        tls: service.tls,
        places: Places::default(),
        times: shared.times,
        group: bound.group,
        stopped: shared.stopped.clone(),
    });
    let (mut addresses, mut away) = (bound.addresses, bound.away);
    for socket in bound.sockets {
        begin(&mut serving, socket, &front, shared);
    }
    let upkeep = async {
        tokio::join!(
            follow_files(
                service.certificate.as_deref(),
                service.settings.as_ref(),
                &shared.reload
            ),
            store_uses(service.gate.as_deref()),
            keep_alerts(service.alerting.as_ref(), shared.times.alerts),
            end_work(service.work.as_ref(), &shared.end_work)
        )
    };
    let retry = async {
        while !away.is_empty() {
            tokio::time::sleep(AGAIN).await;
            away.retain_mut(|(address, why)| match bind_one(address, bound.group) {
                Ok((socket, at)) => {
                    tracing::info!("the API listens at {at} now");
                    begin(&mut serving, socket, &front, shared);
                    addresses.push(at);
                    false
                }
                Err(error) => {
                    *why = error.to_string();
                    true
                }
            });
            bound.reached.set(&addresses, &away);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = until_stopped(shared.stopped.clone()) => {}
        _ = upkeep => {}
        () = retry => {}
    }
    if let Some((bench, beds)) = &service.work {
        bench.stop();
        beds.stop();
        let _ = timeout(STOP_GRACE, bench.stopped()).await;
        let _ = timeout(STOP_GRACE, beds.stopped()).await;
    }
    if let Some(gate) = &service.gate {
        gate.store.store_uses().await;
    }
    if let Some((alerting, _)) = &service.alerting {
        // A disk that hangs does not keep the daemon from stopping.
        let _ = timeout(STOP_GRACE, alerting.store(true)).await;
    }
    let all_ended = async { while serving.join_next().await.is_some() {} };
    // A client that reads slowly for ever does not keep the daemon from stopping.
    let _ = timeout(STOP_GRACE, all_ended).await;
}

/// Reads the certificate again when somebody says so, or its files changed, and makes the daemon's
/// own one anew when it is time; reads the settings again when somebody says so.
async fn follow_files(
    certificate: Option<&Certificate>,
    settings: Option<&(Arc<Settings>, Handle)>,
    reload: &Notify,
) {
    let mut not_before = Instant::now();
    loop {
        let said = timeout(AGAIN, reload.notified()).await.is_ok();
        if let Some(certificate) = certificate {
            certificate.refresh(said);
            if Instant::now() >= not_before && certificate.keep_good().await {
                not_before = Instant::now() + RENEW_AGAIN;
            }
        }
        if let Some((settings, handle)) = settings.filter(|_| said) {
            // Why it was refused stands in the log, and in `status`.
            drop(settings.reload(handle, false).await);
        }
    }
}

async fn keep_alerts(alerting: Option<&(Arc<Alerting>, Handle)>, every: Duration) {
    match alerting {
        Some((alerting, handle)) => alerting.run(handle, every).await,
        None => std::future::pending().await,
    }
}

/// Ends runs and beds when the daemon begins to stop.
async fn end_work(work: Option<&(Arc<Bench>, Arc<Beds>)>, when: &Notify) {
    when.notified().await;
    if let Some((bench, beds)) = work {
        bench.stop();
        beds.stop();
    }
    std::future::pending::<()>().await;
}

async fn store_uses(gate: Option<&Gate>) {
    loop {
        tokio::time::sleep(STORE_USES).await;
        if let Some(gate) = gate {
            gate.store.store_uses().await;
        }
    }
}
