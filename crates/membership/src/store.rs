//! What a node keeps of its cluster below its state directory. Each file is replaced whole; those
//! with keys are readable by the daemon's user only, as all files of the directory are.

use crate::authority::{Authority, SecretKey};
use crate::records::{ClusterRecord, Der, NodeRecord};
use crate::roster::Roster;
use env::durable::{read_file, remove_file, replace_file};
use env::{CoreHandle, Files};
use manifest::code::Code;
use manifest::document;
use manifest::problem::Problem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Which node of which cluster this one is, with the authority's key and its own.
pub const MEMBER_FILE: &str = "cluster.json";

/// What a join or an `init` that was cut off goes on with, with a key.
pub const PENDING_FILE: &str = "cluster-pending.json";

/// The nodes as they were known last.
pub const NODES_FILE: &str = "cluster-nodes.json";

/// What is remembered of etcd.
pub const ETCD_FILE: &str = "cluster-etcd.json";

/// Where commands reach the daemon.
pub const SOCKET: &str = "cluster.sock";

/// Files that only the daemon's user may read.
pub const SECRET_FILES: [&str; 2] = [MEMBER_FILE, PENDING_FILE];

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Which node of which cluster this one is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The cluster's identifier.
    pub cluster: String,
    /// What people call the cluster.
    pub name: String,
    /// This node's number.
    pub slot: u8,
    /// The certificate of the authority.
    pub authority: Der,
    /// The key of the authority (PEM).
    pub authority_key: String,
    /// This node's certificate.
    pub certificate: Der,
    /// Its key (PEM).
    pub key: String,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Member");
        shown
            .field("cluster", &self.cluster)
            .field("slot", &self.slot);
        shown.finish_non_exhaustive()
    }
}

impl Member {
    /// The authority and this node's key, as they are used.
    ///
    /// # Errors
    /// The keys cannot be read.
    pub fn keys(&self) -> Result<(Authority, SecretKey), Problem> {
        let read = |pem: &str| {
            SecretKey::from_pem(pem).map_err(|_| {
                let detail = format!("{MEMBER_FILE}: a key in it cannot be read");
                Problem::new(Code::ClusterState, detail)
            })
        };
        let authority = Authority::new(&self.cluster, read(&self.authority_key)?);
        Ok((authority, read(&self.key)?))
    }
}

/// What was begun.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "begun", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pending {
    /// A cluster is made, with these records.
    Init {
        /// What this node becomes.
        member: Box<Member>,
        /// The cluster's record.
        cluster: Box<ClusterRecord>,
        /// This node's.
        node: Box<NodeRecord>,
    },
    /// A cluster is joined.
    Join {
        /// The token's identifier.
        token: String,
        /// The key that a certificate is wanted for (PEM).
        key: String,
    },
}

/// The files.
#[derive(Clone)]
pub struct Store {
    files: Rc<dyn Files>,
    dir: PathBuf,
}

impl Store {
    /// Of this state directory.
    #[must_use]
    pub fn new(core: &CoreHandle, dir: &Path) -> Self {
        Self {
            files: core.files(),
            dir: dir.to_owned(),
        }
    }

    /// A file of it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        kind: &str,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let path = self.path(name);
        let text = match read_file(&*self.files, &path, FILE_BYTES_MAX).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
            Ok(text) => text,
        };
        let read = document::parse(kind, &text);
        read.map(Some).map_err(|error| failed(&path, &error))
    }

    async fn write(&self, kind: &str, name: &str, what: &impl Serialize) -> Result<(), Problem> {
        let path = self.path(name);
        let body = serde_json::to_vec(what).map_err(|error| failed(&path, &error))?;
        let text = document::write(kind, &body);
        let stored = replace_file(&*self.files, &path, &text).await;
        stored.map_err(|error| failed(&path, &error))
    }

    async fn remove(&self, name: &str) -> Result<(), Problem> {
        let path = self.path(name);
        let removed = remove_file(&*self.files, &path).await;
        removed.map_err(|error| failed(&path, &error))
    }

    /// Which node of which cluster this one is; none: of none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn member(&self) -> Result<Option<Member>, Problem> {
        self.read("cluster", MEMBER_FILE).await
    }

    /// This node is one of a cluster from now on, and nothing is begun any more.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn keep_member(&self, member: &Member) -> Result<(), Problem> {
        self.write("cluster", MEMBER_FILE, member).await?;
        self.remove(PENDING_FILE).await
    }

    /// This node is of no cluster from now on.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn forget(&self) -> Result<(), Problem> {
        self.remove(MEMBER_FILE).await?;
        self.remove(NODES_FILE).await?;
        self.remove(ETCD_FILE).await?;
        self.remove(PENDING_FILE).await
    }

    /// What was begun and has not come to its end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn pending(&self) -> Result<Option<Pending>, Problem> {
        self.read("cluster-pending", PENDING_FILE).await
    }

    /// Something begins.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn begin(&self, pending: &Pending) -> Result<(), Problem> {
        self.write("cluster-pending", PENDING_FILE, pending).await
    }

    /// The nodes as they were known last.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn roster(&self) -> Result<Option<Roster>, Problem> {
        self.read("cluster-nodes", NODES_FILE).await
    }

    /// Keeps them.
    ///
    /// # Errors
    /// They cannot be stored.
    pub async fn keep_roster(&self, roster: &Roster) -> Result<(), Problem> {
        self.write("cluster-nodes", NODES_FILE, roster).await
    }
}

fn failed(path: &Path, why: &dyn fmt::Display) -> Problem {
    Problem::new(Code::ClusterState, format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;
    use env::sim::{World, WorldConfig};
    use std::time::Duration;

    fn member() -> Member {
        Member {
            cluster: "c".repeat(32),
            name: "home".to_owned(),
            slot: 3,
            authority: Der(vec![1]),
            authority_key: "AUTHORITY".to_owned(),
            certificate: Der(vec![2]),
            key: "KEY".to_owned(),
        }
    }

    #[test]
    fn what_is_kept_comes_back_and_a_damaged_file_is_said() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let core = node.core(0);
        let work = async move {
            let dir = Path::new("/state");
            env::durable::make_dir(&*core.files(), dir).await.unwrap();
            let store = Store::new(&core, dir);
            assert_eq!(store.member().await.unwrap(), None);
            let pending = Pending::Join {
                token: "t".to_owned(),
                key: "KEY".to_owned(),
            };
            store.begin(&pending).await.unwrap();
            assert!(store.pending().await.unwrap() == Some(pending));
            store.keep_member(&member()).await.unwrap();
            assert_eq!(store.member().await.unwrap(), Some(member()));
            assert!(store.pending().await.unwrap().is_none(), "it has ended");
            let path = store.path(MEMBER_FILE);
            let mut text = read_file(&*core.files(), &path, 1 << 20).await.unwrap();
            *text.last_mut().unwrap() ^= 1;
            replace_file(&*core.files(), &path, &text).await.unwrap();
            let said = store.member().await.unwrap_err();
            assert!(said.detail.contains("cluster.json: the checksum"), "{said}");
            store.forget().await.unwrap();
            assert_eq!(store.member().await.unwrap(), None);
        };
        world
            .block_on(&node, Duration::from_secs(60), work)
            .unwrap();
    }

    #[test]
    fn no_key_is_shown() {
        let shown = format!("{:?} {:?}", member(), fixture::cluster_record());
        assert!(
            !shown.contains("KEY") && !shown.contains("AUTHORITY"),
            "{shown}"
        );
    }
}
