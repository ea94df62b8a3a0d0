//! One object as it was asked for.

use super::Controller;
use manifest::objects::{ObjectSet, Objects, export};
use manifest::plan::{Section, Subject};

impl Controller {
    /// What an object is meant to be, as `export` has it alone and without anything secret; `None`:
    /// there is none.
    #[must_use]
    pub fn spec(&self, subject: &Subject) -> Option<ObjectSet> {
        let (objects, name) = (self.objects(), &subject.name);
        let mut alone = Objects::default();
        match subject.section {
            Section::Lun => {
                let lun = objects.luns.get(name)?;
                alone.luns.insert(name.clone(), lun.clone());
            }
            Section::Target => {
                let target = objects.targets.get(name)?;
                alone.targets.insert(name.clone(), target.clone());
            }
            Section::Host => {
                let host = objects.hosts.get(name)?;
                alone.hosts.insert(name.clone(), host.clone());
            }
            Section::Grant => {
                let key = name.parse().ok()?;
                let grant = objects.grants.get(&key)?;
                alone.grants.insert(key, *grant);
            }
        }
        Some(export(&alone))
    }
}
