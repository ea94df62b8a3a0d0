//! What is asked of a history, and which tier answers.

use crate::chunk::Chunk;
use crate::metric::Metric;
use crate::object::Object;
use crate::point::Point;
use crate::tier::{POINTS, TIERS, Tier};

/// The most points that an answer has.
pub(crate) const POINTS_MAX: u64 = 10_000;

/// Which time is asked for, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// From this second on.
    pub from: u64,
    /// Before this one.
    pub to: u64,
    /// About how many points.
    pub points: u64,
}

/// The figures of one metric of one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Whose figures they are.
    pub object: Object,
    /// Which figure of the object.
    pub metric: Metric,
    /// One after the other, each [`Lines::step`] seconds; gaps included.
    pub points: Vec<Point>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lines {
    /// The second that the first point begins at.
    pub from: u64,
    /// Seconds of each point.
    pub step: u64,
    /// Seconds of a point of the tier that answers: 1, 10 or 300.
    pub resolution: u64,
    /// In the order in which they were asked for.
    pub lines: Vec<Line>,
}

/// How a question is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) tier: Tier,
    pub(crate) from: u64,
    pub(crate) step: u64,
    pub(crate) count: usize,
}

impl Plan {
    /// The tier is the coarsest that is fine enough, of those that reach back far enough. `oldest`
    /// has the first second that each tier has; `None` for nothing. `every`: no tier is finer, as
    /// it has nothing of what is asked for.
    pub(crate) fn of(
        asked: Asked,
        now: u64,
        oldest: [Option<u64>; TIERS.len()],
        every: u64,
    ) -> Self {
        let to = asked.to.max(asked.from + 1);
        let wanted = (to - asked.from).div_ceil(asked.points.clamp(1, POINTS_MAX));
        let first = oldest.into_iter().flatten().min().unwrap_or(0);
        // Where the oldest rows of a tier begin depends on how large chunks are.
        let enough = asked.from.max(first + TIERS[TIERS.len() - 1].span());
        let reaches = |tier: &&Tier| {
            let has = oldest[usize::from(tier.number)];
            let reaches = asked.from + tier.kept >= now && has.is_none_or(|has| has <= enough);
            reaches && tier.step >= every
        };
        let able: Vec<&Tier> = TIERS.iter().filter(reaches).collect();
        let fine_enough = able.iter().rev().find(|tier| tier.step <= wanted);
        let tier = **fine_enough
            .or(able.first())
            .unwrap_or(&&TIERS[TIERS.len() - 1]);
        let step = wanted.div_ceil(tier.step) * tier.step;
        let from = asked.from - asked.from % step;
        Self {
            tier,
            from,
            step,
            count: usize::try_from((to - from).div_ceil(step)).unwrap_or(0),
        }
    }

    fn to(&self) -> u64 {
        self.from + self.step * self.count as u64
    }

    /// The chunks that the answer is made of.
    pub(crate) fn chunks(&self) -> std::ops::RangeInclusive<u64> {
        self.tier.chunk(self.from)..=self.tier.chunk(self.to().saturating_sub(1))
    }

    /// Adds the points of a chunk to those of the answer.
    pub(crate) fn add(&self, chunk: &Chunk, metric: Metric, answer: &mut [Point]) {
        let Some(points) = chunk.points(metric) else {
            return;
        };
        let start = chunk.number * self.tier.span();
        for (point, place) in points.iter().zip(0..POINTS as u64) {
            let second = start + place * self.tier.step;
            let Some(ahead) = second.checked_sub(self.from) else {
                continue;
            };
            let at = usize::try_from(ahead / self.step).unwrap_or(usize::MAX);
            if let Some(sum) = answer.get_mut(at) {
                sum.add(&point.point(metric));
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn plan(ago: u64, length: u64, points: u64, oldest: [Option<u64>; 3]) -> (u64, u64) {
        let from = NOW - ago;
        let asked = Asked {
            from,
            to: from + length,
            points,
        };
        let plan = Plan::of(asked, NOW, oldest, 1);
        assert!(plan.from <= from && plan.from + plan.step > from);
        assert!(plan.to() >= from + length);
        assert!(plan.count as u64 <= points.max(1) + 1);
        (plan.tier.step, plan.step)
    }

    #[test]
    fn the_tier_is_as_coarse_as_the_points_allow_and_as_fine_as_there_is() {
        let year_ago = NOW - 365 * 86_400;
        let full = [Some(NOW - 3_600), Some(NOW - 172_800), Some(year_ago)];
        assert_eq!(plan(60, 60, 60, full), (1, 1));
        assert_eq!(plan(3_600, 3_600, 600, full), (1, 6));
        assert_eq!(plan(3_600, 3_600, 300, full), (10, 20));
        assert_eq!(plan(7_200, 60, 60, full), (10, 10));
        assert_eq!(plan(86_400, 86_400, 500, full), (10, 180));
        assert_eq!(plan(86_400, 86_400, 100, full), (300, 900));
        assert_eq!(plan(300_000, 60, 60, full), (300, 300));
        assert_eq!(plan(365 * 86_400, 365 * 86_400, 1_000, full).0, 300);
    }

    #[test]
    fn a_tier_that_was_cut_short_is_not_asked_for_what_it_lost() {
        let cut = [None, Some(NOW - 3_000), Some(NOW - 30 * 86_400)];
        assert_eq!(plan(86_400, 86_400, 500, cut), (300, 300));
        assert_eq!(
            plan(2_000, 1_000, 500, [Some(NOW - 60), cut[1], cut[2]]),
            (10, 10)
        );
    }

    #[test]
    fn what_is_read_every_ten_seconds_is_not_asked_of_seconds() {
        let asked = Asked {
            from: NOW - 60,
            to: NOW,
            points: 60,
        };
        let plan = Plan::of(asked, NOW, [None; 3], 10);
        assert_eq!((plan.tier.step, plan.step), (10, 10));
    }

    #[test]
    fn a_young_history_is_answered_as_finely_as_an_old_one() {
        let began = Some(NOW - 600);
        let chunk = Some(NOW - NOW % 18_000);
        assert_eq!(plan(3_600, 3_600, 600, [began, began, chunk]), (1, 6));
        assert_eq!(plan(60, 60, 60, [None; 3]), (1, 1));
    }
}
