//! This node, as it stands to its cluster: what its commands, its listener and its upkeep share.

use crate::admission::{Candidate, LEVELS, LUNS_MAX, PROTOCOLS};
use crate::authority::{Authority, SecretKey, seconds};
use crate::present::Present;
use crate::records::{ClusterRecord, Profile, random_hex};
use crate::refusal::{Refusal, RefusalKind};
use crate::register::Register;
use crate::roster::{Known, Roster};
use crate::runs::Runs;
use crate::standing::Streams;
use crate::store::{ETCD_FILE, Member, Store};
use crate::tls::{self, Shown};
use crate::words::Hello;
use arbiter::etcd::{Endpoint, EtcdSettings, TlsFiles};
use arbiter::{Arbiter, EtcdArbiter, Key};
use env::{CoreHandle, LocalFuture};
use manifest::code::Code;
use manifest::config::{ClusterSettings, Config};
use manifest::problem::Problem;
use replica::Revision;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{ClientConfig, ServerConfig};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use units::{Now, WallClock};

/// How soon after one line of what others do another one may be in the log.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Who this node is, whatever happens.
#[derive(Clone, Debug)]
pub struct Own {
    /// Its identifier.
    pub id: String,
    /// `node.name` of `node.toml` at the start.
    pub name: String,
    /// The version of the program.
    pub version: String,
}

/// What the rest of the program knows of this node by now.
#[derive(Clone, Default, Debug)]
pub struct Facts {
    /// The ring counts of its journals.
    pub rings: Vec<u32>,
    /// The identities of its LUNs.
    pub naas: Vec<String>,
}

/// Says them.
pub type FactsOf = Box<dyn Fn() -> LocalFuture<Facts>>;

/// How a node is in a cluster, or may be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Etcd's members.
    pub endpoints: Vec<Endpoint>,
    /// With which certificates.
    pub tls: Option<TlsFiles>,
    /// All records are below this name.
    pub prefix: Key,
    /// Where other nodes reach this one.
    pub listen: Vec<SocketAddr>,
    /// Where the node keeps its state.
    pub state_dir: PathBuf,
}

impl Settings {
    /// Of `node.toml`; none: it has no `[cluster]`.
    ///
    /// # Errors
    /// Which value cannot be used.
    pub fn of(config: &Config) -> Result<Option<Self>, Problem> {
        let Some(ClusterSettings {
            etcd,
            tls,
            prefix,
            listen,
        }) = &config.cluster
        else {
            return Ok(None);
        };
        let wrong = |key: &str, why: &str| {
            let place = config.place(&format!("cluster.{key}"));
            Problem::new(Code::ConfigValue, format!("{place}: {why}"))
        };
        let endpoint = |text: &String| {
            Endpoint::parse(text).map_err(|trouble| wrong("etcd", &trouble.to_string()))
        };
        let endpoints: Vec<Endpoint> = etcd.iter().map(endpoint).collect::<Result<_, _>>()?;
        if tls.is_none() && endpoints.iter().any(|it| it.is_encrypted) {
            let why = "https needs etcd_ca, etcd_certificate and etcd_key";
            return Err(wrong("etcd", why));
        }
        let why = "words of letters, digits and .:_- with a / between them are needed";
        let prefix = Key::new(prefix).ok_or_else(|| wrong("prefix", why))?;
        Ok(Some(Self {
            endpoints,
            tls: tls.as_ref().map(|it| TlsFiles {
                ca: it.ca.clone(),
                certificate: it.certificate.clone(),
                key: it.key.clone(),
            }),
            prefix,
            listen: listen.clone(),
            state_dir: config.state_dir.clone(),
        }))
    }

    fn etcd(&self) -> EtcdSettings {
        EtcdSettings {
            endpoints: self.endpoints.clone(),
            tls: self.tls.clone(),
            prefix: self.prefix.clone(),
            memory: self.state_dir.join(ETCD_FILE),
        }
    }
}

