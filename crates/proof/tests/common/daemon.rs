//! The real daemon, in a directory of its own, on ports of its own.

use super::tools::{Said, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use test_ports::free_port;

/// All names of targets begin so.
pub(crate) const IQN: &str = "iqn.2026-11.io.causeway";

/// A running daemon.
pub(crate) struct Daemon {
    pub(crate) dir: PathBuf,
    child: Option<Child>,
    binary: PathBuf,
    /// Two portals of one group.
    pub(crate) portals: [String; 2],
}

/// What `CAUSEWAY_BIN` names, or the binary beside the tests: `target/PROFILE/deps/THIS_TEST` ->
/// `target/PROFILE/causeway`.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("CAUSEWAY_BIN") {
        return PathBuf::from(named);
    }
    let this = std::env::current_exe().unwrap();
    let binary = this.parent().unwrap().parent().unwrap().join("causeway");
    assert!(
        binary.exists(),
        "{} is missing; next step: cargo build --bin causeway (scripts/test does it)",
        binary.display()
    );
    binary
}

impl Daemon {
    /// Starts a daemon without objects and waits until it says that it is ready.
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, "")
    }

    /// The same with more in its `node.toml`.
    pub(crate) fn start_with(name: &str, more: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("cw-proof-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        for pool in ["pool", "fast"] {
            std::fs::create_dir_all(dir.join(pool)).unwrap();
        }
        let [one, two] = [(), ()].map(|()| free_port());
        let text = format!(
            "schema = 1\n[node]\nname = \"proof\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\n\
             tag = 1\nlisten = [ {{ ip = \"127.0.0.1\", port = {one} }}, {{ ip = \"127.0.0.1\", port = {two} }} ]\n\
             [[pool]]\nname = \"default\"\npath = \"pool\"\n[api]\nlisten = [\"unix:api.sock\"]\n{more}"
        );
        std::fs::write(dir.join("node.toml"), text).unwrap();
        let socket = dir.join("notify.sock");
        let ready = UnixDatagram::bind(&socket).unwrap();
        let minute = Some(Duration::from_secs(60));
        ready.set_read_timeout(minute).unwrap();
        let binary = binary();
        let child = Command::new(&binary)
            .args(["serve", "--config", "node.toml"])
            .current_dir(&dir)
            .env("NOTIFY_SOCKET", &socket)
            .stderr(File::create(dir.join("log")).unwrap())
            .spawn()
            .unwrap();
        let daemon = Self {
            dir,
            child: Some(child),
            binary,
            portals: [one, two].map(|port| format!("127.0.0.1:{port}")),
        };
        let mut reported = [0; 64];
        let length = ready.recv(&mut reported).expect("READY=1 within a minute");
        assert_eq!(&reported[..length], b"READY=1\n");
        daemon
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// A path in the daemon's directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Runs `causeway` with this daemon's address.
    pub(crate) fn causeway(&self, arguments: &[&str]) -> Said {
        let api = format!("unix:{}", self.path("api.sock"));
        let mut all = vec!["--api", &api];
        all.extend(arguments);
        run(60, self.binary.to_str().unwrap(), &all)
    }

    /// Brings the objects to what `text` says.
    pub(crate) fn apply(&self, text: &str) {
        let file = self.path("objects.toml");
        std::fs::write(&file, text).unwrap();
        let said = self.causeway(&["apply", "-f", &file]);
        assert_eq!(said.code, Some(0), "{}", said.text);
    }

    /// `iscsi://` of a LUN at one of the two portals.
    pub(crate) fn url(&self, portal: usize, target: &str, lun: u16) -> String {
        format!("iscsi://{}/{IQN}:{target}/{lun}", self.portals[portal])
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(Path::new(&self.path("log"))).unwrap()
    }

    /// Stops it as an administrator would: it must still serve, have panicked nowhere, and end with
    /// code 0.
    pub(crate) fn stop(mut self) {
        let status = self.causeway(&["status"]);
        assert_eq!(status.code, Some(0), "{}", status.text);
        let mut child = self.child.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let code = child.wait().unwrap().code();
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
        assert_eq!(code, Some(0), "{log}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            for line in tail.iter().rev() {
                eprintln!("daemon: {line}");
            }
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
