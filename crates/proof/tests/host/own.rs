//! Our own target over several portals.

use crate::bench::{BLOCKS, San, TARGET, Wish, lane, on, options, read, runtime, write};
use crate::relay::{Relay, Wire};
use env::{CoreHandle, CoreId};
use host::{Attached, Options, Status, Url};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::BlockCount;
use volume::{IoError, Lane, OpKind, Volume, VolumeEvent};
use volume_test::{Action, FaultRule};

pub(crate) fn two_portals() -> Wish {
    Wish {
        portals: 2,
        units: 1,
        ..Wish::default()
    }
}

/// Relays before every portal, and the URL through them.
pub(crate) fn through_relays(san: &San, lun: u16) -> (Vec<Arc<Relay>>, Url) {
    let portals = san.portals.iter().zip(1..);
    let relays: Vec<Arc<Relay>> = portals
        .map(|(portal, last)| Arc::new(Relay::new(last, *portal)))
        .collect();
    let hosts: Vec<String> = relays.iter().map(|it| it.portal.to_string()).collect();
    let url = format!("iscsi://{}/{TARGET}/{lun}", hosts.join(","));
    (relays, url.parse().expect("a URL"))
}

pub(crate) async fn status(core: &CoreHandle, volume: &Attached) -> Status {
    volume.status(core).await.expect("the volume is open")
}

pub(crate) async fn pause(core: &CoreHandle, span: Duration) {
    core.sleep_until(core.now().after(span)).await;
}

/// Waits until `done` says so of the status.
pub(crate) async fn until(
    core: &CoreHandle,
    volume: &Attached,
    done: impl Fn(&Status) -> bool,
) -> Status {
    for _ in 0..3000 {
        let now = status(core, volume).await;
        if done(&now) {
            return now;
        }
        pause(core, Duration::from_millis(10)).await;
    }
    panic!("30 s: {:#?}", status(core, volume).await);
}

pub(crate) fn states(status: &Status) -> Vec<&'static str> {
    status.paths.iter().map(|path| path.state).collect()
}

#[test]
fn a_url_becomes_a_volume_over_every_path_and_keeps_its_data() {
    let san = San::start(two_portals());
    let url = san.url(0);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = options("first", 2);
        let volume = host::open(&core, &url, &options).await.unwrap();
        let lane = lane(&core, &volume).await;
        let data: Vec<u8> = (0..1_u32 << 20).map(|at| (at / 512 % 251) as u8).collect();
        write(&*lane, 8, &data).await.unwrap();
        assert!(read(&*lane, 8, 2048).await.unwrap() == data);
        let all = until(&core, &volume, |it| {
            it.paths.iter().all(|path| path.state != "connecting")
        })
        .await;
        assert_eq!(states(&all), ["active", "active", "standby", "standby"]);
        assert!(all.paths[..2].iter().all(|path| path.bytes > 0));
        volume.stop(&core).await;
        assert!(volume.status(&core).await.is_none());
    });
}

#[test]
fn discovery_finds_the_other_portals_and_a_wrong_name_is_reported_with_what_there_is() {
    let san = San::start(two_portals());
    let one = san.portals[0];
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = Options {
            no_discover: false,
            ..options("discovery", 2)
        };
        let url: Url = format!("iscsi://{one}/{TARGET}/0").parse().unwrap();
        let volume = host::open(&core, &url, &options).await.unwrap();
        assert_eq!(status(&core, &volume).await.paths.len(), 4);
        volume.stop(&core).await;
        let url: Url = format!("iscsi://{one}/iqn.2026-11.io.causeway:other/0")
            .parse()
            .unwrap();
        let error = host::open(&core, &url, &options).await.unwrap_err();
        assert!(error.next_step.contains(TARGET), "{error}");
        let url: Url = format!("iscsi://{one}/{TARGET}/9").parse().unwrap();
        let error = host::open(&core, &url, &options).await.unwrap_err();
        assert!(error.cause.contains("no unit at this LUN"), "{error}");
    });
}

