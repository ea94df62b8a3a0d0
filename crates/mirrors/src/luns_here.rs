//! The LUNs of this node, for those that have copies on others: what other nodes have made or
//! changed comes as changes of the objects.

use crate::found::Luns;
use controller::{Controller, How};
use env::LocalFuture;
use manifest::objects::Lun;
use manifest::plan::{Adopted, Edit, Elsewhere};
use manifest::problem::Problem;
use std::rc::Weak;

/// As the controller stores them.
pub struct LunsHere(Weak<Controller>);

impl LunsHere {
    /// Those of this controller.
    #[must_use]
    pub const fn new(controller: Weak<Controller>) -> Self {
        Self(controller)
    }
}

impl Luns for LunsHere {
    fn lun(&self, naa: &str) -> Option<(String, Lun)> {
        let objects = self.0.upgrade()?.objects();
        let found = objects.luns.iter().find(|(_, it)| it.naa == naa);
        found.map(|(name, lun)| (name.clone(), lun.clone()))
    }

    fn known(&self, naa: &str) -> Option<(String, Lun, bool)> {
        let objects = self.0.upgrade()?.objects();
        let served = objects.luns.iter().map(|it| (it, true));
        let mut all = served.chain(objects.removed.iter().map(|it| (it, false)));
        let found = all.find(|((_, lun), _)| lun.naa == naa);
        found.map(|((name, lun), is)| (name.clone(), lun.clone(), is))
    }

    fn make(&self, name: String, lun: Lun) -> LocalFuture<Result<(), Problem>> {
        let controller = self.0.upgrade();
        Box::pin(async move {
            let Some(controller) = controller else {
                return Ok(());
            };
            let objects = controller.objects();
            let mut known = objects.luns.values().chain(objects.removed.values());
            if known.any(|it| it.naa == lun.naa) {
                return Ok(());
            }
            let copy = Edit::Copy(Box::new(Adopted { name, lun }));
            controller.edit(&copy, How::default()).await.map(drop)
        })
    }

    fn elsewhere(&self, wanted: Elsewhere) -> LocalFuture<Result<(), Problem>> {
        let controller = self.0.upgrade();
        Box::pin(async move {
            let Some(controller) = controller else {
                return Ok(());
            };
            let edit = Edit::Elsewhere(Box::new(wanted));
            let how = How {
                force: true,
                dry_run: false,
            };
            controller.edit(&edit, how).await.map(drop)
        })
    }
}
