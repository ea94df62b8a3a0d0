//! When a connection takes what has come: at each PDU, or once for several.
//!
//! Most hosts hand each PDU to TCP by a call of its own. A target that is faster than its host then
//! wakes, receives and sends for each of them, which costs more than all the rest. So, as a NIC
//! coalesces interrupts, a connection whose host has other work anyhow may wait until several PDUs
//! are there.
//!
//! **Contract.** No host that keeps its depth waits for that. The depth is proven first: the
//! connection answers nothing for a moment and counts what comes all the same. What is on its way
//! for less than the network's round trip is taken off, and half of the rest may be waited for; and
//! only while PDUs come as fast as they did without it, which is measured anew two to ten times a
//! second. At a depth of 1 nothing comes in the moment of the proof: one answer is late by three
//! usual gaps, in the end every two seconds; two in a row where a depth has been proven just
//! before, because hosts that take all answers before they send again rest in between.
//!
//! **Failure model.** A host that sends less than half of what is waited for is served when the
//! time is over that all of it should have taken, and from the second time in a row on each PDU is
//! taken as it comes. A host that does nothing but send, and does not care how soon it is answered,
//! is answered later by [`Coalescing::new`]'s longest wait at most.

use std::time::Duration;
use units::Now;

/// PDUs that are waited for: at least, since two save little, and at most.
const PDUS_MIN: u64 = 3;
const PDUS_MAX: u64 = 16;

/// The part of a proven depth that is waited for: the rest keeps the host at work.
const PART: u64 = 2;

/// PDUs in a usual receive from which on nothing is left to be saved.
const ENOUGH: u64 = 12;

/// PDUs that come less often, in nanoseconds, cost little as they are.
const WORTH_IT: u64 = 20_000;

/// Bytes that are waited for at most: more of them come in few calls anyhow.
const BYTES_MAX: u64 = 64 << 10;

/// A moment in which nothing comes that is a pause of the host, not a gap.
const GAP_MAX: Duration = Duration::from_millis(1);

/// PDUs over which a pace is measured: while each is taken as it comes, and while several are
/// waited for. Hosts waver by a fifth from one millisecond to the next; over fewer PDUs than these
/// every third verdict would be about that.
const SAMPLE: u64 = 512;
const SAMPLE_LATE: u64 = 1024;

/// How long a proven depth is relied on: at first, and at most, where it held every time and made
/// nothing slower.
const PROVEN_FOR: Duration = Duration::from_millis(100);
const PROVEN_FOR_MAX: Duration = Duration::from_millis(400);

/// Between two attempts to prove a depth where the last ones failed: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What the socket is to do until something is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wakeup {
    /// Take what comes as it comes.
    AtEach,
    /// Take it when so many bytes are there, or so much time has passed.
    Late { bytes: u64, within: Duration },
    /// What was said last still holds.
    AsSaid,
}

/// What is waited for.
#[derive(Clone, Copy)]
struct Wait {
    bytes: u64,
    until: Now,
    /// With so many PDUs it was not in vain, whatever their size: commands and data come in turns.
    pdus: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Each PDU is taken as it comes; the host's own pace is measured.
    Free,
    /// So many PDUs are waited for, to see that the host sends them without an answer.
    Probing { pdus: u64 },
    /// The host keeps at least so many going.
    Proven { depth: u64 },
    /// So many PDUs are waited for.
    Coalescing { pdus: u64, until: Now },
}

/// How fast PDUs come.
#[derive(Clone, Copy, Default)]
struct Pace {
    pdus: u64,
    bytes: u64,
    receives: u64,
    time: Duration,
}

impl Pace {
    fn add(&mut self, pdus: u64, bytes: u64, time: Duration) {
        self.pdus += pdus;
        self.bytes += bytes;
        self.receives += 1;
        self.time += time;
    }

    fn is_measured_by(&self, pdus: u64) -> bool {
        self.pdus >= pdus
    }

    /// From one PDU to the next, in nanoseconds.
    fn gap(&self) -> u64 {
        (nanoseconds(self.time) / self.pdus.max(1)).max(1)
    }

