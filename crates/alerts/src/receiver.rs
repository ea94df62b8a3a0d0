//! Who is sent alerts, and how. Secrets are in it: what is shown is [`ReceiverView`], and what is
//! stored says so by its name.

use crate::address::refused_address;
use crate::alert::Alert;
use crate::rule::Rule;
use crate::severity::Severity;
use manifest::code::Code;
use manifest::name::check_object_name;
use manifest::problem::{FieldFault, Problem};
use manifest::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most addresses of a mail.
const ADDRESSES_MAX: usize = 50;

/// The longest text of a field, in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// The longest authority's certificate, in bytes.
const CA_BYTES_MAX: usize = 64 << 10;

/// How a mail server is talked to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// STARTTLS, and no mail without it.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Tls,
    /// None: only for a relay of this machine or of a network that is trusted. No password goes
    /// with it.
    None,
}

/// A webhook that is wanted.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where messages are posted: `https://HOST[:PORT]/PATH`, or `http://`. It is kept as a secret,
    /// because with many services whoever knows it may post.
    pub url: Secret,
    /// Sent as `Authorization: Bearer`.
    #[serde(default)]
    pub token: Option<Secret>,
    /// Certificates (PEM) that are believed instead of the system's.
    #[serde(default)]
    pub ca: Option<String>,
}

/// Mail that is wanted.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The mail server's name or address.
    pub server: String,
    /// Its port; 587, with `tls` 465, with `none` 25 where none is written.
    #[serde(default)]
    pub port: Option<u16>,
    /// How it is talked to.
    #[serde(default)]
    pub encryption: Encryption,
    /// Who logs in there.
    #[serde(default)]
    pub user: Option<String>,
    /// What proves it.
    #[serde(default)]
    pub password: Option<Secret>,
    /// The address that mails are from.
    pub from: String,
    /// The addresses that they go to.
    pub to: Vec<String>,
    /// Certificates (PEM) that are believed instead of the system's.
    #[serde(default)]
    pub ca: Option<String>,
}

/// A command that is wanted: what it runs stands in `node.toml`.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct CommandTo {
    /// The name of an `[[alert_command]]` in `node.toml`.
    pub name: String,
}

/// A receiver that is wanted: exactly one of `webhook`, `mail` and `command`.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct WantedReceiver {
    /// By which it is changed and tried.
    pub name: String,
    /// Whether it is sent anything.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The mildest severity that it is sent.
    #[serde(default = "warning")]
    pub least: Severity,
    /// Only alerts of these rules; empty: of all.
    #[serde(default)]
    pub rules: Vec<String>,
    /// How long what happens together is gathered for one message, in seconds.
    #[serde(default = "ten")]
    pub group_seconds: u64,
    /// How often it is reminded of what fires and nobody has acknowledged, in hours; 0: never.
    #[serde(default = "day")]
    pub remind_hours: u64,
    /// Whether it is sent that alerts are over.
    #[serde(default = "yes")]
    pub resolved: bool,
    /// Messages are posted as JSON.
    #[serde(default)]
    pub webhook: Option<Webhook>,
    /// Messages go by mail.
    #[serde(default)]
    pub mail: Option<Mail>,
    /// A program gets them.
    #[serde(default)]
    pub command: Option<CommandTo>,
}

const fn yes() -> bool {
    true
}

const fn warning() -> Severity {
    Severity::Warning
}

const fn ten() -> u64 {
    10
}

const fn day() -> u64 {
    24
}

/// Where a webhook is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookTo {
    /// By TLS.
    pub https: bool,
    /// Its name or address, without brackets.
    pub host: String,
    /// 443 or 80 where none is written.
    pub port: u16,
    /// Path and query: a secret.
    pub path: Secret,
    /// The whole address: a secret.
    pub url: Secret,
    /// What proves who posts.
    pub token: Option<Secret>,
    /// Certificates that are believed instead of the system's.
    pub ca: Option<String>,
}

/// Where mails go.
pub type MailTo = Mail;

/// How a receiver gets messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Channel {
    /// Posted as JSON.
    Webhook(WebhookTo),
    /// By mail.
    Mail(MailTo),
    /// To a program.
    Command(CommandTo),
}