/// Writes and reads blocks all the time until it is asked to end; every block read holds what was
/// acknowledged last. Answers how long the longest operation took.
async fn load(core: CoreHandle, lane: Rc<dyn Lane>, first: u64, over: Rc<Cell<bool>>) -> Duration {
    let mut longest = Duration::ZERO;
    let mut expected = [0_u8; 16];
    let mut turn = 0_u64;
    while !over.get() {
        let at = usize::try_from(turn % 16).unwrap();
        let byte = (turn % 250 + 1) as u8;
        let begun = core.now();
        write(&*lane, first + at as u64 * 8, &[byte; 4096])
            .await
            .expect("a path lives");
        expected[at] = byte;
        let other = usize::try_from(turn * 7 % 16).unwrap();
        let found = read(&*lane, first + other as u64 * 8, 8)
            .await
            .expect("a path lives");
        assert!(
            found.iter().all(|it| *it == expected[other]),
            "stale or torn: {} for {}",
            found[0],
            expected[other]
        );
        longest = longest.max(core.now().since(begun));
        turn += 1;
    }
    longest
}

/// Four workers over a volume while `trouble` does what it does; answers the longest stall.
pub(crate) async fn under_load<F: Future<Output = ()>>(
    core: &CoreHandle,
    volume: &Arc<Attached>,
    trouble: impl FnOnce() -> F,
) -> Duration {
    let over = Rc::new(Cell::new(false));
    let mut workers = Vec::new();
    for worker in 0..4 {
        let lane = lane(core, volume).await;
        // Everything begins as zeroes.
        write(&*lane, worker * 128, &[0; 16 * 4096]).await.unwrap();
        let work = load(Rc::clone(core), lane, worker * 128, Rc::clone(&over));
        workers.push(env::detach(core, work));
    }
    trouble().await;
    over.set(true);
    let mut longest = Duration::ZERO;
    for worker in workers {
        longest = longest.max(worker.await);
    }
    longest
}

fn failover(name: &'static str, wire: Wire, limit: Duration) {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    let runtime = runtime(1);
    let stall = on(&runtime, move |core| async move {
        let volume = host::open(&core, &url, &options(name, 2)).await.unwrap();
        until(&core, &volume, |it| {
            states(it).iter().filter(|it| **it == "active").count() == 2
        })
        .await;
        let stall = under_load(&core, &volume, || async {
            pause(&core, Duration::from_millis(300)).await;
            relays[0].set(wire);
            pause(&core, Duration::from_secs(4)).await;
            let now = status(&core, &volume).await;
            let down = now.paths.iter().filter(|it| it.portal == relays[0].portal);
            assert!(
                down.clone().count() == 2 && down.clone().all(|it| it.state != "active"),
                "{now:#?}"
            );
            relays[0].set(Wire::Good);
            until(&core, &volume, |it| {
                it.paths
                    .iter()
                    .all(|path| matches!(path.state, "active" | "standby"))
            })
            .await;
        })
        .await;
        volume.stop(&core).await;
        stall
    });
    println!("{wire:?}: longest stall {stall:?}");
    assert!(stall <= limit, "{stall:?}");
}

#[test]
fn a_cut_path_stalls_for_less_than_200_ms_without_an_error_or_wrong_data() {
    failover("cut", Wire::Cut, Duration::from_millis(200));
}

#[test]
fn a_silent_path_stalls_for_less_than_three_seconds_without_an_error_or_wrong_data() {
    failover("silent", Wire::Silent, Duration::from_secs(3));
}

