//! What speaks against a disk: its figures against their limits, and where they are heading.
//! `docs/operate/disks.md` has these rules as a table.

use crate::memory::Sample;
use crate::trend::{DAY, DAYS_MIN, Fit, Line, SAMPLES_MIN, fit, span};
use manifest::disks::{DiskFacts, DiskFinding, DiskForecast, DiskIdentity, DiskVerdict};
use manifest::time::rfc3339;
use units::WallClock;
use units::text::counted;

/// Where too few spare blocks are left, when the disk does not say.
const SPARE_LEAST: u64 = 10;

/// How much of its endurance a disk may use before somebody orders another one, and when that is
/// the time.
const WEAR_WATCH: u64 = 80;
const WEAR_MOST: u64 = 100;

/// The temperature that is too high for a disk with platters, and for one without, when the disk
/// does not say.
const HOT_ROTATING: i64 = 60;
const HOT_SOLID: i64 = 75;

/// A limit that is nearer than this is a reason to order; one that is nearer than that, to watch.
const ORDER_DAYS: u64 = 90;
const WATCH_DAYS: u64 = 365;

/// A limit that is farther away is none.
const FORECAST_DAYS: u64 = 3650;

/// So many more damaged transfers in four weeks are more than chance.
const CRC_MORE: u64 = 5;
const CRC_SPAN: u64 = 28 * DAY;

/// The bits of the critical warning, as NVMe numbers them.
const WARNINGS: [(u64, DiskVerdict, &str, &str); 6] = [
    (
        1,
        DiskVerdict::Failing,
        "it has fewer spare blocks left than its maker allows",
        REPLACE_NOW,
    ),
    (
        2,
        DiskVerdict::Watch,
        "its temperature is outside of what its maker allows",
        COOL,
    ),
    (
        4,
        DiskVerdict::Failing,
        "media or internal errors have made it unreliable, it says",
        REPLACE_NOW,
    ),
    (
        8,
        DiskVerdict::Failing,
        "it takes no more writes: it has made itself read-only",
        REPLACE_NOW,
    ),
    (
        16,
        DiskVerdict::Failing,
        "the backup of its volatile memory has failed: a power cut loses writes that it acknowledged",
        REPLACE_NOW,
    ),
    (
        32,
        DiskVerdict::Watch,
        "its persistent memory region is unreliable",
        "nothing of Causeway uses it; update its firmware",
    ),
];

const REPLACE_NOW: &str = "replace it now, and have a copy of what lies on it";
const ORDER: &str = "order another one, and replace it when it is there";
const COOL: &str = "check fans, filters and the bays next to it";
const SCRUB: &str = "scrub what lies on it, and watch whether it becomes more";

/// What is known of a disk for a judgement.
pub(crate) struct Evidence<'a> {
    pub(crate) identity: &'a DiskIdentity,
    pub(crate) facts: &'a DiskFacts,
    /// Oldest first, the newest among them.
    pub(crate) samples: &'a [Sample],
}

/// What came of the rules, for one disk.
#[derive(Default)]
pub(crate) struct Judgement {
    /// The worst first.
    pub(crate) findings: Vec<DiskFinding>,
    pub(crate) forecasts: Vec<DiskForecast>,
    pub(crate) no_forecast: Option<String>,
}

impl Judgement {
    fn find(&mut self, verdict: DiskVerdict, cause: impl Into<String>, next_step: &str) {
        self.findings.push(DiskFinding {
            verdict,
            cause: cause.into(),
            next_step: next_step.to_owned(),
        });
    }

    /// The verdict of the whole, where something was read.
    pub(crate) fn verdict(&self) -> DiskVerdict {
        let worst = self.findings.iter().map(|it| it.verdict).max();
        worst.unwrap_or(DiskVerdict::Well)
    }
}

/// Judges a disk that has answered.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut out = Judgement::default();
    own_account(&mut out, evidence.facts);
    warnings(&mut out, evidence.facts);
    endurance(&mut out, evidence.facts);
    sectors(&mut out, evidence);
    self_test(&mut out, evidence.facts);
    temperature(&mut out, evidence);
    transfers(&mut out, evidence.samples);
    forecasts(&mut out, evidence);
    // Of equal ones the first rule that found something comes first.
    out.findings.sort_by_key(|it| std::cmp::Reverse(it.verdict));
    out
}

