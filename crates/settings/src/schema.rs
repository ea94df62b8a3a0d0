//! The JSON Schema of `node.toml`, made from what the reference says of its keys: for editors, and
//! for whoever makes such files.
//!
//! **Invariant.** What the daemon takes fits the schema. The daemon refuses more: it knows the
//! machine, and how keys bear on each other.

use manifest::field::Field;
use manifest::fields::node_fields;
use manifest::size::Size;
use serde_json::{Map, Value, json};

/// Where it is published.
const ID: &str = "https://causeway-san.github.io/causeway/node.schema.json";

/// Sections of which there may be several.
const MANY: [&str; 3] = ["portal_group", "pool", "alert_command"];

/// Sections without which there is no node.
const REQUIRED: [&str; 3] = ["node", "portal_group", "api"];

/// The schema of a whole file.
#[must_use]
pub fn schema() -> Value {
    let mut members = Map::new();
    let fields = node_fields();
    for field in fields.iter().filter(|field| !field.key.contains('.')) {
        members.insert(field.key.to_owned(), of_key(field));
    }
    for of_section in fields.chunk_by(|a, b| section(a) == section(b)) {
        let Some(name) = of_section.first().and_then(section) else {
            continue;
        };
        let table = table(name, of_section);
        let value = if MANY.contains(&name) {
            let least = u8::from(REQUIRED.contains(&name));
            json!({ "type": "array", "items": table, "minItems": least })
        } else {
            table
        };
        members.insert(name.to_owned(), value);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "node.toml of Causeway",
        "description": "What is local to a node. x-takes-effect says when a change of a key comes into force: live (at \
            once, or with a reload where it was written into the file), new-sessions (the same, for connections that \
            come from then on) or restart.",
        "type": "object",
        "properties": members,
        "required": REQUIRED,
        "additionalProperties": false,
    })
}

fn section(field: &Field) -> Option<&'static str> {
    field.key.split_once('.').map(|(section, _)| section)
}

/// What says which kind a pool is, one of which each has.
fn is_choice(field: &Field) -> bool {
    field.default.starts_with("this or ")
}

fn table(name: &str, fields: &[Field]) -> Value {
    let members = fields
        .iter()
        .map(|field| (field.name().to_owned(), of_key(field)));
    let members: Map<String, Value> = members.collect();
    let required = fields.iter().filter(|field| field.default == "required");
    let mut required: Vec<&str> = required.map(Field::name).collect();
    // A section without its only key says nothing.
    if name == "scrub" {
        required.extend(fields.iter().map(Field::name));
    }
    let mut table = json!({
        "type": "object",
        "properties": members,
        "required": required,
        "additionalProperties": false,
    });
    let choices = fields.iter().filter(|field| is_choice(field));
    let choices: Vec<Value> = choices
        .map(|it| json!({ "required": [it.name()] }))
        .collect();
    if !choices.is_empty() {
        put(&mut table, "oneOf", Value::from(choices));
    }
    table
}

fn put(schema: &mut Value, key: &str, value: Value) {
    if let Some(members) = schema.as_object_mut() {
        members.insert(key.to_owned(), value);
    }
}

/// The schema of a key, with what is said of it.
fn of_key(field: &Field) -> Value {
    let mut schema = values(field);
    put(&mut schema, "description", plain(field.meaning).into());
    put(&mut schema, "x-takes-effect", field.class().into());
    if let Some(default) = default(field) {
        put(&mut schema, "default", default);
    }
    schema
}

/// Without marks and links.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (_, behind) = after.split_once(')').unwrap_or(("", after));
        let (head, word) = before.rsplit_once('[').unwrap_or((before, ""));
        out.push_str(head);
        out.push_str(word);
        rest = behind;
    }
    out.push_str(rest);
    out.replace('`', "")
}

/// A default that is a value and no sentence.
fn default(field: &Field) -> Option<Value> {
    let bare = field.default.trim_matches('`');
    if let Ok(number) = bare.parse::<u64>() {
        return Some(number.into());
    }
    if field.default == bare {
        return None;
    }
    let value = serde_json::from_str(bare);
    Some(value.unwrap_or_else(|_| bare.into()))
}