/// Who is sent alerts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// The name by which it is changed.
    pub name: String,
    /// Whether it is sent anything.
    pub enabled: bool,
    /// The mildest severity that it is sent.
    pub least: Severity,
    /// Only alerts of these rules; empty: of all.
    pub rules: Vec<String>,
    /// How long what happens together is gathered, in seconds.
    pub group_seconds: u64,
    /// How often it is reminded, in hours; 0: never.
    pub remind_hours: u64,
    /// Whether it is sent that alerts are over.
    pub resolved: bool,
    /// How it gets messages.
    pub channel: Channel,
}

/// A webhook, without what is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct WebhookView {
    /// Where it is, without its path.
    pub at: String,
    /// Something is sent that proves who posts.
    pub has_token: bool,
    /// It has certificates of its own that are believed.
    pub has_ca: bool,
}

/// Mail, without what is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct MailView {
    /// The mail server.
    pub server: String,
    /// The one in force, written or not.
    pub port: u16,
    /// How it is talked to.
    pub encryption: Encryption,
    /// Who logs in there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A password is sent, by TLS only.
    pub has_password: bool,
    /// The address that mails are from.
    pub from: String,
    /// The addresses that they go to.
    pub to: Vec<String>,
    /// There are certificates of its own that are believed.
    pub has_ca: bool,
}

/// A program of this machine that gets messages.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct CommandView {
    /// The name of an `[[alert_command]]` in `node.toml`.
    pub name: String,
}

/// A receiver, without what is secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ReceiverView {
    /// By which it is changed and tried.
    pub name: String,
    /// `webhook`, `mail` or `command`.
    pub kind: String,
    /// Whether it is sent anything.
    pub enabled: bool,
    /// The mildest severity that it is sent.
    pub least: Severity,
    /// Only alerts of these rules; empty: of all.
    pub rules: Vec<String>,
    /// How long what happens together is gathered for one message, in seconds.
    pub group_seconds: u64,
    /// How often it is reminded, in hours; 0: never.
    pub remind_hours: u64,
    /// Whether it is sent that alerts are over.
    pub resolved: bool,
    /// Messages are posted as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookView>,
    /// Messages go by mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailView>,
    /// A program gets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandView>,
    /// Messages that were taken since the daemon started.
    pub delivered: u64,
    /// Attempts that failed since the daemon started.
    pub failed: u64,
    /// Alerts that wait to be sent.
    pub waiting: usize,
    /// When a message was taken last (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// When an attempt failed last (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// Why, where the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

fn wrong(field: &str, message: impl Into<String>) -> Problem {
    let message = message.into();
    let fault = FieldFault {
        field: field.to_owned(),
        message: message.clone(),
    };
    Problem::new(Code::InvalidObjects, format!("{field}: {message}")).fields(vec![fault])
}

fn plain(field: &str, text: &str) -> Result<(), Problem> {
    let bad = |letter: char| letter.is_control();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.contains(bad) {
        return Err(wrong(field, "write 1 to 2000 bytes on one line"));
    }
    Ok(())
}

fn secret(field: &str, secret: Option<&Secret>) -> Result<(), Problem> {
    let Some(secret) = secret else { return Ok(()) };
    let visible = |byte: &u8| (0x20..0x7f).contains(byte);
    let text = secret.reveal();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || !text.iter().all(visible) {
        return Err(wrong(field, "write 1 to 2000 ASCII characters on one line"));
    }
    Ok(())
}

