//! The images of a pool, by the LUN that each of them says it is.

use super::ImagePool;
use crate::cluster::{Cluster, Description};
use crate::error::ErrorKind;
use crate::identity::Identity;
use crate::image::{Image, ImageSpec};
use crate::owner::{IMAGE, NAA, identity, image_name, lun_of};
use env::CoreHandle;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{BlockSize, ByteCount};
use volume::{Fences, OpenError, OpenErrorKind, Volume};

/// What is known of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolImage {
    /// The LUN that it is, or would be.
    pub naa: String,
    /// It says that it is a LUN.
    pub is_ours: bool,
    /// What it says of that LUN.
    pub record: Option<String>,
    /// Bytes of it.
    pub size: ByteCount,
}

/// What a LUN needs of its image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageShape {
    /// Bytes that it has at least.
    pub size: ByteCount,
    /// Bytes in a logical block.
    pub block_size: BlockSize,
    /// Logical blocks in a physical one, as a power of two.
    pub physical_block_exponent: u8,
}

impl ImagePool {
    /// The images of the pool, by name, as they were seen last.
    #[must_use]
    pub fn images(&self) -> BTreeMap<String, PoolImage> {
        self.state.borrow().images.clone()
    }

    /// Reads what is new of them; nothing while the cluster does not answer.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn refresh(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let is_silent = self.state.borrow().is_silent;
        match self.cluster() {
            Ok(cluster) if !is_silent => Ok(self.probe(core, &cluster).await?),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What the image of a LUN says of it, as it was seen last.
    #[must_use]
    pub fn record(&self, naa: &str) -> Option<String> {
        let name = self.image_of(naa);
        let state = self.state.borrow();
        state.images.get(&name)?.record.clone()
    }

    /// The image of a LUN.
    fn image_of(&self, naa: &str) -> String {
        let state = self.state.borrow();
        let found = state.images.iter().find(|(_, image)| image.naa == naa);
        found.map_or_else(|| image_name(naa), |(name, _)| name.clone())
    }

    /// Finds out that an image says that it is this LUN: it may have been changed, or another one
    /// may have its name now.
    async fn is_of(
        &self,
        core: &CoreHandle,
        cluster: &Cluster,
        name: &str,
        naa: &str,
    ) -> Result<Description, OpenError> {
        let found = cluster.describe(core, name).await?;
        let says = lun_of(name, &found);
        if says == Some(naa) {
            return Ok(found);
        }
        let says = match says {
            Some(other) => format!("says that it is LUN {other}, and not {naa}"),
            None => format!("does not say that it is LUN {naa}"),
        };
        // What was known of it was another's.
        self.state.borrow_mut().images.remove(name);
        let pool = &self.spec.cluster.pool;
        let set = |key, value: &str| {
            let key = Identity::key(key);
            format!("rbd image-meta set {pool}/{name} {key} {value}")
        };
        Err(OpenError {
            kind: OpenErrorKind::Refused,
            cause: format!(
                "image {name} of pool {pool} {says}: it was made anew, or lost its keys"
            ),
            next_step: format!(
                "bring the LUN's own image back under this name; or, where this one surely is it, give it its keys back: {}, and \
                 {}; or take it into service as another LUN: causeway lun adopt {name}",
                set(NAA, naa),
                set(IMAGE, &found.id)
            ),
        })
    }

    /// Makes an image that is nobody's say that it is this LUN.
    ///
    /// # Errors
    /// It is somebody's, or cannot be a LUN, or what else the cluster says.
    pub async fn claim(&self, core: &CoreHandle, naa: &str) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(naa));
        let name = name.as_str();
        let found = cluster.describe(core, name).await?;
        match lun_of(name, &found) {
            Some(says) if says == naa => return Ok(()),
            None if found.has_lock && found.identity.0.contains_key(IMAGE) => {
                // What a copy says is of the image that it was made of.
                cluster.set_identity(name, Identity::default()).await?;
            }
            Some(_) | None => {}
        }
        let identity = identity(naa, Some(&found.id), None);
        cluster.adopt(core, name, identity).await?;
        if let Some(image) = self.state.borrow_mut().images.get_mut(name) {
            image.is_ours = true;
        }
        Ok(())
    }

    /// Opens the image of a LUN.
    ///
    /// # Errors
    /// It does not say that it is this LUN, is too small for it, or what else the cluster says.
    pub async fn open(
        &self,
        core: &CoreHandle,
        naa: &str,
        shape: ImageShape,
        fences: Fences,
    ) -> Result<Arc<Image>, OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(naa));
        self.is_of(core, &cluster, &name, naa).await?;
        let spec = ImageSpec {
            name: name.clone(),
            block_size: shape.block_size,
            physical_block_exponent: shape.physical_block_exponent,
        };
        let image = Image::open(core, &cluster, spec, fences).await?;
        let has = image.shape().byte_count().0;
        if has < shape.size.0 {
            image.close().await;
            let (pool, wanted) = (&self.spec.cluster.pool, shape.size.0);
            return Err(OpenError {
                kind: OpenErrorKind::Damaged,
                cause: format!("image {name} of pool {pool} has {has} bytes, fewer than the {wanted} of the LUN"),
                next_step: "bring the whole image back: its end is missing; where it is lost for good, make it as large \
                            as it was (rbd resize), which puts zeroes in its place"
                    .to_owned(),
            });
        }
        let weak = Arc::downgrade(&image);
        self.state.borrow_mut().open.insert(naa.to_owned(), weak);
        Ok(image)
    }

    /// Makes a thin image for a LUN.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn make(
        &self,
        core: &CoreHandle,
        naa: &str,
        size: ByteCount,
    ) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, image_name(naa));
        let identity = identity(naa, None, None);
        let (made, maker) = (name.clone(), Arc::clone(&cluster));
        let work = async move { maker.create(&made, size, identity).await };
        self.change(core, "making an image", work).await?;
        let image = PoolImage {
            naa: naa.to_owned(),
            is_ours: true,
            record: None,
            size,
        };
        self.state.borrow_mut().images.insert(name, image);
        Ok(())
    }

    /// Removes the image of a LUN, unless it is another's.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn remove(&self, core: &CoreHandle, naa: &str) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(naa));
        let found = match cluster.describe(core, &name).await {
            Err(error) if error.kind == ErrorKind::NoImage => return Ok(()),
            found => found?,
        };
        if lun_of(&name, &found) != Some(naa) {
            // It was taken back by its owner, or never came to be ours.
            return Ok(());
        }
        let gone = name.clone();
        let work = async move { cluster.remove(&gone).await };
        self.change(core, "removing an image", work).await?;
        self.state.borrow_mut().images.remove(&name);
        Ok(())
    }

    /// Makes the image of a LUN say what that is.
    ///
    /// # Errors
    /// It does not say that it is this LUN, or what else the cluster says.
    pub async fn write_record(
        &self,
        core: &CoreHandle,
        naa: &str,
        record: String,
    ) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(naa));
        let id = self.is_of(core, &cluster, &name, naa).await?.id;
        let identity = identity(naa, Some(&id), Some(record.clone()));
        let named = name.clone();
        let work = async move { cluster.set_identity(&named, identity).await };
        self.change(core, "naming an image", work).await?;
        if let Some(image) = self.state.borrow_mut().images.get_mut(&name) {
            (image.is_ours, image.record) = (true, Some(record));
        }
        Ok(())
    }
}