/// T-GHOST: a write hangs in the backend, its path dies, it is written again elsewhere and
/// overwritten, and the path heals.
#[test]
fn a_write_that_hangs_behind_a_lost_path_never_comes_back_over_a_newer_one() {
    for round in 0..3_u8 {
        let san = San::start(two_portals());
        let faults = san.faults[0].clone();
        let (relays, url) = through_relays(&san, 0);
        let runtime = runtime(1);
        on(&runtime, move |core| async move {
            let options = options(&format!("ghost{round}"), 2);
            let volume = host::open(&core, &url, &options).await.unwrap();
            let lane = lane(&core, &volume).await;
            write(&*lane, 64, &[7; 512]).await.unwrap();
            faults.add(FaultRule {
                kinds: vec![OpKind::Write],
                range: None,
                skip: 0,
                times: 1,
                action: Action::Hang,
            });
            let ghost = Rc::clone(&lane);
            let first = env::detach(&core, async move { write(&*ghost, 64, &[1; 512]).await });
            // It is on its way when the backend has it.
            let mut busy = None;
            while busy.is_none() {
                pause(&core, Duration::from_millis(5)).await;
                let now = status(&core, &volume).await;
                busy = now
                    .paths
                    .iter()
                    .find(|it| it.in_flight > 0)
                    .map(|it| it.portal);
                busy = busy.filter(|_| faults.hanging() > 0);
            }
            let relay = relays.iter().find(|it| Some(it.portal) == busy).unwrap();
            relay.set(if round == 0 { Wire::Silent } else { Wire::Cut });
            // The path may come back while the write is still held to be uncertain.
            if round == 2 {
                pause(&core, Duration::from_millis(100)).await;
                relay.set(Wire::Good);
            }
            pause(&core, Duration::from_secs(6)).await;
            faults.release();
            let first = first.await;
            first.unwrap();
            write(&*lane, 64, &[2; 512]).await.unwrap();
            relay.set(Wire::Good);
            pause(&core, Duration::from_secs(3)).await;
            assert_eq!(read(&*lane, 64, 1).await.unwrap(), [2; 512]);
            volume.stop(&core).await;
        });
    }
}

#[test]
fn with_every_path_silent_status_is_reported_at_once_and_a_stop_ends() {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let volume = host::open(&core, &url, &options("hung", 2)).await.unwrap();
        let lane = lane(&core, &volume).await;
        write(&*lane, 0, &[1; 512]).await.unwrap();
        relays.iter().for_each(|relay| relay.set(Wire::Silent));
        let _nobody_waits = lane.submit(volume::Io::new(
            volume::Op::Flush,
            volume::Origin::default(),
        ));
        let lost = env::detach(&core, {
            let lane = Rc::clone(&lane);
            async move { write(&*lane, 0, &[2; 512]).await }
        });
        until(&core, &volume, |it| {
            it.paths.iter().all(|path| path.in_flight == 0)
        })
        .await;
        let begun = core.now();
        let now = status(&core, &volume).await;
        assert!(core.now().since(begun) < Duration::from_millis(100));
        assert!(now.paths.iter().all(|it| it.state != "active"), "{now:#?}");
        let begun = core.now();
        volume.stop(&core).await;
        assert!(core.now().since(begun) < Duration::from_secs(10));
        drop(lost);
    });
}

/// The paths to a second target that goes by the first one's name, and has this at LUN 0.
fn quarantined(name: &'static str, liar: Wish, says: &'static str) {
    let (san, liar) = (San::start(one_portal()), San::start(liar));
    let portals = [san.portals[0], liar.portals[0]];
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = Options {
            no_plan: true,
            ..options(name, 1)
        };
        let hosts = format!("{},{}", portals[0], portals[1]);
        let url: Url = format!("iscsi://{hosts}/{TARGET}/0").parse().unwrap();
        let volume = host::open(&core, &url, &options).await.unwrap();
        let now = until(&core, &volume, |it| {
            states(it).contains(&"quarantined") && states(it).contains(&"active")
        })
        .await;
        let path = now.paths.iter().find(|it| it.state == "quarantined");
        let why = path.unwrap().why.clone();
        assert!(why.contains(says), "{why}");
        let lane = lane(&core, &volume).await;
        for turn in 0..50_u64 {
            write(&*lane, turn * 8, &[9; 4096]).await.unwrap();
        }
        let now = status(&core, &volume).await;
        let path = now.paths.iter().find(|it| it.state == "quarantined");
        assert_eq!(path.unwrap().ios, 0, "nothing goes there");
        volume.stop(&core).await;
    });
}

fn one_portal() -> Wish {
    Wish {
        portals: 1,
        units: 1,
        ..Wish::default()
    }
}

#[test]
fn the_same_identity_with_another_size_is_quarantined() {
    for (name, blocks) in [("smaller", 4096), ("larger", BLOCKS * 2)] {
        let liar = Wish {
            blocks,
            ..one_portal()
        };
        quarantined(name, liar, "another size");
    }
}

#[test]
fn another_unit_under_the_same_number_is_quarantined() {
    let liar = Wish {
        first: 7,
        ..one_portal()
    };
    quarantined("number", liar, "another unit answers");
}

