//! Streams between nodes: who gets one, what it carries, and when it ends.

use super::bed::{Away, Bed, YEARS, connected, free_port, init, join, leave, on_a_core, token};
use super::talk::{bytes, hear, is_over, say};
use crate::authority::{SecretKey, request};
use crate::client::{self, connect};
use crate::node::{MemberState, Node};
use crate::present::Present;
use crate::refusal::{Refusal, RefusalKind};
use crate::standing::{Incoming, NodeStream, OF_ONE_MAX, Streams};
use crate::stream::dial;
use crate::tls::{self, STREAM};
use crate::upkeep::{self, round};
use crate::{Fingerprint, frame};
use env::{CoreHandle, Stream, in_time};
use futures_util::future::join as both;
use rustls::pki_types::ServerName;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, Connection};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

const DAY: i64 = 86_400;
const SOON: Duration = Duration::from_millis(200);

/// Nodes 0, 1 and 2 of a cluster, and who takes the streams of each.
struct Three {
    core: CoreHandle,
    bed: Bed,
    clock: Arc<Away>,
    nodes: [Rc<Node>; 3],
    incoming: [Incoming; 3],
}

impl Three {
    async fn new(core: &CoreHandle, dir: &Path) -> Self {
        let bed = Bed::new(core, dir, "one").await;
        let clock = Away::by(0);
        let (a, b) = bed.two(&clock).await;
        let c = bed.node("san-c", 3, &clock).await;
        join(&c, &token(&a).await).await.unwrap();
        follow(&b).await;
        for node in [&a, &b, &c] {
            drop(connected(core, node.settings.listen[0]).await);
        }
        let nodes = [a, b, c];
        let incoming = nodes.each_ref().map(|it| Incoming::new(&it.streams));
        Self {
            core: Rc::clone(core),
            bed,
            clock,
            nodes,
            incoming,
        }
    }

    /// A stream as both ends have it.
    async fn stream(&self, from: usize, to: usize) -> (NodeStream, NodeStream) {
        let slot = u8::try_from(to).unwrap();
        let made = both(dial(&self.nodes[from], slot), self.incoming[to].next());
        let made = in_time(&self.core, Duration::from_secs(5), made).await;
        let (ours, theirs) = made.expect("both have it soon");
        let ours = ours.unwrap();
        assert_eq!(
            (ours.slot, theirs.slot),
            (slot, u8::try_from(from).unwrap())
        );
        (ours, theirs)
    }

    async fn nobody_came(&self, to: usize) {
        let came = in_time(&self.core, SOON, self.incoming[to].next()).await;
        assert!(came.is_none(), "{came:?}");
    }
}

async fn follow(node: &Rc<Node>) {
    node.follow(&node.member().unwrap()).await.unwrap();
}

async fn refused(node: &Rc<Node>, slot: u8) -> Refusal {
    dial(node, slot).await.expect_err("it is not believed")
}

/// Bytes of both, at once, in parts of many sizes.
async fn carries(ends: &mut (NodeStream, NodeStream), seed: u64, len: usize) {
    let (to, back) = (bytes(seed, len), bytes(seed + 1, len / 3));
    let (ours, theirs) = (&mut ends.0, &mut ends.1);
    let there = async {
        for part in to.chunks(17_001) {
            say(ours, part).await.unwrap();
        }
        hear(ours, back.len()).await.unwrap()
    };
    let here = async {
        let heard = hear(theirs, to.len()).await.unwrap();
        for part in back.chunks(313) {
            say(theirs, part).await.unwrap();
        }
        heard
    };
    let (heard_back, heard) = both(there, here).await;
    assert!(heard == to, "what was heard is not what was said");
    assert!(heard_back == back, "what was heard is not what was said");
}

