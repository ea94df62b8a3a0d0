//! A host that announces writes on 24 sessions and sends none of them, beside others.

use crate::common::client::{Client, GOOD, config, ten};
use crate::common::daemon::Daemon;
use crate::{login, now, objects, rest, target};
use iscsi::Isid;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// A session with 64 writes of a MiB announced, of which nothing is sent.
fn announcing(daemon: &Daemon, number: u8) -> Client {
    let mut config = config("iqn.2026-11.test:evil", &target());
    config.isid = Isid([0x80, 0x12, 0x34, 0, 1, number]);
    config.offer.initial_r2t = true;
    config.offer.immediate_data = false;
    let mut client = Client::login(&daemon.portals[0], &config).unwrap();
    client.settle();
    for at in 0..64 {
        client.queue(&ten(0x2a, 0, at * 2048, 2048), &vec![1; MIB], 0);
    }
    client.send();
    client
}

#[test]
fn writes_that_are_announced_and_never_sent_hold_up_no_other_host() {
    let daemon = Daemon::start("starving");
    objects(&daemon);
    let evil: Vec<Client> = (0..24).map(|number| announcing(&daemon, number)).collect();
    rest(Duration::from_millis(200));
    let mut small = login(&daemon, "iqn.2026-11.test:small");
    let mut fair = login(&daemon, "iqn.2026-11.test:fair");
    let (mut slowest, mut moved, since) = (Duration::ZERO, 0, now());
    for round in 0..60_u8 {
        let one = now();
        let end = small.command(&ten(0x2a, 0, 400_000, 1), &[round; 512], 0);
        assert_eq!(end.status, GOOD);
        slowest = slowest.max(one.elapsed());
        let end = fair.command(&ten(0x2a, 0, 0, 8192), &vec![round; 4 * MIB], 0);
        assert_eq!(end.status, GOOD);
        moved += 4;
    }
    let rate = f64::from(moved) / since.elapsed().as_secs_f64();
    println!(
        "beside 24 sessions x 64 announced writes: 512 bytes in {slowest:?} at most, {rate:.0} MiB/s in large writes"
    );
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert_eq!(fair.read(8191, 1, 512), [59; 512]);
    drop(evil);
    daemon.stop();
}