/// A node of a cluster.
pub(crate) struct MemberState {
    pub(crate) member: Member,
    pub(crate) authority: Authority,
    pub(crate) key: SecretKey,
    pub(crate) roster: RefCell<Roster>,
    pub(crate) for_nodes: Arc<ServerConfig>,
    pub(crate) for_candidates: Arc<ServerConfig>,
    pub(crate) for_streams: Arc<ServerConfig>,
    pub(crate) to_node: Arc<ClientConfig>,
    pub(crate) to_stream: Arc<ClientConfig>,
}

impl MemberState {
    pub(crate) fn new(
        member: Member,
        roster: Roster,
        clock: &Arc<dyn TimeProvider>,
    ) -> Result<Self, Problem> {
        let (authority, key) = member.keys()?;
        let shown = Shown {
            authority: &member.authority.0,
            certificate: &member.certificate.0,
            key: &key,
        };
        let failed = |error: rustls::Error| {
            let detail = format!("the node's certificate cannot be used: {error}");
            Problem::new(Code::ClusterState, detail)
        };
        let clock = || Arc::clone(clock);
        let for_nodes = tls::for_nodes(&shown, clock()).map_err(failed)?;
        let for_candidates = tls::for_candidates(&shown, clock()).map_err(failed)?;
        let for_streams = tls::for_streams(&shown, clock()).map_err(failed)?;
        let to_node = tls::to_node(&shown, clock()).map_err(failed)?;
        let to_stream = tls::to_stream(&shown, clock()).map_err(failed)?;
        Ok(Self {
            authority,
            key,
            roster: RefCell::new(roster),
            for_nodes,
            for_candidates,
            for_streams,
            to_node,
            to_stream,
            member,
        })
    }
}

/// When another node was heard.
#[derive(Clone, Default, Debug)]
pub(crate) struct Seen {
    /// RFC 3339.
    pub(crate) at: Option<String>,
    /// It did when it was asked last.
    pub(crate) answers: bool,
    /// Why it does not answer, or what is wrong with it although it does.
    pub(crate) problem: Option<Refusal>,
}

pub(crate) struct Node {
    pub(crate) core: CoreHandle,
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) own: Own,
    facts: FactsOf,
    pub(crate) clock: Arc<dyn TimeProvider>,
    pub(crate) state: RefCell<Option<Rc<MemberState>>>,
    /// Why what is kept cannot be used.
    pub(crate) damage: RefCell<Option<Problem>>,
    /// By which addresses nobody is heard, and why.
    pub(crate) not_listening: RefCell<BTreeMap<SocketAddr, String>>,
    /// What the upkeep met last.
    pub(crate) trouble: RefCell<Option<Refusal>>,
    /// Why this node's certificate was not renewed, though it is time.
    pub(crate) not_renewed: RefCell<Option<Problem>>,
    pub(crate) seen: RefCell<BTreeMap<u8, Seen>>,
    /// How often listening has begun or ended.
    listening: Cell<u64>,
    /// When there was a line of what others do in the log.
    logged: Cell<Option<Now>>,
    /// Which start of the program this is.
    run: String,
    /// Those of other nodes, by their numbers.
    runs: RefCell<BTreeMap<u8, Runs>>,
    /// Streams with other nodes.
    pub(crate) streams: Rc<Streams>,
    /// The address of each other node at which a stream is dialled first.
    pub(crate) reached: RefCell<BTreeMap<u8, SocketAddr>>,
    /// What the rest of the program knows of the cluster.
    pub(crate) present: watch::Sender<Option<Present>>,
    /// One change of this node at a time.
    pub(crate) turn: Mutex<()>,
    register: Mutex<Option<Register>>,
    /// This one is asked in place of etcd.
    given: Option<Rc<dyn Arbiter>>,
}

