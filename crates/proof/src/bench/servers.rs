//! Starting and stopping what is measured: the null server, Causeway, tgt and istgt, each with a
//! unit in memory.

use super::figures::Unit;
use super::usage;
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Target's name in all of them.
pub const TARGET: &str = "iqn.2026-11.io.causeway:bench";

/// Where programs and files are.
#[derive(Clone, Debug)]
pub struct Place {
    /// The `causeway` binary.
    pub causeway: PathBuf,
    /// This binary, which is also the null server.
    pub bench: PathBuf,
    /// Directory for configurations, sockets and logs.
    pub work: PathBuf,
}

/// A server that runs. Dropping it ends it.
pub struct Server {
    /// For people.
    pub name: String,
    /// Where clients find what it exports.
    pub unit: Unit,
    child: Child,
    /// Files that it leaves behind.
    leaves: Vec<PathBuf>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        for file in &self.leaves {
            let _gone = fs::remove_file(file);
        }
    }
}

impl Server {
    /// The process identifier of its first process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

/// How Causeway is to run.
#[derive(Clone, Debug)]
pub struct Causeway {
    /// For people and for its directory.
    pub name: &'static str,
    /// Processors of its cores.
    pub cores: &'static [usize],
    /// Bytes of a block.
    pub block: usize,
    /// Bytes of the unit.
    pub bytes: u64,
    /// In files of a pool here, else in memory.
    pub pool: Option<PathBuf>,
    /// Units beside the first.
    pub more_units: usize,
    /// Busy polling.
    pub poll_us: u32,
    /// More lines of the unit in objects.toml.
    pub unit_lines: &'static str,
    /// MiB of the pool's journal, beside the pool; 0: it has none.
    pub journal_mib: u64,
    /// More lines of node.toml, as tables of their own.
    pub node_lines: &'static str,
}

impl Causeway {
    /// In memory, blocks of 512 bytes, on processor 1.
    #[must_use]
    pub const fn usual(bytes: u64) -> Self {
        Self {
            name: "causeway",
            cores: &[1],
            block: 512,
            bytes,
            pool: None,
            more_units: 0,
            poll_us: 0,
            unit_lines: "",
            journal_mib: 0,
            node_lines: "",
        }
    }
}

/// Waits a little.
pub fn pause(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "other programs say in no other way that they are ready"
    )]
    std::thread::sleep(time);
}

/// Probes every 20 ms, for at most 60 s, until a server is ready or gone.
fn until(child: &mut Child, log: &Path, mut ready: impl FnMut() -> bool) -> Result<(), String> {
    for _ in 0..3000 {
        if ready() {
            return Ok(());
        }
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            break;
        }
        pause(Duration::from_millis(20));
    }
    let said = fs::read_to_string(log).unwrap_or_default();
    Err(format!("{} does not become ready: {said}", log.display()))
}

fn log_of(place: &Place, name: &str) -> PathBuf {
    place.work.join(format!("{name}.log"))
}

fn free_port() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Starts a program on these processors, with its output in a file.
fn start(place: &Place, name: &str, cores: &[usize], words: &[&str]) -> Result<Child, String> {
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let log = fs::File::create(log_of(place, name)).map_err(failed)?;
    let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
    // It ends with us, whatever ends us.
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "taskset", "-c", &list.join(",")])
        .args(words)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        .spawn()
        .map_err(failed)
}

fn call(program: &str, words: &[&str]) -> Result<Output, String> {
    let output = Command::new(program).args(words).output();
    output.map_err(|error| format!("{program}: {error}"))
}

fn must(program: &str, words: &[&str]) -> Result<String, String> {
    let output = call(program, words)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {said}", words.join(" ")))
}

/// Processor on which single-core servers run: the client has processor 0 where there are two.
fn server_core() -> usize {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    // `taskset` may have narrowed this process; the machine has what /proc says.
    let reported = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let machine = reported
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    usize::from(machine.max(all) > 1)
}

/// The null server.
///
/// # Errors
/// Why it does not run.
pub fn null(place: &Place, bytes: u64) -> Result<Server, String> {
    let portal = free_port()?;
    let bench = place.bench.to_string_lossy();
    let (at, size) = (portal.to_string(), bytes.to_string());
    let child = start(
        place,
        "null",
        &[server_core()],
        &[&bench, "null", &at, &size, "512"],
    )?;
    let process = child.id();
    let mut server = Server {
        name: "null".to_owned(),
        unit: Unit {
            portal,
            target: TARGET.to_owned(),
            lun: 0,
            block: 512,
            bytes,
            processes: vec![process],
        },
        child,
        leaves: Vec::new(),
    };
    until(&mut server.child, &log_of(place, "null"), || {
        TcpStream::connect(portal).is_ok()
    })?;
    Ok(server)
}

