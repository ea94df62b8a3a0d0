//! LUNs of the cluster that shall have a copy on this node, and have none: they are made here.

use crate::found::Found;
use crate::object::{self, LunObject};
use arbiter::Arbiter;
use env::LocalFuture;
use manifest::objects::Lun;
use manifest::problem::Problem;
use replica::Revision;
use std::collections::BTreeMap;

/// The LUNs of this node.
pub(crate) trait Here {
    /// The LUN is in service here.
    fn knows(&self, naa: &str) -> bool;

    /// The LUN was destroyed here, and is not made again.
    fn is_gone(&self, naa: &str) -> LocalFuture<bool>;

    /// Makes its copy here.
    fn make(&self, name: String, lun: Lun) -> LocalFuture<Result<(), Problem>>;
}

/// What is known of the objects of LUNs in the arbiter.
#[derive(Default)]
pub(crate) struct Followed {
    until: Revision,
    /// By NAA identifier.
    wanted: BTreeMap<String, LunObject>,
    /// The last refusal of each that cannot be made here, so that it is said once.
    refused: BTreeMap<String, String>,
}

impl Followed {
    /// Hears what changed.
    pub(crate) async fn hear(&mut self, arbiter: &dyn Arbiter, found: &Found) {
        let changes = match arbiter.changes(&object::luns_key(), self.until).await {
            Ok(changes) => changes,
            Err(trouble) => {
                tracing::debug!(%trouble, "the LUNs of the cluster are not known");
                return;
            }
        };
        for (key, (_, text)) in &changes.records {
            let Some(naa) = object::naa_of(key) else {
                continue;
            };
            match object::decode(text) {
                Ok(object) if object.copies().is_some_and(|it| it.has(&found.name)) => {
                    self.wanted.insert(naa.to_owned(), object);
                }
                Ok(_) => drop(self.wanted.remove(naa)),
                Err(why) => tracing::warn!(%key, why, "what a LUN is cannot be read"),
            }
        }
        self.until = changes.until;
    }

    /// Makes those that are not here.
    pub(crate) async fn make(&mut self, mirrors: &dyn Here) {
        let missing = self.wanted.iter().filter(|(naa, _)| !mirrors.knows(naa));
        let missing: Vec<(String, LunObject)> =
            missing.map(|(naa, it)| (naa.clone(), it.clone())).collect();
        for (naa, LunObject { name, lun, .. }) in missing {
            if mirrors.is_gone(&naa).await {
                continue;
            }
            match mirrors.make(name.clone(), lun).await {
                Ok(()) => {
                    tracing::info!(lun = name, naa, "a LUN of the cluster has a copy here");
                    self.refused.remove(&naa);
                }
                Err(problem) => {
                    let why = problem.to_string();
                    if self.refused.get(&naa) != Some(&why) {
                        tracing::error!(
                            lun = name,
                            naa,
                            why,
                            "a LUN of the cluster cannot have its copy here"
                        );
                        self.refused.insert(naa, why);
                    }
                }
            }
        }
    }
}
