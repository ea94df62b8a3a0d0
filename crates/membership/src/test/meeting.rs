//! Nodes of one core that meet by TLS over loopback sockets, with one file as their arbiter.

use super::bed::*;
use crate::authority::{Authority, SecretKey, seconds};
use crate::belief::STRANGER_TIME_MAX;
use crate::client;
use crate::commands::run;
use crate::listener::BOUNDS;
use crate::node::{MemberState, Node};
use crate::records::Der;
use crate::refusal::RefusalKind;
use crate::store::Member;
use crate::token::Token;
use crate::words::{Command, Outcome};
use env::{CoreHandle, in_time};
use manifest::code::Code;
use manifest::problem::Problem;
use rustls::time_provider::TimeProvider;
use std::future::poll_fn;
use std::io::{IoSlice, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_cluster_is_made_joined_seen_by_both_and_left() {
    on_a_core("whole", async |core, dir| {
        let right = Away::by(0);
        let bed = Bed::new(&core, dir, "one").await;
        let (a, b) = (
            bed.node("san-a", 1, &right).await,
            bed.node("san-b", 2, &right).await,
        );
        let none = run(&b, Command::Status).await.unwrap_err();
        assert_eq!(none.code, Code::ClusterNone);
        let made = init(&a).await;
        let token = token(&a).await;
        let joined = join(&b, &token).await.unwrap();
        assert_eq!((made.slot, joined.slot), (0, 1));
        assert_eq!(made.authority, joined.authority);
        for node in [&a, &b] {
            let view = status(node).await;
            assert!(view.problems.is_empty(), "{view:?}");
            let all: Vec<_> = view
                .nodes
                .iter()
                .map(|it| (&*it.name, it.answers))
                .collect();
            assert_eq!(all, [("san-a", true), ("san-b", true)], "{view:?}");
            assert!(view.nodes.iter().all(|it| it.last_seen.is_some()));
        }
        for (again, code) in [
            (join(&b, &token).await, Code::ClusterMember),
            (init_again(&a).await, Code::ClusterMember),
        ] {
            assert_eq!(again.unwrap_err().code, code);
        }
        // It is the same node after a restart.
        let kept = Node::new(&core, a.settings.clone(), own_of(&a));
        kept.open().await;
        assert_eq!(kept.member().unwrap().member, a.member().unwrap().member);
        assert!(
            kept.member()
                .unwrap()
                .roster
                .borrow()
                .slot_of(&b.own.id)
                .is_some()
        );
        let left = leave(&b, None, false).await.unwrap();
        assert_eq!(left.slot, 1);
        assert!(
            !b.store.path(crate::store::MEMBER_FILE).exists(),
            "its keys are gone"
        );
        let view = status(&a).await;
        assert_eq!(view.nodes[1].standing, crate::records::Standing::Left);
        bed.answers(&b).await;
        let token = self::token(&a).await;
        assert_eq!(
            join(&b, &token).await.unwrap().slot,
            2,
            "a number is given once"
        );
    });
}

async fn init_again(node: &Rc<Node>) -> Result<Outcome, Problem> {
    let name = "other".to_owned();
    asked(node, Command::Init { name }).await
}

/// A cluster's first node with its bed, and another cluster's.
async fn two_clusters(
    core: &CoreHandle,
    dir: &Path,
    clock: &Arc<Away>,
) -> (Bed, Rc<Node>, Rc<Node>) {
    let bed = Bed::new(core, dir, "one").await;
    let other = Bed::new(core, dir, "two").await;
    let a = bed.node("san-a", 1, clock).await;
    let stranger = other.node("san-x", 9, clock).await;
    init(&a).await;
    init(&stranger).await;
    (bed, a, stranger)
}

#[test]
fn a_token_is_refused_that_is_spent_anothers_or_guessed() {
    on_a_core("tokens", async |core, dir| {
        let right = Away::by(0);
        let (bed, a, stranger) = two_clusters(&core, dir, &right).await;
        let b = bed.node("san-b", 2, &right).await;
        let c = bed.node("san-c", 3, &right).await;
        let (good, theirs) = (token(&a).await, token(&stranger).await);
        let said = join(&b, &theirs).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterToken);
        assert!(
            said.detail
                .contains("etcd, as this node reaches it, has cluster home"),
            "{said}"
        );
        let mut guessed = Token::parse(&good).unwrap();
        guessed.secret = "0".repeat(64);
        let said = join(&b, &guessed.text()).await.unwrap_err();
        assert!(said.detail.contains("does not know this token"), "{said}");
        // Who answers there is not the cluster's.
        let mut lured = Token::parse(&good).unwrap();
        lured.addresses = stranger.settings.listen.clone();
        let said = join(&b, &lured.text()).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterPeer);
        assert!(
            said.detail.contains("not one of this cluster's authority"),
            "{said}"
        );
        // Nor is one who shows that authority, and a signature of another one with its name.
        lured.addresses = impostor(&bed, &a).await;
        let said = join(&b, &lured.text()).await.unwrap_err();
        assert!(said.detail.contains("BadSignature"), "{said}");
        join(&b, &good).await.unwrap();
        let said = join(&c, &good).await.unwrap_err();
        assert!(said.detail.contains("used already"), "{said}");
        // The same identifier again: a copy of the node.
        let copy = bed.node("san-copy", 2, &right).await;
        let said = join(&copy, &token(&a).await).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterMember);
        assert!(said.detail.contains("a copy of it"), "{said}");
    });
}

