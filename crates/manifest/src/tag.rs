//! Tags of objects: what `ETag` says and `If-Match` asks for, so that two administrators who change
//! one object notice each other.
//!
//! **Contract.** A tag changes when what was asked for of an object changes, secrets included, and
//! stays while its counters go on. It is made with a key that nobody else has, so that it gives no
//! hint of a secret; another key makes other tags.

use crate::objects::{GrantKey, Objects};
use crate::plan::{Section, Subject};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// What a tag is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tagged {
    /// All objects.
    All,
    /// All of a kind.
    Section(Section),
    /// One.
    One(Subject),
}

/// What an `If-Match` asks for: one of these tags, without their quotes; `*` is any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The object, or the objects, that it is meant for.
    pub of: Tagged,
    /// Any of them will do.
    pub tags: Vec<String>,
}

impl Expected {
    /// What there is fits; `key`: as in [`tag`].
    #[must_use]
    pub fn fits(&self, key: &[u8; 32], objects: &Objects) -> bool {
        let is = tag(key, objects, &self.of);
        is.is_some_and(|is| self.tags.iter().any(|tag| tag == "*" || *tag == is))
    }
}

/// The tag of what there is; `None`: there is no such object.
#[must_use]
pub fn tag(key: &[u8; 32], objects: &Objects, of: &Tagged) -> Option<String> {
    match of {
        Tagged::All => digest(key, "all", objects),
        Tagged::Section(Section::Lun) => digest(key, "luns", &(&objects.luns, &objects.removed)),
        Tagged::Section(Section::Target) => digest(key, "targets", &objects.targets),
        Tagged::Section(Section::Host) => digest(key, "hosts", &objects.hosts),
        Tagged::Section(Section::Grant) => digest(key, "grants", &objects.grants),
        Tagged::One(Subject { section, name }) => match section {
            Section::Lun => {
                let lun = objects.luns.get(name);
                lun.or_else(|| objects.removed.get(name)).and_then(|lun| {
                    digest(key, "lun", &(name, lun, objects.luns.contains_key(name)))
                })
            }
            Section::Target => {
                let target = objects.targets.get(name)?;
                digest(key, "target", &(name, target))
            }
            Section::Host => digest(key, "host", &(name, objects.hosts.get(name)?)),
            Section::Grant => {
                let grant = objects.grants.get(&name.parse::<GrantKey>().ok()?)?;
                digest(key, "grant", &(name, grant))
            }
        },
    }
}

fn digest(key: &[u8; 32], kind: &str, of: &impl Serialize) -> Option<String> {
    let text = serde_json::to_vec(of).ok()?;
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(kind);
    hash.update([0]);
    hash.update(&text);
    // As long as nobody finds another by trying.
    Some(units::hex(&hash.finalize()[..16]))
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::objects::fixture;

    const KEY: [u8; 32] = [7; 32];

    fn objects() -> Objects {
        let mut objects = Objects::default();
        for name in ["a", "b"] {
            objects.luns.insert(name.to_owned(), fixture::lun());
        }
        let target = fixture::target("iqn.2026-11.io.causeway:t");
        objects.targets.insert("t".to_owned(), target);
        objects
    }

    fn lun(name: &str) -> Tagged {
        let (section, name) = (Section::Lun, name.to_owned());
        Tagged::One(Subject { section, name })
    }

    #[test]
    fn a_tag_changes_with_its_object_and_with_nothing_else() {
        let before = objects();
        let mut after = objects();
        after.luns.get_mut("a").unwrap().storage.shares = Some(5);
        let of = |objects: &Objects, what: &Tagged| tag(&KEY, objects, what).unwrap();
        for (what, changes) in [
            (Tagged::All, true),
            (Tagged::Section(Section::Lun), true),
            (Tagged::Section(Section::Target), false),
            (lun("a"), true),
            (lun("b"), false),
        ] {
            assert_eq!(of(&before, &what) != of(&after, &what), changes, "{what:?}");
        }
        assert_ne!(of(&before, &lun("a")), of(&before, &lun("b")));
        assert_ne!(
            tag(&[8; 32], &before, &lun("a")),
            tag(&KEY, &before, &lun("a"))
        );
        let removed = after.luns.remove("b").unwrap();
        after.removed.insert("b".to_owned(), removed);
        assert_ne!(of(&before, &lun("b")), of(&after, &lun("b")));
        assert_eq!(tag(&KEY, &before, &lun("c")), None);
    }

    #[test]
    fn what_is_expected_fits_the_tag_or_anything_that_is_there() {
        let objects = objects();
        let is = tag(&KEY, &objects, &lun("a")).unwrap();
        let fits = |name: &str, tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Expected {
                of: lun(name),
                tags,
            }
            .fits(&KEY, &objects)
        };
        assert!(fits("a", &[&is]));
        assert!(fits("a", &["0", &is]));
        assert!(fits("a", &["*"]));
        assert!(!fits("a", &["0"]));
        assert!(!fits("b", &[&is]));
        assert!(!fits("c", &["*"]));
    }
}
