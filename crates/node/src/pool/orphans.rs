//! LUNs' storage that no object names, and what stands beside each LUN so that it can be taken into
//! service again.
//!
//! **Contract.** What stands beside a LUN is written after the objects are stored that it follows,
//! and again at a start where it differs: objects are the truth while they are there. Nothing is
//! ever removed because nobody names it.

use crate::data_plane::Inner;
use crate::lun::sidecar::{RECORD, SUMS, beside};
use crate::pool::unsaved;
use ::members::{BesideLun, LunId};
use env::Files;
use env::durable::{read_file, replace_file};
use env::file::is_there;
use manifest::config::Place;
use manifest::objects::{Backing, Lun, Objects};
use manifest::orphan::{LunRecord, Orphan, RECORD_BYTES_MAX};
use manifest::size::Size;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What is known of orphans and records.
#[derive(Default)]
pub(crate) struct Orphans {
    /// As they were seen last.
    seen: RefCell<Vec<Orphan>>,
    /// What stands beside each LUN, by NAA identifier.
    written: RefCell<BTreeMap<String, LunRecord>>,
    /// LUNs that their pools have seen larger than they are, by NAA identifier, and how large.
    larger: RefCell<BTreeMap<String, Size>>,
}

impl Orphans {
    pub(crate) fn larger(&self) -> BTreeMap<String, Size> {
        self.larger.borrow().clone()
    }
}

/// What is known of a LUN in its pool.
#[derive(Default)]
struct Stands {
    /// Its file's text, of a pool that is a directory.
    text: Option<Vec<u8>>,
    record: Option<LunRecord>,
}

/// Where a LUN's record is.
enum RecordOf {
    Known(Box<Stands>),
    File(PathBuf),
}

/// What keeps a record from being read or written.
const SILENT: &str = "its pool does not answer";

async fn stands_in(files: Rc<dyn Files>, path: PathBuf) -> Stands {
    let text = read_file(&*files, &path, RECORD_BYTES_MAX).await.ok();
    let record = text.as_ref().and_then(|it| LunRecord::decode(it).ok());
    Stands { text, record }
}

/// The LUNs of pools as their records say them.
fn records(objects: &Objects) -> Vec<LunRecord> {
    let served = objects.luns.iter().map(|it| (it, false));
    let removed = objects.removed.iter().map(|it| (it, true));
    served
        .chain(removed)
        .filter(|((_, lun), _)| matches!(lun.backing, Backing::Pool(_)))
        .map(|((name, lun), removed)| LunRecord {
            name: name.clone(),
            removed,
            lun: lun.clone(),
        })
        .collect()
}

/// 32 hexadecimal digits, as LUNs' files are named.
fn is_naa(text: &str) -> bool {
    let digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    text.len() == 32 && text.bytes().all(digit)
}

impl Inner {
    /// Writes beside each LUN what it is, where that is new.
    pub(crate) async fn write_records(&self, objects: &Objects) {
        let mut wanted = BTreeMap::new();
        let mut on_members: BTreeMap<String, BTreeMap<LunId, Vec<u8>>> = BTreeMap::new();
        let mut kept = Ok(());
        for record in records(objects) {
            let pool = self.members_of(&record);
            let naa = record.lun.naa.clone();
            let known = self.orphans.written.borrow().get(&naa).cloned();
            let stands = match &known {
                Some(known) => Stands {
                    text: None,
                    record: Some(known.clone()),
                },
                None => match self.stands_soon(&record.lun).await {
                    Some(stands) => stands,
                    None => {
                        kept = Err(format!("LUN {}: {SILENT}", record.name));
                        continue;
                    }
                },
            };
            let record = self.as_large_as_known(record, stands.record);
            if known.as_ref() == Some(&record) {
                wanted.insert(naa, record);
                continue;
            }
            if let Some(pool) = pool {
                let of_pool = on_members.entry(pool).or_default();
                of_pool.insert(crate::pool::members::lun_id(&record.lun), record.encode());
                wanted.insert(naa, record);
                continue;
            }
            if self.is_away(&record) {
                // Written when its pool is back and was compared.
                continue;
            }
            match self.write_lun_record(&record, stands.text).await {
                Ok(()) => drop(wanted.insert(naa, record)),
                Err(error) => kept = Err(format!("LUN {}: {error}", record.name)),
            }
        }
        for (name, records) in on_members {
            let Some(pool) = self.member_pools().get(&name).cloned() else {
                continue;
            };
            if let Err(error) = pool.keep_records(&self.core, records).await {
                wanted.retain(|_, record| record.lun.backing != Backing::Pool(name.clone()));
                kept = Err(format!("pool {name}: {error}"));
            }
        }
        *self.orphans.written.borrow_mut() = wanted;
        let what =
            "what a LUN is cannot be written beside it, which only matters where state_dir is lost";
        self.unkept.note(unsaved::Record::Luns, what, kept);
    }

