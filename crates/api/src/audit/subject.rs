//! What a request changes, and how that is now.

use crate::auth::Gate;
use crate::{tokens, users};
use axum::http::Method;
use controller::{Controller, Handle};
use events::Object;
use manifest::plan::{Section, Subject};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// What is changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// One of the objects.
    One(Subject),
    /// One of the objects, and what it is to be called.
    Renamed(Subject, String),
    /// Whatever the request says.
    Objects,
    User(String),
    Token(String),
    /// The node's settings: the answer says what was before and is after.
    Settings,
    /// Something else, of this kind.
    Other(&'static str, String),
    Nothing,
}

/// The number of a bench run, or what one that begins goes to.
fn of_run(number: Option<&str>, document: &Value) -> String {
    let text = |member: &str| document[member].as_str();
    // An address may have a password in it.
    let other = || {
        if document["url"].is_null() {
            "memory"
        } else {
            "url"
        }
    };
    let target = || text("lun").unwrap_or_else(other);
    number.map_or_else(|| target().to_owned(), str::to_owned)
}

/// The number of a bed of the lab, or the topology of one that is built.
fn of_bed(number: Option<&str>, document: &Value) -> String {
    let topology = || document["topology"].as_str().unwrap_or_default();
    number.map_or_else(|| topology().to_owned(), str::to_owned)
}

fn decoded(name: &str) -> String {
    let name = percent_decode_str(name).decode_utf8_lossy();
    name.into_owned()
}

/// What of alerts is changed: `noun` and what stands below it; `new`: a receiver that is made.
fn of_alerts(noun: &str, below: String, new: String) -> Target {
    match noun {
        "receivers" if below.is_empty() => Target::Other("receiver", new),
        "receivers" => Target::Other("receiver", below),
        "rules" => Target::Other("rule", below),
        "silences" => Target::Other("silence", below),
        number => Target::Other("alert", number.to_owned()),
    }
}

impl Target {
    /// What `method` at `path` changes; `document`: the body, `who`: whoever asks.
    pub(super) fn of(method: &Method, path: &str, document: &Value, who: &str) -> Self {
        let below = path.strip_prefix("/api/v1/").unwrap_or_default();
        let mut parts = below.split('/');
        let noun = parts.next().unwrap_or_default();
        let name = parts.next().filter(|name| !name.is_empty());
        let named = name.map(decoded);
        let text = |member: &str| document[member].as_str().unwrap_or_default().to_owned();
        // What is made has its name in the body.
        let made = || (method == Method::POST).then(|| text("name"));
        let of_section = |section, name: Option<String>| {
            let name = name.unwrap_or_default();
            Self::One(Subject { section, name })
        };
        let below = parts.next().unwrap_or_default();
        if below == "rename" {
            let renamed = path.strip_suffix("/rename").unwrap_or(path);
            return match Self::of(&Method::PATCH, renamed, document, who) {
                Self::One(subject) => Self::Renamed(subject, text("to")),
                other @ (Self::Renamed(..)
                | Self::Objects
                | Self::User(_)
                | Self::Token(_)
                | Self::Other(..)
                | Self::Settings
                | Self::Nothing) => other,
            };
        }
        let numbered = || Some(below).filter(|number| !number.is_empty());
        match noun {
            "luns" if ["scrub", "mirror"].contains(&below) => {
                Self::Other("lun", named.unwrap_or_default())
            }
            "luns" => of_section(Section::Lun, named.or_else(made)),
            "targets" => of_section(Section::Target, named.or_else(made)),
            "hosts" => of_section(Section::Host, named.or_else(made)),
            "grants" => {
                let made = || format!("{}:{}:{}", text("host"), text("target"), text("lun"));
                of_section(Section::Grant, Some(named.unwrap_or_else(made)))
            }
            "users" => Self::User(named.or_else(made).unwrap_or_default()),
            "tokens" => Self::Token(named.unwrap_or_default()),
            "pools" => Self::Other("pool", named.unwrap_or_default()),
            "sessions" => Self::Other("session", named.unwrap_or_default()),
            "bench" => Self::Other("bench run", of_run(numbered(), document)),
            "lab" => Self::Other("lab bed", of_bed(numbered(), document)),
            "config" => Self::Settings,
            "node" => Self::Other("node", named.unwrap_or_default()),
            "restart" => Self::Other("node", "restart".to_owned()),
            "jobs" => Self::Other("job", named.unwrap_or_default()),
            "disks" => Self::Other("disk", named.unwrap_or_default()),
            "alerts" => of_alerts(&named.unwrap_or_default(), decoded(below), text("name")),
            "apply" | "objects" | "orphans" | "generations" => Self::Objects,
            "login" => Self::User(text("user")),
            "logout" | "me" => Self::User(who.to_owned()),
            _ => Self::Nothing,
        }
    }

