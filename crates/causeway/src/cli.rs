//! The words of the command line.

use crate::commands::path::PathVerb;
use crate::commands::{DoctorFlags, LabVerb, SortKey};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use manifest::code::Code;
use manifest::name::did_you_mean;
use manifest::objects::{CacheMode, TaskAbortedStatus};
use manifest::problem::Problem;
use manifest::size::Size;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Causeway: a software-defined SAN.
///
/// Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not found, 4 conflict, 5 refused by a
/// safety check, 6 partly done, 7 daemon unreachable. `causeway explain CODE` explains an error's
/// code.
#[derive(Parser, Debug)]
#[command(
    name = "causeway",
    version,
    max_term_width = 100,
    after_help = "To begin:\n  causeway serve --config node.toml\n  \
                  causeway share create vm01 --size 100G --for iqn.1998-01.com.vmware:esx01\n  \
                  causeway status"
)]
pub(crate) struct Cli {
    /// The daemon's API: unix:PATH or http://HOST:PORT
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        env = "CAUSEWAY_API",
        value_name = "ADDRESS",
        default_value = Cli::API_DEFAULT,
        hide_env_values = true
    )]
    pub(crate) api: String,

    /// File with the API's token; needed to change anything over TCP
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        env = "CAUSEWAY_TOKEN_FILE",
        value_name = "FILE",
        hide_env_values = true
    )]
    pub(crate) token_file: Option<PathBuf>,

    /// Form of the output: a table for people, or the API's JSON document
    #[arg(short, long, global = true, help_heading = "Options of every command", value_enum, default_value_t = Format::Table, value_name = "FORM")]
    pub(crate) output: Format,

    /// Do it although sessions are disturbed or data is lost
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        alias = "force"
    )]
    pub(crate) yes: bool,

    /// Only show what would be done
    #[arg(long, global = true, help_heading = "Options of every command")]
    pub(crate) dry_run: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Where the daemon's API is unless somebody says otherwise: as dist/node.toml has it.
    pub(crate) const API_DEFAULT: &'static str = "unix:/run/causeway/api.sock";
}

/// Forms of output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Format {
    /// A table; not for programs
    Table,
    /// The API's document
    Json,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Serve {
        /// The node's configuration
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
    },
    /// How the node is; exit code 0 where it serves
    Status {
        /// One line for a monitoring system, and its exit codes: 0 healthy, 1 degraded, 2 not
        /// serving or not reachable
        #[arg(long)]
        check: bool,
    },
    /// LUNs: the disks that hosts see
    Lun {
        #[command(subcommand)]
        verb: LunVerb,
    },
    /// Targets: the names under which hosts log in
    Target {
        #[command(subcommand)]
        verb: TargetVerb,
    },
    /// Hosts: clients, by the names of their initiators
    Host {
        #[command(subcommand)]
        verb: HostVerb,
    },
    /// Grants: who may use which LUN through which target
    Grant {
        #[command(subcommand)]
        verb: GrantVerb,
    },
    /// Sessions: the logins of hosts, and those that were refused
    Session {
        #[command(subcommand)]
        verb: SessionVerb,
    },
    /// Scrubs: reading all of a LUN to find what has gone bad
    Scrub {
        #[command(subcommand)]
        verb: ScrubVerb,
    },
    /// What LUNs and sessions do now: operations, bytes and latency, live
    Top(TopFlags),
    /// Shares: a LUN, its target and its grants in one step
    Share {
        #[command(subcommand)]
        verb: ShareVerb,
    },
    /// Give programs of this machine a volume through a local NBD socket, in the foreground
    Attach(Box<AttachFlags>),
    /// Measure volumes with diskspd's options; `causeway bench --help` lists them
    #[command(disable_help_flag = true)]
    Bench {
        /// diskspd's options and what to measure
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "OPTIONS"
        )]
        words: Vec<String>,
    },
    /// Pools: where LUNs keep their blocks, and their journals
    Pool {
        #[command(subcommand)]
        verb: PoolVerb,
    },
    /// The stored objects: kept generations, and going back to one
    State {
        #[command(subcommand)]
        verb: StateVerb,
    },
    /// Journals of pools: opening one anew, or giving one up
    Journal {
        #[command(subcommand)]
        verb: JournalVerb,
    },
    /// Check this host, and the ways to a target, against best practice; changes nothing
    Doctor(Box<DoctorFlags>),
    /// Test beds of network namespaces: published tests, faults, and what has to be reached
    Lab {
        #[command(subcommand)]
        verb: LabVerb,
    },
    /// Bring the objects to what a file says, all or nothing
    Apply {
        /// The file; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Remove what the file does not name; LUNs keep their data until `lun purge`
        #[arg(long)]
        prune: bool,
    },
    /// Print all objects in the form that `apply` reads
    Export,
    /// Paths: which there are between this host and a LUN, which are used, and why; works without
    /// the daemon
    Path {
        #[command(subcommand)]
        verb: PathVerb,
    },
    /// Explain an error's code, or list them all; works without the daemon
    Explain {
        /// Such as CWY2003
        code: Option<String>,
    },
    /// Print completions for a shell, which also know the names of objects: source <(causeway
    /// completions bash)
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages
    Man {
        /// Where to
        dir: PathBuf,
    },
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// What to do about a scrub.
#[derive(Subcommand, Debug)]
pub(crate) enum ScrubVerb {
    /// Begin, or go on where it was stopped; it gives way to hosts
    Start {
        /// The LUN
        lun: String,
    },
    /// How far it is, and what it has found; without a LUN: of all
    Status {
        /// The LUN
        lun: Option<String>,
    },
    /// Stop, and keep how far it is
    Stop {
        /// The LUN
        lun: String,
    },
}