    /// A pool that has seen the LUN larger goes on saying so, where it was not made smaller since:
    /// objects that are older than the pool were accepted, and what is beyond their size stays.
    fn as_large_as_known(&self, mut record: LunRecord, known: Option<LunRecord>) -> LunRecord {
        let naa = &record.lun.naa;
        let shrunk = self.shrunk.borrow().contains(naa);
        let known = known.filter(|it| !shrunk && it.lun.size > record.lun.size);
        // A file that is no longer has been cut, and only its record was not written any more.
        let file = self.unit(naa).and_then(|unit| unit.file_bytes());
        let cut = file.is_some_and(|bytes| bytes <= record.lun.size.bytes());
        let Some(known) = known.filter(|_| !cut) else {
            self.orphans.larger.borrow_mut().remove(naa);
            return record;
        };
        let seen = known.lun.size;
        let told = self.orphans.larger.borrow_mut().insert(naa.clone(), seen);
        if told != Some(seen) {
            tracing::warn!(
                lun = record.name,
                "it has {}, and {} has seen it with {}: what is beyond stays there",
                record.lun.size.told(),
                record.lun.backing,
                seen.told()
            );
        }
        record.lun.size = seen;
        record
    }

    /// Bytes of a LUN's storage that a change of its size leaves alone, although it has fewer.
    pub(crate) fn kept_of(&self, lun: &Lun) -> Size {
        let shrunk = self.shrunk.borrow().contains(&lun.naa);
        let larger = self.orphans.larger.borrow();
        let seen = larger.get(&lun.naa).filter(|_| !shrunk);
        seen.copied().unwrap_or_default()
    }

    /// Which LUNs their pools have seen larger. Nothing is written.
    pub(crate) async fn look_at_sizes(&self) {
        let objects = Rc::clone(&self.objects.borrow());
        for record in records(&objects) {
            let stands = self.stands(&record.lun).await;
            self.as_large_as_known(record, stands.record);
        }
    }

    /// What stands in the pools of the LUNs that there are.
    pub(crate) async fn known_records(&self) -> BTreeMap<String, LunRecord> {
        let objects = Rc::clone(&self.objects.borrow());
        let mut out = BTreeMap::new();
        for LunRecord { lun, .. } in records(&objects) {
            let stands = self.stands(&lun).await.record;
            out.extend(stands.map(|record| (lun.naa, record)));
        }
        out
    }

    async fn stands(&self, lun: &Lun) -> Stands {
        match self.record_of(lun) {
            RecordOf::Known(stands) => *stands,
            RecordOf::File(path) => stands_in(self.core.files(), path).await,
        }
    }

    /// The same while a change goes on; `None` where the pool does not answer.
    async fn stands_soon(&self, lun: &Lun) -> Option<Stands> {
        match self.record_of(lun) {
            RecordOf::Known(stands) => Some(*stands),
            RecordOf::File(path) => {
                let reading = stands_in(self.core.files(), path);
                self.ask(format!("{}: stands", lun.naa), reading).await
            }
        }
    }

