//! What is known of a path by measurement.

use units::Now;

/// From so many bytes on the line matters more than the latency.
pub(super) const LARGE: u64 = 32 << 10;
/// A path that was quiet for long is tried with no more than this.
pub(super) const PROBE: u64 = 64 << 10;
/// Latency of a path that nobody has measured.
const FIRST_LATENCY: f64 = 0.000_1;
/// A small command's bytes, for its interval before anything is measured.
const FIRST_BYTES: f64 = 4096.0;
/// Speeds this close to the line's are the line's: the rest is noise of the measurement, and equals
/// have to count as equal.
const AS_LINE: f64 = 1.25;
/// Half-life of a stall's penalty.
const PENALTY_HALF_LIFE: f64 = 0.250;
const STALL: f64 = 0.100;
const STALL_FACTOR: f64 = 8.0;

fn seconds(later: Now, earlier: Now) -> f64 {
    later.since(earlier).as_secs_f64()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "estimates of time need no 53 bits"
)]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}

/// What is known of a path by measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// Seconds per byte of large commands.
    pub(super) per_byte: f64,
    /// The same by the line's speed.
    by_line: f64,
    /// Latency of a small command that finds the path idle.
    pub(super) latency: f64,
    /// Between the ends of small commands that are in flight together: what each one ahead adds.
    pub(super) interval: f64,
    pub(super) penalty: f64,
    penalty_at: Now,
    last_done: Now,
    /// Loosened since it was last measured: not for large commands.
    loosened: Option<Now>,
    pub(super) strict_per_byte: f64,
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

    pub(super) fn penalty_now(&self, now: Now) -> f64 {
        if self.penalty == 0.0 {
            return 0.0;
        }
        let halvings = seconds(now, self.penalty_at) / PENALTY_HALF_LIFE;
        let left = self.penalty * (-halvings).exp2();
        if left < 0.01 { 0.0 } else { left }
    }

    /// A path that seems slow and is therefore never used would seem slow for ever: once a second
    /// its estimate moves half-way (by ratio) to the line's speed.
    pub(super) fn loosen(&mut self, now: Now) {
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
