//! Many units of one target over the same sessions.

use crate::bench::{San, TARGET, Wish, lane, on, options, range, read, runtime, write};
use crate::own::{pause, status, through_relays, under_load, until};
use crate::relay::Wire;
use env::CoreHandle;
use host::{Attached, Options, Url};
use iscsi::initiator_side::InitiatorConfig;
use iscsi::{Isid, Lun};
use iscsi_initiator::unit::{COMMAND_TIMEOUT, PathConfig, Unit, UnitPort, probe};
use iscsi_target::{SessionInfo, SessionNumber};
use multipath::{Config, Multipath, PathSpec};
use paths::health::{State, Wanted};
use paths::policy::{Settings, Use};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::Buf;
use volume::{Durability, Io, Lane, Op, OpKind, Origin};
use volume_test::{Action, FaultRule, Faults};

/// Header of a NOP-Out without data, in bytes (RFC 7143 11.18 "NOP-Out").
const NOP_OUT_BYTES: u64 = 48;

fn wish(units: u16) -> Wish {
    Wish {
        portals: 2,
        units,
        ..Wish::default()
    }
}

/// All pairs of two host addresses and two portals.
fn mesh(name: &str) -> Options {
    Options {
        no_plan: true,
        ..options(name, 2)
    }
}

fn of_lun(url: &Url, lun: u16) -> Url {
    Url { lun, ..url.clone() }
}

/// The target's sessions, as it sees them.
pub(crate) fn sessions(san: &San) -> Vec<SessionInfo> {
    let server = san.server.clone();
    on(&san.runtime, move |core| async move {
        server.sessions(&core).await
    })
}

fn numbers(san: &San) -> Vec<SessionNumber> {
    let mut all: Vec<SessionNumber> = sessions(san).iter().map(|it| it.number).collect();
    all.sort_by_key(|it| it.0);
    all
}

async fn open_all(
    core: &CoreHandle,
    url: &Url,
    options: &Options,
    luns: u16,
) -> Vec<Arc<Attached>> {
    let mut volumes = Vec::new();
    for lun in 0..luns {
        let opened = host::open(core, &of_lun(url, lun), options).await;
        volumes.push(opened.unwrap());
    }
    for volume in &volumes {
        until(core, volume, |it| {
            it.paths.iter().all(|path| path.state == "active")
        })
        .await;
    }
    volumes
}

async fn stop_all(core: &CoreHandle, volumes: &[Arc<Attached>]) {
    for volume in volumes {
        volume.stop(core).await;
    }
}

#[test]
fn two_hundred_and_fifty_six_units_over_four_paths_are_four_sessions_with_one_ping_each() {
    let san = San::start(wish(256));
    let (relays, url) = through_relays(&san, 0);
    let runtime = runtime(1);
    let options = mesh("many");
    let volumes = on(&runtime, move |core| async move {
        let volumes = open_all(&core, &url, &options, 256).await;
        for (number, volume) in volumes.iter().enumerate().step_by(51) {
            let lane = lane(&core, volume).await;
            write(&*lane, 8, &[(number % 250) as u8 + 1; 512])
                .await
                .unwrap();
        }
        for (number, volume) in volumes.iter().enumerate().step_by(51) {
            let lane = lane(&core, volume).await;
            let found = read(&*lane, 8, 1).await.unwrap();
            assert_eq!(found, [(number % 250) as u8 + 1; 512], "unit {number}");
        }
        volumes
    });
    assert_eq!(numbers(&san).len(), 4, "{:#?}", sessions(&san));
    on(&runtime, move |core| async move {
        // What was carried last is answered, and the first pings of idle paths are not due.
        pause(&core, Duration::from_secs(1)).await;
        let before: u64 = relays.iter().map(|it| it.forth()).sum();
        pause(&core, Duration::from_secs(11)).await;
        let bytes = relays.iter().map(|it| it.forth()).sum::<u64>() - before;
        let pings = bytes / NOP_OUT_BYTES;
        assert_eq!(bytes % NOP_OUT_BYTES, 0, "{bytes} bytes are not only pings");
        // Four sessions, every five seconds.
        assert!((8..=12).contains(&pings), "{pings} pings");
        // With every path silent all of it is reported at once.
        relays.iter().for_each(|relay| relay.set(Wire::Silent));
        let begun = core.now();
        let reported = host::all_status(&core);
        let took = core.now().since(begun);
        assert_eq!(reported.len(), 256);
        assert!(took < Duration::from_millis(100), "{took:?}");
        relays.iter().for_each(|relay| relay.set(Wire::Good));
        stop_all(&core, &volumes).await;
    });
    assert!(sessions(&san).is_empty(), "{:#?}", sessions(&san));
}

