//! What goes on by itself: asking the rules, sending, storing.

use super::keep::{Alerting, FILE, Kept, LEARNED_FILE, moment};
use alerts::{Alert, Change, Failure, Message};
use controller::Handle;
use events::{Code as EventCode, Happened, Object};
use observed::{facts, of_ended, of_unserved};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long an answer of the node is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// How often what the rules found is stored at most.
const STORE_EVERY: Duration = Duration::from_secs(10);

/// How often what was learned is stored.
const LEARNED_EVERY: Duration = Duration::from_secs(600);

impl Alerting {
    /// Runs for as long as the server does; the rules are asked so often.
    pub(crate) async fn run(self: &Arc<Self>, handle: &Handle, every: Duration) {
        loop {
            sleep(every).await;
            self.evaluate(handle).await;
            self.send_what_is_due();
            self.store(false).await;
        }
    }

    /// Asks the rules.
    pub(super) async fn evaluate(&self, handle: &Handle) {
        let since = self.lock().ended_next;
        let ask = handle.call(move |controller| {
            Box::pin(async move {
                let (sample, portals) = (controller.sample().await, controller.portals().await);
                let disks = controller.disk_findings();
                let mut facts = facts(sample, &portals, disks, controller.damage()).await;
                let unserved = controller.unserved().into_iter();
                facts.unserved = unserved.map(of_unserved).collect();
                // Asked after the sessions: it has whatever is missing there.
                let ended = controller.ended(since);
                (facts.ended, facts.ended_lost) = (of_ended(&ended.sessions), ended.lost > 0);
                (facts, ended.next)
            })
        });
        // A node that does not answer is the watchdog's matter.
        let Ok(Ok((mut facts, ended_next))) = timeout(ANSWER_MAX, ask).await else {
            return;
        };
        let at = moment();
        let mut inner = self.lock();
        inner.ended_next = ended_next;
        facts.records.extend(inner.records.iter().cloned());
        facts.records.extend(self.of_records());
        facts.certificates = self.endings();
        facts.scrub_every_days = self.scrub_every_days();
        let settings = inner.board.settings().clone();
        let readings = inner.watch.read(&facts, &settings, at);
        let changes = inner.board.take(at, readings);
        inner.is_dirty |= !changes.is_empty();
        for change in &changes {
            self.report(*change, &inner.board);
        }
    }

    /// Sends each receiver what it is to be sent now.
    pub(super) fn send_what_is_due(self: &Arc<Self>) {
        let at = moment();
        let mut inner = self.lock();
        let super::keep::Inner {
            board, receivers, ..
        } = &mut *inner;
        for kept in receivers.values_mut() {
            let due = kept.outbox.poll((&self.node, &kept.receiver), board, at);
            if let Some(message) = due {
                let this = Arc::clone(self);
                let (receiver, serial) = (kept.receiver.clone(), kept.serial);
                tokio::spawn(async move {
                    let sent = deliver::send(&receiver, &this.commands(), &message).await;
                    this.ended(&receiver.name, serial, &message, sent);
                });
            }
        }
    }

    fn ended(&self, name: &str, serial: u64, message: &Message, sent: Result<(), Failure>) {
        let mut inner = self.lock();
        let kept = inner.receivers.get_mut(name);
        // Another one may have its name by now.
        let Some(Kept { outbox, .. }) = kept.filter(|kept| kept.serial == serial) else {
            return;
        };
        match &sent {
            Ok(()) => tracing::info!(receiver = name, "sent: {}", message.text),
            Err(Failure(why)) if outbox.delivery().failing == 0 => {
                tracing::warn!(
                    receiver = name,
                    "alerts cannot be sent, and are sent again later: {why}"
                );
            }
            Err(Failure(why)) => tracing::debug!(receiver = name, "alerts cannot be sent: {why}"),
        }
        let is_other = outbox.ended(sent, moment());
        inner.is_dirty |= is_other;
    }

    /// Stores what is not as it is stored; `all`: whatever the time.
    pub(crate) async fn store(&self, all: bool) {
        let at = moment();
        let (document, learned) = {
            let mut inner = self.lock();
            let is_due = at.since(inner.stored) >= STORE_EVERY || all;
            let document = (inner.is_dirty && is_due).then(|| inner.document_of(&inner.board));
            if document.is_some() {
                (inner.is_dirty, inner.stored) = (false, at.steady);
            }
            let is_due = at.since(inner.learned) >= LEARNED_EVERY || all;
            let learned = is_due.then(|| inner.watch.learned());
            if learned.is_some() {
                inner.learned = at.steady;
            }
            (document, learned)
        };
        if let Some(document) = document
            && !self.write(FILE, document.write()).await
        {
            self.lock().is_dirty = true;
        }
        if let Some(learned) = learned {
            self.write(LEARNED_FILE, learned.write()).await;
        }
    }

    async fn write(&self, name: &'static str, bytes: Vec<u8>) -> bool {
        let _one_at_a_time = self.writing.lock().await;
        if self.may_write(name).is_err() {
            return true;
        }
        match self.files.write(name, bytes).await {
            Ok(()) => true,
            Err(problem) => {
                tracing::warn!(code = %problem.code, "alerts are not stored: {problem}");
                false
            }
        }
    }

    /// An alert that fires or is over is an event.
    fn report(&self, change: Change, board: &alerts::Board) {
        let (id, code, how) = match change {
            Change::Fired(id) => (id, EventCode::AlertFired, "fires"),
            Change::Raised(id) => (id, EventCode::AlertFired, "is worse"),
            Change::Resolved(id) => (id, EventCode::AlertResolved, "is over"),
        };
        let Some(alert) = board.alert(id) else { return };
        let (rule, severity) = (alert.rule.as_str(), alert.severity.name());
        match change {
            Change::Resolved(_) => {
                tracing::info!(alert = id, rule, severity, "alert {how}: {}", alert.cause);
            }
            Change::Fired(_) | Change::Raised(_) => {
                tracing::warn!(alert = id, rule, severity, "alert {how}: {}", alert.cause);
            }
        }
        self.records.events().emit(event(alert, code, how));
    }

    /// Somebody takes care of an alert, or no longer: that is an event.
    pub(super) fn report_care(&self, id: u64, is_taken: bool, by: &str) {
        let inner = self.lock();
        let Some(alert) = inner.board.alert(id) else {
            return;
        };
        let (code, how) = if is_taken {
            (EventCode::AlertAcknowledged, "is taken care of by")
        } else {
            (EventCode::AlertUnacknowledged, "is left to others by")
        };
        let happened = event(alert, code, &format!("{how} {by}")).with("by", by);
        let note = alert.acknowledged.as_ref().map(|it| it.note.as_str());
        let happened = match note.filter(|note| !note.is_empty()) {
            Some(note) => happened.with("note", note),
            None => happened,
        };
        self.records.events().emit(happened);
    }
}

fn event(alert: &Alert, code: EventCode, how: &str) -> Happened {
    let (id, severity) = (alert.id, alert.severity.name());
    let object = Object::new(&alert.object.kind, &alert.object.name);
    let message = format!("alert {id} ({severity}) {how}: {}", alert.cause);
    Happened::new(code, object, message)
        .with("alert", id)
        .with("rule", alert.rule.as_str())
        .with("severity", severity)
}
