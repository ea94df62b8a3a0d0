//! Programs of a cluster's machines: daemons and members of etcd, each in its namespace.

use crate::error::LabError;
use crate::tool::missing;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// An orderly end takes as long at most.
const STOP_MAX: Duration = Duration::from_secs(20);

/// A program with its words, which runs or not.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    namespace: String,
    words: Vec<OsString>,
    dir: PathBuf,
    log: PathBuf,
    child: Option<Child>,
    paused: bool,
}

impl Program {
    /// It does not run yet. Its log and what it is started in: `dir`.
    pub(super) fn new(name: &str, namespace: &str, dir: PathBuf, words: Vec<OsString>) -> Self {
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            words,
            log: dir.join("log"),
            dir,
            child: None,
            paused: false,
        }
    }

    /// Where it stands, in a word.
    pub(super) fn state(&self) -> &'static str {
        match (&self.child, self.paused) {
            (None, _) => "down",
            (Some(_), true) => "paused",
            (Some(_), false) => "runs",
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.child.is_some() && !self.paused
    }

    pub(super) fn start(&mut self) -> Result<(), LabError> {
        if self.child.is_some() {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(|error| LabError::system("a log of the lab", &error))?;
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace])
            .args(&self.words)
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| missing("ip", &error))?;
        self.child = Some(child);
        self.paused = false;
        Ok(())
    }

    /// Whether it has ended by itself; what it said at last.
    pub(super) fn ended(&mut self) -> Option<String> {
        let child = self.child.as_mut()?;
        child.try_wait().ok().flatten()?;
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        Some(last.into_iter().rev().collect::<Vec<_>>().join(" | "))
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().and_then(Child::id);
        let pid = id.and_then(|it| i32::try_from(it).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // One that has ended by itself needs no signal.
            let _gone = kill_process(pid, signal);
        }
    }

    pub(super) async fn kill(&mut self) -> Result<(), LabError> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        self.paused = false;
        let done = child.kill().await;
        done.map_err(|error| LabError::system(&format!("ending {}", self.name), &error))
    }

    /// Ends it in order; the exit code counts.
    pub(super) async fn stop(&mut self) -> Result<(), LabError> {
        self.resume();
        self.signal(Signal::TERM);
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let ended = timeout(STOP_MAX, child.wait()).await;
        let well = matches!(&ended, Ok(Ok(status)) if status.success());
        if well {
            return Ok(());
        }
        Err(LabError::new(
            format!("{} did not end in order: {ended:?}", self.name),
            "read its log",
        ))
    }

    pub(super) fn pause(&mut self) {
        self.signal(Signal::STOP);
        self.paused = self.child.is_some();
    }

    pub(super) fn resume(&mut self) {
        self.signal(Signal::CONT);
        self.paused = false;
    }
}