#[test]
fn a_unit_that_is_closed_leaves_the_sessions_to_the_others_and_comes_back_to_them() {
    let san = San::start(wish(3));
    let url = san.url(0);
    let runtime = runtime(1);
    let options = mesh("closed");
    let (volumes, core_options) = on(&runtime, {
        let (url, options) = (url.clone(), options.clone());
        move |core| async move { (open_all(&core, &url, &options, 3).await, options) }
    });
    let before = numbers(&san);
    assert_eq!(before.len(), 4);
    on(&runtime, move |core| async move {
        let closed = Arc::clone(&volumes[0]);
        let (there, stall) = (Rc::clone(&core), Rc::clone(&core));
        let stall = under_load(&stall, &volumes[1], || async move {
            closed.stop(&there).await;
            pause(&there, Duration::from_millis(300)).await;
            let again = host::open(&there, &of_lun(&url, 0), &core_options).await;
            let again = again.unwrap();
            let lane = lane(&there, &again).await;
            write(&*lane, 0, &[5; 512]).await.unwrap();
            assert_eq!(read(&*lane, 0, 1).await.unwrap(), [5; 512]);
            again.stop(&there).await;
        })
        .await;
        assert!(stall < Duration::from_millis(200), "{stall:?}");
        let now = status(&core, &volumes[1]).await;
        assert!(now.paths.iter().all(|it| it.state == "active"), "{now:#?}");
        core.locals().get::<Kept>().0.replace(volumes);
    });
    assert_eq!(numbers(&san), before, "nobody logged in again");
    on(&runtime, |core| async move {
        let volumes = core.locals().get::<Kept>().0.take();
        stop_all(&core, &volumes).await;
    });
    assert!(sessions(&san).is_empty());
}

/// Volumes between two checks of the target.
#[derive(Default)]
struct Kept(std::cell::RefCell<Vec<Arc<Attached>>>);

#[test]
fn a_session_that_is_cut_fails_over_for_all_its_units_without_an_error_or_wrong_data() {
    let san = San::start(wish(4));
    let (relays, url) = through_relays(&san, 0);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let volumes = open_all(&core, &url, &mesh("cutall"), 4).await;
        let mut loads = Vec::new();
        for volume in &volumes {
            let (volume, there) = (Arc::clone(volume), Rc::clone(&core));
            let load = async move {
                let span = Rc::clone(&there);
                under_load(&there, &volume, || async move {
                    pause(&span, Duration::from_secs(3)).await;
                })
                .await
            };
            loads.push(env::detach(&core, load));
        }
        pause(&core, Duration::from_millis(500)).await;
        relays[0].set(Wire::Cut);
        for load in loads {
            let stall = load.await;
            assert!(stall < Duration::from_millis(400), "{stall:?}");
        }
        for volume in &volumes {
            let now = status(&core, volume).await;
            for path in &now.paths {
                let expected = path.portal == relays[1].portal;
                assert_eq!(path.state == "active", expected, "{now:#?}");
            }
        }
        relays[0].set(Wire::Good);
        for volume in &volumes {
            until(&core, volume, |it| {
                it.paths.iter().all(|path| path.state == "active")
            })
            .await;
        }
        stop_all(&core, &volumes).await;
    });
    assert!(sessions(&san).is_empty(), "{:#?}", sessions(&san));
}

/// A unit over two paths, by the initiator's own parts; `first` is what the ISIDs are made of.
async fn direct(core: &CoreHandle, san: &[std::net::SocketAddr], lun: u16) -> Multipath {
    let configs: Vec<PathConfig> = san
        .iter()
        .zip(0..)
        .map(|(portal, number)| {
            let isid = Isid([0x80, 1, 2, 3, 0, number]);
            let name = "iqn.2026-11.io.causeway:direct";
            let mut login = InitiatorConfig::new(name, Some(TARGET), isid);
            login.ping_after = None;
            PathConfig {
                portal: *portal,
                from: None,
                interface: None,
                login,
                lun: scsi::lun::encode(lun).map(Lun).unwrap(),
                command_timeout: COMMAND_TIMEOUT,
            }
        })
        .collect();
    let mut asking = configs[0].clone();
    asking.login.isid = Isid([0x80, 1, 2, 3, 1, lun as u8]);
    let unit = Unit::new(probe(core, &asking).await.unwrap());
    let shape = unit.facts().shape();
    let specs = configs.into_iter().zip(0..).map(|(config, port)| PathSpec {
        port: Rc::new(UnitPort::new(core, config, &unit)),
        settings: Settings {
            usage: Use::No,
            rank: port.into(),
            share: 1,
            throughput: 1,
            host_port: port,
            target_port: port,
            speed: 1 << 27,
            host_speed: 1 << 27,
            target_speed: 1 << 27,
            window: 32,
        },
        wanted: Wanted::Active,
    });
    let config = Config {
        policy: "failover".parse().unwrap(),
        ..Config::default()
    };
    Multipath::new(core, shape, config, specs.collect())
}

