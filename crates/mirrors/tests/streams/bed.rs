//! Nodes of one cluster in one process, each with a runtime and a thread of its own.

use crate::records::Records;
use arbiter::Key;
use cluster::{Channel, Transport};
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture, in_time};
use membership::words::Command;
use membership::{Facts, Membership, Own, Settings};
use mirrors::TlsTransport;
use replica::NodeSlot;
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// A directory that is gone at the end.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Self {
        let dir = format!("causeway-mirrors-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn free_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, test_ports::free_port()).into()
}

/// A node, on its own thread.
pub(crate) struct Here {
    pub(crate) core: CoreHandle,
    pub(crate) dir: PathBuf,
    pub(crate) membership: Rc<Membership>,
    pub(crate) transport: Rc<Watched>,
    /// What else a test has there.
    pub(crate) kept: RefCell<Option<Rc<dyn std::any::Any>>>,
}

impl Here {
    pub(crate) async fn sleep(&self, time: Duration) {
        self.core.sleep_until(self.core.now().after(time)).await;
    }

    /// A channel to a node, which may just begin to listen.
    pub(crate) async fn dialled(&self, to: NodeSlot) -> Rc<dyn Channel> {
        let dialling = async {
            loop {
                match self.transport.dial(to).await {
                    Ok(channel) => return channel,
                    Err(_) => self.sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let dialled = in_time(&self.core, Duration::from_secs(10), dialling).await;
        dialled.expect("it listens soon")
    }

    /// Waits for it.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let waiting = async {
            while !is_so().await {
                self.sleep(Duration::from_millis(20)).await;
            }
        };
        let seen = in_time(&self.core, Duration::from_secs(30), waiting).await;
        seen.unwrap_or_else(|| panic!("{what}"));
    }
}

/// The transport, with the channels that it made: they can be cut.
pub(crate) struct Watched {
    inner: Rc<dyn Transport>,
    channels: Rc<RefCell<Vec<Rc<dyn Channel>>>>,
    pub(crate) made: Rc<Cell<usize>>,
}

impl Watched {
    fn new(inner: Rc<dyn Transport>) -> Rc<Self> {
        Rc::new(Self {
            inner,
            channels: Rc::default(),
            made: Rc::default(),
        })
    }

    pub(crate) fn cut(&self) {
        for channel in self.channels.take() {
            channel.end();
        }
    }

    fn noted(
        &self,
        work: LocalFuture<std::io::Result<Rc<dyn Channel>>>,
    ) -> LocalFuture<std::io::Result<Rc<dyn Channel>>> {
        let (channels, made) = (Rc::clone(&self.channels), Rc::clone(&self.made));
        Box::pin(async move {
            let channel = work.await?;
            channels.borrow_mut().push(Rc::clone(&channel));
            made.set(made.get() + 1);
            Ok(channel)
        })
    }
}

impl Transport for Watched {
    fn dial(&self, to: NodeSlot) -> LocalFuture<std::io::Result<Rc<dyn Channel>>> {
        self.noted(self.inner.dial(to))
    }

    fn accept(&self) -> LocalFuture<std::io::Result<Rc<dyn Channel>>> {
        self.noted(self.inner.accept())
    }
}

#[derive(Default)]
struct Place(RefCell<Option<Rc<Here>>>);

/// A node, from outside.
pub(crate) struct Site(Runtime);

impl Site {
    pub(crate) fn start(name: &'static str, number: u8, dir: &Dir, records: &Records) -> Self {
        let processors = std::thread::available_parallelism().unwrap().get();
        let config = RuntimeConfig {
            cores: Cores::List(vec![usize::from(number) % processors]),
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::start(&config).unwrap();
        let (dir, records) = (dir.path().join(name), records.clone());
        runtime.run(CoreId(0), move |core| {
            Box::pin(async move {
                std::fs::create_dir_all(&dir).unwrap();
                let settings = Settings {
                    endpoints: Vec::new(),
                    tls: None,
                    prefix: Key::new("causeway").unwrap(),
                    listen: vec![free_port()],
                    state_dir: dir.clone(),
                };
                let own = Own {
                    id: format!("{number:032x}"),
                    name: name.to_owned(),
                    version: "0.1.0".to_owned(),
                };
                let facts =
                    || -> LocalFuture<Facts> { Box::pin(std::future::ready(Facts::default())) };
                let arbiter = Rc::new(records);
                let who = (own, Box::new(facts) as membership::FactsOf);
                let started = Membership::start_with(&core, settings, who, arbiter).await;
                let membership = Rc::new(started.unwrap());
                let here = Here {
                    core: Rc::clone(&core),
                    dir,
                    transport: Watched::new(Rc::new(TlsTransport::new(&membership))),
                    membership,
                    kept: RefCell::default(),
                };
                *core.locals().get::<Place>().0.borrow_mut() = Some(Rc::new(here));
            })
        });
        Self(runtime)
    }

    /// Has it done on the node's thread.
    pub(crate) fn on<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Here>) -> T + Send + 'static,
    ) -> T {
        self.0.run(CoreId(0), |core| {
            let here = core.locals().get::<Place>().0.borrow().clone();
            Box::pin(async move { work(here.unwrap()).await })
        })
    }

    /// The same, and nobody waits for it here.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Here>) -> T + Send + 'static,
    ) -> std::sync::mpsc::Receiver<T> {
        let (done, answer) = std::sync::mpsc::channel();
        self.0.spawn_on(CoreId(0), |core| {
            let here = core.locals().get::<Place>().0.borrow().clone();
            Box::pin(async move {
                let _nobody_waits = done.send(work(here.unwrap()).await);
            })
        });
        answer
    }

    /// Has the daemon do it.
    pub(crate) fn run(&self, command: Command) -> serde_json::Value {
        self.on(async |here| here.membership.run(command).await.unwrap())
    }
}

/// Nodes 0 and 1 of a cluster.
pub(crate) fn two(dir: &Dir) -> (Site, Site) {
    let records = Records::default();
    let a = Site::start("san-a", 0, dir, &records);
    let b = Site::start("san-b", 1, dir, &records);
    let name = "home".to_owned();
    a.run(Command::Init { name });
    let made = a.run(Command::Token { minutes: 5 });
    let token = made["token"].as_str().unwrap().to_owned();
    b.run(Command::Join { token });
    (a, b)
}
