//! Small files of the state directory, which the controller's core reads and writes.

use crate::{Controller, Handle};
use env::durable;
use manifest::code::Code;
use manifest::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The largest of them, in bytes: 20,000 alerts, each with its history.
const BYTES_MAX: u64 = 256 << 20;

/// The state directory, from another thread.
#[derive(Clone)]
pub struct StateFiles {
    handle: Handle,
    dir: PathBuf,
}

impl StateFiles {
    /// The files of `dir`, which is the state directory.
    #[must_use]
    pub fn new(handle: Handle, dir: &Path) -> Self {
        Self {
            handle,
            dir: dir.to_owned(),
        }
    }

    /// Where a file of this name is.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The whole file; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be read, or core 0 is gone.
    pub async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let (dir, path) = (self.dir.clone(), self.path(name));
        let read = |controller: Rc<Controller>| -> env::LocalFuture<io::Result<Vec<u8>>> {
            Box::pin(async move {
                let files = controller.core().files();
                durable::settle_dir(&*files, &dir).await?;
                durable::read_file(&*files, &path, BYTES_MAX).await
            })
        };
        match self.handle.call(read).await? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(Code::ConfigEnvironment, name, &error)),
        }
    }

    /// Replaces the file whole; only this user may read it.
    ///
    /// # Errors
    /// It cannot be written; what was there is there.
    pub async fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), Problem> {
        let path = self.path(name);
        let write = |controller: Rc<Controller>| -> env::LocalFuture<io::Result<()>> {
            Box::pin(async move {
                durable::replace_file(&*controller.core().files(), &path, &bytes).await
            })
        };
        let written = self.handle.call(write).await?;
        written.map_err(|error| self.failed(Code::StateNotSaved, name, &error))
    }

    /// Removes the file, where it is there.
    ///
    /// # Errors
    /// It cannot be removed.
    pub async fn remove(&self, name: &str) -> Result<(), Problem> {
        let path = self.path(name);
        let remove = |controller: Rc<Controller>| -> env::LocalFuture<io::Result<()>> {
            Box::pin(async move { durable::remove_file(&*controller.core().files(), &path).await })
        };
        let removed = self.handle.call(remove).await?;
        removed.map_err(|error| self.failed(Code::StateNotSaved, name, &error))
    }

    fn failed(&self, code: Code, name: &str, error: &io::Error) -> Problem {
        let path = self.path(name);
        Problem::new(code, format!("{}: {error}", path.display()))
    }
}