#[test]
fn a_stream_carries_what_is_said_in_order_in_both_directions_between_all_nodes() {
    on_a_core("streams", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let mut streams = Vec::new();
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
            streams.push(three.stream(from, to).await);
        }
        for (seed, ends) in (0..).zip(&mut streams) {
            carries(ends, seed * 2, 300_000).await;
        }
        // One that ends takes no other one with it.
        let (ours, mut theirs) = streams.remove(0);
        drop(ours);
        assert!(is_over(&core, &mut theirs, Duration::from_secs(1)).await);
        carries(&mut streams[0], 77, 1000).await;
    });
}

#[test]
fn streams_have_aes_128_where_the_processor_does_it() {
    on_a_core("suite", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let (ours, theirs) = three.stream(0, 1).await;
        let of = |it: &NodeStream| it.tls.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(of(&ours), of(&theirs));
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has = |what: &str| flags.split_ascii_whitespace().any(|it| it == what);
        let is_fast = has("aes") && (has("pclmulqdq") || has("pmull"));
        let expected = if is_fast {
            rustls::CipherSuite::TLS13_AES_128_GCM_SHA256
        } else {
            rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        };
        assert_eq!(of(&ours), expected);
    });
}

/// Connects as a node does that asks for a stream; what comes of it.
async fn tries(
    core: &CoreHandle,
    at: SocketAddr,
    config: &Arc<ClientConfig>,
    name: &str,
) -> Result<(), Refusal> {
    let (mut stream, _) = connect(core, at, Arc::clone(config), name).await?;
    let hello = serde_json::json!({"to": 0, "version": "0.1.0", "run": "ab", "clock": 0});
    let whom = at.to_string();
    let sent = frame::send(&mut stream, &hello).await;
    sent.map_err(|error| tls::refusal(&whom, &error))?;
    let said = frame::receive::<Result<serde_json::Value, Refusal>>(&mut stream, 1 << 20).await;
    said.map_err(|it| client::broken(&whom, it))?.map(drop)
}

#[test]
fn who_is_no_node_of_the_cluster_gets_no_stream_and_keeps_no_place() {
    on_a_core("no-streams", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let [a, b, _] = &three.nodes;
        let at = a.settings.listen[0];
        let name = client::place(&b.member().unwrap().roster.borrow(), 0)
            .unwrap()
            .0;
        // A node of another cluster, which believes this one's authority.
        let other = Bed::new(&core, dir, "two").await;
        let stranger = other.node("san-x", 9, &three.clock).await;
        init(&stranger).await;
        let (member, theirs) = (a.member().unwrap(), stranger.member().unwrap());
        let shown = |of: &MemberState| {
            let shown = tls::Shown {
                authority: &member.member.authority.0,
                certificate: &of.member.certificate.0,
                key: &of.key,
            };
            tls::to_stream(&shown, Arc::clone(&a.clock)).unwrap()
        };
        let said = tries(&core, at, &shown(&theirs), &name).await.unwrap_err();
        assert_eq!(said.kind, RefusalKind::Stranger, "{said}");
        // Who has a token, or nothing but a key.
        let key = SecretKey::make().unwrap();
        let authority = Fingerprint::of(&member.member.authority.0);
        let (cluster, clock) = (&member.member.cluster, Arc::clone(&a.clock));
        let holder = tls::to_cluster(cluster, authority, request(&key).unwrap(), &key, clock);
        let mut holder = ClientConfig::clone(&holder.unwrap());
        holder.alpn_protocols = vec![STREAM.to_vec()];
        assert!(
            tries(&core, at, &Arc::new(holder.clone()), &name)
                .await
                .is_err()
        );
        holder.alpn_protocols = [tls::JOIN, STREAM].map(<[u8]>::to_vec).into();
        assert!(tries(&core, at, &Arc::new(holder), &name).await.is_err());
        // Bytes that are no TLS.
        for nonsense in [&b"CWSTREAM"[..], &[0x16, 3, 1, 0, 5, 1], &[0; 20_000]] {
            let stream = core.net().connect(at, None).await.unwrap();
            let pieces = [IoSlice::new(nonsense)];
            let _gone = std::future::poll_fn(|cx| stream.poll_send(cx, &pieces)).await;
        }
        three.nobody_came(0).await;
        assert!(a.streams.is_empty());
        // This node's own certificate, in other hands or by a wrong address.
        let said = tries(&core, at, &shown(&member), &name).await.unwrap_err();
        assert!(said.cause.contains("this node itself"), "{said}");
        carries(&mut three.stream(1, 0).await, 5, 1000).await;
    });
}

