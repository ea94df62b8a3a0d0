//! Pools of a Ceph cluster: a thin image for each LUN, through the crate `rbd`.
//!
//! ```text
//!   not connected --connect--> there --health every 10 s--> there
//!        ^                       |
//!        '-- shut out by whoever took a lock of ours
//! ```
//!
//! **Contract.** An image says in its metadata which LUN it is, and what that LUN is; one that does
//! not say so is neither opened, nor written to, nor removed, whatever its name is. It is made to
//! say so when it is made, and when an operator adopts it; by nothing else. A LUN is served while
//! this process has its image's exclusive lock. A connection that was shut out of the cluster is
//! given up with everything on it, and a new one serves only what it gets the locks of.
//!
//! **Failure.** A cluster that does not answer holds up nothing but the I/O of its LUNs: questions
//! are given up in time, changes are refused or end later by themselves.

use crate::backend::disk::OPEN_TIME_MAX;
use crate::backend::door::{Backend, Doing, Leaf, Pool, Promised, Stands, done};
use crate::inner::Inner;
use crate::lun::failed::of_pool;
use crate::lun::geometry::{block_size, exponent};
use crate::pool::orphan_record::{NoRecord, orphan_of};
use crate::pool::space::state_of;
use ::rbd::{
    Cluster, ClusterSpec, Description, ErrorKind, Fullness, Health, Identity, Image, ImageSpec,
    RbdError, Severity,
};
use env::{CoreHandle, detach, in_time};
use manifest::code::Code;
use manifest::config::{self, RbdPlace};
use manifest::facts::{HealthFacts, HealthSeverity, PoolFacts, PoolState};
use manifest::objects::Lun;
use manifest::orphan::{LunRecord, Orphan};
use manifest::plan::local_naa;
use manifest::problem::Problem;
use state::saved::SavedText;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::{Arc, Weak as ArcWeak};
use std::time::Duration;
use units::{ByteCount, Now};
use volume::{Fences, OpenError, OpenErrorKind, Volume};

/// How long the cluster is waited for, each question for itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often its health is asked for, and how often a connection is tried.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// How long what its images take is good enough: without a map of objects each of them is asked.
const MEASURE: Duration = Duration::from_secs(60);

/// How long an image may take to be closed.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// The keys of an image's metadata: which LUN it is, which image says so, and what that LUN is. A
/// copy of an image has the metadata of the one that it was made of, and another number.
const NAA: &str = "naa";
const IMAGE: &str = "image";
const RECORD: &str = "record";

/// What is known of an image.
#[derive(Clone)]
struct Seen {
    /// The LUN that it is, or would be.
    naa: String,
    /// It says that it is a LUN.
    is_ours: bool,
    record: Option<String>,
    size: ByteCount,
}

/// How it is.
#[derive(Default)]
struct State {
    cluster: Option<Arc<Cluster>>,
    /// Why nothing of it can be used, where that is so.
    missing: Option<OpenError>,
    health: Option<(Health, Now)>,
    /// The last question for it was not answered.
    is_silent: bool,
    probed: Option<Now>,
    /// By name.
    images: BTreeMap<String, Seen>,
    /// Those of LUNs in service, by NAA identifier.
    open: BTreeMap<String, ArcWeak<Image>>,
    measured: Option<Now>,
    /// Bytes by NAA identifier.
    usage: BTreeMap<String, u64>,
}

/// A pool of a Ceph cluster.
pub(crate) struct Rbd {
    node: Weak<Inner>,
    config: config::Pool,
    spec: ClusterSpec,
    state: RefCell<State>,
    connects: Cell<bool>,
}

