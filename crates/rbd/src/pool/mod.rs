//! A pool of a cluster as a place for LUNs: an image for each, which says whose it is.
//!
//! ```text
//!   not connected --connect--> there --health every 10 s--> there
//!        ^                       |
//!        '-- shut out by whoever took a lock of ours
//! ```
//!
//! **Contract.** An image says in its metadata which LUN it is, and what that LUN is; one that does
//! not say so is neither opened, nor written to, nor removed, whatever its name is. It is made to
//! say so when it is made, and when an operator adopts it; by nothing else. A connection that was
//! shut out of the cluster is given up with everything on it, and a new one serves only what it
//! gets the locks of.
//!
//! **Failure.** A cluster that does not answer holds up nothing but the I/O of its LUNs: questions
//! are given up in time, changes are refused or end later by themselves.

mod images;
mod status;

pub use images::{ImageShape, PoolImage};
pub use status::PoolStatus;

use crate::cluster::{Cluster, ClusterSpec};
use crate::error::{ErrorKind, RbdError};
use crate::health::Health;
use crate::image::Image;
use crate::owner::{self, RECORD};
use env::{CoreHandle, detach, in_time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use units::Now;
use volume::{OpenError, OpenErrorKind};

/// How often its health is asked for, and how often a connection is tried.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// Which pool it is, and what is asked of it.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// What messages call it.
    pub name: String,
    /// Its monitors, the user, and how long it may be silent.
    pub cluster: ClusterSpec,
    /// How long a change is waited for; it goes on then.
    pub change_time_max: Duration,
    /// The identifier of a LUN, from 25 hexadecimal digits that no other has.
    pub identifier: fn(&str) -> String,
}

/// What has become of its connection, which whoever serves its LUNs has to follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Nothing that goes over the connection succeeds any more.
    ShutOut(OpenError),
    /// There is a new one.
    Connected,
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
    images: BTreeMap<String, PoolImage>,
    /// Those of LUNs in service, by NAA identifier.
    open: BTreeMap<String, Weak<Image>>,
    measured: Option<Now>,
    /// Bytes by NAA identifier.
    usage: BTreeMap<String, u64>,
}

/// A pool of a cluster, whose images are LUNs.
pub struct ImagePool {
    spec: PoolSpec,
    state: RefCell<State>,
    connects: Cell<bool>,
}

impl ImagePool {
    /// One that is not connected.
    #[must_use]
    pub fn new(spec: PoolSpec) -> Self {
        Self {
            spec,
            state: RefCell::default(),
            connects: Cell::default(),
        }
    }

    /// Why nothing of it can be used, where that is so.
    #[must_use]
    pub fn missing(&self) -> Option<OpenError> {
        self.state.borrow().missing.clone()
    }

    /// It is gone with its connection, or there again.
    pub fn set_missing(&self, why: Option<OpenError>) {
        let mut state = self.state.borrow_mut();
        if why.is_some() {
            state.cluster = None;
        }
        (state.missing, state.probed) = (why, None);
    }

    /// Its first connection could not be made: it is tried again soon.
    pub fn set_not_connected(&self, why: OpenError) {
        self.state.borrow_mut().missing = Some(why);
    }

    /// Why it cannot be used before the cluster has answered.
    #[must_use]
    pub fn silent(&self) -> OpenError {
        OpenError {
            kind: OpenErrorKind::Hung,
            cause: format!("pool {}: the cluster has not answered yet", self.spec.name),
            next_step: "check its health (ceph status) and the network to it; it is tried again"
                .to_owned(),
        }
    }

    /// The connection, to use it.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn cluster(&self) -> Result<Arc<Cluster>, OpenError> {
        let state = self.state.borrow();
        match (&state.missing, &state.cluster) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(cluster)) => Ok(Arc::clone(cluster)),
            (None, None) => Err(self.silent()),
        }
    }

    /// Connects and reads which images there are.
    ///
    /// # Errors
    /// What keeps it from being used, or that somebody else is connecting now.
    pub async fn connect(&self, core: &CoreHandle) -> Result<(), OpenError> {
        if self.connects.replace(true) {
            return Err(self.silent());
        }
        let connected = async {
            let cluster = Cluster::connect(core, self.spec.cluster.clone()).await?;
            self.state.borrow_mut().images.clear();
            self.probe(core, &cluster).await?;
            self.state.borrow_mut().cluster = Some(cluster);
            Ok::<(), RbdError>(())
        };
        let connected = connected.await;
        self.connects.set(false);
        Ok(connected?)
    }

    /// Finds out that it was shut out, or connects where there is no connection. Whoever learns of
    /// a turn takes it by [`ImagePool::set_missing`].
    pub async fn follow(&self, core: &CoreHandle) -> Option<Turn> {
        let is_shut_out = {
            let state = self.state.borrow();
            state.cluster.as_ref().is_some_and(|it| it.is_shut_out())
        };
        if is_shut_out {
            return Some(Turn::ShutOut(OpenError {
                kind: OpenErrorKind::Fenced,
                cause: format!(
                    "pool {}: this node was shut out of the cluster (blocklisted): somebody has taken over what it served",
                    self.spec.name
                ),
                next_step: "it connects anew, and serves what nobody else has the lock of (rbd status shows who has)".to_owned(),
            }));
        }
        self.state.borrow().missing.as_ref()?;
        if self.state.borrow().cluster.is_none() {
            if !self.is_due(core.now()) {
                return None;
            }
            if let Err(why) = self.connect(core).await {
                self.state.borrow_mut().missing = Some(why);
                return None;
            }
        }
        Some(Turn::Connected)
    }

    /// The cluster was not asked a moment ago; it is now.
    fn is_due(&self, now: Now) -> bool {
        let mut state = self.state.borrow_mut();
        let probed = state.probed;
        let is_due = probed.is_none_or(|probed| now.since(probed) >= PROBE_INTERVAL);
        if is_due {
            state.probed = Some(now);
        }
        is_due
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
            let naa = owner::lun_of(&name, &found).map(str::to_owned);
            let record = found.identity.0.get(RECORD).cloned();
            let digits = || owner::digits_of(cluster.fsid(), &found.id);
            let image = PoolImage {
                is_ours: naa.is_some(),
                record: record.filter(|_| naa.is_some()),
                naa: naa.unwrap_or_else(|| (self.spec.identifier)(&digits())),
                size: found.size,
            };
            self.state.borrow_mut().images.insert(name, image);
        }
        Ok(())
    }

    /// Has the cluster change something. What takes long goes on, and nobody waits for it.
    async fn change(
        &self,
        core: &CoreHandle,
        doing: &str,
        work: impl Future<Output = Result<(), RbdError>> + 'static,
    ) -> Result<(), OpenError> {
        let time = self.spec.change_time_max;
        let done = in_time(core, time, detach(core, work)).await;
        let done = done.ok_or_else(|| OpenError {
            kind: OpenErrorKind::Hung,
            cause: format!(
                "pool {}: {doing} has not ended in {} s, and goes on",
                self.spec.name,
                time.as_secs()
            ),
            next_step: "check the cluster's health (ceph status)".to_owned(),
        })?;
        Ok(done?)
    }
}