/// Two relays to one portal each, the second to another target's, and a volume over both.
#[test]
fn a_path_in_quarantine_comes_back_only_when_it_is_released_and_shows_the_unit_again() {
    let (san, liar) = (
        San::start(one_portal()),
        San::start(Wish {
            first: 7,
            ..one_portal()
        }),
    );
    let truth = san.portals[0];
    let relay = Relay::new(2, liar.portals[0]);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = Options {
            no_plan: true,
            ..options("release", 1)
        };
        let url = format!("iscsi://{truth},{}/{TARGET}/0", relay.portal);
        // Whoever answers first shows which unit it is.
        relay.set(Wire::Cut);
        let volume = host::open(&core, &url.parse().unwrap(), &options).await;
        let volume = volume.unwrap();
        until(&core, &volume, |it| states(it).contains(&"active")).await;
        relay.set(Wire::Good);
        // The plan's order depends on names.
        let both = |it: &Status| {
            let liar = it.paths.iter().position(|it| it.portal == relay.portal);
            let liar = liar.expect("its path");
            let (path, other) = (it.paths[liar].clone(), it.paths[1 - liar].clone());
            (path, other)
        };
        let held = |it: &Status| {
            let (path, other) = both(it);
            (path.state, other.state) == ("quarantined", "active")
        };
        let (path, other) = both(&until(&core, &volume, held).await);
        let release = |it: &host::PathStatus| volume.located().release(&core, &it.path);
        // Released while it still shows another unit, it is probed once more.
        assert!(release(&path));
        assert!(!release(&path), "it is out already");
        until(&core, &volume, held).await;
        relay.lead_to(truth);
        pause(&core, Duration::from_secs(1)).await;
        assert!(held(&status(&core, &volume).await), "nobody has said so");
        assert!(release(&path));
        assert!(!release(&other));
        until(&core, &volume, |it| states(it) == ["active", "active"]).await;
        let lane = lane(&core, &volume).await;
        for turn in 0..50_u64 {
            write(&*lane, turn * 8, &[9; 4096]).await.unwrap();
        }
        assert!(both(&status(&core, &volume).await).0.ios > 0);
        volume.stop(&core).await;
    });
}

/// What a volume reported.
#[derive(Default)]
struct Reported(RefCell<Option<VolumeEvent>>);

#[test]
fn a_unit_that_grows_is_reported_to_whoever_asks_and_its_new_blocks_can_be_used() {
    let san = San::start(two_portals());
    let url = san.url(0);
    let runtime = runtime(2);
    let volume = on(&runtime, move |core| async move {
        let volume = host::open(&core, &url, &options("growth", 2)).await;
        let volume = volume.unwrap();
        // Sessions that live are notified of a new size.
        until(&core, &volume, |it| {
            it.paths
                .iter()
                .all(|path| matches!(path.state, "active" | "standby"))
        })
        .await;
        let events = Arc::clone(&volume).events(&core);
        let reported = core.locals().get::<Reported>();
        core.spawn(Box::pin(async move {
            let event = events.next().await;
            reported.0.replace(Some(event));
        }));
        volume
    });
    let (unit, store) = san.units[0].clone();
    on(&san.runtime, move |core| async move {
        store.resize(BlockCount(BLOCKS * 2));
        unit.reshape(&core).await.unwrap();
    });
    on(&runtime, move |core| async move {
        let before = volume.shape();
        let lane = lane(&core, &volume).await;
        // The target announces it with the next commands.
        let until = core.now().after(Duration::from_secs(10));
        while volume.shape() == before && core.now() < until {
            write(&*lane, 0, &[1; 512]).await.unwrap();
            pause(&core, Duration::from_millis(10)).await;
        }
        let after = volume.shape();
        assert_eq!(after.block_count, BlockCount(BLOCKS * 2));
        assert!(after.epoch > before.epoch);
        pause(&core, Duration::from_millis(50)).await;
        let reported = core.locals().get::<Reported>().0.take();
        assert_eq!(reported, Some(VolumeEvent::Reshaped(after.epoch)));
        write(&*lane, BLOCKS * 2 - 1, &[3; 512]).await.unwrap();
        assert_eq!(read(&*lane, BLOCKS * 2 - 1, 1).await.unwrap(), [3; 512]);
        let now = status(&core, &volume).await;
        assert!(
            now.paths.iter().all(|it| it.state != "quarantined"),
            "{now:#?}"
        );
        volume.stop(&core).await;
    });
}