/// Opens one at the start. A cluster that does not answer holds up nothing else.
pub(crate) fn open<'a>(
    node: &'a Rc<Inner>,
    pool: &'a config::Pool,
    place: &'a RbdPlace,
) -> Doing<'a, Result<Rc<dyn Pool>, Problem>> {
    let this = Rc::new(Rbd {
        node: Rc::downgrade(node),
        config: pool.clone(),
        spec: ClusterSpec {
            pool: place.pool.clone(),
            conf: place.conf.clone(),
            user: place.user.clone(),
            patience: PATIENCE,
        },
        state: RefCell::default(),
        connects: Cell::default(),
    });
    Box::pin(async move {
        let connecting = Rc::clone(&this);
        let connect = async move { connecting.connect().await };
        let connected = node.ask(format!("{}: connect", pool.name), connect).await;
        if let Err(why) = connected.unwrap_or_else(|| Err(this.silent())) {
            tracing::error!(pool = pool.name, code = %Code::PoolMissing, "{why}: its LUNs are offline");
            this.state.borrow_mut().missing = Some(why);
        }
        Ok(this as Rc<dyn Pool>)
    })
}

/// What an image is called that is made for a LUN. One that was adopted keeps its name.
fn image_name(naa: &str) -> String {
    format!("causeway-{naa}")
}

/// The identifier of an image that is no LUN yet: always the same one of the same image.
fn naa_of(fsid: &str, id: &str) -> String {
    let digits = |text: &str| -> String {
        let digits = text.chars().filter(char::is_ascii_hexdigit);
        digits.map(|digit| digit.to_ascii_lowercase()).collect()
    };
    let (cluster, image) = (digits(fsid), digits(id));
    let image = image
        .get(image.len().saturating_sub(14)..)
        .unwrap_or_default();
    local_naa(&format!(
        "{:0<11}{image:0>14}",
        cluster.get(..11).unwrap_or_default()
    ))
}

/// What the image of a LUN says of it; one that is being made has no number yet.
fn identity(lun: &Lun, id: Option<&str>, record: Option<String>) -> Identity {
    let mut keys = BTreeMap::from([(NAA.to_owned(), lun.naa.clone())]);
    keys.extend(id.map(|id| (IMAGE.to_owned(), id.to_owned())));
    keys.extend(record.map(|record| (RECORD.to_owned(), record)));
    Identity(keys)
}

/// The LUN that an image says it is; `None`: it is none, or a copy of one.
fn lun_of<'a>(name: &str, found: &'a Description) -> Option<&'a str> {
    let naa = found.identity.0.get(NAA)?;
    let says_so = match found.identity.0.get(IMAGE) {
        Some(id) => *id == found.id,
        // It was made, and a crash came before its number was written down.
        None => name == image_name(naa),
    };
    says_so.then_some(naa)
}

impl Rbd {
    fn node(&self) -> Rc<Inner> {
        self.node.upgrade().expect("a pool lives in its node")
    }

    fn silent(&self) -> OpenError {
        OpenError {
            kind: OpenErrorKind::Hung,
            cause: format!(
                "pool {}: the cluster has not answered yet",
                self.config.name
            ),
            next_step:
                "look at its health (ceph status) and at the network to it; it is tried again"
                    .to_owned(),
        }
    }

    /// It is gone with its connection, or there again.
    fn set_missing(&self, why: Option<OpenError>) {
        let mut state = self.state.borrow_mut();
        if why.is_some() {
            state.cluster = None;
        }
        (state.missing, state.probed) = (why, None);
    }

