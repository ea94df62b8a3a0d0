//! `causeway alert ...`: what is wrong enough to be known, and what is done about it.

use super::alert_receiver::{self, ReceiverVerb, SEVERITIES, rule_names, said};
use super::context::Context;
use super::user::{if_there, send};
use crate::completion::{BOOLEANS, CompletedArgument, Kind};
use crate::listed::{Listed, When};
use alerts::{AlertView, RuleView, Severity, SilenceView, WantedSilence};
use clap::{Args, Subcommand};
use client::segment;
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use output::{Columns, Table, properties};
use serde_json::{Map, Value, json};

/// What alerts may be of.
const KINDS: &[&str] = &[
    "certificate",
    "disk",
    "file",
    "host",
    "lun",
    "node",
    "pool",
    "portal",
];

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["alert", "silence"], "kind", Kind::Words(KINDS)),
    (&["alert", "show"], "id", Kind::Alert),
    (&["alert", "ack"], "id", Kind::Alert),
    (&["alert", "unack"], "id", Kind::Alert),
    (&["alert", "silence"], "id", Kind::Alert),
    (&["alert", "unsilence"], "id", Kind::Alert),
    (
        &["alert", "silence"],
        "rule",
        Kind::AssignmentOf(rule_names),
    ),
    (
        &["alert", "rule", "show"],
        "rule",
        Kind::AssignmentOf(rule_names),
    ),
    (
        &["alert", "rule", "set"],
        "rule",
        Kind::AssignmentOf(rule_names),
    ),
    (
        &["alert", "rule", "reset"],
        "rule",
        Kind::AssignmentOf(rule_names),
    ),
    (&["alert", "rule", "set"], "enabled", Kind::Words(BOOLEANS)),
    (
        &["alert", "rule", "set"],
        "severity",
        Kind::Words(SEVERITIES),
    ),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[
    (&["alert", "ls"], When::Always, COLUMNS),
    (&["alert", "silences"], When::Always, SILENCES),
    (&["alert", "rules"], When::Always, RULES),
    (&["alert", "rule", "ls"], When::Always, RULES),
];

