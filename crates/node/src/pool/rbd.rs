//! Pools of a Ceph cluster, through the door: a thin image for each LUN. What an image says, and
//! how the cluster is, is [`ImagePool`]'s; here it is put into the node's words.
//!
//! **Contract.** A LUN is served while this process has its image's exclusive lock. A connection
//! that was shut out of the cluster takes its LUNs offline, and a new one brings them back.

use crate::backend::disk::OPEN_TIME_MAX;
use crate::backend::door::{Backend, Leaf, Pool, Promised, Stored, Work, done};
use crate::inner::Inner;
use crate::lun::failed::of_pool;
use crate::lun::geometry::{block_size, exponent};
use crate::pool::orphan_record::{NoRecord, orphan_of};
use crate::pool::space::state_of;
use ::rbd::{
    ClusterSpec, Fullness, Health, Image, ImagePool, ImageShape, PoolImage, PoolSpec, PoolStatus,
    Severity, Turn,
};
use backends::Progress;
use env::CoreHandle;
use manifest::code::Code;
use manifest::config::{self, RbdPlace};
use manifest::facts::{HealthFacts, HealthSeverity, PoolFacts, PoolState};
use manifest::objects::Lun;
use manifest::orphan::{LunRecord, Orphan};
use manifest::plan::local_naa;
use manifest::problem::Problem;
use state::saved::SavedText;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;
use volume::{Fences, OpenError, Volume};

/// How long the cluster is waited for, each question for itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an image may take to be closed.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// A pool of a Ceph cluster.
pub(crate) struct Rbd {
    node: Weak<Inner>,
    config: config::Pool,
    /// Its name in the cluster.
    pool: String,
    images: ImagePool,
}

/// Opens one at the start. A cluster that does not answer holds up nothing else.
pub(crate) fn open<'a>(
    node: &'a Rc<Inner>,
    pool: &'a config::Pool,
    place: &'a RbdPlace,
) -> Work<'a, Result<Rc<dyn Pool>, Problem>> {
    let cluster = ClusterSpec {
        pool: place.pool.clone(),
        conf: place.conf.clone(),
        user: place.user.clone(),
        patience: PATIENCE,
    };
    let this = Rc::new(Rbd {
        node: Rc::downgrade(node),
        config: pool.clone(),
        pool: place.pool.clone(),
        images: ImagePool::new(PoolSpec {
            name: pool.name.clone(),
            cluster,
            change_time_max: OPEN_TIME_MAX,
            identifier: local_naa,
        }),
    });
    Box::pin(async move {
        let (connecting, core) = (Rc::clone(&this), Rc::clone(&node.core));
        let connect = async move { connecting.images.connect(&core).await };
        let connected = node.ask(format!("{}: connect", pool.name), connect).await;
        if let Err(why) = connected.unwrap_or_else(|| Err(this.images.silent())) {
            tracing::error!(pool = pool.name, code = %Code::PoolMissing, "{why}: its LUNs are offline");
            this.images.set_not_connected(why);
        }
        Ok(this as Rc<dyn Pool>)
    })
}

impl Rbd {
    fn node(&self) -> Rc<Inner> {
        self.node.upgrade().expect("a pool lives in its node")
    }

    /// Takes its LUNs offline when it was shut out, and brings them back when it is there again.
    async fn follow(&self) {
        let node = self.node();
        let Some(turn) = self.images.follow(&node.core).await else {
            return;
        };
        let _turn = node.turn.lock().await;
        match turn {
            Turn::ShutOut(why) => {
                self.images.set_missing(Some(why.clone()));
                node.lose_pool(&self.config, &why).await;
            }
            Turn::Connected => {
                self.images.set_missing(None);
                node.return_pool(&self.config).await;
            }
        }
    }

    fn orphan(&self, name: &str, image: &PoolImage) -> Orphan {
        let record = match &image.record {
            Some(text) => LunRecord::decode(text.as_bytes()).map_err(NoRecord::from),
            None => Err(NoRecord::Absent("in the image")),
        };
        Orphan {
            file: Some(format!("{}/{name}", self.pool)),
            size_bytes: image.size.0,
            is_foreign: !image.is_ours,
            ..orphan_of(&self.config.name, &image.naa, record, false)
        }
    }
}

fn health_facts(fsid: &str, health: &Health) -> HealthFacts {
    let checks = health.checks.iter();
    HealthFacts {
        system: format!("Ceph cluster {fsid}"),
        severity: match health.severity {
            Severity::Ok => HealthSeverity::Ok,
            Severity::Warn => HealthSeverity::Warning,
            Severity::Error => HealthSeverity::Error,
        },
        checks: checks
            .map(|check| format!("{}: {}", check.code, check.message))
            .collect(),
    }
}

/// An image, open for a LUN.
struct RbdLeaf(Arc<Image>);

impl Leaf for RbdLeaf {
    fn volume(&self) -> Arc<dyn Volume> {
        Arc::<Image>::clone(&self.0)
    }

    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: u64,
        bytes: u64,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let grown = self.0.grow_in_time(core, ByteCount(bytes), OPEN_TIME_MAX);
            grown.await.map_err(|error| of_pool(&error))
        })
    }

    fn shrink<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: u64,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(self.0.shrink_in_time(core, ByteCount(bytes), OPEN_TIME_MAX))
    }

    fn own_bytes(&self) -> Option<u64> {
        Some(self.0.shape().byte_count().0)
    }

    fn close<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, ()> {
        Box::pin(self.0.close_in_time(core, CLOSE_TIME_MAX))
    }
}

