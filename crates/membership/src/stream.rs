//! A stream with another node begins: one dials, the other one listens, and both show who they are.
//!
//! ```text
//!   TCP -- TLS, "causeway-stream/1", certificates of both -- Hello --> whoever takes streams
//! ```
//!
//! A node says which start of it speaks, as where it is asked whether it is there: one that runs
//! twice is refused here, too.

use crate::belief::{STRANGER_TIME_MAX, answered, believed, shown};
use crate::client::{self, connect, greet, silent};
use crate::connections::Connection as Stranger;
use crate::frame;
use crate::node::{MemberState, Node};
use crate::refusal::{Refusal, RefusalKind};
use crate::standing::NodeStream;
use crate::words::{FIRST_BYTES_MAX, Hello, Reply};
use arbiter::Wire;
use env::{Stream, in_time};
use rustls::Connection;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::server::TlsStream;

/// How long one address of a node may take.
const ADDRESS_TIME_MAX: Duration = Duration::from_secs(1);

/// How long all of them may take.
const DIAL_TIME_MAX: Duration = Duration::from_secs(5);

/// Why none is accepted here.
fn nobody() -> Refusal {
    Refusal::new(
        RefusalKind::Unreachable,
        "nobody takes streams at that node now",
        "it is dialled again: that node may just begin or end",
    )
}

/// Node `slot` is in the cluster of this node, and so is this one: still, after all that was
/// awaited.
fn is_in(node: &Node, slot: u8) -> bool {
    let present = node.present.borrow();
    let others = present.as_ref().map(|it| &it.others);
    others.is_some_and(|it| it.iter().any(|it| it.slot == slot))
}

/// A node makes a stream to this one. As soon as it is known which node it is, it takes no place of
/// strangers.
pub(crate) async fn serve(
    node: &Rc<Node>,
    state: &MemberState,
    (mut tls, wire): (TlsStream<Wire>, Rc<dyn Stream>),
    place: Stranger,
) {
    let found = believed(node, state, &shown(&tls)).await;
    let received = frame::receive::<Hello>(&mut tls, FIRST_BYTES_MAX);
    let received = in_time(&node.core, STRANGER_TIME_MAX, received).await;
    let Some(Ok(hello)) = received else {
        return;
    };
    let said: Reply<(u8, Hello)> = answered(node, state, found, &hello).and_then(|said| {
        let is_taken = node.streams.are_taken();
        is_taken.then_some(said).ok_or_else(nobody)
    });
    let (slot, said) = match said {
        Ok((slot, hello)) => (Some(slot), Ok(hello)),
        Err(refusal) => (None, Err(refusal)),
    };
    if slot.is_some() {
        drop(place);
    }
    let sent = frame::send(&mut tls, &said).await;
    if let (Some(slot), Ok(())) = (slot, sent)
        && is_in(node, slot)
    {
        let tls = Connection::Server(tls.into_inner().1);
        let stream = node.streams.stands(slot, (tls, wire));
        node.streams.came(stream);
    }
}

/// A stream to a node, at the address that did last, then at the others.
///
/// # Errors
/// It is not reached, or is not the one that the arbiter knows, or does not believe this one.
pub(crate) async fn dial(node: &Rc<Node>, slot: u8) -> Result<NodeStream, Refusal> {
    let state = node.state().filter(|_| is_in(node, slot));
    let Some(state) = state else {
        let cause = format!("this node is in no cluster with a node {slot}");
        let next = "run `causeway cluster status` on both";
        return Err(Refusal::new(RefusalKind::Stranger, cause, next));
    };
    let place = client::place(&state.roster.borrow(), slot);
    let (name, addresses) = place?;
    let first = node.reached.borrow().get(&slot).copied();
    let first = addresses.iter().position(|it| Some(*it) == first);
    let first = first.unwrap_or_default();
    let dialled = async {
        let mut last = None;
        let in_turn = addresses.iter().cycle().skip(first);
        for (address, next) in in_turn.clone().zip(in_turn.skip(1)).take(addresses.len()) {
            // Whoever waits for this may give up before the address does.
            node.reached.borrow_mut().insert(slot, *next);
            let work = at(node, &state, *address, (&name, slot));
            match in_time(&node.core, ADDRESS_TIME_MAX, work).await {
                Some(Ok(stream)) => {
                    node.reached.borrow_mut().insert(slot, *address);
                    return Ok(stream);
                }
                Some(Err(refusal)) => last = Some(refusal),
                None => last = Some(silent(*address, ADDRESS_TIME_MAX)),
            }
        }
        Err(last.unwrap_or_else(nobody))
    };
    let dialled = in_time(&node.core, DIAL_TIME_MAX, dialled).await;
    dialled.unwrap_or_else(|| Err(silent(addresses[first], DIAL_TIME_MAX)))
}

async fn at(
    node: &Rc<Node>,
    state: &MemberState,
    address: SocketAddr,
    (name, slot): (&str, u8),
) -> Result<NodeStream, Refusal> {
    let config = Arc::clone(&state.to_stream);
    let (mut tls, wire) = connect(&node.core, address, config, name).await?;
    let found = believed(node, state, &client::shown(&tls)).await?;
    debug_assert_eq!(found, slot, "TLS has compared the names");
    greet(node, &mut tls, (address, slot)).await?;
    if !is_in(node, slot) {
        return Err(nobody());
    }
    let tls = Connection::Client(tls.into_inner().1);
    Ok(node.streams.stands(slot, (tls, wire)))
}
