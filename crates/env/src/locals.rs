//! What belongs to one core and is found again by jobs that other cores post.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// One value per type, made when first asked for, alive as long as the core.
#[derive(Default)]
pub struct Locals(RefCell<BTreeMap<TypeId, Rc<dyn Any>>>);

impl Locals {
    /// The core's `T`.
    ///
    /// # Panics
    /// Never: the entry under a type's id has that type.
    #[must_use]
    pub fn get<T: Default + 'static>(&self) -> Rc<T> {
        let known = self.0.borrow().get(&TypeId::of::<T>()).cloned();
        let any = known.unwrap_or_else(|| {
            let made: Rc<dyn Any> = Rc::new(T::default());
            self.0
                .borrow_mut()
                .entry(TypeId::of::<T>())
                .or_insert(made)
                .clone()
        });
        any.downcast()
            .expect("the entry under a type's id has that type")
    }

    /// Drops all values: the core is gone.
    pub(crate) fn clear(&self) {
        let values = std::mem::take(&mut *self.0.borrow_mut());
        drop(values);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_same_type_finds_the_same_value() {
        let locals = Locals::default();
        locals.get::<Cell<u32>>().set(7);
        assert_eq!(locals.get::<Cell<u32>>().get(), 7);
        assert_eq!(locals.get::<Cell<u64>>().get(), 0);
    }
}
