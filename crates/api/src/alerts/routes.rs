//! `alerts`: what fires, what is done about it, the rules, the receivers.

use super::keep::{Alerting, moment};
use crate::account_parts::SecretBody;
use crate::answer::{Answer, WithTag};
use crate::describe::Paths;
use crate::etag::tag_of;
use crate::listing::{Listed, Listing, Row, rows};
use crate::noted;
use crate::parts::{Named, Wanted};
use crate::plain_change::{self, PlainChange, Refusals};
use accounts::Principal;
use alerts::{
    AlertView, Board, CommandTo, Mail, ReceiverView, RuleSettings, RuleView, SilenceView,
    WantedReceiver, WantedSilence, Webhook,
};
use axum::extract::Extension;
use manifest::code::Code;
use manifest::list::Columns;
use manifest::problem::Problem;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

type The = Extension<Arc<Alerting>>;
type Who = Extension<Principal>;

pub(crate) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/alerts",
            "what is wrong enough to be known: `alert ls`",
            list_alerts,
        )
        .get(
            "/api/v1/alerts/{id}",
            "one alert, with what happened to it",
            alert,
        )
        .post(
            "/api/v1/alerts/{id}/acknowledge",
            "somebody takes care of it: no more reminders of it are sent",
            acknowledge,
        )
        .but(&[Code::InvalidObjects], |paths| {
            paths.delete(
                "/api/v1/alerts/{id}/acknowledge",
                "nobody takes care of it any more",
                unacknowledge,
            )
        })
        .post(
            "/api/v1/alerts/{id}/silence",
            "for a time nothing is sent of it, also where it comes again",
            silence_alert,
        )
        .post(
            "/api/v1/alerts/{id}/unsilence",
            "ends the silence that is of it alone",
            unsilence_alert,
        )
        .get("/api/v1/alerts/silences", "silences that last", silences)
        .post(
            "/api/v1/alerts/silences",
            "for a time nothing is sent of alerts that fit",
            create_silence,
        )
        .but(OF_ENDS, |paths| {
            paths.delete(
                "/api/v1/alerts/silences/{id}",
                "ends a silence",
                end_silence,
            )
        })
        .get(
            "/api/v1/alerts/rules",
            "when alerts fire: `alert rules`",
            rules,
        )
        .get("/api/v1/alerts/rules/{id}", "one rule", rule)
        .but(OF_OTHERS, |paths| {
            paths.put(
                "/api/v1/alerts/rules/{id}",
                "changes a rule; what the body does not name is as the rule has it",
                set_rule,
            )
        })
        .with(of_receivers)
}

/// What only making something, or an alert, may be refused for.
const OF_OTHERS: &[Code] = &[Code::AlreadyExists, Code::InUse];

/// What the end of something is never refused for.
const OF_ENDS: &[Code] = &[Code::AlreadyExists, Code::InUse, Code::InvalidObjects];

fn of_receivers(paths: Paths) -> Paths {
    paths
        .get("/api/v1/alerts/receivers", "who is sent alerts", receivers)
        .but(&[Code::NotFound, Code::InUse], |paths| {
            paths.post(
                "/api/v1/alerts/receivers",
                "makes a receiver",
                create_receiver,
            )
        })
        .get("/api/v1/alerts/receivers/{name}", "one receiver", receiver)
        .but(OF_OTHERS, |paths| {
            paths.patch(
                "/api/v1/alerts/receivers/{name}",
                "changes a receiver; secrets that the body does not name stay",
                set_receiver,
            )
        })
        .but(OF_ENDS, |paths| {
            paths.delete(
                "/api/v1/alerts/receivers/{name}",
                "deletes the receiver",
                delete_receiver,
            )
        })
        .post(
            "/api/v1/alerts/receivers/{name}/test",
            "sends it a message that says that nothing is wrong",
            test_receiver,
        )
        .or(&[Code::AlertNotDelivered])
}

rows!(
    SilenceView: "id" in ["id", "rule", "kind", "object", "until", "by", "created"], by "";
    RuleView: "id" in ["id", "severity", "enabled", "is_changed", "firing"], by "";
    ReceiverView: "name" in ["name", "kind", "enabled", "least", "delivered", "failed", "waiting"], by "";
);

