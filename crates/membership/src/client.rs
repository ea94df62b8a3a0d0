//! A connection to another node: as one of the cluster, or as one that wants to join.

use crate::admission::Candidate;
use crate::authority::{Identity, SecretKey, request};
use crate::frame::{self, Broken};
use crate::node::Node;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Roster;
use crate::tls;
use crate::token::Token;
use crate::words::{BYTES_MAX, Credentials, Hello, JoinAnswer, Reply};
use arbiter::Wire;
use env::{CoreHandle, Stream, in_time};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::time_provider::TimeProvider;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a node of the cluster may take to answer.
const HELLO_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a join may take at the node that is asked, which asks etcd.
const JOIN_TIME_MAX: Duration = Duration::from_secs(60);

/// Why an answer did not come.
#[must_use]
pub(crate) fn broken(whom: &str, broken: Broken) -> Refusal {
    match broken {
        Broken::Ended(error) => tls::refusal(whom, &error),
        Broken::Garbled(refusal) => refusal,
    }
}

/// TLS with the node of this name, and the connection below it.
pub(crate) async fn connect(
    core: &CoreHandle,
    address: SocketAddr,
    config: Arc<ClientConfig>,
    name: &str,
) -> Result<(TlsStream<Wire>, Rc<dyn Stream>), Refusal> {
    let whom = address.to_string();
    let name = ServerName::try_from(name.to_owned()).map_err(|_| {
        Refusal::new(
            RefusalKind::Garbled,
            format!("{name} is no name of a node"),
            "please report this with the log",
        )
    })?;
    let connected = async {
        let stream = core.net().connect(address, None).await?;
        let connector = TlsConnector::from(config);
        let wire = Wire::new(Rc::clone(&stream));
        Ok((connector.connect(name, wire).await?, stream))
    };
    connected.await.map_err(|error| tls::refusal(&whom, &error))
}

pub(crate) fn silent(address: SocketAddr, time: Duration) -> Refusal {
    Refusal::new(
        RefusalKind::Unreachable,
        format!("{address}: no answer within {} seconds", time.as_secs()),
        "check that Causeway runs there, its `cluster.listen`, and that a firewall lets this node through",
    )
}

/// Asks node `slot` of the cluster whether it is there, as node `own`: both have shown who they
/// are.
///
/// # Errors
/// It is not there, or not the one that the arbiter knows.
pub(crate) async fn hello(
    node: &Node,
    config: &Arc<ClientConfig>,
    roster: &Roster,
    (own, slot): (u8, u8),
) -> Result<Hello, Refusal> {
    let (name, addresses) = place(roster, slot)?;
    let mut last = None;
    for address in &addresses {
        let work = hello_at(node, *address, (config, &name), roster, (own, slot));
        match in_time(&node.core, HELLO_TIME_MAX, work).await {
            Some(Ok(hello)) => return Ok(hello),
            Some(Err(refusal)) => last = Some(refusal),
            None => last = Some(silent(*address, HELLO_TIME_MAX)),
        }
    }
    Err(last.unwrap_or_else(|| nowhere(slot)))
}

fn nowhere(slot: u8) -> Refusal {
    Refusal::new(
        RefusalKind::Unreachable,
        format!("node {slot} has no address"),
        "write `cluster.listen` into its node.toml",
    )
}

/// By which name a node shows itself, and at which addresses: one or more.
pub(crate) fn place(roster: &Roster, slot: u8) -> Result<(String, Vec<SocketAddr>), Refusal> {
    let other = roster.nodes.get(&slot).map(|it| &it.record.profile);
    let other = other.filter(|it| !it.addresses.is_empty());
    let other = other.ok_or_else(|| nowhere(slot))?;
    let identity = Identity {
        cluster: roster.cluster.record.id.clone(),
        slot,
        node: other.id.clone(),
    };
    Ok((identity.name(), other.addresses.clone()))
}

