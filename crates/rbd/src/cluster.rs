//! One connection to one pool of a cluster, and what can be done with its images as a whole.
//!
//! **Contract.** Nothing here holds up a core: every call runs on a thread. Questions are answered
//! or given up within the cluster's patience. Changes (create, adopt, remove, break a lock) take as
//! long as they take, because one that was given up may still be made.

use crate::error::{ErrorKind, Holder, RbdError, blocklisted, of_call, unreachable};
use crate::ffi::{Api, ConnectError, Connection, EXCLUSIVE_LOCK, Errno, Facts, ImageHandle, Step};
use crate::health::{self, Health};
use crate::identity::Identity;
use env::real::Threads;
use env::{CoreHandle, in_time};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::ByteCount;

/// Threads that may hang in calls of one connection.
const THREADS_MAX: usize = 64;

/// Which pool of which cluster, and who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterSpec {
    /// The pool's name.
    pub pool: String,
    /// Ceph's configuration file; `None`: the one that Ceph itself finds.
    pub conf: Option<PathBuf>,
    /// The user's name without `client.`.
    pub user: String,
    /// How long a cluster that does not answer is waited for.
    pub patience: Duration,
}

/// A connection to a pool. Images that are open keep it.
pub struct Cluster {
    spec: ClusterSpec,
    connection: Arc<Connection>,
    fsid: String,
    shut_out: AtomicBool,
}

/// What an image is, as far as it reports without being opened for I/O.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The cluster's own id for it, which a renaming leaves.
    pub id: String,
    /// Bytes of the image as the cluster has it.
    pub size: ByteCount,
    /// Bytes of one of its objects.
    pub object: ByteCount,
    /// It has the exclusive lock, without which it cannot be a volume.
    pub has_lock: bool,
    /// What its metadata says about the LUN that it belongs to.
    pub identity: Identity,
}

impl Description {
    fn read(image: &ImageHandle) -> Result<Self, Errno> {
        let Facts {
            id,
            size,
            object_size,
            features,
            ..
        } = image.facts()?;
        Ok(Self {
            id,
            size: ByteCount(size),
            object: ByteCount(object_size),
            has_lock: features & EXCLUSIVE_LOCK != 0,
            identity: Identity::read(image)?,
        })
    }
}

/// What is in force whatever the configuration file says.
fn settings(patience: Duration) -> Vec<(&'static str, String)> {
    let seconds = patience.as_secs().max(1).to_string();
    let of = |name, value: &str| (name, value.to_owned());
    vec![
        of("client_mount_timeout", &seconds),
        of("rados_mon_op_timeout", &seconds),
        // A write that was given up may still be made, after a newer one: writes wait, whoever
        // waits for them decides.
        of("rados_osd_op_timeout", "0"),
        // What an OSD has not committed is not answered, and two that serve one image see one
        // content.
        of("rbd_cache", "false"),
        of("rbd_non_blocking_aio", "true"),
        // A discard of a block makes it zeroes.
        of("rbd_skip_partial_discard", "false"),
        of("rbd_discard_granularity_bytes", "4096"),
        // Who loses a lock must not write any more.
        of("rbd_blocklist_on_break_lock", "true"),
        // Standard error is the daemon's log.
        of("log_to_stderr", "false"),
        of("err_to_stderr", "false"),
    ]
}

impl Cluster {
    /// Connects.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryMissing`], [`ErrorKind::Configuration`], [`ErrorKind::Unreachable`],
    /// [`ErrorKind::Denied`], [`ErrorKind::NoPool`].
    pub async fn connect(core: &CoreHandle, spec: ClusterSpec) -> Result<Arc<Self>, RbdError> {
        let threads = Threads::new("rbd", THREADS_MAX);
        let (asked, of_connection) = (spec.clone(), threads.clone());
        let connecting = threads.call(move || open(&asked, of_connection));
        // The library gives up by itself, each step for itself; this is for one that does not.
        let opened = in_time(core, spec.patience * 3 + Duration::from_secs(1), connecting).await;
        let Some(opened) = opened else {
            let what = format!("pool {}", spec.pool);
            return Err(unreachable("connecting to", &what, spec.patience.as_secs()));
        };
        let (connection, fsid) = opened?;
        Ok(Arc::new(Self {
            spec,
            connection: Arc::new(connection),
            fsid,
            shut_out: AtomicBool::new(false),
        }))
    }

