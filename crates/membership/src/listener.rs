//! Where other nodes come in: nodes of the cluster, who show their certificates, and nodes that
//! want to join, who have a token. What TLS is asked for (ALPN) says what a connection is for:
//! [`NODE`], [`JOIN`] or [`STREAM`].
//!
//! **Failure model.** Of who is not known nothing is kept but a place among [`BOUNDS`], for
//! [`STRANGER_TIME_MAX`] and a frame of 1 KiB. Where more come, the oldest end, so that whoever
//! comes is heard ([`Connections`]). Whatever they say, it ends with their connection. A stream of
//! a node takes no such place as soon as it is known whose it is.

use crate::admission::{Candidate, LUNS_MAX};
use crate::authority::PublicKey;
use crate::belief::{STRANGER_TIME_MAX, answered, believed, shown};
use crate::connections::{Bounds, Connection, Connections};
use crate::frame::{self, Broken};
use crate::node::{MemberState, Node};
use crate::records::Der;
use crate::refusal::{Refusal, RefusalKind};
use crate::stream;
use crate::tls::{JOIN, NODE, STREAM};
use crate::words::{BYTES_MAX, Credentials, FIRST_BYTES_MAX, JoinAnswer, Reply};
use arbiter::Wire;
use env::{DetachedStream, in_time};
use futures_util::future::{Either, select};
use replica::NODES_MAX;
use rustls::ServerConfig;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// Connections of whom nobody knows who they are.
pub(crate) const BOUNDS: Bounds = Bounds {
    together: 32,
    of_one: 8,
};

/// How long one may take that has a token, or a certificate.
const KNOWN_TIME_MAX: Duration = Duration::from_secs(60);

/// How soon an address that cannot be had is tried again, or accepting that fails.
const AGAIN: Duration = Duration::from_secs(1);

/// This node is this one from now on, and listens for other nodes.
pub(crate) fn take(node: &Rc<Node>, state: MemberState) -> Rc<MemberState> {
    let state = Rc::new(state);
    node.becomes(Some(Rc::clone(&state)));
    begin(node);
    state
}

/// Listens for other nodes; who did before ends.
pub(crate) fn begin(node: &Rc<Node>) {
    let begun = node.ends_listening();
    for at in &node.settings.listen {
        let listening = listen(Rc::downgrade(node), begun, *at);
        node.core.spawn(Box::pin(listening));
    }
}

/// Listens at an address as long as this node is in the cluster that it was in at the beginning.
async fn listen(node: Weak<Node>, begun: u64, at: SocketAddr) {
    let connections = Connections::new(BOUNDS);
    loop {
        let Some(here) = node.upgrade() else { return };
        if !here.listens(begun) {
            return;
        }
        let core = Rc::clone(&here.core);
        let again = core.sleep_until(core.now().after(AGAIN));
        match core.net().listen(at) {
            Ok(listener) => {
                here.not_listening.borrow_mut().remove(&at);
                tracing::info!("nodes of the cluster are heard at {}", listener.local());
                drop(here);
                accept(&*listener, (&node, begun), &connections).await;
            }
            Err(error) => {
                let before = here
                    .not_listening
                    .borrow_mut()
                    .insert(at, error.to_string());
                if before.is_none() {
                    tracing::warn!("cluster.listen: {at}: {error}: it is tried again every second");
                }
            }
        }
        again.await;
    }
}

/// Until the listener fails, or this node is of no cluster any more.
async fn accept(
    listener: &dyn env::Listener,
    (node, begun): (&Weak<Node>, u64),
    connections: &Connections,
) {
    loop {
        let Some(core) = node.upgrade().map(|it| Rc::clone(&it.core)) else {
            return;
        };
        let next = poll_fn(|cx| listener.poll_accept(cx));
        let came = in_time(&core, AGAIN, next).await;
        let Some(node) = node.upgrade().filter(|it| it.listens(begun)) else {
            return;
        };
        let Some(state) = node.state() else { return };
        let stream = match came {
            None => continue,
            Some(Ok(stream)) => stream,
            Some(Err(_)) => return,
        };
        let place = connections.take(stream.peer.ip());
        core.spawn(Box::pin(async move {
            let (peer, ends) = (stream.peer, place.ends());
            let work = pin!(serve(&node, &state, stream, place));
            let ends = pin!(ends.notified());
            if let Either::Right(_) = select(work, ends).await {
                tracing::debug!("{peer}: too many connections of nodes that are not known");
            }
        }));
    }
}

async fn serve(node: &Rc<Node>, state: &MemberState, stream: DetachedStream, place: Connection) {
    let peer = stream.peer;
    let core = &node.core;
    let Ok(wire) = core.net().adopt(stream) else {
        return;
    };
    let shaking = handshake(state, Wire::new(Rc::clone(&wire)));
    let shaken = in_time(core, STRANGER_TIME_MAX, shaking).await;
    let Some(Some((stream, wants))) = shaken else {
        tracing::debug!("{peer}: no node");
        return;
    };
    let work = async {
        match wants {
            Wants::Hello => serve_node(node, state, stream).await,
            Wants::Join => serve_join(node, state, stream, peer).await,
            Wants::Stream => stream::serve(node, state, (stream, wire), place).await,
        }
    };
    if in_time(core, KNOWN_TIME_MAX, work).await.is_none() {
        tracing::debug!("{peer}: it took too long");
    }
}

/// What a connection is for.
#[derive(Clone, Copy)]
enum Wants {
    Hello,
    Join,
    Stream,
}

