//! The commands, and what runs each.

use crate::args::Common;
use crate::attach::{self, AttachFlags};
use crate::commands::alert::{self, AlertVerb};
use crate::commands::alert_receiver;
use crate::commands::api::{self, ApiFlags};
use crate::commands::audit::{self, AuditVerb};
use crate::commands::cluster::{self, ClusterVerb};
use crate::commands::config::{self, ConfigVerb};
use crate::commands::context::Context;
use crate::commands::disk::{self, DiskVerb};
use crate::commands::doctor::{self, DoctorFlags};
use crate::commands::event::{self, EventVerb};
use crate::commands::grant::{self, GrantVerb};
use crate::commands::history::{self, HistoryFlags};
use crate::commands::host::{self, HostVerb};
use crate::commands::job::{self, JobVerb};
use crate::commands::journal::{self, JournalVerb};
use crate::commands::lab::{self, LabVerb};
use crate::commands::lun::{self, LunVerb};
use crate::commands::node::{self, NodeVerb};
use crate::commands::path::{self, PathVerb};
use crate::commands::pool::{self, PoolVerb};
use crate::commands::portal::{self, PortalVerb};
use crate::commands::scrub::{self, ScrubVerb};
use crate::commands::session::{self, SessionVerb};
use crate::commands::share::{self, ShareVerb};
use crate::commands::state::{self, StateVerb};
use crate::commands::support::{self, SupportVerb};
use crate::commands::target::{self, TargetVerb};
use crate::commands::token::{self, TokenVerb};
use crate::commands::top::{self, TopFlags};
use crate::commands::user::{self, UserVerb};
use crate::commands::{apply, explain, pool_check, status};
use crate::completion::CompletedArgument;
use crate::listed::Listed;
use crate::serve;
use crate::version::VERSION;
use clap::{CommandFactory, Parser, Subcommand};
use images::ImageVerb;
use manifest::code::{Code, Exit};
use manifest::name::did_you_mean;
use manifest::problem::Problem;
use output::Output;
use std::path::PathBuf;
use std::process::ExitCode;

