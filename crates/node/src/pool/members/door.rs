//! The door to pools of members.

use super::{MemberLeaf, MemberPool, MemberPoolFacts, layout_name, lun_id};
use crate::backend::door::{
    Backend, KeepsJournal, Leaf, Pool, PoolIdentity, Promised, Stored, Work, done,
};
use crate::inner::Inner;
use crate::lun::failed::of_pool;
use crate::lun::geometry::{block_size, provisioning};
use crate::lun::sidecar::{CHECKSUMS, ending, remove};
use crate::pool::late;
use crate::pool::orphan_record::{NoRecord, orphan_of};
use crate::pool::space::state_of;
use ::members::{LunId, SidecarKind};
use ::sidecar::{self, Sidecar};
use backends::Progress;
use env::CoreHandle;
use env::file::{OpenHow, is_there};
use logical_unit::LogicalUnit;
use manifest::config::{self, Layout};
use manifest::facts::{PoolFacts, PoolState};
use manifest::objects::{Lun, Objects};
use manifest::orphan::{LunRecord, Orphan};
use manifest::problem::Problem;
use state::remembered;
use state::saved::{SavedText, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use volume::{Fences, OpenError};

/// Files of `state_dir` up to this size move to members when their LUN is opened. A larger one
/// stays: hosts would wait for the copy.
const MOVED_BYTES_MAX: u64 = 64 << 20;

/// A pool of members behind the door.
pub(crate) struct Members {
    node: Weak<Inner>,
    config: config::Pool,
    layout: Layout,
    pool: Rc<MemberPool>,
}

/// Opens one at the start, and makes it where it is new.
pub(crate) fn open<'a>(
    node: &'a Rc<Inner>,
    pool: &'a config::Pool,
    (paths, layout): (&'a [PathBuf], Layout),
    objects: &'a Rc<Objects>,
) -> Work<'a, Result<Rc<dyn Pool>, Problem>> {
    Box::pin(async move {
        let mut luns = objects.luns.values().chain(objects.removed.values());
        let used = luns.any(|lun| lun.backing.pool() == Some(pool.name.as_str()));
        let state_dir = &node.config.state_dir;
        let opened = MemberPool::open(&node.core, pool, (paths, layout), state_dir, used);
        Ok(Rc::new(Members {
            node: Rc::downgrade(node),
            config: pool.clone(),
            layout,
            pool: opened.await,
        }) as Rc<dyn Pool>)
    })
}

/// The size of a file in bytes; 0 where it cannot be opened.
async fn size_of_file(core: &CoreHandle, path: &Path) -> u64 {
    let Ok(file) = core.files().open(path, OpenHow::READ).await else {
        return 0;
    };
    env::file::length(&file).await.unwrap_or(0)
}

/// As members know it.
const fn kind(what: sidecar::SidecarKind) -> SidecarKind {
    match what {
        sidecar::SidecarKind::Checksums => SidecarKind::Checksums,
        sidecar::SidecarKind::Changes => SidecarKind::Changes,
    }
}

impl Members {
    fn node(&self) -> Rc<Inner> {
        self.node.upgrade().expect("a pool lives in its node")
    }

    /// What stands in a file because it has no room on the members, or had none.
    fn sidecar_path(&self, naa: &str, ending: &str) -> PathBuf {
        let node = self.node();
        let directory = remembered::sidecar(&node.config.state_dir, &self.config.name);
        directory.join(format!("{naa}.{ending}"))
    }

    async fn orphan(&self, id: LunId, naa: &str) -> Orphan {
        let record = self.pool.record(id).map_or_else(
            || Err(NoRecord::Absent("on the members")),
            |text| LunRecord::decode(&text).map_err(NoRecord::from),
        );
        let files = self.node().core.files();
        let has_checksums = self.pool.has_sidecar(id, SidecarKind::Checksums)
            || is_there(&*files, &self.sidecar_path(naa, CHECKSUMS)).await;
        let mut orphan = orphan_of(&self.config.name, naa, record, has_checksums);
        if orphan.record.is_none() {
            orphan.size_bytes = self.pool.bytes_of(id).unwrap_or_default();
        }
        orphan
    }

