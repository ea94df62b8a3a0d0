//! A connection to one pool of a cluster.

use super::prototypes::{Api, ClusterHandle, FEATURES, Pool, RawImageSpec};
use super::text::{from_c, to_c};
use super::{Errno, done, value};
use env::real::Threads;
use libc::c_char;
use std::ptr::{null, null_mut};

/// Bytes of a cluster's id as text, and the zero behind it.
const FSID_BYTES: usize = 37;

/// Images that are asked for first.
const IMAGES_FIRST: usize = 64;

/// A connection. Its last owner, an image perhaps, has it closed on a thread.
pub(crate) struct Connection {
    pub(super) api: &'static Api,
    cluster: ClusterHandle,
    pub(super) pool: Pool,
    pub(crate) threads: Threads,
}

// SAFETY: librados' handles may be used on any thread and on several at once ("librados.h": its C
// API is thread-safe, but for the setup, which is over when this type exists); the pointers are
// this type's own until it is dropped.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

/// What was being done when it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Configuration,
    Connecting,
    Pool,
}

/// Why there is no connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectError {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// A cluster handle on its way to be a connection: shut down where it does not become one.
struct Setup {
    api: &'static Api,
    cluster: ClusterHandle,
}

impl Setup {
    fn new(api: &'static Api, user: &str) -> Result<Self, Errno> {
        let user = to_c(user)?;
        let mut cluster = null_mut();
        // SAFETY: both pointers live during the call; the handle is written where it succeeds.
        done(unsafe { (api.rados_create)(&raw mut cluster, user.as_ptr()) })?;
        Ok(Self { api, cluster })
    }

    fn read(&self, conf: Option<&str>) -> Result<(), Errno> {
        let conf = conf.map(to_c).transpose()?;
        let path = conf.as_ref().map_or(null(), |conf| conf.as_ptr());
        // SAFETY: the handle is ours; the path lives during the call, and null stands for the usual
        // places.
        done(unsafe { (self.api.rados_conf_read_file)(self.cluster, path) })
    }

    fn set(&self, name: &str, to: &str) -> Result<(), Errno> {
        let (name, to) = (to_c(name)?, to_c(to)?);
        // SAFETY: the handle is ours; both texts live during the call, and are copied.
        done(unsafe { (self.api.rados_conf_set)(self.cluster, name.as_ptr(), to.as_ptr()) })
    }

    fn connect(&self) -> Result<(), Errno> {
        // SAFETY: the handle is ours, and is connected once.
        done(unsafe { (self.api.rados_connect)(self.cluster) })
    }

    fn pool(&self, name: &str) -> Result<Pool, Errno> {
        let name = to_c(name)?;
        let mut pool = null_mut();
        let pool_at = &raw mut pool;
        // SAFETY: the handle is connected; the name lives during the call; the pool is written
        // where it succeeds.
        done(unsafe { (self.api.rados_ioctx_create)(self.cluster, name.as_ptr(), pool_at) })?;
        Ok(pool)
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, nothing else has it, and it is shut down once.
        unsafe { (self.api.rados_shutdown)(self.cluster) };
    }
}

impl Connection {
    /// Connects: reads `conf` (or the file at the usual place), then sets what `settings` say.
    pub(crate) fn open(
        api: &'static Api,
        threads: Threads,
        (pool, conf, user): (&str, Option<&str>, &str),
        settings: &[(&str, &str)],
    ) -> Result<Self, ConnectError> {
        let at = |step| move |errno| ConnectError { step, errno };
        let setup = Setup::new(api, user).map_err(at(Step::Configuration))?;
        setup.read(conf).map_err(at(Step::Configuration))?;
        for (name, to) in settings {
            setup.set(name, to).map_err(at(Step::Configuration))?;
        }
        setup.connect().map_err(at(Step::Connecting))?;
        let pool = setup.pool(pool).map_err(at(Step::Pool))?;
        // SAFETY: the pool is ours. From here on a write that finds no room is answered ENOSPC
        // instead of waiting.
        unsafe { (api.rados_set_pool_full_try)(pool) };
        let cluster = setup.cluster;
        // The connection shuts it down now.
        std::mem::forget(setup);
        Ok(Self {
            api,
            cluster,
            pool,
            threads,
        })
    }

