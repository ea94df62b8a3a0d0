//! A directory with a configuration, and the daemon that runs from it as a process.

use env::CoreHandle;
use serde_json::Value as Json;
use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// How long a daemon may take to be ready.
const START_TIME: Duration = Duration::from_secs(60);

/// The binary under test: what `CAUSEWAY_BIN` names, or what cargo has built beside this test.
///
/// # Panics
/// If there is none.
pub(crate) fn binary() -> PathBuf {
    let built = || {
        let test = std::env::current_exe().expect("a running program has a path");
        let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
        profile.join("causeway")
    };
    let path = std::env::var_os("CAUSEWAY_BIN").map_or_else(built, PathBuf::from);
    assert!(
        path.exists(),
        "{} is missing: `cargo build --bin causeway` makes it",
        path.display()
    );
    path
}

/// Where a daemon lives. The directory is gone at the end, unless the test panics or keeps it.
pub(crate) struct Site {
    dir: PathBuf,
    binary: PathBuf,
    keep: Cell<bool>,
}

/// What a command of the command line said.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it printed, to both outputs.
    pub(crate) text: String,
}

/// A daemon that is ready.
pub(crate) struct Daemon {
    child: Child,
    /// Where it serves.
    pub(crate) portal: SocketAddr,
}

impl Site {
    /// A directory with a `node.toml` that listens at free ports of the loopback interface; `more`
    /// is added to it.
    pub(crate) fn new(name: &str, more: &str) -> Self {
        Self::with_pool(name, "path = \"pool\"\n", more)
    }

    /// The same with these keys of its pool.
    pub(crate) fn with_pool(name: &str, pool: &str, more: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
        // Of an older run with the same number.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("the directory for temporary files can be used");
        let site = Self {
            dir,
            binary: binary(),
            keep: Cell::new(false),
        };
        let node = "schema = 1\n[node]\nname = \"proof\"\nstate_dir = \"data\"\n\
             [[portal_group]]\nname = \"default\"\ntag = 1\n\
             listen = [ { ip = \"127.0.0.1\", port = 0 } ]\n\
             [[pool]]\nname = \"default\"\n";
        let api = "[api]\nlisten = [\"unix:api.sock\"]\n";
        site.write("node.toml", &format!("{node}{pool}{api}{more}"));
        site
    }

    /// A path inside.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("the test's own directory can be written");
    }

    /// Leaves everything to be inspected; answers where it is.
    pub(crate) fn keep(&self) -> String {
        self.keep.set(true);
        self.dir.display().to_string()
    }

    /// What the daemons have logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Starts a daemon and does not wait for it.
    pub(crate) fn spawn(&self) -> Child {
        let mut log = std::fs::OpenOptions::new();
        let log = log.create(true).append(true).open(self.path("log"));
        Command::new(&self.binary)
            .args(["serve", "--config", "node.toml"])
            .current_dir(&self.dir)
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stderr(log.expect("the log can be opened"))
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts")
    }

    /// Starts a daemon and waits until `causeway status` exits with 0.
    ///
    /// # Errors
    /// It ended, or did not become ready in time.
    pub(crate) async fn start(&self, core: &CoreHandle) -> Result<Daemon, String> {
        let mut child = self.spawn();
        let until = core.now().after(START_TIME);
        loop {
            let said = self.run("status -o json").await;
            if said.code == 0 {
                let portal = portal(&json(&said)).ok_or(said.text)?;
                return Ok(Daemon { child, portal });
            }
            let ended = child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || core.now() > until {
                let log = self.log();
                return Err(format!("not ready: {ended:?}\n{}\n{log}", said.text));
            }
            // There is no event to wait for: the promise is about asking.
            let pause = core.now().after(Duration::from_millis(5));
            core.sleep_until(pause).await;
        }
    }

    /// Runs a command of the command line against the daemon.
    pub(crate) async fn run(&self, arguments: &str) -> Said {
        let output = Command::new(&self.binary)
            .args(arguments.split(' '))
            .current_dir(&self.dir)
            .env("CAUSEWAY_API", "unix:api.sock")
            .env_remove("CAUSEWAY_TOKEN_FILE")
            .stdin(Stdio::null())
            .output()
            .await;
        said(&output.expect("the binary starts"))
    }

    /// Runs a command that must succeed.
    ///
    /// # Errors
    /// What it said, where it did not.
    pub(crate) async fn must(&self, arguments: &str) -> Result<String, String> {
        let said = self.run(arguments).await;
        match said.code {
            0 => Ok(said.text),
            code => Err(format!("{arguments}: exit code {code}\n{}", said.text)),
        }
    }

    /// The document that a command answers.
    ///
    /// # Errors
    /// What it said, where it did not succeed.
    pub(crate) async fn json(&self, arguments: &str) -> Result<Json, String> {
        let text = self.must(&format!("{arguments} -o json")).await?;
        serde_json::from_str(&text).map_err(|error| format!("{arguments}: {error}\n{text}"))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.keep.get() {
            // A directory that stays does no harm.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

impl Daemon {
    /// Kills it with SIGKILL, without waiting for its end.
    pub(crate) fn strike(&mut self) {
        self.child.start_kill().expect("a child can be killed");
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) {
        self.child.wait().await.expect("a child can be waited for");
    }
}

fn said(output: &Output) -> Said {
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    Said {
        code: output.status.code().unwrap_or(-1),
        text: format!("{out}{err}"),
    }
}

fn json(said: &Said) -> Json {
    serde_json::from_str(&said.text).unwrap_or(Json::Null)
}

fn portal(status: &Json) -> Option<SocketAddr> {
    status["portals"][0]["address"].as_str()?.parse().ok()
}
