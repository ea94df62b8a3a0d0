//! How each figure changes of which samples are kept, as figures.

use crate::memory::Sample;
use crate::trend::{per_week, span};
use manifest::disks::{DiskFacts, DiskTrend};

type Figure = fn(&Sample) -> Option<u64>;

/// The members of the facts, and what is kept of them.
const KEPT: [(&str, Figure); 9] = [
    ("wear_percent", |it| it.wear),
    ("spare_percent", |it| it.spare),
    ("reallocated_sectors", |it| it.reallocated),
    ("pending_sectors", |it| it.pending),
    ("media_errors", |it| it.uncorrected),
    ("uncorrected_errors", |it| it.uncorrected),
    ("grown_defects", |it| it.grown),
    ("crc_errors", |it| it.crc),
    ("temperature_celsius", |it| it.temperature),
];

/// Samples have one place for errors that were not corrected: NVMe disks call them otherwise.
fn is_reported(of: &str, facts: &DiskFacts) -> bool {
    match of {
        "media_errors" => facts.media_errors.is_some(),
        "uncorrected_errors" => facts.media_errors.is_none(),
        _ => true,
    }
}

/// Of all figures that the disk reports.
pub(crate) fn trends(facts: &DiskFacts, samples: &[Sample]) -> Vec<DiskTrend> {
    let reported = KEPT.iter().filter(|(of, _)| is_reported(of, facts));
    let trend = |(of, figure): &(&str, Figure)| {
        let points = samples.iter().filter_map(|it| Some((it.at, figure(it)?)));
        let points: Vec<(u64, u64)> = points.collect();
        let (samples, days) = span(&points);
        (samples > 0).then(|| DiskTrend {
            of: (*of).to_owned(),
            per_week_thousandths: per_week(&points),
            samples,
            days,
        })
    };
    reported.filter_map(trend).collect()
}

#[cfg(test)]
mod test {
    use super::*;

    const WEEK: u64 = 7 * 86_400;

    #[test]
    fn each_figure_has_its_change_in_a_week_and_those_that_are_not_reported_have_none() {
        let sample = |week: u64| Sample {
            at: 1_700_000_000 + week * WEEK,
            wear: Some(10 + 2 * week),
            uncorrected: Some(3),
            // Known for two weeks only.
            temperature: (week >= 3).then_some(40),
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..5).map(sample).collect();
        let nvme = DiskFacts {
            media_errors: Some(3),
            ..DiskFacts::default()
        };
        let said = |facts: &DiskFacts| {
            let all = trends(facts, &samples).into_iter();
            all.map(|it| (it.of, it.per_week_thousandths, it.samples, it.days))
                .collect::<Vec<_>>()
        };
        let of = |errors: &str| {
            vec![
                ("wear_percent".to_owned(), Some(2000), 5, 28),
                (errors.to_owned(), Some(0), 5, 28),
                ("temperature_celsius".to_owned(), None, 2, 7),
            ]
        };
        assert_eq!(said(&nvme), of("media_errors"));
        assert_eq!(said(&DiskFacts::default()), of("uncorrected_errors"));
        assert_eq!(trends(&nvme, &[]), []);
    }
}