/// Causeway: a software-defined SAN.
///
/// Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 not found, 4 conflict, 5 refused by a
/// safety check, 6 partly done, 7 daemon unreachable. `causeway explain CODE` explains an error's
/// code.
#[derive(Parser, Debug)]
#[command(
    name = "causeway",
    version = VERSION.as_str(),
    max_term_width = 100,
    after_help = "To begin:\n  causeway serve --config node.toml\n  \
                  causeway share create vm01 --size 100G --for iqn.1998-01.com.vmware:esx01\n  \
                  causeway status"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run the daemon in the foreground
    Serve {
        /// The node's configuration
        #[arg(long, short, value_name = "FILE")]
        config: PathBuf,
    },
    /// Clusters: nodes that know and believe each other; on the node itself, as root or as the
    /// daemon's user
    Cluster {
        #[command(subcommand)]
        verb: ClusterVerb,
    },
    /// The node's settings: what is in force, and what node.toml says by now
    Config {
        #[command(subcommand)]
        verb: ConfigVerb,
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
    #[command(
        after_help = "There is no `create` and no `set`: hosts make sessions by logging in. `drop` is `delete`."
    )]
    Session {
        #[command(subcommand)]
        verb: SessionVerb,
    },
    /// Scrubs: reading all of a LUN to find what has gone bad
    #[command(
        after_help = "`start` is `create`, and `stop` is `delete`. There is no `set`: how often is a setting of the node (`causeway node set scrub.every_days=30`)."
    )]
    Scrub {
        #[command(subcommand)]
        verb: ScrubVerb,
    },
    /// What LUNs and sessions do now: operations, bytes and latency, live
    Top(TopFlags),
    /// Events: what happened on the node
    #[command(
        after_help = "There is no `create`, `set` or `delete`: events are only read. `ls` shows all of each, so there is no `show`."
    )]
    Event {
        #[command(subcommand)]
        verb: EventVerb,
    },
    /// The audit log: who changed what, and logins
    #[command(
        after_help = "There is no `create`, `set` or `delete`: the log is only read. `ls -o json` shows all of each entry, so there is no `show`."
    )]
    Audit {
        #[command(subcommand)]
        verb: AuditVerb,
    },
    /// Figures of the last hour, days or year: operations, bytes, latency, space
    History(HistoryFlags),
    /// Shares: a LUN, its target and its grants in one step
    #[command(
        after_help = "There is no `set`: change the LUN, the target or the grant (`causeway lun set`)."
    )]
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
    #[command(
        after_help = "There is no `set`: what a pool is stands in node.toml, and needs a restart."
    )]
    Pool {
        #[command(subcommand)]
        verb: PoolVerb,
    },
    /// The node that answers: what it is, and its settings
    #[command(
        after_help = "There is no `create` and no `delete`: a node is made by its node.toml, and ends with its service."
    )]
    Node {
        #[command(subcommand)]
        verb: NodeVerb,
    },
    /// Portals: the addresses where hosts reach targets
    #[command(
        after_help = "There is no `set`: a portal is its address, so add the other one and delete this one."
    )]
    Portal {
        #[command(subcommand)]
        verb: PortalVerb,
    },
    /// Disks of the machine: their health and where it is heading, and the bays that they are in
    #[command(
        after_help = "There is no `create` and no `set`: disks are what the machine has. `forget` is `delete`."
    )]
    Disk {
        #[command(subcommand)]
        verb: DiskVerb,
    },
    /// The stored objects: kept generations, and going back to one
    #[command(
        after_help = "There is no `create`, `set` or `delete`: each change of objects makes a generation, and old ones go by themselves."
    )]
    State {
        #[command(subcommand)]
        verb: StateVerb,
    },
    /// Journals of pools: opening one anew, or giving one up
    #[command(
        after_help = "There is no `create` and no `set`: a journal comes with its pool (`causeway pool create NAME --path PATH --journal PATH`). `discard` is `delete`."
    )]
    Journal {
        #[command(subcommand)]
        verb: JournalVerb,
    },
    /// Users: who may log in to the page and the API
    User {
        #[command(subcommand)]
        verb: UserVerb,
    },
    /// Tokens: what programs send instead of a password
    #[command(
        after_help = "There is no `set`: a token stays what it is; make another one and delete this one."
    )]
    Token {
        #[command(subcommand)]
        verb: TokenVerb,
    },
    /// Alerts: what is wrong enough to be known, who takes care of it, who is sent it
    #[command(
        after_help = "There is no `create`, `set` or `delete`: alerts come and go by what is wrong. Rules (`causeway alert rule set`) say when."
    )]
    Alert {
        #[command(subcommand)]
        verb: AlertVerb,
    },
    /// Jobs: work that takes long, such as scrubs and making LUNs of fixed size
    #[command(
        after_help = "There is no `create` and no `set`: what takes long becomes a job by itself. `cancel` is `delete`."
    )]
    Job {
        #[command(subcommand)]
        verb: JobVerb,
    },
    /// Disk images in files (VHDX): made, checked, mended, converted; no daemon is asked
    #[command(
        after_help = "There is no `ls`, `set` or `delete`: images are files. `info` is `show`."
    )]
    Image {
        #[command(subcommand)]
        verb: ImageVerb,
    },
    /// Check this host, and the routes to a target, against best practice; changes nothing
    Doctor(Box<DoctorFlags>),
    /// What is sent to whoever helps: one file that says how the node is, without secrets
    Support {
        #[command(subcommand)]
        verb: SupportVerb,
    },
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
        /// Only this object and its grants: KIND=NAME, such as target=t1 (lun, target, host,
        /// grant); may be repeated. What else the grants name is made where it is not there
        #[arg(long, value_name = "KIND=NAME")]
        only: Vec<String>,
    },
    /// Print all objects, or some, in the form that `apply` reads
    Export {
        /// Only this object, its grants and all that they name: KIND=NAME, such as target=t1 (lun,
        /// target, host, grant); may be repeated
        #[arg(long, value_name = "KIND=NAME")]
        only: Vec<String>,
    },
    /// Ask any path of the daemon's API, for scripts: prints the document that it answers
    Api(ApiFlags),
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
    /// Write the man pages; that of node.toml goes to man5 where DIR is man1
    Man {
        /// Where to
        dir: PathBuf,
    },
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// What may stand where, of every command.
pub(crate) const COMPLETED: &[&[CompletedArgument]] = &[
    alert::COMPLETED,
    alert_receiver::COMPLETED,
    api::COMPLETED,
    attach::COMPLETED,
    audit::COMPLETED,
    config::COMPLETED,
    disk::COMPLETED,
    doctor::COMPLETED,
    event::COMPLETED,
    explain::COMPLETED,
    grant::COMPLETED,
    history::COMPLETED,
    host::COMPLETED,
    job::COMPLETED,
    journal::COMPLETED,
    lun::MADE,
    lun::COMPLETED,
    node::COMPLETED,
    path::COMPLETED,
    pool::COMPLETED,
    portal::COMPLETED,
    scrub::COMPLETED,
    session::COMPLETED,
    share::MADE,
    share::COMPLETED,
    state::COMPLETED,
    target::COMPLETED,
    token::COMPLETED,
    user::COMPLETED,
];

