//! Commands that are not answered: aborted where the path lives, and the session given up only
//! where the abort is not answered either.

use crate::bench::{ALICE, BLOCK, Bench, Setup, TARGET, run};
use env::{CoreHandle, Stream};
use iscsi::initiator_side::InitiatorConfig;
use iscsi::{DigestChoice, Isid, Lun};
use iscsi_initiator::unit::{COMMAND_TIMEOUT, PathConfig, Unit, UnitPort, probe};
use iscsi_target::SessionNumber;
use multipath::{Config, Multipath, PathSpec};
use paths::health::{State, Wanted};
use paths::policy::{Settings, Use};
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange, Now};
use volume::{Done, Durability, Io, Lane, Op, OpKind, Origin};
use volume_test::{Action, FaultRule};

/// Opcode of Task Management Function Response (RFC 7143 11.2.1.2 "Opcode").
const FUNCTION_RESPONSE: u8 = 0x22;
const HEADER_BYTES: usize = 48;

fn setup() -> Setup {
    Setup {
        units: 1,
        limit: Duration::from_secs(600),
        ..Setup::default()
    }
}

pub(crate) fn config(portal: SocketAddr, last: u8) -> PathConfig {
    let isid = Isid([0x80, 1, 2, 3, 0, last]);
    let mut login = InitiatorConfig::new(ALICE, Some(TARGET), isid);
    login.ping_after = None;
    login.offer.header_digest = DigestChoice::Never;
    login.offer.data_digest = DigestChoice::Never;
    PathConfig {
        portal,
        from: None,
        interface: None,
        login,
        lun: Lun::default(),
        command_timeout: COMMAND_TIMEOUT,
    }
}

/// The unit of LUN 0 over these portals, the first of which takes everything while it lives.
pub(crate) async fn paths(
    bench: &Bench,
    portals: &[SocketAddr],
    key: Option<u64>,
) -> (Rc<Multipath>, Rc<Unit>) {
    let core = &bench.host_core;
    let facts = probe(core, &config(bench.portal, 9)).await.expect("facts");
    let unit = Unit::with_key(facts, key);
    let ports: Vec<UnitPort> = portals
        .iter()
        .zip(0..)
        .map(|(portal, number)| UnitPort::new(core, config(*portal, number), &unit))
        .collect();
    let specs = ports.iter().zip(0..).map(|(port, number)| PathSpec {
        port: Rc::new(port.clone()),
        settings: Settings {
            usage: Use::No,
            rank: u32::from(number),
            share: 1,
            throughput: 1,
            host_port: number,
            target_port: number,
            speed: 1 << 27,
            host_speed: 1 << 27,
            target_speed: 1 << 27,
            window: 32,
        },
        wanted: Wanted::Active,
    });
    let settings = Config {
        policy: "failover".parse().expect("a policy"),
        ..Config::default()
    };
    let lane = Multipath::new(core, unit.facts().shape(), settings, specs.collect());
    all_up(bench, &lane).await;
    (Rc::new(lane), unit)
}

pub(crate) async fn all_up(bench: &Bench, lane: &Multipath) {
    let latest = bench.host_core.now().after(Duration::from_secs(60));
    while lane.status().iter().any(|it| it.state != State::Up) {
        let now = bench.host_core.now();
        assert!(now < latest, "{:#?}", lane.status());
        bench.sleep(Duration::from_millis(10)).await;
    }
}

fn block() -> LbaRange {
    LbaRange::new(Lba(40), BlockCount(1)).expect("a small range")
}

pub(crate) fn write_of(byte: u8) -> Io {
    let op = Op::Write {
        range: block(),
        data: Buf::copy_of(&[byte; BLOCK]),
        durability: Durability::Cached,
    };
    Io::new(op, Origin::default())
}

