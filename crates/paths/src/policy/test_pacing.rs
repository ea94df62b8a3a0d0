//! Pacing against a direct transcription of its formula, on random histories.

use super::pacing::HOLD;
use super::{Direction, Ended, Policy, Request, Selector, Settings, Ticket, Use};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;

fn any_path() -> impl Strategy<Value = Settings> {
    let speed = prop_oneof![Just(125_000_000_u64), Just(12_500_000), Just(1_250_000_000)];
    (0..3_u16, 0..2_u16, speed, 1..4_u32).prop_map(|(host_port, target_port, speed, share)| {
        Settings {
            usage: Use::Active,
            share,
            host_port,
            target_port,
            host_speed: speed,
            target_speed: 125_000_000,
            speed: speed.min(125_000_000),
            ..Settings::alone(speed)
        }
    })
}

/// Every path's part by the words of the reference: "port speed x share whenever a port has more than one active sender".
fn parts(paths: &[Settings], writing: &[u64]) -> Vec<Option<u64>> {
    let senders = |port: u16| -> Vec<usize> {
        let sends = |at: &usize| writing[*at] > 0 && paths[*at].target_port == port;
        (0..paths.len()).filter(sends).collect()
    };
    let part = |at: usize| {
        let all = senders(paths[at].target_port);
        let ports: std::collections::BTreeSet<u16> =
            all.iter().map(|it| paths[*it].host_port).collect();
        let bytes: u64 = all.iter().map(|it| writing[*it]).sum();
        let speed: u64 = all.iter().map(|it| paths[*it].speed).sum();
        let shares: u64 = all.iter().map(|it| u64::from(paths[*it].share)).sum();
        let overfills = ports.len() > 1
            && bytes > 32 << 10
            && speed > paths[at].target_speed
            && writing[at] > 0;
        overfills.then(|| paths[at].target_speed * u64::from(paths[at].share) / shares)
    };
    (0..paths.len()).map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn whoever_shares_a_full_port_sends_at_his_part_and_afterwards_at_full_speed(
        paths in proptest::collection::vec(any_path(), 2..7),
        steps in proptest::collection::vec((any::<u8>(), any::<bool>(), 0..5_u64, any::<bool>()), 1..80)
    ) {
        let mut selector = Selector::new(Policy::Adaptive);
        for settings in &paths {
            selector.add(*settings);
        }
        let mut writing = vec![0_u64; paths.len()];
        let mut told: BTreeMap<usize, u64> = BTreeMap::new();
        let mut full: Vec<Option<Now>> = vec![None; paths.len()];
        let mut open: Vec<Ticket> = Vec::new();
        let mut now = Now::ZERO.after(Duration::from_secs(1));
        for (which, ends, span, writes) in steps {
            now = now.after(Duration::from_millis(span * 6));
            if ends && !open.is_empty() {
                let ticket = open.swap_remove(usize::from(which) % open.len());
                if ticket.direction() == Direction::Write {
                    writing[ticket.path()] -= ticket.bytes();
                }
                selector.done(ticket, Ended::Carried, now);
                continue;
            }
            let direction = if writes { Direction::Write } else { Direction::Read };
            let bytes = [512, 4096, 65536, 262_144][usize::from(which) % 4];
            let request = Request { direction, start: 1 << 60, bytes };
            let path = usize::from(which) % paths.len();
            let ticket = selector.take_on(path, request, now).unwrap();
            if writes {
                writing[path] += bytes;
            }
            for (at, pace) in selector.pace(&ticket, now) {
                let before = match pace {
                    Some(pace) => told.insert(at, pace),
                    None => told.remove(&at),
                };
                prop_assert_ne!(before, pace, "nobody is told twice");
            }
            let port = paths[path].target_port;
            for (at, part) in parts(&paths, &writing).into_iter().enumerate() {
                // Who is at another port hears of it by the next write there, or when he is let go.
                let concerned = (writes && paths[at].target_port == port) || told.contains_key(&at);
                match part.filter(|_| concerned) {
                    Some(part) => {
                        full[at] = Some(now);
                        prop_assert_eq!(told.get(&at), Some(&part));
                    }
                    None if full[at].is_none_or(|it| now.since(it) >= HOLD) => {
                        prop_assert_eq!(told.get(&at), None);
                    }
                    None => {}
                }
            }
            open.push(ticket);
        }
    }
}

#[test]
fn other_policies_hold_nobody_back() {
    let path = |host_port| Settings {
        usage: Use::Active,
        host_port,
        ..Settings::alone(125_000_000)
    };
    let mut selector = Selector::new(Policy::Adaptive);
    for host_port in 0..4 {
        selector.add(path(host_port));
    }
    let request = Request {
        direction: Direction::Write,
        start: 0,
        bytes: 65_536,
    };
    let mut now = Now::ZERO.after(Duration::from_secs(1));
    let book = |selector: &mut Selector, path, now| {
        // It never comes back.
        let ticket = selector.take_on(path, request, now).unwrap();
        selector.pace(&ticket, now)
    };
    assert_eq!(book(&mut selector, 0, now), []);
    let half = Some(62_500_000);
    assert_eq!(book(&mut selector, 1, now), [(0, half), (1, half)]);
    assert_eq!(book(&mut selector, 1, now), [], "nothing new");
    selector.unpaced(1);
    assert_eq!(book(&mut selector, 1, now), [(1, half)], "a new connection");
    selector.set_policy(Policy::LeastQueueDepth);
    assert_eq!(book(&mut selector, 0, now), [], "not at once");
    now = now.after(HOLD);
    assert_eq!(book(&mut selector, 2, now), [(0, None), (1, None)]);
}
