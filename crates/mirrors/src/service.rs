//! The LUNs with copies of this node, from the log of each to the cluster.

use crate::begin::Beginning;
use crate::entry::{Begun, Entry};
use crate::facts::{facts, nobody_else};
use crate::follow::Followed;
use crate::forward::Route;
use crate::found::{Found, Luns, Nodes};
use crate::guests::{self, Guests, Unit};
use crate::object::{self, LunObject};
use crate::ports;
use crate::state::Copies;
use arbiter::{Answer, Arbiter, Question, Swap};
use cluster::{Cluster, CopyFile, GuestServer, NotGiven, Served, Settings};
use engine::{MirrorAsked, MirrorView, SharedChange};
use env::durable::{make_dir, remove_file, replace_file};
use env::{CoreHandle, LocalFuture, in_time};
use futures_util::future::join_all;
use logical_unit::{
    Forwarder, HeldState, NodeElsewhere, NodeNumber, PortElsewhere, StateCopies, UnitId,
};
use manifest::code::Code;
use manifest::objects::{Lun, MirrorFacts, NodeNames};
use manifest::problem::Problem;
use node::HandOver;
use peer::{Cost, Limits};
use replica::{NodeSlot, Revision, Spans};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use volume::{Cut, OpenError, OpenErrorKind, Volume};
use write_back::WriteBack;

/// How often the arbiter is asked for LUNs, and what waits is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The same while a LUN waits: one that was just made is to be served at once.
const SOON: Duration = Duration::from_millis(100);

/// How long a copy may take to let go of its log: one that has failed may not answer.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// Objects that are written together: all of them are below what the arbiter takes at once.
const PUBLISHED_AT_ONCE: usize = 64;

/// The first cut of the history of each copy: the same on all nodes.
const FIRST_CUT: Cut = Cut(1);

/// What the stream of a ring holds.
const LIMITS: Limits = Limits {
    window: Cost {
        bytes: 8 << 20,
        records: 2048,
    },
    held: Cost {
        bytes: 8 << 20,
        records: 2048,
    },
};

/// The LUNs with copies of a node.
pub struct Mirrors {
    pub(crate) core: CoreHandle,
    pub(crate) state_dir: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) entries: RefCell<BTreeMap<String, Rc<Entry>>>,
    pub(crate) nodes: OnceCell<Rc<dyn Nodes>>,
    pub(crate) luns: OnceCell<Rc<dyn Luns>>,
    pub(crate) cluster: OnceCell<Rc<Cluster>>,
    /// This node's number, as its membership was stored.
    pub(crate) number: Cell<Option<u8>>,
    /// Its ports to each LUN, as others hear them.
    pub(crate) ports: RefCell<BTreeMap<String, Vec<u8>>>,
    pub(crate) news: Notify,
    /// What other nodes forward.
    pub(crate) guests: Rc<Guests>,
}

fn failed(path: &std::path::Path, error: &io::Error) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Other,
        cause: format!("{}: {error}", path.display()),
        next_step: "check the state directory and its disk".to_owned(),
    }
}

/// What became of a LUN, in words; nothing where another node owned it already.
fn handed_over(
    entry: &Entry,
    found: &Found,
    cluster: &Cluster,
    given: Result<NodeSlot, NotGiven>,
) -> Option<HandOver> {
    let now = || facts(entry, Some(found), Some(cluster));
    let to = match given {
        Ok(node) => Ok(found.name_of(node)),
        Err(NotGiven::NotOwned) => return None,
        Err(NotGiven::NobodyInSync) => Err(nobody_else(&now())),
        Err(NotGiven::Late) => Err(format!("it cannot be given now: {}", now().text)),
    };
    let naa = entry.naa.clone();
    Some(HandOver { naa, to })
}

/// Which ports of this node an initiator may use for a LUN, as was said last.
fn ports_of(mirrors: &Weak<Mirrors>) -> Box<guests::Ports> {
    let mirrors = Weak::clone(mirrors);
    Box::new(move |naa, initiator| {
        let mirrors = mirrors.upgrade();
        let said = mirrors.and_then(|it| it.ports.borrow().get(naa).cloned());
        let said = said.map(|it| ports::decode(NodeSlot(0), &it).ports);
        let may_use = said.into_iter().flatten().filter(|it| it.is_for(initiator));
        may_use.map(|it| it.port).collect()
    })
}

