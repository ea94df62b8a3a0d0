//! The door: what a layer of a LUN can do, and what a kind of layer says of itself.

use super::handles::Handles;
use crate::backend::door::{Work, done};
use crate::backend::pools::Ground;
use crate::journal::pool_journal::PoolJournal;
use env::CoreHandle;
use layers::scrub::ScrubbedMap;
use manifest::objects::{LayerFacts, Lun, Storage};
use manifest::problem::Problem;
use std::rc::Rc;
use std::sync::Arc;
use units::BlockCount;
use volume::{Copies, Lane, OpenError, OpenErrorKind, Shape, Volume, Wrap, over};

/// What a LUN is opened with.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) core: &'a CoreHandle,
    pub(crate) ground: Ground<'a>,
    /// The LUN's name, as logs say it.
    pub(crate) name: &'a str,
    pub(crate) lun: &'a Lun,
    /// What keeps its writes.
    pub(crate) journal: &'a PoolJournal,
}

/// The volume that a layer makes.
pub(crate) type Over<'a> = Work<'a, Result<Arc<dyn Volume>, OpenError>>;

/// A LUN's backing volume, below everything that keeps some of its blocks elsewhere.
pub(crate) struct Base {
    pub(crate) shape: Shape,
    pub(crate) lane: Rc<dyn Lane>,
    /// The map of its checksums, where it has some.
    pub(crate) map: Option<Rc<dyn ScrubbedMap>>,
}

/// What is left to do when nobody uses a layer any more that was taken out.
pub(crate) type Rest = Box<dyn FnOnce()>;

/// A layer of one LUN. What a layer does not say is so: it has nothing to switch and to report, and
/// keeps nothing of the LUN elsewhere.
pub(crate) trait Layer {
    /// Puts it over a volume.
    fn over<'a>(&'a self, below: Arc<dyn Volume>, opening: &'a Opening<'a>) -> Over<'a>;

    /// Brings what these fields say into force at once, on every core.
    fn set_now<'a>(&'a self, _: &'a CoreHandle, _: &'a Storage) -> Work<'a, ()> {
        done(())
    }

    /// What lanes do that are opened from now on; `true`: they must be opened for it.
    fn set(&self, _: &Storage) -> bool {
        false
    }

    /// Where it keeps copies of blocks: what is destaged below is offered to it.
    fn copies(&self) -> Option<Box<dyn Copies>> {
        None
    }

    /// Fills in what `lun show` and the metrics report of it.
    fn report(&self, _: &mut LayerFacts) {}

    /// Operations that it makes wait now, for a reason of its own.
    fn waiting(&self) -> u64 {
        0
    }

    /// The LUN has another name, as logs say it.
    fn rename(&self, _: &str) {}

    /// Whether it can stand over so many blocks.
    fn reaches(&self, _: BlockCount) -> Result<(), OpenError> {
        Ok(())
    }

    /// What is below has more or fewer blocks now.
    fn reshape<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, Result<(), OpenError>> {
        done(Ok(()))
    }

    /// Destages what it has of the LUN, as far as that can be done.
    fn destage<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        done(())
    }

    /// The same, and forgets where the LUN is.
    fn release<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        done(())
    }

    /// What is below is gone: it keeps what it has of the LUN until that is back.
    fn leave<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        done(())
    }

    /// Writes all of its sidecar, and that it is all: nobody uses it any more.
    fn close<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        done(())
    }

    /// The LUN's blocks without the layers above it, where it stands below everything that keeps
    /// some of them elsewhere.
    fn base<'a>(
        &'a self,
        _: &'a CoreHandle,
        _leaf: &Arc<dyn Volume>,
    ) -> Option<Work<'a, Result<Base, OpenError>>> {
        None
    }

    /// Comes between while hosts work, with the sidecar that was made for it. On an error nothing
    /// has changed.
    fn switch_on<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: Ground<'a>,
        _named: (&'a str, &'a Lun),
    ) -> Work<'a, Result<(), OpenError>> {
        done(Err(not_live()))
    }

    /// Goes while hosts work; `None`: it was not there. On an error nothing has changed.
    fn switch_off<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, Result<Option<Rest>, OpenError>> {
        done(Err(not_live()))
    }
}

/// Why a layer cannot be switched that has not said how.
fn not_live() -> OpenError {
    OpenError {
        kind: OpenErrorKind::Refused,
        cause: "this cannot be changed while hosts work".to_owned(),
        next_step: "restart the daemon".to_owned(),
    }
}

/// What a kind of layer keeps in a sidecar of a LUN. Each LUN comes with the storage
/// fields of the kind alone.
pub(crate) trait KeepsSidecar: Sync {
    /// Makes it for a LUN that was just made and reads as zeroes, where the LUN is to have one.
    fn create<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: Ground<'a>,
        _: &'a Lun,
    ) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    /// Makes it for a LUN that has contents, in place of any that it had.
    fn create_later<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: Ground<'a>,
        _: &'a Lun,
    ) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    /// Removes it where there is one: it is never trusted again.
    fn retire<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: Ground<'a>,
        _: &'a Lun,
    ) -> Work<'a, Result<(), OpenError>> {
        done(Ok(()))
    }

    /// Has room for a LUN that becomes as large as this one says.
    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
        journal: &'a PoolJournal,
    ) -> Work<'a, Result<(), Problem>>;
}

/// A layer that only has to be put over what is below.
pub(crate) struct Plain<W>(pub(crate) W);

impl<W: Wrap + Clone> Layer for Plain<W> {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        put(&self.0, below)
    }
}

/// What nothing can keep from standing over `below`.
pub(crate) fn put<'a>(wrap: &(impl Wrap + Clone), below: Arc<dyn Volume>) -> Over<'a> {
    done(Ok(over(wrap.clone(), below)))
}

/// Makes a layer as a stored LUN says; `None`: this LUN has none.
pub(super) type Make = fn(&CoreHandle, &Lun, &Rc<Handles>) -> Option<Box<dyn Layer>>;

/// A kind of layer, as the table of them has it.
pub(crate) struct LayerKind {
    /// As the stack is drawn.
    pub(crate) name: &'static str,
    /// The storage fields of a LUN that it follows. It sees no other.
    pub(crate) fields: &'static [&'static str],
    /// `None`: it is an end of the stack and no layer.
    pub(super) make: Option<Make>,
    /// What it keeps in a sidecar, where it keeps something.
    pub(crate) sidecar: Option<&'static dyn KeepsSidecar>,
}

impl LayerKind {
    /// A row that says nothing: what the others leave out is as here.
    pub(crate) const BLANK: Self = Self {
        name: "",
        fields: &[],
        make: None,
        sidecar: None,
    };

    /// What the layer sees of these fields.
    pub(crate) fn of(&self, storage: &Storage) -> Storage {
        storage.only(self.fields)
    }

    /// The LUN without what belongs to other rows of the stack.
    pub(crate) fn lun(&self, lun: &Lun) -> Lun {
        Lun {
            storage: self.of(&lun.storage),
            ..lun.clone()
        }
    }
}
