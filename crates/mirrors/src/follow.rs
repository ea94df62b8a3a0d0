//! LUNs of the cluster as its records say that they are: what is to be done for that here.
//!
//! ```text
//!   luns/NAA/lun, luns/NAA/role --hear--> records --step--> a LUN is made, changed, set aside here
//! ```

use crate::object::{self, LunObject, LunState, Said};
use arbiter::Arbiter;
use manifest::objects::{Lun, NodeNames};
use manifest::plan::ElsewhereWhat;
use replica::{CopyId, NodeSlot, Revision, RoleRecord};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a LUN in the arbiter.
#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) object: Option<(Revision, LunObject)>,
    pub(crate) role: Option<(Revision, RoleRecord)>,
}

/// What is known of all LUNs in the arbiter.
#[derive(Default)]
pub(crate) struct Followed {
    until: Revision,
    /// By NAA identifier.
    pub(crate) known: BTreeMap<String, Known>,
    /// Those for which something may have to be done here.
    pub(crate) pending: BTreeSet<String>,
    /// Why the last thing was not done, so that it is said once.
    refused: BTreeMap<String, String>,
}

impl Followed {
    /// Hears what changed; answers the role records among it.
    pub(crate) async fn hear(
        &mut self,
        arbiter: &dyn Arbiter,
    ) -> Vec<(String, (Revision, RoleRecord))> {
        let changes = match arbiter.changes(&object::luns_key(), self.until).await {
            Ok(changes) => changes,
            Err(trouble) => {
                tracing::debug!(%trouble, "the LUNs of the cluster are not known");
                return Vec::new();
            }
        };
        let mut roles = Vec::new();
        for (key, (revision, text)) in &changes.records {
            let Some((naa, said)) = object::said(key, text) else {
                continue;
            };
            let known = self.known.entry(naa.to_owned()).or_default();
            match said {
                Ok(Said::Object(it)) => known.object = Some((*revision, *it)),
                Ok(Said::Role(it)) => {
                    roles.push((naa.to_owned(), (*revision, it.clone())));
                    known.role = Some((*revision, it));
                }
                Err(why) => {
                    tracing::warn!(%key, why, "what a LUN is cannot be read");
                    continue;
                }
            }
            self.pending.insert(naa.to_owned());
        }
        self.until = changes.until;
        roles
    }

    /// What was to be done is done, or why not: that is said once.
    pub(crate) fn note(&mut self, naa: &str, done: Result<(), String>) {
        match done {
            Ok(()) => drop(self.refused.remove(naa)),
            Err(why) if self.refused.get(naa) == Some(&why) => {}
            Err(why) => {
                tracing::error!(
                    naa,
                    why,
                    "a LUN of the cluster is not yet here as it shall be"
                );
                self.refused.insert(naa.to_owned(), why);
            }
        }
    }
}

/// A LUN here and in the arbiter.
pub(crate) struct Seen<'a> {
    /// This node.
    pub(crate) own: (&'a str, NodeSlot),
    pub(crate) object: &'a LunObject,
    pub(crate) role: Option<&'a RoleRecord>,
    /// What it is here, and whether it is in service.
    pub(crate) here: Option<(&'a str, &'a Lun, bool)>,
    /// The copy that this node has kept something of.
    pub(crate) kept: Option<CopyId>,
}

/// What follows from what was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Nothing.
    Done,
    /// Nothing yet: another node has to do something first.
    Waits,
    /// The copy is made.
    Make,
    /// A copy that was set aside is in the way.
    InTheWay,
    /// The LUN becomes this.
    Do(Box<ElsewhereWhat>),
}

fn does(what: ElsewhereWhat) -> Step {
    Step::Do(Box::new(what))
}

