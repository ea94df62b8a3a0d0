//! The LUNs in service, by their NAA identifiers, and in the order of their names for whoever goes
//! through all of them every second.

use crate::lun::unit::Unit;
use manifest::objects::Objects;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// So many LUNs are found in one go, and then whatever else is ready on the core has its turn.
const AT_ONCE: usize = 128;

type ByNaa = BTreeMap<String, Rc<Unit>>;

/// LUNs come and go by [`Units::borrow_mut`] alone, which counts that.
#[derive(Default)]
pub(crate) struct Units {
    by_naa: RefCell<ByNaa>,
    changes: Cell<u64>,
    listing: RefCell<Option<Rc<Listing>>>,
}

/// The LUNs in service, in the order of their names.
pub(crate) struct Listing {
    objects: Rc<Objects>,
    changes: u64,
    pub(crate) luns: Vec<Listed>,
}

/// A LUN.
pub(crate) struct Listed {
    pub(crate) name: Arc<str>,
    pub(crate) naa: Arc<str>,
    pub(crate) is_cached: bool,
    /// A listing keeps no unit that went out of service.
    unit: Weak<Unit>,
}

impl Units {
    /// A LUN's unit, or the one that has taken its place since the listing was made.
    pub(crate) fn of(&self, lun: &Listed) -> Option<Rc<Unit>> {
        let known = lun.unit.upgrade();
        known.or_else(|| self.borrow().get(&*lun.naa).cloned())
    }

    pub(crate) fn borrow(&self) -> Ref<'_, ByNaa> {
        self.by_naa.borrow()
    }

    pub(crate) fn borrow_mut(&self) -> RefMut<'_, ByNaa> {
        self.changes.set(self.changes.get() + 1);
        self.by_naa.borrow_mut()
    }

    /// Those of these objects. The same listing, as long as nothing was changed.
    pub(crate) async fn listing(&self, objects: Rc<Objects>) -> Rc<Listing> {
        let changes = self.changes.get();
        let known = self.listing.borrow().clone();
        let is_true = |it: &Rc<Listing>| Rc::ptr_eq(&it.objects, &objects) && it.changes == changes;
        if let Some(known) = known.filter(is_true) {
            return known;
        }
        let mut luns = Vec::with_capacity(objects.luns.len());
        for (number, (name, lun)) in objects.luns.iter().enumerate() {
            if number % AT_ONCE == AT_ONCE - 1 {
                env::yield_now().await;
            }
            if let Some(unit) = self.borrow().get(&lun.naa) {
                luns.push(Listed {
                    name: Arc::from(name.as_str()),
                    naa: Arc::from(lun.naa.as_str()),
                    is_cached: lun.storage.read_cache.is_some(),
                    unit: Rc::downgrade(unit),
                });
            }
        }
        let listing = Rc::new(Listing {
            objects: Rc::clone(&objects),
            changes,
            luns,
        });
        self.listing.replace(Some(Rc::clone(&listing)));
        listing
    }
}
