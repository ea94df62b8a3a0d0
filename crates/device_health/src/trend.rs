//! Where a figure is heading: least squares over the samples of weeks.
//!
//! **Contract.** Integers throughout, so that the same samples give the same words everywhere. No
//! line is drawn through fewer than [`SAMPLES_MIN`] samples or less than [`DAYS_MIN`] days, and
//! none that explains less than half of what the figure does.

/// Samples that a line needs.
pub(crate) const SAMPLES_MIN: usize = 4;

/// Days from the first sample to the last that a line needs.
pub(crate) const DAYS_MIN: u64 = 14;

const HOUR: u64 = 3_600;
pub(crate) const DAY: u64 = 24 * HOUR;
const HOURS_OF_WEEK: i128 = 168;

/// Larger figures count as this one, and older samples as so old: the squares of sums stay in 128
/// bits.
const FIGURE_MAX: u64 = 10_000_000;
const HOURS_MAX: u64 = 20_000;

/// A line through samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// Thousandths of the figure's unit in a week.
    pub(crate) per_week_thousandths: i64,
    /// The slope without rounding: thousandths an hour, as a fraction whose denominator is greater
    /// than 0.
    slope: (i128, i128),
    /// The last sample: seconds since 1970, and the figure.
    last: (u64, u64),
}

/// What samples say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// There are not enough of them.
    TooFew,
    /// The figure stays, or goes up and down.
    NoTrend,
    /// It goes one direction.
    Line(Line),
}

/// How many samples there are, and the days that they are from.
pub(crate) fn span(points: &[(u64, u64)]) -> (usize, u64) {
    let seconds = match (points.first(), points.last()) {
        (Some(first), Some(last)) => last.0.saturating_sub(first.0),
        (_, _) => 0,
    };
    (points.len(), seconds / DAY)
}

/// The slope of least squares, as a fraction, and how far the figures are spread.
struct Slope {
    numerator: i128,
    denominator: i128,
    spread: i128,
}

impl Slope {
    fn per_week(&self) -> i64 {
        let per_week = self.numerator * HOURS_OF_WEEK / self.denominator.max(1);
        i64::try_from(per_week).unwrap_or(i64::MAX)
    }
}

/// How much the figure changes in a week, in thousandths, whether a line explains it or not;
/// `None`: there are too few points.
pub(crate) fn per_week(points: &[(u64, u64)]) -> Option<i64> {
    slope(points).map(|slope| slope.per_week())
}

/// `None`: there are too few points.
fn slope(points: &[(u64, u64)]) -> Option<Slope> {
    let (samples, days) = span(points);
    let first = points.first()?;
    if samples < SAMPLES_MIN || days < DAYS_MIN {
        return None;
    }
    let count = i128::try_from(samples).unwrap_or(i128::MAX);
    let (mut x_sum, mut y_sum, mut xy_sum, mut xx_sum, mut yy_sum) = (0, 0, 0, 0, 0);
    for (at, figure) in points {
        let hours = at.saturating_sub(first.0) / HOUR;
        let x = i128::from(hours.min(HOURS_MAX));
        let y = i128::from(*figure.min(&FIGURE_MAX)) * 1000;
        x_sum += x;
        y_sum += y;
        xy_sum += x * y;
        xx_sum += x * x;
        yy_sum += y * y;
    }
    Some(Slope {
        numerator: count * xy_sum - x_sum * y_sum,
        denominator: count * xx_sum - x_sum * x_sum,
        spread: count * yy_sum - y_sum * y_sum,
    })
}

/// A line through points of time (in seconds, ascending) and figure.
pub(crate) fn fit(points: &[(u64, u64)]) -> Fit {
    let (Some(slope), Some(last)) = (slope(points), points.last()) else {
        return Fit::TooFew;
    };
    let Slope {
        numerator,
        denominator,
        spread,
    } = slope;
    // R squared is numerator^2 / (denominator * spread); half of it at least.
    let explains = spread > 0 && numerator * numerator * 2 >= denominator * spread;
    if denominator <= 0 || numerator == 0 || !explains {
        return Fit::NoTrend;
    }
    Fit::Line(Line {
        per_week_thousandths: slope.per_week(),
        slope: (numerator, denominator),
        last: *last,
    })
}

