//! What metrics report of alerts: how many there are, and whether they arrive.

use super::family::{Family, Text};

/// What there is to report of alerts.
#[derive(Default)]
pub struct AlertFigures {
    /// By severity and state: how many.
    pub alerts: Vec<(&'static str, &'static str, u64)>,
    /// By rule: how many.
    pub rules: Vec<(&'static str, u64)>,
    /// By name: whether messages arrive.
    pub receivers: Vec<(String, Receiver)>,
}

/// What there is to report of a receiver.
pub struct Receiver {
    /// Messages that were taken, since the start.
    pub delivered: u64,
    /// Attempts that failed, since the start.
    pub failed: u64,
    /// Messages that are still to be sent.
    pub waiting: u64,
}

pub(super) const ALERTS: Family<2> = Family::gauge(
    "causeway_alerts",
    ["severity", "state"],
    "Alerts that are not over, by severity (`critical`, `warning`, `info`) and state (`firing`, `acknowledged`, `silenced`)",
);

pub(super) const OF_RULE: Family<1> = Family::gauge(
    "causeway_alerts_of_rule",
    ["rule"],
    "Alerts of a rule that are not over, in any state",
);

pub(super) const DELIVERIES: Family<2> = Family::counter(
    "causeway_alert_deliveries_total",
    ["receiver", "result"],
    "Messages to a receiver of alerts that were taken (`delivered`), and attempts that failed (`failed`)",
);

pub(super) const WAITING: Family<1> = Family::gauge(
    "causeway_alert_waiting",
    ["receiver"],
    "Alerts that a receiver is still to be sent",
);

pub(super) fn alerts(out: &mut Text, figures: &AlertFigures) {
    out.family(&ALERTS);
    for (severity, state, count) in &figures.alerts {
        out.series(&ALERTS, [severity, state], count);
    }
    out.family(&OF_RULE);
    for (rule, count) in &figures.rules {
        out.series(&OF_RULE, [rule], count);
    }
    out.family(&DELIVERIES);
    for (name, receiver) in &figures.receivers {
        out.series(&DELIVERIES, [name, "delivered"], receiver.delivered);
        out.series(&DELIVERIES, [name, "failed"], receiver.failed);
    }
    out.family(&WAITING);
    for (name, receiver) in &figures.receivers {
        out.series(&WAITING, [name], receiver.waiting);
    }
}
