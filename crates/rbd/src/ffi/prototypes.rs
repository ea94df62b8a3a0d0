//! The functions of librados and librbd that are used, as their headers declare them.
//!
//! A test compares every line with the headers where they are installed ([`super::header_test`]).

use libc::{c_char, c_int, c_void, iovec, ssize_t};
use libloading::os::unix::Library;

/// `rados_t`.
pub(super) type ClusterHandle = *mut c_void;
/// `rados_ioctx_t`.
pub(super) type Pool = *mut c_void;
/// `rbd_image_t`.
pub(super) type RawImage = *mut c_void;
/// `rbd_completion_t`.
pub(super) type Completion = *mut c_void;
/// `rbd_callback_t`.
pub(super) type Callback = extern "C" fn(Completion, *mut c_void);
/// `rbd_update_callback_t`.
pub(super) type Updated = extern "C" fn(*mut c_void);
/// The callback of `rbd_diff_iterate2`.
pub(super) type Differs = extern "C" fn(u64, usize, c_int, *mut c_void) -> c_int;
/// `librbd_progress_fn_t`.
pub(super) type Progress = extern "C" fn(u64, u64, *mut c_void) -> c_int;

/// `RBD_LOCK_MODE_EXCLUSIVE`.
pub(super) const EXCLUSIVE: u32 = 0;
/// `RBD_WRITE_ZEROES_FLAG_THICK_PROVISION`.
pub(super) const THICK: c_int = 1;
/// `RBD_FEATURE_EXCLUSIVE_LOCK`.
pub(crate) const EXCLUSIVE_LOCK: u64 = 1 << 2;
/// `RBD_FEATURE_FAST_DIFF`.
pub(crate) const FAST_DIFF: u64 = 1 << 4;
/// `RBD_FEATURES_DEFAULT`: layering, exclusive lock, object map, fast diff, deep flatten.
pub(crate) const FEATURES: u64 = 61;

/// `rbd_image_info_t`.
#[repr(C)]
pub(super) struct ImageInfo {
    pub(super) size: u64,
    pub(super) object_size: u64,
    pub(super) object_count: u64,
    pub(super) order: c_int,
    pub(super) block_name_prefix: [c_char; 24],
    pub(super) parent_pool: i64,
    pub(super) parent_name: [c_char; 96],
}

/// `rbd_image_spec_t`.
#[repr(C)]
pub(super) struct RawImageSpec {
    pub(super) id: *mut c_char,
    pub(super) name: *mut c_char,
}

/// `rbd_config_option_t`.
#[repr(C)]
pub(super) struct ConfigOption {
    pub(super) name: *mut c_char,
    pub(super) value: *mut c_char,
    pub(super) source: u32,
}

/// `rbd_image_watcher_t`.
#[repr(C)]
pub(super) struct Watcher {
    pub(super) address: *mut c_char,
    pub(super) client: i64,
    pub(super) cookie: u64,
}

/// The libraries that functions are looked for in.
pub(super) struct Libraries {
    pub(super) rados: Library,
    pub(super) rbd: Library,
}

/// A declaration, in Rust's words, for the comparison with the headers.
#[cfg(test)]
pub(super) struct Prototype {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [&'static str],
    pub(super) result: &'static str,
}

macro_rules! prototypes {
    ($($library:ident { $(fn $name:ident($($parameter:ty),*) -> $result:ty;)* })*) => {
        /// Every function, found once and for all.
        pub(crate) struct Api {
            $($(pub(super) $name: unsafe extern "C" fn($($parameter),*) -> $result,)*)*
        }

        impl Api {
            /// Finds every function, or names the first that is not there.
            pub(super) fn find(libraries: &Libraries) -> Result<Self, &'static str> {
                Ok(Self {
                    $($($name: {
                        // SAFETY: the library of this name has a function of this name with this
                        // type: that is what its header promises, with which a test compares the
                        // line.
                        let found = unsafe { libraries.$library.get(stringify!($name)) };
                        *found.map_err(|_| stringify!($name))?
                    },)*)*
                })
            }
        }

        #[cfg(test)]
        pub(super) const PROTOTYPES: &[Prototype] = &[
            $($(Prototype {
                name: stringify!($name),
                parameters: &[$(stringify!($parameter)),*],
                result: stringify!($result),
            },)*)*
        ];
    };
}