/// Causeway, with its objects.
///
/// # Errors
/// Why it does not run.
pub fn causeway(place: &Place, how: &Causeway) -> Result<Server, String> {
    let work = place.work.join(how.name);
    // What an earlier one of this name left.
    let _none = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    write(&work.join("objects.toml"), &objects(how))?;
    let server = again(place, how)?;
    let file = work.join("objects.toml");
    control(place, how, &["apply", "-f", &file.to_string_lossy()])?;
    Ok(server)
}

/// Says something to a Causeway that runs.
///
/// # Errors
/// What it answers where it refuses.
pub fn control(place: &Place, how: &Causeway, words: &[&str]) -> Result<String, String> {
    let api = format!(
        "unix:{}",
        place.work.join(how.name).join("api.sock").display()
    );
    let mut all = vec!["--api", &api];
    all.extend_from_slice(words);
    must(&place.causeway.to_string_lossy(), &all)
}

/// What `lun ls` prints.
///
/// # Errors
/// Where it fails.
pub fn list_units(place: &Place, how: &Causeway) -> Result<String, String> {
    control(place, how, &["lun", "ls"])
}

/// What `pool show` reports of the pool's journal.
///
/// # Errors
/// Where it fails.
pub fn journal_facts(place: &Place, how: &Causeway) -> Result<Value, String> {
    let reported = control(place, how, &["-o", "json", "pool", "show", "default"])?;
    let pool: Value =
        serde_json::from_str(&reported).map_err(|error| format!("{error}: {reported}"))?;
    Ok(pool["journal"].clone())
}

/// The journal's file of the pool in this directory.
#[must_use]
pub fn journal_of(pool: &Path) -> PathBuf {
    pool.with_extension("journal")
}

/// Causeway with the objects that it had.
///
/// # Errors
/// Why it does not run.
pub fn again(place: &Place, how: &Causeway) -> Result<Server, String> {
    let portal = free_port()?;
    let work = place.work.join(how.name);
    let cores: Vec<String> = how.cores.iter().map(ToString::to_string).collect();
    let pool = how.pool.as_deref().map_or(String::new(), |path| {
        let journal = match how.journal_mib {
            0 => String::new(),
            mib => format!(
                "journal = \"{}\"\njournal_size = \"{mib}MiB\"\n",
                journal_of(path).display()
            ),
        };
        format!(
            "[[pool]]\nname = \"default\"\npath = \"{}\"\n{journal}",
            path.display()
        )
    });
    let node = format!(
        "schema = 1\n[node]\nname = \"bench\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\n\
         tag = 1\nlisten = [ {{ ip = \"127.0.0.1\", port = {} }} ]\n{pool}[api]\nlisten = [\"unix:api.sock\"]\n\
         [runtime]\ncores = [{}]\npoll_us = {}\n{}",
        portal.port(),
        cores.join(", "),
        how.poll_us,
        how.node_lines
    );
    let config = work.join("node.toml");
    write(&config, &node)?;
    let binary = place.causeway.to_string_lossy();
    let words = [&binary, "serve", "--config", &config.to_string_lossy()];
    let child = start(place, how.name, how.cores, &words)?;
    let process = child.id();
    let mut server = Server {
        name: how.name.to_owned(),
        unit: Unit {
            portal,
            target: TARGET.to_owned(),
            lun: 0,
            block: how.block,
            bytes: how.bytes,
            processes: vec![process],
        },
        child,
        leaves: Vec::new(),
    };
    until(&mut server.child, &log_of(place, how.name), || {
        control(place, how, &["status"]).is_ok()
    })?;
    Ok(server)
}

fn objects(how: &Causeway) -> String {
    let backend = if how.pool.is_some() {
        "pool = \"default\"\nthin = false"
    } else {
        "backend = \"memory\""
    };
    let mut text = format!(
        "schema = 1\n[[lun]]\nname = \"bench\"\nsize = {}\nblock_size = {}\n{backend}\n{}\n\
         [[target]]\nname = \"bench\"\niqn = \"{TARGET}\"\n[[host]]\nname = \"all\"\niqn = [\"*\"]\n\
         [[grant]]\nhost = \"all\"\nlun = \"bench\"\ntarget = \"bench\"\nlun_id = 0\n",
        how.bytes, how.block, how.unit_lines
    );
    for number in 0..how.more_units {
        text.push_str(&format!(
            "[[lun]]\nname = \"unit{number}\"\nsize = \"1MiB\"\nbackend = \"memory\"\n"
        ));
    }
    text
}

