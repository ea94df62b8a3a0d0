//! Nodes of one core that meet by TLS over loopback sockets, with one file as their arbiter.

use crate::client;
use crate::commands::run;
use crate::node::{Facts, FactsOf, Node, Own, Settings};
use crate::refusal::Refusal;
use crate::register::Register;
use crate::words::{ClusterView, Command, MadeToken, Outcome};
use arbiter::{Answer, Arbiter, Key, LocalArbiter, Question, Swap};
use env::real::{Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use manifest::problem::Problem;
use replica::Revision;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use serde::de::DeserializeOwned;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A directory that is gone at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = format!("causeway-membership-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(super) fn on_a_core(name: &str, work: impl AsyncFnOnce(CoreHandle, &Path) + Send + 'static) {
    let dir = Dir::new(name);
    let path = dir.0.clone();
    let runtime = Runtime::start(&RuntimeConfig::default()).unwrap();
    runtime.run(CoreId(0), move |core| {
        Box::pin(async move { work(core, &path).await })
    });
}

pub(super) fn free_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, test_ports::free_port()).into()
}

/// A clock that is so many seconds away from the machine's.
#[derive(Default, Debug)]
pub(super) struct Away(AtomicI64);

impl Away {
    pub(super) fn by(seconds: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(seconds)))
    }

    pub(super) fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl TimeProvider for Away {
    fn current_time(&self) -> Option<UnixTime> {
        let now = UnixTime::now()
            .as_secs()
            .saturating_add_signed(self.0.load(Ordering::Relaxed));
        Some(UnixTime::since_unix_epoch(Duration::from_secs(now)))
    }
}

pub(super) const YEARS: i64 = 5 * 365 * 86_400;

pub(super) struct Bed {
    pub(super) core: CoreHandle,
    pub(super) dir: PathBuf,
    pub(super) arbiter: Rc<dyn Arbiter>,
}

impl Bed {
    pub(super) async fn new(core: &CoreHandle, dir: &Path, name: &str) -> Self {
        let at = dir.join(name);
        std::fs::create_dir_all(&at).unwrap();
        Self {
            core: Rc::clone(core),
            arbiter: Rc::new(LocalArbiter::open(core, &at).await.unwrap()),
            dir: at,
        }
    }

    /// This node asks this arbiter.
    pub(super) async fn answers(&self, node: &Node) {
        let register = Register::new(&self.core, Rc::clone(&self.arbiter));
        node.asks(register).await;
    }

    /// Puts this there, whatever is there.
    pub(super) async fn puts(&self, key: &Key, value: Vec<u8>) {
        let read = self.arbiter.ask(vec![Question::Read(key.clone())]).await;
        let Answer::Is(is) = &read[0] else {
            panic!("{read:?}");
        };
        let at = is.as_ref().map_or(Revision(0), |it| it.0);
        let swap = Question::Swap(Swap::new(key.clone(), at, value));
        let done = self.arbiter.ask(vec![swap]).await;
        assert!(matches!(done[0], Answer::Swapped(_)), "{done:?}");
    }

    /// A node of this name, and of an identifier with this number.
    pub(super) async fn node(&self, name: &str, number: u8, clock: &Arc<Away>) -> Rc<Node> {
        let state_dir = self.dir.join(name);
        std::fs::create_dir_all(&state_dir).unwrap();
        let settings = Settings {
            endpoints: Vec::new(),
            tls: None,
            prefix: Key::new("causeway").unwrap(),
            listen: vec![free_port()],
            state_dir,
        };
        let own = Own {
            id: format!("{number:032x}"),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
        };
        self.opened(settings, own, clock).await
    }

    /// The first two nodes of a cluster, which go by this clock.
    pub(super) async fn two(&self, clock: &Arc<Away>) -> (Rc<Node>, Rc<Node>) {
        let a = self.node("san-a", 1, clock).await;
        let b = self.node("san-b", 2, clock).await;
        init(&a).await;
        join(&b, &token(&a).await).await.unwrap();
        (a, b)
    }

    /// A node that starts on this state.
    pub(super) async fn opened(&self, settings: Settings, own: Own, clock: &Arc<Away>) -> Rc<Node> {
        let number = &own.id[30..];
        let naas = vec![format!("naa.600140500000000000000000000000{number}")];
        let facts = Facts {
            rings: vec![2],
            naas,
        };
        let facts =
            move || -> env::LocalFuture<Facts> { Box::pin(std::future::ready(facts.clone())) };
        let mut node = Node::new(&self.core, settings, (own, Box::new(facts)));
        node.clock = Arc::clone(clock) as Arc<dyn TimeProvider>;
        self.answers(&node).await;
        node.open().await;
        Rc::new(node)
    }
}

pub(super) async fn asked<T: DeserializeOwned>(
    node: &Rc<Node>,
    command: Command,
) -> Result<T, Problem> {
    let answer = run(node, command).await?;
    Ok(serde_json::from_value(answer).unwrap())
}

pub(super) async fn init(node: &Rc<Node>) -> Outcome {
    let name = "home".to_owned();
    asked(node, Command::Init { name }).await.unwrap()
}

pub(super) async fn token(node: &Rc<Node>) -> String {
    let made: MadeToken = asked(node, Command::Token { minutes: 5 }).await.unwrap();
    made.token
}

pub(super) async fn join(node: &Rc<Node>, token: &str) -> Result<Outcome, Problem> {
    let token = token.to_owned();
    asked(node, Command::Join { token }).await
}

pub(super) async fn leave(
    node: &Rc<Node>,
    other: Option<&str>,
    force: bool,
) -> Result<Outcome, Problem> {
    let node_name = other.map(str::to_owned);
    let command = Command::Leave {
        node: node_name,
        force,
        dry_run: false,
    };
    asked(node, command).await
}

pub(super) async fn status(node: &Rc<Node>) -> ClusterView {
    asked(node, Command::Status).await.unwrap()
}

/// Who has just begun to listen may need the time that the one before needs to end.
pub(super) async fn all_answer(node: &Rc<Node>) {
    let core = &node.core;
    let until = core.now().after(Duration::from_secs(10));
    loop {
        let view = status(node).await;
        if view.nodes.iter().all(|it| it.answers) {
            return;
        }
        assert!(core.now() < until, "{view:?}");
        core.sleep_until(core.now().after(Duration::from_millis(100)))
            .await;
    }
}

/// What `from` is answered by the node that the cluster knows as `slot`.
pub(super) async fn hello(from: &Rc<Node>, slot: u8) -> Result<(), Refusal> {
    let state = from.member().unwrap();
    let roster = state.roster.borrow().clone();
    let own = state.member.slot;
    let said = client::hello(from, &state.to_node, &roster, (own, slot)).await;
    said.map(drop)
}

pub(super) fn own_of(node: &Node) -> (Own, FactsOf) {
    let none = || -> env::LocalFuture<Facts> { Box::pin(std::future::ready(Facts::default())) };
    (node.own.clone(), Box::new(none))
}

/// To a node that has just begun to listen.
pub(super) async fn connected(core: &CoreHandle, at: SocketAddr) -> Rc<dyn env::Stream> {
    for _ in 0..100 {
        if let Ok(stream) = core.net().connect(at, None).await {
            return stream;
        }
        core.sleep_until(core.now().after(Duration::from_millis(20)))
            .await;
    }
    panic!("nobody listens at {at}");
}
