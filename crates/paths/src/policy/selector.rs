//! The selector: bookings of every path, and one choice function for each policy.

use super::adaptive::Ports;
use super::estimate::Estimate;
use super::model::{Direction, Policy, Request, RotateAfter, Settings, Use};
use super::slot::Slot;
use super::streams::Streams;
use std::time::Duration;
use units::Now;

/// For commands whose time does not count.
pub const UNTIMED: Now = Now(u64::MAX);

/// A command on its way. It goes back to [`Selector::done`], once.
#[derive(Debug)]
#[must_use = "a path stays booked until the booking comes back"]
pub struct Booking {
    bytes: u64,
    begun: Now,
    path: u32,
    /// Commands in flight on the path, this one included, when it was booked.
    depth: u32,
    direction: Direction,
}

impl Booking {
    /// Its time counts: [`Selector::done`] has to be called when it ended.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.begun != UNTIMED
    }

    /// The path's number.
    #[must_use]
    pub fn path(&self) -> usize {
        self.path as usize
    }

    /// What the operation moves, which policies that count bytes took into account.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When it was booked.
    #[must_use]
    pub fn begun(&self) -> Now {
        self.begun
    }
}

/// How a command ended, as far as the path is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The path carried it, whatever the status was.
    Carried,
    /// BUSY or TASK SET FULL: the queue is too long.
    Congested,
    /// It came back without an answer, or was never sent.
    Lost,
}

/// Why there is no path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// None takes commands.
    NoPath,
    /// All that do have full windows: ask again after a command has ended.
    WindowsFull,
}

/// Chooses paths for one volume on one core.
#[derive(Clone, Debug)]
pub struct Selector {
    policy: Policy,
    slots: Vec<Slot>,
    ports: Ports,
    streams: Streams,
    /// Commands so far.
    count: u64,
    /// Round robin's place and what it has sent from there.
    turn: Option<usize>,
    turn_commands: u32,
    turn_bytes: u64,
}

