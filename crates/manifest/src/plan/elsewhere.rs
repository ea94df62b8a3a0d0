//! What the nodes of a cluster have agreed of a LUN with copies: it was changed on another one.

use super::{Section, Subject, adopt, removed, single};
use crate::code::Code;
use crate::objects::{Lun, NodeNames, Objects};
use crate::problem::Problem;
use crate::size::Size;

/// What a LUN is to become here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// Its NAA identifier.
    pub naa: String,
    /// What becomes of it.
    pub what: ElsewhereWhat,
}

/// What becomes of a LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ElsewhereWhat {
    /// What all of its nodes have in common is this.
    Is {
        /// Its name; where that is taken here, it gets a number behind it.
        name: String,
        /// Its size.
        size: Size,
        /// The nodes that have copies.
        copies: NodeNames,
        /// Nodes that have to be in sync for writes.
        min_copies: Option<u32>,
    },
    /// It has no copy here any more: what is there is set aside.
    SetAside {
        /// The nodes that have copies.
        copies: NodeNames,
    },
    /// It goes out of service, and keeps its data.
    Removed,
    /// It comes back into service.
    Restored,
    /// Its data is destroyed.
    Purged,
}

/// Its name, and whether it is in service.
fn found(objects: &Objects, naa: &str) -> Option<(String, bool)> {
    let served = objects.luns.iter().map(|it| (it, true));
    let all = served.chain(objects.removed.iter().map(|it| (it, false)));
    let mut all = all.filter(|((_, lun), _)| lun.naa == naa);
    all.next().map(|((name, _), is)| (name.clone(), is))
}

fn of<'a>(objects: &'a mut Objects, name: &str) -> Option<&'a mut Lun> {
    let removed = objects.removed.get_mut(name);
    objects.luns.get_mut(name).or(removed)
}

/// The objects afterwards. What is so already stays.
pub(super) fn elsewhere(current: &Objects, wanted: &Elsewhere) -> Result<Objects, Problem> {
    let Some((name, is_served)) = found(current, &wanted.naa) else {
        let detail = format!("{}: no LUN has this NAA identifier", wanted.naa);
        return Err(Problem::new(Code::NotFound, detail));
    };
    let mut after = current.clone();
    let section = Section::Lun;
    let subject = Subject { section, name };
    let name = &subject.name;
    match &wanted.what {
        ElsewhereWhat::Is {
            name: to,
            size,
            copies,
            min_copies,
        } => {
            if let Some(lun) = of(&mut after, name) {
                lun.size = *size;
                lun.storage.copies = Some(*copies);
                lun.storage.min_copies = *min_copies;
            }
            if to != name && is_served {
                let to = adopt::free(&after, to);
                // Grants follow it, so that none of them looks like one that goes.
                return single::rename(&after, &subject, &to);
            }
        }
        ElsewhereWhat::SetAside { copies } => {
            if let Some(lun) = of(&mut after, name) {
                lun.storage.copies = Some(*copies);
            }
            if is_served {
                after = single::remove(&after, &subject)?;
            }
        }
        ElsewhereWhat::Removed if is_served => after = single::remove(&after, &subject)?,
        ElsewhereWhat::Restored if !is_served => after = single::restore(&after, name)?,
        ElsewhereWhat::Purged => {
            if is_served {
                after = single::remove(&after, &subject)?;
            }
            after = single::purge(&after, name)?;
        }
        ElsewhereWhat::Removed | ElsewhereWhat::Restored => {}
    }
    removed::keep(current, &mut after);
    Ok(after)
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::objects::{Grant, GrantKey, fixture};

    fn lun(naa: &str) -> Lun {
        let naa = naa.to_owned();
        Lun {
            naa,
            ..fixture::lun()
        }
    }

    fn objects() -> Objects {
        let mut objects = Objects::default();
        objects.luns.insert("vm01".to_owned(), lun("6a"));
        objects.luns.insert("vm02".to_owned(), lun("6b"));
        let key = GrantKey {
            host: "h".to_owned(),
            target: "t".to_owned(),
            lun: "vm01".to_owned(),
        };
        let grant = Grant {
            lun_id: 0,
            read_only: false,
        };
        objects.grants.insert(key, grant);
        objects
    }

    fn done(objects: &Objects, what: ElsewhereWhat) -> Objects {
        let naa = "6a".to_owned();
        elsewhere(objects, &Elsewhere { naa, what }).unwrap()
    }

    #[test]
    fn what_others_agreed_is_done_and_what_is_so_already_stays() {
        let before = objects();
        let copies = NodeNames::of(["a"]).unwrap();
        let size = Size::from_bytes(7 << 20).unwrap();
        let is = |name: &str| ElsewhereWhat::Is {
            name: name.to_owned(),
            size,
            copies,
            min_copies: None,
        };
        let renamed = done(&before, is("db"));
        let lun = &renamed.luns["db"];
        assert_eq!((lun.size, lun.storage.copies), (size, Some(copies)));
        assert_eq!(renamed.grants.keys().next().unwrap().lun, "db");
        assert_eq!(done(&renamed, is("db")), renamed);
        // Another one has the name here.
        assert!(done(&before, is("vm02")).luns.contains_key("vm02-2"));
        let aside = done(&before, ElsewhereWhat::SetAside { copies });
        assert_eq!(aside.removed["vm01"].storage.copies, Some(copies));
        assert!(aside.grants.is_empty());
        assert_eq!(done(&aside, ElsewhereWhat::Removed), aside);
        let back = done(&aside, ElsewhereWhat::Restored);
        assert!(back.luns.contains_key("vm01"));
        assert_eq!(done(&back, ElsewhereWhat::Restored), back);
        for from in [&back, &aside] {
            let gone = done(from, ElsewhereWhat::Purged);
            let mut all = gone.luns.values().chain(gone.removed.values());
            assert!(all.all(|it| it.naa != "6a"));
        }
        let naa = "6c".to_owned();
        let what = ElsewhereWhat::Purged;
        let unknown = elsewhere(&before, &Elsewhere { naa, what });
        assert_eq!(unknown.unwrap_err().code, Code::NotFound);
    }
}
