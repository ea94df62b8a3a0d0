//! Rules against facts, the board against a small model, and what receivers get.

mod board;
mod outbox;
mod rules;
mod slow;

use crate::{Moment, Object, Reading, Rule, Severity, Verdict};
use manifest::golden;
use markdown::with_block;
use units::{Now, WallClock};

/// So many seconds after the start, by both clocks.
fn at(seconds: u64) -> Moment {
    const BEGIN: u64 = 1_800_000_000;
    Moment {
        steady: Now((7 + seconds) * 1_000_000_000),
        wall: WallClock((BEGIN + seconds) * 1_000_000_000),
    }
}

fn rule(id: &str) -> &'static Rule {
    Rule::named(id).expect("a rule")
}

fn reading(id: &str, name: &str, verdict: Verdict) -> Reading {
    Reading {
        rule: rule(id),
        object: Object::new("lun", name),
        verdict,
        severity: rule(id).severity,
        cause: format!("{name} is bad"),
        next_step: "mend it".to_owned(),
    }
}

fn bad(id: &str, name: &str) -> Reading {
    reading(id, name, Verdict::Bad)
}

#[test]
fn the_documentation_has_these_rules_with_these_bounds() {
    let page = golden::on_disk("docs/operate/alerts.md");
    let page = with_block(&page, "rules", &crate::rules_page()).expect("a place for the rules");
    golden::assert_page("docs/operate/alerts.md", &page);
}

#[test]
fn the_table_of_rules_is_sound() {
    let mut ids = std::collections::BTreeSet::new();
    for rule in crate::RULES {
        assert!(ids.insert(rule.id), "{} is there twice", rule.id);
        assert!(!rule.next_step.is_empty() && rule.severity >= Severity::Info);
        for bound in rule.bounds {
            assert!(
                (bound.least..=bound.most).contains(&bound.default),
                "{}",
                bound.name
            );
        }
        let view = crate::Settings::default().of(rule).view(0);
        for text in [&view.condition, &view.over] {
            assert!(
                !text.contains(['{', '}']),
                "{}: a bound that is none: {text}",
                rule.id
            );
        }
        assert!(
            crate::Settings::default()
                .with(rule.id, crate::RuleSettings::default())
                .is_ok(),
            "its own figures fit each other"
        );
    }
}