impl Backend for Rbd {
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            if !lun.thin {
                let detail = format!("pool {} has thin images only", self.config.name);
                return Err(Problem::new(Code::InvalidObjects, detail)
                    .hint("leave thin out: what a host writes takes its space then"));
            }
            let made = self.images.make(core, &lun.naa, bytes_of(lun)).await;
            made.map_err(|error| of_pool(&error))
        })
    }

    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>> {
        let shape = ImageShape {
            size: bytes_of(lun),
            block_size: block_size(lun),
            physical_block_exponent: exponent(lun),
        };
        Box::pin(async move {
            let image = self.images.open(core, &lun.naa, shape, fences).await?;
            Ok(Rc::new(RbdLeaf(image)) as Rc<dyn Leaf>)
        })
    }

    fn destroy<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let removed = self.images.remove(core, &lun.naa).await;
            removed.map_err(|error| of_pool(&error))
        })
    }
}

fn bytes_of(lun: &Lun) -> ByteCount {
    ByteCount(lun.size.bytes())
}

impl Pool for Rbd {
    fn missing(&self) -> Option<OpenError> {
        self.images.missing()
    }

    fn is_ready(&self) -> Work<'_, Result<(), Problem>> {
        let missing = self.images.cluster().err();
        done(missing.map_or(Ok(()), |why| {
            Err(Problem::new(Code::PoolMissing, why.cause).hint(why.next_step))
        }))
    }

    fn facts(&self, promised: Promised) -> Work<'_, (PoolFacts, Option<u64>)> {
        let PoolStatus {
            missing,
            fsid,
            health,
            is_silent,
        } = self.images.status();
        let now = self.node().core.now();
        let age = health.as_ref().map(|(_, at)| now.since(*at).as_secs());
        let health = health.map(|(health, _)| health);
        let used = health.as_ref().map_or(0, |health| health.used.0);
        let available = health.as_ref().map_or(0, |health| health.available.0);
        let total = used.saturating_add(available);
        let over = promised.outstanding.saturating_sub(available);
        let silence =
            "the cluster does not answer: check its health (ceph status) and the network to it";
        let facts = PoolFacts {
            name: self.config.name.clone(),
            path: format!("rbd:{}", self.pool),
            total,
            available,
            used,
            state: match (&missing, &health) {
                (Some(_), _) => PoolState::Missing,
                (None, Some(health)) if !is_silent => match health.fullness {
                    Fullness::Full => PoolState::Full,
                    Fullness::NearlyFull => PoolState::Low,
                    Fullness::Room => state_of(used, available),
                },
                (None, _) => PoolState::Silent,
            },
            provisioned_bytes: promised.provisioned,
            outstanding_bytes: promised.outstanding,
            overcommitted_bytes: if total > 0 { over } else { 0 },
            age_seconds: age.filter(|_| is_silent),
            problem: match &missing {
                Some(why) => Some(why.to_string()),
                None => is_silent.then(|| silence.to_owned()),
            },
            health: fsid
                .zip(health)
                .map(|(fsid, health)| health_facts(&fsid, &health)),
            layout: "rbd".to_owned(),
            ..PoolFacts::default()
        };
        done((facts, None))
    }

    fn usage(&self) -> Work<'_, BTreeMap<String, u64>> {
        Box::pin(async move { self.images.usage(&self.node().core).await })
    }

    fn watch(&self) -> Work<'_, ()> {
        Box::pin(async move {
            self.follow().await;
            let words = |fsid: &str, health: &Health| health_facts(fsid, health).to_string();
            self.images.ask_health(&self.node().core, words).await;
        })
    }

    fn write_down(&self) -> Work<'_, ()> {
        done(())
    }

    fn stored<'a>(&'a self, lun: &'a Lun, _: bool) -> Work<'a, Option<Stored>> {
        let text = self.images.record(&lun.naa).map(String::into_bytes);
        let record = text.as_ref().and_then(|it| LunRecord::decode(it).ok());
        done(Some(Stored { text, record }))
    }

    fn write_record<'a>(
        &'a self,
        record: &'a LunRecord,
        text: Vec<u8>,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let text = String::from_utf8_lossy(&text).into_owned();
            let core = &self.node().core;
            self.images.write_record(core, &record.lun.naa, text).await
        })
    }

    fn adopt<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let claimed = self.images.claim(core, &lun.naa).await;
            claimed.map_err(|error| of_pool(&error))
        })
    }

    /// Images that say that they are LUNs and are none here; and those that are nobody's, which
    /// can become some.
    fn orphans<'a>(&'a self, known: &'a BTreeSet<String>) -> Work<'a, Vec<Orphan>> {
        Box::pin(async move {
            // As they were, until it answers.
            if let Err(error) = self.images.refresh(&self.node().core).await {
                tracing::warn!(
                    pool = self.config.name,
                    "its images are not known anew: {error}"
                );
            }
            let images = self.images.images();
            let others = images
                .iter()
                .filter(|(_, image)| !known.contains(&image.naa));
            others
                .map(|(name, image)| self.orphan(name, image))
                .collect()
        })
    }

    /// Nothing: an image is of one LUN, and a pool of images keeps no more.
    fn saved(&self) -> Work<'_, Option<Vec<u8>>> {
        done(None)
    }

    fn write_saved(&self, _: SavedText) -> Work<'_, Result<(), OpenError>> {
        done(Ok(()))
    }
}