    /// The connection, to use it.
    fn cluster(&self) -> Result<Arc<Cluster>, OpenError> {
        let state = self.state.borrow();
        match (&state.missing, &state.cluster) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(cluster)) => Ok(Arc::clone(cluster)),
            (None, None) => Err(self.silent()),
        }
    }

    /// Connects and looks at the images that there are.
    async fn connect(&self) -> Result<(), OpenError> {
        if self.connects.replace(true) {
            return Err(self.silent());
        }
        let core = Rc::clone(&self.node().core);
        let connected = async {
            let cluster = Cluster::connect(&core, self.spec.clone()).await?;
            self.state.borrow_mut().images.clear();
            self.probe(&core, &cluster).await?;
            self.state.borrow_mut().cluster = Some(cluster);
            Ok::<(), RbdError>(())
        };
        let connected = connected.await;
        self.connects.set(false);
        Ok(connected?)
    }

    /// Reads what is new of the pool's images.
    async fn probe(&self, core: &CoreHandle, cluster: &Cluster) -> Result<(), RbdError> {
        let names = cluster.images(core).await?;
        let new: Vec<String> = {
            let mut state = self.state.borrow_mut();
            state.images.retain(|name, _| names.contains(name));
            let is_new = |name: &&String| !state.images.contains_key(*name);
            names.iter().filter(is_new).cloned().collect()
        };
        for name in new {
            let found = match cluster.describe(core, &name).await {
                Ok(found) => found,
                // It went in between.
                Err(error) if error.kind == ErrorKind::NoImage => continue,
                Err(error) => return Err(error),
            };
            let naa = lun_of(&name, &found).map(str::to_owned);
            let record = found.identity.0.get(RECORD).cloned();
            let seen = Seen {
                is_ours: naa.is_some(),
                record: record.filter(|_| naa.is_some()),
                naa: naa.unwrap_or_else(|| naa_of(cluster.fsid(), &found.id)),
                size: found.size,
            };
            self.state.borrow_mut().images.insert(name, seen);
        }
        Ok(())
    }

    /// The image of a LUN.
    fn image_of(&self, naa: &str) -> String {
        let state = self.state.borrow();
        let found = state.images.iter().find(|(_, seen)| seen.naa == naa);
        found.map_or_else(|| image_name(naa), |(name, _)| name.clone())
    }

    /// Finds out that an image says that it is this LUN: it may have been changed, or another one
    /// may have its name now.
    async fn is_of(
        &self,
        core: &CoreHandle,
        cluster: &Cluster,
        name: &str,
        lun: &Lun,
    ) -> Result<Description, OpenError> {
        let found = cluster.describe(core, name).await?;
        let says = lun_of(name, &found);
        if says == Some(&lun.naa) {
            return Ok(found);
        }
        let says = match says {
            Some(naa) => format!("says that it is LUN {naa}, and not {}", lun.naa),
            None => format!("does not say that it is LUN {}", lun.naa),
        };
        // What was known of it was another's.
        self.state.borrow_mut().images.remove(name);
        let pool = &self.spec.pool;
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
                set(NAA, &lun.naa),
                set(IMAGE, &found.id)
            ),
        })
    }

    /// Makes an image that is nobody's say that it is this LUN.
    async fn claim(&self, core: &CoreHandle, lun: &Lun) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(&lun.naa));
        let name = name.as_str();
        let found = cluster.describe(core, name).await?;
        match lun_of(name, &found) {
            Some(naa) if naa == lun.naa => return Ok(()),
            None if found.has_lock && found.identity.0.contains_key(IMAGE) => {
                // What a copy says is of the image that it was made of.
                cluster.set_identity(name, Identity::default()).await?;
            }
            Some(_) | None => {}
        }
        let identity = identity(lun, Some(&found.id), None);
        cluster.adopt(core, name, identity).await?;
        if let Some(seen) = self.state.borrow_mut().images.get_mut(name) {
            seen.is_ours = true;
        }
        Ok(())
    }

    async fn open_image(
        &self,
        core: &CoreHandle,
        lun: &Lun,
        fences: Fences,
    ) -> Result<Rc<dyn Leaf>, OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(&lun.naa));
        self.is_of(core, &cluster, &name, lun).await?;
        let spec = ImageSpec {
            name: name.clone(),
            block_size: block_size(lun),
            physical_block_exponent: exponent(lun),
        };
        let image = Image::open(core, &cluster, spec, fences).await?;
        let has = image.shape().byte_count().0;
        if has < lun.size.bytes() {
            image.close().await;
            let (pool, wanted) = (&self.spec.pool, lun.size.bytes());
            return Err(OpenError {
                kind: OpenErrorKind::Damaged,
                cause: format!("image {name} of pool {pool} has {has} bytes, fewer than the {wanted} of the LUN"),
                next_step: "bring the whole image back: its end is missing; where it is lost for good, make it as large \
                            as it was (rbd resize), which puts zeroes in its place"
                    .to_owned(),
            });
        }
        let weak = Arc::downgrade(&image);
        self.state.borrow_mut().open.insert(lun.naa.clone(), weak);
        Ok(Rc::new(RbdLeaf(image)))
    }

    /// Has the cluster change something. What takes long goes on, and nobody waits for it.
    async fn change(
        &self,
        core: &CoreHandle,
        doing: &str,
        work: impl Future<Output = Result<(), RbdError>> + 'static,
    ) -> Result<(), OpenError> {
        let done = in_time(core, OPEN_TIME_MAX, detach(core, work)).await;
        let done = done.ok_or_else(|| OpenError {
            kind: OpenErrorKind::Hung,
            cause: format!(
                "pool {}: {doing} has not ended in {} s, and goes on",
                self.config.name,
                OPEN_TIME_MAX.as_secs()
            ),
            next_step: "look at the cluster's health (ceph status)".to_owned(),
        })?;
        Ok(done?)
    }

    /// Asks for the cluster's health, where that is due, and reports what is new of it.
    async fn ask_health(&self) {
        let (node, now) = (self.node(), self.node().core.now());
        let Ok(cluster) = self.cluster() else { return };
        let probed = self.state.borrow().probed;
        if probed.is_some_and(|probed| now.since(probed) < PROBE_INTERVAL) {
            return;
        }
        self.state.borrow_mut().probed = Some(now);
        match cluster.health(&node.core).await {
            Ok(health) => self.note_health(cluster.fsid(), health, now),
            Err(error) => return self.note_silence(&error),
        }
        // Monitors answer where OSDs do not, and also one who was shut out.
        match self.probe(&node.core, &cluster).await {
            Ok(()) => self.note_answer(),
            Err(error) => self.note_silence(&error),
        }
    }

    fn note_answer(&self) {
        if std::mem::take(&mut self.state.borrow_mut().is_silent) {
            tracing::info!(pool = self.config.name, "the cluster answers again");
        }
    }

    fn note_health(&self, fsid: &str, health: Health, now: Now) {
        let (pool, mut state) = (self.config.name.as_str(), self.state.borrow_mut());
        let before = state.health.as_ref().map(|(health, _)| health.severity);
        let facts = health_facts(fsid, &health);
        match health.severity {
            now if before == Some(now) => {}
            Severity::Ok if before.is_none() => {}
            Severity::Ok => tracing::info!(pool, "{facts}"),
            Severity::Warn => tracing::warn!(pool, "{facts}"),
            Severity::Error => tracing::error!(pool, "{facts}"),
        }
        state.health = Some((health, now));
    }

    fn note_silence(&self, error: &RbdError) {
        let (pool, mut state) = (self.config.name.as_str(), self.state.borrow_mut());
        if !std::mem::replace(&mut state.is_silent, true) {
            tracing::error!(pool, "{error}");
        }
    }

    /// Connects where there is no connection, and brings the LUNs back when there is one.
    async fn follow(&self) {
        let (node, now) = (self.node(), self.node().core.now());
        let is_shut_out = {
            let state = self.state.borrow();
            state.cluster.as_ref().is_some_and(|it| it.is_shut_out())
        };
        if is_shut_out {
            let why = OpenError {
                kind: OpenErrorKind::Fenced,
                cause: format!(
                    "pool {}: this node was shut out of the cluster (blocklisted): somebody has taken over what it served",
                    self.config.name
                ),
                next_step: "it connects anew, and serves what nobody else has the lock of (rbd status shows who has)".to_owned(),
            };
            let _turn = node.turn.lock().await;
            self.set_missing(Some(why.clone()));
            node.lose_pool(&self.config, &why).await;
            return;
        }
        if self.state.borrow().missing.is_none() {
            return;
        }
        if self.state.borrow().cluster.is_none() {
            let probed = self.state.borrow().probed;
            if probed.is_some_and(|probed| now.since(probed) < PROBE_INTERVAL) {
                return;
            }
            self.state.borrow_mut().probed = Some(now);
            if let Err(why) = self.connect().await {
                self.state.borrow_mut().missing = Some(why);
                return;
            }
        }
        let _turn = node.turn.lock().await;
        self.set_missing(None);
        node.return_pool(&self.config).await;
    }

    /// Asks what the open images take, each in its time.
    async fn measure(&self) {
        let (node, now) = (self.node(), self.node().core.now());
        let measured = self.state.borrow().measured;
        let fresh = measured.is_some_and(|measured| now.since(measured) < MEASURE);
        if fresh || self.state.borrow().is_silent {
            return;
        }
        self.state.borrow_mut().measured = Some(now);
        let open = self.state.borrow().open.clone();
        for (naa, image) in open {
            let Some(image) = image.upgrade() else {
                self.state.borrow_mut().open.remove(&naa);
                continue;
            };
            let asked = async move { image.allocated().await };
            let asked = in_time(&node.core, PATIENCE, detach(&node.core, asked)).await;
            if let Some(Ok(bytes)) = asked {
                self.state.borrow_mut().usage.insert(naa, bytes.0);
            }
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
    ) -> Doing<'a, Result<(), Problem>> {
        Box::pin(async move {
            if ByteCount(bytes) <= self.0.shape().byte_count() {
                return Ok(());
            }
            let resized = resize(core, &self.0, bytes, true).await;
            resized.map_err(|error| of_pool(&error))
        })
    }

    fn shrink<'a>(&'a self, core: &'a CoreHandle, bytes: u64) -> Doing<'a, Result<(), OpenError>> {
        Box::pin(async move {
            if ByteCount(bytes) >= self.0.shape().byte_count() {
                return Ok(());
            }
            resize(core, &self.0, bytes, false).await
        })
    }

    fn own_bytes(&self) -> Option<u64> {
        Some(self.0.shape().byte_count().0)
    }

    fn close<'a>(&'a self, core: &'a CoreHandle) -> Doing<'a, ()> {
        Box::pin(async move {
            let image = Arc::clone(&self.0);
            let closed = detach(core, async move { image.close().await });
            if in_time(core, CLOSE_TIME_MAX, closed).await.is_none() {
                let image = &self.0.spec().name;
                tracing::warn!(
                    image,
                    "the image has not been closed in time: its lock goes when the cluster answers"
                );
            }
        })
    }
}

