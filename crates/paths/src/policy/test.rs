//! Every decision against a direct transcription of its formula, on random histories.

use super::{
    Booking, Direction, Ended, Policy, Refused, Request, RotateAfter, Selector, Settings, Use,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;

const LINE: u64 = 125_000_000;

fn settings(host_port: u16, target_port: u16, speed: u64) -> Settings {
    Settings {
        usage: Use::Active,
        rank: 0,
        share: 1,
        throughput: 1,
        host_port,
        target_port,
        speed,
        host_speed: speed,
        target_speed: speed,
        window: u32::MAX / 2,
    }
}

fn read(bytes: u64) -> Request {
    // Never the start of another one: no stream.
    Request {
        direction: Direction::Read,
        start: 1 << 60,
        bytes,
    }
}

fn at(microseconds: u64) -> Now {
    Now::ZERO.after(Duration::from_micros(microseconds))
}

/// The known systems' ways, kept the way they keep them: a list whose last-used path goes to the
/// tail, a current path with a counter, running weights.
struct Known {
    settings: Vec<Settings>,
    in_flight: Vec<u64>,
    bytes: Vec<u64>,
    list: Vec<usize>,
    current: Option<usize>,
    sent: (u64, u64),
    weights: Vec<i64>,
    /// Which path has each host port to itself.
    holders: BTreeMap<u16, usize>,
}

impl Known {
    fn new(settings: &[Settings]) -> Self {
        let paths = settings.len();
        Self {
            settings: settings.to_vec(),
            in_flight: vec![0; paths],
            bytes: vec![0; paths],
            list: (0..paths).collect(),
            current: None,
            sent: (0, 0),
            weights: vec![0; paths],
            holders: BTreeMap::new(),
        }
    }

    fn usable(&self) -> Vec<usize> {
        let of = |usage| {
            self.list
                .iter()
                .copied()
                .filter(|path| self.settings[*path].usage == usage)
                .collect::<Vec<_>>()
        };
        let active = of(Use::Active);
        if active.is_empty() {
            of(Use::Standby)
        } else {
            active
        }
    }

    /// Linux queue-length: walk the list, keep the first that is better than all before it.
    fn least(&self, load: &[u64]) -> Option<usize> {
        let mut best: Option<usize> = None;
        for path in self.usable() {
            if best.is_none_or(|it| load[path] < load[it]) {
                best = Some(path);
            }
        }
        best
    }

    /// Linux service-time: equal throughputs compare bytes; equal bytes, or a throughput of zero,
    /// compare throughputs; else the times; equal times compare throughputs.
    fn service_time(&self, new: u64) -> Option<usize> {
        let better = |a: usize, b: usize| {
            let (ra, rb) = (
                u128::from(self.settings[a].throughput),
                u128::from(self.settings[b].throughput),
            );
            let (ba, bb) = (u128::from(self.bytes[a]), u128::from(self.bytes[b]));
            if ra == rb {
                return ba < bb;
            }
            if ba == bb || ra == 0 || rb == 0 {
                return ra > rb;
            }
            let (ta, tb) = ((ba + u128::from(new)) * rb, (bb + u128::from(new)) * ra);
            if ta == tb { ra > rb } else { ta < tb }
        };
        let mut best: Option<usize> = None;
        for path in self.usable() {
            if best.is_none_or(|it| better(path, it)) {
                best = Some(path);
            }
        }
        best
    }

    /// The turn is over.
    fn spent(&self, turn: RotateAfter) -> bool {
        match turn {
            RotateAfter::Commands(limit) => self.sent.0 >= u64::from(limit),
            RotateAfter::Bytes(limit) => self.sent.1 >= limit,
        }
    }

    fn round_robin(&mut self, turn: RotateAfter) -> Option<usize> {
        let mut usable = self.usable();
        usable.sort_unstable();
        if usable.is_empty() {
            // The turn waits for a path.
            return None;
        }
        let spent = self.spent(turn);
        let stays = self.current.filter(|path| !spent && usable.contains(path));
        let next = stays.or_else(|| {
            let after = usable
                .iter()
                .copied()
                .find(|path| self.current.is_some_and(|it| *path > it));
            after.or_else(|| usable.first().copied())
        });
        if spent || next != self.current {
            self.sent = (0, 0);
        }
        self.current = next;
        next
    }

    /// Smooth weighted round robin: everybody gains its weight, the richest goes and pays the sum.
    fn share(&mut self) -> Option<usize> {
        let mut usable = self.usable();
        usable.sort_unstable();
        let sum: i64 = usable
            .iter()
            .map(|path| i64::from(self.settings[*path].share))
            .sum();
        for path in &usable {
            self.weights[*path] += i64::from(self.settings[*path].share);
        }
        let mut best: Option<usize> = None;
        for path in usable {
            let worth = |path: usize| (self.settings[path].share > 0, self.weights[path]);
            if best.is_none_or(|it| worth(path) > worth(it)) {
                best = Some(path);
            }
        }
        if let Some(path) = best {
            self.weights[path] -= sum;
        }
        best
    }

    fn by_rank(&self, then_list: bool) -> Option<usize> {
        let mut usable = self.usable();
        if !then_list {
            usable.sort_unstable();
        }
        let lowest = usable.iter().map(|path| self.settings[*path].rank).min();
        usable
            .into_iter()
            .find(|path| Some(self.settings[*path].rank) == lowest)
    }

    /// The formulas of the adaptive policy while nothing has been measured.
    fn adaptive(&mut self, request: &Request) -> Option<usize> {
        let usable = self.usable();
        self.settle(&usable);
        let mut costs: Vec<(f64, usize)> = Vec::new();
        for path in usable {
            let it = &self.settings[path];
            let n = request.bytes as f64;
            let per_byte = |path: usize| 1.0 / self.settings[path].speed as f64;
            let on = |same: &dyn Fn(&Settings) -> bool| {
                (0..self.settings.len())
                    .filter(|other| same(&self.settings[*other]))
                    .collect::<Vec<usize>>()
            };
            let (host, target) = (
                on(&|other| other.host_port == it.host_port),
                on(&|other| other.target_port == it.target_port),
            );
            let busy = |paths: &[usize], port: &dyn Fn(&Settings) -> u64| {
                let part = |other: usize| {
                    (self.settings[other].speed as f64 / port(&self.settings[other]) as f64)
                        .min(1.0)
                };
                paths
                    .iter()
                    .map(|other| self.bytes[*other] as f64 * per_byte(*other) * part(*other))
                    .sum::<f64>()
            };
            let mut cost = if request.bytes < 32 << 10 {
                let bulk =
                    self.bytes[path].saturating_sub(self.in_flight[path] * (32 << 10)) as f64;
                0.000_025
                    + self.in_flight[path] as f64 * 4096.0 * per_byte(path)
                    + bulk * per_byte(path)
            } else {
                let ports =
                    busy(&host, &|it| it.host_speed).max(busy(&target, &|it| it.target_speed));
                ports.max(self.bytes[path] as f64 * per_byte(path)) + n * per_byte(path) + 0.000_1
            };
            cost /= f64::from(it.share.max(1));
            // All of the history reads, so the host's port receives.
            let others: Vec<usize> = host
                .into_iter()
                .filter(|other| *other != path && self.bytes[*other] > 0)
                .collect();
            let bytes: u64 = others.iter().map(|other| self.bytes[*other]).sum();
            let senders: u64 = others.iter().map(|other| self.settings[*other].speed).sum();
            let held = self.holders.get(&it.host_port);
            if held.is_some_and(|holder| *holder != path)
                && bytes > 0
                && bytes + request.bytes > 32 << 10
                && senders + it.speed > it.host_speed
            {
                cost += 1e6;
            }
            costs.push((cost, path));
        }
        let least = costs
            .iter()
            .map(|(cost, _)| *cost)
            .fold(f64::INFINITY, f64::min);
        let base = if least >= 1e6 { 1e6 } else { 0.0 };
        let most = base + (least - base) * 1.05;
        let first = costs.iter().find(|(cost, _)| *cost <= most);
        first.map(|(_, path)| *path)
    }

    /// A path that takes commands holds its host port from when it has something in flight there
    /// first, until it has nothing: then who has most does.
    fn settle(&mut self, usable: &[usize]) {
        if usable.is_empty() {
            return;
        }
        let bytes = &self.bytes;
        let may = |path: usize| bytes[path] > 0 && usable.contains(&path);
        self.holders.retain(|_, path| may(*path));
        let mut by_bytes: Vec<usize> = (0..bytes.len()).filter(|path| may(*path)).collect();
        by_bytes.sort_by_key(|path| std::cmp::Reverse(bytes[*path]));
        for path in by_bytes {
            let port = self.settings[path].host_port;
            self.holders.entry(port).or_insert(path);
        }
    }

    fn choose(&mut self, policy: Policy, request: &Request) -> Option<usize> {
        let standby = !self.settings.iter().any(|it| it.usage == Use::Active);
        match policy {
            Policy::Failover => self.by_rank(false),
            Policy::RoundRobin(_) if standby => self.by_rank(false),
            Policy::RoundRobin(turn) | Policy::RoundRobinSubset(turn) => self.round_robin(turn),
            Policy::LeastQueueDepth => self.least(&self.in_flight.clone()),
            Policy::LeastBytes => self.least(&self.bytes.clone()),
            Policy::ServiceTime => self.service_time(request.bytes),
            Policy::WeightedMin => self.by_rank(true),
            Policy::WeightedShare => self.share(),
            Policy::Adaptive => self.adaptive(request),
        }
    }

    fn sent(&mut self, policy: Policy, path: usize, bytes: u64) {
        if let Policy::RoundRobin(turn) | Policy::RoundRobinSubset(turn) = policy {
            // A standby that round robin falls back to is not chosen by turns, but its commands
            // count as turns all the same: a path that is active again while its turn lasts goes on
            // with it.
            if self.current != Some(path) || self.spent(turn) {
                self.sent = (0, 0);
            }
            self.current = Some(path);
            self.sent = (self.sent.0 + 1, self.sent.1 + bytes);
        }
        self.in_flight[path] += 1;
        self.bytes[path] += bytes;
        self.list.retain(|it| *it != path);
        self.list.push(path);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    End(usize),
    Set(usize, Use, u32, u32, u32),
    Switch(Policy),
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let turn = prop_oneof![
        (1..5_u32).prop_map(RotateAfter::Commands),
        (1..200_000_u64).prop_map(RotateAfter::Bytes)
    ];
    prop_oneof![
        Just(Policy::Failover),
        turn.clone().prop_map(Policy::RoundRobin),
        turn.prop_map(Policy::RoundRobinSubset),
        Just(Policy::LeastQueueDepth),
        Just(Policy::LeastBytes),
        Just(Policy::ServiceTime),
        Just(Policy::WeightedMin),
        Just(Policy::WeightedShare),
        Just(Policy::Adaptive),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![
        Just(512_u64),
        Just(4096),
        Just(16 << 10),
        Just(64 << 10),
        Just(256 << 10),
        Just(1 << 20)
    ];
    let usage = prop_oneof![3 => Just(Use::Active), 1 => Just(Use::Standby), 1 => Just(Use::No)];
    prop_oneof![
        12 => bytes.prop_map(Step::Send),
        9 => (0..64_usize).prop_map(Step::End),
        2 => (0..8_usize, usage, 0..4_u32, 0..4_u32, 0..4_u32).prop_map(|(path, usage, rank, share, rate)| Step::Set(path, usage, rank, share, rate)),
        1 => any_policy().prop_map(Step::Switch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_is_the_one_of_the_known_formula(
        ports in prop::collection::vec((0..3_u16, 0..3_u16, 0..3_usize), 1..8),
        first in any_policy(),
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let speeds = [LINE, LINE / 10, LINE * 10];
        let all: Vec<Settings> = ports.iter().map(|(host, target, speed)| Settings {
            host_speed: LINE * 10,
            target_speed: LINE,
            ..settings(*host, *target, speeds[*speed])
        }).collect();
        let mut known = Known::new(&all);
        let mut selector = Selector::new(first);
        for it in &all {
            selector.add(*it);
        }
        let mut policy = first;
        let mut flying: Vec<(Booking, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    let request = read(bytes);
                    let expected = known.choose(policy, &request);
                    match selector.take(request, at(0)) {
                        Ok(booking) => {
                            prop_assert_eq!(Some(booking.path()), expected, "{}", policy);
                            known.sent(policy, booking.path(), bytes);
                            flying.push((booking, bytes));
                        }
                        Err(refused) => {
                            prop_assert_eq!(refused, Refused::NoPath);
                            prop_assert_eq!(expected, None);
                        }
                    }
                }
                Step::End(n) => if !flying.is_empty() {
                    let (booking, bytes) = flying.swap_remove(n % flying.len());
                    known.in_flight[booking.path()] -= 1;
                    known.bytes[booking.path()] -= bytes;
                    selector.done(booking, Ended::Lost, at(0));
                },
                Step::Set(path, usage, rank, share, throughput) => {
                    let path = path % all.len();
                    let new = Settings { usage, rank, share, throughput, ..all[path] };
                    known.settings[path] = new;
                    selector.set(path, new);
                }
                Step::Switch(next) => {
                    policy = next;
                    selector.set_policy(next);
                    known.current = None;
                    known.sent = (0, 0);
                    known.weights.fill(0);
                }
            }
            for path in 0..all.len() {
                prop_assert_eq!(u64::from(selector.in_flight(path)), known.in_flight[path]);
                prop_assert_eq!(selector.bytes_in_flight(path), known.bytes[path]);
            }
        }
    }
}

#[test]
fn names_of_policies_go_round_and_wrong_ones_are_refused() {
    for text in [
        "failover",
        "round-robin:1",
        "round-robin:bytes=10485760",
        "round-robin-subset:1000",
        "least-queue-depth",
    ] {
        assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
    }
    assert_eq!(
        "round-robin".parse::<Policy>(),
        Ok(Policy::RoundRobin(RotateAfter::Commands(1)))
    );
    for text in [
        "rr",
        "round-robin:0",
        "round-robin:x",
        "least-bytes:3",
        "",
        "adaptive:",
    ] {
        let error = text.parse::<Policy>().unwrap_err();
        assert!(error.to_string().contains("adaptive"));
    }
}

#[test]
fn shares_are_kept_to_the_command_and_evenly_spread() {
    let mut selector = Selector::new(Policy::WeightedShare);
    for share in [5, 1, 2] {
        selector.add(Settings {
            share,
            ..settings(0, 0, LINE)
        });
    }
    let mut count = [0; 3];
    let mut order = Vec::new();
    for _ in 0..80 {
        let booking = selector.take(read(4096), at(0)).unwrap();
        count[booking.path()] += 1;
        order.push(booking.path());
        selector.done(booking, Ended::Lost, at(0));
    }
    assert_eq!(count, [50, 10, 20]);
    assert!(
        order
            .windows(4)
            .all(|four| four.iter().any(|path| *path != four[0])),
        "{order:?}"
    );
}

#[test]
fn a_congested_path_gets_half_the_window_and_earns_it_back() {
    let mut selector = Selector::new(Policy::Failover);
    selector.add(Settings {
        window: 8,
        ..settings(0, 0, LINE)
    });
    let fill = |selector: &mut Selector| {
        let mut flying = Vec::new();
        while let Ok(booking) = selector.take(read(4096), at(0)) {
            flying.push(booking);
        }
        flying
    };
    let mut flying = fill(&mut selector);
    assert_eq!(flying.len(), 8);
    assert_eq!(
        selector.take(read(1), at(0)).unwrap_err(),
        Refused::WindowsFull
    );
    selector.done(flying.pop().unwrap(), Ended::Congested, at(1));
    for booking in flying {
        selector.done(booking, Ended::Lost, at(1));
    }
    let flying = fill(&mut selector);
    assert_eq!(flying.len(), 4);
    for booking in flying {
        selector.done(booking, Ended::Carried, at(2));
    }
    assert_eq!(fill(&mut selector).len(), 4);
    for n in 0..40 {
        let booking = selector.take_on(0, read(4096), at(n)).unwrap();
        selector.done(booking, Ended::Carried, at(n));
    }
    assert_eq!(fill(&mut selector).len() + 4, 8);
}

#[test]
fn a_path_that_stalls_is_shunned_for_a_moment_and_one_bad_sample_does_not_poison_it() {
    let mut selector = Selector::new(Policy::Adaptive);
    selector.add(settings(0, 0, LINE));
    selector.add(settings(1, 1, LINE));
    let booking = selector.take_on(0, read(64 << 10), at(0)).unwrap();
    selector.done(booking, Ended::Carried, at(500_000));
    let mut goes = |now: u64| {
        let booking = selector.take(read(64 << 10), at(now)).unwrap();
        let path = booking.path();
        selector.done(booking, Ended::Lost, at(now));
        path
    };
    assert_eq!([goes(500_001), goes(500_002)], [1, 1]);
    // Two seconds later it is one of two equals again.
    let later: Vec<usize> = (0..4).map(|n| goes(2_600_000 + n)).collect();
    assert!(later.contains(&0), "{later:?}");
}

#[test]
fn the_second_sender_to_a_busy_port_waits_for_something_worse() {
    let mut selector = Selector::new(Policy::Adaptive);
    // One host port, two target ports: two readers would meet in the host's port.
    selector.add(settings(0, 0, LINE));
    selector.add(settings(0, 1, LINE));
    selector.add(settings(1, 1, LINE));
    let mut flying = Vec::new();
    for _ in 0..4 {
        flying.push(selector.take(read(64 << 10), at(0)).unwrap());
    }
    let paths: Vec<usize> = flying.iter().map(Booking::path).collect();
    assert!(!paths.contains(&1), "{paths:?}");
    assert!(paths.contains(&0) && paths.contains(&2), "{paths:?}");
}

#[test]
fn a_sequential_stream_keeps_its_extent_on_one_path_and_uses_all_of_them() {
    let mut selector = Selector::new(Policy::Adaptive);
    for port in 0..4 {
        selector.add(settings(port, port, LINE));
    }
    let mut by_extent: Vec<Vec<usize>> = vec![Vec::new(); 8];
    let mut now = 0;
    for n in 0..128_u64 {
        let request = Request {
            direction: Direction::Read,
            start: n << 16,
            bytes: 64 << 10,
        };
        let booking = selector.take(request, at(now)).unwrap();
        by_extent[usize::try_from(n / 16).unwrap()].push(booking.path());
        now += 524;
        selector.done(booking, Ended::Carried, at(now));
    }
    for extent in &by_extent[1..] {
        assert!(extent.iter().all(|path| *path == extent[0]), "{extent:?}");
    }
    let mut used: Vec<usize> = by_extent.iter().map(|extent| extent[0]).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 4);
}

/// The figure is printed; the bound is loose, for a machine that others use too.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a figure about real time is what this test is for"
)]
fn a_decision_among_eight_paths_takes_well_under_a_microsecond() {
    for policy in [
        "round-robin",
        "least-queue-depth",
        "service-time",
        "adaptive",
    ] {
        let mut selector = Selector::new(policy.parse().unwrap());
        for port in 0..8 {
            selector.add(settings(port, port, LINE));
        }
        let rounds = 100_000;
        let start = std::time::Instant::now();
        for n in 0..rounds {
            let booking = selector.take(read(4096), at(n)).unwrap();
            selector.done(booking, Ended::Carried, at(n + 1));
        }
        let each = start.elapsed() / u32::try_from(rounds).unwrap();
        println!("{policy}: {each:?} for a command's choice and end among 8 paths");
        assert!(each < Duration::from_micros(20));
    }
}