impl Row for AlertView {
    const COLUMNS: Columns = Columns {
        known: &[
            "id", "state", "severity", "rule", "kind", "object", "fired", "resolved",
        ],
        key: "id",
        order: "-id",
    };
    const MORE: Option<(&'static str, &'static str)> = Some((
        "resolved",
        "Also list alerts that are over: the last 2,000.",
    ));
}

/// Alerts, rules and receivers.
pub(super) struct OfAlerts;

impl Refusals for OfAlerts {
    const CODES: &'static [Code] = &[
        Code::BadRequest,
        Code::NotFound,
        Code::AlreadyExists,
        Code::InvalidObjects,
        Code::InUse,
        Code::StateNotSaved,
        Code::Stopping,
    ];
}

/// A message that is only sent.
pub(super) struct OfTests;

impl Refusals for OfTests {
    const CODES: &'static [Code] = &[Code::BadRequest, Code::NotFound, Code::InvalidObjects];
}

/// How alerts, rules and receivers are changed.
type AlertChange = PlainChange<OfAlerts>;

/// How a rule or receiver that is there is changed.
pub(super) type SeenChange = plain_change::SeenChange<OfAlerts>;

/// A note that is written to an alert.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    /// What is done about it, for others.
    #[serde(default)]
    note: String,
}

fn number(what: &str, id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| {
        let detail = format!("there is no {what} {id}");
        Problem::new(Code::NotFound, detail)
            .hint(format!("`causeway alert` lists each {what} by its number"))
    })
}

/// How something of a board is, as JSON has it.
fn shown(view: impl Serialize) -> Value {
    serde_json::to_value(view).unwrap_or_default()
}

fn alert_of(board: &Board, id: u64) -> Value {
    shown(
        board
            .alert(id)
            .map(|alert| board.view(alert, moment().wall)),
    )
}

fn silence_of(board: &Board, id: u64) -> Value {
    let all = board.silences(moment().wall);
    shown(all.into_iter().find(|silence| silence.id == id))
}

impl Alerting {
    /// Makes a change of the board, and says to the audit log what `see` shows before and after it.
    async fn change_seen<T>(
        &self,
        dry_run: bool,
        note: &noted::Note,
        see: impl Fn(&Board) -> Value,
        edit: impl Fn(&mut Board) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let seen = |board: &mut Board| {
            let before = see(board);
            let made = edit(board)?;
            Ok((made, before, see(board)))
        };
        let (made, before, after) = self.change(dry_run, seen).await?;
        note.seen(before, after);
        Ok(made)
    }

    fn view(&self, id: u64) -> Result<AlertView, Problem> {
        let inner = self.lock();
        let alert = inner.board.alert(id);
        let view = alert.map(|alert| inner.board.view(alert, moment().wall));
        view.ok_or_else(|| {
            let detail = format!("there is no alert {id}");
            Problem::new(Code::NotFound, detail)
                .hint("`causeway alert ls --resolved` lists those that are known")
        })
    }

    fn silence_view(&self, id: u64) -> Result<SilenceView, Problem> {
        let all = self.lock().board.silences(moment().wall);
        let found = all.into_iter().find(|silence| silence.id == id);
        found.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no silence {id}")))
    }
}

async fn list_alerts(Extension(alerting): The, listing: Listing<AlertView>) -> Listed<AlertView> {
    let resolved = listing.more;
    let all = alerting.lock().board.list(resolved, moment().wall);
    listing.show(Ok(all))
}

async fn alert(Extension(alerting): The, Named(id): Named) -> Answer<AlertView> {
    Answer(number("alert", &id).and_then(|id| alerting.view(id)))
}

