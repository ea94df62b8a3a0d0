//! What is asked of all layers of a LUN while it is in service, and of the one that follows a
//! field.

use super::door::{Base, Layer, Rest};
use super::{Layers, kind_of};
use crate::backend::pools::Ground;
use env::CoreHandle;
use manifest::objects::Lun;
use std::sync::Arc;
use units::BlockCount;
use volume::{OpenError, Volume};

impl Layers {
    fn each(&self) -> impl Iterator<Item = &dyn Layer> {
        self.all.iter().map(|(_, layer)| &**layer)
    }

    /// The LUN has another name, as logs say it.
    pub(crate) fn rename(&self, name: &str) {
        for layer in self.each() {
            layer.rename(name);
        }
    }

    /// Whether all of them can stand over so many blocks.
    ///
    /// # Errors
    /// Why one of them cannot.
    pub(crate) fn reaches(&self, blocks: BlockCount) -> Result<(), OpenError> {
        let mut all = self.each();
        all.try_for_each(|layer| layer.reaches(blocks))
    }

    /// What is below has more or fewer blocks now.
    ///
    /// # Errors
    /// One could not follow; it can be asked for again.
    pub(crate) async fn reshape(&self, core: &CoreHandle) -> Result<(), OpenError> {
        for layer in self.each() {
            layer.reshape(core).await?;
        }
        Ok(())
    }

    /// Destages what they have of the LUN, as far as that can be done.
    pub(crate) async fn destage(&self, core: &CoreHandle) {
        for layer in self.each() {
            layer.destage(core).await;
        }
    }

    /// The same, and they forget where the LUN is.
    pub(crate) async fn release(&self, core: &CoreHandle) {
        for layer in self.each() {
            layer.release(core).await;
        }
    }

    /// What is below is gone: they keep what they have of the LUN until that is back.
    pub(crate) async fn leave(&self, core: &CoreHandle) {
        for layer in self.each() {
            layer.leave(core).await;
        }
    }

    /// They write all of their sidecars, and that it is all: nobody uses them any more.
    pub(crate) async fn close(&self, core: &CoreHandle) {
        for layer in self.each() {
            layer.close(core).await;
        }
    }

    /// The blocks below everything that keeps some of them elsewhere: what a scrub reads. `None`:
    /// no layer gives them.
    ///
    /// # Errors
    /// They cannot be opened.
    pub(crate) async fn base(
        &self,
        core: &CoreHandle,
        leaf: &Arc<dyn Volume>,
    ) -> Result<Option<Base>, OpenError> {
        let base = self.each().find_map(|layer| layer.base(core, leaf));
        match base {
            Some(base) => base.await.map(Some),
            None => Ok(None),
        }
    }

    /// The layer that follows this field.
    fn layer_of(&self, field: &str) -> &dyn Layer {
        let mut all = self.all.iter();
        let found = all.find(|(kind, _)| kind.fields.contains(&field));
        &*found.expect("what is switched is a layer of the LUN").1
    }

    /// The layer that follows this field comes between while hosts work, with the sidecar that was
    /// made for it.
    ///
    /// # Errors
    /// Why that cannot be done now; nothing has changed then.
    pub(crate) async fn switch_on(
        &self,
        field: &str,
        core: &CoreHandle,
        ground: Ground<'_>,
        (name, lun): (&str, &Lun),
    ) -> Result<(), OpenError> {
        let lun = kind_of(field).lun(lun);
        let layer = self.layer_of(field);
        layer.switch_on(core, ground, (name, &lun)).await
    }

    /// The layer that follows this field goes while hosts work; `None`: it was not there. What is
    /// left is to be done when nobody uses it any more.
    ///
    /// # Errors
    /// Why that cannot be done now; nothing has changed then.
    pub(crate) async fn switch_off(
        &self,
        field: &str,
        core: &CoreHandle,
    ) -> Result<Option<Rest>, OpenError> {
        self.layer_of(field).switch_off(core).await
    }
}