/// What to ask of pools.
#[derive(Subcommand, Debug)]
pub(crate) enum PoolVerb {
    /// List them, with their journals
    Ls,
    /// Show one with all that is known of its journal
    Show(Named),
    /// Tell what stands on the members of a pool or in its directory, what of it can be used, and
    /// what is missing or damaged; or what a journal holds, and what in it is damaged; needs no
    /// daemon, changes nothing
    Check {
        /// The pool's directory, all of its members (files or block devices), or its journal
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// The daemon's state_dir: it knows what members that are away were, and has the checksums
        /// and histories of LUNs on members
        #[arg(long, value_name = "DIR", default_value = "/var/lib/causeway")]
        state: PathBuf,
    },
}

/// What to do with the kept generations of the objects.
#[derive(Subcommand, Debug)]
pub(crate) enum StateVerb {
    /// List the generations of the objects that are kept, newest first
    Ls,
    /// Go back to the objects of a kept generation; no data is lost: LUNs that were not there then
    /// are deleted and keep it
    Rollback {
        /// Its number, as `state ls` shows it
        generation: u64,
    },
    /// Say that the objects are meant although pools have seen newer ones: after a restore of
    /// state_dir
    Accept,
}

/// What to do about a pool's journal.
#[derive(Subcommand, Debug)]
pub(crate) enum JournalVerb {
    /// Open one that has failed or is missing; its LUNs then serve again
    Reopen {
        /// The pool
        pool: String,
    },
    /// Give up what one holds that cannot be used any more, and make a new one; tells first what is
    /// lost
    Discard {
        /// The pool
        pool: String,
        /// The pool's name once more, instead of typing it
        #[arg(long, value_name = "POOL")]
        confirm: Option<String>,
    },
}

/// Commands that a later version has.
const LATER: &[&str] = &["mirror", "snapshot"];

/// What to attach, and where.
#[derive(Args, Debug)]
#[command(
    after_help = "To use it:\n  qemu-img info nbd+unix:///?socket=PATH\n  \
    nbdcopy image.raw nbd+unix:///?socket=PATH"
)]
pub(crate) struct AttachFlags {
    /// iscsi://HOST[:PORT][,HOST[:PORT]...]/IQN/LUN; to try it also memory:SIZE, a file or a block
    /// device
    #[arg(value_name = "URL")]
    pub(crate) volume: String,
    /// Where programs find it: nbd+unix:PATH
    #[arg(long, value_name = "nbd+unix:PATH")]
    pub(crate) export: String,
    /// Programs may only read
    #[arg(long)]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) paths: host::Options,
}

