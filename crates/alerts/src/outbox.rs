//! What a receiver is to be sent, and when.
//!
//! A message is put together at the moment at which it is sent, from how the alerts are then. So
//! nothing waits in a queue that could overflow, its order is that of what happened, and a receiver
//! that was away for an hour gets one message with all that matters, and not the hour.
//!
//! **Invariants.** O1: one message at a time. O2: of an alert a receiver gets that it fires, then
//! reminders, then once that it is over; never that it is over alone, but for one that fired and
//! ended while no message could be delivered. O3: of an alert that was never due to be sent, such
//! as one that was silenced from its beginning to its end, it gets nothing. O4: each message is
//! sent again until it was taken, later and later.

use crate::alert::Alert;
use crate::board::Board;
use crate::mark::Mark;
use crate::message::{Message, Notice, Reason};
use crate::receiver::Receiver;
use crate::severity::Severity;
use crate::time::{Moment, later};
use manifest::time::rfc3339;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::{Now, WallClock};

/// How long after a message that was not taken it is sent again; doubled each time.
const AGAIN_MIN: Duration = Duration::from_secs(10);

/// The longest of these times.
const AGAIN_MAX: Duration = Duration::from_secs(15 * 60);

/// Why a message was not taken, in words without secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

/// How a receiver does.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Delivery {
    /// Messages that were taken.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// When one was taken last.
    pub last_success: Option<WallClock>,
    /// When an attempt failed last, and why.
    pub last_failure: Option<(WallClock, String)>,
    /// Attempts since the last one that was taken.
    pub failing: u32,
    /// Alerts that wait to be sent.
    pub waiting: usize,
}

/// What becomes of an alert when the message is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    Sent(Severity),
    Over,
}

/// What a receiver is to be sent.
#[derive(Default, Debug)]
pub struct Outbox {
    sent: BTreeMap<u64, Mark>,
    /// Alerts that are due to be sent and were not.
    owed: BTreeSet<u64>,
    /// Since when something is due.
    due: Option<Now>,
    /// Not before this.
    not_before: Now,
    /// What is under way.
    under_way: Option<Vec<(u64, Taken)>>,
    delivery: Delivery,
}

impl Outbox {
    /// One whose receiver was sent these alerts.
    #[must_use]
    pub fn new(sent: BTreeMap<u64, Mark>) -> Self {
        Self {
            sent,
            ..Self::default()
        }
    }

    /// When the receiver was sent each alert last.
    #[must_use]
    pub fn sent(&self) -> &BTreeMap<u64, Mark> {
        &self.sent
    }

    /// How the receiver does.
    #[must_use]
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The message that is to be sent now, where one is. Its end is reported by
    /// [`Outbox::ended`].
    pub fn poll(
        &mut self,
        (node, receiver): (&str, &Receiver),
        board: &Board,
        at: Moment,
    ) -> Option<Message> {
        self.owe(receiver, board, at);
        let notices = self.notices(receiver, board, at);
        self.delivery.waiting = notices.len();
        if notices.is_empty() {
            self.due = None;
            return None;
        }
        let since = *self.due.get_or_insert(at.steady);
        let group = Duration::from_secs(receiver.group_seconds);
        let waits = at.since(since) < group || at.steady < self.not_before;
        if self.under_way.is_some() || waits {
            return None;
        }
        let outcomes = notices.iter().map(|notice| {
            let taken = match notice.reason {
                Reason::Resolved => Taken::Over,
                Reason::Fired | Reason::Raised | Reason::Reminder => {
                    Taken::Sent(notice.alert.severity)
                }
            };
            (notice.alert.id, taken)
        });
        self.under_way = Some(outcomes.collect());
        Some(Message::new(
            node,
            &receiver.name,
            rfc3339(at.wall),
            notices,
        ))
    }