/// Where somebody listens who shows the cluster's authority, which is no secret, and a certificate
/// that another one with the same name has signed.
async fn impostor(bed: &Bed, of: &Rc<Node>) -> Vec<SocketAddr> {
    let right = Away::by(0);
    let node = bed.node("san-y", 8, &right).await;
    let known = of.member().unwrap();
    let authority = Authority::new(&known.member.cluster, SecretKey::make().unwrap());
    let key = SecretKey::make().unwrap();
    let now = node.core.wall_clock();
    let signed = authority.signs(0, &of.own.id, &key.public(), now).unwrap();
    let member = Member {
        authority_key: authority.key().pem(),
        certificate: Der(signed),
        key: key.pem(),
        ..known.member.clone()
    };
    let roster = known.roster.borrow().clone();
    let state = MemberState::new(member, roster, &node.clock).unwrap();
    crate::listener::take(&node, state);
    let at = node.settings.listen.clone();
    drop(connected(&node.core, at[0]).await);
    // It goes on as long as the test does.
    std::mem::forget(node);
    at
}

#[test]
fn who_is_of_another_cluster_has_left_or_is_a_copy_is_not_believed() {
    on_a_core("strangers", async |core, dir| {
        let right = Away::by(0);
        let (bed, a, stranger) = two_clusters(&core, dir, &right).await;
        let b = bed.node("san-b", 2, &right).await;
        join(&b, &token(&a).await).await.unwrap();
        assert_eq!(hello(&b, 0).await, Ok(()));
        // Another cluster's node at the address of one of ours, and ours at theirs.
        let state = b.member().unwrap();
        let mut roster = state.roster.borrow().clone();
        let known = roster.nodes.get_mut(&0).unwrap();
        known.record.profile.addresses = stranger.settings.listen.clone();
        let said = client::hello(&b, &state.to_node, &roster, (1, 0)).await;
        assert_eq!(said.err().unwrap().kind, RefusalKind::Stranger);
        let theirs = stranger.member().unwrap().to_node.clone();
        let ours = state.roster.borrow().clone();
        let said = client::hello(&b, &theirs, &ours, (1, 0)).await;
        let said = said.err().unwrap();
        assert_eq!(said.kind, RefusalKind::Stranger, "{said}");
        // It is removed while it does not know: its certificate is good, and is not enough.
        assert_eq!(
            leave(&a, Some("san-b"), false).await.unwrap_err().code,
            Code::ClusterNeeded
        );
        leave(&a, Some("san-b"), true).await.unwrap();
        let said = hello(&b, 0).await.unwrap_err();
        assert!(said.cause.contains("has left the cluster"), "{said}");
        let view = status(&b).await;
        assert!(
            view.problems.iter().any(|it| it.contains("was removed")),
            "{view:?}"
        );
    });
}

#[test]
fn clocks_years_apart_are_named_on_both_sides() {
    on_a_core("clocks", async |core, dir| {
        let right = Away::by(0);
        for away in [YEARS, -YEARS] {
            let bed = Bed::new(&core, dir, &format!("at{away}")).await;
            let (a, b) = (
                bed.node("san-a", 1, &right).await,
                bed.node("san-b", 2, &right).await,
            );
            init(&a).await;
            join(&b, &token(&a).await).await.unwrap();
            // The same node, which was off for a night and has lost its clock.
            let state = b.member().unwrap();
            let clock: Arc<dyn TimeProvider> = Away::by(away);
            let roster = state.roster.borrow().clone();
            let late = crate::node::MemberState::new(state.member.clone(), roster, &clock).unwrap();
            *b.state.borrow_mut() = Some(Rc::new(late));
            let said = hello(&b, 0).await.unwrap_err();
            assert_eq!(said.kind, RefusalKind::Clock, "{said}");
            let now = seconds(core.wall_clock()).saturating_add_signed(away);
            let year = units::rfc3339::rfc3339(units::WallClock(now * 1_000_000_000));
            assert!(said.cause.contains(&year[..4]), "{said}: {year}");
            // And a node whose clock is right is notified by the other one.
            *b.state.borrow_mut() = Some(Rc::clone(&state));
            let roster = a.member().unwrap().roster.borrow().clone();
            let member = a.member().unwrap().member.clone();
            let late = crate::node::MemberState::new(member, roster, &clock).unwrap();
            *a.state.borrow_mut() = None;
            crate::listener::take(&a, late);
            core.sleep_until(core.now().after(Duration::from_secs(3)))
                .await;
            let said = hello(&b, 0).await.unwrap_err();
            assert_eq!(said.kind, RefusalKind::Clock, "{said}");
        }
    });
}