/// What to say where options of other commands stand before `bench`.
pub(crate) fn bench_comes_first(words: &[String]) -> Problem {
    let detail = format!(
        "options stand before bench, which takes its own: {}",
        words.join(" ")
    );
    Problem::new(Code::BenchUsage, detail).hint("write them behind: causeway bench -Rjson ...")
}

/// Why there is no such command here.
pub(crate) fn no_command(words: &[String]) -> Problem {
    let name = words.first().map_or("", String::as_str);
    if LATER.contains(&name) {
        let detail = format!("causeway {name}: not in this version yet");
        return Problem::new(Code::ConfigNotYet, detail);
    }
    let known = Cli::command();
    let guess = did_you_mean(name, known.get_subcommands().map(clap::Command::get_name));
    let detail = format!("there is no command \"{name}\"{guess}");
    Problem::new(Code::CommandLine, detail).hint("`causeway --help` lists the commands")
}

/// How `top` looks.
#[derive(Args, Debug)]
pub(crate) struct TopFlags {
    /// Paths and NICs of this host, as `attach` and `bench` use them; needs no daemon
    #[arg(long)]
    pub(crate) paths: bool,
    /// Print what happens within one interval, and end; so it is where the output is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print again and again instead of showing a live view
    #[arg(long, conflicts_with = "once")]
    pub(crate) batch: bool,
    /// Print so many times, and end
    #[arg(short = 'n', long, value_name = "TIMES", conflicts_with = "once", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Seconds between two looks, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: Duration,
    /// What stands first
    #[arg(long, value_enum, value_name = "KEY", default_value_t = SortKey::Iops)]
    pub(crate) sort: SortKey,
    /// What stands first stands last
    #[arg(long)]
    pub(crate) reverse: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.1..=3600.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err("an interval has 0.1 to 3600 seconds".to_owned())
}

/// One object.
#[derive(Args, Debug)]
pub(crate) struct Named {
    /// Its name
    pub(crate) name: String,
}

/// An object and what of it shall change.
#[derive(Args, Debug)]
pub(crate) struct Assigned {
    /// Its name
    pub(crate) name: String,
    /// What shall change, as the command's summary lists it
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub(crate) values: Vec<String>,
}

/// An object and its new name.
#[derive(Args, Debug)]
pub(crate) struct Renamed {
    /// Its name
    pub(crate) name: String,
    /// Its new name
    pub(crate) to: String,
}

/// An object that shall go.
#[derive(Args, Debug)]
pub(crate) struct Deleted {
    /// Its name
    pub(crate) name: String,
    /// Succeed where there is none
    #[arg(long)]
    pub(crate) if_exists: bool,
}