#[test]
fn a_certificate_that_has_ended_was_replaced_or_is_of_a_node_that_left_gets_no_stream() {
    on_a_core("certificates", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let [a, b, c] = &three.nodes;
        // By the clock of the one, the other one's certificate has ended; and the other way.
        let first = b.member().unwrap();
        for (away, of) in [(YEARS, b), (-YEARS, b), (YEARS, a), (-YEARS, a)] {
            let state = of.member().unwrap();
            let clock: Arc<dyn TimeProvider> = Away::by(away);
            let roster = state.roster.borrow().clone();
            let late = MemberState::new(state.member.clone(), roster, &clock).unwrap();
            *of.state.borrow_mut() = Some(Rc::new(late));
            let said = refused(b, 0).await;
            assert_eq!(said.kind, RefusalKind::Clock, "{said}");
            *of.state.borrow_mut() = Some(state);
        }
        three.nobody_came(0).await;
        // The stream goes on with the certificate with which it began, a new one has the new one.
        let mut stream = three.stream(1, 0).await;
        three.clock.set(551 * DAY);
        round(b, &b.member().unwrap()).await;
        carries(&mut stream, 1, 50_000).await;
        let (ours, theirs) = three.stream(1, 0).await;
        let shown = theirs.tls.peer_certificates().unwrap()[0].to_vec();
        let second = b.member().unwrap();
        assert!(shown == second.member.certificate.0 && shown != first.member.certificate.0);
        // Beyond the hour in which both are believed, the first one is not.
        three.clock.set(551 * DAY + 3601);
        round(b, &second).await;
        follow(a).await;
        *b.state.borrow_mut() = Some(first);
        let said = refused(b, 0).await;
        assert!(said.cause.contains("an old copy of that node"), "{said}");
        *b.state.borrow_mut() = Some(second);
        carries(&mut stream, 3, 50_000).await;
        drop((ours, theirs));
        // Node 2 was removed, and does not know.
        leave(a, Some("san-c"), true).await.unwrap();
        let said = refused(c, 0).await;
        assert!(said.cause.contains("has left the cluster"), "{said}");
        assert_eq!(refused(a, 2).await.kind, RefusalKind::Stranger);
        follow(b).await;
        let said = refused(c, 1).await;
        assert!(said.cause.contains("has left the cluster"), "{said}");
        three.nobody_came(1).await;
        three.nobody_came(0).await;
    });
}

#[test]
fn a_node_that_leaves_has_no_stream_after_some_seconds_and_the_others_keep_theirs() {
    on_a_core("left-streams", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let [a, b, c] = &three.nodes;
        let mut ab = three.stream(0, 1).await;
        let mut bc = three.stream(1, 2).await;
        let mut ca = three.stream(2, 0).await;
        // Not taken yet when it ends.
        let waiting = dial(b, 2).await.unwrap();
        core.spawn(Box::pin(upkeep::run(Rc::downgrade(c))));
        let at_once = Duration::from_millis(100);
        leave(a, Some("san-b"), true).await.unwrap();
        // The sockets of the node that was asked are closed, so both ends are over.
        assert!(is_over(&core, &mut ab.0, at_once).await);
        assert!(is_over(&core, &mut ab.1, at_once).await);
        let soon = Duration::from_secs(5);
        assert!(is_over(&core, &mut bc.1, soon).await, "by etcd");
        assert!(is_over(&core, &mut bc.0, at_once).await);
        three.nobody_came(2).await;
        drop(waiting);
        carries(&mut ca, 9, 100_000).await;
        // One that leaves by itself ends its own.
        leave(c, None, false).await.unwrap();
        assert!(is_over(&core, &mut ca.0, at_once).await);
        assert!(is_over(&core, &mut ca.1, at_once).await);
        // One that was removed hears of it, and ends what it has.
        assert_eq!(b.present.borrow().as_ref().map(|it| it.slot), Some(1));
        follow(b).await;
        assert_eq!(*b.present.borrow(), None);
        drop((ab, bc, ca));
        assert!(three.nodes.iter().all(|it| it.streams.is_empty()));
    });
}