/// What may stand there: by the words of the reference, and for a few keys by themselves.
fn values(field: &Field) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let table = |members: Value, required: &[&str]| json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false });
    match field.key {
        "portal_group.listen" => {
            return json!({ "type": "array", "items": listen(), "minItems": 1 });
        }
        "portal_group.tag" => return json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        "api.listen" => {
            let address =
                json!({ "type": "string", "pattern": "^(unix:.+|(https?://)?.+:[0-9]+)$" });
            return json!({ "type": "array", "items": address, "minItems": 1 });
        }
        "api.certificate" => {
            return table(json!({ "cert": text(), "key": text() }), &["cert", "key"]);
        }
        "pool.rbd" => {
            let members = json!({ "pool": text(), "conf": text(), "user": text() });
            return table(members, &["pool"]);
        }
        "runtime.cores" => return json!({ "anyOf": [{ "const": "auto" }, numbers()] }),
        _ => {}
    }
    match field.values {
        "text" => text(),
        "list of addresses" => {
            let address = json!({ "type": "string", "pattern": "^.+:[0-9]+$" });
            json!({ "type": "array", "items": address, "minItems": 1 })
        }
        "name" => json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$" }),
        "path" => text(),
        "boolean" => json!({ "type": "boolean" }),
        "size" => size(None),
        "list of numbers" => numbers(),
        "list of names" => json!({ "type": "array", "items": text() }),
        "list of paths" | "list of texts" => {
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
        }
        words => bounds(words).unwrap_or_else(|| choice(words)),
    }
}

/// `10 to 300`, or `16MiB to 64GiB`.
fn bounds(words: &str) -> Option<Value> {
    let (least, most) = words.split_once(" to ")?;
    if let (Ok(least), Ok(most)) = (least.parse::<u64>(), most.parse::<u64>()) {
        return Some(json!({ "type": "integer", "minimum": least, "maximum": most }));
    }
    let bytes = |text: &str| text.parse::<Size>().ok().map(Size::bytes);
    Some(size(Some((bytes(least)?, bytes(most)?))))
}

/// One of the values that stand there between marks.
fn choice(words: &str) -> Value {
    let parts = words.split('`').enumerate();
    let parts = parts.filter(|(at, _)| at % 2 == 1).map(|(_, part)| part);
    let values = parts.filter_map(|part| serde_json::from_str::<Value>(part).ok());
    json!({ "enum": values.collect::<Vec<Value>>() })
}

fn numbers() -> Value {
    json!({ "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1, "uniqueItems": true })
}

/// Bytes, or a text with a unit, whose bounds no schema can say.
fn size(bounds: Option<(u64, u64)>) -> Value {
    let mut number = json!({ "type": "integer", "minimum": 0 });
    if let Some((least, most)) = bounds {
        put(&mut number, "minimum", least.into());
        put(&mut number, "maximum", most.into());
    }
    let units = r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtTpP]([iI]?[bB])?|[bB])?\s*$";
    json!({ "anyOf": [number, { "type": "string", "pattern": units }] })
}