/// tgt, over a file in memory.
///
/// # Errors
/// Why it does not run.
pub fn tgt(place: &Place, bytes: u64) -> Result<Server, String> {
    let portal = free_port()?;
    let backing = memory_file(place, "tgt", bytes)?;
    let control = std::process::id().to_string();
    let at = format!("portal={portal}");
    let child = start(
        place,
        "tgt",
        &[server_core()],
        &["tgtd", "-f", "-C", &control, "--iscsi", &at],
    )?;
    let process = child.id();
    let mut server = Server {
        name: "tgt".to_owned(),
        unit: Unit {
            portal,
            target: TARGET.to_owned(),
            lun: 1,
            block: 512,
            bytes,
            processes: vec![process],
        },
        child,
        leaves: vec![backing.clone()],
    };
    let adm = |words: &str| -> Result<String, String> {
        let all = format!("-C {control} --lld iscsi {words}");
        must("tgtadm", &all.split(' ').collect::<Vec<_>>())
    };
    until(&mut server.child, &log_of(place, "tgt"), || {
        adm("--op show --mode target").is_ok()
    })?;
    let path = backing.display();
    adm(&format!(
        "--op new --mode target --tid 1 --targetname {TARGET}"
    ))?;
    adm(&format!(
        "--op new --mode logicalunit --tid 1 --lun 1 --backing-store {path} --bstype rdwr"
    ))?;
    adm("--op bind --mode target --tid 1 --initiator-address ALL")?;
    Ok(server)
}

/// A file of zeroes in memory, named after our directory, so that whoever removes that can remove
/// this as well.
fn memory_file(place: &Place, name: &str, bytes: u64) -> Result<PathBuf, String> {
    let run = place.work.file_name().unwrap_or_default().to_string_lossy();
    let path = PathBuf::from(format!("/dev/shm/causeway-bench-{run}-{name}"));
    let made = fs::File::create(&path).and_then(|file| file.set_len(bytes));
    made.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// istgt, over a file in memory.
///
/// # Errors
/// Why it does not run.
pub fn istgt(place: &Place, bytes: u64) -> Result<Server, String> {
    let portal = free_port()?;
    let control = free_port()?;
    let backing = memory_file(place, "istgt", bytes)?;
    let work = place.work.join("istgt");
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    write(
        &work.join("auth.conf"),
        "[AuthGroup9999]\n  Auth \"none\" \"none\"\n",
    )?;
    let directory = work.display();
    let (node_base, _) = TARGET.split_once(':').expect("the name has a colon");
    // What the package's example says, with a queue and lengths that hold the cases' depths.
    let config = format!(
        "[Global]\n  NodeBase \"{node_base}\"\n  PidFile {directory}/pid\n  AuthFile {directory}/auth.conf\n  \
         MediaDirectory {directory}\n  LogFacility \"local7\"\n  Timeout 30\n  NopInInterval 20\n  \
         DiscoveryAuthMethod Auto\n  MaxSessions 64\n  MaxConnections 4\n  MaxR2T 32\n  MaxOutstandingR2T 16\n  \
         DefaultTime2Wait 2\n  DefaultTime2Retain 60\n  FirstBurstLength 262144\n  MaxBurstLength 1048576\n  \
         MaxRecvDataSegmentLength 262144\n  InitialR2T Yes\n  ImmediateData Yes\n  DataPDUInOrder Yes\n  \
         DataSequenceInOrder Yes\n  ErrorRecoveryLevel 0\n\
         [UnitControl]\n  AuthMethod None\n  Portal UC1 {control}\n  Netmask 127.0.0.1\n\
         [PortalGroup1]\n  Portal DA1 {portal}\n\
         [InitiatorGroup1]\n  InitiatorName \"ALL\"\n  Netmask ALL\n\
         [LogicalUnit1]\n  TargetName bench\n  TargetAlias \"bench\"\n  Mapping PortalGroup1 InitiatorGroup1\n  \
         AuthMethod None\n  UseDigest Auto\n  UnitType Disk\n  QueueDepth 64\n  LUN0 Storage {} {}MB\n",
        backing.display(),
        bytes >> 20
    );
    write(&work.join("istgt.conf"), &config)?;
    let file = work.join("istgt.conf");
    let child = start(
        place,
        "istgt",
        &[server_core()],
        &["istgt", "-D", "-c", &file.to_string_lossy()],
    )?;
    let process = child.id();
    let mut server = Server {
        name: "istgt".to_owned(),
        unit: Unit {
            portal,
            target: TARGET.to_owned(),
            lun: 0,
            block: 512,
            bytes,
            processes: vec![process],
        },
        child,
        leaves: vec![backing],
    };
    until(&mut server.child, &log_of(place, "istgt"), || {
        TcpStream::connect(portal).is_ok() && usage::of_process(process).is_ok()
    })?;
    Ok(server)
}
