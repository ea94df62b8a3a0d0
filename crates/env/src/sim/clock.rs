//! The clock of a node: how its time follows from the world's.

/// A clock that goes at a rate of its own, and may stand still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NodeClock {
    /// At this moment of the world,
    world: u64,
    /// it showed this.
    shows: u64,
    /// How much faster than the world's it goes, in millionths.
    faster: i32,
    /// It shows the same until it goes on.
    stands: bool,
}

/// A clock that goes a thousand times as fast, or stands: neither is one.
const FASTER_MAX: i32 = 500_000;

impl NodeClock {
    /// One that shows the world's time.
    pub(super) const fn exact() -> Self {
        Self {
            world: 0,
            shows: 0,
            faster: 0,
            stands: false,
        }
    }

    /// What it shows at a moment of the world that is not before its last change.
    pub(super) fn at(&self, world: u64) -> u64 {
        if self.stands {
            return self.shows;
        }
        let passed = world.saturating_sub(self.world);
        // Whoever reads the time in nearly every simulation: no division of 128 bits.
        if self.faster == 0 {
            return self.shows.saturating_add(passed);
        }
        let passed = i128::from(passed);
        let shown = passed * i128::from(1_000_000 + self.faster) / 1_000_000;
        self.shows
            .saturating_add(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The first moment of the world at which it shows this, if nothing changes it before.
    pub(super) fn when(&self, shows: u64) -> u64 {
        let rest = shows.saturating_sub(self.shows);
        if self.faster == 0 {
            return self.world.saturating_add(rest);
        }
        let rest = i128::from(rest);
        let rate = i128::from(1_000_000 + self.faster);
        let passed = (rest * 1_000_000 + rate - 1) / rate;
        self.world
            .saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// From a moment on it goes at this rate.
    pub(super) fn goes(&mut self, world: u64, faster: i32) {
        assert!(faster.abs() <= FASTER_MAX, "{faster} millionths");
        (self.shows, self.world, self.faster) = (self.at(world), world, faster);
    }

    /// From a moment on it stands still, or goes on.
    pub(super) fn stands(&mut self, world: u64, stands: bool) {
        (self.shows, self.world) = (self.at(world), world);
        self.stands = stands;
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_clock_shows_what_its_rate_says_and_no_moment_is_early() {
        let mut clock = NodeClock::exact();
        assert_eq!((clock.at(77), clock.when(77)), (77, 77));
        clock.goes(1_000, 10_000);
        assert_eq!(clock.at(1_000), 1_000);
        assert_eq!(clock.at(101_000), 102_000);
        for shows in [1_000, 1_001, 5_555, 102_000, 102_001] {
            let when = clock.when(shows);
            assert!(clock.at(when) >= shows, "{shows}");
            assert!(when == 1_000 || clock.at(when - 1) < shows, "{shows}");
        }
        clock.goes(101_000, -250_000);
        assert_eq!(clock.at(101_400), 102_300);
    }

    #[test]
    fn one_that_stood_still_goes_on_where_it_was() {
        let mut clock = NodeClock::exact();
        clock.stands(500, true);
        assert_eq!((clock.at(500), clock.at(9_000)), (500, 500));
        clock.stands(9_000, false);
        assert_eq!((clock.at(9_100), clock.when(600)), (600, 9_100));
    }
}