/// Ends in TLS, with what it is for.
async fn handshake(state: &MemberState, wire: Wire) -> Option<(TlsStream<Wire>, Wants)> {
    let begun = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), wire).await;
    let begun = begun.ok()?;
    let wanted: Vec<Vec<u8>> = begun.client_hello().alpn()?.map(<[u8]>::to_vec).collect();
    let wants = |what: &[u8]| wanted.iter().any(|it| it == what);
    let all: [(&[u8], Wants, &Arc<ServerConfig>); 3] = [
        (NODE, Wants::Hello, &state.for_nodes),
        (JOIN, Wants::Join, &state.for_candidates),
        (STREAM, Wants::Stream, &state.for_streams),
    ];
    let mut found = all.iter().filter(|it| wants(it.0));
    let (one, more) = (found.next(), found.next());
    // One of another version wants none of them, and is notified by TLS.
    let (_, what, config) = one.unwrap_or(&all[0]);
    if more.is_some() {
        return None;
    }
    let stream = begun.into_stream(Arc::clone(config)).await;
    match stream {
        Ok(stream) => Some((stream, *what)),
        Err(error) => {
            let refusal = crate::tls::refusal("a node that connects", &error);
            tracing::debug!("{refusal}");
            None
        }
    }
}

/// A node of the cluster asks whether this one is there.
async fn serve_node(node: &Rc<Node>, state: &MemberState, mut stream: TlsStream<Wire>) {
    let found = believed(node, state, &shown(&stream)).await;
    let received = in_time(
        &node.core,
        STRANGER_TIME_MAX,
        frame::receive(&mut stream, FIRST_BYTES_MAX),
    );
    let Some(Ok(hello)) = received.await else {
        return;
    };
    let said = answered(node, state, found, &hello).map(|it| it.1);
    let _gone = frame::send(&mut stream, &said).await;
}

/// A node wants to join.
async fn serve_join(
    node: &Rc<Node>,
    state: &MemberState,
    mut stream: TlsStream<Wire>,
    peer: SocketAddr,
) {
    let key = PublicKey::of(&shown(&stream));
    let credentials = in_time(
        &node.core,
        STRANGER_TIME_MAX,
        frame::receive::<Credentials>(&mut stream, FIRST_BYTES_MAX),
    );
    let (Some(Ok(credentials)), Some(key)) = (credentials.await, key) else {
        return;
    };
    let known = async {
        let register = node.register().await.map_err(|it| of_problem(&it))?;
        register
            .knows_token(&credentials.token, &credentials.secret)
            .await
    };
    let known: Reply<()> = known.await;
    if let Err(refusal) = &known
        && node.may_log()
    {
        tracing::warn!("{peer}: a node that wants to join is not let in: {refusal}");
    }
    if frame::send(&mut stream, &known).await.is_err() || known.is_err() {
        return;
    }
    let candidate = match frame::receive::<Candidate>(&mut stream, BYTES_MAX).await {
        Ok(candidate) => candidate,
        Err(Broken::Garbled(refusal)) => {
            let said: Reply<JoinAnswer> = Err(refusal);
            let _gone = frame::send(&mut stream, &said).await;
            return;
        }
        Err(Broken::Ended(_)) => return,
    };
    let name = candidate.profile.name.clone();
    let said = answer_join(node, state, (&candidate, &key), &credentials).await;
    match &said {
        Ok(answer) => tracing::info!("node {} ({name}) has joined", answer.slot),
        Err(refusal) => tracing::warn!("{peer}: {name} is not let in: {refusal}"),
    }
    let _gone = frame::send(&mut stream, &said).await;
}

async fn answer_join(
    node: &Rc<Node>,
    state: &MemberState,
    (candidate, key): (&Candidate, &PublicKey),
    credentials: &Credentials,
) -> Reply<JoinAnswer> {
    is_sound(candidate)?;
    let _turn = node.turn.lock().await;
    let register = node.register().await.map_err(|it| of_problem(&it))?;
    let naas = node.taken(&register).await?;
    let by = node.own.id.clone();
    let admitted = register
        .admit(
            &state.authority,
            (&by, &naas, node.now()),
            (candidate, key),
            (&credentials.token, &credentials.secret),
        )
        .await?;
    let kept = node.keep(state, admitted.roster.clone()).await;
    kept.map_err(|it| of_problem(&it))?;
    Ok(JoinAnswer {
        slot: admitted.slot,
        certificate: Der(admitted.record.certificate.0),
        authority_key: state.authority.key().pem(),
        roster: admitted.roster,
    })
}

/// What a node says of itself can be kept.
fn is_sound(candidate: &Candidate) -> Result<(), Refusal> {
    let profile = &candidate.profile;
    let is_id = profile.id.len() == 32 && profile.id.bytes().all(|it| it.is_ascii_hexdigit());
    let is_name = manifest::name::check_object_name(&profile.name).is_ok();
    let few = profile.addresses.len() <= 16
        && profile.rings.len() <= usize::from(NODES_MAX)
        && profile.version.len() <= 64
        && candidate.naas.len() <= LUNS_MAX;
    if is_id && is_name && few && !profile.addresses.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalKind::Garbled,
        "what the node says of itself is none of a node: identifier, name, addresses, ring counts",
        "install the same version of Causeway on both nodes, and write `cluster.listen` into node.toml",
    ))
}

/// A problem of this node, for another one.
fn of_problem(problem: &manifest::problem::Problem) -> Refusal {
    Refusal::new(
        RefusalKind::Arbiter,
        format!("the node that was asked: {}", problem.detail),
        &problem.hint,
    )
}
