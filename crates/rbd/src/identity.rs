//! Whose an image is: kept with it, in its metadata.

use crate::ffi::{Errno, ImageHandle};
use std::collections::BTreeMap;

/// What our keys begin with. Others keep theirs beside them (`conf_` is librbd's own).
const PREFIX: &str = "causeway.";

/// What is known of an image's owner: keys without `causeway.`, and values. None: it belongs to
/// nobody.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Identity(pub BTreeMap<String, String>);

impl Identity {
    /// Nobody's.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a key is called in the image's metadata, for whoever sets it by hand.
    #[must_use]
    pub fn key(key: &str) -> String {
        format!("{PREFIX}{key}")
    }

    fn of(metadata: &BTreeMap<String, String>) -> Self {
        let ours = metadata.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(PREFIX)?;
            Some((key.to_owned(), value.clone()))
        });
        Self(ours.collect())
    }

    /// What the image says.
    pub(crate) fn read(image: &ImageHandle) -> Result<Self, Errno> {
        Ok(Self::of(&image.metadata()?))
    }

    /// Makes the image say this and nothing else of ours.
    pub(crate) fn write(&self, image: &ImageHandle) -> Result<(), Errno> {
        let before = Self::read(image)?;
        for key in before.0.keys().filter(|key| !self.0.contains_key(*key)) {
            image.remove_metadata(&Self::key(key))?;
        }
        for (key, value) in &self.0 {
            if before.0.get(key) != Some(value) {
                image.set_metadata(&Self::key(key), value)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn keys_of_others_are_no_part_of_an_identity() {
        let metadata = [
            ("causeway.lun", "a"),
            ("conf_rbd_cache", "true"),
            ("causeway", "b"),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let identity = Identity::of(&BTreeMap::from(metadata));
        assert_eq!(
            identity.0,
            BTreeMap::from([("lun".to_owned(), "a".to_owned())])
        );
        assert!(Identity::of(&BTreeMap::new()).is_empty());
    }
}
