//! What a LUN may use of a second.

use super::Storage;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part};
use crate::field::{Field, live};
use crate::size::Size;
use crate::toml_table::Table;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// The longest that a limit may save up for a burst, in seconds.
pub const BURST_SECONDS_MAX: u32 = 3600;

/// The most operations a second that a limit may name; more is no limit.
pub const LIMIT_IOPS_MAX: u64 = 1_000_000_000;

/// What a LUN may use of a second. Empty: as much as it can.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Operations a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Bytes a second, of reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<Size>,
    /// So many seconds' worth of what was not used may be used at once; absent, a moment's worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_seconds: Option<u32>,
}

impl Limit {
    /// It limits nothing.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.iops.is_none() && self.bytes_per_second.is_none()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.iops.map(|iops| format!("{iops} operations/s")));
        parts.extend(
            self.bytes_per_second
                .map(|bytes| format!("{}/s", bytes.reported())),
        );
        if parts.is_empty() {
            return f.write_str("none");
        }
        let bursts = self.burst_seconds.filter(|seconds| *seconds > 0);
        parts.extend(bursts.map(|seconds| format!("bursts of {seconds} s")));
        f.write_str(&parts.join(", "))
    }
}

/// A part of a request that changes a limit: absent stays, `null` lifts.
type Change<T> = Option<Option<T>>;

/// A member that is there, `null` or not.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Change<T>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// What of a limit shall change.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct LimitPatch {
    /// Operations a second; null: no limit.
    #[serde(deserialize_with = "present")]
    iops: Change<u64>,
    /// Bytes a second, of reads and writes; null: no limit.
    #[serde(deserialize_with = "present")]
    bytes_per_second: Change<Size>,
    /// So many seconds' worth of what was not used may be used at once; null: a moment's worth.
    #[serde(deserialize_with = "present")]
    burst_seconds: Change<u32>,
}

impl LimitPatch {
    fn over(self, known: Limit) -> Limit {
        let mut limit = Limit {
            iops: self.iops.unwrap_or(known.iops),
            bytes_per_second: self.bytes_per_second.unwrap_or(known.bytes_per_second),
            burst_seconds: self.burst_seconds.unwrap_or(known.burst_seconds),
        };
        if limit.is_none() && self.burst_seconds.is_none() {
            // What was lifted takes its bursts along.
            limit.burst_seconds = None;
        }
        limit
    }
}

/// `limit`; an empty one lifts it.
pub(super) struct Limited;

/// Of `lun set` alone: `limit=none`.
const WHOLE: Part = Part {
    option: None,
    key: "limit",
    value: "none",
    words: &["none"],
    example: "limit=none",
    help: "Lifts the limit",
};

impl OneField for Limited {
    type Value = Limit;

    const FIELD: Field = live(
        "lun.limit",
        "`{ iops, bytes_per_second, burst_seconds }`",
        "none",
        "what it may use of a second; each part alone is possible, `{}` lifts it",
    );