impl Node {
    pub(crate) fn new(core: &CoreHandle, settings: Settings, (own, facts): (Own, FactsOf)) -> Self {
        Self {
            core: Rc::clone(core),
            store: Store::new(core, &settings.state_dir),
            settings,
            own,
            facts,
            clock: Arc::new(DefaultTimeProvider),
            state: RefCell::default(),
            damage: RefCell::default(),
            not_listening: RefCell::default(),
            trouble: RefCell::default(),
            not_renewed: RefCell::default(),
            seen: RefCell::default(),
            listening: Cell::default(),
            logged: Cell::default(),
            run: random_hex::<8>(core),
            runs: RefCell::default(),
            streams: Rc::default(),
            reached: RefCell::default(),
            present: watch::Sender::new(None),
            turn: Mutex::default(),
            register: Mutex::default(),
            given: None,
        }
    }

    /// Asks this arbiter, and no etcd.
    pub(crate) fn asking(self, arbiter: Rc<dyn Arbiter>) -> Self {
        let given = Some(arbiter);
        Self { given, ..self }
    }

    /// Reads what is kept. What cannot be read is named, and nothing is done with it.
    pub(crate) async fn open(&self) {
        let opened = async {
            let Some(member) = self.store.member().await? else {
                return Ok(None);
            };
            let roster = self.store.roster().await?;
            let roster = roster.filter(|it| it.cluster.record.id == member.cluster);
            let lost = "cluster-nodes.json is missing";
            let roster = roster.ok_or_else(|| Problem::new(Code::ClusterState, lost));
            let state = MemberState::new(member, roster?, &self.clock)?;
            Ok::<_, Problem>(Some(Rc::new(state)))
        };
        match opened.await {
            Ok(state) => self.becomes(state),
            Err(problem) => {
                tracing::error!(code = %problem.code, "the cluster: {problem}");
                *self.damage.borrow_mut() = Some(problem);
            }
        }
    }

    /// It is this in its cluster from now on, or in none.
    pub(crate) fn becomes(&self, state: Option<Rc<MemberState>>) {
        if state.is_none() {
            self.streams.end(|_| true);
        }
        *self.state.borrow_mut() = state;
        self.says_who_is_there();
    }

    /// Whoever waits hears who is in the cluster by now; streams of others end.
    fn says_who_is_there(&self) {
        let state = self.state();
        let present = state.as_ref().and_then(|it| {
            let (roster, own) = (it.roster.borrow(), it.member.slot);
            self.streams.follow(&roster, own);
            Present::of(&roster, own, &self.run)
        });
        self.present.send_if_modified(|it| {
            let is_new = *it != present;
            *it = present;
            is_new
        });
    }

    /// By this node's clock.
    pub(crate) fn now(&self) -> WallClock {
        let now = self.clock.current_time().map_or(0, |it| it.as_secs());
        WallClock(now.saturating_mul(1_000_000_000))
    }

    /// What this node says to node `to`.
    pub(crate) fn hello(&self, to: u8) -> Hello {
        Hello {
            to,
            version: self.own.version.clone(),
            run: self.run.clone(),
            clock: seconds(self.now()),
        }
    }

    /// Node `slot`, which has shown its certificate, has said this.
    ///
    /// # Errors
    /// It runs twice, and another one of it has begun later.
    pub(crate) fn hears(&self, hello: &Hello, slot: u8) -> Result<(), Refusal> {
        let state = self.state();
        let name = state.and_then(|it| {
            let roster = it.roster.borrow();
            roster
                .nodes
                .get(&slot)
                .map(|it| it.record.profile.name.clone())
        });
        let mut all = self.runs.borrow_mut();
        let runs = all.entry(slot).or_default();
        runs.hears(&hello.run, (slot, &name.unwrap_or_default()))
    }

    /// Whoever listens for other nodes ends soon. It gives the number of one who begins now.
    pub(crate) fn ends_listening(&self) -> u64 {
        self.listening.set(self.listening.get() + 1);
        self.listening.get()
    }

