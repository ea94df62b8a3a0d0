//! What of one object shall change: the form of the API's PATCH requests.
//!
//! **Contract.** Only what was asked for: the rest is what it is when the change is planned, which
//! nobody can change in between. Who reads an object, changes a part and sends all of it takes back
//! what others changed meanwhile.

use super::{
    BackendSpec, Chap, ChapSpec, GrantKey, GrantSpec, Host, HostSpec, Lun, LunSpec, ObjectSet,
    Objects, Redirect, SECTION_GRANT, SECTION_HOST, SECTION_LUN, SECTION_TARGET, SecretSpec,
    StoragePatch, TargetSpec,
};
use crate::code::Code;
use crate::problem::Problem;
use crate::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// A change of one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// The object's name; of a grant `host:target:lun`.
    pub name: String,
    /// What shall change.
    pub what: PatchOf,
}

/// A change of an object of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PatchOf {
    /// A LUN.
    Lun(Box<LunPatch>),
    /// A target.
    Target(TargetPatch),
    /// A host.
    Host(HostPatch),
    /// A grant.
    Grant(GrantPatch),
}

/// A part that is absent stays, one that is `null` is taken away.
type Part<T> = Option<Option<T>>;

/// A field that is there, `null` or not.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Part<T>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// What of a LUN shall change; absent stays. `storage` reads whatever is left, and refuses what it
/// does not know.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema, Debug)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct LunPatch {
    /// A whole number of logical blocks; less than it has loses data.
    size: Option<Size>,
    /// It never changes: another value than the LUN has is refused.
    block_size: Option<u32>,
    /// It never changes.
    physical_block_size: Option<u32>,
    /// It never changes.
    thin: Option<bool>,
    /// It never changes.
    pool: Option<String>,
    /// It never changes.
    backend: Option<BackendSpec>,
    /// The most bytes that its commands may hold at a time, over all sessions; 0 lifts it.
    bytes_in_flight_max: Option<Size>,
    #[serde(flatten)]
    storage: StoragePatch,
}

/// What of a target shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct TargetPatch {
    /// Its iSCSI name.
    iqn: Option<String>,
    /// The portal group where it can be reached.
    portal_group: Option<String>,
    /// Where logins are sent instead; null: they are served here.
    #[serde(deserialize_with = "present")]
    redirect: Part<Redirect>,
    /// Logins are refused for now, and sessions are asked to log out.
    maintenance: Option<bool>,
    /// How long sessions have to log out then, in seconds, 0 to 3600.
    maintenance_grace_seconds: Option<u16>,
}

/// What of a host shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct HostPatch {
    /// Its initiators' iSCSI names; `*` means every initiator.
    iqn: Option<Vec<String>>,
    /// How it proves who it is; null: its name is believed.
    #[serde(deserialize_with = "present")]
    chap: Part<ChapPatch>,
    /// The most bytes that the commands of each of its sessions may hold at a time.
    bytes_in_flight_max: Option<Size>,
}

/// What of a host's CHAP shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
struct ChapPatch {
    /// The user that the initiator names.
    user: Option<String>,
    /// A new one, or the one that the daemon has.
    secret: Option<SecretSpec>,
    /// The user that the target names; null: the target need not prove itself.
    #[serde(deserialize_with = "present")]
    mutual_user: Part<String>,
    /// The target's secret.
    #[serde(deserialize_with = "present")]
    mutual_secret: Part<SecretSpec>,
}

/// What of a grant shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct GrantPatch {
    /// The number by which the host knows the LUN, 0 to 16383.
    lun_id: Option<u16>,
    /// The host may not write.
    read_only: Option<bool>,
}

impl Patch {
    /// The request that it is, over the objects as they are.
    pub(crate) fn over(&self, current: &Objects) -> Result<ObjectSet, Problem> {
        let name = &self.name;
        let absent = |section| Problem::not_found(section, name);
        let mut set = ObjectSet::default();
        match &self.what {
            PatchOf::Lun(patch) => {
                let known = current.luns.get(name).ok_or_else(|| absent(SECTION_LUN))?;
                set.lun.push(patch.over(name, known));
            }
            PatchOf::Target(patch) => {
                let known = current.targets.get(name);
                let known = known.ok_or_else(|| absent(SECTION_TARGET))?;
                let grace = patch.maintenance_grace_seconds;
                set.target.push(TargetSpec {
                    name: name.clone(),
                    iqn: patch.iqn.clone(),
                    portal_group: patch.portal_group.clone(),
                    redirect: patch
                        .redirect
                        .clone()
                        .unwrap_or_else(|| known.redirect.clone()),
                    maintenance: patch.maintenance.unwrap_or(known.maintenance),
                    maintenance_grace_seconds: grace.or(Some(known.maintenance_grace_seconds)),
                });
            }
            PatchOf::Host(patch) => {
                let known = current.hosts.get(name);
                let known = known.ok_or_else(|| absent(SECTION_HOST))?;
                set.host.push(patch.over(name, known));
            }
            PatchOf::Grant(patch) => {
                let key = name.parse::<GrantKey>();
                let key = key.map_err(|rule| Problem::new(Code::BadRequest, rule))?;
                let known = current.grants.get(&key);
                let known = known.ok_or_else(|| absent(SECTION_GRANT))?;
                set.grant.push(GrantSpec {
                    host: key.host,
                    lun: key.lun,
                    target: Some(key.target),
                    lun_id: patch.lun_id.or(Some(known.lun_id)),
                    read_only: patch.read_only.unwrap_or(known.read_only),
                });
            }
        }
        Ok(set)
    }
}

impl LunPatch {
    fn over(&self, name: &str, known: &Lun) -> LunSpec {
        LunSpec {
            name: name.to_owned(),
            size: self.size.unwrap_or(known.size),
            block_size: self.block_size,
            physical_block_size: self.physical_block_size,
            thin: self.thin,
            pool: self.pool.clone(),
            backend: self.backend.clone(),
            bytes_in_flight_max: self.bytes_in_flight_max,
            storage: self.storage.over(&known.storage),
        }
    }
}

impl HostPatch {
    fn over(&self, name: &str, known: &Host) -> HostSpec {
        let known_chap = known.chap.as_ref();
        HostSpec {
            name: name.to_owned(),
            iqn: self.iqn.clone().unwrap_or_else(|| known.iqn.clone()),
            chap: match &self.chap {
                None => known_chap.map(|chap| ChapPatch::default().over(Some(chap))),
                Some(None) => None,
                Some(Some(patch)) => Some(patch.over(known_chap)),
            },
            bytes_in_flight_max: self.bytes_in_flight_max.or(known.bytes_in_flight_max),
        }
    }
}

impl ChapPatch {
    /// Secrets that are not named stay.
    fn over(&self, known: Option<&Chap>) -> ChapSpec {
        let mutual = known.and_then(|chap| chap.mutual.as_ref());
        let user = self.user.clone();
        let mutual_user = self.mutual_user.clone();
        let mutual_secret = self.mutual_secret.clone();
        ChapSpec {
            user: user
                .or_else(|| known.map(|chap| chap.user.clone()))
                .unwrap_or_default(),
            secret: self.secret.clone().unwrap_or(SecretSpec::Stored),
            mutual_user: mutual_user.unwrap_or_else(|| mutual.map(|it| it.user.clone())),
            mutual_secret: mutual_secret.unwrap_or_else(|| mutual.map(|_| SecretSpec::Stored)),
        }
    }
}
