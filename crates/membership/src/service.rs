//! The node's membership as the daemon runs it: on core 0, with a socket for the commands of
//! whoever may open the state directory.

use crate::commands::run;
use crate::frame;
use crate::listener::begin;
use crate::node::{FactsOf, Node, Own, Settings};
use crate::present::Present;
use crate::refusal::Refusal;
use crate::standing::{Incoming, NodeStream};
use crate::store::SOCKET;
use crate::stream;
use crate::upkeep;
use crate::words::{BYTES_MAX, Command};
use arbiter::{Arbiter, Wire};
use env::{CoreHandle, DetachedStream, Listener, in_time};
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::Value;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How long a command may take to say what it wants.
const ASK_TIME_MAX: Duration = Duration::from_secs(10);

/// How long the command line waits for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// The membership of a node. It goes on until this is dropped.
pub struct Membership(Rc<Node>);

impl Membership {
    /// Reads what is kept, and goes on with it. What cannot be read is said to whoever asks: LUNs
    /// are served all the same.
    ///
    /// # Errors
    /// The socket for commands cannot be made.
    pub async fn start(
        core: &CoreHandle,
        settings: Settings,
        (own, facts): (Own, FactsOf),
    ) -> Result<Self, Problem> {
        Self::go_on(core, Node::new(core, settings, (own, facts))).await
    }

    /// The same, with this arbiter in place of etcd: for nodes of one process, which tests have.
    ///
    /// # Errors
    /// The socket for commands cannot be made.
    pub async fn start_with(
        core: &CoreHandle,
        settings: Settings,
        who: (Own, FactsOf),
        arbiter: Rc<dyn Arbiter>,
    ) -> Result<Self, Problem> {
        let node = Node::new(core, settings, who).asking(arbiter);
        Self::go_on(core, node).await
    }

    async fn go_on(core: &CoreHandle, node: Node) -> Result<Self, Problem> {
        let node = Rc::new(node);
        node.open().await;
        let path = node.store.path(SOCKET);
        let socket = core.net().listen_local(&path).map_err(|error| {
            let detail = format!("{}: {error}", path.display());
            Problem::new(Code::ConfigEnvironment, detail)
        })?;
        if node.state().is_some() {
            begin(&node);
        }
        let answering = answer(Rc::downgrade(&node), socket);
        core.spawn(Box::pin(answering));
        core.spawn(Box::pin(upkeep::run(Rc::downgrade(&node))));
        Ok(Self(node))
    }

    /// Does what a command wants.
    ///
    /// # Errors
    /// Why not.
    pub async fn run(&self, command: Command) -> Result<Value, Problem> {
        run(&self.0, command).await
    }

    /// Who this node is in its cluster, and who else is in it; `None`: it is in none, or was
    /// removed from it.
    #[must_use]
    pub fn present(&self) -> Option<Present> {
        self.0.present.borrow().clone()
    }

    /// Whoever waits for nodes that join, leave or have other addresses, and for this one to do so.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes(self.0.present.subscribe())
    }

    /// Makes a stream to another node. Its addresses are tried in turn, the one that did last
    /// first, each for a second, five together.
    ///
    /// # Errors
    /// It is not reached, is not the node that the arbiter knows, or takes no streams.
    pub async fn dial(&self, slot: u8) -> Result<NodeStream, Refusal> {
        stream::dial(&self.0, slot).await
    }

    /// Takes streams that other nodes make from now on. While nobody has this they are refused.
    #[must_use]
    pub fn incoming(&self) -> Incoming {
        Incoming::new(&self.0.streams)
    }

    /// The cluster's arbiter, which is opened when it is asked for first. Names of records, as
    /// [`arbiter::role::key`] has them for LUNs, stand below the cluster's prefix there. When
    /// this node has left and joined another cluster, it is another one.
    ///
    /// # Errors
    /// It cannot be opened: its certificates cannot be read.
    pub async fn arbiter(&self) -> Result<Rc<dyn Arbiter>, Problem> {
        Ok(self.0.register().await?.arbiter())
    }
}

/// Changes of [`Membership::present`].
#[derive(Debug)]
pub struct Changes(watch::Receiver<Option<Present>>);

impl Changes {
    /// The next one, and what is known then; changes that nobody waited for count as one. `None`:
    /// the membership has ended.
    pub async fn next(&mut self) -> Option<Option<Present>> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

async fn answer(node: Weak<Node>, socket: Rc<dyn Listener>) {
    loop {
        let Ok(stream) = poll_fn(|cx| socket.poll_accept(cx)).await else {
            return;
        };
        let Some(here) = node.upgrade() else { return };
        let core = Rc::clone(&here.core);
        core.spawn(Box::pin(async move { one(&here, stream).await }));
    }
}

/// One command.
async fn one(node: &Rc<Node>, stream: DetachedStream) {
    let Ok(stream) = node.core.net().adopt(stream) else {
        return;
    };
    let mut stream = Wire::new(stream);
    let asked = frame::receive::<Command>(&mut stream, BYTES_MAX);
    let Some(Ok(command)) = in_time(&node.core, ASK_TIME_MAX, asked).await else {
        return;
    };
    let done = run(node, command).await;
    let _gone = frame::send(&mut stream, &done).await;
}

/// Has the daemon of this state directory do it.
///
/// # Errors
/// It does not run, has no `[cluster]`, or refuses.
pub fn ask(state_dir: &Path, command: &Command) -> Result<Value, Problem> {
    let path = state_dir.join(SOCKET);
    let failed = |error: &io::Error| {
        let detail = format!("{}: {error}", path.display());
        let next = "start the daemon (`systemctl start causeway`), after [cluster] was written into node.toml; run \
                    this as root or as the daemon's user";
        Problem::new(Code::Unreachable, detail).hint(next)
    };
    let answered = || -> io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        let body = serde_json::to_vec(command)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        stream.write_all(&length.to_le_bytes())?;
        stream.write_all(&body)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut answer = Vec::new();
        let mut part = stream.take(u32::from_le_bytes(length).into());
        part.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = answered().map_err(|error| failed(&error))?;
    let done: Result<Result<Value, Problem>, _> = serde_json::from_slice(&answer);
    done.map_err(|error| failed(&error.into()))?
}
