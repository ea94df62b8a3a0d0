//! What administrators changed of rules.

use crate::rule::{Bound, RULES, Rule};
use crate::severity::Severity;
use manifest::code::Code;
use manifest::name::did_you_mean;
use manifest::problem::{FieldFault, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time that a rule holds an alert back or keeps it, in seconds.
const SECONDS_MAX: u64 = 86_400;

/// What is changed of a rule; what is absent is as the rule has it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct RuleSettings {
    /// Whether it is asked at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How bad its alerts are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// How long the condition lasts before it fires, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_seconds: Option<u64>,
    /// How long it is over before it is resolved, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear_seconds: Option<u64>,
    /// Figures of the condition, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<String, u64>,
}

/// What is changed of each rule.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(transparent)]
pub struct Settings(BTreeMap<String, RuleSettings>);

impl Settings {
    /// What is changed of a rule.
    #[must_use]
    pub fn of(&self, rule: &'static Rule) -> InForce<'_> {
        InForce {
            rule,
            changed: self.0.get(rule.id),
        }
    }

    /// With a rule changed; what is not named is as the rule has it.
    ///
    /// # Errors
    /// There is no such rule, or the change names what it does not have, or goes too far.
    pub fn with(&self, id: &str, wanted: RuleSettings) -> Result<Self, Problem> {
        let rule = find(id)?;
        check(rule, &wanted)?;
        let mut after = self.clone();
        if wanted == RuleSettings::default() {
            after.0.remove(id);
        } else {
            after.0.insert(id.to_owned(), wanted);
        }
        Ok(after)
    }

    /// Without what no rule of this version knows.
    #[must_use]
    pub fn known(self) -> Self {
        let good = |id: &str, wanted: &RuleSettings| {
            Rule::named(id).is_some_and(|rule| check(rule, wanted).is_ok())
        };
        let all = self.0.into_iter();
        Self(all.filter(|(id, wanted)| good(id, wanted)).collect())
    }
}

/// The rule of this name.
///
/// # Errors
/// There is none.
pub(crate) fn find(id: &str) -> Result<&'static Rule, Problem> {
    Rule::named(id).ok_or_else(|| {
        let guess = did_you_mean(id, RULES.iter().map(|rule| rule.id));
        let detail = format!("there is no rule \"{id}\"{guess}");
        Problem::new(Code::NotFound, detail).hint("`causeway alert rules` lists all rules")
    })
}

fn check(rule: &'static Rule, wanted: &RuleSettings) -> Result<(), Problem> {
    let mut faults = Vec::new();
    let mut wrong = |field: String, message: String| faults.push(FieldFault { field, message });
    let spans = [
        ("hold_seconds", wanted.hold_seconds),
        ("clear_seconds", wanted.clear_seconds),
    ];
    for (name, seconds) in spans {
        if seconds.is_some_and(|it| it > SECONDS_MAX) {
            wrong(name.to_owned(), format!("write 0 to {SECONDS_MAX}"));
        }
    }
    for (name, value) in &wanted.bounds {
        let field = format!("bounds.{name}");
        let Some(bound) = rule.bounds.iter().find(|bound| bound.name == name) else {
            let known: Vec<&str> = rule.bounds.iter().map(|bound| bound.name).collect();
            let all = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            let guess = did_you_mean(name, known.iter().copied());
            wrong(
                field,
                format!("{} has no such bound{guess}; it has {all}", rule.id),
            );
            continue;
        };
        if !(bound.least..=bound.most).contains(value) {
            wrong(field, format!("write {} to {}", bound.least, bound.most));
        }
    }
    let holder = Settings(BTreeMap::from([(rule.id.to_owned(), wanted.clone())]));
    for (above, below) in [
        ("above_percent", "below_percent"),
        ("factor", "clear_factor"),
        ("returns", "clear_returns"),
    ] {
        let has = |name| rule.bounds.iter().any(|bound| bound.name == name);
        let of = |name| holder.of(rule).bound(name);
        if has(above) && has(below) && of(below) > of(above) {
            let message = format!("{} is more than {above}, {}", of(below), of(above));
            wrong(format!("bounds.{below}"), message);
        }
    }
    let Some(first) = faults.first() else {
        return Ok(());
    };
    let detail = format!("{}: {}", first.field, first.message);
    Err(Problem::new(Code::InvalidObjects, detail)
        .hint("`causeway alert rules` lists all bounds with what they may be")
        .fields(faults))
}