/// The properties of a new LUN.
#[derive(Args, Debug)]
pub(crate) struct LunFields {
    /// Size: 10G = 10GiB, 10GB is decimal, or a number of bytes
    #[arg(long)]
    pub(crate) size: Size,
    /// Bytes in a logical block: 512 or 4096 [default: 512]
    #[arg(long, value_name = "BYTES")]
    pub(crate) block_size: Option<u32>,
    /// Bytes in a physical block: 512 or 4096 [default: the logical block]
    #[arg(long, value_name = "BYTES")]
    pub(crate) physical_block_size: Option<u32>,
    /// Take space when blocks are first written; false takes all of it now [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) thin: Option<bool>,
    /// The pool that holds it [default: the one called default, or the only one]
    #[arg(long, conflicts_with = "backend")]
    pub(crate) pool: Option<String>,
    /// What holds it instead of a pool: memory, or block:/dev/...
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
    /// The most bytes that commands may hold at a time, over all sessions [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bytes_in_flight_max: Option<Size>,
    /// What acknowledged writes have behind them: write-through, write-back (needs a journal), or
    /// volatile [default: write-back in a pool with a journal, else volatile, where hosts flush
    /// what they need]
    #[arg(long, value_name = "MODE")]
    pub(crate) cache: Option<CacheMode>,
    /// Check blocks when they are read; needs a journal [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) integrity: Option<bool>,
    /// Memory for blocks that may be read again [default: none]
    #[arg(long, value_name = "SIZE")]
    pub(crate) read_cache: Option<Size>,
    /// The most operations a second [default: no limit]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit_iops: Option<u64>,
    /// The most bytes a second [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) limit_bytes_per_second: Option<Size>,
    /// So many seconds' worth of what was not used may be used at once [default: a moment's worth]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) limit_burst_seconds: Option<u32>,
    /// Its part of its pool where LUNs compete, 1 to 10000 [default: none; 100 where another LUN of
    /// the pool has some]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) shares: Option<u32>,
    /// Whether a host is told that another one has aborted its commands (TAS): on, off, or host:
    /// on, and hosts may change it [default: host]
    #[arg(long, value_name = "WHO")]
    pub(crate) task_aborted_status: Option<TaskAbortedStatus>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum LunVerb {
    /// Make a LUN
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        fields: LunFields,
        /// Succeed where a LUN of this name exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List LUNs
    #[command(alias = "list")]
    Ls {
        /// Those that were deleted and keep their data
        #[arg(long)]
        removed: bool,
        /// Those in the pools that no object names
        #[arg(long, conflicts_with = "removed")]
        orphans: bool,
    },
    /// Show all of a LUN
    Show(Named),
    /// Change properties: size=20G, name=NEW, bytes_in_flight_max=64M|none, cache=MODE,
    /// integrity=true|false, read_cache=256M|none, limit.iops=5000|none,
    /// limit.bytes_per_second=200M|none, limit.burst_seconds=5|none, limit=none, shares=200|none,
    /// task_aborted_status=on|off|host; what a LUN has for ever is refused with the reason
    Set(Assigned),
    /// Change the size; shrinking cuts off the end
    Resize {
        /// Its name
        name: String,
        /// The new size
        #[arg(long)]
        size: Size,
    },
    /// Change the name; hosts see no difference
    Rename(Renamed),
    /// Take a LUN out of service; its data stays until `lun purge`
    #[command(alias = "rm")]
    Delete(Deleted),
    /// Bring a deleted LUN back with its data
    Restore(Named),
    /// Destroy the data of a deleted LUN
    Purge(Named),
    /// Take LUNs into service that a pool holds and no object names, as what they were
    Adopt(Adopted),
}

/// Which of the LUNs that no object names.
#[derive(Args, Debug)]
pub(crate) struct Adopted {
    /// The LUN's name, its NAA identifier, or its file
    #[arg(
        value_name = "FILE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) files: Vec<String>,
    /// All that can be
    #[arg(long)]
    pub(crate) all: bool,
    /// Only of this pool
    #[arg(long)]
    pub(crate) pool: Option<String>,
    /// The name that it gets [default: the one that it had]
    #[arg(long, conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// Bytes in its logical blocks, where nothing beside it says so: 512 or 4096
    #[arg(long, conflicts_with = "all")]
    pub(crate) block_size: Option<u32>,
    /// Bytes in its physical blocks, where nothing beside it says so [default: those of its logical
    /// ones]
    #[arg(long, conflicts_with = "all", requires = "block_size")]
    pub(crate) physical_block_size: Option<u32>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum TargetVerb {
    /// Make a target
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        /// Its iSCSI name [default: derived from the name]
        #[arg(long)]
        iqn: Option<String>,
        /// Where it can be reached [default: the group called default, or the only one]
        #[arg(long, value_name = "GROUP")]
        portal_group: Option<String>,
        /// Succeed where a target of this name exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List targets
    #[command(alias = "list")]
    Ls,
    /// Show all of a target
    Show(Named),
    /// Change properties: iqn=..., portal_group=..., redirect=HOST:PORT[,permanent]|none,
    /// maintenance=true|false, maintenance_grace_seconds=30, name=NEW
    Set(Assigned),
    /// Change the name, not the iSCSI name
    Rename(Renamed),
    /// Remove a target with its grants
    #[command(alias = "rm")]
    Delete(Deleted),
}

/// A host's CHAP.
#[derive(Args, Debug)]
pub(crate) struct ChapFields {
    /// The user that the initiator names
    #[arg(long, value_name = "USER", requires = "chap_secret_file")]
    pub(crate) chap_user: Option<String>,
    /// File with its secret, at least 12 bytes
    #[arg(long, value_name = "FILE", requires = "chap_user")]
    pub(crate) chap_secret_file: Option<PathBuf>,
    /// The user that the target names where the initiator wants proof too
    #[arg(long, value_name = "USER", requires_all = ["mutual_secret_file", "chap_user"])]
    pub(crate) mutual_user: Option<String>,
    /// File with the target's secret
    #[arg(long, value_name = "FILE", requires = "mutual_user")]
    pub(crate) mutual_secret_file: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum HostVerb {
    /// Make a host
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        /// An initiator's iSCSI name; repeat for more; * is every initiator
        #[arg(long, required = true, value_delimiter = ',')]
        iqn: Vec<String>,
        #[command(flatten)]
        chap: ChapFields,
        /// Succeed where a host of this name exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List hosts
    #[command(alias = "list")]
    Ls,
    /// Show all of a host
    Show(Named),
    /// Change properties: iqn=A,B  chap.user=U chap.secret_file=F chap.mutual_user=U
    /// chap.mutual_secret_file=F  chap=none  chap.mutual=none  bytes_in_flight_max=32M|none (of
    /// each session)  name=NEW
    Set(Assigned),
    /// Change the name
    Rename(Renamed),
    /// Remove a host with its grants
    #[command(alias = "rm")]
    Delete(Deleted),
}

#[derive(Subcommand, Debug)]
pub(crate) enum GrantVerb {
    /// Let a host use a LUN
    #[command(alias = "add")]
    Create {
        /// HOST LUN, or HOST:TARGET:LUN; an initiator's iSCSI name stands for its host, which is
        /// made where there is none
        #[arg(num_args = 0..=2, value_name = "HOST LUN")]
        what: Vec<String>,
        /// The host
        #[arg(long)]
        host: Option<String>,
        /// The LUN
        #[arg(long)]
        lun: Option<String>,
        /// Through which target [default: the only one]
        #[arg(long)]
        target: Option<String>,
        /// The number by which the host knows the LUN, 0 to 16383 [default: the lowest free one]
        #[arg(long, value_name = "NUMBER")]
        lun_id: Option<u16>,
        /// The host may not write
        #[arg(long)]
        read_only: bool,
        /// Succeed where there is one
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List grants
    #[command(alias = "list")]
    Ls,
    /// Show a grant, whose name is HOST:TARGET:LUN
    Show(Named),
    /// Change properties of HOST:TARGET:LUN: lun_id=7, read_only=true
    Set(Assigned),
    /// Take a grant back
    #[command(alias = "rm")]
    Delete {
        /// HOST:TARGET:LUN, or HOST LUN
        #[arg(num_args = 1..=2, required = true, value_name = "NAME")]
        what: Vec<String>,
        /// Through which target [default: the only one with such a grant]
        #[arg(long)]
        target: Option<String>,
        /// Succeed where there is none
        #[arg(long)]
        if_exists: bool,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum SessionVerb {
    /// List sessions
    #[command(alias = "list")]
    Ls {
        /// The last logins that were refused, and why
        #[arg(long)]
        refused: bool,
    },
    /// Show all of a session, with what was negotiated
    Show {
        /// Its number
        id: u64,
    },
    /// End a session; its initiator will log in again
    Drop {
        /// Its number
        id: u64,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum ShareVerb {
    /// Make a LUN, a target and grants, and print how to connect
    Create {
        /// The LUN's name
        name: String,
        #[command(flatten)]
        fields: Box<LunFields>,
        /// Hosts by name, or initiators by iSCSI name, or * for every initiator (a host is made)
        #[arg(long = "for", required = true, num_args = 1.., value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<String>,
        /// The target; made where there is none of this name [default: the LUN's name]
        #[arg(long)]
        target: Option<String>,
    },
    /// List the LUNs that hosts may use, with targets, hosts and numbers
    Ls,
    /// Print how to connect to a LUN
    Show(Named),
    /// Take a LUN and its grants out of service; its data stays, and `lun restore` brings all of it
    /// back
    Delete(Deleted),
}

/// Writes one page per command.
pub(crate) fn man_pages(dir: &Path) -> Result<(), Problem> {
    let write = || -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(Cli::command(), dir)
    };
    write().map_err(|error| {
        Problem::new(
            Code::ConfigUnreadable,
            format!("{}: {error}", dir.display()),
        )
    })
}