    /// What it was connected with.
    #[must_use]
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The cluster's id.
    #[must_use]
    pub fn fsid(&self) -> &str {
        &self.fsid
    }

    /// This connection as others see it when it holds a lock: `client.4123`.
    #[must_use]
    pub fn client(&self) -> String {
        format!("client.{}", self.connection.instance())
    }

    /// This connection was shut out of the cluster: nothing that goes over it succeeds any more,
    /// and only a new one helps.
    #[must_use]
    pub fn is_shut_out(&self) -> bool {
        self.shut_out.load(Ordering::Acquire)
    }

    pub(crate) fn was_shut_out(&self) {
        self.shut_out.store(true, Ordering::Release);
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Names an image in messages.
    pub(crate) fn name_of(&self, image: &str) -> String {
        format!("image {image} of pool {}", self.spec.pool)
    }

    /// What a call said, and that this connection was shut out where it said that.
    pub(crate) fn error(&self, doing: &str, what: &str, errno: Errno) -> RbdError {
        if errno.0 == libc::ESHUTDOWN {
            self.was_shut_out();
        }
        of_call(doing, what, errno)
    }

    /// A question: answered, or given up in time.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        core: &CoreHandle,
        doing: &str,
        what: &str,
        question: impl FnOnce(&Arc<Connection>) -> Result<T, Errno> + Send + 'static,
    ) -> Result<T, RbdError> {
        if self.is_shut_out() {
            return Err(blocklisted(what));
        }
        let connection = Arc::clone(&self.connection);
        let answer = self.connection.threads.call(move || question(&connection));
        match in_time(core, self.spec.patience, answer).await {
            Some(answer) => answer.map_err(|errno| self.error(doing, what, errno)),
            None => Err(unreachable(doing, what, self.spec.patience.as_secs())),
        }
    }

