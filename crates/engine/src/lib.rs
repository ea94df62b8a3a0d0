//! What the control side asks of the data plane, and what it answers.
//!
//! **Contract.** One change at a time: `prepare`, then either `abandon` or, once the change is
//! stored, `adopt`. What `prepare` did is invisible to hosts; `adopt` answers when every core has
//! the change. A LUN whose backing is missing is no error anywhere: it is there, offline, with the
//! reason.

mod drain;
mod mirror;
mod shared;

pub use drain::{DrainView, DrainedLun};
pub use mirror::{MirrorAsked, MirrorOp, MirrorRequest, MirrorView};
pub use shared::{SharedChange, SharedState, shared_changes};

use env::LocalFuture;
use manifest::code::Code;
use manifest::config::Config;
use manifest::facts::{
    CoreFacts, DigestFacts, LoginFacts, LunCondition, LunFacts, MoveFacts, NodeNic, PoolFacts,
    PortalFacts, RefusalFacts, SessionFacts,
};
use manifest::journal::{JournalFacts, JournalOutcome, JournalRequest};
use manifest::objects::{Lun, Objects};
use manifest::orphan::{LunRecord, Orphan};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use manifest::pulse::{Asked, Ended, Pulse};
use manifest::scrub::{ScrubFacts, ScrubOp};
use manifest::served::Unserved;
use manifest::size::Size;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The data plane of a node, driven from core 0.
pub trait Engine {
    /// Opens the LUNs, publishes targets, hosts and grants on every core, and listens.
    ///
    /// # Errors
    /// A portal or a pool cannot be had: the daemon does not start.
    fn start(&self, objects: Rc<Objects>) -> LocalFuture<Result<(), Problem>>;

    /// Whether a change would be taken as things are now; nothing is made.
    ///
    /// # Errors
    /// What stands against it; `prepare` says the same.
    fn allows(&self, changes: Rc<LunChanges>) -> LocalFuture<Result<(), Problem>>;

    /// Does what a change needs and may fail at: makes storage, opens LUNs, grows. Undoes it where
    /// it fails.
    ///
    /// # Errors
    /// The backing cannot be made, opened or grown; nothing is changed then.
    fn prepare(&self, changes: Rc<LunChanges>) -> LocalFuture<Result<(), Problem>>;

    /// Undoes what `prepare` did.
    fn abandon(&self, changes: Rc<LunChanges>) -> LocalFuture<()>;

    /// Brings a stored change into force on every core, takes retired LUNs out of service, shrinks,
    /// and destroys what is purged.
    ///
    /// # Errors
    /// Part of it could not be done; the rest is.
    fn adopt(
        &self,
        objects: Rc<Objects>,
        changes: Rc<LunChanges>,
    ) -> LocalFuture<Result<(), Problem>>;

    /// Settings that come into force while hosts work are these from now on; of `config` only these
    /// count. Sessions stay. Answers when every core has them.
    fn configure(&self, config: Rc<Config>) -> LocalFuture<()> {
        let _ = config;
        Box::pin(std::future::ready(()))
    }

    /// Takes no more work, answers what is in flight, flushes, and ends the sessions.
    fn stop(&self) -> LocalFuture<()>;

    /// The LUNs in service, by NAA identifier.
    fn luns(&self) -> LocalFuture<BTreeMap<String, LunFacts>>;

    /// The same of some LUNs, by their NAA identifiers; what the others do costs nothing.
    fn luns_of(&self, only: BTreeSet<String>) -> LocalFuture<BTreeMap<String, LunFacts>>;

    /// Whether the LUNs in service are well, by NAA identifier. Nothing is counted for it, so it is
    /// a small part of the work of [`Engine::luns`].
    fn conditions(&self) -> BTreeMap<String, LunCondition>;

    /// What somebody needs who samples every second.
    fn pulse(&self, asked: Asked) -> LocalFuture<Pulse>;

    /// Sessions that ended since that place; 0, or what was named the last time.
    fn ended(&self, since: u64) -> Ended;

    /// Starts or stops the scrub of a LUN in service, by its NAA identifier, and returns how it is
    /// then.
    ///
    /// # Errors
    /// The LUN is offline, or was never scrubbed.
    fn scrub(&self, naa: &str, op: ScrubOp) -> LocalFuture<Result<ScrubFacts, Problem>>;

    /// The scrub of each LUN in service that has one, by NAA identifier: it runs, or was the last.
    fn scrubs(&self) -> BTreeMap<String, ScrubFacts> {
        BTreeMap::new()
    }

    /// Storage that is being made for a LUN, by its NAA identifier: bytes that are done, and bytes
    /// that there are to do.
    fn progress(&self, naa: &str) -> Option<(u64, u64)> {
        let _ = naa;
        None
    }

    /// Has that stop, so that its change fails and is undone; `false` where nothing is made.
    fn stop_work(&self, naa: &str) -> bool {
        let _ = naa;
        false
    }

    /// The sessions that are logged in.
    fn sessions(&self) -> LocalFuture<Vec<SessionFacts>>;

    /// Ends a session; `false` where there is none of this number.
    fn drop_session(&self, id: u64) -> LocalFuture<bool>;

