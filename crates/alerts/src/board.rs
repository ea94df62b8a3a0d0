//! The alerts: from what rules say to what fires, is acknowledged, silenced and resolved.
//!
//! ```text
//!   well --bad--> pending --bad for the hold time--> firing --well for the clear time--> resolved
//!                    |  not bad                        |  bad or between
//!                    v                                 v
//!                  well                     the clear time begins anew
//! ```
//!
//! **Invariants.** B1: of a rule and an object at most one alert is not resolved. B2: an alert's
//! number is its own for ever, and numbers rise. B3: what is resolved never changes. B4: silences
//! change what is sent, and nothing else. B5: what is kept is bounded.

use crate::alert::{Acknowledged, Alert, AlertView, What};
use crate::document::Document;
use crate::evaluate::{Reading, Verdict};
use crate::object::Object;
use crate::rule::Rule;
use crate::settings::{RuleSettings, RuleView, Settings};
use crate::severity::Severity;
use crate::silence::{Silence, SilenceView, WantedSilence, note};
use crate::time::Moment;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::time::rfc3339;
use manifest::view::AlertCounts;
use std::collections::{BTreeMap, BTreeSet};
use units::{Now, WallClock};

/// The most alerts that are not resolved; more are counted and not kept.
const FIRING_MAX: usize = 20_000;

/// The most resolved alerts that are kept: the last ones.
const RESOLVED_MAX: usize = 2_000;

/// The most silences.
const SILENCES_MAX: usize = 1_000;

type Key = (&'static str, Object);

/// What became of an alert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It fires.
    Fired(u64),
    /// It fires, and is worse now.
    Raised(u64),
    /// It is over.
    Resolved(u64),
}

#[derive(Clone, Debug)]
struct Firing {
    alert: Alert,
    /// Since when it is well.
    well: Option<Now>,
}

/// All alerts of a node.
#[derive(Clone, Default, Debug)]
pub struct Board {
    next_id: u64,
    settings: Settings,
    silences: Vec<Silence>,
    pending: BTreeMap<Key, Now>,
    firing: BTreeMap<u64, Firing>,
    by_key: BTreeMap<Key, u64>,
    resolved: BTreeMap<u64, Alert>,
    left_out: u64,
}

impl Board {
    /// With what is stored. Alerts of rules that this version does not have are over.
    #[must_use]
    pub fn new(document: &Document, now: WallClock) -> Self {
        let resolved = document.resolved.iter();
        let mut board = Self {
            next_id: document.next_id.max(1),
            settings: document.rules.clone().known(),
            silences: document.silences.clone(),
            resolved: resolved.map(|alert| (alert.id, alert.clone())).collect(),
            ..Self::default()
        };
        for alert in &document.firing {
            let mut alert = alert.clone();
            board.next_id = board.next_id.max(alert.id + 1);
            let rule = Rule::named(&alert.rule);
            let key = rule.map(|rule| (rule.id, alert.object.clone()));
            match key.filter(|key| !board.by_key.contains_key(key)) {
                Some(key) => {
                    board.by_key.insert(key, alert.id);
                    board.firing.insert(alert.id, Firing { alert, well: None });
                }
                None => {
                    alert.resolved = Some(now);
                    alert.step(now, What::Resolved, "", "this version has no such rule");
                    board.resolved.insert(alert.id, alert);
                }
            }
        }
        if let Some((last, _)) = board.resolved.last_key_value() {
            board.next_id = board.next_id.max(last + 1);
        }
        board
    }

    /// What is to be stored, but for what was sent.
    #[must_use]
    pub fn document(&self) -> Document {
        Document {
            next_id: self.next_id,
            rules: self.settings.clone(),
            silences: self.silences.clone(),
            firing: self.firing.values().map(|it| it.alert.clone()).collect(),
            resolved: self.resolved.values().cloned().collect(),
            ..Document::default()
        }
    }