fn certificates(field: &str, ca: Option<&String>) -> Result<(), Problem> {
    match ca {
        Some(ca) if ca.len() > CA_BYTES_MAX || !ca.contains("-----BEGIN CERTIFICATE-----") => {
            Err(wrong(field, "write certificates as PEM, 64 KiB at most"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A host's name, or an address.
fn host(field: &str, text: &str) -> Result<(), Problem> {
    let good =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':');
    if text.is_empty() || text.len() > 253 || !text.chars().all(good) {
        return Err(wrong(field, "write the name or the address of a host"));
    }
    Ok(())
}

fn address(field: &str, text: &str) -> Result<(), Problem> {
    let good = |letter: char| letter.is_ascii_graphic() && !"<>()[]\\,;:\"".contains(letter);
    let parts = text.split_once('@');
    let is_whole = parts.is_some_and(|(name, domain)| {
        !name.is_empty() && !domain.is_empty() && !domain.contains('@') && !domain.starts_with('.')
    });
    if text.len() > 254 || !is_whole || !text.chars().all(good) {
        return Err(wrong(
            field,
            format!("\"{text}\" is no mail address such as admin@example.com"),
        ));
    }
    Ok(())
}

/// Reads `http://HOST[:PORT][/PATH]`; nothing of it is in the message.
fn read_url(wanted: Webhook) -> Result<WebhookTo, Problem> {
    let refused = |why: &str| wrong("webhook.url", why);
    let text = wanted.url.reveal_text().unwrap_or_default().to_owned();
    let (https, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err(refused("write https://HOST[:PORT]/PATH, or http://")),
    };
    if text.len() > TEXT_BYTES_MAX || !text.chars().all(|it| it.is_ascii_graphic()) {
        return Err(refused(
            "write 2000 ASCII characters at most, without blanks",
        ));
    }
    if text.contains('#') {
        return Err(refused("leave out what begins with #"));
    }
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    if authority.contains('@') {
        return Err(refused(
            "leave out user and password; token is sent as Authorization: Bearer",
        ));
    }
    let (name, port) = match authority.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((name, port)) => (
                name,
                port.strip_prefix(':').or(port.is_empty().then_some("")),
            ),
            None => (inside, None),
        },
        None => match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, Some("")),
        },
    };
    let port = match port {
        Some("") => Some(if https { 443 } else { 80 }),
        Some(port) => port.parse::<u16>().ok().filter(|port| *port > 0),
        None => None,
    };
    let port = port.ok_or_else(|| refused("its port is none"))?;
    host("webhook.url", name)?;
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(WebhookTo {
        https,
        host: name.to_owned(),
        port,
        path: Secret::new(path.into_bytes()),
        url: wanted.url,
        token: wanted.token,
        ca: wanted.ca,
    })
}

impl Receiver {
    /// Refuses addresses that nothing would be sent to; a name is judged when it is known where it
    /// leads. Not for receivers that are stored: one of an earlier program is kept, and fails.
    ///
    /// # Errors
    /// It has such an address.
    pub fn check_address(&self) -> Result<(), Problem> {
        let (field, host) = match &self.channel {
            Channel::Webhook(to) => ("webhook.url", &to.host),
            Channel::Mail(to) => ("mail.server", &to.server),
            Channel::Command(_) => return Ok(()),
        };
        match host.parse().ok().and_then(refused_address) {
            Some(why) => Err(wrong(field, format!("{why}: nothing is sent there"))),
            None => Ok(()),
        }
    }
}

impl Mail {
    /// The port of the mail server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.encryption {
            Encryption::Starttls => 587,
            Encryption::Tls => 465,
            Encryption::None => 25,
        })
    }

    fn check(&self) -> Result<(), Problem> {
        host("mail.server", &self.server)?;
        if self.port == Some(0) {
            return Err(wrong("mail.port", "write 1 to 65535"));
        }
        address("mail.from", &self.from)?;
        if self.to.is_empty() || self.to.len() > ADDRESSES_MAX {
            return Err(wrong("mail.to", "write 1 to 50 addresses"));
        }
        for (at, to) in self.to.iter().enumerate() {
            address(&format!("mail.to[{at}]"), to)?;
        }
        secret("mail.password", self.password.as_ref())?;
        certificates("mail.ca", self.ca.as_ref())?;
        match (&self.user, &self.password) {
            (Some(user), Some(_)) => plain("mail.user", user)?,
            (None, None) => {}
            (Some(_), None) => {
                return Err(wrong("mail.password", "write it where there is a user"));
            }
            (None, Some(_)) => {
                return Err(wrong("mail.user", "write it where there is a password"));
            }
        }
        if self.encryption == Encryption::None && self.password.is_some() {
            let why = "without encryption no password is sent: write starttls or tls, or leave user and password out";
            return Err(wrong("mail.encryption", why));
        }
        Ok(())
    }
}

