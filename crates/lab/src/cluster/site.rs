//! Two nodes, etcd and a host that stand and serve a LUN, and orders to them.

use super::etcd::{self, Etcd};
use super::net::{HOST, NODES, Net, address, place};
use super::order::{Act, Order, Programs};
use super::program::Program;
use super::seen::{self, LUN, Mirror};
use crate::error::LabError;
use crate::rate::Rate;
use crate::tool::missing;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

const PORTAL: u16 = 3260;
const PEER: u16 = 7420;
const IQN: &str = "iqn.2026-11.io.causeway:t1";
/// What a start of a daemon, or the first copy, takes at most.
const START_MAX: Duration = Duration::from_secs(30);
/// What a command takes at most.
const COMMAND_MAX: Duration = Duration::from_secs(20);

/// What stands.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) net: Net,
    pub(super) etcd: Etcd,
    pub(super) nodes: Vec<Program>,
    program: PathBuf,
    /// Who served last, as it was seen.
    owner: usize,
}

/// The name of a node in the cluster.
fn name(at: usize) -> String {
    format!("san-{}", NODES[at])
}

impl Site {
    /// Builds it, and waits until both nodes have all of the LUN.
    pub(super) async fn start(
        program: &Path,
        rate: Rate,
        buffer_kib: u32,
    ) -> Result<Self, LabError> {
        etcd::has_etcd()?;
        let net = Net::build(rate, buffer_kib).await?;
        let etcd = Etcd::start(&net).await?;
        let mut site = Self {
            net,
            etcd,
            nodes: Vec::new(),
            program: program.to_owned(),
            owner: 0,
        };
        for at in 0..NODES.len() {
            let node = site.configure(at)?;
            site.nodes.push(node);
            site.start_node(at).await?;
        }
        site.join().await?;
        site.lun().await?;
        site.facts()?;
        Ok(site)
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.net.claim().dir().to_owned()
    }

    pub(super) fn host(&self) -> String {
        self.net.namespace(HOST)
    }

    fn api(&self, at: usize) -> PathBuf {
        self.nodes_dir(at).join("api.sock")
    }

    /// Where both nodes are asked.
    pub(super) fn sockets(&self) -> [PathBuf; 2] {
        [self.api(0), self.api(1)]
    }

    /// Everything runs, and no wire is harmed.
    pub(super) fn is_well(&self) -> bool {
        let mut programs = self.nodes.iter().chain(&self.etcd.members);
        self.net.harmed().is_empty() && programs.all(Program::runs)
    }

    fn nodes_dir(&self, at: usize) -> PathBuf {
        self.dir().join(NODES[at])
    }

    fn configure(&self, at: usize) -> Result<Program, LabError> {
        let (dir, part) = (self.nodes_dir(at), NODES[at]);
        let portals = [0, 1].map(|network| {
            let ip = address(part, network);
            format!("{{ ip = \"{ip}\", port = {PORTAL} }}")
        });
        let etcd = etcd::endpoints();
        let [ca, certificate, key] =
            [etcd::CA, etcd::CERTIFICATE, etcd::KEY].map(|name| self.dir().join(name));
        let text = format!(
            "schema = 1\n[node]\nname = \"{}\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = {}\n\
             listen = [ {} ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\njournal = \"journal\"\njournal_size = \"128MiB\"\n\
             [api]\nlisten = [\"unix:api.sock\"]\n[runtime]\ncores = [0]\n[health]\nevery_minutes = 0\n\
             [cluster]\netcd = {etcd:?}\netcd_ca = {ca:?}\netcd_certificate = {certificate:?}\netcd_key = {key:?}\nlisten = [\"{}:{PEER}\"]\n",
            name(at),
            at + 1,
            portals.join(", "),
            address(part, 2)
        );
        let failed = |error| LabError::system("a node's directory", &error);
        fs::create_dir_all(&dir).map_err(failed)?;
        fs::write(dir.join("node.toml"), text).map_err(failed)?;
        let words = [
            self.program.clone().into_os_string(),
            "serve".into(),
            "--config".into(),
            "node.toml".into(),
        ];
        let namespace = self.net.namespace(part);
        Ok(Program::new(&name(at), &namespace, dir, words.into()))
    }