    /// How sending the last message has ended. `true`: what was sent is another now.
    pub fn ended(&mut self, result: Result<(), Failure>, at: Moment) -> bool {
        let Some(outcomes) = self.under_way.take() else {
            return false;
        };
        match result {
            Ok(()) => {
                for (id, taken) in outcomes {
                    self.owed.remove(&id);
                    match taken {
                        Taken::Sent(severity) => {
                            let at = at.wall;
                            self.sent.insert(id, Mark { at, severity });
                        }
                        Taken::Over => {
                            self.sent.remove(&id);
                        }
                    }
                }
                self.due = None;
                self.not_before = at.steady;
                self.delivery.delivered += 1;
                self.delivery.failing = 0;
                self.delivery.last_success = Some(at.wall);
                true
            }
            Err(Failure(why)) => {
                let doublings = self.delivery.failing.min(20);
                let wait = AGAIN_MIN.saturating_mul(1 << doublings).min(AGAIN_MAX);
                self.not_before = at.steady.after(wait);
                self.delivery.failing += 1;
                self.delivery.failed += 1;
                self.delivery.last_failure = Some((at.wall, why));
                false
            }
        }
    }

    /// The next attempt is made at once: somebody has changed the receiver.
    pub fn hurry(&mut self) {
        self.not_before = Now::ZERO;
        self.delivery.failing = 0;
    }

    /// Alerts that become due.
    fn owe(&mut self, receiver: &Receiver, board: &Board, at: Moment) {
        for alert in board.firing() {
            let sent = self.sent.get(&alert.id);
            let is_news = sent.is_none_or(|mark| mark.severity < alert.severity);
            let wanted = receiver.wants(alert) && board.silence_of(alert, at.wall).is_none();
            if is_news && wanted {
                self.owed.insert(alert.id);
            }
        }
        // What nobody knows any more can be sent no more, and what is over matters only where its
        // end is wanted.
        let ends = receiver.resolved;
        let matters = |alert: &Alert| alert.resolved.is_none() || ends;
        self.sent
            .retain(|id, _| board.alert(*id).is_some_and(matters));
        self.owed.retain(|id| {
            board.alert(*id).is_some_and(|alert| {
                let is_over = alert.resolved.is_some();
                let is_silent = is_over && board.silence_of(alert, at.wall).is_some();
                receiver.wants(alert) && matters(alert) && !is_silent
            })
        });
    }

    fn notices(&self, receiver: &Receiver, board: &Board, at: Moment) -> Vec<Notice> {
        if !receiver.enabled {
            return Vec::new();
        }
        let mut notices = Vec::new();
        let mut push = |reason, alert: &Alert| {
            let alert = board.view(alert, at.wall);
            notices.push(Notice { reason, alert });
        };
        for id in &self.owed {
            let Some(alert) = board.alert(*id) else {
                continue;
            };
            let is_silent = board.silence_of(alert, at.wall).is_some();
            match (alert.resolved, self.sent.get(id)) {
                // It fired and ended while nothing could be delivered, or within the time of a
                // group.
                (Some(_), None) => push(Reason::Resolved, alert),
                (Some(_), Some(_)) => {}
                (None, _) if is_silent => {}
                (None, None) => push(Reason::Fired, alert),
                (None, Some(_)) => push(Reason::Raised, alert),
            }
        }
        let remind = receiver.remind_hours * 3_600;
        let is_old = |mark: &Mark, seconds| remind > 0 && later(mark.at, seconds) <= at.wall;
        let reminds = |id: &u64, mark: &Mark, alert: &Alert, seconds| {
            is_old(mark, seconds)
                && alert.resolved.is_none()
                && alert.acknowledged.is_none()
                && !self.owed.contains(id)
                && receiver.wants(alert)
                && board.silence_of(alert, at.wall).is_none()
        };
        let known = || {
            self.sent
                .iter()
                .filter_map(|(id, mark)| Some((id, mark, board.alert(*id)?)))
        };
        // With the first that is due come those that would be soon: reminders are few.
        let is_due = known().any(|(id, mark, alert)| reminds(id, mark, alert, remind));
        for (id, mark, alert) in known() {
            if alert.resolved.is_some() {
                push(Reason::Resolved, alert);
            } else if is_due && reminds(id, mark, alert, remind / 2) {
                push(Reason::Reminder, alert);
            }
        }
        notices
    }
}