    /// Moves a sidecar to the members, where it can be, and opens it there or in its file.
    async fn stand(
        &self,
        lun: &Lun,
        what: sidecar::SidecarKind,
        bytes: u64,
        is_new: bool,
    ) -> Sidecar {
        let (node, pool) = (self.node(), &self.pool);
        let (core, id) = (&node.core, lun_id(lun));
        let path = self.sidecar_path(&lun.naa, ending(what));
        let what = kind(what);
        let has = pool.has_sidecar(id, what);
        let old = is_there(&*core.files(), &path).await;
        let is_elsewhere = !has && !old && !is_new;
        let stays = !has && old && size_of_file(core, &path).await > MOVED_BYTES_MAX;
        if is_elsewhere || stays || pool.is_in_file(id, what) {
            return Sidecar::File(path);
        }
        let moves = Some(path.as_path()).filter(|_| old && !has);
        let made = pool
            .make_room_for_sidecar(core, (lun, what), bytes, moves)
            .await;
        if let Err(error) = made {
            tracing::warn!(
                lun = lun.naa,
                "{} has no room on the members of its pool, so that it is not adopted where state_dir is lost: {error}",
                path.display()
            );
        } else if old && let Err(error) = remove(core, &path).await {
            // What stands on the members counts from now on.
            tracing::warn!("{} is of no use any more: {error}", path.display());
        }
        match pool.open_sidecar(core, lun, what).await {
            Ok(part) => part,
            Err(error) if pool.has_sidecar(id, what) => {
                tracing::error!(lun = lun.naa, "{error}");
                // It cannot be opened there, and says so.
                Sidecar::File(path)
            }
            Err(_) => {
                if what == SidecarKind::Changes {
                    // The journal has it open until it is closed.
                    pool.stays_in_file(id, what);
                }
                Sidecar::File(path)
            }
        }
    }

    /// Bytes that a LUN has, as far as is known here and to the pool, which may have seen it larger
    /// than objects that were restored say: of what the pool knows of these very objects nothing
    /// is given back.
    fn known_bytes(&self, lun: &Lun) -> u64 {
        let here = lun.size.bytes();
        let node = self.node();
        let stored = node.stored.borrow();
        let Some((node_id, generation)) = &*stored else {
            return here;
        };
        let saved = self.pool.record(LunId::POOL).as_deref().and_then(parse);
        let has_seen =
            saved.is_some_and(|it| it.node_id == *node_id && it.generation >= *generation);
        if !has_seen {
            return here;
        }
        let record = self.pool.record(lun_id(lun));
        let record = record.and_then(|record| LunRecord::decode(&record).ok());
        record.map_or(here, |record| record.lun.size.bytes().max(here))
    }
}

impl Backend for Members {
    /// Gives it its part of the pool, which reads as zeroes.
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        progress: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let size = lun.size.bytes();
            let made = async {
                self.pool.resize(core, lun_id(lun), size).await?;
                let how = (block_size(lun), provisioning(lun));
                let fences = LogicalUnit::fences_for();
                let leaf = MemberLeaf::open(core, &self.pool, lun_id(lun), how, fences).await?;
                leaf.make_room(core, 0..size, progress).await
            };
            made.await.map_err(|error| of_pool(&error))
        })
    }

    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>> {
        Box::pin(async move {
            let how = (block_size(lun), provisioning(lun));
            let leaf = MemberLeaf::open(core, &self.pool, lun_id(lun), how, fences).await?;
            Ok(leaf as Rc<dyn Leaf>)
        })
    }

    fn destroy<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let gone = self.pool.release(core, lun_id(lun)).await;
            gone.map_err(|error| of_pool(&error))
        })
    }
}

impl Pool for Members {
    fn journals(&self) -> Option<&dyn KeepsJournal> {
        Some(self)
    }

    /// LUNs that lack no member are served where others are away: each says for itself.
    fn missing(&self) -> Option<OpenError> {
        None
    }