/// All paths are up, the volume has twice the blocks, and nobody is in quarantine.
async fn is_twice_as_large(core: &CoreHandle, volume: &Arc<Attached>) {
    let now = until(core, volume, |it| {
        let liar = it.paths.iter().find(|path| path.state == "quarantined");
        assert_eq!(liar, None, "{it:#?}");
        let joined = |state| matches!(state, "active" | "standby");
        it.bytes == BLOCKS * 2 * 512 && it.paths.iter().all(|path| joined(path.state))
    })
    .await;
    assert_eq!(
        volume.shape().block_count,
        BlockCount(BLOCKS * 2),
        "{now:#?}"
    );
    let lane = lane(core, volume).await;
    write(&*lane, BLOCKS * 2 - 1, &[3; 512]).await.unwrap();
    assert_eq!(read(&*lane, BLOCKS * 2 - 1, 1).await.unwrap(), [3; 512]);
}

/// The unit grows while these relays are cut; then they are mended.
fn grows_behind(name: &'static str, cut: &'static [usize]) {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    let relays = Arc::new(relays);
    let runtime = runtime(1);
    let wires = Arc::clone(&relays);
    let volume = on(&runtime, move |core| async move {
        let volume = host::open(&core, &url, &options(name, 2)).await.unwrap();
        let up = |it: &Status| {
            states(it)
                .iter()
                .all(|it| ["active", "standby"].contains(it))
        };
        until(&core, &volume, up).await;
        let gone: Vec<_> = cut.iter().map(|it| wires[*it].portal).collect();
        cut.iter().for_each(|it| wires[*it].set(Wire::Cut));
        let down = |it: &Status| {
            let mut cut = it.paths.iter().filter(|path| gone.contains(&path.portal));
            cut.all(|path| path.state == "down")
        };
        until(&core, &volume, down).await;
        volume
    });
    let (unit, store) = san.units[0].clone();
    on(&san.runtime, move |core| async move {
        store.resize(BlockCount(BLOCKS * 2));
        unit.reshape(&core).await.unwrap();
    });
    on(&runtime, move |core| async move {
        cut.iter().for_each(|it| relays[*it].set(Wire::Good));
        is_twice_as_large(&core, &volume).await;
        volume.stop(&core).await;
    });
}

#[test]
fn a_unit_that_grows_while_no_path_lives_has_grown_and_does_not_lie() {
    grows_behind("growth-dark", &[0, 1]);
}

/// The idle path that lives has not got the unit attention yet when the other one sees it.
#[test]
fn a_path_that_comes_back_to_a_larger_unit_believes_it_when_the_living_one_shows_it_too() {
    grows_behind("growth-half", &[0]);
}

#[test]
fn a_wire_that_delays_everything_makes_its_path_marginal_and_the_other_carries_on() {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = Options {
            no_plan: true,
            policy: Some("round-robin".parse().unwrap()),
            ..options("slow", 1)
        };
        let volume = host::open(&core, &url, &options).await.unwrap();
        until(&core, &volume, |it| states(it) == ["active", "active"]).await;
        under_load(&core, &volume, || async {
            relays[0].set(Wire::Slow);
            // The plan's order is not the relays'.
            let slow = |it: &Status| {
                let path = it.paths.iter().find(|it| it.portal == relays[0].portal);
                let path = path.expect("its path");
                (path.state, path.ios)
            };
            let (_, before) = slow(&until(&core, &volume, |it| slow(it).0 == "marginal").await);
            pause(&core, Duration::from_secs(1)).await;
            let now = status(&core, &volume).await;
            assert!(slow(&now).1 < before + 10, "it is spared: {now:#?}");
            assert!(states(&now).contains(&"active"), "{now:#?}");
        })
        .await;
        volume.stop(&core).await;
    });
}