impl WantedReceiver {
    /// The receiver.
    ///
    /// # Errors
    /// What is wrong with it; no secret is in the message.
    pub fn make(self) -> Result<Receiver, Problem> {
        check_object_name(&self.name).map_err(|rule| wrong("name", rule))?;
        for (at, rule) in self.rules.iter().enumerate() {
            if Rule::named(rule).is_none() {
                let field = format!("rules[{at}]");
                return Err(wrong(&field, format!("there is no rule \"{rule}\"")));
            }
        }
        if self.group_seconds > 3_600 {
            return Err(wrong("group_seconds", "write 0 to 3600"));
        }
        if self.remind_hours > 8_784 {
            return Err(wrong("remind_hours", "write 0 to 8784"));
        }
        let channel = match (self.webhook, self.mail, self.command) {
            (Some(webhook), None, None) => {
                secret("webhook.token", webhook.token.as_ref())?;
                certificates("webhook.ca", webhook.ca.as_ref())?;
                Channel::Webhook(read_url(webhook)?)
            }
            (None, Some(mail), None) => {
                mail.check()?;
                Channel::Mail(mail)
            }
            (None, None, Some(command)) => {
                check_object_name(&command.name).map_err(|rule| wrong("command.name", rule))?;
                Channel::Command(command)
            }
            _ => return Err(wrong("", "write exactly one of webhook, mail and command")),
        };
        Ok(Receiver {
            name: self.name,
            enabled: self.enabled,
            least: self.least,
            rules: self.rules,
            group_seconds: self.group_seconds,
            remind_hours: self.remind_hours,
            resolved: self.resolved,
            channel,
        })
    }
}

/// What of a receiver is stored, with its secrets in it.
fn revealed(secret: Option<&Secret>) -> Value {
    secret
        .and_then(Secret::reveal_text)
        .map_or(Value::Null, Value::from)
}

impl Receiver {
    /// Whether it is sent this alert.
    #[must_use]
    pub fn wants(&self, alert: &Alert) -> bool {
        let named = self.rules.is_empty() || self.rules.contains(&alert.rule);
        self.enabled && named && alert.severity >= self.least
    }

    /// As it is stored, **with its secrets**; a [`WantedReceiver`] reads it.
    #[must_use]
    pub fn with_secrets(&self) -> Value {
        let (name, channel) = match &self.channel {
            Channel::Webhook(to) => {
                let (url, token) = (revealed(Some(&to.url)), revealed(to.token.as_ref()));
                (
                    "webhook",
                    json!({ "url": url, "token": token, "ca": to.ca }),
                )
            }
            Channel::Mail(to) => {
                let mail = json!({
                    "server": to.server,
                    "port": to.port,
                    "encryption": to.encryption,
                    "user": to.user,
                    "password": revealed(to.password.as_ref()),
                    "from": to.from,
                    "to": to.to,
                    "ca": to.ca,
                });
                ("mail", mail)
            }
            Channel::Command(to) => ("command", json!({ "name": to.name })),
        };
        json!({
            "name": self.name,
            "enabled": self.enabled,
            "least": self.least,
            "rules": self.rules,
            "group_seconds": self.group_seconds,
            "remind_hours": self.remind_hours,
            "resolved": self.resolved,
            name: channel,
        })
    }

    /// With some members changed, as a merge patch (RFC 7396) says; what it does not name stays,
    /// also secrets. Another kind takes the place of the one before.
    ///
    /// # Errors
    /// What comes of it is none; no secret is in the message.
    pub fn patched(&self, patch: &Value) -> Result<Self, Problem> {
        // Its own words may have a secret in them.
        let unread = || {
            let detail = "the body: not what a receiver has";
            Problem::new(Code::BadRequest, detail)
                .hint("the description of the interface has all members: GET /api/v1/openapi.json")
        };
        if !patch.is_object() {
            return Err(unread());
        }
        let mut whole = self.with_secrets();
        let kinds = ["webhook", "mail", "command"];
        let names = |value: &Value, kind: &str| value[kind].is_object();
        for kind in kinds {
            if names(patch, kind) && !names(&whole, kind) {
                let members = whole.as_object_mut().into_iter();
                members.for_each(|all| kinds.iter().for_each(|kind| drop(all.remove(*kind))));
            }
        }
        merge(&mut whole, patch);
        whole["name"] = Value::from(self.name.clone());
        let wanted: Result<WantedReceiver, _> = serde_json::from_value(whole);
        wanted.map_err(|_| unread())?.make()
    }

