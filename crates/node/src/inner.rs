//! What the rooms of a node share.

use crate::backend::pools::Pools;
use crate::journal::all;
use crate::lun::changing;
use crate::lun::sizes;
use crate::lun::stalled;
use crate::lun::unit::Kept;
use crate::lun::units::Units;
use crate::lun::works;
use crate::mirrors::Mirrors;
use crate::pool::intents;
use crate::pool::intents::Finishing;
use crate::pool::late;
use crate::pool::orphans_seen;
use crate::pool::questions;
use crate::pool::usage_known;
use crate::scrub::scrubs;
use env::CoreHandle;
use iscsi_target::Server;
use manifest::config::Config;
use manifest::facts::NodeNic;
use manifest::objects::Objects;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tokio::sync::{Mutex, Notify};

pub(crate) struct Inner {
    pub(crate) core: CoreHandle,
    pub(crate) config: Config,
    /// The same with the live settings as they are by now.
    pub(crate) live: RefCell<Rc<Config>>,
    pub(crate) notices: Box<dyn Fn() -> Vec<String>>,
    pub(crate) server: RefCell<Option<Server>>,
    pub(crate) units: Units,
    /// Memory of LUNs that were removed and not purged.
    pub(crate) retired: RefCell<BTreeMap<String, Kept>>,
    pub(crate) objects: RefCell<Rc<Objects>>,
    pub(crate) next_unit: Cell<u64>,
    pub(crate) exports: Cell<u64>,
    /// This machine's NICs that have an address.
    pub(crate) nics: RefCell<Vec<NodeNic>>,
    pub(crate) usage: usage_known::Usage,
    pub(crate) scrubs: scrubs::Scrubs,
    pub(crate) orphans: orphans_seen::Orphans,
    pub(crate) stalls: stalled::Stalls,
    pub(crate) pools: RefCell<Rc<Pools>>,
    pub(crate) journals: all::Journals,
    /// Who knows the other nodes of the cluster, where this one is in one.
    pub(crate) mirrors: OnceCell<Rc<dyn Mirrors>>,
    pub(crate) intent_log: intents::IntentLog,
    pub(crate) unsaved: late::Unsaved,
    /// The objects that were stored last and compared with the pools: the node and their
    /// generation.
    pub(crate) stored: RefCell<Option<(String, u64)>>,
    pub(crate) finishing: Cell<Finishing>,
    pub(crate) changing: changing::Changing,
    pub(crate) resizing: sizes::Resizing,
    pub(crate) works: works::Works,
    pub(crate) asks: questions::Asks,
    /// LUNs that were made smaller in this life, by NAA identifier.
    pub(crate) shrunk: RefCell<BTreeSet<String>>,
    /// Notified when a pool that was away is there again.
    pub(crate) returned: Rc<Notify>,
    /// Changes of LUNs, and of what they stand on, come one after the other.
    pub(crate) turn: Mutex<()>,
}

impl Inner {
    /// The settings, of which the live ones are as they are by now.
    pub(crate) fn settings(&self) -> Rc<Config> {
        Rc::clone(&self.live.borrow())
    }
}
