//! Opening the libraries.
//!
//! They are opened when the first cluster is, with RTLD_NOW and RTLD_LOCAL, and never closed: Ceph
//! has threads of its own. One that is not there is an ordinary error, and looked for again by
//! whoever asks next.
//!
//! They have destructors, which would run at the process' end while those threads still work with
//! what is destroyed, ours that close images among them: the end of a process was an abort then,
//! now and again. So the process ends before them.

use super::prototypes::{Api, Libraries};
use libc::{c_int, c_void};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::error::Error as _;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

const RADOS: &str = "librados.so.2";
const RBD: &str = "librbd.so.1";

/// Why the functions cannot be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LibraryError {
    /// The library cannot be opened, in the loader's words.
    Missing { library: String, said: String },
    /// The libraries are there and lack this function: they are too old.
    Function(&'static str),
}

impl Api {
    /// The functions of the libraries that are installed.
    pub(crate) fn get() -> Result<&'static Self, LibraryError> {
        static FOUND: Mutex<Option<&'static Api>> = Mutex::new(None);
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(api) = *found {
            return Ok(api);
        }
        let api = Self::open(RADOS, RBD)?;
        end_before_destructors();
        *found = Some(api);
        Ok(api)
    }

    /// The functions of these libraries.
    pub(super) fn open(rados: &str, rbd: &str) -> Result<&'static Self, LibraryError> {
        let libraries = Libraries {
            rados: open(rados)?,
            rbd: open(rbd)?,
        };
        // Both stay for ever, whatever is found in them.
        let libraries: &'static Libraries = Box::leak(Box::new(libraries));
        let api = Self::find(libraries).map_err(LibraryError::Function)?;
        Ok(Box::leak(Box::new(api)))
    }
}

fn open(name: &str) -> Result<Library, LibraryError> {
    // SAFETY: opening runs the library's constructors. Those of librados and librbd make tables and
    // register option defaults; they need nothing of the caller. The library is never closed, so
    // that no code of it goes away.
    let opened = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
    opened.map_err(|error| {
        // The loader's own words are the error's source.
        let said = error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string);
        LibraryError::Missing {
            library: name.to_owned(),
            said,
        }
    })
}

/// `on_exit` of glibc: calls a function when the process ends, with its status.
type OnExit = unsafe extern "C" fn(Leave, *mut c_void) -> c_int;
type Leave = extern "C" fn(c_int, *mut c_void);

extern "C" fn leave(status: c_int, _: *mut c_void) {
    // SAFETY: nothing is left to do: Rust's own output is flushed before `exit` is called, and
    // nothing of this process depends on another library's destructors.
    unsafe { libc::_exit(status) }
}

/// What is registered last is called first: before the destructors of the libraries, which were
/// opened before. Where the C library has no such function, their destructors run.
fn end_before_destructors() {
    let this = Library::this();
    // SAFETY: the function has this type (on_exit(3)).
    let found = unsafe { this.get::<OnExit>("on_exit") };
    if let Ok(on_exit) = found {
        // SAFETY: the function lives as long as the process and takes no pointer.
        unsafe { on_exit(leave, null_mut()) };
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = Api::open("librados-of-nobody.so.2", RBD).err();
        let Some(LibraryError::Missing { library, said }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(library, "librados-of-nobody.so.2");
        assert!(said.contains("librados-of-nobody.so.2"), "{said}");
    }

    #[test]
    fn a_library_without_the_functions_names_the_first_that_it_lacks() {
        // Every Linux program has this one.
        let error = Api::open("libc.so.6", "libc.so.6").err();
        assert_eq!(error, Some(LibraryError::Function("rados_create")));
    }
}
