//! The rules as the documentation lists them.

use crate::rule::{RULES, Rule};
use crate::settings::Settings;
use markdown::{MarkdownTable, paragraph};

fn seconds(seconds: u64) -> String {
    match seconds {
        0 => "at once".to_owned(),
        1..120 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}

/// A rule's own section: what the links of its alerts lead to.
fn section(rule: &Rule) -> String {
    let mut out = format!("### {}\n\n", rule.id);
    let view = Settings::default();
    let view = view
        .of(Rule::named(rule.id).unwrap_or(crate::RULES[0]))
        .view(0);
    let line = format!(
        "{}: {}. Fires when {} ({}). Over when {} ({}).",
        rule.title,
        rule.severity,
        view.condition,
        seconds(rule.hold_seconds),
        view.over,
        seconds(rule.clear_seconds)
    );
    out.push_str(&paragraph(&line, ""));
    out.push('\n');
    out.push_str(&paragraph(&format!("What to do: {}.", rule.next_step), ""));
    if !rule.bounds.is_empty() {
        out.push('\n');
        let mut table = MarkdownTable::new(&["Bound", "Default", "From", "To", "What it is"]);
        for bound in rule.bounds {
            let name = format!("`{}`", bound.name);
            let [default, least, most] =
                [bound.default, bound.least, bound.most].map(|it| it.to_string());
            table.row(&[&name, &default, &least, &most, bound.meaning]);
        }
        out.push_str(&table.into_text());
    }
    out
}

/// The table of all rules, and a section of each.
#[must_use]
pub fn rules_page() -> String {
    let mut table = MarkdownTable::new(&[
        "Rule",
        "Severity",
        "What is wrong",
        "Fires after",
        "Over after",
    ]);
    for rule in RULES {
        let link = format!("[{id}](#{id})", id = rule.id);
        let (hold, clear) = (seconds(rule.hold_seconds), seconds(rule.clear_seconds));
        table.row(&[&link, rule.severity.name(), rule.title, &hold, &clear]);
    }
    let sections: Vec<String> = RULES.into_iter().map(section).collect();
    format!("{}\n{}", table.into_text(), sections.join("\n"))
}