    /// What it is after a change that was answered so, with the name or number that it has now.
    pub(super) fn after(&self, answer: &Value) -> Self {
        let id = |of: &Value| match &of["id"] {
            Value::String(id) => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match self {
            Self::Renamed(subject, to) => Self::One(Subject {
                name: to.clone(),
                ..subject.clone()
            }),
            Self::Token(made) if made.is_empty() => Self::Token(id(answer).unwrap_or_default()),
            Self::Other("silence", made) if made.is_empty() => {
                Self::Other("silence", id(answer).unwrap_or_default())
            }
            Self::Other(kind @ "bench run", target) => {
                Self::Other(kind, id(&answer["run"]).unwrap_or_else(|| target.clone()))
            }
            Self::Other(kind @ "lab bed", target) => {
                Self::Other(kind, id(answer).unwrap_or_else(|| target.clone()))
            }
            other @ (Self::One(_)
            | Self::Objects
            | Self::User(_)
            | Self::Token(_)
            | Self::Other(..)
            | Self::Settings
            | Self::Nothing) => other.clone(),
        }
    }

    pub(super) fn object(&self) -> Option<Object> {
        let new = |kind: &str, name: &str| (!name.is_empty()).then(|| Object::new(kind, name));
        match self {
            Self::One(Subject { section, name }) | Self::Renamed(Subject { section, name }, _) => {
                new(&section.to_string(), name)
            }
            Self::User(name) => new("user", name),
            Self::Token(id) => new("token", id),
            Self::Other(kind, name) => new(kind, name),
            Self::Settings => new("node", "settings"),
            Self::Objects | Self::Nothing => None,
        }
    }

    /// How it is now; nothing where it is not there.
    pub(super) async fn see(&self, handle: &Handle, gate: &Gate) -> Value {
        match self {
            Self::One(subject) | Self::Renamed(subject, _) => {
                let (subject, section) = (subject.clone(), subject.section.to_string());
                let spec = handle
                    .call(move |controller| Box::pin(async move { controller.spec(&subject) }));
                let set = spec.await.ok().flatten();
                let set = serde_json::to_value(set).unwrap_or_default();
                set[section.as_str()][0].clone()
            }
            Self::User(name) => users::shown(gate, name),
            Self::Token(id) => tokens::shown(gate, id),
            Self::Other(kind, name) => {
                let (kind, name) = (*kind, name.clone());
                let seen = handle.call(move |controller| {
                    Box::pin(async move { of_node(&controller, kind, &name).await })
                });
                seen.await.ok().flatten().unwrap_or_default()
            }
            Self::Objects | Self::Settings | Self::Nothing => Value::Null,
        }
    }
}

/// How something of the node is now that is no object.
async fn of_node(controller: &Controller, kind: &str, name: &str) -> Option<Value> {
    Some(match kind {
        "session" => {
            let session = controller.session(name.parse().ok()?).await.ok()?;
            json!({
                "host": session.host, "initiator": session.initiator, "target": session.target,
                "from": session.from,
            })
        }
        "job" => json!(controller.job(name.parse().ok()?).ok()?),
        "disk" => json!(controller.disk(name).ok()?),
        "lun" => json!(controller.scrub(name, None).await.ok()?),
        "pool" => json!(controller.pool(name).await.ok()?.journal),
        _ => return None,
    })
}