    /// As it is shown.
    #[must_use]
    pub fn view(&self) -> ReceiverView {
        let mut view = ReceiverView {
            name: self.name.clone(),
            kind: String::new(),
            enabled: self.enabled,
            least: self.least,
            rules: self.rules.clone(),
            group_seconds: self.group_seconds,
            remind_hours: self.remind_hours,
            resolved: self.resolved,
            webhook: None,
            mail: None,
            command: None,
            delivered: 0,
            failed: 0,
            waiting: 0,
            last_success: None,
            last_failure: None,
            problem: None,
        };
        view.kind = match &self.channel {
            Channel::Webhook(to) => {
                view.webhook = Some(WebhookView {
                    at: to.at(),
                    has_token: to.token.is_some(),
                    has_ca: to.ca.is_some(),
                });
                "webhook"
            }
            Channel::Mail(to) => {
                view.mail = Some(MailView {
                    server: to.server.clone(),
                    port: to.port(),
                    encryption: to.encryption,
                    user: to.user.clone(),
                    has_password: to.password.is_some(),
                    from: to.from.clone(),
                    to: to.to.clone(),
                    has_ca: to.ca.is_some(),
                });
                "mail"
            }
            Channel::Command(to) => {
                let name = to.name.clone();
                view.command = Some(CommandView { name });
                "command"
            }
        }
        .to_owned();
        view
    }
}

impl WebhookTo {
    /// Where it is, without its path.
    #[must_use]
    pub fn at(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        format!("{scheme}://{host}:{}", self.port)
    }
}