    pub(super) async fn start_node(&mut self, at: usize) -> Result<(), LabError> {
        self.nodes[at].start()?;
        let until = Instant::now() + START_MAX;
        while seen::asked(&self.api(at), "status").await.is_none() {
            let ended = self.nodes[at].ended();
            if ended.is_some() || Instant::now() > until {
                return Err(LabError::new(
                    format!("{} did not start: {}", name(at), ended.unwrap_or_default()),
                    "see the cause in the message",
                ));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// A command to a node's daemon, from its directory.
    pub(super) async fn control(
        &self,
        at: usize,
        words: &[&str],
        input: &str,
    ) -> Result<String, LabError> {
        let failed = |error| LabError::system("the program under test", &error);
        let mut child = Command::new(&self.program)
            .args(words)
            .current_dir(self.nodes_dir(at))
            .env("CAUSEWAY_API", format!("unix:{}", self.api(at).display()))
            .env_remove("CAUSEWAY_TOKEN_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut to = child.stdin.take().expect("it is piped");
        // What ends early says why by itself.
        let _written = to.write_all(input.as_bytes()).await;
        drop(to);
        let output = timeout(COMMAND_MAX, child.wait_with_output()).await;
        let named = words.join(" ");
        let Ok(output) = output else {
            let what = format!("`causeway {named}` on {} does not end", name(at));
            return Err(LabError::new(what, "see what the node does"));
        };
        let output = output.map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(LabError::new(
            format!("`causeway {named}` on {}: {}", name(at), said.trim()),
            "see the cause in the message",
        ))
    }

    async fn join(&self) -> Result<(), LabError> {
        let here = ["-c", "node.toml"];
        let words = |words: [&'static str; 3]| [&words[..], &here].concat();
        self.control(0, &words(["cluster", "init", "lab"]), "")
            .await?;
        let token = self.control(0, &["cluster", "token", "-c", "node.toml"], "");
        let token = token.await?;
        self.control(1, &words(["cluster", "join", "-"]), &token)
            .await?;
        Ok(())
    }

    /// The LUN, shown to the host by both.
    async fn lun(&mut self) -> Result<(), LabError> {
        for at in 0..NODES.len() {
            self.control(at, &["target", "create", "t1"], "").await?;
            let host = ["host", "create", "any", "--iqn", "*"];
            self.control(at, &host, "").await?;
        }
        let copies = [name(0), name(1)].join(",");
        let create = ["lun", "create", LUN, "--size", "256M", "--copies", &copies];
        self.control(0, &create, "").await?;
        let until = Instant::now() + START_MAX;
        while seen::mirror(&self.api(1)).await.is_none() {
            if Instant::now() > until {
                let what = "the second node does not make its copy";
                return Err(LabError::new(what, "read the logs of both"));
            }
            sleep(Duration::from_millis(20)).await;
        }
        for at in 0..NODES.len() {
            self.control(at, &["grant", "create", "any", LUN], "")
                .await?;
        }
        if self.whole(START_MAX).await.is_none() {
            let what = "the copies do not come to be equal";
            return Err(LabError::new(what, "read the logs of both nodes"));
        }
        Ok(())
    }

    /// What the nodes say of the LUN now; none: a node does not answer.
    pub(super) async fn mirrors(&mut self) -> [Option<Mirror>; 2] {
        let (first, second) = (self.api(0), self.api(1));
        let both = tokio::join!(seen::mirror(&first), seen::mirror(&second));
        let both = [both.0, both.1];
        if let Some(owner) = seen::owner(&both) {
            self.owner = owner;
        }
        both
    }

    /// The highest epoch that a node knows of.
    pub(super) async fn epoch(&mut self) -> u64 {
        let both = self.mirrors().await;
        both.iter().flatten().map(|it| it.epoch).max().unwrap_or(0)
    }

    /// Waits until both copies have all of it; how long that took.
    pub(super) async fn whole(&mut self, most: Duration) -> Option<Duration> {
        let begun = Instant::now();
        while begun.elapsed() < most {
            if seen::are_whole(&self.mirrors().await) {
                return Some(begun.elapsed());
            }
            sleep(Duration::from_millis(20)).await;
        }
        None
    }

    /// Where the host finds the LUN.
    pub(super) fn url(&self) -> String {
        let portals = NODES
            .iter()
            .flat_map(|part| [0, 1].map(|network| format!("{}:{PORTAL}", address(part, network))));
        let portals: Vec<String> = portals.collect();
        format!("iscsi://{}/{IQN}/0", portals.join(","))
    }

    /// The file that says to the host what its NICs and the nodes' ports stand for.
    fn facts(&self) -> Result<(), LabError> {
        let mut text = String::new();
        for port in self.net.ports(HOST) {
            let (name, card, bits) = (&port.name, &port.card, port.rate.bits());
            let _fits = write!(
                text,
                "[[host_port]]\nname = \"{name}\"\ncard = \"{card}\"\nspeed = \"{bits}\"\n"
            );
        }
        for part in NODES {
            let ports = self.net.ports(part).into_iter();
            for port in ports.filter(|it| it.network < 2) {
                let (ip, bits) = (address(part, port.network), port.rate.bits());
                let card = port.card;
                let _fits = write!(
                    text,
                    "[[target_port]]\nportal = \"{ip}:{PORTAL}\"\ncard = \"{card}\"\nspeed = \"{bits}\"\n\
                     controller = \"{part}\"\n"
                );
            }
        }
        let done = fs::write(self.dir().join("facts.toml"), text);
        done.map_err(|error| LabError::system("writing a file of the lab", &error))
    }

    /// The words with which a load is run in the host's namespace.
    pub(super) fn load_words(&self, load: &[String]) -> Vec<String> {
        let facts = self.dir().join("facts.toml").display().to_string();
        let mut words = vec![self.program.display().to_string(), "bench".to_owned()];
        words.extend(["-Rjson", "--destroy", "--facts", &facts].map(str::to_owned));
        words.extend(load.iter().cloned());
        words.push(self.url());
        words
    }

    /// Starts a load; its document goes to standard output.
    pub(super) fn spawn_load(&self, load: &[String]) -> Result<Child, LabError> {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.host()])
            .args(self.load_words(load))
            .env("CAUSEWAY_INITIATOR_STATE", self.dir().join("initiator"))
            .current_dir(self.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command.spawn().map_err(|error| missing("ip", &error))
    }

    /// Does what is ordered, and does not wait for what follows from it.
    pub(super) async fn obey(&mut self, order: &Order) -> Result<(), LabError> {
        self.mirrors().await;
        match order {
            Order::Wire(harm, which) => self.net.set(*harm, which, self.owner).await,
            Order::Program(Act::Drain, Programs::Node(which)) => {
                let at = place(*which, self.owner);
                self.control(at, &["node", "drain"], "").await.map(drop)
            }
            Order::Program(act, which) => {
                for chosen in self.chosen(*act, *which).await? {
                    self.act(*act, chosen).await?;
                }
                Ok(())
            }
        }
    }

    /// Places of programs: nodes, then members.
    async fn chosen(&self, act: Act, which: Programs) -> Result<Vec<usize>, LabError> {
        let first = self.nodes.len();
        let members = first..first + self.etcd.members.len();
        Ok(match which {
            Programs::Node(which) => vec![place(which, self.owner)],
            Programs::Nodes => (0..first).collect(),
            Programs::Member(at) => vec![first + at],
            Programs::Leader => {
                let leader = self.etcd.leader().await;
                let none = || LabError::usage("no member of etcd leads", "name one: etcd-1");
                vec![first + leader.ok_or_else(none)?]
            }
            Programs::Majority => members.take(2).collect(),
            Programs::Etcd => members.collect(),
            // etcd first where it begins, and last where it ends.
            Programs::All if act == Act::Start => members.chain(0..first).collect(),
            Programs::All => (0..first).chain(members).collect(),
        })
    }

    async fn act(&mut self, act: Act, at: usize) -> Result<(), LabError> {
        let first = self.nodes.len();
        if act == Act::Start && at < first {
            return self.start_node(at).await;
        }
        let program = match at.checked_sub(first) {
            None => &mut self.nodes[at],
            Some(member) => &mut self.etcd.members[member],
        };
        match act {
            Act::Kill => program.kill().await,
            Act::Stop => program.stop().await,
            Act::Start => program.start(),
            Act::Pause => {
                program.pause();
                Ok(())
            }
            Act::Resume => {
                program.resume();
                Ok(())
            }
            Act::Drain => Err(LabError::usage("only a node is drained", "name one")),
        }
    }
}
