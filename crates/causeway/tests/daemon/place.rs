//! A daemon in a directory of its own, and the command line against it.

#[path = "answers.rs"]
mod answers;

use answers::Relay;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub(crate) const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// A directory with a configuration, gone at the end.
pub(crate) struct Place {
    dir: PathBuf,
}

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("cw-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let place = Self { dir };
        place.write(
            "node.toml",
            "schema = 1\n[node]\nname = \"n\"\nstate_dir = \"data\"\n[[portal_group]]\nname = \"default\"\n\
             tag = 1\nlisten = [ { ip = \"127.0.0.1\", port = 0 } ]\n[[pool]]\nname = \"default\"\n\
             path = \"data/pool\"\n[api]\nlisten = [\"unix:data/api.sock\", \"127.0.0.1:0\"]\n\
             [runtime]\ncores = [0]\ndriver = \"poll\"\n[health]\nevery_minutes = 0\n",
        );
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        if name.ends_with(".secret") {
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(self.path(name), mode).unwrap();
        }
    }

    /// Files in the pool's directory that are not the pool's own.
    pub(crate) fn left_of_luns(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("data/pool")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| !["pool.toml", "saved.json"].contains(&name.as_str()))
            .collect()
    }

    pub(crate) fn api(&self) -> String {
        format!("unix:{}", self.path("data/api.sock").display())
    }

    /// Runs a command; its standard input is `input`. What the daemon answers it at the socket is
    /// held against the document of the API.
    pub(crate) fn run_with(&self, api: &str, arguments: &[&str], input: &str) -> Output {
        let is_own = api == self.api();
        let relay = is_own.then(|| Relay::start(&self.path("data/api.sock")));
        let relay = relay.flatten();
        let api = relay.as_ref().map_or_else(|| api.to_owned(), Relay::api);
        let mut child = Command::new(CAUSEWAY)
            .args(arguments)
            .current_dir(&self.dir)
            .env("CAUSEWAY_API", api)
            .env_remove("CAUSEWAY_TOKEN_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        if let Some(relay) = relay {
            relay.end();
        }
        output
    }

    /// Runs a command that must end with `code`, and gives what it printed.
    pub(crate) fn run(&self, code: i32, arguments: &str) -> String {
        let words: Vec<&str> = arguments.split(' ').collect();
        let output = self.run_with(&self.api(), &words, "");
        text_of(&output, code, arguments)
    }

    pub(crate) fn json(&self, arguments: &str) -> serde_json::Value {
        serde_json::from_str(&self.run(0, &format!("{arguments} -o json"))).unwrap()
    }

    /// What `status` says is wrong, but for the room that this machine's own disk has.
    pub(crate) fn problems(&self) -> Vec<String> {
        let status = self.json("status");
        let all = status["problems"].as_array().cloned().unwrap_or_default();
        let all = all
            .iter()
            .map(|it| it.as_str().unwrap_or_default().to_owned());
        all.filter(|it| !it.contains("% free space")).collect()
    }

    /// `status --check` finds nothing wrong, but for the room that this machine's own disk has.
    pub(crate) fn is_well(&self) {
        let output = self.run_with(&self.api(), &["status", "--check"], "");
        let line = String::from_utf8_lossy(&output.stdout);
        let is_room = line.contains("% free space") && line.contains("problems=1");
        let code = if is_room { 1 } else { 0 };
        text_of(&output, code, "status --check");
    }

    /// The metrics as Prometheus gets them.
    pub(crate) fn metrics(&self) -> String {
        let status = self.json("status");
        let address = status["api"][1].as_str().unwrap();
        let address = address.strip_prefix("http://").unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        text
    }

    pub(crate) fn start(&self) -> Daemon {
        self.start_with(Stdio::piped())
    }

    /// With its log going where `log` leads.
    pub(crate) fn start_with(&self, log: Stdio) -> Daemon {
        let (daemon, ready) = self.spawn(log);
        is_ready(&ready);
        daemon
    }

    fn spawn(&self, log: Stdio) -> (Daemon, UnixDatagram) {
        let socket = self.path("notify.sock");
        let _ = std::fs::remove_file(&socket);
        let ready = UnixDatagram::bind(&socket).unwrap();
        ready
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let child = Command::new(CAUSEWAY)
            .args(["serve", "--config", "node.toml"])
            .current_dir(&self.dir)
            .env("NOTIFY_SOCKET", &socket)
            .stderr(log)
            .spawn()
            .unwrap();
        (Daemon { child: Some(child) }, ready)
    }
}

fn is_ready(socket: &UnixDatagram) {
    let mut message = [0; 64];
    let len = socket
        .recv(&mut message)
        .expect("the daemon says READY=1 within a minute");
    assert_eq!(&message[..len], b"READY=1\n");
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn text_of(output: &Output, code: i32, what: &str) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert_eq!(output.status.code(), Some(code), "{what}\n{out}{err}");
    format!("{out}{err}")
}

pub(crate) struct Daemon {
    child: Option<Child>,
}

impl Daemon {
    fn signal(&mut self, signal: Signal) -> (Option<i32>, String) {
        let mut child = self.child.take().unwrap();
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).unwrap();
        let mut log = String::new();
        if let Some(mut lines) = child.stderr.take() {
            lines.read_to_string(&mut log).unwrap();
        }
        (child.wait().unwrap().code(), log)
    }

    /// Stops it as systemd would; its log.
    pub(crate) fn stop(self) -> String {
        self.stop_by(Signal::TERM)
    }

    /// Stops it with a signal that it answers; its log.
    pub(crate) fn stop_by(mut self, signal: Signal) -> String {
        let (code, log) = self.signal(signal);
        assert_eq!(code, Some(0), "{log}");
        log
    }

    /// It stops answering, with its connections open.
    pub(crate) fn pause(&self) {
        self.send(Signal::STOP);
    }

    /// It answers again.
    pub(crate) fn go_on(&self) {
        self.send(Signal::CONT);
    }

    /// Sends a signal that does not end it.
    pub(crate) fn send(&self, signal: Signal) {
        let child = self.child.as_ref().unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