/// Which verbs print tables, of every command.
pub(crate) const LISTED: &[&[Listed]] = &[
    alert::LISTED,
    alert_receiver::LISTED,
    audit::LISTED,
    config::LISTED,
    disk::LISTED,
    event::LISTED,
    explain::LISTED,
    grant::LISTED,
    host::LISTED,
    job::LISTED,
    journal::LISTED,
    lun::LISTED,
    node::LISTED,
    path::LISTED,
    pool::LISTED,
    portal::LISTED,
    scrub::LISTED,
    session::LISTED,
    share::LISTED,
    state::LISTED,
    target::LISTED,
    token::LISTED,
    user::LISTED,
];

impl Command {
    /// Runs it, and answers what the process ends with.
    pub(crate) fn run(&self, common: &Common, output: &Output) -> Result<ExitCode, Problem> {
        let context = || Context::new(common, output);
        match self {
            // These say themselves what went wrong, after their log has ended.
            Self::Serve { config } => return Ok(code(serve::run(config, output))),
            Self::Attach(flags) => return Ok(code(attach::run(flags, output))),
            Self::Cluster { verb } => cluster::run(common, verb, output),
            Self::Config { verb } => config::run(&context, verb, output),
            Self::Status { check: true } => return Ok(status::check(common, output)),
            Self::Status { check: false } => status::run(&context()?),
            Self::Lun { verb } => lun::run(&context()?, verb),
            Self::Target { verb } => target::run(&context()?, verb),
            Self::Host { verb } => host::run(&context()?, verb),
            Self::Grant { verb } => grant::run(&context()?, verb),
            Self::Session { verb } => session::run(&context()?, verb),
            Self::Scrub { verb } => scrub::run(&context()?, verb),
            Self::Event { verb } => event::run(&context()?, verb),
            Self::Audit { verb } => audit::run(&context()?, verb),
            Self::History(flags) => history::run(&context()?, flags),
            Self::Top(flags) => top::run(common, flags, output),
            Self::Share { verb } => share::run(&context()?, verb),
            Self::Bench { words } => Err(bench_comes_first(words)),
            Self::Pool {
                verb: PoolVerb::Check { paths, state },
            } => pool_check::run(paths, state, output),
            Self::Pool { verb } => pool::run(&context()?, verb),
            Self::Node { verb } => node::run(&context()?, verb),
            Self::Portal { verb } => portal::run(&context()?, verb),
            Self::Disk {
                verb: DiskVerb::Scan { to, smartctl },
            } => disk::scan(to.as_deref(), smartctl.as_deref(), output),
            Self::Disk { verb } => disk::run(&context()?, verb),
            Self::State { verb } => state::run(&context()?, verb),
            Self::Journal { verb } => journal::run(&context()?, verb),
            Self::User { verb } => user::run(&context()?, verb),
            Self::Token { verb } => token::run(&context()?, verb),
            Self::Alert { verb } => alert::run(&context()?, verb),
            Self::Job { verb } => job::run(&context()?, verb),
            Self::Image { verb } => verb.run(output),
            Self::Doctor(flags) => doctor::run(common, flags, output),
            Self::Support { verb } => support::run(&context()?, verb),
            Self::Lab { verb } => lab::run(verb, output),
            Self::Apply { file, prune, only } => apply::apply(&context()?, file, *prune, only),
            Self::Export { only } => apply::export(&context()?, only),
            Self::Api(flags) => api::run(&context()?, flags),
            Self::Path { verb } => path::run(verb, output),
            Self::Explain { code: Some(code) } => explain::run(output, code),
            Self::Explain { code: None } => {
                explain::codes(output);
                Ok(())
            }
            Self::Man { .. } | Self::Completions { .. } | Self::Other(_) => {
                unreachable!("they need to know all commands, and are answered above")
            }
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}

/// Commands that a later version has.
const LATER: &[&str] = &["mirror", "snapshot"];

/// What to say where options of other commands stand before `bench`.
fn bench_comes_first(words: &[String]) -> Problem {
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