async fn all_up(core: &CoreHandle, lane: &Multipath) {
    for _ in 0..1000 {
        if lane.status().iter().all(|it| it.state == State::Up) {
            return;
        }
        pause(core, Duration::from_millis(5)).await;
    }
    panic!("{:#?}", lane.status());
}

fn write_op(byte: u8) -> Io {
    let op = Op::Write {
        range: range(64, 1),
        data: Buf::copy_of(&[byte; 512]),
        durability: Durability::Cached,
    };
    Io::new(op, Origin::default())
}

fn hang_one_write(faults: &Faults) {
    faults.add(FaultRule {
        kinds: vec![OpKind::Write],
        range: None,
        skip: 0,
        times: 1,
        action: Action::Hang,
    });
}

/// T-GHOST without a death: a write hangs in the backend, its path is not wanted any more, but the
/// session lives on for another unit.
#[test]
fn a_write_left_behind_on_a_living_session_never_comes_back_over_a_newer_one() {
    for rejoin_early in [false, true] {
        let san = San::start(wish(2));
        let faults = san.faults[0].clone();
        let portals = san.portals.clone();
        let runtime = runtime(1);
        on(&runtime, move |core| async move {
            let mut both = Vec::new();
            for lun in 0..2 {
                let unit = direct(&core, &portals, lun).await;
                all_up(&core, &unit).await;
                both.push(Rc::new(unit));
            }
            core.locals().get::<Direct>().0.replace(both);
        });
        let before = numbers(&san);
        assert_eq!(before.len(), 2);
        on(&runtime, move |core| async move {
            let both = core.locals().get::<Direct>().0.borrow().clone();
            let (ghosts, other) = (Rc::clone(&both[0]), Rc::clone(&both[1]));
            ghosts.submit(write_op(7)).await.unwrap();
            hang_one_write(&faults);
            let lane = Rc::clone(&ghosts);
            let first = env::detach(&core, async move { lane.submit(write_op(1)).await });
            while faults.hanging() == 0 {
                pause(&core, Duration::from_millis(2)).await;
            }
            assert_eq!(
                ghosts.status()[0].in_flight,
                1,
                "failover takes the first path"
            );
            ghosts.want(0, Wanted::Cold);
            if rejoin_early {
                ghosts.want(0, Wanted::Active);
            }
            // The other unit does not notice.
            let begun = core.now();
            other.submit(write_op(9)).await.unwrap();
            assert!(core.now().since(begun) < Duration::from_millis(200));
            // The target answers the abort with the write in quarantine.
            pause(&core, Duration::from_secs(2)).await;
            let lane = Rc::clone(&ghosts);
            let second = env::detach(&core, async move { lane.submit(write_op(2)).await });
            ghosts.want(0, Wanted::Active);
            pause(&core, Duration::from_millis(300)).await;
            faults.release();
            first.await.unwrap();
            second.await.unwrap();
            all_up(&core, &ghosts).await;
            pause(&core, Duration::from_millis(500)).await;
            assert_eq!(read(&*ghosts, 64, 1).await.unwrap(), [2; 512]);
            assert_eq!(read(&*other, 64, 1).await.unwrap(), [9; 512]);
        });
        assert_eq!(numbers(&san), before, "nobody had to log in again");
        on(&runtime, |core| async move {
            core.locals().get::<Direct>().0.take();
            pause(&core, Duration::from_millis(100)).await;
        });
        assert!(sessions(&san).is_empty());
    }
}

/// Layers between two checks of the target.
#[derive(Default)]
struct Direct(std::cell::RefCell<Vec<Rc<Multipath>>>);
