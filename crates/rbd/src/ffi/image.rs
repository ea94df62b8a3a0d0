//! An open image: what blocks.

use super::connection::Connection;
use super::prototypes::{Api, ConfigOption, EXCLUSIVE, ImageInfo, RawImage, Watcher};
use super::text::{from_c, texts, to_c};
use super::{Errno, done, value};
use libc::{c_int, c_void};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Bytes for texts that are asked for first.
const TEXT_FIRST: usize = 4096;

/// Options of an image that are asked for first.
const OPTIONS_FIRST: c_int = 128;

/// Watchers that are asked for first.
const WATCHERS_FIRST: usize = 16;

/// Bytes of an image's id, and the zero behind it.
const ID_BYTES: usize = 64;

/// An image that is open. Its last owner, an operation perhaps, has it closed on a thread.
pub(crate) struct ImageHandle {
    pub(super) raw: RawImage,
    pub(crate) connection: Arc<Connection>,
    /// Who is notified of changes, and by which handle.
    watch: Option<(u64, Arc<Notify>)>,
    /// Notified when it is closed.
    closed: Mutex<Option<oneshot::Sender<()>>>,
    is_closed: bool,
}

// SAFETY: librbd's images may be used on any thread and on several at once; the pointer is this
// type's own until it is dropped.
unsafe impl Send for ImageHandle {}
// SAFETY: as above.
unsafe impl Sync for ImageHandle {}

/// Who holds a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Locker {
    pub(crate) client: String,
    pub(crate) address: String,
}

/// What an image is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) id: String,
    pub(crate) size: u64,
    pub(crate) object_size: u64,
    pub(crate) stripe_unit: u64,
    pub(crate) features: u64,
}

/// Bytes of an image that are there, or are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) exists: bool,
}

extern "C" fn changed(reported: *mut c_void) {
    // SAFETY: the pointer is that of the `Notify` that the image keeps until its watch has ended.
    let reported = unsafe { &*reported.cast::<Notify>() };
    reported.notify_one();
}

extern "C" fn goes_on(_at: u64, _of: u64, _: *mut c_void) -> c_int {
    0
}

extern "C" fn differs(offset: u64, len: usize, exists: c_int, into: *mut c_void) -> c_int {
    // SAFETY: the pointer is that of the list that `regions` has for the time of its call, which
    // calls one at a time.
    let into = unsafe { &mut *into.cast::<Vec<Region>>() };
    into.push(Region {
        offset,
        len: len as u64,
        exists: exists != 0,
    });
    0
}

impl ImageHandle {
    /// Opens the image. `watch` is notified whenever somebody changes it.
    pub(crate) fn open(
        connection: &Arc<Connection>,
        name: &str,
        watch: &Arc<Notify>,
    ) -> Result<Self, Errno> {
        let mut image = Self::open_with(connection, name, connection.api.rbd_open)?;
        let mut handle = 0;
        let (at, reported) = (&raw mut handle, Arc::as_ptr(watch).cast_mut().cast());
        // SAFETY: the image is open; what is notified lives as long as the watch, because the image
        // keeps it, and ends the watch before it lets it go.
        done(unsafe { (image.api().rbd_update_watch)(image.raw, at, changed, reported) })?;
        image.watch = Some((handle, Arc::clone(watch)));
        Ok(image)
    }

    /// Opens the image for questions only: neither lock nor watch.
    pub(crate) fn open_read_only(connection: &Arc<Connection>, name: &str) -> Result<Self, Errno> {
        Self::open_with(connection, name, connection.api.rbd_open_read_only)
    }

    /// Opens the image for changes of what is reported of it.
    pub(crate) fn open_unwatched(connection: &Arc<Connection>, name: &str) -> Result<Self, Errno> {
        Self::open_with(connection, name, connection.api.rbd_open)
    }

    fn open_with(connection: &Arc<Connection>, name: &str, open: Open) -> Result<Self, Errno> {
        let name = to_c(name)?;
        let mut raw = null_mut();
        // SAFETY: the pool is the connection's; the name lives during the call; the image is
        // written where it succeeds, and keeps the connection. Null: no snapshot.
        done(unsafe { open(connection.pool, name.as_ptr(), &raw mut raw, null()) })?;
        Ok(Self {
            raw,
            connection: Arc::clone(connection),
            watch: None,
            closed: Mutex::new(None),
            is_closed: false,
        })
    }