impl Mirrors {
    /// Keeps what copies must not forget below the state directory. Nobody is served before it
    /// [runs](Mirrors::run).
    #[must_use]
    pub fn new(core: &CoreHandle, state_dir: &std::path::Path) -> Rc<Self> {
        Rc::new_cyclic(|me: &Weak<Self>| Self {
            guests: Guests::new(core, ports_of(me)),
            core: Rc::clone(core),
            state_dir: state_dir.to_owned(),
            dir: state_dir.join("copies"),
            entries: RefCell::default(),
            nodes: OnceCell::new(),
            luns: OnceCell::new(),
            cluster: OnceCell::new(),
            number: Cell::new(None),
            ports: RefCell::default(),
            news: Notify::new(),
        })
    }

    /// Has LUNs work, and makes those that other nodes want to have copies of here; goes on as long
    /// as the node does.
    pub async fn run(self: Rc<Self>, nodes: Rc<dyn Nodes>, luns: Rc<dyn Luns>) {
        let _once = (self.nodes.set(Rc::clone(&nodes)), self.luns.set(luns));
        let mut followed = Followed::default();
        loop {
            match (nodes.found(), nodes.arbiter().await) {
                (Some(found), Some(arbiter)) => {
                    let roles = followed.hear(&*arbiter).await;
                    self.know_roles(roles);
                    self.follow_all(&mut followed, (&found, &*arbiter)).await;
                    self.begin_all(&found, &arbiter).await;
                    self.tend_copies(&followed, &found).await;
                    self.publish(&found, &*arbiter).await;
                }
                (None, _) => self.all_wait("this node is in no cluster"),
                (Some(_), None) => {
                    self.all_wait("etcd cannot be asked: see `causeway cluster status`");
                }
            }
            let news = async {
                tokio::select! {
                    () = self.news.notified() => {}
                    () = nodes.changed() => {}
                }
            };
            let again = if self.waiting().is_empty() {
                AGAIN
            } else {
                SOON
            };
            let _in_time = in_time(&self.core, again, news).await;
        }
    }

    fn all_wait(&self, why: &str) {
        for entry in self.waiting() {
            entry.waits(why);
        }
    }

    pub(crate) fn waiting(&self) -> Vec<Rc<Entry>> {
        let entries = self.entries.borrow();
        let waiting = entries.values().filter(|it| it.is_waiting());
        waiting.map(Rc::clone).collect()
    }

    /// The node's cluster, as soon as a LUN says how many rings there are.
    fn cluster_for(&self, found: &Found, arbiter: &Rc<dyn Arbiter>, rings: u8) -> &Rc<Cluster> {
        self.cluster.get_or_init(|| {
            let settings = Settings {
                own: found.own,
                spans: Spans::default(),
                rings,
                limits: LIMITS,
            };
            let nodes = self.nodes.get().expect("it runs");
            let (transport, arbiter) = (nodes.transport(), Rc::clone(arbiter));
            let cluster = Cluster::start(&self.core, settings, transport, arbiter);
            cluster.serve_guests(Rc::clone(&self.guests) as Rc<dyn GuestServer>);
            cluster
        })
    }

    async fn begin_all(&self, found: &Found, arbiter: &Rc<dyn Arbiter>) {
        for entry in self.waiting() {
            // What is being made may still fail.
            if self.lun(&entry.naa).is_none() {
                continue;
            }
            let rings = u8::try_from(entry.served.log().rings());
            let Ok(rings) = rings else {
                entry.waits("the journal of its pool has more than 255 rings");
                continue;
            };
            let cluster = self.cluster_for(found, arbiter, rings);
            cluster.meets(&found.known());
            let beginning = Beginning {
                core: &self.core,
                found,
                arbiter: &**arbiter,
            };
            match beginning.begin(&entry, cluster).await {
                Ok(()) if entry.is_waiting() => {
                    *entry.begun.borrow_mut() = Begun::Works;
                    cluster.set_min_copies(entry.id(), entry.min_copies.get());
                    if let Some(ports) = self.ports.borrow().get(&entry.naa) {
                        cluster.say_ports(entry.id(), ports.clone());
                    }
                }
                // It was closed meanwhile.
                Ok(()) => cluster.close(entry.id()).await,
                Err(why) => entry.waits(&why),
            }
        }
        if let Some(cluster) = self.cluster.get() {
            cluster.meets(&found.known());
        }
    }

