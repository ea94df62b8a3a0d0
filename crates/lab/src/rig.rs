//! Our target in a bed's target namespace, and our bench in its host namespace.

use crate::bed::{Bed, Side, Topology};
use crate::error::LabError;
use crate::figures::Figures;
use crate::tool::{inside, missing};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Where the target's portals listen.
const PORT: u16 = 3260;
const IQN: &str = "iqn.2026-11.io.causeway:lab";
/// What a start of the target takes at most.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The LUN under test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Its size in MiB.
    pub mebibytes: u32,
    /// Logical block.
    pub block_size: u16,
    /// In memory, which is lost when the target ends, or in a file.
    pub in_memory: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            mebibytes: 512,
            block_size: 512,
            in_memory: true,
        }
    }
}

/// What a run may use, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Use {
    /// The NICs by name; empty: all.
    pub from: Vec<String>,
    /// Pairs of NIC and port that are plugged into one switch of their own; empty: everything
    /// reaches everything.
    pub wired: Vec<(usize, usize)>,
    /// Options of the initiator and the bench.
    pub words: Vec<String>,
    /// Nothing says to the initiator what its NICs and the target's ports stand for: it goes by
    /// what the system says, which of a veth is 10 Gb/s.
    pub unreported: bool,
}

impl Use {
    /// Everything, with these words.
    #[must_use]
    pub fn all(words: &[&str]) -> Self {
        Self {
            words: words.iter().map(|it| (*it).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Only these NICs.
    #[must_use]
    pub fn from(mut self, nics: &[&str]) -> Self {
        self.from = nics.iter().map(|it| (*it).to_owned()).collect();
        self
    }

    /// Only these pairs.
    #[must_use]
    pub fn wired(mut self, pairs: &[(usize, usize)]) -> Self {
        self.wired = pairs.to_vec();
        self
    }

    /// Without a word about cards and rates.
    #[must_use]
    pub fn unreported(mut self) -> Self {
        self.unreported = true;
        self
    }

    /// With these words too.
    #[must_use]
    pub fn with<S: AsRef<str>>(mut self, words: &[S]) -> Self {
        self.words
            .extend(words.iter().map(|it| it.as_ref().to_owned()));
        self
    }
}

/// A bed with the programs in it.
#[derive(Debug)]
pub struct Rig {
    bed: Bed,
    program: PathBuf,
    target: Option<Child>,
}

impl Rig {
    /// Builds a bed and starts the target `program` in it.
    ///
    /// # Errors
    /// What the system refused, or why the target did not start.
    pub async fn start(program: &Path, topology: Topology, disk: &Disk) -> Result<Self, LabError> {
        let mut rig = Self {
            bed: Bed::build(topology).await?,
            program: program.to_owned(),
            target: None,
        };
        rig.configure(disk)?;
        rig.start_target().await?;
        let apply = rig
            .control(&["apply", "-f", &rig.file("objects.toml")])
            .await;
        apply?;
        Ok(rig)
    }

    /// The namespaces and ports that it was built from.
    #[must_use]
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    fn file(&self, name: &str) -> String {
        self.bed.dir().join(name).display().to_string()
    }

    fn configure(&self, disk: &Disk) -> Result<(), LabError> {
        let topology = self.bed.topology();
        let portals = (0..topology.target.len()).map(|number| {
            let ip = topology.address(Side::Target, number);
            format!("{{ ip = \"{ip}\", port = {PORT} }}")
        });
        let portals: Vec<String> = portals.collect();
        let node = format!(
            "schema = 1\n[node]\nname = \"lab\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
             listen = [ {} ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n[api]\nlisten = [\"unix:api.sock\"]\n",
            portals.join(", ")
        );
        let backend = if disk.in_memory {
            "backend = \"memory\"\n"
        } else {
            ""
        };
        let objects = format!(
            "[[lun]]\nname = \"lab\"\nsize = \"{}MiB\"\nblock_size = {}\n{backend}[[target]]\nname = \"lab\"\niqn = \"{IQN}\"\n\
             portal_group = \"default\"\n[[host]]\nname = \"any\"\niqn = [\"*\"]\n[[grant]]\nhost = \"any\"\nlun = \"lab\"\n\
             target = \"lab\"\nlun_id = 0\n",
            disk.mebibytes, disk.block_size
        );
        self.write("node.toml", &node)?;
        self.write("objects.toml", &objects)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), LabError> {
        let done = fs::write(self.file(name), text);
        done.map_err(|error| LabError::system("writing a file of the lab", &error))
    }

    fn command(&self, side: Side) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.bed.namespace(side)])
            .arg(&self.program)
            .env("CAUSEWAY_INITIATOR_STATE", self.file("initiator"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Starts the target, and waits until it serves.
    ///
    /// # Errors
    /// What it said where it ended.
    pub async fn start_target(&mut self) -> Result<(), LabError> {
        let log = fs::File::create(self.file("serve.log"));
        let log = log.map_err(|error| LabError::system("the target's log", &error))?;
        let mut command = self.command(Side::Target);
        command
            .args(["serve", "--config", &self.file("node.toml")])
            .current_dir(self.bed.dir())
            .stdout(Stdio::null())
            .stderr(log);
        let mut child = command.spawn().map_err(|error| missing("ip", &error))?;
        let until = Instant::now() + START_LIMIT;
        loop {
            if self.control(&["status"]).await.is_ok() {
                self.target = Some(child);
                return Ok(());
            }
            let ended = child.try_wait().ok().flatten().is_some();
            if ended || Instant::now() > until {
                let said = fs::read_to_string(self.file("serve.log")).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(3).collect();
                return Err(LabError::new(
                    format!("the target did not start: {}", last.join(" | ")),
                    "see the cause in the message",
                ));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the target without a warning, as a crash does.
    ///
    /// # Errors
    /// Where it cannot be waited for.
    pub async fn kill_target(&mut self) -> Result<(), LabError> {
        if let Some(mut child) = self.target.take() {
            let done = child.kill().await;
            done.map_err(|error| LabError::system("ending the target", &error))?;
        }
        Ok(())
    }

    /// A command to the target's daemon.
    async fn control(&self, words: &[&str]) -> Result<String, LabError> {
        let api = format!("unix:{}", self.file("api.sock"));
        let output = Command::new(&self.program)
            .args(["--api", &api])
            .args(words)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| LabError::system("the program under test", &error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(LabError::new(
            format!("`causeway {}`: {}", words.join(" "), said.trim()),
            "see the cause in the message",
        ))
    }

    /// The LUN's URL through all portals.
    #[must_use]
    pub fn url(&self) -> String {
        let topology = self.bed.topology();
        let all = (0..topology.target.len())
            .map(|number| format!("{}:{PORT}", topology.address(Side::Target, number)));
        let all: Vec<String> = all.collect();
        format!("iscsi://{}/{IQN}/0", all.join(","))
    }

    /// The file that says to the initiator what its NICs and the target's ports stand for.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn facts(&self, how: &Use) -> Result<String, LabError> {
        let topology = self.bed.topology();
        let mut text = String::new();
        let fabric = |text: &mut String, number: Option<usize>| {
            if let Some(number) = number {
                let _fits = writeln!(text, "fabric = \"wire{number}\"");
            }
        };
        for (number, port) in topology.host.iter().enumerate() {
            // The initiator refuses facts about a NIC that it does not use.
            if !how.from.is_empty() && !how.from.contains(&port.name) {
                continue;
            }
            let (name, card, bits) = (&port.name, &port.card, port.rate.bits());
            let _fits = write!(
                text,
                "[[host_port]]\nname = \"{name}\"\ncard = \"{card}\"\nspeed = \"{bits}\"\n"
            );
            // Everything on the wire of a target's port carries that port's number.
            let wire = how.wired.iter().find(|(host, _)| *host == number);
            fabric(&mut text, wire.map(|(_, target)| *target));
        }
        for (number, port) in topology.target.iter().enumerate() {
            let ip = topology.address(Side::Target, number);
            let (card, bits) = (&port.card, port.rate.bits());
            let _fits = write!(
                text,
                "[[target_port]]\nportal = \"{ip}:{PORT}\"\ncard = \"{card}\"\nspeed = \"{bits}\"\n"
            );
            if let Some(controller) = &port.controller {
                let _fits = writeln!(text, "controller = \"{controller}\"");
            }
            fabric(&mut text, (!how.wired.is_empty()).then_some(number));
        }
        self.write("facts.toml", &text)?;
        Ok(self.file("facts.toml"))
    }

    /// Starts the bench; its document goes to standard output.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn spawn_bench(&self, how: &Use) -> Result<Child, LabError> {
        let mut command = self.bench_command(how)?;
        command.spawn().map_err(|error| missing("ip", &error))
    }

    /// Starts the bench as a program that is driven: it ends when its standard input does.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn spawn_driven(&self, how: &Use) -> Result<Child, LabError> {
        let mut command = self.bench_command(how)?;
        command.stdin(Stdio::piped());
        command.spawn().map_err(|error| missing("ip", &error))
    }

    fn bench_command(&self, how: &Use) -> Result<Command, LabError> {
        let mut command = self.command(Side::Host);
        command.args(["bench", "-Rjson", "--destroy"]);
        if !how.unreported {
            command.args(["--facts", &self.facts(how)?]);
        }
        for nic in &how.from {
            command.args(["--from", nic]);
        }
        command.args(&how.words).arg(self.url());
        command
            .current_dir(self.bed.dir())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// Runs the bench to its end, which must come within `limit`.
    ///
    /// # Errors
    /// What it said where it failed.
    pub async fn bench(&self, how: &Use, limit: Duration) -> Result<Figures, LabError> {
        let before = self.retransmits().await?;
        let child = self.spawn_bench(how)?;
        let output = timeout(limit, child.wait_with_output()).await;
        let Ok(output) = output else {
            return Err(LabError::new(
                format!("the bench did not end within {} s", limit.as_secs()),
                "check the initiator: a run must end",
            ));
        };
        let output = output.map_err(|error| LabError::system("the bench", &error))?;
        let mut figures = read_figures(&output.stdout, &output.stderr, output.status)?;
        figures.segments_again = self.retransmits().await?.saturating_sub(before);
        Ok(figures)
    }

    /// Segments that TCP of both sides sent again since the bed stands.
    ///
    /// # Errors
    /// Where a namespace cannot be read.
    pub async fn retransmits(&self) -> Result<u64, LabError> {
        let mut sum = 0;
        for side in [Side::Host, Side::Target] {
            let reported = inside(&self.bed.namespace(side), &["cat", "/proc/net/snmp"]).await?;
            sum += retransmitted(&reported).unwrap_or(0);
        }
        Ok(sum)
    }
}

/// The document of a bench that has ended.
pub(crate) fn read_figures(
    out: &[u8],
    err: &[u8],
    status: ExitStatus,
) -> Result<Figures, LabError> {
    // A run with errors in it ends with a failure, and has its document all the same.
    if let Ok(figures) = serde_json::from_slice::<Figures>(out) {
        return Ok(figures);
    }
    let said = String::from_utf8_lossy(err);
    let last: Vec<&str> = said.trim().lines().rev().take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(LabError::new(
        format!(
            "the bench gave no document ({status}): {}",
            last.join(" | ")
        ),
        "see the cause in the message",
    ))
}

/// `Tcp:` stands twice: names, then values.
fn retransmitted(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs
        .find(|(name, _)| *name == "RetransSegs")?
        .1
        .parse()
        .ok()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_kernels_count_is_found_by_its_name() {
        let text =
            "Ip: A B\nIp: 1 2\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 17 3\nUdp: X\nUdp: 1\n";
        assert_eq!(retransmitted(text), Some(17));
        assert_eq!(retransmitted("Tcp: RetransSegs\n"), None);
    }
}