    /// The last logins that were refused, newest first.
    fn refusals(&self) -> LocalFuture<Vec<RefusalFacts>>;

    /// Where it listens.
    fn portals(&self) -> LocalFuture<Vec<PortalFacts>>;

    /// Its NICs that have an address, as they were read last.
    fn nics(&self) -> LocalFuture<Vec<NodeNic>>;

    /// What the cores do, by number.
    fn cores(&self) -> LocalFuture<Vec<CoreFacts>>;

    /// Sessions that went from core to core since the start.
    fn moves(&self) -> MoveFacts;

    /// What did not match its digest since the daemon started.
    fn digest_errors(&self) -> DigestFacts;

    /// How the pools' journals are, by pool; of those that have one.
    fn journals(&self) -> LocalFuture<BTreeMap<String, JournalFacts>>;

    /// Opens a pool's journal anew, or gives it up.
    ///
    /// # Errors
    /// It is in use, what was confirmed is not the pool's name, or it cannot be opened or made.
    fn journal(
        &self,
        pool: &str,
        request: JournalRequest,
    ) -> LocalFuture<Result<JournalOutcome, Problem>>;

    /// Gives the LUNs with copies that this node owns to nodes that have all of them, and answers
    /// what became of each; `dry_run`: only says what would. Hosts are served there from then on.
    fn drain(&self, dry_run: bool) -> LocalFuture<Vec<DrainedLun>> {
        let _ = dry_run;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Changes the copies of a LUN, or says what that would do.
    ///
    /// # Errors
    /// Nothing was changed, except with [`Code::PartlyDone`](manifest::code::Code::PartlyDone).
    fn mirror(&self, asked: MirrorAsked) -> LocalFuture<Result<MirrorView, Problem>> {
        let detail = format!("LUN {} has no copies on other nodes", asked.name);
        let refused = Problem::new(Code::ClusterNone, detail);
        Box::pin(std::future::ready(Err(refused)))
    }

    /// What the nodes of a LUN with copies have in common is to change: answers when they have
    /// agreed, before anything is done here.
    ///
    /// # Errors
    /// They do not, or cannot be asked: nothing is to be done then.
    fn agree(&self, shared: Vec<SharedChange>) -> LocalFuture<Result<(), Problem>> {
        let _ = shared;
        Box::pin(std::future::ready(Ok(())))
    }

    /// LUNs in the pools that no object names; `fresh`: looked for now, else as they were seen
    /// last.
    fn orphans(&self, fresh: bool) -> LocalFuture<Vec<Orphan>> {
        let _ = fresh;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// A pool that was away is there again, at the start or since this was asked last.
    fn pool_returned(&self) -> LocalFuture<()> {
        Box::pin(std::future::pending())
    }

    /// The newest generation of this node's objects that a pool has seen, and the pool.
    fn newest_saved(&self, node_id: &str) -> LocalFuture<Option<(u64, String)>> {
        let _ = node_id;
        Box::pin(std::future::ready(None))
    }

    /// Objects of this generation are stored: the pools record it.
    fn saved(&self, node_id: &str, generation: u64) -> LocalFuture<()> {
        let _ = (node_id, generation);
        Box::pin(std::future::ready(()))
    }

    /// Bytes of memory that the node may use, where that is known.
    fn memory(&self) -> LocalFuture<Option<u64>> {
        Box::pin(std::future::ready(None))
    }

    /// The space of the pools.
    fn pools(&self) -> LocalFuture<Vec<PoolFacts>>;

    /// A pool has seen newer objects than those that are in force: nothing is given back because
    /// these do not name it.
    fn is_older(&self) -> LocalFuture<()> {
        Box::pin(std::future::ready(()))
    }

    /// What stands in the pools of LUNs that the objects name, by NAA identifier: what each was
    /// when it was last changed.
    fn records(&self) -> LocalFuture<BTreeMap<String, LunRecord>> {
        Box::pin(std::future::ready(BTreeMap::new()))
    }

    /// LUNs that their pools have seen larger than they are, by NAA identifier, and how large. What
    /// is beyond is not served and stays.
    fn seen_larger(&self) -> BTreeMap<String, Size> {
        BTreeMap::new()
    }

    /// What these objects name and hosts do not find.
    fn unserved(&self, objects: &Objects) -> Vec<Unserved> {
        let _ = objects;
        Vec::new()
    }

    /// The name of an initiator of the node's own, which nobody else knows: its logins are refused
    /// where a target is, and not counted or listed.
    fn probe_name(&self) -> Option<String> {
        None
    }

    /// What the administrator should know, such as a driver that is not available.
    fn notices(&self) -> Vec<String>;

    /// What the administrator should know of a LUN in service, by its NAA identifier.
    fn lun_notices(&self, naa: &str) -> Vec<String>;

    /// The members of its pool on which a part of a LUN lies, by number.
    fn lun_members(&self, lun: &Lun) -> Vec<u16> {
        let _ = lun;
        Vec::new()
    }

    /// Logins since the start; a result and code stand once.
    fn logins(&self) -> Vec<LoginFacts>;
}