async fn read(lane: &Multipath) -> Vec<u8> {
    let op = Op::Read {
        range: block(),
        into: None,
    };
    match lane.submit(Io::new(op, Origin::default())).await {
        Ok(Done::Data(data)) => data.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn hang_once(bench: &Bench, kind: OpKind) {
    bench.faults[0].add(FaultRule {
        kinds: vec![kind],
        range: None,
        skip: 0,
        times: 1,
        action: Action::Hang,
    });
}

async fn numbers(bench: &Bench) -> Vec<SessionNumber> {
    let mut all: Vec<SessionNumber> = bench.sessions().await.iter().map(|it| it.number).collect();
    all.sort_by_key(|it| it.0);
    all
}

fn since(bench: &Bench, begun: Now) -> Duration {
    bench.host_core.now().since(begun)
}

#[test]
fn a_read_that_the_store_has_lost_is_aborted_and_sent_again_on_the_same_sessions() {
    run(setup(), |bench| async move {
        let (lane, _unit) = paths(&bench, &[bench.portal, bench.portal], None).await;
        lane.submit(write_of(7)).await.expect("a path lives");
        let before = numbers(&bench).await;
        hang_once(&bench, OpKind::Read);
        let begun = bench.host_core.now();
        assert_eq!(read(&lane).await, [7; BLOCK]);
        let took = since(&bench, begun);
        let (least, most) = (COMMAND_TIMEOUT, COMMAND_TIMEOUT + Duration::from_secs(8));
        assert!((least..=most).contains(&took), "{took:?}");
        assert!(lane.status().iter().all(|it| it.state == State::Up));
        assert_eq!(numbers(&bench).await, before, "no path has failed");
    });
}

#[test]
fn a_store_that_stalls_for_45_s_makes_no_path_fail_and_loses_no_write() {
    run(setup(), |bench| async move {
        let (lane, _unit) = paths(&bench, &[bench.portal, bench.portal], None).await;
        let before = numbers(&bench).await;
        bench.hang(0, &[OpKind::Write]);
        let writer = Rc::clone(&lane);
        let first = bench.start(async move { writer.submit(write_of(1)).await });
        for _ in 0..45 {
            bench.sleep(Duration::from_secs(1)).await;
            assert!(
                lane.status()
                    .iter()
                    .all(|it| it.state == State::Up && !it.marginal)
            );
        }
        assert!(first.borrow().is_none());
        bench.release(0);
        let done = || first.borrow().is_some();
        let soon = Duration::from_secs(40);
        bench.until(soon, "the write", done).await;
        assert!(matches!(first.take(), Some(Ok(_))));
        assert_eq!(read(&lane).await, [1; BLOCK]);
        lane.submit(write_of(2)).await.expect("a path lives");
        bench.sleep(Duration::from_secs(60)).await;
        assert_eq!(read(&lane).await, [2; BLOCK]);
        assert_eq!(numbers(&bench).await, before, "no path has failed");
    });
}

/// One direction of a wire; from the target, answers to task management disappear.
async fn pump(from: Rc<dyn Stream>, to: Rc<dyn Stream>, swallow: bool) {
    let (mut waiting, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(got) = poll_fn(|cx| from.poll_recv(cx, &mut buffer)).await {
        if got == 0 {
            break;
        }
        waiting.extend_from_slice(&buffer[..got]);
        while waiting.len() >= HEADER_BYTES {
            let data = u32::from_be_bytes([0, waiting[5], waiting[6], waiting[7]]) as usize;
            let whole = HEADER_BYTES + usize::from(waiting[4]) * 4 + data.next_multiple_of(4);
            if waiting.len() < whole {
                break;
            }
            let pdu: Vec<u8> = waiting.drain(..whole).collect();
            if !(swallow && pdu[0] & 0x3f == FUNCTION_RESPONSE) {
                send(&*to, &pdu).await;
            }
        }
    }
    from.abort();
    to.abort();
}

async fn send(to: &dyn Stream, bytes: &[u8]) {
    let mut sent = 0;
    while sent < bytes.len() {
        let piece = [IoSlice::new(&bytes[sent..])];
        match poll_fn(|cx| to.poll_send(cx, &piece)).await {
            Ok(more) => sent += more,
            Err(_) => return,
        }
    }
}

/// A portal before the target's, behind which task management is not answered.
fn deaf(bench: &Bench) -> SocketAddr {
    let core: CoreHandle = Rc::clone(&bench.host_core);
    let at = SocketAddr::new(bench.hosts.ip(), 4000);
    let listener = core.net().listen(at).expect("a free port");
    let (portal, there) = (bench.portal, bench.clone());
    bench.spawn(async move {
        while let Ok(stream) = poll_fn(|cx| listener.poll_accept(cx)).await {
            let host = core.net().adopt(stream).expect("a stream");
            let Ok(target) = core.net().connect(portal, None).await else {
                continue;
            };
            there.spawn(pump(Rc::clone(&host), Rc::clone(&target), false));
            there.spawn(pump(target, host, true));
        }
    });
    at
}

#[test]
fn where_abort_task_is_not_answered_either_the_session_is_given_up_and_the_command_goes_elsewhere()
{
    run(setup(), |bench| async move {
        let (lane, _unit) = paths(&bench, &[deaf(&bench), bench.portal], None).await;
        lane.submit(write_of(7)).await.expect("a path lives");
        let before = numbers(&bench).await;
        hang_once(&bench, OpKind::Read);
        let begun = bench.host_core.now();
        assert_eq!(read(&lane).await, [7; BLOCK]);
        let took = since(&bench, begun);
        let most = COMMAND_TIMEOUT + Duration::from_secs(12);
        assert!((COMMAND_TIMEOUT..=most).contains(&took), "{took:?}");
        bench.sleep(Duration::from_secs(1)).await;
        let after = numbers(&bench).await;
        let kept = after.iter().filter(|it| before.contains(it)).count();
        assert_eq!(
            kept, 1,
            "the other path's session goes on: {before:?}, {after:?}"
        );
    });
}