    /// Whether one who began with this number goes on.
    pub(crate) fn listens(&self, begun: u64) -> bool {
        self.listening.get() == begun
    }

    /// Whether there may be one more line of what others do in the log: nobody may fill it.
    pub(crate) fn may_log(&self) -> bool {
        let now = self.core.now();
        let is_soon = |last| now.since(last) < LOG_PAUSE;
        let may = !self.logged.get().is_some_and(is_soon);
        if may {
            self.logged.set(Some(now));
        }
        may
    }

    pub(crate) fn state(&self) -> Option<Rc<MemberState>> {
        self.state.borrow().clone()
    }

    /// Whether this is what the node is: it may have left meanwhile.
    pub(crate) fn is_still(&self, state: &MemberState) -> bool {
        self.state().is_some_and(|it| std::ptr::eq(&*it, state))
    }

    /// What it is in its cluster.
    ///
    /// # Errors
    /// It is in none.
    pub(crate) fn member(&self) -> Result<Rc<MemberState>, Problem> {
        let none = || Problem::new(Code::ClusterNone, "this node is in no cluster");
        self.state().ok_or_else(none)
    }

    /// The arbiter, which is opened when it is asked first: files of certificates may come later.
    pub(crate) async fn register(&self) -> Result<Register, Problem> {
        let mut register = self.register.lock().await;
        if let Some(register) = &*register {
            return Ok(register.clone());
        }
        if let Some(arbiter) = &self.given {
            let opened = Register::new(&self.core, Rc::clone(arbiter));
            *register = Some(opened.clone());
            return Ok(opened);
        }
        let arbiter = EtcdArbiter::open(&self.core, &self.settings.etcd()).await;
        let arbiter = arbiter.map_err(|trouble| {
            Problem::new(Code::ClusterArbiter, &trouble.cause).hint(&trouble.next_step)
        })?;
        if let Some(state) = self.state() {
            arbiter.knows(state.roster.borrow().newest());
        }
        let arbiter: Rc<dyn Arbiter> = Rc::new(arbiter);
        let opened = Register::new(&self.core, arbiter);
        *register = Some(opened.clone());
        Ok(opened)
    }

    /// What was heard of the cluster and its etcd is of no matter once this node has left.
    pub(crate) async fn forget_others(&self) {
        self.ends_listening();
        *self.register.lock().await = None;
        self.seen.borrow_mut().clear();
        self.runs.borrow_mut().clear();
        self.reached.borrow_mut().clear();
        *self.trouble.borrow_mut() = None;
        *self.not_renewed.borrow_mut() = None;
    }

    /// This one is asked in place of etcd.
    #[cfg(test)]
    pub(crate) async fn asks(&self, register: Register) {
        *self.register.lock().await = Some(register);
    }

    /// What this node says of itself.
    pub(crate) async fn candidate(&self) -> Candidate {
        let facts = (self.facts)().await;
        let own = self.own.clone();
        let mut rings = facts.rings;
        rings.sort_unstable();
        rings.dedup();
        let mut naas: Vec<String> = facts.naas.iter().map(|it| plain(it)).collect();
        naas.truncate(LUNS_MAX);
        Candidate {
            profile: Profile {
                id: own.id,
                name: own.name,
                addresses: self.settings.listen.clone(),
                version: own.version,
                protocols: PROTOCOLS,
                levels: LEVELS,
                rings,
            },
            naas,
            clock: seconds(self.now()),
        }
    }

    /// The identities of LUNs that a node which joins must not have.
    pub(crate) async fn taken(&self, register: &Register) -> Result<BTreeSet<String>, Refusal> {
        let mut all = register.mirrored().await?;
        all.extend(self.candidate().await.naas);
        Ok(all)
    }