    const PARTS: &'static [Part] = &[
        Part {
            option: Some("limit-iops"),
            key: "limit.iops",
            value: "NUMBER",
            words: &[],
            example: "limit.iops=5000|none",
            help: "The most operations a second [default: no limit]",
        },
        Part {
            option: Some("limit-bytes-per-second"),
            key: "limit.bytes_per_second",
            value: "SIZE",
            words: &[],
            example: "limit.bytes_per_second=200M|none",
            help: "The most bytes a second [default: no limit]",
        },
        Part {
            option: Some("limit-burst-seconds"),
            key: "limit.burst_seconds",
            value: "SECONDS",
            words: &[],
            example: "limit.burst_seconds=5|none",
            help: "So many seconds' worth of what was not used may be used at once [default: a moment's worth]",
        },
        WHOLE,
    ];

    const METRICS: &'static [Metric] = &[
        Metric::counter(
            "causeway_lun_limit_deferred_total",
            "Operations that the LUN's limit made wait",
            |_, it| Some(Figure::Number(it.limited?.deferred)),
        ),
        Metric::counter(
            "causeway_lun_limit_wait_seconds_total",
            "How long operations waited for the LUN's limit, together",
            |_, it| Some(Figure::Micros(it.limited?.waited_us)),
        ),
    ];

    fn slot(storage: &mut Storage) -> &mut Option<Limit> {
        &mut storage.limit
    }

    fn read(table: &Table<'_, '_>) -> Option<Limit> {
        let inside = table.table("limit")?;
        let burst = inside.integer("burst_seconds", 0, u64::from(BURST_SECONDS_MAX));
        let limit = Limit {
            iops: inside.integer("iops", 0, u64::MAX).map(|iops| iops.value),
            bytes_per_second: inside.size("bytes_per_second").map(|bytes| bytes.value),
            burst_seconds: burst
                .map(|burst| u32::try_from(burst.value).expect("read with a small limit")),
        };
        inside.finish(&[]);
        Some(limit)
    }

    fn toml(limit: Limit) -> String {
        let mut keys = Vec::new();
        keys.extend(limit.iops.map(|iops| format!("iops = {iops}")));
        let bytes = limit.bytes_per_second;
        keys.extend(bytes.map(|bytes| format!("bytes_per_second = \"{bytes}\"")));
        let burst = limit.burst_seconds;
        keys.extend(burst.map(|seconds| format!("burst_seconds = {seconds}")));
        format!("{{ {} }}", keys.join(", "))
    }

    fn parse(part: &Part, word: &str, before: Option<Limit>) -> Result<Limit, String> {
        let before = before.unwrap_or_default();
        let is_number = |_| format!("{}={word}: write a number", part.key);
        Ok(match part.key {
            "limit.iops" => Limit {
                iops: Some(word.parse().map_err(is_number)?),
                ..before
            },
            "limit.bytes_per_second" => Limit {
                bytes_per_second: Some(word.parse()?),
                ..before
            },
            _ => Limit {
                burst_seconds: Some(word.parse().map_err(is_number)?),
                ..before
            },
        })
    }

    fn assign(part: &Part, word: &str, before: Option<&Value>) -> Result<Value, String> {
        let Some(name) = part.key.strip_prefix("limit.") else {
            if word != "none" || before.is_some() {
                return Err("write limit=none alone, or its parts: limit.iops=N, \
                            limit.bytes_per_second=SIZE, limit.burst_seconds=N"
                    .to_owned());
            }
            return Ok(Value::Null);
        };
        let value = match (name, word) {
            (_, "none") => Value::Null,
            ("bytes_per_second", word) => json!(word.parse::<Size>()?),
            (_, word) => {
                let number = word.parse::<u64>();
                json!(number.map_err(|_| format!("limit.{name}={word}: write a number, or none"))?)
            }
        };
        let mut parts = match before {
            None => Map::new(),
            Some(Value::Object(parts)) => parts.clone(),
            Some(_) => return Err("limit=none stands beside a part of it".to_owned()),
        };
        parts.insert(name.to_owned(), value);
        Ok(Value::Object(parts))
    }

    fn patch(said: &Value, known: Option<Limit>) -> Result<Option<Limit>, String> {
        let patch = Option::<LimitPatch>::deserialize(said).map_err(|error| error.to_string())?;
        let known = known.unwrap_or_default();
        Ok(Some(patch.map_or_else(Limit::default, |it| it.over(known))))
    }

    fn patch_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Option<LimitPatch>>()
    }

    fn is_nothing(value: Limit) -> bool {
        value.is_none()
    }

    fn check(limit: Limit, wrong: &mut dyn FnMut(&str, String)) {
        const NOTHING: &str = "0 would stop the LUN; leave it out for no limit";
        match limit.iops {
            Some(0) => wrong("limit.iops", NOTHING.to_owned()),
            Some(iops) if iops > LIMIT_IOPS_MAX => {
                let rule = format!("{iops} is outside 1 to {LIMIT_IOPS_MAX}");
                wrong("limit.iops", rule);
            }
            Some(_) | None => {}
        }
        if limit.bytes_per_second.is_some_and(|most| most.bytes() == 0) {
            wrong("limit.bytes_per_second", NOTHING.to_owned());
        }
        let Some(burst) = limit.burst_seconds else {
            return;
        };
        if burst > BURST_SECONDS_MAX {
            let rule = format!("{burst} is outside 0 to {BURST_SECONDS_MAX}");
            wrong("limit.burst_seconds", rule);
        }
        if limit.is_none() {
            let rule = "a burst is of something: write iops or bytes_per_second as well";
            wrong("limit.burst_seconds", rule.to_owned());
        }
    }

    fn changed(_: Option<Limit>, is: Option<Limit>) -> Changed {
        format!("limit {}", is.unwrap_or_default()).into()
    }

    /// What it is, and what it did.
    fn shown(is: Option<Limit>, lun: &Shown<'_>) -> (&'static str, String) {
        let mut text = is.unwrap_or_default().to_string();
        if let Some(facts) = lun.layers.limited {
            text.push_str(&format!("; {facts}"));
        }
        ("limit", text)
    }
}