    /// Says to the other nodes what the LUNs are that were made here.
    async fn publish(&self, found: &Found, arbiter: &dyn Arbiter) {
        let mut all = self.all();
        all.retain(|it| !it.is_published.get() && !it.is_waiting());
        for some in all.chunks(PUBLISHED_AT_ONCE) {
            let swap = |entry: &Rc<Entry>| {
                let (key, (name, lun)) = (object::key(&entry.naa)?, self.lun(&entry.naa)?);
                let object = LunObject::new(&name, &lun, (&found.name, self.nonce()));
                let swap = Swap::new(key, Revision(0), object::encode(&object));
                Some((Rc::clone(entry), Question::Swap(swap)))
            };
            let (entries, questions): (Vec<_>, Vec<_>) = some.iter().filter_map(swap).unzip();
            let answers = arbiter.ask(questions).await;
            for (entry, answer) in entries.iter().zip(answers) {
                if matches!(answer, Answer::Swapped(_) | Answer::Refused(Some(_))) {
                    entry.is_published.set(true);
                }
            }
        }
    }

    /// Random digits.
    pub(crate) fn nonce(&self) -> String {
        let mut nonce = [0; 8];
        self.core.fill_random(&mut nonce);
        format!("{:016x}", u64::from_le_bytes(nonce))
    }

    /// The cluster, with what is known of its nodes; nothing before it is.
    pub(crate) fn known(&self) -> Option<(Found, &Rc<Cluster>)> {
        let found = self.nodes.get().and_then(|it| it.found())?;
        Some((found, self.cluster.get()?))
    }

    pub(crate) fn all(&self) -> Vec<Rc<Entry>> {
        self.entries.borrow().values().map(Rc::clone).collect()
    }

    /// Gives what this node owns to others.
    async fn hand_over_all(self: Rc<Self>, within: Duration) -> Vec<HandOver> {
        let Some((found, cluster)) = self.known() else {
            return Vec::new();
        };
        let (entries, until) = (self.all(), self.core.now().after(within));
        let all = entries.iter().map(|entry| async {
            let given = cluster.hand_over(entry.id(), until).await;
            let handed = handed_over(entry, &found, cluster, given)?;
            let naa = &handed.naa;
            match &handed.to {
                Ok(node) => tracing::info!(naa, node, "another node owns the LUN from now on"),
                Err(why) => tracing::warn!(naa, why, "the LUN stays with this node"),
            }
            Some(handed)
        });
        join_all(all).await.into_iter().flatten().collect()
    }

    /// What that would do, as things are now.
    fn would_hand_over_all(&self) -> Vec<HandOver> {
        let Some((found, cluster)) = self.known() else {
            return Vec::new();
        };
        let all = self.all();
        let would = all.iter().filter_map(|entry| {
            let would = cluster.next_owner(entry.id());
            handed_over(entry, &found, cluster, would)
        });
        would.collect()
    }

    pub(crate) fn path_of_gone(&self, naa: &str) -> PathBuf {
        self.dir.join(format!("{naa}.gone"))
    }

    pub(crate) fn lun(&self, naa: &str) -> Option<(String, Lun)> {
        self.luns.get()?.lun(naa)
    }

    pub(crate) fn path(&self, naa: &str) -> PathBuf {
        self.dir.join(format!("{naa}.json"))
    }