impl Line {
    /// When the figure comes to `limit`, in seconds since 1970, where it moves there.
    pub(crate) fn reaches(&self, limit: u64) -> Option<u64> {
        let (at, figure) = self.last;
        let away = (i128::from(limit) - i128::from(figure.min(FIGURE_MAX))) * 1000;
        let (numerator, denominator) = self.slope;
        if away == 0 {
            return Some(at);
        }
        if (away > 0) != (numerator > 0) {
            return None;
        }
        let hours = away * denominator / numerator;
        let seconds = u64::try_from(hours).ok()?.checked_mul(HOUR)?;
        at.checked_add(seconds)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn weekly(figures: &[u64]) -> Vec<(u64, u64)> {
        let start = 1_700_000_000;
        let at = |week: usize| start + week as u64 * 7 * DAY;
        (0..).map(at).zip(figures.iter().copied()).collect()
    }

    fn line(points: &[(u64, u64)]) -> Line {
        match fit(points) {
            Fit::Line(line) => line,
            other @ (Fit::TooFew | Fit::NoTrend) => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_percent_a_week_come_to_their_limit_when_arithmetic_says_so() {
        let points = weekly(&[20, 18, 16, 14, 12]);
        let found = line(&points);
        assert_eq!(found.per_week_thousandths, -2000);
        // From 12 to 10 at 2 a week: one week behind the last sample.
        assert_eq!(found.reaches(10), Some(points[4].0 + 7 * DAY));
        assert_eq!(found.reaches(12), Some(points[4].0));
        assert_eq!(found.reaches(13), None, "it falls");
    }

    #[test]
    fn a_line_is_what_the_normal_equations_say() {
        // Checked by hand: x = 0..4 weeks, y = 1, 3, 2, 5, 4; slope 0.8 a week, R squared 0.64.
        assert_eq!(line(&weekly(&[1, 3, 2, 5, 4])).per_week_thousandths, 800);
        assert_eq!(fit(&weekly(&[7, 7, 7, 7, 7])), Fit::NoTrend);
        assert_eq!(per_week(&weekly(&[7, 7, 7, 7, 7])), Some(0));
        assert_eq!(per_week(&weekly(&[7, 7, 7])), None);
        // Up and down: slope 0; then -0.4 with R squared 0.03, which is a figure and no line.
        assert_eq!(per_week(&weekly(&[5, 1, 5, 1, 5])), Some(0));
        assert_eq!(per_week(&weekly(&[9, 1, 5, 1, 7])), Some(-400));
        assert_eq!(fit(&weekly(&[9, 1, 5, 1, 7])), Fit::NoTrend);
        assert_eq!(fit(&weekly(&[5, 1, 5, 1, 5])), Fit::NoTrend);
    }

    #[test]
    fn too_few_samples_or_days_draw_no_line() {
        assert_eq!(fit(&[]), Fit::TooFew);
        assert_eq!(fit(&weekly(&[20, 18, 16])), Fit::TooFew);
        let hourly: Vec<(u64, u64)> = (0..100).map(|hour| (hour * HOUR, 100 - hour)).collect();
        assert_eq!(fit(&hourly), Fit::TooFew);
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let points: Vec<(u64, u64)> = (0..200)
            .map(|at| (at * DAY * 300, if at % 2 == 0 { 0 } else { u64::MAX }))
            .collect();
        let _any = fit(&points);
        let rising: Vec<(u64, u64)> = (0..200).map(|at| (at * DAY * 300, at << 56)).collect();
        let _any = fit(&rising);
    }
}
