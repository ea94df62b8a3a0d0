//! What an entry of the audit log says, in the words that the page and the command line show: pure.

use crate::entry::Entry;
use crate::event::Object;
use manifest::code::Code as ErrorCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry as people read it: who is before these.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct AuditWords {
    /// What was done or tried, as it stands before what it was about: `changed the size of`.
    pub did: String,
    /// What it was about: `LUN vm01`, `LUN vm01 and 3 more`; empty where `did` says it all.
    pub about: String,
    /// From where, and how they were known: `10.0.0.7, token`.
    pub from: String,
    /// What came of it: `done`, `begun`, `not allowed`, `refused`, `failed`, with the error code.
    pub result: String,
}

impl AuditWords {
    pub(crate) fn of(entry: &Entry) -> Self {
        let path = entry.path.split('?').next().unwrap_or_default();
        let below = path.strip_prefix("/api/v1/").unwrap_or(path);
        let parts: Vec<&str> = below.split('/').collect();
        let about = match parts.as_slice() {
            // Whoever did it is said already.
            ["login" | "logout" | "me", ..] => String::new(),
            _ => about(entry, &parts),
        };
        let did = match entry.bad_token {
            true => sent(entry),
            false => done_or_tried(did(entry, &parts, about.is_empty()), entry.status),
        };
        Self {
            did,
            about,
            from: from(entry),
            result: came_of(entry),
        }
    }

    /// As a column has it: `made LUN vm01`, `logged in`.
    #[must_use]
    pub fn change(&self) -> String {
        format!("{} {}", self.did, self.about).trim_end().to_owned()
    }
}

/// What was sent as a proof, before the token that it was once.
fn sent(entry: &Entry) -> String {
    let is_known = entry.object.is_some();
    let word = if is_known {
        "sent the ended"
    } else {
        "sent a token that nobody knows"
    };
    word.to_owned()
}

/// What is not done was tried: `tried to make` for `made`.
fn done_or_tried(did: &'static str, status: u16) -> String {
    if status < 300 {
        return did.to_owned();
    }
    let (verb, rest) = did.split_once(' ').unwrap_or((did, ""));
    let known = TRIED.iter().find(|(past, _)| *past == verb);
    let verb = known.map_or(verb, |(_, now)| now);
    format!("tried to {verb} {rest}").trim_end().to_owned()
}

/// Verbs as they are of what was done, and of what was tried.
const TRIED: [(&str, &str); 31] = [
    ("accepted", "accept"),
    ("acknowledged", "acknowledge"),
    ("added", "add"),
    ("adopted", "adopt"),
    ("applied", "apply"),
    ("cancelled", "cancel"),
    ("changed", "change"),
    ("deleted", "delete"),
    ("destroyed", "destroy"),
    ("discarded", "discard"),
    ("drained", "drain"),
    ("ended", "end"),
    ("forgot", "forget"),
    ("logged", "log"),
    ("made", "make"),
    ("opened", "open"),
    ("promoted", "promote"),
    ("read", "read"),
    ("removed", "remove"),
    ("renamed", "rename"),
    ("restarted", "restart"),
    ("restored", "restore"),
    ("revoked", "revoke"),
    ("set", "set"),
    ("silenced", "silence"),
    ("started", "start"),
    ("stopped", "stop"),
    ("tested", "test"),
    ("took", "take"),
    ("tore", "tear"),
    ("went", "go"),
];