#[test]
fn a_hundred_strangers_keep_no_node_out() {
    on_a_core("hundred", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let at = three.nodes[0].settings.listen[0];
        let (mut idle, mut streams) = (Vec::new(), Vec::new());
        for round in 0..10_u8 {
            for last in 0..10_u8 {
                // Of the node's own address, of one other one, and each of another one.
                let from = [
                    [127, 0, 0, 1],
                    [127, 0, 0, 2],
                    [127, 0, 1 + round, 1 + last],
                ];
                let from = IpAddr::from(from[usize::from(last % 3)]);
                idle.push(core.net().connect(at, Some(from)).await.unwrap());
            }
            let mut stream = three.stream(1, 0).await;
            carries(&mut stream, round.into(), 1000).await;
            streams.push(stream);
        }
        assert_eq!(idle.len(), 100);
        // None of them ended for a stranger.
        for (seed, stream) in (100..).zip(&mut streams) {
            carries(stream, seed, 1000).await;
        }
    });
}

#[test]
fn where_nobody_takes_streams_the_one_that_dials_hears_so() {
    on_a_core("untaken", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let Three {
            nodes, incoming, ..
        } = three;
        let [to, _, _] = incoming;
        drop(to);
        let said = refused(&nodes[1], 0).await;
        assert!(said.cause.contains("nobody takes streams"), "{said}");
        // Nor what waits when whoever took them ends.
        let to = Incoming::new(&nodes[0].streams);
        let mut left = dial(&nodes[1], 0).await.unwrap();
        core.sleep_until(core.now().after(SOON)).await;
        drop(to);
        assert!(is_over(&core, &mut left, Duration::from_secs(1)).await);
        drop(left);
        assert!(nodes[0].streams.is_empty() && nodes[1].streams.is_empty());
    });
}

#[test]
fn a_node_that_runs_twice_is_refused_where_it_speaks_again() {
    on_a_core("twice-streams", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let b = &three.nodes[1];
        drop(three.stream(1, 0).await);
        let copy = three
            .bed
            .opened(b.settings.clone(), b.own.clone(), &three.clock);
        let copy = copy.await;
        let made = both(dial(&copy, 0), three.incoming[0].next()).await;
        assert!(made.0.is_ok(), "the later one is believed");
        let said = refused(b, 0).await;
        assert_eq!(said.kind, RefusalKind::Twice, "{said}");
        three.nobody_came(0).await;
    });
}

#[test]
fn addresses_are_tried_in_turn_and_the_one_that_did_comes_first() {
    on_a_core("addresses", async |core, dir| {
        let three = Three::new(&core, dir).await;
        let [a, b, _] = &three.nodes;
        let good = a.settings.listen[0];
        // One where nobody listens, and one where somebody does who says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let all = [free_port(), silent.local_addr().unwrap(), good];
        let state = b.member().unwrap();
        let reached_at = |addresses: &[SocketAddr]| {
            let mut roster = state.roster.borrow_mut();
            let known = roster.nodes.get_mut(&0).unwrap();
            known.record.profile.addresses = addresses.to_vec();
        };
        reached_at(&all);
        // Whoever waits gives up before the silent one does: the next one is tried then.
        let less = Duration::from_millis(600);
        assert!(in_time(&core, less, dial(b, 0)).await.is_none());
        assert_eq!(b.reached.borrow().get(&0), Some(&good));
        for _ in 0..2 {
            let made = in_time(&core, less, dial(b, 0)).await;
            assert!(made.expect("in time").is_ok());
            assert_eq!(b.reached.borrow().get(&0), Some(&good));
        }
        reached_at(&all[..2]);
        let begun = core.now();
        let said = refused(b, 0).await;
        assert_eq!(said.kind, RefusalKind::Unreachable);
        assert!(core.now().since(begun) < Duration::from_millis(1500));
    });
}