/// Whether the other side has ended a connection within this time.
async fn is_ended(core: &CoreHandle, stream: &dyn env::Stream, time: Duration) -> bool {
    let mut into = [0; 64];
    let read = poll_fn(|cx| stream.poll_recv(cx, &mut into));
    matches!(in_time(core, time, read).await, Some(Ok(0) | Err(_)))
}

#[test]
fn who_says_nothing_or_nonsense_is_sent_away_and_takes_no_place_for_long() {
    on_a_core("limits", async |core, dir| {
        let right = Away::by(0);
        let bed = Bed::new(&core, dir, "one").await;
        let (a, b) = (
            bed.node("san-a", 1, &right).await,
            bed.node("san-b", 2, &right).await,
        );
        init(&a).await;
        let token = token(&a).await;
        let at = a.settings.listen[0];
        let net = core.net();
        let mut idle = Vec::new();
        for _ in 0..=BOUNDS.of_one {
            idle.push(net.connect(at, None).await.unwrap());
        }
        let oldest = idle.remove(0);
        assert!(
            is_ended(&core, &*oldest, Duration::from_secs(1)).await,
            "its place is another one's"
        );
        for stream in &idle {
            assert!(!is_ended(&core, &**stream, Duration::from_millis(50)).await);
        }
        for stream in &idle {
            let ended = is_ended(&core, &**stream, STRANGER_TIME_MAX * 2).await;
            assert!(ended, "it is not waited for");
        }
        for nonsense in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0x16, 3, 1, 0xff, 0xff],
            &[0xff; 4096],
        ] {
            let stream = net.connect(at, None).await.unwrap();
            let pieces = [IoSlice::new(nonsense)];
            poll_fn(|cx| stream.poll_send(cx, &pieces)).await.unwrap();
            drop(stream);
        }
        // The token is as good as it was, and whoever comes is heard.
        for _ in 0..BOUNDS.of_one {
            idle.push(net.connect(at, None).await.unwrap());
        }
        assert_eq!(join(&b, &token).await.unwrap().slot, 1);
    });
}

#[test]
fn a_frame_that_announces_more_than_is_taken_ends_the_connection() {
    on_a_core("frames", async |core, dir| {
        let right = Away::by(0);
        let bed = Bed::new(&core, dir, "one").await;
        let a = bed.node("san-a", 1, &right).await;
        init(&a).await;
        let at = a.settings.listen[0];
        let key = crate::authority::SecretKey::make().unwrap();
        let request = crate::authority::request(&key).unwrap();
        let member = a.member().unwrap().member.clone();
        let authority = crate::Fingerprint::of(&member.authority.0);
        let config = crate::tls::to_cluster(
            &member.cluster,
            authority,
            request,
            &key,
            Arc::clone(&a.clock),
        );
        let stream = connected(&core, at).await;
        let connector = tokio_rustls::TlsConnector::from(config.unwrap());
        let name = rustls::pki_types::ServerName::try_from("a.internal").unwrap();
        let mut stream = connector
            .connect(name, arbiter::Wire::new(stream))
            .await
            .unwrap();
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        stream.write_all(&u32::MAX.to_le_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let read = in_time(&core, Duration::from_secs(2), read).await;
        assert!(
            read.is_some() && answer.is_empty(),
            "at once, and with no word"
        );
    });
}

#[test]
fn a_socket_for_commands_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    on_a_core("socket", async |core, dir| {
        let right = Away::by(0);
        let bed = Bed::new(&core, dir, "one").await;
        let a = bed.node("san-a", 1, &right).await;
        let (settings, own) = (a.settings.clone(), own_of(&a));
        let served = crate::Membership::start(&core, settings.clone(), own)
            .await
            .unwrap();
        let path = settings.state_dir.join(crate::store::SOCKET);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let said = served.run(Command::Status).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterNone);
        drop(served);
    });
    // What nobody answers is said to be so.
    let said = crate::ask(Path::new("/nowhere"), &Command::Status).unwrap_err();
    assert_eq!(said.code, Code::Unreachable);
    let closed = free_port();
    assert!(
        TcpStream::connect(closed)
            .map(|mut it| it.read(&mut [0]))
            .is_err()
    );
}