    async fn put_over(
        self: Rc<Self>,
        (naa, names, min_copies): (String, NodeNames, u32),
        log: Arc<WriteBack>,
    ) -> Result<Arc<dyn Volume>, OpenError> {
        self.close_now(&naa).await;
        self.find_number().await;
        log.has_copies();
        let (files, path) = (self.core.files(), self.path(&naa));
        make_dir(&*files, &self.dir)
            .await
            .map_err(|error| failed(&self.dir, &error))?;
        let file = CopyFile::new(&self.core, path.clone());
        match file.kept().await {
            Ok(_) => {}
            // It never began: its history begins as that of the other copies does.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                log.begin_history(&self.core, FIRST_CUT).await?;
            }
            Err(error) => return Err(failed(&path, &error)),
        }
        let served = Served::new(log);
        let entry = Entry {
            naa: naa.clone(),
            names,
            served: Arc::clone(&served),
            file: Rc::new(file),
            min_copies: min_copies.into(),
            adding: RefCell::default(),
            begun: RefCell::new(Begun::Waits("the cluster is not known yet".to_owned())),
            is_published: false.into(),
        };
        self.entries.borrow_mut().insert(naa, Rc::new(entry));
        self.news.notify_one();
        Ok(served)
    }

    /// Which node this is. At a start LUNs come into service before the membership does, and hosts
    /// with them.
    async fn find_number(&self) {
        if self.number.get().is_some() {
            return;
        }
        let found = self.nodes.get().and_then(|it| it.found());
        let number = match found {
            Some(found) => Some(found.own.slot.0),
            None => {
                let store = membership::store::Store::new(&self.core, &self.state_dir);
                let member = store.member().await.ok().flatten();
                member.map(|it| it.slot)
            }
        };
        self.number.set(number);
    }

    async fn close_now(&self, naa: &str) {
        let entry = self.entries.borrow_mut().remove(naa);
        let Some(entry) = entry else {
            return;
        };
        let before = entry.begun.replace(Begun::Closed);
        let guests = self.guests.ends(entry.id());
        if in_time(&self.core, CLOSE_TIME_MAX, guests).await.is_none() {
            tracing::warn!(naa, "commands of other nodes do not end");
        }
        if let (Begun::Works, Some(cluster)) = (before, self.cluster.get()) {
            let closed = in_time(&self.core, CLOSE_TIME_MAX, cluster.close(entry.id()));
            if closed.await.is_none() {
                tracing::warn!(
                    naa,
                    "what a copy has begun hangs in its journal, and is left alone"
                );
            }
        }
    }

    async fn forget_now(&self, naa: &str) {
        let slot = self.nodes.get().and_then(|it| it.found());
        let copy = match slot {
            Some(found) => self.kept_copy(naa, found.own.slot).await,
            None => None,
        };
        self.close_now(naa).await;
        self.ports.borrow_mut().remove(naa);
        let files = self.core.files();
        let gone = copy.map_or_else(String::new, |it| format!("{:032x}", it.0));
        let noted = replace_file(&*files, &self.path_of_gone(naa), gone.as_bytes()).await;
        let forgot = remove_file(&*files, &self.path(naa)).await;
        if let Err(error) = noted.and(forgot) {
            tracing::warn!(naa, %error, "what is kept of a copy stays");
        }
    }
}

/// What the data plane asks.
struct Door(Rc<Mirrors>);

impl Mirrors {
    /// For the data plane.
    #[must_use]
    pub fn door(self: &Rc<Self>) -> Rc<dyn node::Mirrors> {
        Rc::new(Door(Rc::clone(self)))
    }
}

impl node::Mirrors for Door {
    fn allows(&self, lun: &Lun) -> Result<(), Problem> {
        let Some(names) = lun.storage.copies else {
            return Ok(());
        };
        let found = self.0.nodes.get().and_then(|it| it.found());
        let Some(found) = found else {
            let detail = "this node is in no cluster, so that no other one can have a copy";
            let next = "`causeway cluster init`, or `join` on the second node, comes first";
            return Err(Problem::new(Code::ClusterNone, detail).hint(next));
        };
        let refused = |detail: String| {
            let known = found.others.iter().map(|it| it.1.as_str());
            let all: Vec<&str> = std::iter::once(&*found.name).chain(known).collect();
            let next = format!("the nodes of the cluster are {}", all.join(", "));
            Err(Problem::new(Code::BadRequest, detail).hint(next))
        };
        if let Some(strange) = names.iter().find(|it| found.slot_of(it).is_none()) {
            return refused(format!("the cluster has no node \"{strange}\""));
        }
        if !names.has(&found.name) {
            return refused(format!(
                "this node, \"{}\", is to be one of those with a copy",
                found.name
            ));
        }
        Ok(())
    }

    fn over(
        &self,
        (naa, names, min_copies): (&str, NodeNames, u32),
        log: Arc<WriteBack>,
    ) -> LocalFuture<Result<Arc<dyn Volume>, OpenError>> {
        let lun = (naa.to_owned(), names, min_copies);
        Box::pin(Rc::clone(&self.0).put_over(lun, log))
    }

