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

use super::estimate::{LARGE, PROBE, float};
use super::holds::{Holds, Load, NEXT};
use super::model::{Request, Settings, Use};
use super::slot::Slot;
use units::Now;

/// How much of the base latency counts against the queue. It passes for all commands in flight at
/// once, a place in the queue delays everybody behind: with all of it a slower path would idle
/// while others queue.
const BASE_SHARE: f64 = 0.25;
/// A path with something in flight that has been silent for so long may be broken, or waits for a
/// retransmission timer that others would only disturb: Linux' and Windows' shortest are 200 and
/// 300 ms.
const SILENT: f64 = 0.300;

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