/// An address, or an interface whose addresses are followed.
fn listen() -> Value {
    let port = json!({ "type": "integer", "minimum": 0, "maximum": 65535, "default": 3260 });
    json!({
        "type": "object",
        "properties": {
            "ip": { "type": "string", "minLength": 2, "description": "an IPv4 or IPv6 address" },
            "iface": { "type": "string", "minLength": 1, "maxLength": 15, "description": "an interface, such as eth1" },
            "port": port,
        },
        "oneOf": [{ "required": ["ip"] }, { "required": ["iface"] }],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::config::parse;
    use std::path::Path;

    const SHIPPED: &str = include_str!("../../../dist/node.toml");

    /// Every key of the reference stands in it, and it is without a mistake.
    const WHOLE: &str = r#"
schema = 1
[node]
name = "san-a"
state_dir = "data"
[[portal_group]]
name = "default"
tag = 1
listen = [{ ip = "127.0.0.1", port = 3260 }, { iface = "eth1" }, { ip = "::1" }]
cores = [0, 1]
[[pool]]
name = "a"
path = "pool"
journal = "journal"
journal_size = "1.5 GiB"
[[pool]]
name = "b"
members = ["/dev/sdb", "/dev/sdc"]
layout = "span"
journal = "/dev/sdd"
journal_size = 16777216
[[pool]]
name = "c"
rbd = { pool = "rbd", conf = "/etc/ceph/ceph.conf", user = "causeway" }
[api]
listen = ["unix:api.sock", "127.0.0.1:8480", "http://[::1]:80", "https://0.0.0.0:8443"]
token_for_reads = true
allow_plain_http = false
names = ["san.example.org"]
change_settings = true
login_idle_seconds = 10
login_life_seconds = 2592000
certificate = { cert = "api.crt", key = "api.key" }
[cluster]
etcd = ["https://10.0.0.5:2379"]
etcd_ca = "ca.pem"
etcd_certificate = "node.pem"
etcd_key = "node.key"
prefix = "causeway"
listen = ["10.0.0.1:7420"]
[[alert_command]]
name = "page"
argv = ["/usr/bin/page"]
seconds = 600
[scrub]
every_days = 0
[health]
every_minutes = 10080
smartctl = "/usr/sbin/smartctl"
report = "/run/disks.json"
[history]
max_bytes = "64GiB"
[session]
login_seconds = 1
ping_after_seconds = 3600
ping_timeout_seconds = 1
data_seconds = 3600
[runtime]
cores = "auto"
driver = "uring"
poll_us = 10000
coalesce_us = 0
[log]
format = "json"
"#;

    /// Whether another reader of schemas finds that it fits, and whether the daemon takes it.
    fn both(text: &str) -> (bool, bool) {
        let file: Value = toml::from_str(text).unwrap();
        let validator = jsonschema::draft202012::new(&schema()).unwrap();
        let fits = validator.is_valid(&file);
        (
            fits,
            parse(Path::new("/etc/causeway/node.toml"), text).is_ok(),
        )
    }

    #[test]
    fn the_schema_is_one_by_the_published_schema_of_schemas() {
        assert!(jsonschema::draft202012::meta::is_valid(&schema()));
    }

    #[test]
    fn the_file_that_is_shipped_fits_and_so_does_one_with_every_key() {
        assert_eq!(both(SHIPPED), (true, true));
        assert_eq!(both(WHOLE), (true, true));
        let file: Value = toml::from_str(WHOLE).unwrap();
        for field in node_fields() {
            let of_name = |it: &Value| it.get(field.name()).is_some();
            let is_there = match section(&field).and_then(|section| file.get(section)) {
                Some(Value::Array(all)) => all.iter().any(of_name),
                Some(table) => of_name(table),
                None => of_name(&file),
            };
            assert!(is_there, "{}", field.key);
        }
    }

    #[test]
    fn a_key_that_the_schema_does_not_know_is_refused_by_both() {
        let lines: Vec<&str> = WHOLE.lines().collect();
        let mut tried = 0;
        for (at, line) in lines.iter().enumerate() {
            // In the file itself, and below the head of each section.
            if !line.starts_with('[') && !line.starts_with("schema") {
                continue;
            }
            let mut more = lines.clone();
            more.insert(at + 1, "colour = 1");
            assert_eq!(both(&more.join("\n")), (false, false), "{line}");
            tried += 1;
        }
        assert_eq!(tried, 15);
        for (from, to) in [
            ("iface = \"eth1\"", "iface = \"eth1\", colour = 1"),
            ("user = \"causeway\"", "user = \"causeway\", colour = 1"),
            ("key = \"api.key\"", "key = \"api.key\", colour = 1"),
            ("[log]", "[colour]\nred = 1\n[log]"),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            assert_eq!(both(&WHOLE.replace(from, to)), (false, false), "{to}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_or_missing_is_refused_by_both() {
        for (from, to) in [
            ("schema = 1", "schema = 2"),
            ("tag = 1", "tag = 65536"),
            ("tag = 1", ""),
            ("name = \"san-a\"", "name = \"san a\""),
            ("state_dir = \"data\"", ""),
            ("path = \"pool\"", ""),
            (
                "path = \"pool\"",
                "path = \"pool\"\nmembers = [\"/dev/sde\"]",
            ),
            ("{ ip = \"::1\" }", "{ ip = \"::1\", iface = \"eth1\" }"),
            ("{ ip = \"::1\" }", "{ port = 3260 }"),
            ("layout = \"span\"", "layout = \"raid\""),
            ("journal_size = 16777216", "journal_size = \"16X\""),
            ("login_idle_seconds = 10", "login_idle_seconds = 9"),
            ("seconds = 600", "seconds = 601"),
            ("every_days = 0", "every_days = 3651"),
            ("every_days = 0", ""),
            ("every_minutes = 10080", "every_minutes = -1"),
            ("max_bytes = \"64GiB\"", "max_bytes = 1"),
            ("data_seconds = 3600", "data_seconds = \"3600\""),
            ("token_for_reads = true", "token_for_reads = 1"),
            ("cores = \"auto\"", "cores = []"),
            ("driver = \"uring\"", "driver = \"fast\""),
            ("format = \"json\"", "format = \"xml\""),
            ("argv = [\"/usr/bin/page\"]", ""),
            ("cert = \"api.crt\", ", ""),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            assert_eq!(
                both(&WHOLE.replacen(from, to, 1)),
                (false, false),
                "{from}: {to}"
            );
        }
    }

    #[test]
    fn each_key_says_its_class_and_its_meaning() {
        let schema = schema();
        let of = |key: &str| {
            let (section, name) = key.split_once('.').unwrap();
            let section = &schema["properties"][section];
            let table = if section["type"] == "array" {
                &section["items"]
            } else {
                section
            };
            table["properties"][name].clone()
        };
        assert_eq!(of("portal_group.listen")["x-takes-effect"], "live");
        assert_eq!(
            of("session.login_seconds")["x-takes-effect"],
            "new-sessions"
        );
        assert_eq!(of("log.format")["x-takes-effect"], "restart");
        assert_eq!(of("log.format")["default"], "text");
        assert_eq!(of("history.max_bytes")["default"], "1GiB");
        assert_eq!(of("session.data_seconds")["default"], 30);
        for field in node_fields().iter().filter(|it| it.key.contains('.')) {
            let said = of(field.key)["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            assert!(
                !said.is_empty() && !said.contains(['`', ']']),
                "{}: {said}",
                field.key
            );
        }
    }
}
