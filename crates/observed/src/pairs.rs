//! The same LUN in two moments: both lists are in the order of their names.

use manifest::activity::LunActivity;
use manifest::pulse::LunPulse;
use std::iter::Peekable;
use std::slice::Iter;
use std::sync::Arc;

/// A LUN of a moment.
pub trait Lun {
    /// Its name.
    fn name(&self) -> &str;

    /// Both have the same name, for a reason that is cheaper than to compare names.
    fn has_name_of(&self, other: &Self) -> bool;
}

impl Lun for Arc<LunActivity> {
    fn name(&self) -> &str {
        &self.name
    }

    fn has_name_of(&self, other: &Self) -> bool {
        // One that did nothing is mostly the very same.
        Self::ptr_eq(self, other)
    }
}

impl Lun for LunPulse {
    fn name(&self) -> &str {
        &self.name
    }

    fn has_name_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.name, &other.name)
    }
}

/// The LUNs of the older moment, which are gone through once.
pub struct Older<'a, T>(Peekable<Iter<'a, T>>);

impl<'a, T: Lun> Older<'a, T> {
    /// Of these, in the order of their names.
    #[must_use]
    pub fn new(luns: &'a [T]) -> Self {
        Self(luns.iter().peekable())
    }

    /// `lun` as it was, if it was there; `gone` is given those before it that are no more.
    pub fn of(&mut self, lun: &T, mut gone: impl FnMut(&'a T)) -> Option<&'a T> {
        if let Some(same) = self.0.next_if(|older| older.has_name_of(lun)) {
            return Some(same);
        }
        while let Some(older) = self.0.next_if(|older| older.name() < lun.name()) {
            gone(older);
        }
        self.0.next_if(|older| older.name() == lun.name())
    }

    /// Those that are no more and come after all that are.
    pub fn rest(self) -> impl Iterator<Item = &'a T> {
        self.0
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn lun(name: &str) -> Arc<LunActivity> {
        Arc::new(LunActivity {
            name: name.to_owned(),
            ..LunActivity::default()
        })
    }

    #[test]
    fn each_lun_finds_itself_and_those_that_are_gone_are_named() {
        let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(lun);
        let before = [&a, &b, &c, &e].map(Arc::clone);
        let mut older = Older::new(&before);
        let mut gone = Vec::new();
        let mut of = |lun: &Arc<LunActivity>| {
            let found = older.of(lun, |lun| gone.push(lun.name.as_str()));
            found.map(|it| Arc::ptr_eq(it, lun))
        };
        let other_c = lun("c");
        assert_eq!(of(&b), Some(true), "the very same");
        assert_eq!(of(&other_c), Some(false), "the same name");
        assert_eq!(of(&d), None);
        gone.extend(older.rest().map(|lun| lun.name.as_str()));
        assert_eq!(gone, ["a", "e"]);
    }
}