    fn record_of(&self, lun: &Lun) -> RecordOf {
        let Backing::Pool(pool) = &lun.backing else {
            return RecordOf::Known(Box::default());
        };
        if let Some(pool) = self.member_pools().get(pool) {
            let text = pool.record(crate::pool::members::lun_id(lun));
            let record = text.and_then(|text| LunRecord::decode(&text).ok());
            return RecordOf::Known(Box::new(Stands { text: None, record }));
        }
        let path = beside(&self.config, lun, RECORD);
        match path.filter(|_| self.directories.missing(pool).is_none()) {
            Some(path) => RecordOf::File(path),
            None => RecordOf::Known(Box::default()),
        }
    }

    /// The pool of members that holds it.
    fn members_of(&self, record: &LunRecord) -> Option<String> {
        let Backing::Pool(pool) = &record.lun.backing else {
            return None;
        };
        self.member_pools().contains_key(pool).then(|| pool.clone())
    }

    fn is_away(&self, record: &LunRecord) -> bool {
        let Backing::Pool(pool) = &record.lun.backing else {
            return false;
        };
        self.directories.missing(pool).is_some()
    }

    async fn write_lun_record(
        &self,
        record: &LunRecord,
        stands: Option<Vec<u8>>,
    ) -> io::Result<()> {
        let files = self.core.files();
        let Some(path) = beside(&self.config, &record.lun, RECORD) else {
            return Ok(());
        };
        let text = record.encode();
        if stands.is_some_and(|stands| stands == text) {
            return Ok(());
        }
        let writing = async move {
            if let Some(parent) = path.parent() {
                env::durable::make_dir(&*files, parent).await?;
            }
            replace_file(&*files, &path, &text).await
        };
        let written = self.ask(format!("{}: record", record.lun.naa), writing);
        let silent = || Err(io::Error::other(SILENT));
        written.await.unwrap_or_else(silent)
    }

    /// The storage that no object names, as it was seen last in this pool.
    fn orphans_of(&self, pool: &str) -> Vec<Orphan> {
        let seen = self.orphans.seen.borrow();
        let of_pool = seen.iter().filter(|orphan| orphan.pool == pool);
        of_pool.cloned().collect()
    }

    /// The storage that no object names, as it was seen last, of pools that are there now.
    pub(crate) fn orphans_seen(&self) -> Vec<Orphan> {
        let seen = self.orphans.seen.borrow();
        let there = |orphan: &&Orphan| self.directories.missing(&orphan.pool).is_none();
        seen.iter().filter(there).cloned().collect()
    }

    /// Looks for storage that no object names.
    pub(crate) async fn look_for_orphans(&self) -> Vec<Orphan> {
        let objects = Rc::clone(&self.objects.borrow());
        let all = objects.luns.values().chain(objects.removed.values());
        let mut known: BTreeSet<String> = all.map(|lun| lun.naa.clone()).collect();
        // What a crash left of making or purging LUNs is given back.
        known.extend(self.unfinished_naas());
        let mut found = Vec::new();
        for pool in &self.config.pools {
            match &pool.place {
                Place::Path(path) if self.directories.missing(&pool.name).is_none() => {
                    found.extend(self.orphans_in(&pool.name, path, &known).await);
                }
                Place::Path(_) => {}
                Place::Members { .. } => found.extend(self.orphans_on(&pool.name, &known).await),
            }
        }
        (*self.orphans.seen.borrow_mut()).clone_from(&found);
        found
    }

