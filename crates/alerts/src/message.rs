//! What is sent of alerts: one message for all that are due together.

use crate::alert::AlertView;
use crate::severity::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most alerts that a message lists; of the others it says how many they are.
pub const LISTED_MAX: usize = 100;

/// The longest line of text, in characters.
const LINE_MAX: usize = 400;

/// Why an alert is in a message.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It fires.
    Fired,
    /// It fires, and is worse now.
    Raised,
    /// It fires still, and nobody has acknowledged it.
    Reminder,
    /// It is over.
    Resolved,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Self::Fired => "fires",
            Self::Raised => "is worse",
            Self::Reminder => "fires still",
            Self::Resolved => "is over",
        }
    }
}

/// An alert in a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Notice {
    /// What became of it, or that nothing did.
    pub reason: Reason,
    /// As it is now.
    #[serde(flatten)]
    pub alert: AlertView,
}

/// What a receiver gets. New members may come; those that are there keep their meaning.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Message {
    /// 1: the version of this form.
    pub version: u32,
    /// The node's name.
    pub node: String,
    /// When it was put together (RFC 3339).
    pub time: String,
    /// The receiver's name.
    pub receiver: String,
    /// Somebody only tries whether messages arrive.
    pub test: bool,
    /// All of it in one line, for people.
    pub text: String,
    /// The worst severity of what fires in it; without any that of what is over.
    pub severity: Severity,
    /// How many alerts it is about that fire, or are worse now.
    pub fired: usize,
    /// How many fire still.
    pub reminders: usize,
    /// How many are over.
    pub resolved: usize,
    /// The alerts: those that fire first, the worst first; 100 at most.
    pub alerts: Vec<Notice>,
    /// How many alerts it is about that it does not list.
    pub left_out: usize,
}

/// Without what moves cursors, begins lines or hides.
pub(crate) fn one_line(text: &str) -> String {
    let clean = |letter: char| {
        let bad = letter.is_control()
            || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if bad { ' ' } else { letter }
    };
    let mut line: String = text.chars().take(LINE_MAX).map(clean).collect();
    if text.chars().nth(LINE_MAX).is_some() {
        line.push_str("...");
    }
    line
}

impl Message {
    /// A message about these alerts.
    #[must_use]
    pub fn new(node: &str, receiver: &str, time: String, mut notices: Vec<Notice>) -> Self {
        let is_over = |notice: &Notice| notice.reason == Reason::Resolved;
        notices.sort_by(|a, b| {
            let place = |it: &Notice| (is_over(it), std::cmp::Reverse(it.alert.severity));
            place(a).cmp(&place(b)).then(a.alert.id.cmp(&b.alert.id))
        });
        let count = |reasons: &[Reason]| {
            let these = notices.iter().filter(|it| reasons.contains(&it.reason));
            these.count()
        };
        let (fired, reminders, resolved) = (
            count(&[Reason::Fired, Reason::Raised]),
            count(&[Reason::Reminder]),
            count(&[Reason::Resolved]),
        );
        let severity = notices
            .first()
            .map_or(Severity::Info, |it| it.alert.severity);
        let text = text(node, &notices, [fired, reminders, resolved]);
        let left_out = notices.len().saturating_sub(LISTED_MAX);
        notices.truncate(LISTED_MAX);
        Self {
            version: 1,
            node: node.to_owned(),
            time,
            receiver: receiver.to_owned(),
            test: false,
            text,
            severity,
            fired,
            reminders,
            resolved,
            alerts: notices,
            left_out,
        }
    }

    /// One that only tries whether messages arrive.
    #[must_use]
    pub fn test(node: &str, receiver: &str, time: String, by: &str) -> Self {
        let text = format!(
            "{node}: a test message to receiver {receiver}, asked for by {by}; nothing is wrong"
        );
        Self {
            test: true,
            text: one_line(&text),
            ..Self::new(node, receiver, time, Vec::new())
        }
    }

    /// The subject of a mail.
    #[must_use]
    pub fn subject(&self) -> String {
        let text = self.text.strip_prefix(&self.node).unwrap_or(&self.text);
        let text = text.trim_start_matches([':', ' ']);
        let short: String = text.chars().take(150).collect();
        format!("[{}] {short}", self.node)
    }

    /// All of it as text, for a mail.
    #[must_use]
    pub fn body(&self) -> String {
        let mut out = format!("{}\n", self.text);
        for notice in &self.alerts {
            let alert = &notice.alert;
            let line = |name: &str, text: &str| match text {
                "" => String::new(),
                text => format!("  {name:<11} {}\n", one_line(text)),
            };
            out.push_str(&format!(
                "\n{} {}: {}\n",
                alert.severity.name().to_uppercase(),
                notice.reason.words(),
                one_line(&alert.cause)
            ));
            out.push_str(&line("fired", &alert.fired));
            out.push_str(&line("resolved", alert.resolved.as_deref().unwrap_or("")));
            if notice.reason != Reason::Resolved {
                out.push_str(&line("next step", &alert.next_step));
            }
            out.push_str(&line("alert", &format!("{} ({})", alert.id, alert.rule)));
        }
        if self.left_out > 0 {
            out.push_str(&format!(
                "\nand {} more: causeway alert ls\n",
                self.left_out
            ));
        }
        out.push_str(&format!("\n{} at {}\n", self.node, self.time));
        out
    }
}

fn text(node: &str, notices: &[Notice], [fired, reminders, resolved]: [usize; 3]) -> String {
    let text = match notices {
        [] => format!("{node}: nothing to report"),
        [only] => {
            let alert = &only.alert;
            let how = match only.reason {
                Reason::Fired => alert.severity.name().to_owned(),
                Reason::Raised => format!("now {}", alert.severity),
                Reason::Reminder => format!("still {}", alert.severity),
                Reason::Resolved => "over".to_owned(),
            };
            format!("{node}: {how}: {}", alert.cause)
        }
        [first, ..] => {
            let all = [
                (fired, "fired"),
                (reminders, "still firing"),
                (resolved, "resolved"),
            ];
            let counts = all.iter().filter(|(count, _)| *count > 0);
            let counts: Vec<String> = counts
                .map(|(count, what)| format!("{count} {what}"))
                .collect();
            format!(
                "{node}: alerts: {}; first: {}",
                counts.join(", "),
                first.alert.cause
            )
        }
    };
    one_line(&text)
}