    /// A change: waited for.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        doing: &str,
        what: &str,
        change: impl FnOnce(&Arc<Connection>) -> Result<T, Errno> + Send + 'static,
    ) -> Result<T, RbdError> {
        if self.is_shut_out() {
            return Err(blocklisted(what));
        }
        let connection = Arc::clone(&self.connection);
        let made = self.connection.threads.call(move || change(&connection));
        made.await.map_err(|errno| self.error(doing, what, errno))
    }

    /// How the cluster is, and how much room its pool has.
    ///
    /// # Errors
    /// It does not answer, or says what no monitor says.
    pub async fn health(&self, core: &CoreHandle) -> Result<Health, RbdError> {
        let what = format!("the cluster of pool {}", self.spec.pool);
        let doing = "asking";
        let asked = self.ask(core, doing, &what, |connection| {
            let health = connection.ask_monitors(health::HEALTH)?;
            let space = connection.ask_monitors(health::SPACE)?;
            Ok((health, space, connection.ask_monitors(health::POOLS)?))
        });
        let (health, space, pools) = asked.await?;
        let read = health::read(&health, &space, &pools, &self.spec.pool);
        read.ok_or_else(|| of_call(doing, &what, Errno(libc::EBADMSG)))
    }

    /// Names of the pool's images.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn images(&self, core: &CoreHandle) -> Result<Vec<String>, RbdError> {
        let what = format!("images of pool {}", self.spec.pool);
        let asked = self.ask(core, "listing", &what, |connection| connection.images());
        asked.await
    }

    /// What an image is.
    ///
    /// # Errors
    /// [`ErrorKind::NoImage`], or what else the cluster says.
    pub async fn describe(&self, core: &CoreHandle, image: &str) -> Result<Description, RbdError> {
        let name = image.to_owned();
        let question = move |connection: &Arc<Connection>| {
            Description::read(&ImageHandle::open_read_only(connection, &name)?)
        };
        let what = self.name_of(image);
        self.ask(core, "reading", &what, question).await
    }

    /// Makes a thin image of zeroes that says whose it is. On an error there is none, unless the
    /// cluster went away in between.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`], [`ErrorKind::NoSpace`], or what else the cluster says.
    pub async fn create(
        &self,
        image: &str,
        size: ByteCount,
        identity: Identity,
    ) -> Result<(), RbdError> {
        let name = image.to_owned();
        let change = move |connection: &Arc<Connection>| {
            connection.create(&name, size.0)?;
            let written = ImageHandle::open_unwatched(connection, &name).and_then(|made| {
                let written = identity.write(&made);
                made.close_here();
                written
            });
            if written.is_err() {
                // The first error is the one to report; what could not be removed belongs to
                // nobody, and can be.
                let _left = connection.remove(&name);
            }
            written
        };
        self.change("making", &self.name_of(image), change).await
    }

    /// Makes an existing image say whose it is. One that says so already is left as it is.
    ///
    /// # Errors
    /// [`ErrorKind::NoImage`]; [`ErrorKind::Unsuitable`] where it cannot be a volume;
    /// [`ErrorKind::Taken`] where it is somebody else's; or what else the cluster says.
    pub async fn adopt(
        &self,
        core: &CoreHandle,
        image: &str,
        identity: Identity,
    ) -> Result<Description, RbdError> {
        let found = self.describe(core, image).await?;
        let what = self.name_of(image);
        if !found.has_lock {
            return Err(without_lock(&what, &self.spec.pool, image));
        }
        if !found.identity.is_empty() && found.identity != identity {
            return Err(RbdError::new(
                ErrorKind::Taken,
                format!("{what} belongs to another LUN: {:?}", found.identity.0),
                "delete that LUN, or take its keys off the image (rbd image-meta rm) when it is gone for good",
            ));
        }
        let name = image.to_owned();
        let written = identity.clone();
        let change = move |connection: &Arc<Connection>| {
            let image = ImageHandle::open_unwatched(connection, &name)?;
            let result = written.write(&image);
            image.close_here();
            result
        };
        self.change("adopting", &what, change).await?;
        Ok(Description { identity, ..found })
    }

    /// Makes an image say this of whose it is, and nothing else of ours; it may be open.
    ///
    /// # Errors
    /// [`ErrorKind::NoImage`], or what else the cluster says.
    pub async fn set_identity(&self, image: &str, identity: Identity) -> Result<(), RbdError> {
        let name = image.to_owned();
        let change = move |connection: &Arc<Connection>| {
            let image = ImageHandle::open_unwatched(connection, &name)?;
            let written = identity.write(&image);
            image.close_here();
            written
        };
        self.change("naming", &self.name_of(image), change).await
    }

    /// Removes an image for ever. It takes time for each object that it has.
    ///
    /// # Errors
    /// [`ErrorKind::NoImage`]; [`ErrorKind::InUse`] where somebody has it open or it has snapshots;
    /// or what else the cluster says.
    pub async fn remove(&self, image: &str) -> Result<(), RbdError> {
        let name = image.to_owned();
        let change = move |connection: &Arc<Connection>| connection.remove(&name);
        self.change("removing", &self.name_of(image), change).await
    }

    /// Takes an image's exclusive lock from `holder`, whose whole connection is shut out of the
    /// cluster before this returns: what it has in flight is refused by the OSDs from then on, and
    /// nothing that it sends later is done.
    ///
    /// Whoever calls this takes over: with several nodes, the one that has won the cluster's next
    /// epoch, and nobody else.
    ///
    /// # Errors
    /// [`ErrorKind::NoImage`], [`ErrorKind::InUse`] where somebody else has the lock now, or what
    /// else the cluster says.
    pub async fn break_lock(&self, image: &str, holder: &Holder) -> Result<(), RbdError> {
        let (name, owner) = (image.to_owned(), holder.address.clone());
        let change = move |connection: &Arc<Connection>| {
            let image = ImageHandle::open_unwatched(connection, &name)?;
            let broken = image.break_lock(&owner);
            image.close_here();
            broken
        };
        let what = self.name_of(image);
        self.change("taking the lock of", &what, change).await
    }
}

/// An image that two may write.
pub(crate) fn without_lock(what: &str, pool: &str, image: &str) -> RbdError {
    RbdError::new(
        ErrorKind::Unsuitable,
        format!("{what} has no exclusive lock, so that nothing keeps two from writing it"),
        format!("rbd feature enable {pool}/{image} exclusive-lock object-map fast-diff"),
    )
}

