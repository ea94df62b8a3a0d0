//! What the nodes of a LUN with copies have in common, and where a change touches it.

use manifest::objects::{Lun, Objects};
use std::collections::BTreeMap;

/// How a LUN is on all of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedState {
    /// It is in service.
    Served,
    /// It is out of service, and keeps its data.
    Removed,
    /// Its data is destroyed.
    Purged,
}

/// What a LUN with copies is to be on all of its nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedChange {
    /// What it is called from then on.
    pub name: String,
    /// All of it; only what nodes have in common counts.
    pub lun: Lun,
    /// Whether it is in service.
    pub state: SharedState,
}

type Known<'a> = BTreeMap<&'a str, (&'a String, &'a Lun, SharedState)>;

fn known(objects: &Objects) -> Known<'_> {
    let served = objects.luns.iter().map(|it| (it, SharedState::Served));
    let removed = objects.removed.iter().map(|it| (it, SharedState::Removed));
    let with_copies = |it: &((&String, &Lun), SharedState)| it.0.1.storage.copies.is_some();
    let all = served.chain(removed).filter(with_copies);
    all.map(|((name, lun), state)| (lun.naa.as_str(), (name, lun, state)))
        .collect()
}

/// What a change of this node's objects changes on other nodes as well. LUNs that are new are none
/// of it: what they are is said when they are there.
#[must_use]
pub fn shared_changes(before: &Objects, after: &Objects) -> Vec<SharedChange> {
    let (were, are) = (known(before), known(after));
    let change = |(naa, was): (&&str, &(&String, &Lun, SharedState))| {
        let change = |(name, lun, state): (&String, &Lun, SharedState)| SharedChange {
            name: name.clone(),
            lun: lun.clone(),
            state,
        };
        let Some(is) = are.get(naa) else {
            return Some(change((was.0, was.1, SharedState::Purged)));
        };
        let common = |it: &(&String, &Lun, SharedState)| {
            let (name, lun) = ((*it.0).clone(), it.1);
            (name, lun.size, lun.storage.min_copies, it.2)
        };
        (common(was) != common(is)).then(|| change(*is))
    };
    were.iter().filter_map(change).collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::objects::{NodeNames, fixture};
    use manifest::size::Size;

    #[test]
    fn what_nodes_have_in_common_is_said_and_what_is_each_ones_own_is_not() {
        let mut lun = fixture::lun();
        lun.storage.copies = NodeNames::of(["a", "b"]).ok();
        let mut before = Objects::default();
        before.luns.insert("one".to_owned(), lun.clone());
        before.luns.insert("alone".to_owned(), fixture::lun());
        let said = |after: &Objects| {
            let all = shared_changes(&before, after).into_iter();
            all.map(|it| (it.name, it.lun.size, it.lun.storage.min_copies, it.state))
                .collect::<Vec<_>>()
        };
        let mut after = before.clone();
        let alone = after.luns.get_mut("alone").unwrap();
        alone.size = Size::from_bytes(2 << 20).unwrap();
        after.luns.get_mut("one").unwrap().storage.shares = Some(7);
        assert_eq!(said(&after), []);
        let size = Size::from_bytes(2 << 20).unwrap();
        let one = after.luns.get_mut("one").unwrap();
        (one.size, one.storage.min_copies) = (size, Some(2));
        let is = |name: &str, state| vec![(name.to_owned(), size, Some(2), state)];
        assert_eq!(said(&after), is("one", SharedState::Served));
        let lun = after.luns.remove("one").unwrap();
        after.luns.insert("two".to_owned(), lun);
        assert_eq!(said(&after), is("two", SharedState::Served));
        let lun = after.luns.remove("two").unwrap();
        after.removed.insert("one".to_owned(), lun.clone());
        assert_eq!(said(&after), is("one", SharedState::Removed));
        after.removed.clear();
        let was = &before.luns["one"];
        let gone = vec![("one".to_owned(), was.size, None, SharedState::Purged)];
        assert_eq!(said(&after), gone);
        after.luns.insert("new".to_owned(), lun);
        before.luns.remove("one");
        assert_eq!(shared_changes(&before, &after), []);
    }
}
