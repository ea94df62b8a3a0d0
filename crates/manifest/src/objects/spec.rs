//! What is wanted: the form of `objects.toml` and of the API's requests.

use super::backing::BackendSpec;
use super::model::Redirect;
use super::storage::Storage;
use crate::secret::Secret;
use crate::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// A set of wanted objects.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectSet {
    /// The LUNs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lun: Vec<LunSpec>,
    /// Each name once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<TargetSpec>,
    /// Each name once; each initiator in one host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostSpec>,
    /// Each triple of host, target and LUN once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<GrantSpec>,
}

/// A wanted LUN. What is absent gets its default in a new LUN and stays in an existing one.
///
/// A member that it does not have is refused by `storage`, which reads whatever is left.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[schemars(deny_unknown_fields)]
pub struct LunSpec {
    /// 1 to 63 characters, unique among LUNs.
    pub name: String,
    /// A whole number of logical blocks, at least one.
    pub size: Size,
    /// Bytes in a logical block: 512 (the default) or 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    /// Bytes in a physical block: 512 or 4096, not less than a logical one, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_block_size: Option<u32>,
    /// Space is taken when blocks are first written (the default), not at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thin: Option<bool>,
    /// The pool that holds it; where neither pool nor backend is named, the one called `default`,
    /// or the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What holds it instead of a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendSpec>,
    /// The most bytes that its commands may hold at a time, over all sessions; 0 lifts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<Size>,
    /// How its writes are kept and its blocks checked, and what it may use.
    #[serde(flatten)]
    pub storage: Storage,
}

impl LunSpec {
    /// A LUN of which only name and size are said.
    #[must_use]
    pub fn new(name: &str, size: Size) -> Self {
        Self {
            name: name.to_owned(),
            size,
            block_size: None,
            physical_block_size: None,
            thin: None,
            pool: None,
            backend: None,
            bytes_in_flight_max: None,
            storage: Storage::default(),
        }
    }
}

/// A wanted target.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// 1 to 63 characters, unique among targets.
    pub name: String,
    /// Its iSCSI name; derived from the name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iqn: Option<String>,
    /// Where it can be reached; where absent, the group called `default`, or the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portal_group: Option<String>,
    /// Where logins are sent instead; absent, they are served here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Logins are refused for now, and sessions are asked to log out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub maintenance: bool,
    /// How long sessions have to log out then, in seconds, 0 to 3600; absent, 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_grace_seconds: Option<u16>,
}

impl TargetSpec {
    /// A target of which only the name is said.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            iqn: None,
            portal_group: None,
            redirect: None,
            maintenance: false,
            maintenance_grace_seconds: None,
        }
    }
}

/// A wanted host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// 1 to 63 characters, unique among hosts.
    pub name: String,
    /// Its initiators' iSCSI names; `*` means every initiator.
    pub iqn: Vec<String>,
    /// How it proves who it is; without, its name is believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapSpec>,
    /// The most bytes that the commands of each of its sessions may hold at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<Size>,
}

/// Wanted CHAP.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct ChapSpec {
    /// The user that the initiator names.
    pub user: String,
    /// A new one, or the one that the daemon has.
    pub secret: SecretSpec,
    /// The user that the target names, where the initiator asks for it to prove itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_user: Option<String>,
    /// The target's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_secret: Option<SecretSpec>,
}

/// A secret on its way to the daemon.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum SecretSpec {
    /// The one that the daemon has already.
    Stored,
    /// This one.
    Value(Secret),
}

/// The only place where a secret is written out: the client's request to its daemon.
impl Serialize for SecretSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stored => to.serialize_unit_variant("SecretSpec", 0, "stored"),
            Self::Value(secret) => {
                let text = secret
                    .reveal_text()
                    .ok_or_else(|| serde::ser::Error::custom("a secret is UTF-8 text"))?;
                to.serialize_newtype_variant("SecretSpec", 1, "value", text)
            }
        }
    }
}

/// A wanted grant.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct GrantSpec {
    /// Who may.
    pub host: String,
    /// The name of the LUN that may be used.
    pub lun: String,
    /// Through which target; where absent, the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The number by which the host knows the LUN, 0 to 16383; where absent, it stays as it is, or
    /// the lowest free one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun_id: Option<u16>,
    /// The host may not write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}