    /// Takes over what is known of the cluster by now, for good.
    pub(crate) async fn keep(&self, state: &MemberState, roster: Roster) -> Result<(), Problem> {
        if self.is_still(state) {
            self.store.keep_roster(&roster).await?;
        }
        *state.roster.borrow_mut() = roster;
        self.says_who_is_there();
        Ok(())
    }

    /// Asks the arbiter what has changed, and keeps it.
    pub(crate) async fn follow(&self, state: &MemberState) -> Result<(), Problem> {
        let register = self.register().await?;
        let cluster = register.cluster().await.map_err(|it| it.problem())?;
        let cluster = cluster.ok_or_else(|| crate::register::no_cluster().problem())?;
        let mut roster = state.roster.borrow().clone();
        is_same(&roster.cluster, &cluster)?;
        can_take_part(&cluster.record, &self.own.version).map_err(|it| it.problem())?;
        let is_new = cluster != roster.cluster;
        roster.cluster = cluster;
        let changed = register.follow(&mut roster).await;
        if changed.map_err(|it| it.problem())? || is_new {
            self.keep(state, roster).await?;
        }
        Ok(())
    }
}

/// The arbiter has the cluster that is known, and not an older record of it.
fn is_same<T>(known: &Known<T>, is: &Known<T>) -> Result<(), Problem>
where
    T: AsRef<str>,
{
    if known.record.as_ref() == is.record.as_ref() && Revision(is.revision) >= known.version() {
        return Ok(());
    }
    let detail = format!(
        "etcd has cluster {} in version {} below this prefix, and this node is of cluster {}, whose version {} is known",
        is.record.as_ref(),
        is.revision,
        known.record.as_ref(),
        known.revision
    );
    Err(Problem::new(Code::ClusterArbiter, detail).hint(
        "nothing of it is believed: check `cluster.etcd` and `cluster.prefix` of node.toml; if etcd was restored from an \
         old backup, restore it from the newest one",
    ))
}

/// This version is able to do what the cluster's nodes do.
fn can_take_part(cluster: &ClusterRecord, version: &str) -> Result<(), Refusal> {
    let [from, to] = LEVELS;
    if (from..=to).contains(&cluster.level) {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalKind::Version,
        format!(
            "the cluster has level {}, and version {version} of this node has levels {from} to {to}",
            cluster.level
        ),
        "install the version of Causeway that the other nodes have",
    ))
}

/// The digits of an identity.
fn plain(naa: &str) -> String {
    let digits = naa.strip_prefix("naa.").unwrap_or(naa);
    digits.to_ascii_lowercase()
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_cluster_whose_level_this_version_does_not_have_is_refused() {
        let at = |level| ClusterRecord {
            level,
            ..fixture::cluster_record()
        };
        assert_eq!(can_take_part(&at(LEVELS[1]), "0.1.0"), Ok(()));
        for level in [LEVELS[0] - 1, LEVELS[1] + 1] {
            let said = can_take_part(&at(level), "0.1.0").unwrap_err();
            assert_eq!(said.kind, RefusalKind::Version);
            let both = format!("has level {level}, and version 0.1.0");
            assert!(said.cause.contains(&both), "{said}");
        }
    }

    #[test]
    fn an_arbiter_with_another_cluster_or_an_older_record_is_not_believed() {
        let known = |revision, id: &str| Known {
            revision,
            record: ClusterRecord {
                id: id.to_owned(),
                ..fixture::cluster_record()
            },
        };
        let ours = known(5, "a");
        assert!(is_same(&ours, &known(5, "a")).is_ok());
        assert!(is_same(&ours, &known(9, "a")).is_ok());
        for other in [known(4, "a"), known(9, "b")] {
            let said = is_same(&ours, &other).unwrap_err();
            assert_eq!(said.code, Code::ClusterArbiter);
        }
        assert_eq!(plain("naa.6001405ABC"), plain("6001405abc"));
    }
}