/// What to do about alerts.
#[derive(Subcommand, Debug)]
pub(crate) enum AlertVerb {
    /// List alerts that are not over
    #[command(alias = "list")]
    Ls {
        /// Also those that are over: the last 2,000
        #[arg(long)]
        resolved: bool,
    },
    /// Show all of an alert, with what happened to it
    Show {
        /// Its number
        id: u64,
    },
    /// Say that somebody takes care of it: no more reminders of it are sent
    #[command(alias = "acknowledge")]
    Ack {
        /// Its number
        id: u64,
        /// What is done about it, for others
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Say that nobody takes care of it any more
    Unack {
        /// Its number
        id: u64,
    },
    /// For a time send nothing of an alert, or of all that fit
    Silence(SilenceFlags),
    /// End the silence of one alert, or any silence by its number
    Unsilence {
        /// The alert's number
        #[arg(required_unless_present = "silence")]
        id: Option<u64>,
        /// The silence's number
        #[arg(long, value_name = "NUMBER", conflicts_with = "id")]
        silence: Option<u64>,
        /// Succeed where there is no such alert or silence
        #[arg(long)]
        if_exists: bool,
    },
    /// List silences that last
    Silences,
    /// List the rules: when alerts fire
    Rules,
    /// One rule: show it, change it, or have it as it was
    Rule {
        #[command(subcommand)]
        verb: RuleVerb,
    },
    /// Receivers: who is sent alerts, by webhook, mail or a command
    Receiver {
        #[command(subcommand)]
        verb: ReceiverVerb,
    },
}

/// What is silenced.
#[derive(Args, Debug)]
pub(crate) struct SilenceFlags {
    /// The number of one alert; it is silenced also where it comes again
    #[arg(conflicts_with_all = ["rule", "kind", "object", "all"])]
    id: Option<u64>,
    /// Only alerts of this rule
    #[arg(long)]
    rule: Option<String>,
    /// Only alerts of objects of this kind, such as lun
    #[arg(long)]
    kind: Option<String>,
    /// Only alerts of the object of this name; with * at its end, of all whose names begin so
    #[arg(long, value_name = "NAME")]
    object: Option<String>,
    /// Every alert
    #[arg(long, conflicts_with_all = ["rule", "kind", "object"])]
    all: bool,
    /// In how many hours it ends
    #[arg(long, default_value_t = 2, conflicts_with = "until")]
    hours: u64,
    /// When it ends, as in 2027-01-31T00:00:00.000Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Why
    #[arg(long, default_value = "")]
    note: String,
}

/// What to do about a rule.
#[derive(Subcommand, Debug)]
pub(crate) enum RuleVerb {
    /// List the rules, as `alert rules` does
    #[command(alias = "list")]
    Ls,
    /// Show when it fires, when it is over, and its bounds
    Show {
        /// The rule
        rule: String,
    },
    /// Change it; what is not named stays
    Set(RuleSet),
    /// Have it as it is without anybody's change
    Reset {
        /// The rule
        rule: String,
    },
}

/// What of a rule shall change.
#[derive(Args, Debug)]
pub(crate) struct RuleSet {
    /// The rule
    rule: String,
    /// Whether it is asked at all
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    /// How bad its alerts are: info, warning, critical
    #[arg(long)]
    severity: Option<String>,
    /// How long its condition lasts before it fires
    #[arg(long, value_name = "SECONDS")]
    hold: Option<u64>,
    /// How long it is over before it is resolved
    #[arg(long, value_name = "SECONDS")]
    clear: Option<u64>,
    /// Figures of its condition; `causeway alert rule show` lists them
    #[arg(value_name = "BOUND=NUMBER")]
    bounds: Vec<String>,
}

pub(crate) fn run(context: &Context<'_>, verb: &AlertVerb) -> Result<(), Problem> {
    match verb {
        AlertVerb::Ls { resolved } => {
            let path = format!("/api/v1/alerts?resolved={resolved}");
            let alerts: Vec<AlertView> = context.client.get(&path)?;
            context.output.list(&alerts, |alerts| list(alerts));
            Ok(())
        }
        AlertVerb::Show { id } => {
            let alert: AlertView = context.client.get(&format!("/api/v1/alerts/{id}"))?;
            context.output.show(&alert, page);
            Ok(())
        }
        AlertVerb::Ack { id, note } => {
            let body = json!({ "note": note });
            change(context, Method::POST, *id, "acknowledge", &body)
        }
        AlertVerb::Unack { id } => {
            change(context, Method::DELETE, *id, "acknowledge", &Value::Null)
        }
        AlertVerb::Silence(flags) => silence(context, flags),
        AlertVerb::Unsilence {
            id: Some(id),
            if_exists,
            ..
        } => {
            let changed = change(context, Method::POST, *id, "unsilence", &Value::Null);
            if_there(context, *if_exists, changed).map(|_| ())
        }
        AlertVerb::Unsilence {
            silence, if_exists, ..
        } => {
            let silence = silence.unwrap_or_default();
            let path = format!("/api/v1/alerts/silences/{silence}");
            let sent = send::<()>(context, Method::DELETE, &path, &());
            if if_there(context, *if_exists, sent)?.is_some() {
                said(context, &format!("silence {silence} is over"));
            }
            Ok(())
        }
        AlertVerb::Silences => {
            let all: Vec<SilenceView> = context.client.get("/api/v1/alerts/silences")?;
            context.output.list(&all, |all| silences(all));
            Ok(())
        }
        AlertVerb::Rules | AlertVerb::Rule { verb: RuleVerb::Ls } => {
            let all: Vec<RuleView> = context.client.get("/api/v1/alerts/rules")?;
            context.output.list(&all, |all| rules(all));
            Ok(())
        }
        AlertVerb::Rule { verb } => rule(context, verb),
        AlertVerb::Receiver { verb } => alert_receiver::run(context, verb),
    }
}

fn change(
    context: &Context<'_>,
    method: Method,
    id: u64,
    verb: &str,
    body: &Value,
) -> Result<(), Problem> {
    let path = format!("/api/v1/alerts/{id}/{verb}");
    let alert: AlertView = send(context, method, &path, body)?;
    context.output.show(&alert, page);
    Ok(())
}

fn silence(context: &Context<'_>, flags: &SilenceFlags) -> Result<(), Problem> {
    let wanted = WantedSilence {
        rule: flags.rule.clone(),
        kind: flags.kind.clone(),
        object: flags.object.clone(),
        hours: flags.until.is_none().then_some(flags.hours),
        until: flags.until.clone(),
        note: flags.note.clone(),
    };
    if let Some(id) = flags.id {
        return change(context, Method::POST, id, "silence", &json!(wanted));
    }
    let is_narrow = flags.rule.is_some() || flags.kind.is_some() || flags.object.is_some();
    if !is_narrow && !flags.all {
        let detail = "nothing says what to silence";
        return Err(Problem::new(Code::CommandLine, detail)
            .hint("name an alert, or some of --rule, --kind, --object, or --all"));
    }
    let made: SilenceView = send(context, Method::POST, "/api/v1/alerts/silences", &wanted)?;
    context
        .output
        .list(&made, |made| silences(std::slice::from_ref(made)));
    Ok(())
}

fn rule(context: &Context<'_>, verb: &RuleVerb) -> Result<(), Problem> {
    let path = |rule: &str| format!("/api/v1/alerts/rules/{}", segment(rule));
    let view: RuleView = match verb {
        RuleVerb::Ls => unreachable!("a list, and was answered before"),
        RuleVerb::Show { rule } => context.client.get(&path(rule))?,
        RuleVerb::Reset { rule } => send(context, Method::PUT, &path(rule), &json!({}))?,
        RuleVerb::Set(set) => {
            let body = settings(context.client.get(&path(&set.rule))?, set)?;
            send(context, Method::PUT, &path(&set.rule), &body)?
        }
    };
    context.output.show(&view, rule_page);
    Ok(())
}

/// What is in force of a rule, and what shall change of it.
fn settings(now: RuleView, set: &RuleSet) -> Result<Value, Problem> {
    let mut bounds: Map<String, Value> = now
        .bounds
        .into_iter()
        .map(|(name, bound)| (name, json!(bound.value)))
        .collect();
    for pair in &set.bounds {
        let number = pair.split_once('=').and_then(|(name, value)| {
            let value: u64 = value.parse().ok()?;
            Some((name, value))
        });
        let Some((name, value)) = number else {
            let detail = format!("\"{pair}\" is no BOUND=NUMBER");
            return Err(Problem::new(Code::CommandLine, detail).hint("such as above_percent=85"));
        };
        bounds.insert(name.to_owned(), json!(value));
    }
    let severity = match &set.severity {
        Some(severity) => json!(severity),
        None => json!(now.severity),
    };
    Ok(json!({
        "enabled": set.enabled.unwrap_or(now.enabled),
        "severity": severity,
        "hold_seconds": set.hold.unwrap_or(now.hold_seconds),
        "clear_seconds": set.clear.unwrap_or(now.clear_seconds),
        "bounds": bounds,
    }))
}

const COLUMNS: Columns =
    Columns::new(&["ID", "SEVERITY", "STATE", "RULE", "FIRED", "CAUSE"]).wide(&["NEXT STEP"]);

fn list(alerts: &[AlertView]) -> Table {
    let row = |alert: &AlertView| {
        vec![
            alert.id.to_string(),
            alert.severity.name().to_owned(),
            alert.state.to_string(),
            alert.rule.clone(),
            alert.fired.clone(),
            alert.cause.clone(),
            alert.next_step.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = alerts.iter().map(row).collect();
    let is_empty = rows.is_empty();
    let table = Table::new(COLUMNS, rows);
    if is_empty {
        return table.instead("no alert: nothing to do\n".to_owned());
    }
    table
}

fn page(alert: &AlertView) -> String {
    let mut rows = vec![
        ("alert", alert.id.to_string()),
        ("state", alert.state.to_string()),
        ("severity", alert.severity.name().to_owned()),
        ("about", format!("{} {}", alert.kind, alert.object)),
        ("cause", alert.cause.clone()),
        ("next step", alert.next_step.clone()),
        ("rule", format!("{} ({})", alert.rule, alert.doc)),
        ("fired", alert.fired.clone()),
    ];
    rows.extend(alert.resolved.clone().map(|at| ("resolved", at)));
    rows.extend(alert.acknowledged.as_ref().map(|by| {
        let note = if by.note.is_empty() {
            String::new()
        } else {
            format!(": {}", by.note)
        };
        ("acknowledged", format!("by {} at {}{note}", by.by, by.at))
    }));
    rows.extend(
        alert
            .silenced_until
            .clone()
            .map(|at| ("silenced until", at)),
    );
    let steps: Vec<String> = alert
        .steps
        .iter()
        .map(|step| {
            let by = if step.by.is_empty() {
                String::new()
            } else {
                format!(" by {}", step.by)
            };
            let note = if step.note.is_empty() {
                String::new()
            } else {
                format!(": {}", step.note)
            };
            format!("{} {}{by}{note}", step.at, step.what)
        })
        .collect();
    rows.push(("history", steps.join("\n")));
    properties(&rows)
}

const SILENCES: Columns = Columns::new(&[
    "ID", "RULE", "KIND", "OBJECT", "UNTIL", "BY", "SILENCES", "NOTE",
]);

fn silences(all: &[SilenceView]) -> Table {
    let or_any = |text: &Option<String>| text.clone().unwrap_or_else(|| "any".to_owned());
    let row = |it: &SilenceView| {
        vec![
            it.id.to_string(),
            or_any(&it.rule),
            or_any(&it.kind),
            or_any(&it.object),
            it.until.clone(),
            it.by.clone(),
            it.silenced.to_string(),
            it.note.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    Table::new(SILENCES, rows)
}

const RULES: Columns = Columns::new(&["RULE", "SEVERITY", "ALERTS", "STATE", "WHAT IS WRONG"]);

fn rules(all: &[RuleView]) -> Table {
    let row = |it: &RuleView| {
        let state = match (it.enabled, it.is_changed) {
            (false, _) => "off",
            (true, true) => "changed",
            (true, false) => "",
        };
        let severity: Severity = it.severity;
        vec![
            it.id.clone(),
            severity.name().to_owned(),
            it.firing.to_string(),
            state.to_owned(),
            it.title.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    Table::new(RULES, rows)
}

fn rule_page(rule: &RuleView) -> String {
    let bounds: Vec<String> = rule
        .bounds
        .iter()
        .map(|(name, it)| {
            format!(
                "{name}={} ({}; {} to {}, else {})",
                it.value, it.meaning, it.least, it.most, it.default
            )
        })
        .collect();
    properties(&[
        ("rule", rule.id.clone()),
        ("what is wrong", rule.title.clone()),
        (
            "asked",
            if rule.enabled {
                "yes".to_owned()
            } else {
                "no: switched off".to_owned()
            },
        ),
        ("severity", rule.severity.name().to_owned()),
        (
            "fires when",
            format!("{}, for {} s", rule.condition, rule.hold_seconds),
        ),
        (
            "over when",
            format!("{}, for {} s", rule.over, rule.clear_seconds),
        ),
        (
            "bounds",
            if bounds.is_empty() {
                "none".to_owned()
            } else {
                bounds.join("\n")
            },
        ),
        ("next step", rule.next_step.clone()),
        ("alerts now", rule.firing.to_string()),
        ("more", rule.doc.clone()),
    ])
}