async fn acknowledge(
    Extension(alerting): The,
    Extension(principal): Who,
    Named(id): Named,
    change: AlertChange,
    Wanted(Note { note }): Wanted<Note>,
) -> Answer<AlertView> {
    let run = async {
        let id = number("alert", &id)?;
        let edit = |board: &mut Board| board.acknowledge(id, &principal.name, &note, moment());
        let see = |board: &Board| alert_of(board, id);
        alerting
            .change_seen(change.dry_run, &change.note, see, edit)
            .await?;
        if !change.dry_run {
            alerting.report_care(id, true, &principal.name);
        }
        alerting.view(id)
    };
    Answer(run.await)
}

async fn unacknowledge(
    Extension(alerting): The,
    Extension(principal): Who,
    Named(id): Named,
    change: AlertChange,
) -> Answer<AlertView> {
    let run = async {
        let id = number("alert", &id)?;
        let edit = |board: &mut Board| board.unacknowledge(id, &principal.name, moment());
        let see = |board: &Board| alert_of(board, id);
        alerting
            .change_seen(change.dry_run, &change.note, see, edit)
            .await?;
        if !change.dry_run {
            alerting.report_care(id, false, &principal.name);
        }
        alerting.view(id)
    };
    Answer(run.await)
}

async fn silence_alert(
    Extension(alerting): The,
    Extension(principal): Who,
    Named(id): Named,
    change: AlertChange,
    Wanted(wanted): Wanted<WantedSilence>,
) -> Answer<AlertView> {
    let run = async {
        let id = number("alert", &id)?;
        let edit =
            |board: &mut Board| board.silence_alert(id, wanted.clone(), &principal.name, moment());
        let see = |board: &Board| alert_of(board, id);
        alerting
            .change_seen(change.dry_run, &change.note, see, edit)
            .await?;
        alerting.view(id)
    };
    Answer(run.await)
}

async fn unsilence_alert(
    Extension(alerting): The,
    Named(id): Named,
    change: AlertChange,
) -> Answer<AlertView> {
    let run = async {
        let id = number("alert", &id)?;
        let edit = |board: &mut Board| board.unsilence_alert(id, moment());
        let see = |board: &Board| alert_of(board, id);
        alerting
            .change_seen(change.dry_run, &change.note, see, edit)
            .await?;
        alerting.view(id)
    };
    Answer(run.await)
}

async fn silences(Extension(alerting): The, listing: Listing<SilenceView>) -> Listed<SilenceView> {
    let all = alerting.lock().board.silences(moment().wall);
    listing.show(Ok(all))
}

async fn create_silence(
    Extension(alerting): The,
    Extension(principal): Who,
    change: AlertChange,
    Wanted(wanted): Wanted<WantedSilence>,
) -> Answer<SilenceView> {
    let run = async {
        let edit = |board: &mut Board| {
            let id = board.silence(wanted.clone(), &principal.name, moment())?;
            let all = board.silences(moment().wall).into_iter();
            Ok((id, all.into_iter().find(|silence| silence.id == id)))
        };
        let (id, made) = alerting.change(change.dry_run, edit).await?;
        made.map_or_else(|| alerting.silence_view(id), Ok)
    };
    Answer(run.await)
}

async fn end_silence(
    Extension(alerting): The,
    Named(id): Named,
    change: AlertChange,
) -> Answer<()> {
    let run = async {
        let id = number("silence", &id)?;
        let edit = |board: &mut Board| board.end_silence(id);
        let see = |board: &Board| silence_of(board, id);
        alerting
            .change_seen(change.dry_run, &change.note, see, edit)
            .await
    };
    Answer(run.await)
}

async fn rules(Extension(alerting): The, listing: Listing<RuleView>) -> Listed<RuleView> {
    let all = alerting.lock().board.rules();
    listing.show(Ok(all))
}

/// Stands for what was asked for of a rule, and not for how many alerts there are of it.
fn tag_of_rule(rule: &RuleView) -> String {
    let asked = RuleView {
        firing: 0,
        ..rule.clone()
    };
    tag_of(&asked)
}

async fn rule(Extension(alerting): The, Named(id): Named) -> WithTag<RuleView> {
    let found = alerting.lock().board.rule(&id);
    WithTag(Ok(found.map(|rule| (Some(tag_of_rule(&rule)), rule))))
}