    async fn orphans_in(&self, pool: &str, path: &Path, known: &BTreeSet<String>) -> Vec<Orphan> {
        let listing = self.core.files().list(path);
        let Some(entries) = self.ask(format!("{pool}: list"), listing).await else {
            // As it was, until it answers.
            return self.orphans_of(pool);
        };
        let mut found = Vec::new();
        for entry in entries.unwrap_or_default() {
            let naa = entry
                .name
                .to_str()
                .and_then(|name| name.strip_suffix(".lun"));
            let Some(naa) = naa.filter(|naa| is_naa(naa) && !known.contains(*naa)) else {
                continue;
            };
            let file = path.join(&entry.name);
            let mut orphan = self.orphan(pool, naa, &file).await;
            orphan.size_bytes = entry.len;
            let file = std::path::absolute(&file).unwrap_or(file);
            orphan.file = Some(file.display().to_string());
            found.push(orphan);
        }
        found.sort_by(|one, other| one.naa.cmp(&other.naa));
        found
    }

    /// `file`: beside which its record and its checksums stand.
    async fn orphan(&self, pool: &str, naa: &str, file: &Path) -> Orphan {
        let files = self.core.files();
        let text = read_file(&*files, &file.with_extension(RECORD), RECORD_BYTES_MAX).await;
        let record = match text {
            Ok(text) => LunRecord::decode(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err("nothing stands beside it that says what it is".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        self.orphan_of(pool, naa, file, record).await
    }

    /// The same with its record, or why there is none.
    async fn orphan_of(
        &self,
        pool: &str,
        naa: &str,
        file: &Path,
        record: Result<LunRecord, String>,
    ) -> Orphan {
        let files = self.core.files();
        let record = record.and_then(|record| {
            if record.lun.naa == naa {
                return Ok(record);
            }
            Err(format!("its record is LUN {}'s", record.lun.naa))
        });
        let members = self.member_pools();
        let id = u128::from_str_radix(naa, 16).map(|it| LunId(it.to_be_bytes()));
        let on_members = members.get(pool).zip(id.ok());
        let has_checksums = on_members.is_some_and(|(it, id)| it.has_beside(id, BesideLun::Sums))
            || is_there(&*files, &file.with_extension(SUMS)).await;
        let (record, problem) = match record {
            Ok(record) => (Some(record), None),
            Err(why) => (None, Some(why)),
        };
        Orphan {
            pool: pool.to_owned(),
            naa: naa.to_owned(),
            file: None,
            size_bytes: record.as_ref().map_or(0, |it| it.lun.size.bytes()),
            name: record.as_ref().map(|it| it.name.clone()),
            removed: record.as_ref().is_some_and(|it| it.removed),
            block_size: record.as_ref().map(|it| it.lun.block_size),
            problem,
            has_checksums,
            record,
        }
    }

    /// LUNs on members that no object names.
    async fn orphans_on(&self, name: &str, known: &BTreeSet<String>) -> Vec<Orphan> {
        let pools = self.member_pools();
        let Some(pool) = pools.get(name) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for id in pool.luns() {
            let naa = format!("{:032x}", u128::from_be_bytes(id.0));
            if known.contains(&naa) {
                continue;
            }
            let lun = crate::pool::remembered::beside(&self.config.state_dir, name);
            let record = pool.record(id).map_or_else(
                || Err("nothing on the members says what it is".to_owned()),
                |text| LunRecord::decode(&text),
            );
            let beside = lun.join(format!("{naa}.lun"));
            let mut orphan = self.orphan_of(name, &naa, &beside, record).await;
            if orphan.record.is_none() {
                orphan.size_bytes = pool.bytes_of(id).unwrap_or_default();
            }
            found.push(orphan);
        }
        found
    }

    /// Tells in the log what was found at the start.
    pub(crate) async fn tell_orphans(&self) {
        for orphan in self.look_for_orphans().await {
            tracing::warn!(
                pool = orphan.pool,
                "no object names LUN {}, {}: it is left as it is; causeway lun adopt takes it into service",
                orphan.shown(),
                manifest::size::rounded(orphan.size_bytes)
            );
        }
    }
}
