//! The state of one path: when it is dead, when it is marginal, when it is trusted again.
//!
//! ```text
//!             login, identity                hold-down, 5 good pings
//!   Connecting ------------> (first time) Up <------------------ Proving
//!       ^  back-off                        |  dead, link down        ^
//!       +------------- Down <--------------+---> Down -> Connecting -+
//!   any -> Quarantined (identity differs)     any -> Disabled (administrator)
//! ```
//!
//! **Contract.** The caller reports what it sees ([`Seen`]) and carries out what comes back
//! ([`Do`]); it calls [`PathHealth::tick`] at [`PathHealth::deadline`]. A path is dead when nothing
//! was received for `quiet` while something is expected, and a ping (NOP-Out) stays unanswered for
//! `answer` more; a closed connection and a lost carrier kill it at once. A target whose store
//! hangs still answers pings: that is no path failure.
//!
//! Marginal is a judgement about a path that works, badly: it carries I/O only if no better one
//! does ([`PathHealth::usage`] says standby).

mod words;

pub use scsi::alua::AccessState;
pub use words::{Cause, Do, Seen, State, Timing, Wanted};

use crate::policy::Use;
use std::time::Duration;
use units::Now;

/// Good pings that a path has to show before it is trusted again.
pub const PROOFS: u32 = 5;
/// The longest pause between attempts while no path lives.
pub const HOPE: Duration = Duration::from_secs(1);
/// So many consecutive digest errors end the connection.
const DIGEST_ERRORS: u32 = 2;
const STALLS_MAX: usize = 8;

/// The last few times of something.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    times: [Option<Now>; STALLS_MAX],
    next: usize,
}

impl Recent {
    fn add(&mut self, now: Now) {
        self.times[self.next % STALLS_MAX] = Some(now);
        self.next = self.next.wrapping_add(1);
    }

    fn within(&self, window: Duration, now: Now) -> usize {
        self.times
            .iter()
            .flatten()
            .filter(|at| now.since(**at) <= window)
            .count()
    }
}

/// Waiting for a change of the access state to end.
#[derive(Clone, Copy, Debug, Default)]
struct Transition {
    /// How long it may take.
    longest: Duration,
    since: Option<Now>,
    over: bool,
    next_poll: Option<Now>,
    polls: u32,
}

/// Whether anything comes from the other end.
#[derive(Clone, Copy, Debug, Default)]
struct Liveness {
    received: Now,
    /// Something is in flight.
    expected: bool,
    /// When a ping was sent that is not answered.
    ping: Option<Now>,
    /// Consecutive digest errors.
    digests: u32,
}

/// What a path has shown since it came up, and how often it went down.
#[derive(Clone, Copy, Debug, Default)]
struct Trust {
    proofs: u32,
    proving_since: Now,
    flaps: u32,
    last_flap: Now,
    once: bool,
}

/// Attempts to connect.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    connecting_since: Now,
    retry_at: Option<Now>,
    count: u32,
    /// Spreads them.
    random: u32,
}

/// How well a path works that lives.
#[derive(Clone, Copy, Debug, Default)]
struct Quality {
    stalls: Recent,
    errors: Recent,
    retransmitting: Option<Now>,
    slow: Option<Now>,
    marginal: bool,
    last_reason: Now,
}

/// One path.
#[derive(Clone, Debug)]
pub struct PathHealth {
    timing: Timing,
    state: State,
    wanted: Wanted,
    link: bool,
    access: AccessState,
    transition: Transition,
    liveness: Liveness,
    trust: Trust,
    attempts: Attempts,
    quality: Quality,
    usage: Use,
}

