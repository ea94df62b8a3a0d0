//! All rules, with what is remembered of LUNs and paths for those that need it.

use crate::away::Away;
use crate::document::{Learned, LearnedLun};
use crate::evaluate::{Reading, Sink, of_the_moment, single_paths};
use crate::facts::{Done, Facts};
use crate::flapping::Flapping;
use crate::object::Object;
use crate::rule::{HOST_AWAY, HOST_SINGLE_PATH, LUN_SLOW, PATH_FLAPPING, Rule, SCRUB_OVERDUE};
use crate::settings::Settings;
use crate::time::{Moment, later};
use crate::usual::Series;
use manifest::scrub::{ScrubFacts, ScrubState};
use manifest::time::{about, parse};
use std::collections::BTreeMap;
use units::WallClock;

/// A LUN that is gone for so long is forgotten, in seconds: one that is restored is known again.
const FORGOTTEN_SECONDS: u64 = 30 * 86_400;

/// The most LUNs that are remembered.
const LUNS_MAX: usize = 20_000;

/// Where nothing has ended for so long, in microseconds, that is said rather than a mean.
const HANGING_US: u64 = 30_000_000;

/// What is remembered of a LUN.
#[derive(Debug)]
struct LunKnown {
    read: Series,
    write: Series,
    /// When it was seen first, in seconds since 1970.
    first: u64,
    /// When it was seen last, in seconds since 1970.
    last: u64,
    /// When a scrub came to its end last, in seconds since 1970.
    verified: Option<u64>,
}

/// All rules, and what they remember.
#[derive(Default, Debug)]
pub struct Watch {
    luns: BTreeMap<String, LunKnown>,
    flapping: Flapping,
    away: Away,
}

impl Watch {
    /// With what was learned before.
    #[must_use]
    pub fn new(learned: Learned) -> Self {
        let known = learned.luns.into_iter().take(LUNS_MAX);
        let luns = known.map(|(key, lun)| {
            let known = LunKnown {
                read: Series::of(lun.read),
                write: Series::of(lun.write),
                first: lun.first,
                last: lun.last,
                verified: lun.verified,
            };
            (key, known)
        });
        Self {
            luns: luns.collect(),
            flapping: Flapping::default(),
            away: Away::of(learned.hosts),
        }
    }

    /// What was learned, for the next start.
    #[must_use]
    pub fn learned(&self) -> Learned {
        let luns = self.luns.iter().map(|(key, known)| {
            let lun = LearnedLun {
                read: known.read.usual.clone(),
                write: known.write.usual.clone(),
                first: known.first,
                last: known.last,
                verified: known.verified,
            };
            (key.clone(), lun)
        });
        Learned {
            luns: luns.collect(),
            hosts: self.away.learned(),
            ..Learned::default()
        }
    }