    /// What is changed of rules.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes what the rules say of a moment; answers what became of alerts.
    pub fn take(&mut self, at: Moment, readings: Vec<Reading>) -> Vec<Change> {
        self.silences.retain(|silence| silence.until > at.wall);
        let mut changes = Vec::new();
        let mut seen: BTreeSet<Key> = BTreeSet::new();
        for reading in readings {
            let key = (reading.rule.id, reading.object.clone());
            if !seen.insert(key.clone()) {
                // A rule says one thing of an object.
                continue;
            }
            match self.by_key.get(&key) {
                Some(id) => changes.extend(self.confirm(*id, reading, at)),
                None => changes.extend(self.suspect(key, reading, at)),
            }
        }
        self.pending.retain(|key, _| seen.contains(key));
        let missing = self.by_key.iter().filter(|(key, _)| !seen.contains(*key));
        let missing: Vec<(&'static str, u64)> = missing.map(|(key, id)| (key.0, *id)).collect();
        for (rule, id) in missing {
            changes.extend(self.clear(rule, id, at));
        }
        while self.resolved.len() > RESOLVED_MAX {
            self.resolved.pop_first();
        }
        changes
    }

    /// Of an alert that fires.
    fn confirm(&mut self, id: u64, reading: Reading, at: Moment) -> Option<Change> {
        let Firing { alert, well } = self.firing.get_mut(&id)?;
        *well = None;
        alert.cause = reading.cause;
        if reading.verdict == Verdict::Between {
            return None;
        }
        alert.next_step = reading.next_step;
        let before = std::mem::replace(&mut alert.severity, reading.severity);
        let note = format!("{before} before, {} now", alert.severity);
        if alert.severity < before {
            alert.step(at.wall, What::Lowered, "", &note);
        }
        (alert.severity > before).then(|| {
            alert.step(at.wall, What::Raised, "", &note);
            Change::Raised(id)
        })
    }

    /// Of what does not fire yet.
    fn suspect(&mut self, key: Key, reading: Reading, at: Moment) -> Option<Change> {
        if reading.verdict == Verdict::Between {
            self.pending.remove(&key);
            return None;
        }
        let hold = self.settings.of(reading.rule).hold();
        let since = *self.pending.entry(key.clone()).or_insert(at.steady);
        if at.since(since) < hold {
            return None;
        }
        if self.firing.len() >= FIRING_MAX {
            self.left_out += 1;
            return None;
        }
        self.pending.remove(&key);
        let id = self.take_id();
        let mut alert = Alert {
            id,
            rule: reading.rule.id.to_owned(),
            object: reading.object,
            severity: reading.severity,
            cause: reading.cause,
            next_step: reading.next_step,
            fired: at.wall,
            resolved: None,
            acknowledged: None,
            steps: Vec::new(),
        };
        let cause = alert.cause.clone();
        alert.step(at.wall, What::Fired, "", &cause);
        self.by_key.insert(key, id);
        self.firing.insert(id, Firing { alert, well: None });
        Some(Change::Fired(id))
    }

    /// Of an alert of which the rules say nothing any more.
    fn clear(&mut self, rule: &'static str, id: u64, at: Moment) -> Option<Change> {
        let in_force = self.settings.of(Rule::named(rule)?);
        let firing = self.firing.get_mut(&id)?;
        let since = *firing.well.get_or_insert(at.steady);
        let note = match in_force.enabled() {
            false => "the rule was switched off",
            true if at.since(since) < in_force.clear() => return None,
            true => "",
        };
        let mut alert = self.firing.remove(&id)?.alert;
        alert.resolved = Some(at.wall);
        alert.step(at.wall, What::Resolved, "", note);
        self.by_key.remove(&(rule, alert.object.clone()));
        self.resolved.insert(id, alert);
        Some(Change::Resolved(id))
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id.max(1);
        self.next_id = id + 1;
        id
    }

    /// An alert, resolved or not.
    #[must_use]
    pub fn alert(&self, id: u64) -> Option<&Alert> {
        let firing = self.firing.get(&id).map(|it| &it.alert);
        firing.or_else(|| self.resolved.get(&id))
    }

    /// Alerts that are not resolved, the oldest first.
    pub fn firing(&self) -> impl Iterator<Item = &Alert> {
        self.firing.values().map(|it| &it.alert)
    }

    /// Alerts that are not resolved and are not kept, because there are too many.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The silence that covers an alert, and of several the one that lasts longest.
    #[must_use]
    pub fn silence_of(&self, alert: &Alert, now: WallClock) -> Option<&Silence> {
        let lasting = self.silences.iter().filter(|it| it.until > now);
        let covering = lasting.filter(|silence| silence.covers(alert));
        covering.max_by_key(|silence| silence.until)
    }

    /// An alert as it is shown.
    #[must_use]
    pub fn view(&self, alert: &Alert, now: WallClock) -> AlertView {
        let silence = self.silence_of(alert, now);
        alert.view(silence.map(|silence| (silence.id, silence.until)))
    }

    /// Alerts as they are shown: the newest first, and with `resolved` also those that are over.
    #[must_use]
    pub fn list(&self, resolved: bool, now: WallClock) -> Vec<AlertView> {
        let over = self.resolved.values().filter(|_| resolved);
        let mut all: Vec<&Alert> = self.firing().chain(over).collect();
        all.sort_by_key(|alert| std::cmp::Reverse(alert.id));
        all.into_iter().map(|alert| self.view(alert, now)).collect()
    }

    /// How many alerts there are.
    #[must_use]
    pub fn counts(&self, now: WallClock) -> AlertCounts {
        let mut counts = AlertCounts::default();
        for alert in self.firing() {
            let slot = if self.silence_of(alert, now).is_some() {
                &mut counts.silenced
            } else if alert.acknowledged.is_some() {
                &mut counts.acknowledged
            } else {
                match alert.severity {
                    Severity::Critical => &mut counts.critical,
                    Severity::Warning => &mut counts.warning,
                    Severity::Info => &mut counts.info,
                }
            };
            *slot += 1;
        }
        counts
    }

    fn firing_mut(&mut self, id: u64) -> Result<&mut Alert, Problem> {
        if self.resolved.contains_key(&id) {
            let detail = format!("alert {id} is resolved");
            return Err(
                Problem::new(Code::InUse, detail).hint("there is nothing to do about it any more")
            );
        }
        let firing = self.firing.get_mut(&id).map(|it| &mut it.alert);
        firing.ok_or_else(|| not_found(id))
    }

    /// Somebody takes care of an alert: no more reminders of it are sent.
    ///
    /// # Errors
    /// There is no such alert, it is over, or the note is too long.
    pub fn acknowledge(
        &mut self,
        id: u64,
        by: &str,
        text: &str,
        at: Moment,
    ) -> Result<(), Problem> {
        let text = note(text)?;
        let alert = self.firing_mut(id)?;
        alert.acknowledged = Some(Acknowledged {
            by: by.to_owned(),
            at: rfc3339(at.wall),
            note: text.clone(),
        });
        alert.step(at.wall, What::Acknowledged, by, &text);
        Ok(())
    }

    /// Nobody takes care of an alert any more.
    ///
    /// # Errors
    /// There is no such alert, or it is over.
    pub fn unacknowledge(&mut self, id: u64, by: &str, at: Moment) -> Result<(), Problem> {
        let alert = self.firing_mut(id)?;
        if alert.acknowledged.take().is_some() {
            alert.step(at.wall, What::Unacknowledged, by, "");
        }
        Ok(())
    }

    /// Makes a silence, and answers its number.
    ///
    /// # Errors
    /// It is none that can be.
    pub fn silence(&mut self, wanted: WantedSilence, by: &str, at: Moment) -> Result<u64, Problem> {
        self.silences.retain(|silence| silence.until > at.wall);
        if self.silences.len() >= SILENCES_MAX {
            let detail = format!("there are {SILENCES_MAX} silences already");
            return Err(Problem::new(Code::InvalidObjects, detail)
                .hint("end some of them: causeway alert silences"));
        }
        let silence = wanted.make(self.next_id.max(1), by, at)?;
        let id = self.take_id();
        self.silences.push(silence);
        Ok(id)
    }

    /// Silences one alert: its rule and its object, also where it comes again.
    ///
    /// # Errors
    /// There is no such alert, it is over, or the end is none.
    pub fn silence_alert(
        &mut self,
        id: u64,
        wanted: WantedSilence,
        by: &str,
        at: Moment,
    ) -> Result<u64, Problem> {
        let alert = self.firing_mut(id)?.clone();
        let wanted = WantedSilence {
            rule: Some(alert.rule.clone()),
            kind: Some(alert.object.kind.clone()),
            object: Some(alert.object.name.clone()),
            ..wanted
        };
        let made = self.silence(wanted, by, at)?;
        // The newest says until when.
        self.silences
            .retain(|silence| silence.id == made || !silence.is_exactly(&alert));
        Ok(made)
    }

    /// Ends the silences that are of one alert alone.
    ///
    /// # Errors
    /// There is no such alert, it is over, or a silence of more than it covers it.
    pub fn unsilence_alert(&mut self, id: u64, at: Moment) -> Result<(), Problem> {
        let alert = self.firing_mut(id)?.clone();
        self.silences.retain(|silence| !silence.is_exactly(&alert));
        let Some(other) = self.silence_of(&alert, at.wall) else {
            return Ok(());
        };
        let detail = format!(
            "alert {id} is silenced by silence {}, which is not of it alone",
            other.id
        );
        Err(Problem::new(Code::InUse, detail).hint(format!(
            "end that silence for all that it covers: causeway alert unsilence --silence {}",
            other.id
        )))
    }

    /// Ends a silence.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn end_silence(&mut self, id: u64) -> Result<(), Problem> {
        let before = self.silences.len();
        self.silences.retain(|silence| silence.id != id);
        if self.silences.len() == before {
            let detail = format!("there is no silence {id}");
            return Err(Problem::new(Code::NotFound, detail)
                .hint("`causeway alert silences` lists those that last"));
        }
        Ok(())
    }

