//! A file system that is soon full.

use std::path::{Path, PathBuf};

/// Whether this test may mount: only root may.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A file system of `bytes` bytes in memory, gone at the end.
pub(crate) struct SmallFileSystem(PathBuf);

impl SmallFileSystem {
    /// Mounts it at `path`, which is made.
    ///
    /// # Errors
    /// Why it cannot be mounted.
    pub(crate) fn mount(path: &Path, bytes: u64) -> Result<Self, String> {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"]);
        let output = mount.arg(path).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(Self(path.to_owned()));
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        // `--lazy`: whatever still has it open keeps it until it ends.
        let _ = unmount.arg("--lazy").arg(&self.0).output();
    }
}