async fn set_rule(
    Extension(alerting): The,
    Named(id): Named,
    change: SeenChange,
    Wanted(wanted): Wanted<RuleSettings>,
) -> Answer<RuleView> {
    let run = async {
        let edit = |board: &mut Board| {
            let before = tag_of_rule(&board.rule(&id)?);
            change.seen.check(&format!("rule \"{id}\""), &before)?;
            board.set_rule(&id, wanted.clone())?;
            board.rule(&id)
        };
        let see = |board: &Board| shown(board.rule(&id).ok());
        alerting
            .change_seen(change.dry_run, &change.note, see, edit)
            .await
    };
    Answer(run.await)
}

async fn receivers(
    Extension(alerting): The,
    listing: Listing<ReceiverView>,
) -> Listed<ReceiverView> {
    listing.show(Ok(alerting.receivers()))
}

async fn receiver(Extension(alerting): The, Named(name): Named) -> WithTag<ReceiverView> {
    let found = alerting.receiver(&name);
    WithTag(Ok(found.map(|(tag, receiver)| (Some(tag), receiver))))
}

const MEMBERS: &str = "\"name\", exactly one of \"webhook\" (\"url\", may have \"token\", \"ca\"), \"mail\" (\"server\", \"from\", \"to\", may \
                       have \"port\", \"encryption\", \"user\", \"password\", \"ca\") and \"command\" (\"name\"), and may have \
                       \"enabled\", \"least\", \"rules\", \"group_seconds\", \"remind_hours\", \"resolved\"";

async fn create_receiver(
    Extension(alerting): The,
    change: AlertChange,
    body: SecretBody<WantedReceiver>,
) -> Answer<ReceiverView> {
    let run = async {
        let wanted: WantedReceiver = body.read(MEMBERS)?;
        alerting
            .create_receiver(wanted, change.dry_run, &change.note)
            .await
    };
    Answer(run.await)
}

/// Members of a receiver that change, as a merge patch (RFC 7396); what is `null` is taken away.
#[derive(Deserialize)]
#[serde(transparent)]
struct ReceiverPatch(serde_json::Map<String, Value>);

impl JsonSchema for ReceiverPatch {
    fn schema_name() -> Cow<'static, str> {
        "ReceiverPatch".into()
    }

    /// The members of a receiver, none of which has to be there.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut whole = optional(WantedReceiver::json_schema(generator));
        let parts = [
            ("webhook", Webhook::json_schema(generator)),
            ("mail", Mail::json_schema(generator)),
            ("command", CommandTo::json_schema(generator)),
        ];
        for (name, part) in parts {
            let part = optional(part).to_value();
            whole.ensure_object()["properties"][name] =
                json!({ "anyOf": [part, { "type": "null" }] });
        }
        let meaning = "Members of a receiver that change (RFC 7396); what is `null` is taken away.";
        whole.insert("description".to_owned(), meaning.into());
        whole
    }
}

/// The same, and no member has to be there.
fn optional(mut schema: Schema) -> Schema {
    schema.remove("required");
    schema
}

async fn set_receiver(
    Extension(alerting): The,
    Named(name): Named,
    change: SeenChange,
    body: SecretBody<ReceiverPatch>,
) -> Answer<ReceiverView> {
    let run = async {
        let ReceiverPatch(patch) = body.read(MEMBERS)?;
        let patch = Value::Object(patch);
        alerting.set_receiver(&name, &patch, &change).await
    };
    Answer(run.await)
}

async fn delete_receiver(
    Extension(alerting): The,
    Named(name): Named,
    change: SeenChange,
) -> Answer<()> {
    Answer(alerting.delete_receiver(&name, &change).await)
}

async fn test_receiver(
    Extension(alerting): The,
    Extension(principal): Who,
    Named(name): Named,
    change: PlainChange<OfTests>,
) -> Answer<()> {
    let sent = alerting.try_receiver(&name, &principal.name, change.dry_run);
    let sent = sent.await;
    change.note.seen(
        Value::Null,
        json!({ "sent": "a message that says that nothing is wrong" }),
    );
    Answer(sent)
}