async fn resize(
    core: &CoreHandle,
    image: &Arc<Image>,
    bytes: u64,
    grows: bool,
) -> Result<(), OpenError> {
    let resized = Arc::clone(image);
    let work = async move {
        match grows {
            true => resized.grow(ByteCount(bytes)).await,
            false => resized.shrink(ByteCount(bytes)).await,
        }
    };
    let done = in_time(core, OPEN_TIME_MAX, detach(core, work)).await;
    let done = done.ok_or_else(|| OpenError {
        kind: OpenErrorKind::Hung,
        cause: format!(
            "image {} has not got its size in {} s, and may still get it",
            image.spec().name,
            OPEN_TIME_MAX.as_secs()
        ),
        next_step: "look at the cluster's health (ceph status)".to_owned(),
    })?;
    done?;
    Ok(())
}

impl Backend for Rbd {
    fn create<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Doing<'a, Result<(), Problem>> {
        Box::pin(async move {
            if !lun.thin {
                let detail = format!("pool {} has thin images only", self.config.name);
                return Err(Problem::new(Code::InvalidObjects, detail)
                    .hint("leave thin out: what a host writes takes its space then"));
            }
            self.make_image(core, lun)
                .await
                .map_err(|error| of_pool(&error))
        })
    }

    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Doing<'a, Result<Rc<dyn Leaf>, OpenError>> {
        Box::pin(self.open_image(core, lun, fences))
    }

    fn destroy<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Doing<'a, Result<(), Problem>> {
        Box::pin(async move {
            self.remove_image(core, lun)
                .await
                .map_err(|error| of_pool(&error))
        })
    }
}