fn open(spec: &ClusterSpec, threads: Threads) -> Result<(Connection, String), RbdError> {
    let api = Api::get()?;
    let conf = match &spec.conf {
        None => None,
        Some(path) => match path.to_str() {
            Some(path) => Some(path),
            None => return Err(no_configuration(spec)),
        },
    };
    let settings = settings(spec.patience);
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, to)| (*name, &**to)).collect();
    let whose = (&*spec.pool, conf, &*spec.user);
    let connection = Connection::open(api, threads, whose, &settings);
    let connection = connection.map_err(|error| connect_error(spec, error))?;
    let what = format!("pool {}", spec.pool);
    let fsid = connection.fsid();
    let fsid = fsid.map_err(|errno| of_call("connecting to", &what, errno))?;
    Ok((connection, fsid))
}

fn no_configuration(spec: &ClusterSpec) -> RbdError {
    let conf = spec.conf.as_ref().map_or_else(
        || "no ceph.conf at any of its usual places".to_owned(),
        |path| format!("{} is not there or cannot be read", path.display()),
    );
    RbdError::new(
        ErrorKind::Configuration,
        format!("pool {}: {conf}", spec.pool),
        "copy ceph.conf from a node of the cluster (ceph config generate-minimal-conf) and name it",
    )
}

fn connect_error(spec: &ClusterSpec, error: ConnectError) -> RbdError {
    let ClusterSpec { pool, user, .. } = spec;
    let what = format!("pool {pool}");
    match (error.step, error.errno.0) {
        (Step::Configuration, libc::ENOENT | libc::EACCES) => no_configuration(spec),
        (Step::Configuration, errno) => RbdError::new(
            ErrorKind::Configuration,
            format!(
                "pool {pool}: the configuration says what Ceph does not understand: {}",
                std::io::Error::from_raw_os_error(errno)
            ),
            "correct the file",
        ),
        (Step::Connecting, libc::EACCES | libc::EPERM | libc::ENOENT | libc::EOPNOTSUPP) => {
            RbdError::new(
                ErrorKind::Denied,
                format!("pool {pool}: client.{user} is not let in: its key is missing or wrong"),
                format!(
                    "ceph auth get client.{user} on a node of the cluster, and name the file as keyring in ceph.conf, readable by \
                     the daemon"
                ),
            )
        }
        (Step::Connecting | Step::Pool, libc::ETIMEDOUT) => {
            unreachable("connecting to", &what, spec.patience.as_secs())
        }
        (Step::Pool, libc::ENOENT) => RbdError::new(
            ErrorKind::NoPool,
            format!("the cluster has no pool {pool}"),
            format!("ceph osd pool create {pool}, then rbd pool init {pool}; or correct its name"),
        ),
        (Step::Connecting | Step::Pool, _) => of_call("connecting to", &what, error.errno),
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn kind(step: Step, errno: i32) -> ErrorKind {
        let spec = ClusterSpec {
            pool: "p".to_owned(),
            conf: Some("/etc/ceph/none.conf".into()),
            user: "u".to_owned(),
            patience: Duration::from_secs(5),
        };
        let errno = Errno(errno);
        let error = connect_error(&spec, ConnectError { step, errno });
        assert!(
            error.cause.contains('p') && !error.next_step.is_empty(),
            "{error}"
        );
        error.kind
    }

    #[test]
    fn each_step_of_a_connection_has_its_own_errors() {
        let missing = libc::ENOENT;
        assert_eq!(kind(Step::Configuration, missing), ErrorKind::Configuration);
        assert_eq!(
            kind(Step::Configuration, libc::EINVAL),
            ErrorKind::Configuration
        );
        assert_eq!(kind(Step::Connecting, missing), ErrorKind::Denied);
        assert_eq!(kind(Step::Connecting, libc::EACCES), ErrorKind::Denied);
        assert_eq!(
            kind(Step::Connecting, libc::ETIMEDOUT),
            ErrorKind::Unreachable
        );
        assert_eq!(kind(Step::Pool, missing), ErrorKind::NoPool);
        assert_eq!(kind(Step::Pool, libc::EIO), ErrorKind::Failed(libc::EIO));
    }

    #[test]
    fn an_operation_of_an_osd_is_never_given_up() {
        let settings = settings(Duration::from_secs(7));
        let of = |name| {
            settings
                .iter()
                .find(|(it, _)| *it == name)
                .map(|(_, to)| &**to)
        };
        assert_eq!(of("rados_osd_op_timeout"), Some("0"));
        assert_eq!(of("rbd_cache"), Some("false"));
        assert_eq!(of("client_mount_timeout"), Some("7"));
    }
}