    fn set_min_copies(&self, naa: &str, nodes: u32) {
        let entry = self.0.entries.borrow().get(naa).map(Rc::clone);
        let Some(entry) = entry.filter(|it| it.min_copies.replace(nodes) != nodes) else {
            return;
        };
        if let (false, Some(cluster)) = (entry.is_waiting(), self.0.cluster.get()) {
            cluster.set_min_copies(entry.id(), nodes);
        }
    }

    fn change(&self, asked: MirrorAsked) -> LocalFuture<Result<MirrorView, Problem>> {
        Box::pin(Rc::clone(&self.0).change(asked))
    }

    fn agree(&self, shared: Vec<SharedChange>) -> LocalFuture<Result<(), Problem>> {
        Box::pin(Rc::clone(&self.0).agree(shared))
    }

    fn close(&self, naa: &str) -> LocalFuture<()> {
        let (mirrors, naa) = (Rc::clone(&self.0), naa.to_owned());
        Box::pin(async move { mirrors.close_now(&naa).await })
    }

    fn forget(&self, naa: &str) -> LocalFuture<()> {
        let (mirrors, naa) = (Rc::clone(&self.0), naa.to_owned());
        Box::pin(async move { mirrors.forget_now(&naa).await })
    }

    fn hand_over(&self, within: Duration) -> LocalFuture<Vec<HandOver>> {
        Box::pin(Rc::clone(&self.0).hand_over_all(within))
    }

    fn would_hand_over(&self) -> Vec<HandOver> {
        self.0.would_hand_over_all()
    }

    fn number(&self) -> Option<NodeNumber> {
        self.0.number.get().map(NodeNumber)
    }

    fn say_ports(&self, naa: &str, ports: Vec<PortElsewhere>) {
        let Some(entry) = self.0.entries.borrow().get(naa).map(Rc::clone) else {
            return;
        };
        let said = ports::encode(&ports);
        let mut all = self.0.ports.borrow_mut();
        let before = all.insert(naa.to_owned(), said.clone());
        if before.as_ref() == Some(&said) || entry.is_waiting() {
            return;
        }
        if let Some(cluster) = self.0.cluster.get() {
            cluster.say_ports(entry.id(), said);
        }
    }

    fn elsewhere(&self, naa: &str) -> Vec<NodeElsewhere> {
        let entry = self.0.entries.borrow().get(naa).map(Rc::clone);
        let (Some(entry), Some(cluster)) = (entry, self.0.cluster.get()) else {
            return Vec::new();
        };
        let said = cluster.ports(entry.id()).into_iter();
        said.map(|(of, text)| ports::decode(of, &text)).collect()
    }

    fn state_copies(&self, naa: &str) -> Option<Arc<dyn StateCopies>> {
        let entries = self.0.entries.borrow();
        let (home, id) = (self.0.core.id(), entries.get(naa)?.id());
        Some(Arc::new(Copies { home, id }))
    }

    fn forwarder(&self, naa: &str, unit: UnitId) -> Option<Arc<dyn Forwarder>> {
        let entries = self.0.entries.borrow();
        let (home, id) = (self.0.core.id(), entries.get(naa)?.id());
        let naa = naa.to_owned();
        self.0.guests.put(id, Unit { id: unit, naa });
        Some(Arc::new(Route { home, id }))
    }

    fn held_state(&self, naa: &str) -> LocalFuture<Option<HeldState>> {
        let entry = self.0.entries.borrow().get(naa).map(Rc::clone);
        let mirrors = Rc::clone(&self.0);
        Box::pin(async move {
            let (entry, cluster) = (entry?, mirrors.cluster.get()?);
            let held = cluster.held_state(entry.id()).await?;
            Some(HeldState {
                state: held.bytes,
                lived: held.lived,
            })
        })
    }

    fn facts(&self, naa: &str) -> Option<MirrorFacts> {
        let entry = self.0.entries.borrow().get(naa).map(Rc::clone)?;
        let found = self.0.nodes.get().and_then(|it| it.found());
        let cluster = self.0.cluster.get().map(|it| &**it);
        Some(facts(&entry, found.as_ref(), cluster))
    }
}