impl Rbd {
    async fn make_image(&self, core: &CoreHandle, lun: &Lun) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, image_name(&lun.naa));
        let (size, identity) = (ByteCount(lun.size.bytes()), identity(lun, None, None));
        let (made, maker) = (name.clone(), Arc::clone(&cluster));
        let work = async move { maker.create(&made, size, identity).await };
        self.change(core, "making an image", work).await?;
        let seen = Seen {
            naa: lun.naa.clone(),
            is_ours: true,
            record: None,
            size,
        };
        self.state.borrow_mut().images.insert(name, seen);
        Ok(())
    }

    /// Removes the image of a LUN, unless it is another's.
    async fn remove_image(&self, core: &CoreHandle, lun: &Lun) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(&lun.naa));
        let found = match cluster.describe(core, &name).await {
            Err(error) if error.kind == ErrorKind::NoImage => return Ok(()),
            found => found?,
        };
        if lun_of(&name, &found) != Some(&lun.naa) {
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
    async fn name_image(
        &self,
        core: &CoreHandle,
        lun: &Lun,
        text: String,
    ) -> Result<(), OpenError> {
        let (cluster, name) = (self.cluster()?, self.image_of(&lun.naa));
        let id = self.is_of(core, &cluster, &name, lun).await?.id;
        let identity = identity(lun, Some(&id), Some(text.clone()));
        let named = name.clone();
        let work = async move { cluster.set_identity(&named, identity).await };
        self.change(core, "naming an image", work).await?;
        if let Some(seen) = self.state.borrow_mut().images.get_mut(&name) {
            (seen.is_ours, seen.record) = (true, Some(text));
        }
        Ok(())
    }
}