/// `alone`: nothing stands behind it.
fn did(entry: &Entry, parts: &[&str], alone: bool) -> &'static str {
    let operation = entry.asked["operation"].as_str();
    match (parts, alone) {
        (["login"], _) => "logged in",
        (["logout"], _) => "logged out",
        (["me", "password"], _) => "changed their own password",
        (["me", ..], _) => "ended their other sessions",
        (["apply"], true) => "applied a document",
        (["apply"], false) => "changed with a document",
        (["objects"], true) => "made several objects",
        (["orphans", ..], true) => "adopted LUNs",
        (["orphans", ..], false) => "adopted",
        (["generations", "accept"], true) => "accepted the older objects",
        (["generations", "accept"], false) => "accepted the older state of",
        (["generations", ..], true) => "went back to an earlier state",
        (["generations", ..], false) => "went back to an earlier state of",
        (["restart"], _) => "restarted",
        (["node", "drain"], _) => "drained",
        (["config", "reload"], _) => "read again",
        (["luns", _, "scrub"], _) => match operation {
            Some("start") => "started a scrub of",
            Some("stop") => "stopped a scrub of",
            Some(_) | None => "changed the scrub of",
        },
        (["luns", _, "mirror"], _) => match operation {
            Some("add") => "added a copy of",
            Some("remove") => "removed a copy of",
            Some("promote") => "promoted the copy here of",
            Some(_) | None => "changed the copies of",
        },
        (["pools", _, "journal"], _) => match operation {
            Some("reopen") => "opened the journal of",
            Some("discard") => "discarded the journal of",
            Some(_) | None => "changed the journal of",
        },
        (["bench", "runs", _, "cancel"], _) => "cancelled",
        (["lab", "beds", _, "links"], _) => "changed a link of",
        (["alerts", "receivers", _, "test"], _) => "tested",
        (["alerts", "silences", _], _) => "ended",
        // One may have the name of an act.
        (["alerts", "receivers" | "rules", _], _) => method(&entry.method, parts[0]),
        ([_, _, act], _) => act_of(&entry.method, act).unwrap_or(method(&entry.method, parts[0])),
        _ => method(&entry.method, parts[0]),
    }
}

/// By what stands behind the name of an object.
fn act_of(method: &str, act: &str) -> Option<&'static str> {
    Some(match (method, act) {
        ("DELETE", "sessions") => "ended all logins of",
        ("POST", "resize") => "changed the size of",
        ("POST", "rename") => "renamed",
        ("POST", "restore") => "restored",
        ("POST", "purge") => "destroyed the data of",
        ("POST", "cancel") => "cancelled",
        ("POST", "acknowledge") => "acknowledged",
        ("DELETE", "acknowledge") => "took back the acknowledgement of",
        ("POST", "silence") => "silenced",
        ("POST", "unsilence") => "ended the silence of",
        _ => return None,
    })
}

/// By the method, where the noun does not say it better.
fn method(method: &str, noun: &str) -> &'static str {
    match (method, noun) {
        ("POST", "bench" | "lab") => "started",
        ("DELETE", "bench" | "disks") => "forgot",
        ("DELETE", "lab") => "tore down",
        ("DELETE", "sessions") => "ended",
        ("DELETE", "tokens") => "revoked",
        ("DELETE", "grants") => "took away",
        ("POST", _) => "made",
        ("PUT", _) => "set",
        ("DELETE", _) => "deleted",
        _ => "changed",
    }
}

/// What a path is about where it names none of them, and nobody knows which was meant.
fn one_of(parts: &[&str]) -> &'static str {
    match parts {
        ["luns", ..] => "a LUN",
        ["targets", ..] => "a target",
        ["hosts", ..] => "a host",
        ["grants", ..] => "a grant",
        ["users", ..] => "a user",
        ["tokens", ..] => "a token",
        ["alerts", "receivers", ..] => "a receiver",
        ["alerts", "silences", ..] => "a silence",
        ["bench", ..] => "a bench run",
        ["lab", ..] => "a lab bed",
        _ => "",
    }
}

fn about(entry: &Entry, parts: &[&str]) -> String {
    let Some(Object { kind, name }) = &entry.object else {
        let is_said = entry.bad_token;
        return if is_said { "" } else { one_of(parts) }.to_owned();
    };
    let one = match (kind.as_str(), name.as_str()) {
        ("node", "settings") => "the settings of the node".to_owned(),
        ("node", _) => "the node".to_owned(),
        ("lun", name) => format!("LUN {name}"),
        (kind, name) => format!("{kind} {name}"),
    };
    match entry.objects.len() {
        0 | 1 => one,
        several => format!("{one} and {} more", several - 1),
    }
}

