//! Which line is whose: objects by their names, and by their identities.

use crate::object::{Kind, Object};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object, and what is known of whose figures these are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// Its number in rows.
    pub(crate) id: u32,
    /// The identity, where it has one.
    pub(crate) identity: Option<Arc<str>>,
}

/// All that are known.
#[derive(Default, Debug)]
pub(crate) struct Ids {
    named: BTreeMap<Object, Known>,
    /// What each identity is called.
    called: BTreeMap<(Kind, Arc<str>), String>,
    next: u32,
}

impl Ids {
    pub(crate) fn get(&self, object: &Object) -> Option<&Known> {
        self.named.get(object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Object, &Known)> {
        self.named.iter()
    }

    pub(crate) fn insert(&mut self, object: Object, known: Known) {
        self.next = self.next.max(known.id + 1);
        if let Some(identity) = &known.identity {
            let identity = (object.kind, Arc::clone(identity));
            self.called.insert(identity, object.name.clone());
        }
        self.named.insert(object, known);
    }

    pub(crate) fn remove(&mut self, object: &Object) -> Option<Known> {
        let known = self.named.remove(object)?;
        if let Some(identity) = &known.identity {
            let identity = (object.kind, Arc::clone(identity));
            // Two of an identity were kept once: the other one has it then.
            if self.called.get(&identity) == Some(&object.name) {
                self.called.remove(&identity);
            }
        }
        Some(known)
    }

    /// The object of an identity, where it is called anything else than that.
    pub(crate) fn elsewhere(&self, object: &Object, identity: &Arc<str>) -> Option<Object> {
        let called = self.called.get(&(object.kind, Arc::clone(identity)))?;
        (*called != object.name).then(|| Object {
            kind: object.kind,
            name: called.clone(),
        })
    }

    /// The number of an object, which is known from now on, and by this identity.
    pub(crate) fn know(&mut self, object: Object, identity: Option<Arc<str>>) -> u32 {
        let known = self.named.get(&object);
        let id = known.map_or(self.next, |known| known.id);
        let identity = identity.or_else(|| known.and_then(|known| known.identity.clone()));
        self.insert(object, Known { id, identity });
        id
    }
}