    /// The cluster's id.
    pub(crate) fn fsid(&self) -> Result<String, Errno> {
        let mut id: [c_char; FSID_BYTES] = [0; FSID_BYTES];
        let at = id.as_mut_ptr();
        // SAFETY: there are as many bytes as is said, and what is written ends with a zero.
        value(unsafe { (self.api.rados_cluster_fsid)(self.cluster, at, FSID_BYTES) })?;
        // SAFETY: the bytes were zeroes before, and the last one still is at the least.
        Ok(unsafe { from_c(id.as_ptr()) })
    }

    /// This connection's number in the cluster: who holds its locks.
    pub(crate) fn instance(&self) -> u64 {
        // SAFETY: the handle is connected.
        unsafe { (self.api.rados_get_instance_id)(self.cluster) }
    }

    /// Asks the monitors; answers what they say.
    pub(crate) fn ask_monitors(&self, command: &str) -> Result<Vec<u8>, Errno> {
        let command = to_c(command)?;
        let mut commands = [command.as_ptr()];
        let (mut said, mut said_bytes) = (null_mut(), 0);
        // SAFETY: one command, which lives during the call; no input; the answer's memory and
        // length are written, and the status text is not asked for, which null says.
        let result = unsafe {
            (self.api.rados_mon_command)(
                self.cluster,
                commands.as_mut_ptr(),
                commands.len(),
                null(),
                0,
                &raw mut said,
                &raw mut said_bytes,
                null_mut(),
                null_mut(),
            )
        };
        let mut answer = Vec::new();
        if !said.is_null() {
            // SAFETY: the library has made so many bytes there for us, and nobody else knows them.
            let bytes = unsafe { std::slice::from_raw_parts(said.cast::<u8>(), said_bytes) };
            answer.extend_from_slice(bytes);
            // SAFETY: they are given back once, and not used any more.
            unsafe { (self.api.rados_buffer_free)(said) };
        }
        done(result).map(|()| answer)
    }

    /// Names of all images of the pool.
    pub(crate) fn images(&self) -> Result<Vec<String>, Errno> {
        let mut room = IMAGES_FIRST;
        loop {
            let mut found = Vec::with_capacity(room);
            let mut count = room;
            let at = found.as_mut_ptr();
            // SAFETY: there is room for as many as is said; where there are more, nothing is
            // written but their number.
            match done(unsafe { (self.api.rbd_list2)(self.pool, at, &raw mut count) }) {
                Err(Errno(libc::ERANGE)) => room = count.max(room + 1),
                Err(error) => return Err(error),
                // SAFETY: so many were written.
                Ok(()) => return Ok(unsafe { self.names(found, count) }),
            }
        }
    }

    /// # Safety
    /// `rbd_list2` has written `count` entries to the beginning of `found`.
    unsafe fn names(&self, mut found: Vec<RawImageSpec>, count: usize) -> Vec<String> {
        // SAFETY: the caller's promise.
        unsafe { found.set_len(count) };
        // SAFETY: each name is a text of the library's, which lives until the list is given back
        // below.
        let name = |spec: &RawImageSpec| unsafe { from_c(spec.name) };
        let names = found.iter().map(name).collect();
        // SAFETY: the list is as the library made it, and given back once.
        unsafe { (self.api.rbd_image_spec_list_cleanup)(found.as_mut_ptr(), count) };
        names
    }

    /// Makes a thin image with an exclusive lock and a map of its objects.
    pub(crate) fn create(&self, name: &str, size: u64) -> Result<(), Errno> {
        let name = to_c(name)?;
        // The cluster's own size of objects.
        let mut order = 0;
        let order = &raw mut order;
        // SAFETY: the pool is ours; name and order live during the call.
        done(unsafe { (self.api.rbd_create2)(self.pool, name.as_ptr(), size, FEATURES, order) })
    }

    /// Removes an image for ever.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Errno> {
        let name = to_c(name)?;
        // SAFETY: the pool is ours; the name lives during the call.
        done(unsafe { (self.api.rbd_remove)(self.pool, name.as_ptr()) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let setup = Setup {
            api: self.api,
            cluster: self.cluster,
        };
        let closing = Closing {
            pool: self.pool,
            setup,
        };
        self.threads.start(move || closing.run());
    }
}

/// A connection that nobody uses any more.
struct Closing {
    pool: Pool,
    setup: Setup,
}

// SAFETY: as for the connection that it was.
unsafe impl Send for Closing {}

impl Closing {
    fn run(self) {
        // SAFETY: the pool is ours and used by nobody any more: its images are closed, each of
        // which kept the connection.
        unsafe { (self.setup.api.rados_ioctx_destroy)(self.pool) };
    }
}