/// What the disk says of itself in one bit.
fn own_account(out: &mut Judgement, facts: &DiskFacts) {
    if !facts.failing_attributes.is_empty() {
        let names = facts.failing_attributes.join(", ");
        let cause = format!("below its maker's threshold: {names}");
        out.find(DiskVerdict::Failing, cause, REPLACE_NOW);
    } else if facts.passed == Some(false) && facts.critical_warning.unwrap_or(0) == 0 {
        let cause = "its own check says that it fails (SMART status)";
        out.find(DiskVerdict::Failing, cause, REPLACE_NOW);
    }
    if !facts.failed_before.is_empty() {
        let names = facts.failed_before.join(", ");
        let cause = format!("below its maker's threshold at some time: {names}");
        out.find(DiskVerdict::Watch, cause, SCRUB);
    }
}

fn warnings(out: &mut Judgement, facts: &DiskFacts) {
    let bits = facts.critical_warning.unwrap_or(0);
    for (bit, verdict, cause, next_step) in WARNINGS {
        if bits & bit != 0 {
            out.find(verdict, cause, next_step);
        }
    }
}

fn spare_least(facts: &DiskFacts) -> u64 {
    facts.spare_threshold_percent.unwrap_or(SPARE_LEAST)
}

fn endurance(out: &mut Judgement, facts: &DiskFacts) {
    if let Some(left) = facts.spare_percent
        && left <= spare_least(facts)
    {
        let least = spare_least(facts);
        let cause = format!("{left} % of its spare blocks are left, and its limit is {least} %");
        out.find(DiskVerdict::ReplaceSoon, cause, ORDER);
    }
    match facts.wear_percent {
        Some(used) if used >= WEAR_MOST => {
            let cause = format!("{used} % of the writes that it was made for are used");
            out.find(DiskVerdict::ReplaceSoon, cause, ORDER);
        }
        Some(used) if used >= WEAR_WATCH => {
            let cause = format!("{used} % of the writes that it was made for are used");
            out.find(DiskVerdict::Watch, cause, "plan for another one");
        }
        Some(_) | None => {}
    }
}

/// A figure that should be 0: from where on it is to be watched, from where on the disk is to be
/// replaced, and what is counted, with what stands behind the plural.
struct Counted {
    watch: u64,
    replace: u64,
    one: &'static str,
    rest: &'static str,
    next_step: &'static str,
}

fn count(out: &mut Judgement, figure: Option<u64>, of: &Counted) {
    let Some(figure) = figure else { return };
    let cause = format!("{}{}", counted(figure, of.one), of.rest);
    if figure >= of.replace {
        out.find(DiskVerdict::ReplaceSoon, cause, ORDER);
    } else if figure >= of.watch {
        out.find(DiskVerdict::Watch, cause, of.next_step);
    }
}

const fn errors(one: &'static str, rest: &'static str, next_step: &'static str) -> Counted {
    Counted {
        watch: 1,
        replace: 10,
        one,
        rest,
        next_step,
    }
}

const REALLOCATED: Counted = Counted {
    replace: 50,
    ..errors("reallocated sector", "", SCRUB)
};
const PENDING: Counted = errors("sector", " that it cannot read", REWRITE);
const OFFLINE: Counted = errors("sector", " that its own scan cannot read", REWRITE);
const UNCORRECTED: Counted = errors("error", " that it could not correct", SCRUB);
const MEDIA: Counted = errors("media or data integrity error", "", SCRUB);
const GROWN: Counted = Counted {
    watch: 10,
    replace: 100,
    ..errors("defect", " that came after its making", SCRUB)
};
const REWRITE: &str =
    "what cannot be read is lost until it is written again: scrub what lies on it";

/// Old disks do not say how fast they turn; those without platters say so.
fn is_rotating(evidence: &Evidence<'_>) -> bool {
    evidence.facts.protocol != "NVMe" && evidence.identity.rotation_rpm != Some(0)
}