    /// What the rules say of a moment.
    pub fn read(&mut self, facts: &Facts, settings: &Settings, at: Moment) -> Vec<Reading> {
        let mut out = Vec::new();
        of_the_moment(facts, settings, at, &mut out);
        self.flapping.observe(&facts.hosts, at);
        self.away.observe(facts, at);
        self.observe(facts, settings.of(&LUN_SLOW).bound("busy_ops"), at);
        let mut ask = |rule: &'static Rule, asked: &dyn Fn(&mut Sink<'_>)| {
            let in_force = settings.of(rule);
            if in_force.enabled() {
                let out = &mut out;
                asked(&mut Sink {
                    rule,
                    in_force,
                    out,
                });
            }
        };
        ask(&HOST_AWAY, &|sink| self.away.read(facts, at, sink));
        ask(&HOST_SINGLE_PATH, &|sink| {
            single_paths(facts, &|host| self.away.was_there(host, at), sink);
        });
        ask(&PATH_FLAPPING, &|sink| self.flapping.read(at, sink));
        ask(&LUN_SLOW, &|sink| self.slow(facts, at, sink));
        ask(&SCRUB_OVERDUE, &|sink| self.overdue(facts, at, sink));
        out
    }

    fn observe(&mut self, facts: &Facts, busy: u64, at: Moment) {
        let now = at.seconds();
        for lun in &facts.luns {
            if !self.luns.contains_key(&lun.key) {
                if self.luns.len() >= LUNS_MAX {
                    continue;
                }
                let known = LunKnown {
                    read: Series::default(),
                    write: Series::default(),
                    first: now,
                    last: now,
                    verified: None,
                };
                self.luns.insert(lun.key.clone(), known);
            }
            let Some(known) = self.luns.get_mut(&lun.key) else {
                continue;
            };
            known.last = now;
            known.read.take(lun.read, busy, at);
            known.write.take(lun.write, busy, at);
            let ended = lun.scrub.as_ref().and_then(finished);
            known.verified = known.verified.max(ended);
        }
        let recent = |known: &LunKnown| now.saturating_sub(known.last) < FORGOTTEN_SECONDS;
        self.luns.retain(|_, known| recent(known));
    }

    fn slow(&self, facts: &Facts, at: Moment, sink: &mut Sink<'_>) {
        for lun in &facts.luns {
            let Some(known) = self.luns.get(&lun.key) else {
                continue;
            };
            let of = |what: &'static str, done: Done, series| {
                let what = format!("{what} of LUN {}", lun.name);
                level(&what, done.under_way, series, at, sink)
            };
            let levels = [
                of("reads", lun.read, &known.read),
                of("writes", lun.write, &known.write),
            ];
            let worst = levels.into_iter().flatten().max_by_key(|it| it.0);
            let object = || Object::new("lun", &lun.name);
            match worst {
                Some((true, cause)) => sink.bad(object(), cause),
                Some((false, cause)) => sink.between(object(), cause),
                None => {}
            }
        }
    }

    fn overdue(&self, facts: &Facts, at: Moment, sink: &mut Sink<'_>) {
        let days = match facts.scrub_every_days {
            Some(every) => u64::from(every) + sink.bound("grace_days"),
            None => sink.bound("unscheduled_days"),
        };
        for lun in &facts.luns {
            let Some(known) = self.luns.get(&lun.key) else {
                continue;
            };
            let since = known.verified.unwrap_or(known.first);
            let age = at.seconds().saturating_sub(since);
            if age <= days * 86_400 {
                continue;
            }
            let object = Object::new("lun", &lun.name);
            let (name, age) = (&lun.name, about(age));
            let last = match known.verified {
                Some(_) => format!("LUN {name} was last scrubbed whole {age} ago"),
                None => {
                    format!("LUN {name} has not been scrubbed whole in the {age} that it is known")
                }
            };
            let state = lun.scrub.as_ref().map(|scrub| scrub.state);
            let cause = match (state, &lun.scrub) {
                (Some(ScrubState::GivenUp), Some(scrub)) => {
                    let why = scrub.reason.as_deref().unwrap_or("no reason is known");
                    format!("{last}; the last scrub was given up: {why}")
                }
                (Some(ScrubState::Stopped), _) => format!("{last}; the last scrub was stopped"),
                _ => last,
            };
            let unseen = state == Some(ScrubState::Running) || lun.offline.is_some();
            if unseen {
                sink.between(object, cause);
            } else {
                sink.bad(object, cause);
            }
        }
    }
}

/// When a scrub has read everything, in seconds since 1970.
fn finished(scrub: &ScrubFacts) -> Option<u64> {
    let ended = scrub
        .ended
        .as_deref()
        .filter(|_| scrub.state == ScrubState::Finished);
    let ended: WallClock = parse(ended?)?;
    Some(later(ended, 0).0 / 1_000_000_000)
}

/// Whether operations of a kind are slow (`true`), or neither slow nor well, with the reason.
fn level(
    what: &str,
    under_way: u64,
    series: &Series,
    at: Moment,
    sink: &Sink<'_>,
) -> Option<(bool, String)> {
    let Some(present) = series.present() else {
        // What began has not ended for long enough to say so: nobody knows that it is well again.
        return (under_way > 0).then(|| (false, format!("{what} do not end")));
    };
    let usual = series.usual.median()?;
    let (mean, least) = (present, sink.bound("least_us"));
    let times = |factor: u64| usual.saturating_mul(factor);
    let hanging = series.hanging_us(at);
    let cause = if hanging >= HANGING_US {
        format!(
            "{what}: none has ended for {}, with {under_way} under way; usual for it is {}",
            latency(hanging),
            latency(usual)
        )
    } else {
        format!(
            "{what} take {} on average, {} times what is usual for it ({})",
            latency(mean),
            mean / usual.max(1),
            latency(usual)
        )
    };
    let is_learned = u64::from(series.usual.minutes()) >= sink.bound("learned_minutes");
    if mean < times(sink.bound("clear_factor")) || mean < least / 2 {
        return None;
    }
    let is_bad = is_learned && mean >= times(sink.bound("factor")) && mean >= least;
    Some((is_bad, cause))
}

/// Microseconds, for people.
fn latency(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        10_000..10_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{} s", us / 1_000_000),
    }
}