impl PathHealth {
    /// A path that has not been tried. `seed` spreads attempts; any number.
    #[must_use]
    pub fn new(timing: Timing, seed: u32) -> Self {
        Self {
            timing,
            state: State::Down(Cause::New),
            wanted: Wanted::Cold,
            link: true,
            access: AccessState::ActiveOptimized,
            transition: Transition {
                longest: timing.transition,
                ..Transition::default()
            },
            liveness: Liveness::default(),
            trust: Trust::default(),
            attempts: Attempts {
                random: seed | 1,
                ..Attempts::default()
            },
            quality: Quality::default(),
            usage: Use::No,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// What the planner wants of it.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Works badly.
    #[must_use]
    pub fn marginal(&self) -> bool {
        self.quality.marginal
    }

    /// Its access state changes: commands for it are parked until it has changed, or the time for
    /// it is over.
    #[must_use]
    pub fn in_transition(&self) -> bool {
        self.transition.since.is_some()
    }

    /// Whether a policy may choose it. Marginal paths stand by.
    #[must_use]
    pub fn usage(&self) -> Use {
        if self.state != State::Up || self.transition.since.is_some() {
            return Use::No;
        }
        match (self.wanted, self.access) {
            (
                _,
                AccessState::Standby
                | AccessState::Unavailable
                | AccessState::Offline
                | AccessState::Transitioning,
            )
            | (Wanted::Cold, AccessState::ActiveOptimized | AccessState::ActiveNonOptimized) => {
                Use::No
            }
            (Wanted::Active, AccessState::ActiveOptimized | AccessState::ActiveNonOptimized)
                if !self.quality.marginal =>
            {
                Use::Active
            }
            (
                Wanted::Active | Wanted::Hot,
                AccessState::ActiveOptimized | AccessState::ActiveNonOptimized,
            ) => Use::Standby,
        }
    }

    /// The port serves the unit, as far as it is known. That outlives the session: a new one has to
    /// ask.
    #[must_use]
    pub fn serves(&self) -> bool {
        matches!(
            self.access,
            AccessState::ActiveOptimized | AccessState::ActiveNonOptimized
        )
    }

    /// Something is in flight on it: what is sent now changes nothing ([`Seen::Sent`]).
    #[must_use]
    pub fn expects(&self) -> bool {
        self.liveness.expected
    }

    /// When to call [`PathHealth::tick`] next.
    #[must_use]
    pub fn deadline(&self) -> Option<Now> {
        let timing = &self.timing;
        let of_state = match self.state {
            State::Down(_) => self.attempts.retry_at,
            State::Connecting => Some(self.attempts.connecting_since.after(timing.connect)),
            State::Up | State::Proving => Some(self.ping_deadline()),
            State::Quarantined | State::Disabled => None,
        };
        let settled = self
            .transition
            .since
            .map(|since| since.after(self.transition.longest));
        let judged = [
            self.quality
                .retransmitting
                .filter(|_| !self.quality.marginal)
                .map(|since| since.after(timing.retransmitting)),
            self.quality
                .slow
                .filter(|_| !self.quality.marginal)
                .map(|since| since.after(timing.slow)),
            self.quality
                .marginal
                .then(|| self.quality.last_reason.after(timing.pardon)),
        ];
        let polls = [
            settled,
            self.transition.since.and(self.transition.next_poll),
        ];
        let all = [of_state].into_iter().chain(judged).chain(polls);
        all.flatten().min()
    }

    fn ping_deadline(&self) -> Now {
        let timing = &self.timing;
        if let Some(sent) = self.liveness.ping {
            return sent.after(timing.answer);
        }
        let pause = match self.state {
            State::Proving => timing.quiet.min(self.hold() / PROOFS),
            State::Up
            | State::Down(_)
            | State::Connecting
            | State::Quarantined
            | State::Disabled => {
                if self.liveness.expected {
                    timing.quiet
                } else {
                    timing.idle_ping
                }
            }
        };
        self.liveness.received.after(pause)
    }

    /// A first failure is no flap yet.
    fn hold(&self) -> Duration {
        let again = self.trust.flaps.saturating_sub(1);
        let doubled = self.timing.hold.saturating_mul(1 << again.min(16));
        doubled.min(self.timing.hold_longest)
    }

    /// Something was seen.
    pub fn seen(&mut self, seen: Seen, now: Now) -> Vec<Do> {
        let mut out = Vec::new();
        match seen {
            Seen::LinkUp => self.link_up(now, &mut out),
            Seen::LinkDown => {
                self.link = false;
                self.fail(Cause::LinkDown, now, &mut out);
            }
            Seen::LoggedIn => self.logged_in(now, &mut out),
            Seen::OtherIdentity => self.quarantine(now, &mut out),
            Seen::Closed => self.fail(Cause::Closed, now, &mut out),
            Seen::Received => self.liveness.received = now,
            Seen::PingAnswered => self.ping_answered(now, &mut out),
            Seen::Sent => {
                if !std::mem::replace(&mut self.liveness.expected, true) {
                    self.liveness.received = self.liveness.received.max(now);
                }
            }
            Seen::NothingExpected => self.liveness.expected = false,
            Seen::Stall => self.quality.stalls.add(now),
            Seen::Error => self.quality.errors.add(now),
            Seen::DigestError => {
                self.quality.errors.add(now);
                self.liveness.digests += 1;
                if self.liveness.digests >= DIGEST_ERRORS {
                    self.fail(Cause::Digests, now, &mut out);
                }
            }
            Seen::Retransmitting(yes) => {
                self.quality.retransmitting = if yes {
                    self.quality.retransmitting.or(Some(now))
                } else {
                    None
                }
            }
            Seen::Slow(yes) => {
                self.quality.slow = if yes {
                    self.quality.slow.or(Some(now))
                } else {
                    None
                }
            }
            Seen::Access(access) => self.access_seen(access, now, &mut out),
            Seen::TransitionTime(seconds) => {
                let reported = Duration::from_secs(seconds.into());
                self.transition.longest = if seconds == 0 {
                    self.timing.transition
                } else {
                    reported
                };
            }
            Seen::UnitGone => self.fail(Cause::UnitGone, now, &mut out),
            Seen::DomainLost => self.fail(Cause::Domain, now, &mut out),
            Seen::Suspected => self.suspect(now, &mut out),
            Seen::OnlyHope => self.only_hope(now, &mut out),
            Seen::Disable => {
                self.fail(Cause::NotWanted, now, &mut out);
                self.state = State::Disabled;
                self.attempts.retry_at = None;
            }
            Seen::Enable => {
                if matches!(self.state, State::Disabled | State::Quarantined) {
                    self.state = State::Down(Cause::New);
                    self.schedule(now, Duration::ZERO);
                }
            }
            Seen::Want(wanted) => self.want(wanted, now, &mut out),
        }
        self.judge(now);
        self.settle(now, &mut out);
        out
    }

    /// Time has come.
    pub fn tick(&mut self, now: Now) -> Vec<Do> {
        let mut out = Vec::new();
        match self.state {
            State::Down(_) => {
                if self.attempts.retry_at.is_some_and(|at| at <= now) {
                    self.attempts.retry_at = None;
                    self.state = State::Connecting;
                    self.attempts.connecting_since = now;
                    out.push(Do::Connect);
                }
            }
            State::Connecting => {
                if now.since(self.attempts.connecting_since) >= self.timing.connect {
                    self.fail(Cause::NoAnswer, now, &mut out);
                }
            }
            State::Up | State::Proving => self.watch(now, &mut out),
            State::Quarantined | State::Disabled => {}
        }
        self.transition_tick(now, &mut out);
        self.judge(now);
        self.settle(now, &mut out);
        out
    }

    fn link_up(&mut self, now: Now, out: &mut Vec<Do>) {
        self.link = true;
        self.attempts.count = 0;
        match self.state {
            State::Down(_) if self.wanted != Wanted::Cold => self.schedule(now, Duration::ZERO),
            // An attempt that began on the dead link would only wait for its time.
            State::Connecting => {
                self.state = State::Down(Cause::Closed);
                out.push(Do::Close);
                self.schedule(now, Duration::ZERO);
            }
            State::Down(_) | State::Proving | State::Up | State::Quarantined | State::Disabled => {}
        }
    }

    fn logged_in(&mut self, now: Now, out: &mut Vec<Do>) {
        if self.state != State::Connecting {
            return;
        }
        self.liveness.received = now;
        self.liveness.expected = false;
        self.liveness.ping = None;
        self.liveness.digests = 0;
        self.trust.proofs = 0;
        self.trust.proving_since = now;
        self.state = State::Proving;
        if now.since(self.trust.last_flap) > self.timing.flap_memory {
            self.trust.flaps = 0;
        }
        if !self.trust.once {
            self.trust(out);
        }
    }

    fn trust(&mut self, out: &mut Vec<Do>) {
        self.state = State::Up;
        self.attempts.count = 0;
        self.trust.once = true;
        out.push(Do::Recovered);
    }

    /// A ping at once, unless something was received just now or a ping is under way.
    fn suspect(&mut self, now: Now, out: &mut Vec<Do>) {
        let logged_in = matches!(self.state, State::Up | State::Proving);
        let is_fresh = now.since(self.liveness.received) < self.timing.quiet / 4;
        if logged_in && self.liveness.ping.is_none() && !is_fresh {
            self.liveness.ping = Some(now);
            out.push(Do::Ping);
        }
    }

    /// Nothing else lives: it need not prove itself, and is tried often.
    fn only_hope(&mut self, now: Now, out: &mut Vec<Do>) {
        match self.state {
            State::Proving => self.trust(out),
            State::Down(_) => {
                let soon = now.after(HOPE);
                self.attempts.retry_at = self.attempts.retry_at.map(|at| at.min(soon));
            }
            State::Connecting | State::Up | State::Quarantined | State::Disabled => {}
        }
    }

    fn quarantine(&mut self, now: Now, out: &mut Vec<Do>) {
        if self.state != State::Disabled {
            self.fail(Cause::UnitGone, now, out);
            self.state = State::Quarantined;
            self.attempts.retry_at = None;
        }
    }

    /// Whatever comes by the path is a sign of life: [`Seen::Received`] goes with every ping
    /// answered.
    fn ping_answered(&mut self, now: Now, out: &mut Vec<Do>) {
        self.liveness.received = now;
        self.liveness.ping = None;
        if self.state != State::Proving {
            return;
        }
        self.trust.proofs += 1;
        if self.trust.proofs >= PROOFS && now.since(self.trust.proving_since) >= self.hold() {
            self.trust(out);
        }
    }

    fn watch(&mut self, now: Now, out: &mut Vec<Do>) {
        if self
            .liveness
            .ping
            .is_some_and(|sent| self.liveness.received > sent)
        {
            self.liveness.ping = None;
        }
        if self.ping_deadline() > now {
            return;
        }
        if self.liveness.ping.is_some() {
            self.fail(Cause::NoAnswer, now, out);
        } else {
            self.liveness.ping = Some(now);
            out.push(Do::Ping);
        }
    }

    fn fail(&mut self, cause: Cause, now: Now, out: &mut Vec<Do>) {
        let connected = matches!(self.state, State::Up | State::Proving | State::Connecting);
        let was_trusted = matches!(self.state, State::Up | State::Proving);
        if !connected {
            if let (State::Down(_), Cause::LinkDown) = (self.state, cause) {
                self.state = State::Down(cause);
                self.attempts.retry_at = None;
            }
            return;
        }
        out.extend(match cause {
            Cause::Closed => None,
            Cause::New | Cause::LinkDown | Cause::NoAnswer | Cause::Digests => Some(Do::Close),
            // The connection itself may well live, and carry other units.
            Cause::UnitGone | Cause::Domain | Cause::NotWanted => Some(Do::LogOut),
        });
        if was_trusted {
            out.push(Do::Failed(cause));
            self.trust.flaps = self.trust.flaps.saturating_add(u32::from(
                cause != Cause::NotWanted && self.state == State::Up,
            ));
            self.trust.last_flap = now;
        }
        self.state = State::Down(cause);
        self.liveness.ping = None;
        self.liveness.expected = false;
        self.liveness.digests = 0;
        self.transition.since = None;
        if self.wanted != Wanted::Cold && self.link {
            let wait = self.back_off();
            self.schedule(now, wait);
        } else {
            self.attempts.retry_at = None;
        }
    }

    /// The pause before the next attempt, more or less by a quarter.
    fn back_off(&mut self) -> Duration {
        let doubled = self
            .timing
            .back_off
            .saturating_mul(1 << self.attempts.count.min(16));
        self.attempts.count = self.attempts.count.saturating_add(1);
        // Xorshift: paths that fail together must not come back together.
        self.attempts.random ^= self.attempts.random << 13;
        self.attempts.random ^= self.attempts.random >> 17;
        self.attempts.random ^= self.attempts.random << 5;
        let part = f64::from(self.attempts.random & 0xff) / 255.0;
        doubled
            .min(self.timing.back_off_longest)
            .mul_f64(0.75 + part / 2.0)
    }

    fn schedule(&mut self, now: Now, wait: Duration) {
        self.attempts.retry_at =
            (self.link && self.wanted != Wanted::Cold).then(|| now.after(wait));
    }

    fn want(&mut self, wanted: Wanted, now: Now, out: &mut Vec<Do>) {
        let before = std::mem::replace(&mut self.wanted, wanted);
        match (self.state, wanted) {
            (State::Down(_), Wanted::Active | Wanted::Hot) if before == Wanted::Cold => {
                self.schedule(now, Duration::ZERO);
            }
            (State::Down(_), Wanted::Cold) => self.attempts.retry_at = None,
            (State::Up | State::Proving | State::Connecting, Wanted::Cold) => {
                out.push(Do::LogOut);
                self.state = State::Down(Cause::NotWanted);
                self.liveness.ping = None;
                self.attempts.retry_at = None;
                self.transition.since = None;
            }
            (
                State::Down(_) | State::Up | State::Proving | State::Connecting,
                Wanted::Active | Wanted::Hot,
            )
            | (State::Quarantined | State::Disabled, _) => {}
        }
    }

    fn access_seen(&mut self, access: AccessState, now: Now, out: &mut Vec<Do>) {
        self.access = access;
        if access != AccessState::Transitioning {
            self.transition.since = None;
            self.transition.over = false;
            return;
        }
        if self.transition.since.is_none() && !self.transition.over {
            self.transition.since = Some(now);
            self.transition.polls = 0;
            self.transition.next_poll = Some(now.after(Duration::from_millis(500)));
            out.push(Do::UsageChanged);
            self.usage = self.usage();
        }
    }

    /// Asks how the transition goes; one that takes too long is a standby.
    fn transition_tick(&mut self, now: Now, out: &mut Vec<Do>) {
        let Some(since) = self.transition.since else {
            return;
        };
        if now.since(since) >= self.transition.longest {
            self.transition.since = None;
            self.transition.over = true;
            self.access = AccessState::Standby;
            return;
        }
        if self.transition.next_poll.is_some_and(|at| at <= now) {
            self.transition.polls = self.transition.polls.saturating_add(1);
            let pause =
                Duration::from_millis(500).saturating_mul(1 << self.transition.polls.min(2));
            self.transition.next_poll = Some(now.after(pause));
            out.push(Do::ReadAccess);
        }
    }

    fn judge(&mut self, now: Now) {
        let timing = &self.timing;
        let long = |since: Option<Now>, limit: Duration| {
            since.is_some_and(|since| now.since(since) >= limit)
        };
        let bad = self.quality.stalls.within(timing.window, now) >= timing.stalls
            || self.quality.errors.within(timing.window, now) >= timing.errors
            || long(self.quality.retransmitting, timing.retransmitting)
            || long(self.quality.slow, timing.slow);
        if bad {
            self.quality.marginal = true;
            self.quality.last_reason = now;
        } else if self.quality.marginal && now.since(self.quality.last_reason) >= timing.pardon {
            self.quality.marginal = false;
        }
    }

    fn settle(&mut self, _now: Now, out: &mut Vec<Do>) {
        let usage = self.usage();
        if usage != self.usage {
            self.usage = usage;
            if !out.contains(&Do::UsageChanged) {
                out.push(Do::UsageChanged);
            }
        }
    }
}

#[cfg(test)]
mod test;
