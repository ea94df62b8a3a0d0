//! What the adaptive policy measures and how it weighs it.
//!
//! Per path: seconds per byte of large commands, base latency and interval of small ones, and a
//! penalty for stalls. Per port: how long what is in flight through it will keep it busy, over all
//! paths that share it.
//!
//! ```text
//! small:  base latency / 4 + in flight x interval
//! large:  the busier of its two ports + bytes x seconds per byte + base latency
//! both:   x (1 + penalty) / share, + how long the path has been silent if that is long,
//!         and behind all others where another path holds the receiving port
//! ```
//!
//! The last line is what keeps a mesh from collapsing: two senders that fill one receiving port
//! overflow the switch's buffer ([`super::holds`] says who holds a port).

use super::holds::{Holds, Load, NEXT};
use super::selector::Slot;
use super::{Request, Settings, Use};
use units::Now;

/// From so many bytes on the line matters more than the latency.
const LARGE: u64 = 32 << 10;
/// A path that was quiet for long is tried with no more than this.
const PROBE: u64 = 64 << 10;
/// Latency of a path that nobody has measured.
const FIRST_LATENCY: f64 = 0.000_1;
/// A small command's bytes, for its interval before anything is measured.
const FIRST_BYTES: f64 = 4096.0;
/// Speeds this close to the line's are the line's: the rest is noise of the measurement, and equals
/// have to look equal.
const AS_LINE: f64 = 1.25;
/// How much of the base latency counts against the queue. It passes for all commands in flight at
/// once, a place in the queue delays everybody behind: with all of it a slower path would idle
/// while others queue.
const BASE_SHARE: f64 = 0.25;
/// Half-life of a stall's penalty.
const PENALTY_HALF_LIFE: f64 = 0.250;
const STALL: f64 = 0.100;
const STALL_FACTOR: f64 = 8.0;
/// A path with something in flight that has been silent for so long may be broken, or waits for a
/// retransmission timer that others would only disturb: Linux' and Windows' shortest are 200 and
/// 300 ms.
const SILENT: f64 = 0.300;

fn seconds(later: Now, earlier: Now) -> f64 {
    later.since(earlier).as_secs_f64()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "estimates of time need no 53 bits"
)]
fn float(value: u64) -> f64 {
    value as f64
}

/// What is known of a path by measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// Seconds per byte of large commands.
    per_byte: f64,
    /// The same by the line's speed.
    by_line: f64,
    /// Latency of a small command that finds the path idle.
    latency: f64,
    /// Between the ends of small commands that are in flight together: what each one ahead adds.
    interval: f64,
    penalty: f64,
    penalty_at: Now,
    last_done: Now,
    /// Loosened since it was last measured: not for large commands.
    loosened: Option<Now>,
    strict_per_byte: f64,
}

impl Estimate {
    pub(crate) fn new(speed: u64) -> Self {
        let by_line = 1.0 / float(speed.max(1));
        Self {
            per_byte: by_line,
            by_line,
            latency: FIRST_LATENCY,
            interval: FIRST_BYTES * by_line,
            penalty: 0.0,
            penalty_at: Now::ZERO,
            last_done: Now::ZERO,
            loosened: None,
            strict_per_byte: by_line,
        }
    }

    /// A command ended that was booked at `begun` as the `depth`th in flight.
    pub(crate) fn learn(&mut self, bytes: u64, (begun, now): (Now, Now), depth: u32) {
        // What was in flight together was served one after the other.
        let before = std::mem::replace(&mut self.last_done, now);
        let served = seconds(now, begun.max(before));
        let took = seconds(now, begun);
        let expected = if bytes >= LARGE {
            self.latency + float(bytes) * self.strict()
        } else {
            self.latency + self.interval
        };
        if took > STALL && took > STALL_FACTOR * expected * f64::from(depth.max(1)) {
            self.penalty = self.penalty_now(now) + 1.0;
            self.penalty_at = now;
            return;
        }
        self.loosened = None;
        if bytes >= LARGE {
            let old = self.strict_per_byte;
            let sample = (served / float(bytes)).clamp(old / 4.0, old * 4.0);
            self.strict_per_byte = old + gain(served, 0.020) * (sample - old);
        } else {
            let near = |sample: f64, old: f64| {
                gain(served, 0.050) * (sample.clamp(old / 4.0, old * 4.0) - old)
            };
            if begun < before {
                self.interval += near(served, self.interval);
            }
            let ahead = f64::from(depth.saturating_sub(1)) * self.interval;
            self.latency += near(took - ahead, self.latency);
        }
        self.per_byte = self.strict();
    }

    /// Seconds since the last command ended here, or since `begun` if that is later.
    pub(super) fn quiet(&self, begun: Now, now: Now) -> f64 {
        seconds(now, self.last_done.max(begun))
    }

    /// Seconds per byte as measured, or the line's if that is about the same.
    pub(super) fn strict(&self) -> f64 {
        let ratio = self.strict_per_byte / self.by_line;
        if (1.0 / AS_LINE..AS_LINE).contains(&ratio) {
            self.by_line
        } else {
            self.strict_per_byte
        }
    }

    fn penalty_now(&self, now: Now) -> f64 {
        if self.penalty == 0.0 {
            return 0.0;
        }
        let halvings = seconds(now, self.penalty_at) / PENALTY_HALF_LIFE;
        let left = self.penalty * (-halvings).exp2();
        if left < 0.01 { 0.0 } else { left }
    }