    fn facts(&self, promised: Promised) -> Work<'_, (PoolFacts, Option<u64>)> {
        let facts = self.pool.facts();
        done((self.pool_facts(facts, promised), None))
    }

    fn members_of(&self, lun: &Lun) -> Vec<u16> {
        self.pool.members_of(lun_id(lun))
    }

    fn watch(&self) -> Work<'_, ()> {
        Box::pin(async move {
            let node = self.node();
            super::watch::inspect(&node, &self.pool, &self.config).await;
        })
    }

    fn write_down(&self) -> Work<'_, ()> {
        Box::pin(async move { self.pool.remember(&self.node().core).await })
    }

    fn stored<'a>(&'a self, lun: &'a Lun, _: bool) -> Work<'a, Option<Stored>> {
        let text = self.pool.record(lun_id(lun));
        let record = text.and_then(|text| LunRecord::decode(&text).ok());
        done(Some(Stored { text: None, record }))
    }

    fn write_record<'a>(
        &'a self,
        record: &'a LunRecord,
        text: Vec<u8>,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let (node, texts) = (self.node(), BTreeMap::from([(lun_id(&record.lun), text)]));
            self.pool.keep_records(&node.core, texts).await
        })
    }

    fn write_records<'a>(&'a self, records: &'a [LunRecord]) -> Work<'a, Vec<(String, OpenError)>> {
        Box::pin(async move {
            let texts = records.iter();
            let texts = texts.map(|record| (lun_id(&record.lun), record.encode()));
            let (node, texts) = (self.node(), texts.collect());
            let Err(error) = self.pool.keep_records(&node.core, texts).await else {
                return Vec::new();
            };
            let why = late::of(format_args!("pool {}", self.config.name), error);
            let all = records.iter();
            all.map(|record| (record.lun.naa.clone(), why.clone()))
                .collect()
        })
    }

    fn orphans<'a>(&'a self, known: &'a BTreeSet<String>) -> Work<'a, Vec<Orphan>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for id in self.pool.luns() {
                let naa = format!("{:032x}", u128::from_be_bytes(id.0));
                if !known.contains(&naa) {
                    found.push(self.orphan(id, &naa).await);
                }
            }
            found
        })
    }

    fn saved(&self) -> Work<'_, Option<Vec<u8>>> {
        done(self.pool.record(LunId::POOL))
    }

    fn write_saved(&self, saved: SavedText) -> Work<'_, Result<(), OpenError>> {
        Box::pin(async move {
            let known = self.pool.record(LunId::POOL);
            if !self.pool.is_whole() || saved.is_older_than(known.as_deref()) {
                // Nothing is written to it until it is, or until it was compared.
                return Ok(());
            }
            let record = BTreeMap::from([(LunId::POOL, saved.text)]);
            let kept = self.pool.keep_records(&self.node().core, record).await;
            kept.map_err(|error| late::of(format_args!("pool {}", self.config.name), error))
        })
    }

    fn trim<'a>(&'a self, lun: &'a Lun, _: Option<u64>) -> Work<'a, Result<bool, OpenError>> {
        Box::pin(async move {
            let (node, bytes) = (self.node(), self.known_bytes(lun));
            self.pool.trim(&node.core, lun_id(lun), bytes).await
        })
    }

    fn damaged(&self) -> Option<Work<'_, Vec<String>>> {
        Some(Box::pin(self.pool.damaged()))
    }
}

impl KeepsJournal for Members {
    fn identity(&self) -> Work<'_, Result<Option<PoolIdentity>, OpenError>> {
        let known = self.pool.number();
        done(known.map(|(number, has_journal)| {
            Some(PoolIdentity {
                number,
                has_journal,
            })
        }))
    }

    fn number(&self) -> Work<'_, Result<[u8; 16], OpenError>> {
        done(self.pool.number().map(|(number, _)| number))
    }

    fn set_journal(&self, has: bool) -> Work<'_, Result<(), OpenError>> {
        Box::pin(async move { self.pool.set_journal(&self.node().core, has).await })
    }

    fn sidecar_file(&self, lun: &Lun, ending: &str) -> PathBuf {
        self.sidecar_path(&lun.naa, ending)
    }

    fn sidecar<'a>(
        &'a self,
        lun: &'a Lun,
        what: sidecar::SidecarKind,
        bytes: u64,
        is_new: bool,
    ) -> Work<'a, Sidecar> {
        Box::pin(self.stand(lun, what, bytes, is_new))
    }

    fn grow_sidecar<'a>(
        &'a self,
        lun: &'a Lun,
        what: sidecar::SidecarKind,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let what = kind(what);
            if !self.pool.has_sidecar(lun_id(lun), what) {
                return Ok(());
            }
            let node = self.node();
            let grown = self
                .pool
                .make_room_for_sidecar(&node.core, (lun, what), bytes, None);
            grown.await?;
            self.pool
                .open_sidecar(&node.core, lun, what)
                .await
                .map(|_| ())
        })
    }

    fn give_up_sidecar<'a>(
        &'a self,
        lun: &'a Lun,
        what: sidecar::SidecarKind,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let node = self.node();
            self.pool
                .give_back_sidecar(&node.core, lun_id(lun), kind(what))
                .await
        })
    }
}

impl Members {
    fn pool_facts(&self, facts: MemberPoolFacts, promised: Promised) -> PoolFacts {
        let path = self
            .config
            .place
            .paths()
            .first()
            .map_or(Path::new(""), |path| path);
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let used = facts.total.saturating_sub(facts.available);
        PoolFacts {
            name: self.config.name.clone(),
            path: path.display().to_string(),
            total: facts.total,
            available: facts.available,
            used,
            state: match facts.problem {
                Some(_) => PoolState::Unusable,
                // LUNs have their whole size from the beginning: one that is full serves all of
                // them, and takes no more.
                None => state_of(used, facts.available),
            },
            provisioned_bytes: promised.provisioned,
            problem: facts.problem,
            layout: layout_name(self.layout).to_owned(),
            event: facts.event,
            members: facts.members,
            notes: facts.notes,
            ..PoolFacts::default()
        }
    }
}
