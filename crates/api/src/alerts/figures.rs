//! What metrics report of alerts.

use super::keep::{Alerting, moment};
use alerts::{AlertState, RULES, Severity};
use metrics::{AlertFigures, Receiver};
use std::collections::BTreeMap;

/// The states that alerts are counted in.
const STATES: [(AlertState, &str); 3] = [
    (AlertState::Firing, "firing"),
    (AlertState::Acknowledged, "acknowledged"),
    (AlertState::Silenced, "silenced"),
];

impl Alerting {
    /// What is secret of the receivers, and may stand nowhere else.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let inner = self.lock();
        let all = inner.receivers.values();
        let all = all.map(|kept| kept.receiver.with_secrets());
        let of = |receiver: serde_json::Value| {
            let (webhook, mail) = (&receiver["webhook"], &receiver["mail"]);
            let secret = [&webhook["url"], &webhook["token"], &mail["password"]];
            secret.map(|it| it.as_str().map(str::to_owned))
        };
        all.flat_map(of).flatten().collect()
    }

    /// What there is to report.
    pub(crate) fn figures(&self) -> AlertFigures {
        let now = moment().wall;
        let inner = self.lock();
        let mut by_state: BTreeMap<(Severity, AlertState), u64> = BTreeMap::new();
        let mut by_rule: BTreeMap<&str, u64> = BTreeMap::new();
        for alert in inner.board.firing() {
            let silence = inner.board.silence_of(alert, now).is_some();
            let state = match (silence, &alert.acknowledged) {
                (true, _) => AlertState::Silenced,
                (false, Some(_)) => AlertState::Acknowledged,
                (false, None) => AlertState::Firing,
            };
            *by_state.entry((alert.severity, state)).or_default() += 1;
            *by_rule.entry(&alert.rule).or_default() += 1;
        }
        let count = |severity, state| by_state.get(&(severity, state)).copied().unwrap_or(0);
        let alerts = Severity::ALL.into_iter().flat_map(|severity| {
            STATES.map(|(state, name)| (severity.name(), name, count(severity, state)))
        });
        let rules = RULES.into_iter();
        let rules = rules.map(|rule| (rule.id, by_rule.get(rule.id).copied().unwrap_or(0)));
        let receivers = inner.receivers.iter().map(|(name, kept)| {
            let delivery = kept.outbox.delivery();
            let receiver = Receiver {
                delivered: delivery.delivered,
                failed: delivery.failed,
                waiting: delivery.waiting as u64,
            };
            (name.clone(), receiver)
        });
        AlertFigures {
            alerts: alerts.collect(),
            rules: rules.collect(),
            receivers: receivers.collect(),
        }
    }
}