impl Selector {
    /// No paths yet.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            slots: Vec::new(),
            ports: Ports::default(),
            streams: Streams::default(),
            count: 0,
            turn: None,
            turn_commands: 0,
            turn_bytes: 0,
        }
    }

    /// A further path; its number.
    pub fn add(&mut self, settings: Settings) -> usize {
        self.slots.push(Slot {
            settings,
            in_flight: 0,
            ended: 0,
            took: Duration::ZERO,
            bytes: 0,
            bytes_reading: 0,
            bytes_writing: 0,
            estimate: Estimate::new(settings.speed),
            begun: Now::ZERO,
            silent: 0.0,
            cost: 0.0,
            last_used: 0,
            credit: 0,
            window: u64::from(settings.window.max(1)) * 1000,
        });
        self.ports.make_room(&settings);
        self.slots.len() - 1
    }

    /// Changes what is known of a path; its bookings stay.
    pub fn set(&mut self, path: usize, settings: Settings) {
        if let Some(slot) = self.slots.get_mut(path) {
            if slot.settings.speed != settings.speed {
                slot.estimate = Estimate::new(settings.speed);
            }
            slot.window = slot.window.min(u64::from(settings.window.max(1)) * 1000);
            slot.settings = settings;
            self.ports.make_room(&settings);
        }
    }

    /// What is known of a path.
    #[must_use]
    pub fn settings(&self, path: usize) -> Option<&Settings> {
        self.slots.get(path).map(|slot| &slot.settings)
    }

    /// The policy that rules.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Another policy from the next command on; nothing in flight is forgotten.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.turn = None;
        for slot in &mut self.slots {
            slot.credit = 0;
        }
    }

    /// Commands in flight on a path.
    #[must_use]
    pub fn in_flight(&self, path: usize) -> u32 {
        self.slots.get(path).map_or(0, |slot| slot.in_flight)
    }

    /// Commands that have ended on a path of all whose time was taken, and the time that they took
    /// together: the difference of two samples, divided, is the mean latency between them.
    #[must_use]
    pub fn ended(&self, path: usize) -> (u64, Duration) {
        let slot = self.slots.get(path);
        slot.map_or((0, Duration::ZERO), |slot| (slot.ended, slot.took))
    }

    /// Bytes in flight on a path.
    #[must_use]
    pub fn bytes_in_flight(&self, path: usize) -> u64 {
        self.slots.get(path).map_or(0, |slot| slot.bytes)
    }

    /// Whether the next command's time counts: with several paths always, with one of all in
    /// sixteen. For the others [`Selector::take`] may get [`UNTIMED`].
    #[must_use]
    pub fn wants_time(&self) -> bool {
        self.slots.len() > 1 || self.count.is_multiple_of(16)
    }

    /// The path for `request`, booked.
    ///
    /// # Errors
    /// [`Refused`] says whether to wait for a path or for a command to end.
    pub fn take(&mut self, request: Request, now: Now) -> Result<Booking, Refused> {
        if let [only] = &self.slots[..] {
            return match only.settings.usage {
                Use::No => Err(Refused::NoPath),
                Use::Active | Use::Standby if only.is_full() => Err(Refused::WindowsFull),
                Use::Active | Use::Standby => Ok(self.enter(0, request, now)),
            };
        }
        let usage = self.candidates()?;
        let chosen = match self.policy {
            Policy::Failover => self.best(usage, |slot| slot.settings.rank),
            Policy::RoundRobin(turn) => self.round_robin(usage, turn),
            Policy::RoundRobinSubset(turn) => self.rotate(usage, turn),
            Policy::LeastQueueDepth => self.best(usage, |slot| (slot.in_flight, slot.last_used)),
            Policy::LeastBytes => self.best(usage, |slot| (slot.bytes, slot.last_used)),
            Policy::ServiceTime => self.service_time(usage, request.bytes),
            Policy::WeightedMin => self.best(usage, |slot| (slot.settings.rank, slot.last_used)),
            Policy::WeightedShare => self.weighted_share(usage),
            Policy::Adaptive => self.adaptive(usage, request, now),
        };
        let path = chosen.ok_or(Refused::WindowsFull)?;
        self.sent(path, request.bytes);
        Ok(self.enter(path, request, now))
    }

    /// Books a path that somebody else chose: a repetition on the same path, a probe. `None`: there
    /// is no such path.
    pub fn take_on(&mut self, path: usize, request: Request, now: Now) -> Option<Booking> {
        (path < self.slots.len()).then(|| self.enter(path, request, now))
    }

    /// A command has ended.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a booking comes back once: it is used up"
    )]
    pub fn done(&mut self, booking: Booking, ended: Ended, now: Now) {
        let Booking {
            bytes,
            begun,
            path,
            depth,
            direction,
        } = booking;
        let timed = begun != UNTIMED;
        let Some(slot) = self.slots.get_mut(path as usize) else {
            return;
        };
        slot.in_flight = slot.in_flight.saturating_sub(1);
        if timed {
            slot.ended += 1;
            slot.took = slot.took.saturating_add(now.since(begun));
        }
        slot.bytes = slot.bytes.saturating_sub(bytes);
        match direction {
            Direction::Read => slot.bytes_reading = slot.bytes_reading.saturating_sub(bytes),
            Direction::Write => slot.bytes_writing = slot.bytes_writing.saturating_sub(bytes),
        }
        match ended {
            Ended::Carried => {
                if timed {
                    slot.estimate.learn(bytes, (begun, now), depth);
                }
                let most = slot.most();
                if slot.window < most {
                    slot.window = (slot.window + 1_000_000 / slot.window.max(1)).min(most);
                }
            }
            Ended::Congested => slot.window = (slot.window / 2).max(1000),
            Ended::Lost => {}
        }
    }

    /// Which kind of paths is chosen from.
    fn candidates(&self) -> Result<Use, Refused> {
        let any = |usage| self.slots.iter().any(|slot| slot.settings.usage == usage);
        if any(Use::Active) {
            Ok(Use::Active)
        } else if any(Use::Standby) {
            Ok(Use::Standby)
        } else {
            Err(Refused::NoPath)
        }
    }

    fn takes(&self, path: usize, usage: Use) -> bool {
        let slot = &self.slots[path];
        slot.settings.usage == usage && !slot.is_full()
    }

    /// The path with the least key; the lowest number among equals.
    fn best<K: Ord>(&self, usage: Use, key: impl Fn(&Slot) -> K) -> Option<usize> {
        let takers = (0..self.slots.len()).filter(|path| self.takes(*path, usage));
        takers.min_by_key(|path| key(&self.slots[*path]))
    }

    fn round_robin(&self, usage: Use, turn: RotateAfter) -> Option<usize> {
        match usage {
            Use::Active => self.rotate(usage, turn),
            Use::Standby | Use::No => self.best(usage, |slot| slot.settings.rank),
        }
    }

    /// The path whose turn it is.
    fn rotate(&self, usage: Use, turn: RotateAfter) -> Option<usize> {
        let paths = self.slots.len();
        let over = match turn {
            RotateAfter::Commands(commands) => self.turn_commands >= commands,
            RotateAfter::Bytes(bytes) => self.turn_bytes >= bytes,
        };
        let first = match self.turn {
            Some(at) if over => at + 1,
            Some(at) => at,
            None => 0,
        };
        let in_turn = (0..paths).map(|step| (first + step) % paths);
        in_turn.into_iter().find(|path| self.takes(*path, usage))
    }

    fn service_time(&self, usage: Use, bytes: u64) -> Option<usize> {
        let takers = (0..self.slots.len()).filter(|path| self.takes(*path, usage));
        takers.min_by(|a, b| {
            let (a, b) = (&self.slots[*a], &self.slots[*b]);
            let load = |slot: &Slot| u128::from(slot.bytes) + u128::from(bytes);
            let rate = |slot: &Slot| u128::from(slot.settings.throughput);
            // a/ra against b/rb without division.
            let faster = match (rate(a), rate(b)) {
                (0, 0) => load(a).cmp(&load(b)),
                (0, _) => std::cmp::Ordering::Greater,
                (_, 0) => std::cmp::Ordering::Less,
                (ra, rb) => (load(a) * rb).cmp(&(load(b) * ra)),
            };
            faster
                .then(rate(b).cmp(&rate(a)))
                .then(a.last_used.cmp(&b.last_used))
        })
    }

    /// Every path earns its share, the one that is owed most goes and pays for all: the smoothest
    /// order there is.
    fn weighted_share(&mut self, usage: Use) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for path in 0..self.slots.len() {
            if !self.takes(path, usage) {
                continue;
            }
            let share = i64::from(self.slots[path].settings.share);
            self.slots[path].credit += share;
            total += share;
            let slot = &self.slots[path];
            let owed = (slot.settings.share > 0, slot.credit);
            if best
                .is_none_or(|it| owed > (self.slots[it].settings.share > 0, self.slots[it].credit))
            {
                best = Some(path);
            }
        }
        if let Some(path) = best {
            self.slots[path].credit -= total;
        }
        best
    }

    fn adaptive(&mut self, usage: Use, request: Request, now: Now) -> Option<usize> {
        self.ports.load(&mut self.slots, usage, &request, now);
        let favourite = self.streams.favourite(&request);
        let mut least = f64::INFINITY;
        for path in 0..self.slots.len() {
            let takes = self.takes(path, usage);
            let slot = &mut self.slots[path];
            slot.cost = if takes {
                self.ports.cost(path, slot, &request)
            } else {
                f64::INFINITY
            };
            least = least.min(slot.cost);
        }
        // Where all are behind others, their own costs still count.
        let base = Ports::behind_all(least);
        let most = base + (least - base) * Ports::EQUAL;
        let as_good = |path: &usize| {
            let cost = self.slots[*path].cost;
            cost.is_finite() && cost <= most
        };
        let equals = (0..self.slots.len()).filter(as_good);
        let path = equals.min_by_key(|path| self.slots[*path].last_used)?;
        let stays = |favourite: &usize| {
            let slot = &self.slots[*favourite];
            slot.cost.is_finite() && !Ports::worth_leaving(slot, &request, (slot.cost, least))
        };
        let chosen = favourite.filter(stays).unwrap_or(path);
        self.streams.went(&request, chosen);
        Some(chosen)
    }

    fn sent(&mut self, path: usize, bytes: u64) {
        let over = match self.policy {
            Policy::RoundRobin(turn) | Policy::RoundRobinSubset(turn) => match turn {
                RotateAfter::Commands(commands) => self.turn_commands >= commands,
                RotateAfter::Bytes(limit) => self.turn_bytes >= limit,
            },
            Policy::Failover
            | Policy::LeastQueueDepth
            | Policy::LeastBytes
            | Policy::ServiceTime
            | Policy::WeightedMin
            | Policy::WeightedShare
            | Policy::Adaptive => return,
        };
        if over || self.turn != Some(path) {
            self.turn = Some(path);
            self.turn_commands = 0;
            self.turn_bytes = 0;
        }
        self.turn_commands = self.turn_commands.saturating_add(1);
        self.turn_bytes = self.turn_bytes.saturating_add(bytes);
    }

    fn enter(&mut self, path: usize, request: Request, now: Now) -> Booking {
        self.count += 1;
        let slot = &mut self.slots[path];
        slot.last_used = self.count;
        if slot.in_flight == 0 {
            slot.begun = now;
        }
        slot.in_flight += 1;
        slot.bytes = slot.bytes.saturating_add(request.bytes);
        match request.direction {
            Direction::Read => {
                slot.bytes_reading = slot.bytes_reading.saturating_add(request.bytes);
            }
            Direction::Write => {
                slot.bytes_writing = slot.bytes_writing.saturating_add(request.bytes);
            }
        }
        Booking {
            bytes: request.bytes,
            begun: now,
            path: u32::try_from(path).expect("paths of a volume fit 32 bits"),
            depth: slot.in_flight,
            direction: request.direction,
        }
    }
}