/// A merge patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(into) = target.as_object_mut() else {
        return;
    };
    for (name, value) in members {
        if value.is_null() {
            into.remove(name);
        } else {
            merge(into.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn read(value: Value) -> Result<Receiver, Problem> {
        let wanted: WantedReceiver = serde_json::from_value(value).expect("a right form");
        wanted.make()
    }

    fn hook(url: &str) -> Result<Receiver, Problem> {
        read(json!({ "name": "r", "webhook": { "url": url, "token": "t0ken" } }))
    }

    #[test]
    fn an_address_is_read_in_its_parts_and_nothing_else_is_taken() {
        for (url, at, path) in [
            ("https://h.example", "https://h.example:443", "/"),
            (
                "http://10.0.0.1:8080/a/b?c=d",
                "http://10.0.0.1:8080",
                "/a/b?c=d",
            ),
            (
                "https://[2001:db8::1]:99/x",
                "https://[2001:db8::1]:99",
                "/x",
            ),
            ("https://[::1]?x", "https://[::1]:443", "/?x"),
        ] {
            let Channel::Webhook(to) = hook(url).unwrap().channel else {
                panic!("{url}");
            };
            assert_eq!((to.at().as_str(), to.path.reveal_text()), (at, Some(path)));
        }
        for bad in [
            "",
            "h",
            "ftp://h/",
            "https://",
            "https:///x",
            "https://u:p@h/",
            "https://h:0/",
            "https://h:x/",
            "https://h:99999/",
            "https://h/#a",
            "https://h/ b",
            "https://h\r\nx: y/",
            "https://[::1/",
            "https://h\u{e9}/",
            "file:///etc/passwd",
            "https://[::1]x/",
        ] {
            let problem = hook(bad).expect_err(bad);
            assert_eq!(problem.code, Code::InvalidObjects);
            assert!(
                bad.len() < 3 || !problem.to_string().contains(bad),
                "{problem}"
            );
        }
    }

    #[test]
    fn an_address_that_nothing_is_sent_to_is_refused_by_its_field() {
        let mail = |server: &str| {
            let mail = json!({ "server": server, "from": "a@b", "to": ["c@d"] });
            read(json!({ "name": "m", "mail": mail })).unwrap()
        };
        for bad in ["169.254.169.254", "fe80::1", "224.0.0.1", "0.0.0.0"] {
            let problem = mail(bad).check_address().expect_err(bad);
            assert_eq!(problem.fields[0].field, "mail.server");
        }
        for bad in [
            "169.254.169.254",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[::ffff:169.254.0.1]",
        ] {
            let receiver = hook(&format!("http://{bad}:99/latest")).unwrap();
            let problem = receiver.check_address().expect_err(bad);
            assert_eq!(problem.fields[0].field, "webhook.url");
            assert!(!problem.to_string().contains("latest"), "{problem}");
        }
        for good in ["127.0.0.1", "10.0.0.1", "[::1]", "h.example"] {
            let receiver = hook(&format!("http://{good}/")).unwrap();
            assert_eq!(receiver.check_address(), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_is_shown_has_no_secret_and_what_is_stored_reads_back() {
        let all = [
            json!({ "name": "a", "webhook": { "url": "https://h/s3cret-path", "token": "s3cret-token" } }),
            json!({
                "name": "b", "least": "critical", "rules": ["lun_offline"], "remind_hours": 0,
                "mail": {
                    "server": "mx", "user": "u", "password": "s3cret-word", "from": "a@b", "to": ["c@d", "e@f"],
                },
            }),
            json!({ "name": "c", "command": { "name": "page-me" } }),
        ];
        for value in all {
            let receiver = read(value).unwrap();
            let shown = serde_json::to_string(&receiver.view()).unwrap() + &format!("{receiver:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
            assert_eq!(read(receiver.with_secrets()).unwrap(), receiver);
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_also_secrets() {
        let before = hook("https://h/s3cret").unwrap();
        let after = before
            .patched(&json!({ "enabled": false, "name": "x" }))
            .unwrap();
        assert_eq!(
            after,
            Receiver {
                enabled: false,
                ..before.clone()
            }
        );
        let after = before
            .patched(&json!({ "webhook": { "token": null } }))
            .unwrap();
        let Channel::Webhook(to) = after.channel else {
            panic!()
        };
        assert_eq!((to.token, to.path.reveal_text()), (None, Some("/s3cret")));
        let mail = json!({ "mail": { "server": "mx", "from": "a@b", "to": ["c@d"], "encryption": "none" } });
        let after = before.patched(&mail).unwrap();
        assert_eq!(after.view().kind, "mail", "another kind takes its place");
        let problem = before.patched(&json!({ "webhook": { "url": 5, "token": "s3cret" } }));
        assert!(!problem.expect_err("no text").to_string().contains("s3cret"));
        assert!(before.patched(&json!({ "unknown": 1 })).is_err());
        assert!(before.patched(&json!("x")).is_err());
    }

    #[test]
    fn mail_that_would_leak_a_password_or_cannot_arrive_is_refused() {
        let mail = |change: Value| {
            let mut value = json!({
                "name": "b",
                "mail": { "server": "mx", "user": "u", "password": "p", "from": "a@b", "to": ["c@d"] },
            });
            merge(&mut value["mail"], &change);
            read(value)
        };
        assert_eq!(mail(json!({})).unwrap().view().mail.unwrap().port, 587);
        for (bad, field) in [
            (json!({ "encryption": "none" }), "mail.encryption"),
            (json!({ "user": null }), "mail.user"),
            (json!({ "password": null }), "mail.password"),
            (json!({ "to": [] }), "mail.to"),
            (json!({ "to": ["c@d", "e@f\r\nBcc: x@y"] }), "mail.to[1]"),
            (json!({ "from": "nobody" }), "mail.from"),
            (json!({ "server": "mx/x" }), "mail.server"),
            (json!({ "ca": "x" }), "mail.ca"),
            (json!({ "port": 0 }), "mail.port"),
        ] {
            let problem = mail(bad.clone()).expect_err(field);
            assert_eq!(problem.fields[0].field, field, "{bad}");
        }
        let two = json!({ "name": "x", "command": { "name": "c" }, "mail": { "server": "m", "from": "a@b", "to": ["a@b"] } });
        assert!(read(two).is_err());
        assert!(read(json!({ "name": "x" })).is_err());
    }
}