prototypes! {
    rados {
        fn rados_create(*mut ClusterHandle, *const c_char) -> c_int;
        fn rados_conf_read_file(ClusterHandle, *const c_char) -> c_int;
        fn rados_conf_set(ClusterHandle, *const c_char, *const c_char) -> c_int;
        fn rados_connect(ClusterHandle) -> c_int;
        fn rados_shutdown(ClusterHandle) -> ();
        fn rados_cluster_fsid(ClusterHandle, *mut c_char, usize) -> c_int;
        fn rados_get_instance_id(ClusterHandle) -> u64;
        fn rados_ioctx_create(ClusterHandle, *const c_char, *mut Pool) -> c_int;
        fn rados_ioctx_destroy(Pool) -> ();
        fn rados_set_pool_full_try(Pool) -> ();
        fn rados_mon_command(ClusterHandle, *mut *const c_char, usize, *const c_char, usize,
            *mut *mut c_char, *mut usize, *mut *mut c_char, *mut usize) -> c_int;
        fn rados_buffer_free(*mut c_char) -> ();
    }
    rbd {
        fn rbd_list2(Pool, *mut RawImageSpec, *mut usize) -> c_int;
        fn rbd_image_spec_list_cleanup(*mut RawImageSpec, usize) -> ();
        fn rbd_create2(Pool, *const c_char, u64, u64, *mut c_int) -> c_int;
        fn rbd_remove(Pool, *const c_char) -> c_int;
        fn rbd_open(Pool, *const c_char, *mut RawImage, *const c_char) -> c_int;
        fn rbd_open_read_only(Pool, *const c_char, *mut RawImage, *const c_char) -> c_int;
        fn rbd_close(RawImage) -> c_int;
        fn rbd_stat(RawImage, *mut ImageInfo, usize) -> c_int;
        fn rbd_get_features(RawImage, *mut u64) -> c_int;
        fn rbd_get_stripe_unit(RawImage, *mut u64) -> c_int;
        fn rbd_get_id(RawImage, *mut c_char, usize) -> c_int;
        fn rbd_resize2(RawImage, u64, bool, Progress, *mut c_void) -> c_int;
        fn rbd_config_image_list(RawImage, *mut ConfigOption, *mut c_int) -> c_int;
        fn rbd_config_image_list_cleanup(*mut ConfigOption, c_int) -> ();
        fn rbd_metadata_set(RawImage, *const c_char, *const c_char) -> c_int;
        fn rbd_metadata_remove(RawImage, *const c_char) -> c_int;
        fn rbd_metadata_list(RawImage, *const c_char, u64, *mut c_char, *mut usize, *mut c_char,
            *mut usize) -> c_int;
        fn rbd_lock_acquire(RawImage, u32) -> c_int;
        fn rbd_lock_get_owners(RawImage, *mut u32, *mut *mut c_char, *mut usize) -> c_int;
        fn rbd_lock_get_owners_cleanup(*mut *mut c_char, usize) -> ();
        fn rbd_lock_break(RawImage, u32, *const c_char) -> c_int;
        fn rbd_list_lockers(RawImage, *mut c_int, *mut c_char, *mut usize, *mut c_char, *mut usize,
            *mut c_char, *mut usize, *mut c_char, *mut usize) -> ssize_t;
        fn rbd_watchers_list(RawImage, *mut Watcher, *mut usize) -> c_int;
        fn rbd_watchers_list_cleanup(*mut Watcher, usize) -> ();
        fn rbd_update_watch(RawImage, *mut u64, Updated, *mut c_void) -> c_int;
        fn rbd_update_unwatch(RawImage, u64) -> c_int;
        fn rbd_diff_iterate2(RawImage, *const c_char, u64, u64, u8, u8, Differs, *mut c_void) -> c_int;
        fn rbd_read(RawImage, u64, usize, *mut c_char) -> ssize_t;
        fn rbd_compare_and_write(RawImage, u64, usize, *const c_char, *const c_char, *mut u64, c_int) -> ssize_t;
        fn rbd_aio_create_completion(*mut c_void, Callback, *mut Completion) -> c_int;
        fn rbd_aio_get_return_value(Completion) -> ssize_t;
        fn rbd_aio_release(Completion) -> ();
        fn rbd_aio_readv(RawImage, *const iovec, c_int, u64, Completion) -> c_int;
        fn rbd_aio_writev(RawImage, *const iovec, c_int, u64, Completion) -> c_int;
        fn rbd_aio_discard(RawImage, u64, u64, Completion) -> c_int;
        fn rbd_aio_write_zeroes(RawImage, u64, usize, Completion, c_int, c_int) -> c_int;
        fn rbd_aio_compare_and_write(RawImage, u64, usize, *const c_char, *const c_char, Completion,
            *mut u64, c_int) -> ssize_t;
        fn rbd_aio_flush(RawImage, Completion) -> c_int;
    }
}