    pub(super) fn api(&self) -> &'static Api {
        self.connection.api
    }

    /// What it is now.
    pub(crate) fn facts(&self) -> Result<Facts, Errno> {
        let api = self.api();
        let mut info = MaybeUninit::<ImageInfo>::zeroed();
        let size = size_of::<ImageInfo>();
        // SAFETY: the image is open, and there is room for as many bytes as is said.
        done(unsafe { (api.rbd_stat)(self.raw, info.as_mut_ptr(), size) })?;
        // SAFETY: it is all numbers, and began as zeroes.
        let info = unsafe { info.assume_init() };
        let (mut features, mut stripe_unit) = (0, 0);
        // SAFETY: the image is open; the number is written.
        done(unsafe { (api.rbd_get_features)(self.raw, &raw mut features) })?;
        // SAFETY: as above.
        done(unsafe { (api.rbd_get_stripe_unit)(self.raw, &raw mut stripe_unit) })?;
        let mut id = [0; ID_BYTES];
        // SAFETY: as above; there is room for as many bytes as is said, and the last of them stays
        // zero.
        done(unsafe { (api.rbd_get_id)(self.raw, id.as_mut_ptr(), ID_BYTES - 1) })?;
        Ok(Facts {
            // SAFETY: it ends with a zero.
            id: unsafe { from_c(id.as_ptr()) },
            size: info.size,
            object_size: info.object_size,
            stripe_unit,
            features,
        })
    }

    /// Gives it another size. What is cut off is gone.
    pub(crate) fn resize(&self, size: u64, may_shrink: bool) -> Result<(), Errno> {
        let resize = self.api().rbd_resize2;
        // SAFETY: the image is open; the callback takes no pointer.
        done(unsafe { resize(self.raw, size, may_shrink, goes_on, null_mut()) })
    }

    /// Takes the exclusive lock, which it then keeps until it is closed or somebody breaks it.
    pub(crate) fn lock(&self) -> Result<(), Errno> {
        // SAFETY: the image is open.
        done(unsafe { (self.api().rbd_lock_acquire)(self.raw, EXCLUSIVE) })
    }

    /// Addresses of who holds the exclusive lock.
    pub(crate) fn lock_owners(&self) -> Result<Vec<String>, Errno> {
        let api = self.api();
        let mut owners = [null_mut(); 8];
        let (mut mode, mut count) = (0, owners.len());
        let (mode, at) = (&raw mut mode, owners.as_mut_ptr());
        // SAFETY: the image is open, and there is room for as many owners as is said.
        match done(unsafe { (api.rbd_lock_get_owners)(self.raw, mode, at, &raw mut count) }) {
            Err(Errno(libc::ENOENT)) => return Ok(Vec::new()),
            other => other?,
        }
        // SAFETY: each is a text of the library's, which lives until they are given back below.
        let texts = owners[..count].iter().map(|&one| unsafe { from_c(one) });
        let texts = texts.collect();
        // SAFETY: they are as the library made them, and given back once.
        unsafe { (api.rbd_lock_get_owners_cleanup)(at, count) };
        Ok(texts)
    }

    /// Takes the lock from `owner`, and shuts its connection out of the cluster.
    pub(crate) fn break_lock(&self, owner: &str) -> Result<(), Errno> {
        let owner = to_c(owner)?;
        // SAFETY: the image is open; the text lives during the call.
        done(unsafe { (self.api().rbd_lock_break)(self.raw, EXCLUSIVE, owner.as_ptr()) })
    }

    /// The first `len` bytes can be compared and written as one. Nothing is written.
    pub(crate) fn can_compare(&self, len: usize) -> Result<bool, Errno> {
        let mut other = vec![0u8; len];
        let at = other.as_mut_ptr().cast();
        // SAFETY: the image is open, and there are as many bytes as is said.
        value(unsafe { (self.api().rbd_read)(self.raw, 0, len, at) })?;
        let Some(first) = other.first_mut() else {
            return Ok(false);
        };
        *first = !*first;
        let (bytes, mut differs_at) = (other.as_ptr().cast(), 0);
        let compare_and_write = self.api().rbd_compare_and_write;
        // SAFETY: as above. Both payloads are the same bytes: what is not there, so that the
        // comparison fails.
        let compared = value(unsafe {
            compare_and_write(self.raw, 0, len, bytes, bytes, &raw mut differs_at, 0)
        });
        match compared {
            Ok(_) | Err(Errno(libc::EILSEQ)) => Ok(true),
            Err(Errno(libc::EINVAL | libc::EOPNOTSUPP)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Who has locked it, with addresses.
    pub(crate) fn lockers(&self) -> Result<Vec<Locker>, Errno> {
        let mut buffers = [const { Vec::new() }; 4];
        let mut room = [TEXT_FIRST; 4];
        let (list, mut exclusive) = (self.api().rbd_list_lockers, 0);
        loop {
            for (buffer, &room) in buffers.iter_mut().zip(&room) {
                *buffer = vec![0u8; room];
            }
            let [tag, clients, cookies, addresses] =
                buffers.each_mut().map(|buffer| buffer.as_mut_ptr().cast());
            let [tag_len, clients_len, cookies_len, addresses_len] =
                room.each_mut().map(|room| &raw mut *room);
            // SAFETY: the image is open; each buffer has as many bytes as is said, and its length
            // is written.
            let listed = value(unsafe {
                list(
                    self.raw,
                    &raw mut exclusive,
                    tag,
                    tag_len,
                    clients,
                    clients_len,
                    cookies,
                    cookies_len,
                    addresses,
                    addresses_len,
                )
            });
            match listed {
                Err(Errno(libc::ERANGE)) => {}
                Err(error) => return Err(error),
                Ok(0) => return Ok(Vec::new()),
                Ok(_) => break,
            }
        }
        let of = |place: usize| {
            let bytes: &Vec<u8> = &buffers[place];
            texts(&bytes[..room[place].min(bytes.len())])
        };
        let both = of(1).into_iter().zip(of(3));
        Ok(both
            .map(|(client, address)| Locker { client, address })
            .collect())
    }

    /// Numbers of the clients that have it open and answer, or did until a moment ago.
    pub(crate) fn watchers(&self) -> Result<Vec<u64>, Errno> {
        let api = self.api();
        let mut room = WATCHERS_FIRST;
        loop {
            let mut watchers: Vec<Watcher> = Vec::with_capacity(room);
            let (at, mut count) = (watchers.as_mut_ptr(), room);
            // SAFETY: the image is open; there is room for as many as is said, and their number is
            // written.
            match done(unsafe { (api.rbd_watchers_list)(self.raw, at, &raw mut count) }) {
                Err(Errno(libc::ERANGE)) => {
                    room = count.max(room + 1);
                    continue;
                }
                other => other?,
            }
            // SAFETY: so many were written.
            unsafe { watchers.set_len(count) };
            let clients = watchers.iter().map(|it| it.client.unsigned_abs());
            let clients = clients.collect();
            // SAFETY: the list is as the library made it, and given back once.
            unsafe { (api.rbd_watchers_list_cleanup)(at, count) };
            return Ok(clients);
        }
    }

    /// Keys and values that somebody has kept with it.
    pub(crate) fn metadata(&self) -> Result<BTreeMap<String, String>, Errno> {
        let (mut keys_room, mut values_room) = (TEXT_FIRST, TEXT_FIRST);
        loop {
            let (mut keys, mut values) = (vec![0u8; keys_room], vec![0u8; values_room]);
            let (keys_at, values_at) = (keys.as_mut_ptr().cast(), values.as_mut_ptr().cast());
            let (keys_len, values_len) = (&raw mut keys_room, &raw mut values_room);
            let list = self.api().rbd_metadata_list;
            // SAFETY: the image is open; each buffer has as many bytes as is said, and its length
            // is written. From the beginning on, without a limit.
            let listed = unsafe {
                list(
                    self.raw,
                    c"".as_ptr(),
                    0,
                    keys_at,
                    keys_len,
                    values_at,
                    values_len,
                )
            };
            match done(listed) {
                Err(Errno(libc::ERANGE)) => continue,
                other => other?,
            }
            keys.truncate(keys_room);
            values.truncate(values_room);
            return Ok(texts(&keys).into_iter().zip(texts(&values)).collect());
        }
    }

    /// Keeps a value under a key.
    pub(crate) fn set_metadata(&self, key: &str, to: &str) -> Result<(), Errno> {
        let (key, to) = (to_c(key)?, to_c(to)?);
        // SAFETY: the image is open; both texts live during the call.
        done(unsafe { (self.api().rbd_metadata_set)(self.raw, key.as_ptr(), to.as_ptr()) })
    }

    /// Forgets a key.
    pub(crate) fn remove_metadata(&self, key: &str) -> Result<(), Errno> {
        let key = to_c(key)?;
        // SAFETY: as above.
        done(unsafe { (self.api().rbd_metadata_remove)(self.raw, key.as_ptr()) })
    }

    /// The options that are in force for it, whoever has set them.
    pub(crate) fn options(&self) -> Result<BTreeMap<String, String>, Errno> {
        let api = self.api();
        let mut room = OPTIONS_FIRST;
        loop {
            let wanted = usize::try_from(room).map_err(|_| Errno(libc::EOVERFLOW))?;
            let mut options: Vec<ConfigOption> = Vec::with_capacity(wanted);
            let (at, mut count) = (options.as_mut_ptr(), room);
            // SAFETY: the image is open; there is room for as many as is said, and their number is
            // written.
            match done(unsafe { (api.rbd_config_image_list)(self.raw, at, &raw mut count) }) {
                Err(Errno(libc::ERANGE)) => {
                    room = count.max(room + 1);
                    continue;
                }
                other => other?,
            }
            let written = usize::try_from(count).map_err(|_| Errno(libc::EOVERFLOW))?;
            // SAFETY: so many were written.
            unsafe { options.set_len(written) };
            // SAFETY: both are texts of the library's, which live until the list is given back
            // below.
            let texts = |it: &ConfigOption| unsafe { (from_c(it.name), from_c(it.value)) };
            let all = options.iter().map(texts).collect();
            // SAFETY: the list is as the library made it, and given back once.
            unsafe { (api.rbd_config_image_list_cleanup)(at, count) };
            return Ok(all);
        }
    }

    /// Which of these bytes are there, by whole objects; what is not named is not there.
    pub(crate) fn regions(&self, offset: u64, len: u64) -> Result<Vec<Region>, Errno> {
        let mut found: Vec<Region> = Vec::new();
        let iterate = self.api().rbd_diff_iterate2;
        // SAFETY: the image is open; the list lives during the call. Null: since the beginning;
        // then, with what a parent has, and by whole objects, which needs no check of each of them
        // where there is a map.
        done(unsafe {
            let into = (&raw mut found).cast();
            iterate(self.raw, null(), offset, len, 1, 1, differs, into)
        })?;
        Ok(found)
    }

    /// Notified when it is closed, after the last one that uses it.
    pub(crate) fn closed(&self) -> oneshot::Receiver<()> {
        let (notify, closes) = oneshot::channel();
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        *closed = Some(notify);
        closes
    }
}

type Open = unsafe extern "C" fn(
    super::prototypes::Pool,
    *const libc::c_char,
    *mut RawImage,
    *const libc::c_char,
) -> c_int;

impl ImageHandle {
    /// Closes it on this thread.
    pub(crate) fn close_here(mut self) {
        let closing = self.closing();
        self.is_closed = true;
        closing.run();
    }

    fn closing(&mut self) -> Closing {
        let closed = self.closed.get_mut();
        Closing {
            raw: self.raw,
            connection: Arc::clone(&self.connection),
            watch: self.watch.take(),
            closed: closed.unwrap_or_else(PoisonError::into_inner).take(),
        }
    }
}

impl Drop for ImageHandle {
    fn drop(&mut self) {
        if !self.is_closed {
            let closing = self.closing();
            self.connection.threads.start(move || closing.run());
        }
    }
}

/// An image that nobody uses any more.
struct Closing {
    raw: RawImage,
    connection: Arc<Connection>,
    watch: Option<(u64, Arc<Notify>)>,
    closed: Option<oneshot::Sender<()>>,
}

// SAFETY: as for the image that it was.
unsafe impl Send for Closing {}

impl Closing {
    fn run(self) {
        let api = self.connection.api;
        if let Some((handle, _reported)) = &self.watch {
            // SAFETY: the image is open and the handle its own. After this no callback runs, and
            // what they notify may go. It is closed next, whatever this says.
            unsafe { (api.rbd_update_unwatch)(self.raw, *handle) };
        }
        // SAFETY: nobody uses the image any more, and it is closed once. Where that fails, it is
        // closed all the same.
        unsafe { (api.rbd_close)(self.raw) };
        if let Some(closed) = self.closed {
            // Nobody may be waiting any more.
            let _gone = closed.send(());
        }
    }
}