/// The certificate that the other side has shown.
pub(crate) fn shown(stream: &TlsStream<Wire>) -> Vec<u8> {
    let shown = stream.get_ref().1.peer_certificates();
    let first = shown.and_then(|it| it.first());
    first.map(|it| it.to_vec()).unwrap_or_default()
}

async fn hello_at(
    node: &Node,
    address: SocketAddr,
    (config, name): (&Arc<ClientConfig>, &str),
    roster: &Roster,
    (own, slot): (u8, u8),
) -> Result<Hello, Refusal> {
    let (mut stream, _) = connect(&node.core, address, Arc::clone(config), name).await?;
    let found = roster.peer(&shown(&stream), own)?;
    debug_assert_eq!(found, slot, "TLS has compared the names");
    greet(node, &mut stream, (address, slot)).await
}

/// Says who this node is to one that was believed by its certificate, and hears it.
pub(crate) async fn greet(
    node: &Node,
    stream: &mut TlsStream<Wire>,
    (address, slot): (SocketAddr, u8),
) -> Result<Hello, Refusal> {
    let whom = address.to_string();
    let sent = frame::send(stream, &node.hello(slot)).await;
    sent.map_err(|error| tls::refusal(&whom, &error))?;
    let said: Reply<Hello> = frame::receive(stream, BYTES_MAX)
        .await
        .map_err(|it| broken(&whom, it))?;
    let hello = said?;
    node.hears(&hello, slot)?;
    Ok(hello)
}

/// Asks for a certificate with a token; each address of it in turn, until one of them says
/// anything.
///
/// # Errors
/// Why this node is not let in.
pub(crate) async fn join(
    core: &CoreHandle,
    token: &Token,
    key: &SecretKey,
    candidate: &Candidate,
    clock: &Arc<dyn TimeProvider>,
) -> Result<JoinAnswer, Refusal> {
    let unfit = |error: &dyn std::fmt::Display| {
        let next = "please report this with the log";
        Refusal::new(
            RefusalKind::Garbled,
            format!("a certificate: {error}"),
            next,
        )
    };
    let request = request(key).map_err(|error| unfit(&error))?;
    let (cluster, authority) = (&token.cluster, token.authority);
    let config = tls::to_cluster(cluster, authority, request, key, Arc::clone(clock));
    let config = config.map_err(|error| unfit(&error))?;
    let mut last = None;
    for address in &token.addresses {
        let work = ask(core, *address, Arc::clone(&config), token, candidate);
        let refusal = match in_time(core, JOIN_TIME_MAX, work).await {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(refusal)) => refusal,
            None => silent(*address, JOIN_TIME_MAX),
        };
        let is_answer = refusal.kind != RefusalKind::Unreachable;
        last = Some(refusal);
        if is_answer {
            break;
        }
    }
    Err(last.unwrap_or_else(crate::token::unknown))
}

async fn ask(
    core: &CoreHandle,
    address: SocketAddr,
    config: Arc<ClientConfig>,
    token: &Token,
    candidate: &Candidate,
) -> Result<JoinAnswer, Refusal> {
    let whom = address.to_string();
    let name = "cluster.causeway.internal";
    let (mut stream, _) = connect(core, address, config, name).await?;
    let credentials = Credentials {
        token: token.id.clone(),
        secret: token.secret.clone(),
    };
    let sent = frame::send(&mut stream, &credentials).await;
    sent.map_err(|error| tls::refusal(&whom, &error))?;
    let said: Result<Reply<()>, Broken> = frame::receive(&mut stream, BYTES_MAX).await;
    said.map_err(|it| broken(&whom, it))??;
    let sent = frame::send(&mut stream, candidate).await;
    sent.map_err(|error| tls::refusal(&whom, &error))?;
    let said: Result<Reply<JoinAnswer>, Broken> = frame::receive(&mut stream, BYTES_MAX).await;
    said.map_err(|it| broken(&whom, it))?
}