    /// The silences that last.
    #[must_use]
    pub fn silences(&self, now: WallClock) -> Vec<SilenceView> {
        let lasting = self.silences.iter().filter(|it| it.until > now);
        let view = |silence: &Silence| {
            let covered = self.firing().filter(|alert| silence.covers(alert));
            silence.view(covered.count())
        };
        lasting.map(view).collect()
    }

    /// Changes a rule; what is not named is as the rule has it.
    ///
    /// # Errors
    /// There is no such rule, or the change cannot be.
    pub fn set_rule(&mut self, id: &str, wanted: RuleSettings) -> Result<(), Problem> {
        self.settings = self.settings.with(id, wanted)?;
        Ok(())
    }

    /// The rules as they are in force.
    #[must_use]
    pub fn rules(&self) -> Vec<RuleView> {
        let firing = |rule: &Rule| {
            let of_rule = self.by_key.keys().filter(|key| key.0 == rule.id);
            of_rule.count()
        };
        let rules = crate::RULES.into_iter();
        rules
            .map(|rule| self.settings.of(rule).view(firing(rule)))
            .collect()
    }

    /// One rule.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn rule(&self, id: &str) -> Result<RuleView, Problem> {
        let rule = crate::settings::find(id)?;
        let found = self.rules().into_iter().find(|view| view.id == rule.id);
        found.ok_or_else(|| Problem::new(Code::Internal, "a rule that is not listed"))
    }
}

fn not_found(id: u64) -> Problem {
    let detail = format!("there is no alert {id}");
    Problem::new(Code::NotFound, detail)
        .hint("`causeway alert ls --resolved` lists those that are known")
}