impl Pool for Rbd {
    fn missing(&self) -> Option<OpenError> {
        self.state.borrow().missing.clone()
    }

    fn is_ready(&self) -> Doing<'_, Result<(), Problem>> {
        let missing = self.cluster().err();
        done(missing.map_or(Ok(()), |why| {
            Err(Problem::new(Code::PoolMissing, why.cause).hint(why.next_step))
        }))
    }

    fn facts(&self, promised: Promised) -> Doing<'_, (PoolFacts, Option<u64>)> {
        let state = self.state.borrow();
        let (now, health) = (self.node().core.now(), state.health.as_ref());
        let used = health.map_or(0, |(health, _)| health.used.0);
        let available = health.map_or(0, |(health, _)| health.available.0);
        let total = used.saturating_add(available);
        let is_silent = state.is_silent || health.is_none();
        let over = promised.outstanding.saturating_sub(available);
        let age = health.map(|(_, at)| now.since(*at).as_secs());
        let facts = PoolFacts {
            name: self.config.name.clone(),
            path: format!("rbd:{}", self.spec.pool),
            total,
            available,
            used,
            state: match (&state.missing, health) {
                (Some(_), _) => PoolState::Missing,
                (None, _) if is_silent => PoolState::Silent,
                (None, Some((health, _))) => match health.fullness {
                    Fullness::Full => PoolState::Full,
                    Fullness::NearlyFull => PoolState::Low,
                    Fullness::Room => state_of(total, available),
                },
                (None, None) => PoolState::Silent,
            },
            provisioned_bytes: promised.provisioned,
            outstanding_bytes: promised.outstanding,
            overcommitted_bytes: if total > 0 { over } else { 0 },
            age_seconds: age.filter(|_| is_silent),
            problem: match &state.missing {
                Some(why) => Some(why.to_string()),
                None if state.is_silent => Some(
                    "the cluster does not answer: look at its health (ceph status) and at the network to it".to_owned(),
                ),
                None => None,
            },
            health: state.cluster.as_ref().zip(health).map(|(cluster, (health, _))| {
                health_facts(cluster.fsid(), health)
            }),
            layout: "rbd".to_owned(),
            ..PoolFacts::default()
        };
        done((facts, None))
    }

    fn usage(&self) -> Doing<'_, BTreeMap<String, u64>> {
        Box::pin(async move {
            self.measure().await;
            self.state.borrow().usage.clone()
        })
    }

    fn watch(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            self.follow().await;
            self.ask_health().await;
        })
    }

    fn write_down(&self) -> Doing<'_, ()> {
        done(())
    }

    fn stands<'a>(&'a self, lun: &'a Lun, _: bool) -> Doing<'a, Option<Stands>> {
        let name = self.image_of(&lun.naa);
        let state = self.state.borrow();
        let text = state.images.get(&name).and_then(|it| it.record.clone());
        let text = text.map(String::into_bytes);
        let record = text.as_ref().and_then(|it| LunRecord::decode(it).ok());
        done(Some(Stands { text, record }))
    }

    fn write_record<'a>(
        &'a self,
        record: &'a LunRecord,
        text: Vec<u8>,
    ) -> Doing<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let text = String::from_utf8_lossy(&text).into_owned();
            let core = &self.node().core;
            self.name_image(core, &record.lun, text).await
        })
    }

    fn adopt<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Doing<'a, Result<(), Problem>> {
        Box::pin(async move {
            let claimed = self.claim(core, lun).await;
            claimed.map_err(|error| of_pool(&error))
        })
    }

    /// Images that say that they are LUNs and are none here; and those that are nobody's, which
    /// can become some.
    fn orphans<'a>(&'a self, known: &'a BTreeSet<String>) -> Doing<'a, Vec<Orphan>> {
        Box::pin(async move {
            // As they were, until it answers.
            let is_silent = self.state.borrow().is_silent;
            if let (Ok(cluster), false) = (self.cluster(), is_silent)
                && let Err(error) = self.probe(&self.node().core, &cluster).await
            {
                tracing::warn!(
                    pool = self.config.name,
                    "its images are not known anew: {error}"
                );
            }
            let state = self.state.borrow();
            let others = state
                .images
                .iter()
                .filter(|(_, seen)| !known.contains(&seen.naa));
            let orphan = |(name, seen): (&String, &Seen)| {
                let record = match &seen.record {
                    Some(text) => LunRecord::decode(text.as_bytes()).map_err(NoRecord::from),
                    None => Err(NoRecord::Absent("in the image")),
                };
                let found = orphan_of(&self.config.name, &seen.naa, record, false);
                Orphan {
                    file: Some(format!("{}/{name}", self.spec.pool)),
                    size_bytes: seen.size.0,
                    is_foreign: !seen.is_ours,
                    ..found
                }
            };
            others.map(orphan).collect()
        })
    }

    /// Nothing: an image is of one LUN, and a pool of images keeps no more.
    fn saved(&self) -> Doing<'_, Option<Vec<u8>>> {
        done(None)
    }

    fn write_saved(&self, _: SavedText) -> Doing<'_, Result<(), OpenError>> {
        done(Ok(()))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn an_image_that_is_no_lun_yet_has_always_the_same_identifier_and_no_other_has_it() {
        let fsid = "5cf1b2aa-0d61-4e0c-9d0e-7b1c5f0e9a11";
        let one = naa_of(fsid, "10a5f2b3c4d5");
        assert_eq!(one, naa_of(fsid, "10a5f2b3c4d5"));
        assert_eq!(one.len(), 32);
        assert!(
            one.starts_with('6') && one.chars().all(|it| it.is_ascii_hexdigit()),
            "{one}"
        );
        assert_ne!(one, naa_of(fsid, "10a5f2b3c4d6"));
        assert_ne!(
            one,
            naa_of("6cf1b2aa-0d61-4e0c-9d0e-7b1c5f0e9a11", "10a5f2b3c4d5")
        );
        // A long one counts by its end.
        assert_ne!(
            naa_of(fsid, "ffffffffffffffffff01"),
            naa_of(fsid, "ffffffffffffffffff02")
        );
    }
}
