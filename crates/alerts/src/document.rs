//! What is stored: alerts with what administrators did about them, and what was learned of LUNs.

use crate::alert::Alert;
use crate::mark::Mark;
use crate::settings::Settings;
use crate::silence::Silence;
use crate::usual::Usual;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form of both documents.
pub(crate) const SCHEMA: u32 = 1;

/// Alerts, and what administrators did about them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Document {
    /// 1, or what a newer program wrote.
    pub schema: u32,
    /// The number of the next alert, and of the next silence.
    pub next_id: u64,
    /// What is changed of rules.
    #[serde(default)]
    pub rules: Settings,
    /// Silences that last.
    #[serde(default)]
    pub silences: Vec<Silence>,
    /// Alerts that are not over, by number.
    #[serde(default)]
    pub firing: Vec<Alert>,
    /// The last ones that are, by number.
    #[serde(default)]
    pub resolved: Vec<Alert>,
    /// By receiver and number of the alert: when that was sent.
    #[serde(default)]
    pub sent: BTreeMap<String, BTreeMap<u64, Mark>>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            next_id: 1,
            rules: Settings::default(),
            silences: Vec::new(),
            firing: Vec::new(),
            resolved: Vec::new(),
            sent: BTreeMap::new(),
        }
    }
}

/// What was learned of a LUN.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub(crate) struct LearnedLun {
    /// Of its reads: busy minutes by bucket of their latency.
    #[serde(default)]
    pub(crate) read: Usual,
    /// The same of its writes, which have a usual latency of their own.
    #[serde(default)]
    pub(crate) write: Usual,
    /// When it was seen first, in seconds since 1970.
    pub(crate) first: u64,
    /// When it was seen last.
    pub(crate) last: u64,
    /// When a scrub came to its end last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<u64>,
}

/// What was learned of a host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub(crate) struct LearnedHost {
    /// When it had a session last, in seconds since 1970.
    pub(crate) last: u64,
    /// Its last session ended because the host logged out.
    #[serde(default)]
    pub(crate) logged_out: bool,
}

/// What was learned of LUNs by NAA identifier, and of hosts by name.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Learned {
    /// 1, or what a newer program wrote.
    pub(crate) schema: u32,
    pub(crate) luns: BTreeMap<String, LearnedLun>,
    #[serde(default)]
    pub(crate) hosts: BTreeMap<String, LearnedHost>,
}

impl Default for Learned {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            luns: BTreeMap::new(),
            hosts: BTreeMap::new(),
        }
    }
}

/// The version that a document says it is of.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

/// What of a version reads itself.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let version: Version =
        serde_json::from_slice(bytes).map_err(|error| format!("it is damaged: {error}"))?;
    if version.schema != SCHEMA {
        let schema = version.schema;
        return Err(format!(
            "it is of version {schema}, and this program reads 1"
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| format!("it is damaged: {error}"))
}

fn write<T: Serialize>(document: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec(document).expect("documents are made of plain data");
    text.push(b'\n');
    text
}

impl Document {
    /// Reads what [`Document::write`] wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        read(bytes)
    }

    /// JSON on one line, which [`Document::read`] takes.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        write(self)
    }
}

impl Learned {
    /// Reads what [`Learned::write`] wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let learned: Self = read(bytes)?;
        let good = |lun: &LearnedLun| lun.read.is_whole() && lun.write.is_whole();
        if learned.luns.values().all(good) {
            return Ok(learned);
        }
        Err("it is damaged: a weight that none can have".to_owned())
    }

    /// JSON on one line, which [`Learned::read`] takes.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        write(self)
    }
}