/// A rule as it is in force.
#[derive(Clone, Copy, Debug)]
pub struct InForce<'a> {
    rule: &'static Rule,
    changed: Option<&'a RuleSettings>,
}

impl InForce<'_> {
    /// Whether it is asked at all.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.changed.and_then(|it| it.enabled).unwrap_or(true)
    }

    /// How bad its alerts are; `of`: by what was found.
    #[must_use]
    pub fn severity(&self, of: Option<Severity>) -> Severity {
        let changed = self.changed.and_then(|it| it.severity);
        changed.or(of).unwrap_or(self.rule.severity)
    }

    /// How long the condition lasts before it fires.
    #[must_use]
    pub fn hold(&self) -> Duration {
        Duration::from_secs(self.hold_seconds())
    }

    /// How long it is over before it is resolved.
    #[must_use]
    pub fn clear(&self) -> Duration {
        Duration::from_secs(self.clear_seconds())
    }

    fn hold_seconds(&self) -> u64 {
        let changed = self.changed.and_then(|it| it.hold_seconds);
        changed.unwrap_or(self.rule.hold_seconds)
    }

    fn clear_seconds(&self) -> u64 {
        let changed = self.changed.and_then(|it| it.clear_seconds);
        changed.unwrap_or(self.rule.clear_seconds)
    }

    /// A figure of the condition; 0 of a name that the rule does not have.
    #[must_use]
    pub fn bound(&self, name: &str) -> u64 {
        let changed = self.changed.and_then(|it| it.bounds.get(name).copied());
        let own = self.rule.bounds.iter().find(|bound| bound.name == name);
        changed.or(own.map(|bound| bound.default)).unwrap_or(0)
    }

    /// A sentence of the rule with the figures that are in force.
    fn words(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for Bound { name, .. } in self.rule.bounds {
            out = out.replace(&format!("{{{name}}}"), &self.bound(name).to_string());
        }
        out
    }

    /// All of it, for people and programs.
    #[must_use]
    pub fn view(&self, firing: usize) -> RuleView {
        let rule = self.rule;
        let bound = |bound: &Bound| {
            let view = BoundView {
                value: self.bound(bound.name),
                default: bound.default,
                least: bound.least,
                most: bound.most,
                meaning: bound.meaning.to_owned(),
            };
            (bound.name.to_owned(), view)
        };
        RuleView {
            id: rule.id.to_owned(),
            title: rule.title.to_owned(),
            enabled: self.enabled(),
            severity: self.severity(None),
            condition: self.words(rule.condition),
            over: self.words(rule.over),
            hold_seconds: self.hold_seconds(),
            clear_seconds: self.clear_seconds(),
            bounds: rule.bounds.iter().map(bound).collect(),
            next_step: rule.next_step.to_owned(),
            doc: rule.doc(),
            is_changed: self.changed.is_some(),
            firing,
        }
    }
}

/// A figure of a rule.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BoundView {
    /// What is in force.
    pub value: u64,
    /// Without anybody's change.
    pub default: u64,
    /// The least that it may be.
    pub least: u64,
    /// The most that it may be.
    pub most: u64,
    /// What it is, with its unit.
    pub meaning: String,
}

/// A rule as it is in force.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct RuleView {
    /// By which it is known.
    pub id: String,
    /// What is wrong, in a few words.
    pub title: String,
    /// Whether it is asked at all.
    pub enabled: bool,
    /// How bad its alerts are, where nothing else is known.
    pub severity: Severity,
    /// When it fires.
    pub condition: String,
    /// When it is over.
    pub over: String,
    /// How long the condition lasts before it fires, in seconds.
    pub hold_seconds: u64,
    /// How long it is over before it is resolved, in seconds.
    pub clear_seconds: u64,
    /// The figures of the condition, by name.
    pub bounds: BTreeMap<String, BoundView>,
    /// What to do, where an alert does not say it more exactly.
    pub next_step: String,
    /// The page of the documentation that says more.
    pub doc: String,
    /// Somebody changed it.
    pub is_changed: bool,
    /// How many alerts of it there are now.
    pub firing: usize,
}