/// The second core's lane sends its operations to the home core.
#[test]
fn lanes_of_other_cores_keep_the_data_and_hear_of_the_end() {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    let runtime = runtime(2);
    let volume = on(&runtime, move |core| async move {
        host::open(&core, &url, &options("away", 2)).await.unwrap()
    });
    let away = Arc::clone(&volume);
    let (begun, busy) = std::sync::mpsc::channel();
    runtime.spawn_on(CoreId(1), move |core| {
        Box::pin(async move {
            under_load(&core, &away, || async {
                begun.send(()).expect("the test waits");
                pause(&core, Duration::from_secs(2)).await;
            })
            .await;
            begun.send(()).expect("the test waits");
        })
    });
    busy.recv().unwrap();
    relays[0].set(Wire::Cut);
    busy.recv()
        .expect("the load has seen no error and no wrong data");
    relays[0].set(Wire::Good);
    on(&runtime, move |core| async move {
        volume.stop(&core).await;
        assert!(volume.status(&core).await.is_none());
        let lane = call_lane(&core, &volume).await;
        assert_eq!(lane, Err(IoError::Unavailable), "a lane of a closed volume");
    });
}

/// What a new lane of another core says of a write.
async fn call_lane(core: &CoreHandle, volume: &Arc<Attached>) -> Result<(), IoError> {
    let volume = Arc::clone(volume);
    let asked = env::call(core, CoreId(1), move |there| {
        let there = Rc::clone(there);
        Box::pin(async move {
            let lane = lane(&there, &volume).await;
            write(&*lane, 0, &[1; 512]).await
        })
    });
    asked.await.expect("the core lives")
}

#[test]
fn an_ipv6_url_is_discovered_used_and_shown_as_it_was_written() {
    let san = San::start(Wish {
        six: true,
        ..one_portal()
    });
    let portal = san.portals[0];
    assert!(portal.is_ipv6());
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = Options {
            from: vec!["::1".to_owned()],
            no_discover: false,
            ..options("six", 1)
        };
        let text = format!("iscsi://[::1]:{}/{TARGET}/0", portal.port());
        let url: Url = text.parse().unwrap();
        let volume = host::open(&core, &url, &options).await.unwrap();
        let now = until(&core, &volume, |it| states(it) == ["active"]).await;
        assert_eq!(now.url, text);
        assert_eq!(now.paths[0].path, format!("::1>{portal}"));
        let lane = lane(&core, &volume).await;
        write(&*lane, 8, &[6; 4096]).await.unwrap();
        assert_eq!(read(&*lane, 8, 8).await.unwrap(), [6; 4096]);
        volume.stop(&core).await;
    });
}

#[test]
fn a_portal_that_the_target_gets_while_a_volume_is_open_becomes_a_path_of_it() {
    let san = San::start(one_portal());
    let first = san.portals[0];
    let runtime = runtime(1);
    let volume = on(&runtime, move |core| async move {
        let options = Options {
            no_discover: false,
            rediscover: "1".parse().unwrap(),
            ..options("portal", 2)
        };
        let url: Url = format!("iscsi://{first}/{TARGET}/0").parse().unwrap();
        let volume = host::open(&core, &url, &options).await.unwrap();
        let now = until(&core, &volume, |it| states(it).contains(&"active")).await;
        assert_eq!(now.paths.len(), 2, "{now:#?}");
        volume
    });
    let second = san.add_portal(2);
    on(&runtime, move |core| async move {
        under_load(&core, &volume, || async {
            until(&core, &volume, |it| it.paths.len() == 4).await;
            // One path for each port of both sides, once the plan has settled.
            let now = until(&core, &volume, |it| {
                let active = it.paths.iter().filter(|it| it.state == "active");
                let mut portals: Vec<_> = active.map(|it| it.portal).collect();
                portals.sort_unstable();
                portals.dedup();
                portals.len() == 2
            })
            .await;
            assert!(now.paths.iter().any(|it| it.portal == second), "{now:#?}");
            pause(&core, Duration::from_millis(500)).await;
            let now = status(&core, &volume).await;
            let new = now.paths.iter().filter(|it| it.portal == second);
            assert!(new.map(|it| it.ios).sum::<u64>() > 0, "{now:#?}");
        })
        .await;
        volume.stop(&core).await;
    });
}
