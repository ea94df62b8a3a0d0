//! What a request changes, and how that is now.

use crate::auth::Gate;
use crate::{tokens, users};
use axum::http::Method;
use controller::Handle;
use events::Object;
use manifest::plan::{Section, Subject};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// What is changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// One of the objects.
    One(Subject),
    /// Whatever the request says.
    Objects,
    User(String),
    Token(String),
    /// The node's settings: the answer says what was before and is after.
    Settings,
    /// Nothing that is shown before and after.
    Other(&'static str, String),
    Nothing,
}

/// The number of a bench run, or what one that begins goes to.
fn of_run(number: Option<&str>, document: &Value) -> String {
    let text = |member: &str| document[member].as_str();
    let target = || text("lun").or_else(|| text("url")).unwrap_or("memory");
    number.map_or_else(|| target().to_owned(), str::to_owned)
}

/// The number of a bed of the lab, or the topology of one that is built.
fn of_bed(number: Option<&str>, document: &Value) -> String {
    let topology = || document["topology"].as_str().unwrap_or_default();
    number.map_or_else(|| topology().to_owned(), str::to_owned)
}

impl Target {
    /// What `method` at `path` changes; `document`: the body.
    pub(super) fn of(method: &Method, path: &str, document: &Value) -> Self {
        let below = path.strip_prefix("/api/v1/").unwrap_or_default();
        let mut parts = below.split('/');
        let noun = parts.next().unwrap_or_default();
        let name = parts.next().filter(|name| !name.is_empty());
        let named = name.map(|name| {
            let name = percent_decode_str(name).decode_utf8_lossy();
            name.into_owned()
        });
        let text = |member: &str| document[member].as_str().unwrap_or_default().to_owned();
        // What is made has its name in the body.
        let made = || (method == Method::POST).then(|| text("name"));
        let of_section = |section, name: Option<String>| {
            let name = name.unwrap_or_default();
            Self::One(Subject { section, name })
        };
        match noun {
            "luns" if parts.next() == Some("scrub") => {
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
            "bench" => Self::Other("bench run", of_run(parts.next(), document)),
            "config" => Self::Settings,
            "lab" => Self::Other("lab bed", of_bed(parts.next(), document)),
            "apply" | "objects" | "orphans" | "generations" => Self::Objects,
            _ => Self::Nothing,
        }
    }

    /// What it is after a change that was answered so: `new_name`, or the one that was given.
    pub(super) fn after(self, new_name: Option<String>, answer: &Value) -> Self {
        match self {
            Self::One(subject) => {
                let name = new_name.unwrap_or(subject.name);
                Self::One(Subject { name, ..subject })
            }
            Self::Token(id) if id.is_empty() => {
                Self::Token(answer["id"].as_str().unwrap_or_default().to_owned())
            }
            other @ (Self::Objects
            | Self::User(_)
            | Self::Token(_)
            | Self::Other(..)
            | Self::Settings
            | Self::Nothing) => other,
        }
    }

    /// The answer says what was changed.
    pub(super) fn is_many(&self) -> bool {
        matches!(self, Self::Objects)
    }

    pub(super) fn object(&self) -> Option<Object> {
        let new = |kind: &str, name: &str| (!name.is_empty()).then(|| Object::new(kind, name));
        match self {
            Self::One(Subject { section, name }) => new(&section.to_string(), name),
            Self::User(name) => new("user", name),
            Self::Token(id) => new("token", id),
            Self::Other(kind, name) => new(kind, name),
            Self::Settings => new("node", "settings"),
            Self::Objects | Self::Nothing => None,
        }
    }

    /// All objects as they are now, where several may be changed.
    pub(super) async fn see_all(&self, handle: &Handle) -> Value {
        if !self.is_many() {
            return Value::Null;
        }
        let all = handle.call(|controller| Box::pin(async move { controller.export() }));
        let all = all.await.ok().and_then(Result::ok);
        serde_json::to_value(all).unwrap_or_default()
    }

    /// How it is now; nothing where it is not there.
    pub(super) async fn see(&self, handle: &Handle, gate: &Gate) -> Value {
        match self {
            Self::One(subject) => {
                let (subject, section) = (subject.clone(), subject.section.to_string());
                let spec = handle
                    .call(move |controller| Box::pin(async move { controller.spec(&subject) }));
                let set = spec.await.ok().flatten();
                let set = serde_json::to_value(set).unwrap_or_default();
                set[section.as_str()][0].clone()
            }
            Self::User(name) => users::shown(gate, name),
            Self::Token(id) => tokens::shown(gate, id),
            Self::Other("session", id) => {
                let Ok(id) = id.parse() else {
                    return Value::Null;
                };
                let session = handle
                    .call(move |controller| Box::pin(async move { controller.session(id).await }));
                let Ok(Ok(session)) = session.await else {
                    return Value::Null;
                };
                json!({
                    "host": session.host, "initiator": session.initiator, "target": session.target,
                    "from": session.from,
                })
            }
            Self::Other(..) | Self::Objects | Self::Settings | Self::Nothing => Value::Null,
        }
    }
}