fn sectors(out: &mut Judgement, evidence: &Evidence<'_>) {
    let facts = evidence.facts;
    // Flash wears by design, and its spare blocks say how far; platters do not.
    if is_rotating(evidence) {
        count(out, facts.reallocated_sectors, &REALLOCATED);
    }
    count(out, facts.pending_sectors, &PENDING);
    count(out, facts.offline_uncorrectable_sectors, &OFFLINE);
    count(out, facts.uncorrected_errors, &UNCORRECTED);
    count(out, facts.media_errors, &MEDIA);
    count(out, facts.grown_defects, &GROWN);
}

fn self_test(out: &mut Judgement, facts: &DiskFacts) {
    if facts.self_test_passed == Some(false) {
        let words = facts.self_test.as_deref().unwrap_or("failed");
        let cause = format!("its last self-test failed ({words})");
        out.find(DiskVerdict::ReplaceSoon, cause, ORDER);
    }
}

fn temperature(out: &mut Judgement, evidence: &Evidence<'_>) {
    let facts = evidence.facts;
    let Some(now) = facts.temperature_celsius else {
        return;
    };
    if let Some(limit) = facts.temperature_critical_celsius
        && now >= limit
    {
        let cause = format!("{now} °C, and it is damaged from {limit} °C on");
        out.find(DiskVerdict::ReplaceSoon, cause, COOL);
        return;
    }
    let default = if is_rotating(evidence) {
        HOT_ROTATING
    } else {
        HOT_SOLID
    };
    let limit = facts.temperature_warning_celsius.unwrap_or(default);
    if now >= limit {
        let cause = format!("{now} °C, and {limit} °C are too warm for it");
        out.find(DiskVerdict::Watch, cause, COOL);
    }
}

/// Damaged transfers count for ever, so that only more of them mean something.
fn transfers(out: &mut Judgement, samples: &[Sample]) {
    let Some(last) = samples.last() else { return };
    let recent = samples.iter().filter(|it| it.at + CRC_SPAN >= last.at);
    let first = recent.filter_map(|it| it.crc).next();
    let more = first
        .zip(last.crc)
        .map_or(0, |(first, last)| last.saturating_sub(first));
    if more >= CRC_MORE {
        let cause = format!("{more} more transfers came over damaged in four weeks");
        let next = "not the disk: put it in another bay, or change cable or backplane";
        out.find(DiskVerdict::Watch, cause, next);
    }
}

/// A figure that may be heading for something.
struct Heading {
    /// The member of the facts.
    of: &'static str,
    /// What it is called in a sentence.
    called: &'static str,
    /// What stands behind the number.
    unit: &'static str,
    figure: fn(&Sample) -> Option<u64>,
    /// It falls to its limit, where it has one; else it grows.
    limit: Option<fn(&DiskFacts) -> u64>,
    /// Only a fall counts, or only a rise.
    falls: bool,
}

const HEADINGS: [Heading; 6] = [
    Heading {
        of: "spare_percent",
        called: "spare blocks",
        unit: " %",
        figure: |it| it.spare,
        limit: Some(spare_least),
        falls: true,
    },
    Heading {
        of: "wear_percent",
        called: "wear",
        unit: " %",
        figure: |it| it.wear,
        limit: Some(|_| WEAR_MOST),
        falls: false,
    },
    Heading {
        of: "reallocated_sectors",
        called: "reallocated sectors",
        unit: "",
        figure: |it| it.reallocated,
        limit: None,
        falls: false,
    },
    Heading {
        of: "pending_sectors",
        called: "sectors that it cannot read",
        unit: "",
        figure: |it| it.pending,
        limit: None,
        falls: false,
    },
    Heading {
        of: "uncorrected_errors",
        called: "uncorrected errors",
        unit: "",
        figure: |it| it.uncorrected,
        limit: None,
        falls: false,
    },
    Heading {
        of: "grown_defects",
        called: "grown defects",
        unit: "",
        figure: |it| it.grown,
        limit: None,
        falls: false,
    },
];

