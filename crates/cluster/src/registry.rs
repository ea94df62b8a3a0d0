//! How what happens on a ring's core reaches the task of its LUN on the core of control.

use crate::input::Input;
use crate::lun::Lun;
use env::{CoreHandle, CoreId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use units::Buf;
use write_back::{Carrier, Change, Sequence, VolumeId};

/// The LUNs of a core.
#[derive(Default)]
pub(crate) struct Registry(RefCell<BTreeMap<VolumeId, Weak<Lun>>>);

impl Registry {
    pub(crate) fn put(&self, lun: &Rc<Lun>) {
        self.0.borrow_mut().insert(lun.id, Rc::downgrade(lun));
    }

    pub(crate) fn get(&self, id: VolumeId) -> Option<Rc<Lun>> {
        self.0.borrow().get(&id)?.upgrade()
    }
}

/// What a ring reports of a volume, to another core or its own.
pub(crate) struct Reporter {
    /// The ring's core, and that of control.
    pub(crate) core: CoreHandle,
    pub(crate) home: CoreId,
    pub(crate) id: VolumeId,
    pub(crate) ring: u8,
}

impl Reporter {
    fn report(&self, input: Input) {
        let id = self.id;
        let hand = move |core: &CoreHandle| {
            if let Some(lun) = core.locals().get::<Registry>().get(id) {
                lun.hears(input);
            }
        };
        if self.home == self.core.id() {
            hand(&self.core);
        } else {
            self.core.post(self.home, Box::new(hand));
        }
    }
}

impl Carrier for Reporter {
    fn submitted(&self, changes: Vec<(Change, Buf)>) {
        let ring = self.ring;
        self.report(Input::Submitted { ring, changes });
    }

    fn stable(&self, below: Sequence) {
        let ring = self.ring;
        self.report(Input::Stable {
            ring,
            below: below.0,
        });
    }
}