/// A connection of which it is known whether it has ended.
#[derive(Default)]
struct Noted {
    ended: Cell<bool>,
}

impl Stream for Noted {
    fn local(&self) -> SocketAddr {
        ([0; 4], 0).into()
    }

    fn peer(&self) -> SocketAddr {
        ([0; 4], 0).into()
    }

    fn poll_recv(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_send(&self, _: &mut Context<'_>, _: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn shutdown(&self) {
        self.ended.set(true);
    }

    fn detach(&self) -> io::Result<env::DetachedStream> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[test]
fn a_node_has_no_more_streams_than_twice_what_a_pair_needs() {
    on_a_core("many", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let (a, _b) = bed.two(&Away::by(0)).await;
        let config = Arc::clone(&a.member().unwrap().to_stream);
        let streams: Rc<Streams> = Rc::default();
        let mut held = Vec::new();
        let mut stands = |slot| {
            let name = ServerName::try_from("n.internal").unwrap();
            let tls = ClientConnection::new(Arc::clone(&config), name).unwrap();
            let noted = Rc::new(Noted::default());
            let wire = Rc::clone(&noted) as Rc<dyn Stream>;
            held.push(streams.stands(slot, (Connection::Client(tls), wire)));
            noted
        };
        let of_other = stands(2);
        let first: Vec<_> = (0..OF_ONE_MAX).map(|_| stands(1)).collect();
        assert!(first.iter().all(|it| !it.ended.get()));
        let more = [stands(1), stands(1)];
        let ended: Vec<bool> = first.iter().map(|it| it.ended.get()).collect();
        assert!(ended[0] && ended[1] && ended[2..].iter().all(|it| !it));
        assert!(!of_other.ended.get() && more.iter().all(|it| !it.ended.get()));
        drop(held);
        assert!(streams.is_empty());
    });
}

#[test]
fn who_waits_hears_who_joins_and_leaves() {
    on_a_core("present", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(0);
        let a = bed.node("san-a", 1, &clock).await;
        let mut changes = a.present.subscribe();
        let mut next = async || {
            let changed = in_time(&core, SOON, changes.changed()).await;
            changed.map(|it| it.map(|()| changes.borrow_and_update().clone()).unwrap())
        };
        let names = |it: &Option<Present>| -> Vec<String> {
            let it = it.as_ref().expect("it is in a cluster");
            it.others.iter().map(|it| it.name.clone()).collect()
        };
        assert_eq!(next().await, None);
        let made = init(&a).await;
        let alone = next().await.unwrap();
        assert!(names(&alone).is_empty());
        assert_eq!(units::hex(&alone.unwrap().cluster), made.cluster_id);
        let b = bed.node("san-b", 2, &clock).await;
        join(&b, &token(&a).await).await.unwrap();
        let two = next().await.unwrap();
        assert_eq!(names(&two), ["san-b"]);
        assert_eq!(two.unwrap().others[0].addresses, b.settings.listen);
        round(&a, &a.member().unwrap()).await;
        assert_eq!(next().await, None, "nothing has changed");
        leave(&b, None, false).await.unwrap();
        follow(&a).await;
        assert!(names(&next().await.unwrap()).is_empty());
        leave(&a, None, true).await.unwrap();
        assert_eq!(next().await, Some(None));
    });
}
