//! What is stored: every property of every object.

use super::backing::Backing;
use super::storage::{FIELDS, Risk, Storage};
use crate::secret::Secret;
use crate::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The initiator name that means every initiator.
pub const ONE_HOST_ANY: &str = "*";

/// All objects, by name.
///
/// **Invariants.** I1: every grant's host, LUN and target exist. I2: a number is used once per host
/// and target. I3: an initiator name belongs to one host. I4: a name is in `luns` or in `removed`,
/// not in both. I5: every grant in `removed_grants` has its LUN in `removed`, and its host and
/// target exist.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// LUNs that are in service.
    pub luns: BTreeMap<String, Lun>,
    /// LUNs that were removed and keep their data.
    #[serde(default)]
    pub removed: BTreeMap<String, Lun>,
    /// The grants of removed LUNs, for when they come back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removed_grants: BTreeMap<GrantKey, Grant>,
    /// By name; a renamed target keeps its `id`.
    pub targets: BTreeMap<String, Target>,
    /// By name; a host is one or more initiators.
    pub hosts: BTreeMap<String, Host>,
    /// By host, target and LUN.
    pub grants: BTreeMap<GrantKey, Grant>,
    /// The identifier that the next target or host gets; none is used twice.
    #[serde(default)]
    pub next_id: u64,
}

impl Objects {
    /// The grants that concern a LUN.
    pub fn grants_of_lun<'a>(&'a self, lun: &'a str) -> impl Iterator<Item = &'a GrantKey> {
        self.grants.keys().filter(move |key| key.lun == lun)
    }

    /// The host that an initiator belongs to: the one that names it, else the one that takes all.
    #[must_use]
    pub fn host_of(&self, initiator: &str) -> Option<&str> {
        let named = |wanted: &str| {
            let mut hosts = self.hosts.iter();
            hosts.find(|(_, host)| host.iqn.iter().any(|iqn| iqn == wanted))
        };
        let found = named(initiator).or_else(|| named(ONE_HOST_ANY));
        found.map(|(name, _)| name.as_str())
    }

    /// A relative target port identifier that no target has: its own identifier while that is one
    /// that a LUN with copies may be shown at; then the highest of those, as few were ever given.
    #[must_use]
    pub fn free_relative_port(&self, id: u64) -> Option<u16> {
        let taken = |port: u16| {
            self.targets
                .values()
                .any(|target| target.relative_port == port)
        };
        let own = u16::try_from(id)
            .ok()
            .filter(|port| *port > 0 && !taken(*port));
        let small = || (1..=MIRRORED_PORTS).rev().find(|port| !taken(*port));
        match own {
            Some(port) if port <= MIRRORED_PORTS => own,
            Some(_) => small().or(own),
            None => (1..=u16::MAX).find(|port| !taken(*port)),
        }
    }

    /// An identifier that was never given out before.
    pub fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// A stored LUN.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Lun {
    /// The NAA identifier: 32 hexadecimal digits, random, made once. It also names the LUN's file.
    pub naa: String,
    /// The unit serial number: random, made once.
    pub serial: String,
    /// A whole number of logical blocks.
    pub size: Size,
    /// Bytes in a logical block.
    pub block_size: u32,
    /// Bytes in a physical block.
    pub physical_block_size: u32,
    /// Space is taken when blocks are first written.
    pub thin: bool,
    /// What holds its blocks.
    pub backing: Backing,
    /// The most bytes that its commands may hold at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<Size>,
    /// How its writes are kept and its blocks checked, and what it may use.
    #[serde(default, skip_serializing_if = "Storage::is_default")]
    pub storage: Storage,
}

impl Lun {
    /// What is risked by how it keeps its writes. Memory is lost in any case, and not meant.
    pub fn risks(&self) -> impl Iterator<Item = Risk> {
        let fields = FIELDS.into_iter().filter(|_| !self.backing.is_memory());
        fields.filter_map(|field| field.risk(&self.storage))
    }

    /// Something that was acknowledged may be lost when power fails.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.risks().next().is_some()
    }
}

/// The highest relative target port identifier at which a LUN with copies can be shown: the nodes
/// of a cluster, of which there are 64, have as many each.
pub const MIRRORED_PORTS: u16 = 1023;

/// A stored target.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Names it for ever, also after it was renamed.
    pub id: u64,
    /// Its relative target port identifier: 1 to 65535, its own. Reservations are kept by it.
    pub relative_port: u16,
    /// Its iSCSI name, normalised.
    pub iqn: String,
    /// Where it can be reached.
    pub portal_group: String,
    /// Logins are sent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Logins are refused for now, and sessions are asked to log out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub maintenance: bool,
    /// How long sessions have to log out when it goes into maintenance, in seconds.
    #[serde(default = "grace", skip_serializing_if = "is_grace")]
    pub maintenance_grace_seconds: u16,
}

/// How long sessions have to log out where nothing else is said, in seconds.
pub const MAINTENANCE_GRACE_SECONDS: u16 = 30;

fn grace() -> u16 {
    MAINTENANCE_GRACE_SECONDS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_grace(seconds: &u16) -> bool {
    *seconds == MAINTENANCE_GRACE_SECONDS
}

/// Where logins are sent instead.
///
/// spec: RFC 7143 11.13.5 "Status-Class and Status-Detail", Redirection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    /// `HOST:PORT`, IPv6 in brackets: what the initiator is sent as TargetAddress.
    pub to: String,
    /// For good (0102h), so that initiators may forget this portal; else for this time (0101h).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.permanent {
            "for good"
        } else {
            "for now"
        };
        write!(f, "{} {how}", self.to)
    }
}

/// A stored host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Names it for ever, also after it was renamed.
    pub id: u64,
    /// Its initiators' iSCSI names, normalised; `*` is every initiator.
    pub iqn: Vec<String>,
    /// How it proves who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<Chap>,
    /// The most bytes that the commands of each of its sessions may hold at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<Size>,
}

/// Stored CHAP. Secrets are not part of the serialised form: they are kept in a file of their own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Chap {
    /// The user that the initiator names.
    pub user: String,
    /// What the initiator proves that it knows; 12 bytes at least.
    #[serde(skip)]
    pub secret: Secret,
    /// How the target proves itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual: Option<MutualChap>,
}

/// How the target proves itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct MutualChap {
    /// The user that the target names.
    pub user: String,
    /// What we prove that we know; another one than the initiator's.
    #[serde(skip)]
    pub secret: Secret,
}

/// A stored grant.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The number by which the host knows the LUN.
    pub lun_id: u16,
    /// The host may not write.
    #[serde(default)]
    pub read_only: bool,
}

/// What a grant ties together, which is also its name: `host:target:lun`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GrantKey {
    /// Who may.
    pub host: String,
    /// Through which target.
    pub target: String,
    /// The name of the LUN that may be used.
    pub lun: String,
}

impl fmt::Display for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.host, self.target, self.lun)
    }
}

impl FromStr for GrantKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [host, target, lun] = parts.as_slice() else {
            return Err(format!("\"{text}\" is no grant: write HOST:TARGET:LUN"));
        };
        Ok(Self {
            host: (*host).to_owned(),
            target: (*target).to_owned(),
            lun: (*lun).to_owned(),
        })
    }
}

impl Serialize for GrantKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GrantKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
