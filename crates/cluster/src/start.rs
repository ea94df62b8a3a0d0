//! How a LUN with copies begins to work on a node.

use crate::cluster::Cluster;
use crate::copy_file::CopyStore;
use crate::lun::Lun;
use crate::node::Node;
use crate::perform::lacks_some;
use crate::questions::Questions;
use crate::registry::{Registry, Reporter};
use crate::ring_side::RingSide;
use crate::served::Served;
use crate::unit_side::UnitSide;
use arbiter::{Key, role};
use replica::{Durable, LunCopy};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;
use volume::{IoError, OpenError, Volume};

/// A LUN with copies.
pub struct LunSpec {
    /// What hosts use, over its log, which has copies and a history.
    pub served: Arc<Served>,
    /// Where its role record stands.
    pub key: Key,
    /// Where its copy here keeps what it must not forget,
    pub store: Rc<dyn CopyStore>,
    /// and what it kept.
    pub kept: Durable,
}

/// Why a LUN does not begin to work.
#[derive(Debug)]
pub enum NotStarted {
    /// Its volume does not open.
    Open(OpenError),
    /// Its log does not answer.
    Log(IoError),
    /// Its log has another number of rings than the cluster.
    Rings(u32),
}

impl Cluster {
    /// Has a LUN work on this node, which works nowhere else on it.
    ///
    /// # Errors
    /// [`NotStarted`].
    pub async fn open(self: &Rc<Self>, spec: LunSpec) -> Result<(), NotStarted> {
        let (core, volume) = (&self.core, Arc::clone(spec.served.log()));
        let id = volume.id();
        volume.keep_log(lacks_some(&spec.kept));
        // All rings know it from here on.
        let lane = Arc::clone(&volume).open(core).await;
        drop(lane.map_err(NotStarted::Open)?);
        let found = volume.history(core).await.len();
        if found != usize::from(self.settings.rings) {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(NotStarted::Rings(found));
        }
        let mut rings = Vec::new();
        for ring in 0..self.settings.rings {
            let home = core.id();
            let make = move |core: &env::CoreHandle| -> Rc<dyn write_back::Carrier> {
                Rc::new(Reporter {
                    core: Rc::clone(core),
                    home,
                    id,
                    ring,
                })
            };
            let carried = volume.carry(core, ring.into(), make).await;
            carried.map_err(NotStarted::Log)?;
            let order = volume.order(core, ring.into()).await;
            rings.push(RingSide::new(&order.map_err(NotStarted::Log)?));
        }
        role::begin(&*self.arbiter, [&spec.kept]);
        spec.served.tenure().counts(self.pace.latencies());
        let lun = Rc::new(self.lun_of(spec, rings));
        core.locals().get::<Registry>().put(&lun);
        self.put(&lun);
        core.spawn(Box::pin(lun.run()));
        Ok(())
    }

    fn lun_of(self: &Rc<Self>, spec: LunSpec, rings: Vec<RingSide>) -> Lun {
        let summaries = rings.iter().map(RingSide::summary).collect();
        let (me, spans) = (self.settings.own.slot, self.settings.spans);
        let mut copy = LunCopy::start(me, spans, spec.kept.clone(), summaries, self.now());
        for (ring, of) in (0..).zip(&rings) {
            copy.is_committed(ring, of.committed);
        }
        let mut first = [0; 8];
        self.core.fill_random(&mut first);
        #[cfg(feature = "model")]
        copy.breaks(self.broken.get());
        for it in spec.store.kept_removed() {
            copy.has_had(it.node, it.below);
        }
        let (kept_state, removed) = (spec.store.kept_state(), spec.store.kept_removed());
        Lun {
            id: spec.served.log().id(),
            key: spec.key,
            core: Rc::clone(&self.core),
            node: Rc::clone(self) as Rc<dyn Node>,
            volume: Arc::clone(spec.served.log()),
            store: spec.store,
            tenure: Arc::clone(spec.served.tenure()),
            patience: Cell::default(),
            copy: RefCell::new(copy),
            rings: RefCell::new(rings),
            unit: UnitSide::new(kept_state),
            kept: RefCell::new(spec.kept),
            talks: RefCell::default(),
            first_talk: u64::from_le_bytes(first),
            inbox: RefCell::default(),
            news: Notify::new(),
            appended: Notify::new(),
            asked: Cell::new(0),
            feeds: Cell::new(0),
            copying: RefCell::default(),
            renewed: RefCell::new(None),
            comparing: Questions::default(),
            removed: RefCell::new(removed),
            noted: RefCell::default(),
            stopped: RefCell::new(None),
            ends: Cell::new(false),
            is_over: Cell::new(false),
            ended: Notify::new(),
        }
    }
}
