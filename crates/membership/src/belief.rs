//! Who is at the other end of a connection that came, and what is said to it.

use crate::node::{MemberState, Node};
use crate::refusal::{Refusal, RefusalKind};
use crate::words::{Hello, Reply};
use arbiter::Wire;
use std::time::Duration;
use tokio_rustls::server::TlsStream;

/// How long one may take to say who it is.
pub(crate) const STRANGER_TIME_MAX: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });

/// The certificate that the other side has shown.
pub(crate) fn shown(stream: &TlsStream<Wire>) -> Vec<u8> {
    let shown = stream.get_ref().1.peer_certificates();
    let first = shown.and_then(|it| it.first());
    first.map(|it| it.to_vec()).unwrap_or_default()
}

/// Which node shows this certificate. The arbiter is asked once where that is not known here: the
/// node may have joined, or have another certificate, since it was asked.
///
/// # Errors
/// It is none that is believed.
pub(crate) async fn believed(node: &Node, state: &MemberState, certificate: &[u8]) -> Reply<u8> {
    let own = state.member.slot;
    let mut found = state.roster.borrow().peer(certificate, own);
    if found.is_err() && node.follow(state).await.is_ok() {
        found = state.roster.borrow().peer(certificate, own);
    }
    found
}

/// What is said to a node that was found and has said this, with its number.
///
/// # Errors
/// It was not found, means another node, or runs twice.
pub(crate) fn answered(
    node: &Node,
    state: &MemberState,
    found: Reply<u8>,
    hello: &Hello,
) -> Reply<(u8, Hello)> {
    let own = state.member.slot;
    let said = found.and_then(|slot| {
        if hello.to != own {
            return Err(Refusal::new(
                RefusalKind::Stranger,
                format!("this is node {own}, and not node {}", hello.to),
                "check `cluster.listen` of both nodes: one address is of one node",
            ));
        }
        node.hears(hello, slot)?;
        Ok((slot, node.hello(slot)))
    });
    if let Err(refusal) = &said
        && node.may_log()
    {
        tracing::warn!("a node that connects is not believed: {refusal}");
    }
    said
}