    /// Bytes of one PDU.
    fn size(&self) -> u64 {
        (self.bytes / self.pdus.max(1)).max(1)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// When a connection takes what has come.
pub(super) struct Coalescing {
    /// The longest usual wait, in nanoseconds; 0: there is none.
    wait_max: u64,
    phase: Phase,
    /// What comes in this phase.
    pace: Pace,
    /// What came while nothing was waited for.
    free: Pace,
    last: Now,
    wait: Option<Wait>,
    /// Waits in a row that ended without what was waited for.
    missed: u32,
    /// Samples in a row in which PDUs came slower than where nothing was waited for.
    slower: u32,
    /// The host has kept a depth, and no proof has failed since.
    held: bool,
    /// When a depth may be tried to be proven, and how long after that again.
    next: Now,
    pause: Duration,
    relied: Duration,
}

impl Coalescing {
    /// For a connection that waits so long for several PDUs at most, and for the proof of a depth
    /// three times as long.
    pub(super) fn new(now: Now, wait_max: Duration) -> Self {
        Self {
            wait_max: nanoseconds(wait_max),
            phase: Phase::Free,
            pace: Pace::default(),
            free: Pace::default(),
            last: now,
            wait: None,
            missed: 0,
            slower: 0,
            held: false,
            next: now,
            pause: PAUSE_MIN,
            relied: PROVEN_FOR,
        }
    }

    /// Several PDUs are waited for, because the host has other work meanwhile.
    pub(super) fn is_at_work(&self) -> bool {
        matches!(self.phase, Phase::Coalescing { .. })
    }

    /// What comes next is taken as it comes.
    pub(super) fn at_each(&mut self) {
        self.wait = None;
    }

    /// Nothing is waited for any more.
    pub(super) fn stop(&mut self) {
        self.wait_max = 0;
    }

    /// `pdus` PDUs, `bytes` bytes in all, were received at `now`; whether they were waited for.
    pub(super) fn came(&mut self, now: Now, pdus: u64, bytes: u64) -> bool {
        let time = now.since(self.last);
        self.last = now;
        let wait = self.wait.take();
        if time > GAP_MAX {
            // The host rested, or was made to: that says nothing of its pace, and its depth is to
            // be seen anew.
            self.free_at(now);
            return wait.is_some();
        }
        self.pace.add(pdus, bytes, time);
        let Some(wait) = wait else { return false };
        let missed = bytes < wait.bytes && pdus < wait.pdus;
        if missed && now < wait.until {
            // Something else woke the connection.
            return true;
        }
        match self.phase {
            Phase::Free | Phase::Proven { .. } => {}
            Phase::Probing { pdus } => self.probed(pdus, missed),
            Phase::Coalescing { pdus, until } => self.coalesced(now, pdus, until, missed),
        }
        true
    }

    /// Nothing more is to be done at `now`. `owed` returns how many bytes the next so many PDUs
    /// will have; `round_trip` asks for the least time that a packet takes to the host and back, in
    /// microseconds; `None` where nobody knows.
    pub(super) fn rest(
        &mut self,
        now: Now,
        owed: impl Fn(u64) -> u64,
        round_trip: impl FnOnce() -> Option<u32>,
    ) -> Wakeup {
        if self.wait_max == 0 {
            return Wakeup::AtEach;
        }
        match self.wait {
            Some(wait) if now < wait.until => return Wakeup::AsSaid,
            Some(_) => return self.nothing_came(now),
            None => {}
        }
        if self.phase == Phase::Free && self.pace.is_measured_by(SAMPLE) {
            self.free = std::mem::take(&mut self.pace);
            if now >= self.next && self.is_worth_it() {
                self.missed = 0;
                self.phase = Phase::Probing { pdus: 2 };
            }
        } else if let Phase::Proven { depth } = self.phase {
            self.begin(now, depth, round_trip());
        }
        match self.phase {
            Phase::Free | Phase::Proven { .. } => Wakeup::AtEach,
            // All that was wanted, else nothing is proven.
            Phase::Probing { pdus } => {
                let usual = self.free.gap() * pdus;
                self.late(now, owed(pdus), usual * 3 / 2, pdus)
            }
            Phase::Coalescing { pdus, .. } => {
                let usual = self.free.gap() * pdus * 5 / 4;
                self.late(now, owed(pdus), usual.min(self.wait_max), pdus / 2)
            }
        }
    }

    /// All of a wait has passed for nothing; what comes next is taken as it comes.
    fn nothing_came(&mut self, now: Now) -> Wakeup {
        self.wait = None;
        match self.phase {
            Phase::Coalescing { pdus, until } => self.coalesced(now, pdus, until, true),
            Phase::Probing { pdus } if self.may_rest(pdus) => self.probed(pdus, true),
            Phase::Free | Phase::Proven { .. } | Phase::Probing { .. } => {
                self.free_after_a_failure(now);
            }
        }
        Wakeup::AtEach
    }

    fn late(&mut self, now: Now, bytes: u64, within: u64, enough: u64) -> Wakeup {
        let within = Duration::from_nanos(within);
        self.wait = Some(Wait {
            bytes,
            until: now.after(within),
            pdus: enough,
        });
        Wakeup::Late { bytes, within }
    }

    /// PDUs that are waited for where the host keeps enough of them going.
    fn goal(&self) -> u64 {
        let in_time = self.wait_max / self.free.gap();
        PDUS_MAX.min(in_time).min(BYTES_MAX / self.free.size())
    }

    fn is_worth_it(&self) -> bool {
        self.free.gap() <= WORTH_IT
            && self.goal() >= 2
            && self.free.pdus < ENOUGH * self.free.receives
    }

    /// A host that did not send so many PDUs without an answer may only have been interrupted, or
    /// rest between two bursts: it has sent half as many, or kept a depth before. It is tried once
    /// more.
    fn may_rest(&self, pdus: u64) -> bool {
        pdus > 2 || self.held
    }

    /// It was tried to have so many PDUs without an answer.
    fn probed(&mut self, pdus: u64, missed: bool) {
        self.missed = if missed { self.missed + 1 } else { 0 };
        if self.missed == 1 && self.may_rest(pdus) {
            return;
        }
        let most = self.goal().saturating_mul(PART);
        let enough = pdus >= most;
        self.phase = match (missed, enough) {
            (true, _) => Phase::Proven { depth: pdus / 2 },
            (false, true) => Phase::Proven { depth: pdus },
            (false, false) => Phase::Probing {
                pdus: (pdus * 2).min(most),
            },
        };
    }

    /// The host keeps at least so many PDUs going. Those that the network has are not in its queue.
    fn begin(&mut self, now: Now, depth: u64, round_trip: Option<u32>) {
        let Some(round_trip) = round_trip else {
            return self.stop_and_free(now);
        };
        let on_the_way = u64::from(round_trip) * 1000 / self.free.gap();
        let pdus = (depth.saturating_sub(on_the_way) / PART).min(self.goal());
        if pdus < PDUS_MIN {
            return self.free_after_a_failure(now);
        }
        self.pace = Pace::default();
        (self.missed, self.slower) = (0, 0);
        let until = now.after(self.relied);
        self.held = true;
        self.phase = Phase::Coalescing { pdus, until };
    }

    /// A wait for several PDUs is over.
    fn coalesced(&mut self, now: Now, pdus: u64, until: Now, missed: bool) {
        self.missed = if missed { self.missed + 1 } else { 0 };
        if self.pace.is_measured_by(SAMPLE_LATE) {
            let (late, free) = (self.pace.gap(), self.free.gap());
            self.slower = if late > free * 9 / 8 {
                self.slower + 1
            } else {
                0
            };
            if late > free * 65 / 64 {
                self.relied = PROVEN_FOR;
            }
            self.pace = Pace::default();
        }
        if self.missed >= 2 {
            self.free_after_a_failure(now);
        } else if self.slower >= 2 {
            self.fewer(now, pdus / 2, until);
        } else if now >= until {
            self.pause = PAUSE_MIN;
            self.relied = if pdus < self.goal() {
                // More may be had again.
                PROVEN_FOR
            } else {
                (self.relied * 2).min(PROVEN_FOR_MAX)
            };
            self.free_at(now);
        }
    }

    /// So many were too many: half of them may not be.
    fn fewer(&mut self, now: Now, pdus: u64, until: Now) {
        if pdus < PDUS_MIN {
            return self.free_after_a_failure(now);
        }
        self.pace = Pace::default();
        (self.missed, self.slower) = (0, 0);
        self.phase = Phase::Coalescing { pdus, until };
    }

    fn stop_and_free(&mut self, now: Now) {
        self.stop();
        self.free_at(now);
    }

    fn free_after_a_failure(&mut self, now: Now) {
        let pause = self.pause;
        self.held = false;
        self.relied = PROVEN_FOR;
        self.pause = (pause * 2).min(PAUSE_MAX);
        self.free_at(now.after(pause));
    }

    /// Each PDU is taken as it comes again, and no depth is proven before `next`.
    fn free_at(&mut self, next: Now) {
        self.phase = Phase::Free;
        self.pace = Pace::default();
        self.wait = None;
        self.next = self.next.max(next);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::VecDeque;

    const MICROSECOND: u64 = 1000;
    const PDU: u64 = 48;

    fn commands(pdus: u64) -> u64 {
        pdus * PDU
    }

    /// A host that keeps `depth` commands going and works on one answer after the other, and a
    /// target that works on all that has come at once; in nanoseconds.
    struct Model {
        depth: usize,
        host_each: u64,
        round_trip: u64,
        target_receive: u64,
        target_each: u64,
    }

    struct Seen {
        commands: u64,
        receives: u64,
        /// Of a command, from the host's view.
        mean: u64,
        slowest: u64,
    }

    impl Model {
        fn run(&self, mut coalescing: Coalescing, time: u64) -> Seen {
            let one_way = self.round_trip / 2;
            let mut host_free = 0;
            let mut seen = Seen {
                commands: 0,
                receives: 0,
                mean: 0,
                slowest: 0,
            };
            let mut total = 0;
            // When each command reaches the target, and when the host has sent it.
            let mut coming: VecDeque<(u64, u64)> = VecDeque::new();
            for _ in 0..self.depth {
                host_free += self.host_each;
                coming.push_back((host_free + one_way, host_free));
            }
            let mut now = 0;
            let mut wakeup = Wakeup::AtEach;
            let mut last_call = 0;
            while now < time {
                let wanted = match wakeup {
                    Wakeup::AtEach | Wakeup::AsSaid => 1,
                    Wakeup::Late { bytes, .. } => bytes.div_ceil(PDU),
                };
                let there = coming
                    .get(usize::try_from(wanted).unwrap() - 1)
                    .map(|c| c.0);
                let latest = match wakeup {
                    Wakeup::Late { within, .. } => now + nanoseconds(within),
                    Wakeup::AtEach | Wakeup::AsSaid => u64::MAX,
                };
                now = now.max(there.unwrap_or(u64::MAX).min(latest));
                let mut sent = Vec::new();
                while coming.front().is_some_and(|command| command.0 <= now) {
                    sent.extend(coming.pop_front().map(|command| command.1));
                }
                if !sent.is_empty() {
                    let pdus = sent.len() as u64;
                    coalescing.came(Now(now), pdus, pdus * PDU);
                    now += self.target_receive + self.target_each * pdus;
                    seen.receives += 1;
                }
                for at in sent {
                    let answered = now + one_way;
                    host_free = host_free.max(answered) + self.host_each;
                    total += host_free - at;
                    seen.slowest = seen.slowest.max(host_free - at);
                    seen.commands += 1;
                    coming.push_back((host_free + one_way, host_free));
                }
                assert!(now > last_call || wakeup == Wakeup::AtEach, "time goes on");
                last_call = now;
                wakeup = coalescing.rest(Now(now), commands, || {
                    Some(u32::try_from(self.round_trip / MICROSECOND).unwrap())
                });
            }
            seen.mean = total / seen.commands;
            seen
        }

        fn both(&self) -> (Seen, Seen) {
            let run =
                |wait: Duration| self.run(Coalescing::new(Now(0), wait), 2_000_000 * MICROSECOND);
            (run(Duration::ZERO), run(Duration::from_micros(150)))
        }
    }

    const FAST: Model = Model {
        depth: 32,
        host_each: 8 * MICROSECOND,
        round_trip: 20 * MICROSECOND,
        target_receive: 3 * MICROSECOND,
        target_each: MICROSECOND,
    };

    #[test]
    fn a_host_with_a_queue_of_its_own_is_served_a_fifth_as_often_and_waits_for_nothing() {
        let (each, late) = FAST.both();
        assert!(
            each.receives * 10 > each.commands * 9,
            "{} of {}",
            each.receives,
            each.commands
        );
        assert!(
            late.receives * 5 < late.commands,
            "{} of {}",
            late.receives,
            late.commands
        );
        assert!(
            late.commands * 1000 >= each.commands * 995,
            "{} and {}",
            late.commands,
            each.commands
        );
        assert!(
            late.mean * 995 <= each.mean * 1000,
            "{} and {}",
            late.mean,
            each.mean
        );
    }

    #[test]
    fn a_host_at_depth_one_is_delayed_by_a_proof_that_fails_and_by_no_other() {
        let (each, late) = Model { depth: 1, ..FAST }.both();
        assert!(
            late.mean * 990 <= each.mean * 1000,
            "{} and {}",
            late.mean,
            each.mean
        );
        assert_eq!(late.receives, late.commands);
        let gap = each.mean;
        assert!(
            late.slowest <= each.slowest + 3 * gap,
            "{}, usually {}",
            late.slowest,
            gap
        );
    }

    #[test]
    fn a_host_whose_commands_are_on_the_wire_and_not_in_its_queue_is_not_waited_for() {
        for depth in [4, 8, 16, 32] {
            let far = Model {
                depth,
                round_trip: 300 * MICROSECOND,
                host_each: 2 * MICROSECOND,
                ..FAST
            };
            let (each, late) = far.both();
            assert!(
                late.commands * 100 >= each.commands * 97,
                "{depth}: {} and {}",
                late.commands,
                each.commands
            );
        }
    }

    #[test]
    fn no_depth_and_no_distance_makes_it_slower() {
        for depth in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 256] {
            for round_trip in [0, 5, 20, 60, 200] {
                for host_each in [1, 4, 10, 25, 80] {
                    let model = Model {
                        depth,
                        host_each: host_each * MICROSECOND,
                        round_trip: round_trip * MICROSECOND,
                        ..FAST
                    };
                    let (each, late) = model.both();
                    assert!(
                        late.commands * 100 >= each.commands * 97,
                        "depth {depth}, {round_trip} us away, {host_each} us each: {} and {}",
                        late.commands,
                        each.commands
                    );
                }
            }
        }
    }

    #[test]
    fn a_host_that_stops_sending_is_answered_after_the_time_and_then_at_each() {
        let mut coalescing = Coalescing::new(Now(0), Duration::from_micros(60));
        let mut now = 0;
        let mut wakeup = Wakeup::AtEach;
        let gap = 8 * MICROSECOND;
        for _ in 0..1000 {
            let pdus = match wakeup {
                Wakeup::Late { bytes, .. } => bytes.div_ceil(PDU),
                Wakeup::AtEach | Wakeup::AsSaid => 1,
            };
            now += gap * pdus;
            coalescing.came(Now(now), pdus, pdus * PDU);
            wakeup = coalescing.rest(Now(now), commands, || Some(10));
        }
        let Wakeup::Late { within, bytes } = wakeup else {
            panic!("it waits for several: {wakeup:?}");
        };
        assert!(
            bytes >= 4 * PDU && within <= Duration::from_micros(130),
            "{wakeup:?}"
        );
        assert_eq!(
            coalescing.rest(Now(now + 1), commands, || None),
            Wakeup::AsSaid
        );
        now += nanoseconds(within);
        assert_eq!(coalescing.rest(Now(now), commands, || None), Wakeup::AtEach);
        now += gap;
        coalescing.came(Now(now), 1, PDU);
        let Wakeup::Late { within, .. } = coalescing.rest(Now(now), commands, || None) else {
            panic!("once is no proof that it has stopped");
        };
        now += nanoseconds(within);
        coalescing.came(Now(now), 1, PDU);
        assert_eq!(coalescing.rest(Now(now), commands, || None), Wakeup::AtEach);
        coalescing.came(Now(now + gap), 1, PDU);
        assert_eq!(
            coalescing.rest(Now(now + gap), commands, || None),
            Wakeup::AtEach
        );
    }

    /// PDUs come, so many at a time, until the next two are to prove a depth.
    fn until_a_proof_begins(coalescing: &mut Coalescing, now: &mut u64) {
        for _ in 0..100_000 {
            let wakeup = coalescing.rest(Now(*now), commands, || Some(10));
            let pdus = match wakeup {
                Wakeup::Late { bytes, .. } if bytes == 2 * PDU => return,
                Wakeup::Late { bytes, .. } => bytes.div_ceil(PDU),
                Wakeup::AtEach | Wakeup::AsSaid => 1,
            };
            *now += 8 * MICROSECOND * pdus;
            coalescing.came(Now(*now), pdus, pdus * PDU);
        }
        panic!("no depth is proven");
    }

    /// The host rests during a proof, then sends again: whether the proof is tried again at once.
    fn rests_in_a_proof(coalescing: &mut Coalescing, now: &mut u64, comes_late: u64) -> bool {
        *now += 24 * MICROSECOND;
        if comes_late > 0 {
            coalescing.came(Now(*now), comes_late, comes_late * PDU);
        } else {
            assert_eq!(
                coalescing.rest(Now(*now), commands, || Some(10)),
                Wakeup::AtEach
            );
            *now += 8 * MICROSECOND;
            coalescing.came(Now(*now), 1, PDU);
        }
        coalescing.rest(Now(*now), commands, || Some(10)) != Wakeup::AtEach
    }

    #[test]
    fn a_host_that_has_kept_a_depth_may_rest_once_between_two_bursts() {
        for comes_late in [0, 1] {
            let mut coalescing = Coalescing::new(Now(0), Duration::from_micros(150));
            let mut now = 0;
            until_a_proof_begins(&mut coalescing, &mut now);
            let again = rests_in_a_proof(&mut coalescing, &mut now, comes_late);
            assert!(!again, "it has never kept one");
            until_a_proof_begins(&mut coalescing, &mut now);
            coalescing.came(Now(now + 16 * MICROSECOND), 2, 2 * PDU);
            now += 16 * MICROSECOND;
            until_a_proof_begins(&mut coalescing, &mut now);
            let again = rests_in_a_proof(&mut coalescing, &mut now, comes_late);
            assert!(again, "{comes_late} came late");
            let again = rests_in_a_proof(&mut coalescing, &mut now, comes_late);
            assert!(!again, "twice in a row, {comes_late} came late");
        }
    }

    #[test]
    fn commands_and_data_that_come_in_turns_end_a_wait_by_their_number_or_their_bytes() {
        let mut coalescing = Coalescing::new(Now(0), Duration::from_micros(60));
        let (mut now, mut wakeup, mut late) = (0, Wakeup::AtEach, 0);
        for turn in 0..4000_u64 {
            // A bunch of commands, then a bunch of what they write.
            let size = if turn % 2 == 0 { PDU } else { PDU + 4096 };
            let pdus = match wakeup {
                Wakeup::Late { bytes, within } => {
                    late += 1;
                    let in_time = nanoseconds(within) / (8 * MICROSECOND);
                    bytes.div_ceil(size).min(in_time)
                }
                Wakeup::AtEach | Wakeup::AsSaid => 1,
            };
            now += 8 * MICROSECOND * pdus;
            coalescing.came(Now(now), pdus, pdus * size);
            // What is expected is wrong each time.
            wakeup = coalescing.rest(Now(now), |pdus| pdus * (PDU + 2048), || Some(10));
        }
        assert!(late > 2000, "{late} of 4000 were late");
    }

    #[test]
    fn a_pace_that_wavers_by_itself_is_no_reason_to_stop() {
        let mut coalescing = Coalescing::new(Now(0), Duration::from_micros(150));
        let (mut now, mut wakeup, mut came, mut late) = (0, Wakeup::AtEach, 0_u64, 0_u64);
        let mut random = 1_u64;
        let mut gap = 0;
        while came < 1_000_000 {
            let pdus = match wakeup {
                Wakeup::Late { bytes, .. } => bytes.div_ceil(PDU),
                Wakeup::AtEach | Wakeup::AsSaid => 1,
            };
            if came / 200 != (came + pdus) / 200 || came == 0 {
                // As fast as half again, for a millisecond or two, whether it is waited or not.
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                gap = 6 * MICROSECOND + (random >> 33) % (3 * MICROSECOND);
            }
            let within = match wakeup {
                Wakeup::Late { within, .. } => nanoseconds(within),
                Wakeup::AtEach | Wakeup::AsSaid => u64::MAX,
            };
            let time = (gap * pdus).min(within);
            let pdus = (time / gap).max(1);
            now += time;
            came += pdus;
            late += if pdus > 1 { pdus } else { 0 };
            coalescing.came(Now(now), pdus, pdus * PDU);
            wakeup = coalescing.rest(Now(now), commands, || Some(10));
        }
        assert!(late * 100 > came * 90, "{late} of {came} PDUs");
    }

    #[test]
    fn nothing_is_waited_for_where_nobody_knows_the_distance_or_it_is_switched_off() {
        let unknown = |wait| {
            let mut coalescing = Coalescing::new(Now(0), wait);
            let mut late = 0;
            let mut wakeup = Wakeup::AtEach;
            let mut now = 0;
            for _ in 0..10_000 {
                let pdus = match wakeup {
                    Wakeup::Late { bytes, .. } => bytes.div_ceil(PDU),
                    Wakeup::AtEach | Wakeup::AsSaid => 1,
                };
                now += 8 * MICROSECOND * pdus;
                coalescing.came(Now(now), pdus, pdus * PDU);
                wakeup = coalescing.rest(Now(now), commands, || None);
                late += u32::from(wakeup != Wakeup::AtEach);
            }
            late
        };
        assert_eq!(unknown(Duration::ZERO), 0);
        // One proof, and never again.
        assert!((1..8).contains(&unknown(Duration::from_micros(60))));
    }
}
