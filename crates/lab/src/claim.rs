//! The name of a lab, which is its alone, and the removal of what a lab left.
//!
//! A lab holds the lock of `/run/causeway-lab/NAME.lock` as long as its process lives; everything
//! that it makes bears its name: namespaces `NAME-host`, and its directory, which the lock file
//! names. Whoever gets the lock of another lab's file knows that its process is gone, however it
//! ended, and clears up after it. Labs side by side have other names.

use crate::error::LabError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What every name begins with.
const PREFIX: &str = "causeway-lab-";
const NAMESPACES: &str = "/run/netns";

/// Where labs have their locks.
fn registry() -> PathBuf {
    PathBuf::from("/run/causeway-lab")
}

/// A lab's name and place. Dropping it ends every process in its namespaces and removes them.
#[derive(Debug)]
pub struct Claim {
    name: String,
    dir: PathBuf,
    lock: PathBuf,
    _held: File,
}

/// Clears up after labs that are gone.
///
/// # Errors
/// Where this machine cannot have a lab, or its registry cannot be read.
pub fn clean() -> Result<(), LabError> {
    crate::tool::can_have_one()?;
    let registry = registry();
    let failed = |error: io::Error| LabError::system("the registry of labs", &error);
    fs::create_dir_all(&registry).map_err(failed)?;
    let guard = open(&registry.join("guard")).map_err(failed)?;
    flock(&guard, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    sweep(&registry).map_err(failed)
}

impl Claim {
    /// Clears up after labs that are gone, and takes a free name.
    ///
    /// # Errors
    /// Where this machine cannot have a lab, or its registry cannot be written.
    pub fn take() -> Result<Self, LabError> {
        crate::tool::can_have_one()?;
        let registry = registry();
        let failed = |error: io::Error| LabError::system("the registry of labs", &error);
        fs::create_dir_all(&registry).map_err(failed)?;
        // No other lab tests it between the making of a lock file and its lock.
        let guard = open(&registry.join("guard")).map_err(failed)?;
        flock(&guard, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        sweep(&registry).map_err(failed)?;
        for number in 1..10_000_u32 {
            let name = format!("{PREFIX}{number}");
            let lock = registry.join(format!("{name}.lock"));
            if lock.exists() {
                continue;
            }
            let dir = std::env::temp_dir().join(&name);
            let held = open(&lock).map_err(failed)?;
            flock(&held, FlockOperation::NonBlockingLockExclusive)
                .map_err(|error| failed(error.into()))?;
            (&held)
                .write_all(dir.as_os_str().as_encoded_bytes())
                .map_err(failed)?;
            let _old = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).map_err(failed)?;
            return Ok(Self {
                name,
                dir,
                lock,
                _held: held,
            });
        }
        Err(LabError::new(
            "ten thousand labs run here",
            "end some of them",
        ))
    }

    /// What its namespaces and its directory begin with.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name of its namespace `part`.
    #[must_use]
    pub fn namespace(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    /// Where its namespace `part` is found.
    #[must_use]
    pub fn namespace_path(&self, part: &str) -> PathBuf {
        Path::new(NAMESPACES).join(self.namespace(part))
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        remove(&self.name, &self.dir);
        let _gone = fs::remove_file(&self.lock);
    }
}

/// Names and directories of labs whose processes live, or did until just now.
pub(crate) fn places() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(registry()).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let place = |path: PathBuf| {
        let name = path.file_stem()?.to_str()?.to_owned();
        let dir = fs::read_to_string(&path).ok()?;
        (name.starts_with(PREFIX) && !dir.is_empty()).then(|| (name, PathBuf::from(dir)))
    };
    paths.filter_map(place).collect()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Clears up after every lab whose process is gone.
fn sweep(registry: &Path) -> io::Result<()> {
    let mut alive = Vec::new();
    for entry in fs::read_dir(registry)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or("");
        if !stem.starts_with(PREFIX) || path.extension().is_none_or(|it| it != "lock") {
            continue;
        }
        let mut file = open(&path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            alive.push(stem.to_owned());
            continue;
        }
        let mut dir = String::new();
        file.read_to_string(&mut dir)?;
        remove(stem, Path::new(&dir));
        fs::remove_file(&path)?;
    }
    // Namespaces whose lock file is gone, such as after /run was cleared.
    for name in namespaces() {
        let owner = name.rsplit_once('-').map_or("", |(owner, _)| owner);
        if !alive.iter().any(|it| it == owner) {
            remove_namespace(&name);
        }
    }
    Ok(())
}

/// All namespaces of labs.
fn namespaces() -> Vec<String> {
    let Ok(entries) = fs::read_dir(NAMESPACES) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Ends what runs in the lab's namespaces, and removes them and its directory.
fn remove(name: &str, dir: &Path) {
    for namespace in namespaces() {
        if namespace.rsplit_once('-').is_some_and(|(it, _)| it == name) {
            remove_namespace(&namespace);
        }
    }
    let ours = dir.file_name().and_then(|it| it.to_str());
    if ours.is_some_and(|it| it.starts_with(PREFIX)) {
        let _gone = fs::remove_dir_all(dir);
    }
}

/// Removal is best effort: what cannot be removed now is tried again by the next lab.
fn remove_namespace(namespace: &str) {
    let ip = |words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(words).stdin(Stdio::null());
        command.stderr(Stdio::null()).output()
    };
    if let Ok(output) = ip(&["netns", "pids", namespace]) {
        for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
            let number = word.parse().ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = number {
                let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
    let _gone = ip(&["netns", "del", namespace]);
}