fn from(entry: &Entry) -> String {
    let place = entry.from.as_deref().unwrap_or("this machine");
    let how = match entry.via.as_str() {
        "socket" => "unix socket",
        "session" => "session of a login",
        "token" => "token",
        "token_file" => "token of the file",
        "loopback" | "nobody" => "not logged in",
        other => other,
    };
    format!("{place}, {how}")
}

/// What came of it, with the code and the job.
fn came_of(entry: &Entry) -> String {
    let is_cancelled = entry.code.as_deref() == Some(&ErrorCode::JobCancelled.to_string());
    let mut words = if is_cancelled {
        "cancelled".to_owned()
    } else {
        result(entry.status).to_owned()
    };
    if let Some(code) = &entry.code {
        words.push_str(&format!(", {code}"));
    }
    if let Some(job) = entry.job {
        words.push_str(&format!(", job {job}"));
    }
    words
}

const fn result(status: u16) -> &'static str {
    match status {
        202 => "begun",
        0..300 => "done",
        401 | 403 => "not allowed",
        500.. => "failed",
        300..500 => "refused",
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::{Value, json};

    fn entry(method: &str, path: &str, object: Option<(&str, &str)>) -> Entry {
        Entry {
            who: "eve".to_owned(),
            via: "token".to_owned(),
            from: Some("10.0.0.7".to_owned()),
            method: method.to_owned(),
            path: format!("/api/v1/{path}"),
            object: object.map(|(kind, name)| Object::new(kind, name)),
            before: Value::Null,
            after: Value::Null,
            objects: Vec::new(),
            asked: Value::Null,
            status: 200,
            code: None,
            job: None,
            bad_token: false,
            request_id: "1".to_owned(),
        }
    }

    fn said(entry: &Entry) -> String {
        AuditWords::of(entry).change()
    }

    /// Method and path, the kind and name of the object, and what is said of it. An object may have
    /// the name of an act.
    const SAID: &str = "\
        POST luns | lun/vm01 | made LUN vm01\n\
        PATCH luns/vm01 | lun/vm01 | changed LUN vm01\n\
        DELETE luns/vm01?force=true | lun/vm01 | deleted LUN vm01\n\
        POST luns/vm01/resize?force=false | lun/vm01 | changed the size of LUN vm01\n\
        POST luns/vm01/purge | lun/vm01 | destroyed the data of LUN vm01\n\
        PATCH luns/rename | lun/rename | changed LUN rename\n\
        PUT hosts/a | host/a | set host a\n\
        DELETE grants/a:b:c | grant/a:b:c | took away grant a:b:c\n\
        DELETE sessions/4 | session/4 | ended session 4\n\
        DELETE users/eve/sessions | user/eve | ended all logins of user eve\n\
        DELETE tokens/x | token/x | revoked token x\n\
        POST alerts/7/acknowledge | alert/7 | acknowledged alert 7\n\
        DELETE alerts/7/acknowledge | alert/7 | took back the acknowledgement of alert 7\n\
        POST alerts/receivers/mail/test | receiver/mail | tested receiver mail\n\
        PUT alerts/rules/r | rule/r | set rule r\n\
        DELETE alerts/receivers/acknowledge | receiver/acknowledge | deleted receiver acknowledge\n\
        DELETE alerts/silences/3 | silence/3 | ended silence 3\n\
        POST bench/runs | bench run/3 | started bench run 3\n\
        POST bench/runs/3/cancel | bench run/3 | cancelled bench run 3\n\
        POST lab/beds/1/links | lab bed/1 | changed a link of lab bed 1\n\
        DELETE lab/beds/1 | lab bed/1 | tore down lab bed 1\n\
        PATCH config | node/settings | changed the settings of the node\n\
        POST config/reload | node/settings | read again the settings of the node\n\
        POST restart | node/restart | restarted the node\n\
        POST node/drain?dry_run=false | node/drain | drained the node\n\
        POST login | user/eve | logged in\n\
        PUT me/password | user/eve | changed their own password\n\
        POST apply | lun/a | changed with a document LUN a\n\
        POST generations/3/rollback | lun/a | went back to an earlier state of LUN a\n\
        ";

    #[test]
    fn an_entry_says_in_plain_words_what_somebody_did_to_what() {
        for line in SAID.lines() {
            let mut parts = line.split('|').map(str::trim);
            let mut part = || parts.next().unwrap();
            let (asked, object, wanted) = (part(), part(), part());
            let (method, path) = asked.split_once(' ').unwrap();
            let object = object.split_once('/').unwrap();
            assert_eq!(said(&entry(method, path, Some(object))), wanted, "{asked}");
        }
        assert_eq!(said(&entry("POST", "apply", None)), "applied a document");
    }

    #[test]
    fn what_was_asked_for_and_how_many_it_were_is_said() {
        let mut scrub = entry("POST", "luns/a/scrub", Some(("lun", "a")));
        for (operation, wanted) in [
            (json!("start"), "started a scrub of LUN a"),
            (json!("stop"), "stopped a scrub of LUN a"),
            (Value::Null, "changed the scrub of LUN a"),
        ] {
            scrub.asked = json!({ "operation": operation });
            assert_eq!(said(&scrub), wanted);
        }
        let mut several = entry("POST", "objects", Some(("lun", "a")));
        several.objects = ["a", "b", "c"]
            .map(|name| Object::new("lun", name))
            .to_vec();
        assert_eq!(said(&several), "made LUN a and 2 more");
    }

    #[test]
    fn what_was_not_done_was_tried_and_each_verb_has_a_word_for_that() {
        for line in SAID.lines() {
            let mut parts = line.split('|').map(str::trim);
            let mut part = || parts.next().unwrap();
            let (asked, object, wanted) = (part(), part(), part());
            let (method, path) = asked.split_once(' ').unwrap();
            let mut tried = entry(method, path, Some(object.split_once('/').unwrap()));
            tried.status = 403;
            let (verb, rest) = wanted.split_once(' ').unwrap();
            let (_, now) = TRIED.iter().find(|(past, _)| *past == verb).unwrap();
            assert_eq!(said(&tried), format!("tried to {now} {rest}"), "{asked}");
        }
        let mut login = entry("POST", "login", None);
        login.status = 401;
        assert_eq!(said(&login), "tried to log in");
        // Who may not make it has not been read: which one was meant, nobody knows.
        let mut unread = entry("POST", "luns", None);
        unread.status = 403;
        assert_eq!(said(&unread), "tried to make a LUN");
    }

    #[test]
    fn a_token_that_is_none_is_said_to_be_that_whatever_it_was_sent_for() {
        let mut bad = entry("GET", "status", None);
        (bad.status, bad.bad_token) = (401, true);
        assert_eq!(said(&bad), "sent a token that nobody knows");
        bad.object = Some(Object::new("token", "backup"));
        assert_eq!(said(&bad), "sent the ended token backup");
        assert_eq!(AuditWords::of(&bad).result, "not allowed");
    }

    #[test]
    fn from_where_and_what_came_of_it_are_words() {
        let mut one = entry("POST", "luns", None);
        assert_eq!(AuditWords::of(&one).from, "10.0.0.7, token");
        (one.from, one.via) = (None, "socket".to_owned());
        assert_eq!(AuditWords::of(&one).from, "this machine, unix socket");
        for (status, wanted) in [
            (200, "done"),
            (202, "begun"),
            (403, "not allowed"),
            (409, "refused"),
            (503, "failed"),
        ] {
            one.status = status;
            assert_eq!(AuditWords::of(&one).result, wanted, "{status}");
        }
        one.code = Some("CWY3008".to_owned());
        assert_eq!(AuditWords::of(&one).result, "failed, CWY3008");
        (one.status, one.job) = (409, Some(7));
        assert_eq!(AuditWords::of(&one).result, "refused, CWY3008, job 7");
        one.code = Some("CWY5035".to_owned());
        assert_eq!(AuditWords::of(&one).result, "cancelled, CWY5035, job 7");
    }
}
