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
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(default)]
pub struct LunPatch {
    size: Option<Size>,
    block_size: Option<u32>,
    physical_block_size: Option<u32>,
    thin: Option<bool>,
    pool: Option<String>,
    backend: Option<BackendSpec>,
    bytes_in_flight_max: Option<Size>,
    #[serde(flatten)]
    storage: StoragePatch,
}

/// What of a target shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct TargetPatch {
    iqn: Option<String>,
    portal_group: Option<String>,
    #[serde(deserialize_with = "present")]
    redirect: Part<Redirect>,
    maintenance: Option<bool>,
    maintenance_grace_seconds: Option<u16>,
}

/// What of a host shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct HostPatch {
    iqn: Option<Vec<String>>,
    #[serde(deserialize_with = "present")]
    chap: Part<ChapPatch>,
    bytes_in_flight_max: Option<Size>,
}

/// What of a host's CHAP shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(deny_unknown_fields, default)]
struct ChapPatch {
    user: Option<String>,
    secret: Option<SecretSpec>,
    #[serde(deserialize_with = "present")]
    mutual_user: Part<String>,
    #[serde(deserialize_with = "present")]
    mutual_secret: Part<SecretSpec>,
}

/// What of a grant shall change.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct GrantPatch {
    lun_id: Option<u16>,
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
