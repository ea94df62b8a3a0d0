//! How fast this host may send on each path while several of its ports fill one port of the target.
//!
//! Two senders that each send as fast as their own line overflow the buffer of the switch in front of the port that both send to, and
//! wait for retransmission timers. So each is told its part, which the system keeps to (SO_MAX_PACING_RATE, socket(7)):
//!
//! ```text
//! part = the target port's speed x the path's share / the shares of all paths that send to the port
//! ```
//!
//! That is while several host ports have written more to it than a shallow buffer holds, and together could send more than it takes.
//! Afterwards nobody is held back, but not at once: one who lets go and holds again all the time holds nobody.
//!
//! **Limits.** What other hosts send, and other volumes of this one, is not known here. Reads are sent by the target.

use super::Settings;
use std::time::Duration;
use units::Now;

/// What a receiving port is trusted to take from several senders at once: half of a shallow switch buffer.
pub(crate) const CROSSING_BYTES: u64 = 32 << 10;

/// How long senders keep to their parts after the last time that several filled the port.
pub(crate) const HOLD: Duration = Duration::from_millis(20);

/// What a path has been told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pace {
    /// Bytes per second; `None`: as fast as it can.
    told: Option<u64>,
    until: Now,
}

/// A path as pacing sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) settings: &'a Settings,
    /// Bytes that it has on their way to the target.
    pub(crate) writing: u64,
}

/// The part of `settings` at its target's port, if several host ports overfill that now.
pub(crate) fn part<'a>(settings: &Settings, all: impl Iterator<Item = Sender<'a>>) -> Option<u64> {
    let at_port =
        all.filter(|it| it.writing > 0 && it.settings.target_port == settings.target_port);
    let (mut bytes, mut speed, mut shares, mut several) = (0_u64, 0_u64, 0_u64, false);
    let mut first = None;
    for it in at_port {
        bytes = bytes.saturating_add(it.writing);
        speed = speed.saturating_add(it.settings.speed);
        shares += u64::from(it.settings.share.max(1));
        several |= *first.get_or_insert(it.settings.host_port) != it.settings.host_port;
    }
    let overfills = several && bytes > CROSSING_BYTES && speed > settings.target_speed;
    let own = u128::from(settings.target_speed) * u128::from(settings.share.max(1));
    let part = own.checked_div(u128::from(shares))?;
    overfills.then(|| u64::try_from(part).unwrap_or(u64::MAX).max(1))
}

impl Pace {
    /// The path's part now; what it has to be told, if that is anything new.
    pub(crate) fn keep(&mut self, part: Option<u64>, now: Now) -> Option<Option<u64>> {
        if part.is_some() {
            self.until = now.after(HOLD);
        } else if self.told.is_none() || now < self.until {
            return None;
        }
        (std::mem::replace(&mut self.told, part) != part).then_some(part)
    }

    /// It is held back.
    pub(crate) fn holds(&self) -> bool {
        self.told.is_some()
    }
}