fn forecasts(out: &mut Judgement, evidence: &Evidence<'_>) {
    let mut has_line = false;
    for heading in &HEADINGS {
        let figure = |it: &Sample| Some((it.at, (heading.figure)(it)?));
        let points: Vec<(u64, u64)> = evidence.samples.iter().filter_map(figure).collect();
        if let Fit::Line(line) = fit(&points)
            && (line.per_week_thousandths < 0) == heading.falls
            && line.per_week_thousandths != 0
        {
            has_line = true;
            forecast(out, evidence.facts, heading, (&points, line));
        }
    }
    let (samples, days) = span_of(evidence.samples);
    if !has_line {
        out.no_forecast = Some(if samples < SAMPLES_MIN || days < DAYS_MIN {
            format!(
                "no forecast yet: {} over {}, and it takes {SAMPLES_MIN} over {DAYS_MIN} days",
                counted(samples as u64, "sample"),
                counted(days, "day")
            )
        } else {
            format!(
                "no figure changes steadily: {} over {days} days",
                counted(samples as u64, "sample")
            )
        });
    }
}

fn span_of(samples: &[Sample]) -> (usize, u64) {
    let points: Vec<(u64, u64)> = samples.iter().map(|it| (it.at, 0)).collect();
    span(&points)
}

fn forecast(
    out: &mut Judgement,
    facts: &DiskFacts,
    heading: &Heading,
    (points, line): (&[(u64, u64)], Line),
) {
    let Some((now, figure)) = points.last().copied() else {
        return;
    };
    let limit = heading.limit.map(|limit| limit(facts));
    let reached = limit.and_then(|limit| line.reaches(limit));
    let reached = reached.filter(|at| *at <= now + FORECAST_DAYS * DAY);
    let (called, unit) = (heading.called, heading.unit);
    let turn = if heading.falls { "falling" } else { "growing" };
    let slope = amount(line.per_week_thousandths.unsigned_abs());
    let moving = format!("{called} at {figure}{unit} and {turn} {slope}{unit} a week");
    let before = reached.map(day);
    let text = match &before {
        Some(day) => format!("{moving}: replace before {day}"),
        None if limit.is_some() => format!("{moving}: its limit is years away"),
        None => format!("{moving}: replace it while it still answers"),
    };
    let verdict = match (limit, reached) {
        (Some(_), Some(at)) if at <= now + ORDER_DAYS * DAY => Some(DiskVerdict::ReplaceSoon),
        (Some(_), Some(at)) if at <= now + WATCH_DAYS * DAY => Some(DiskVerdict::Watch),
        (Some(_), _) => None,
        // What grows by one a week or more does not stop by itself.
        (None, _) if line.per_week_thousandths >= 1000 => Some(DiskVerdict::ReplaceSoon),
        (None, _) => Some(DiskVerdict::Watch),
    };
    if let Some(verdict) = verdict {
        let cause = text.split(": ").next().unwrap_or(&text).to_owned();
        let next = match &before {
            Some(day) => format!("replace before {day}"),
            None => ORDER.to_owned(),
        };
        out.find(verdict, cause, &next);
    }
    let (samples, days) = span(points);
    out.forecasts.push(DiskForecast {
        of: heading.of.to_owned(),
        text,
        before,
        per_week_thousandths: line.per_week_thousandths,
        samples,
        days,
    });
}

/// The day of a moment.
fn day(seconds: u64) -> String {
    let at = WallClock(seconds.saturating_mul(1_000_000_000));
    let mut text = rfc3339(at);
    text.truncate("2027-02-10".len());
    text
}

/// Thousandths as people say them.
fn amount(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    let text = match whole {
        10.. => whole.to_string(),
        1..10 => format!("{whole}.{}", rest / 100),
        0 => format!("0.{:02}", rest.div_ceil(10).min(99)),
    };
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn slopes_are_said_in_two_digits() {
        let said = [
            (2000, "2"),
            (2340, "2.3"),
            (12_700, "12"),
            (400, "0.4"),
            (41, "0.05"),
            (1, "0.01"),
        ];
        for (thousandths, words) in said {
            assert_eq!(amount(thousandths), words);
        }
    }
}