/// The name, or it with a number, as it is given where it is taken.
fn is_name(is: &str, wanted: &str) -> bool {
    let number = is.strip_prefix(wanted).and_then(|it| it.strip_prefix('-'));
    is == wanted || number.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

impl Seen<'_> {
    /// The nodes that have copies, without this one.
    fn others(&self, names: NodeNames) -> NodeNames {
        let others = names.iter().filter(|it| *it != self.own.0);
        NodeNames::of(others).unwrap_or(names)
    }

    fn own_copy(&self) -> Option<CopyId> {
        self.role?.copy_of(self.own.1)
    }

    /// What follows.
    pub(crate) fn step(&self) -> Step {
        let Some(names) = self.object.copies() else {
            return Step::Done;
        };
        let is_named = names.has(self.own.0);
        let own = self.own_copy();
        // Another copy has its place, or none has.
        let is_old =
            self.role.is_some() && (own.is_none() || self.kept.is_some_and(|it| own != Some(it)));
        match (self.object.state, self.here) {
            (LunState::Served, None) if is_named && own.is_some() => Step::Make,
            (LunState::Served, None) if is_named => Step::Waits,
            (_, None) => Step::Done,
            (_, Some((_, _, true))) if is_old => does(ElsewhereWhat::SetAside {
                copies: self.others(names),
            }),
            (LunState::Served, Some((_, _, false))) if is_old && is_named && own.is_some() => {
                Step::InTheWay
            }
            (_, Some(_)) if is_old => Step::Done,
            (LunState::Purged, Some(_)) => does(ElsewhereWhat::Purged),
            (LunState::Removed, Some((_, _, true))) => does(ElsewhereWhat::Removed),
            (LunState::Removed, Some(_)) => Step::Done,
            (LunState::Served, Some((_, _, false))) if self.object.again => {
                does(ElsewhereWhat::Restored)
            }
            (LunState::Served, Some((_, _, false))) => Step::Done,
            (LunState::Served, Some((name, lun, true))) => self.alike(names, (name, lun)),
        }
    }

    /// What nodes have in common is the same here.
    fn alike(&self, copies: NodeNames, (name, lun): (&str, &Lun)) -> Step {
        let wanted = &self.object.lun;
        let common = |lun: &Lun| (lun.size, lun.storage.copies, lun.storage.min_copies);
        if is_name(name, &self.object.name) && common(lun) == common(wanted) {
            return Step::Done;
        }
        does(ElsewhereWhat::Is {
            name: match is_name(name, &self.object.name) {
                true => name.to_owned(),
                false => self.object.name.clone(),
            },
            size: wanted.size,
            copies,
            min_copies: wanted.storage.min_copies,
        })
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::objects::fixture;
    use manifest::size::Size;
    use replica::{Epoch, NodeSet};

    const OWN: NodeSlot = NodeSlot(1);

    fn names(names: &[&str]) -> NodeNames {
        NodeNames::of(names.iter().copied()).unwrap()
    }

    fn lun(copies: &[&str]) -> Lun {
        let mut lun = fixture::lun();
        lun.storage.copies = Some(names(copies));
        lun
    }

    fn object(copies: &[&str], state: LunState) -> LunObject {
        let by = ("a", "1".to_owned());
        let mut object = LunObject::new("vm01", &lun(copies), by);
        object.state = state;
        object
    }

    fn role(copies: &[(u8, u128)]) -> RoleRecord {
        RoleRecord {
            epoch: Epoch(3),
            step: 0,
            owner: NodeSlot(copies[0].0),
            in_sync: NodeSet::of([NodeSlot(copies[0].0)]),
            copies: copies
                .iter()
                .map(|it| (NodeSlot(it.0), CopyId(it.1)))
                .collect(),
        }
    }

    type Here<'a> = Option<(&'a str, &'a Lun, bool)>;

    /// The node is "b", with the number 1.
    fn step(
        object: &LunObject,
        role: Option<&RoleRecord>,
        here: Here<'_>,
        kept: Option<u128>,
    ) -> Step {
        let seen = Seen {
            own: ("b", OWN),
            object,
            role,
            here,
            kept: kept.map(CopyId),
        };
        seen.step()
    }

    #[test]
    fn a_copy_is_made_once_the_record_has_it_and_what_was_set_aside_is_in_its_way() {
        let both = object(&["a", "b"], LunState::Served);
        let (without, with) = (role(&[(0, 4)]), role(&[(0, 4), (1, 7)]));
        assert_eq!(step(&both, Some(&without), None, None), Step::Waits);
        assert_eq!(step(&both, None, None, None), Step::Waits);
        assert_eq!(step(&both, Some(&with), None, None), Step::Make);
        let known = lun(&["a"]);
        let aside = Some(("vm01", &known, false));
        assert_eq!(step(&both, Some(&with), aside, Some(5)), Step::InTheWay);
        let known = lun(&["a", "b"]);
        let here = Some(("vm01", &known, true));
        assert_eq!(step(&both, Some(&with), here, Some(7)), Step::Done);
        assert_eq!(
            step(&both, Some(&with), here, None),
            Step::Done,
            "it begins"
        );
        for state in [LunState::Removed, LunState::Purged] {
            let gone = object(&["a", "b"], state);
            assert_eq!(step(&gone, Some(&with), None, None), Step::Done);
        }
    }

    #[test]
    fn a_copy_that_is_none_any_more_is_set_aside_and_left_alone_by_others() {
        let one = object(&["a"], LunState::Served);
        let known = lun(&["a", "b"]);
        let here = Some(("vm01", &known, true));
        // The owner has not removed it yet: it goes on, and knows who will have copies.
        let with = role(&[(0, 4), (1, 7)]);
        let copies = names(&["a"]);
        let is = ElsewhereWhat::Is {
            name: "vm01".to_owned(),
            size: known.size,
            copies,
            min_copies: None,
        };
        assert_eq!(step(&one, Some(&with), here, Some(7)), does(is));
        let aside = does(ElsewhereWhat::SetAside { copies });
        assert_eq!(step(&one, Some(&role(&[(0, 4)])), here, Some(7)), aside);
        // Another copy has its place already.
        let both = object(&["a", "b"], LunState::Served);
        let another = role(&[(0, 4), (1, 9)]);
        assert_eq!(step(&both, Some(&another), here, Some(7)), aside);
        let known = lun(&["a"]);
        let aside = Some(("vm01", &known, false));
        for state in [LunState::Served, LunState::Removed, LunState::Purged] {
            let one = object(&["a"], state);
            assert_eq!(
                step(&one, Some(&role(&[(0, 4)])), aside, Some(7)),
                Step::Done
            );
        }
    }

    #[test]
    fn what_nodes_have_in_common_is_followed() {
        let with = role(&[(0, 4), (1, 7)]);
        let mut larger = object(&["a", "b"], LunState::Served);
        larger.lun.size = Size::from_bytes(9 << 20).unwrap();
        larger.lun.storage.min_copies = Some(2);
        larger.name = "db".to_owned();
        let known = lun(&["a", "b"]);
        let is = ElsewhereWhat::Is {
            name: "db".to_owned(),
            size: larger.lun.size,
            copies: names(&["a", "b"]),
            min_copies: Some(2),
        };
        let here = Some(("vm01", &known, true));
        assert_eq!(step(&larger, Some(&with), here, Some(7)), does(is.clone()));
        let mut same = larger.lun.clone();
        same.storage.shares = Some(5);
        for name in ["db", "db-2"] {
            let here = Some((name, &same, true));
            assert_eq!(step(&larger, Some(&with), here, Some(7)), Step::Done);
        }
        let mut others = known.clone();
        others.storage.min_copies = Some(2);
        let here = Some(("db-2", &others, true));
        let numbered = ElsewhereWhat::Is {
            name: "db-2".to_owned(),
            size: larger.lun.size,
            copies: names(&["a", "b"]),
            min_copies: Some(2),
        };
        assert_eq!(step(&larger, Some(&with), here, Some(7)), does(numbered));
        let served = Some(("vm01", &known, true));
        let removed = Some(("vm01", &known, false));
        let of = |state, here| step(&object(&["a", "b"], state), Some(&with), here, Some(7));
        assert_eq!(of(LunState::Removed, served), does(ElsewhereWhat::Removed));
        assert_eq!(of(LunState::Removed, removed), Step::Done);
        assert_eq!(of(LunState::Purged, removed), does(ElsewhereWhat::Purged));
        assert_eq!(
            of(LunState::Served, removed),
            Step::Done,
            "it was deleted here before"
        );
        let mut again = object(&["a", "b"], LunState::Served);
        again.again = true;
        let back = step(&again, Some(&with), removed, Some(7));
        assert_eq!(back, does(ElsewhereWhat::Restored));
    }
}
