//! Receivers: changed, tried, and how each does.

use super::keep::{Alerting, Inner, Kept, RECEIVERS_FILE, moment};
use super::routes::SeenChange;
use super::secrets;
use crate::noted::Note;
use crate::parts::Seen;
use alerts::{Channel, Message, Outbox, Receiver, ReceiverView, WantedReceiver};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::time::rfc3339;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most receivers.
const RECEIVERS_MAX: usize = 50;

fn view(kept: &Kept) -> ReceiverView {
    let delivery = kept.outbox.delivery();
    let failure = delivery.last_failure.as_ref();
    ReceiverView {
        delivered: delivery.delivered,
        failed: delivery.failed,
        waiting: delivery.waiting,
        last_success: delivery.last_success.map(rfc3339),
        last_failure: failure.map(|(at, _)| rfc3339(*at)),
        problem: failure
            .filter(|_| delivery.failing > 0)
            .map(|(_, why)| why.clone()),
        ..kept.receiver.view()
    }
}

fn find<'a>(inner: &'a Inner, name: &str) -> Result<&'a Kept, Problem> {
    inner.receivers.get(name).ok_or_else(|| {
        let detail = format!("there is no receiver \"{name}\"");
        Problem::new(Code::NotFound, detail).hint("`causeway alert receiver ls` lists them")
    })
}

/// As the audit log has a receiver: without secrets.
fn shown(receiver: Option<&Receiver>) -> Value {
    serde_json::to_value(receiver.map(Receiver::view)).unwrap_or_default()
}

/// The names and receivers that there are.
type All = BTreeMap<String, Receiver>;

impl Alerting {
    pub(super) fn receivers(&self) -> Vec<ReceiverView> {
        self.lock().receivers.values().map(view).collect()
    }

    /// One, with its tag.
    pub(super) fn receiver(&self, name: &str) -> Result<(String, ReceiverView), Problem> {
        let inner = self.lock();
        find(&inner, name).map(|kept| (kept.tag(inner.run), view(kept)))
    }

    /// Changes receivers, and answers the one that is of interest, where it is there afterwards.
    async fn edit(
        &self,
        dry_run: bool,
        name: &str,
        (seen, note): (&Seen, &Note),
        edit: impl FnOnce(&mut All) -> Result<(), Problem>,
    ) -> Result<Option<ReceiverView>, Problem> {
        let _one_at_a_time = self.writing.lock().await;
        let before: All = {
            let inner = self.lock();
            if let Some(kept) = inner.receivers.get(name) {
                seen.check(&format!("receiver \"{name}\""), &kept.tag(inner.run))?;
            }
            let each = inner.receivers.iter();
            each.map(|(name, kept)| (name.clone(), kept.receiver.clone()))
                .collect()
        };
        let mut after = before.clone();
        edit(&mut after)?;
        if let Some(receiver) = after.get(name) {
            self.check_command(receiver)?;
        }
        if dry_run {
            return Ok(after.get(name).map(Receiver::view));
        }
        self.may_write(RECEIVERS_FILE)?;
        let bytes = secrets::write(after.values());
        self.files.write(RECEIVERS_FILE, bytes).await?;
        note.seen(shown(before.get(name)), shown(after.get(name)));
        let mut inner = self.lock();
        inner.is_dirty = true;
        match after.remove(name) {
            None => drop(inner.receivers.remove(name)),
            Some(receiver) => {
                // It was sent what it was sent, wherever it is now.
                let known = inner.receivers.get(name);
                let sent = known.map(|kept| kept.outbox.sent().clone());
                inner.add(receiver, Outbox::new(sent.unwrap_or_default()));
            }
        }
        Ok(inner.receivers.get(name).map(view))
    }

    fn check_command(&self, receiver: &Receiver) -> Result<(), Problem> {
        let Channel::Command(to) = &receiver.channel else {
            return Ok(());
        };
        let commands = self.commands();
        if commands.iter().any(|known| known.name == to.name) {
            return Ok(());
        }
        let known: Vec<&str> = commands.iter().map(|it| it.name.as_str()).collect();
        let has = if known.is_empty() {
            "none at all".to_owned()
        } else {
            known.join(", ")
        };
        let detail = format!(
            "node.toml has no [[alert_command]] \"{}\"; it has {has}",
            to.name
        );
        Err(Problem::new(Code::InvalidObjects, detail).hint(
            "programs that are run with alerts stand in node.toml, because whoever may use the API is not to choose them: \
             [[alert_command]] with name and argv, then restart",
        ))
    }

    pub(super) async fn create_receiver(
        &self,
        wanted: WantedReceiver,
        dry_run: bool,
        note: &Note,
    ) -> Result<ReceiverView, Problem> {
        let receiver = wanted.make()?;
        receiver.check_address()?;
        let name = receiver.name.clone();
        let seen = Seen::default();
        let made = self.edit(dry_run, &name, (&seen, note), |all| {
            if all.contains_key(&receiver.name) {
                let detail = format!("receiver \"{}\" exists already", receiver.name);
                return Err(Problem::new(Code::AlreadyExists, detail));
            }
            if all.len() >= RECEIVERS_MAX {
                let detail = format!("there are {RECEIVERS_MAX} receivers already");
                return Err(Problem::new(Code::InvalidObjects, detail));
            }
            all.insert(receiver.name.clone(), receiver);
            Ok(())
        });
        made.await?.ok_or_else(gone)
    }

    pub(super) async fn set_receiver(
        &self,
        name: &str,
        patch: &Value,
        change: &SeenChange,
    ) -> Result<ReceiverView, Problem> {
        find(&self.lock(), name)?;
        let set = self.edit(change.dry_run, name, (&change.seen, &change.note), |all| {
            let known = all.get_mut(name).ok_or_else(gone)?;
            *known = known.patched(patch)?;
            known.check_address()
        });
        set.await?.ok_or_else(gone)
    }

    pub(super) async fn delete_receiver(
        &self,
        name: &str,
        change: &SeenChange,
    ) -> Result<(), Problem> {
        find(&self.lock(), name)?;
        let deleted = self.edit(change.dry_run, name, (&change.seen, &change.note), |all| {
            all.remove(name);
            Ok(())
        });
        deleted.await.map(drop)
    }

    /// Sends a receiver a message that says that nothing is wrong.
    pub(super) async fn try_receiver(
        &self,
        name: &str,
        by: &str,
        dry_run: bool,
    ) -> Result<(), Problem> {
        let receiver = find(&self.lock(), name)?.receiver.clone();
        self.check_command(&receiver)?;
        if dry_run {
            return Ok(());
        }
        let message = Message::test(&self.node, name, rfc3339(moment().wall), by);
        let sent = deliver::send(&receiver, &self.commands(), &message).await;
        match sent {
            Ok(()) => {
                // What waits goes now.
                if let Some(kept) = self.lock().receivers.get_mut(name) {
                    kept.outbox.hurry();
                }
                Ok(())
            }
            Err(failure) => {
                let detail = format!("receiver {name}: {}", failure.0);
                Err(Problem::new(Code::AlertNotDelivered, detail))
            }
        }
    }
}

/// It was there a moment ago.
fn gone() -> Problem {
    Problem::new(
        Code::NotFound,
        "somebody has deleted the receiver meanwhile",
    )
}