    /// A path that looks slow and is therefore never used would look slow for ever: once a second
    /// its estimate moves half-way (by ratio) to the line's speed.
    fn loosen(&mut self, now: Now) {
        let quiet = seconds(now, self.last_done);
        let expected = self.latency + float(PROBE) * self.strict();
        let since = self.loosened.map_or(f64::INFINITY, |at| seconds(now, at));
        if quiet > (STALL_FACTOR * expected).max(0.250) && since >= 1.0 {
            self.per_byte = (self.per_byte * self.by_line).sqrt();
            self.latency = (self.latency * FIRST_LATENCY).sqrt().min(self.latency);
            self.interval = (self.interval * FIRST_BYTES * self.by_line)
                .sqrt()
                .min(self.interval);
            self.loosened = Some(now);
        }
    }
}

/// 1 - e^(-span / constant), not below 0.02 and not above 0.3: most spans are far outside of that.
fn gain(span: f64, constant: f64) -> f64 {
    if span < 0.02 * constant {
        return 0.02;
    }
    (1.0 - (-span / constant).exp()).clamp(0.02, 0.3)
}

/// The load of all ports, computed afresh for each decision; who holds a port stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    /// How long what is in flight will keep each busy.
    host_busy: Vec<f64>,
    target_busy: Vec<f64>,
    holds: Holds,
    /// Which kind of paths is chosen from.
    usage: Use,
    penalty_free: bool,
    now: Now,
}

impl Ports {
    /// Costs within this factor of the least are equal: the path that was used longest ago goes, so
    /// that estimates stay fresh.
    pub(crate) const EQUAL: f64 = 1.05;

    pub(crate) fn make_room(&mut self, settings: &Settings) {
        let grow = |ports: &mut Vec<f64>, number: u16| {
            if ports.len() <= usize::from(number) {
                ports.resize(usize::from(number) + 1, 0.0);
            }
        };
        grow(&mut self.host_busy, settings.host_port);
        grow(&mut self.target_busy, settings.target_port);
        self.holds.make_room(settings);
    }

    pub(crate) fn load(&mut self, slots: &mut [Slot], usage: Use, request: &Request, now: Now) {
        self.host_busy.fill(0.0);
        self.target_busy.fill(0.0);
        self.now = now;
        self.usage = usage;
        self.penalty_free = true;
        for slot in slots.iter_mut() {
            self.penalty_free &= slot.estimate.penalty == 0.0;
            slot.silent = 0.0;
            if slot.in_flight == 0 {
                slot.estimate.loosen(now);
                continue;
            }
            let quiet = slot.estimate.quiet(slot.begun, now);
            if quiet > SILENT {
                slot.silent = quiet;
            }
            let settings = &slot.settings;
            let busy = float(slot.bytes) * slot.estimate.strict();
            // A fast port is busy for only a part of the time in which a slow path moves the bytes.
            self.host_busy[usize::from(settings.host_port)] +=
                busy * share_of(settings.speed, settings.host_speed);
            self.target_busy[usize::from(settings.target_port)] +=
                busy * share_of(settings.speed, settings.target_speed);
        }
        let load = |slot: &Slot| Load::of(slot, request.direction, usage);
        self.holds
            .settle(&slots.iter().map(load), request.direction, now);
    }

    pub(crate) fn cost(&self, path: usize, slot: &Slot, request: &Request) -> f64 {
        let it = &slot.estimate;
        let settings = &slot.settings;
        let cost = if request.bytes < LARGE {
            it.latency * BASE_SHARE
                + f64::from(slot.in_flight) * it.interval
                + Self::bulk_ahead(slot)
        } else {
            let host = self.host_busy[usize::from(settings.host_port)];
            let target = self.target_busy[usize::from(settings.target_port)];
            let own = float(slot.bytes) * it.strict();
            let per_byte = if request.bytes <= PROBE {
                it.per_byte
            } else {
                it.strict_per_byte
            };
            host.max(target).max(own) + float(request.bytes) * per_byte + it.latency
        };
        let penalty = if self.penalty_free {
            0.0
        } else {
            it.penalty_now(self.now)
        };
        let weighted = cost * (1.0 + penalty) / f64::from(settings.share.max(1)) + slot.silent;
        weighted
            + self.holds.behind(
                path,
                &Load::of(slot, request.direction, self.usage),
                request.bytes,
            )
    }

    /// What large commands in flight on this path add to the wait of a small one.
    fn bulk_ahead(slot: &Slot) -> f64 {
        let small = u64::from(slot.in_flight) * LARGE;
        float(slot.bytes.saturating_sub(small)) * slot.estimate.strict()
    }

    /// What every path costs more where the cheapest one costs `least`: all come behind others
    /// then. Costs by themselves are far below.
    pub(crate) fn behind_all(least: f64) -> f64 {
        if least.is_finite() {
            (least / NEXT).floor() * NEXT
        } else {
            0.0
        }
    }

    /// Hysteresis: a stream leaves its path only for something clearly better, which half of the
    /// command's own time is.
    pub(crate) fn worth_leaving(slot: &Slot, request: &Request, (kept, best): (f64, f64)) -> bool {
        let own = float(request.bytes) * slot.estimate.strict();
        kept - best >= (own / 2.0).max(0.000_1)
    }
}

fn share_of(speed: u64, port: u64) -> f64 {
    (float(speed) / float(port.max(1))).min(1.0)
}
