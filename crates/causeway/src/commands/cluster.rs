//! `causeway cluster ...`: which nodes know and believe each other. It asks the daemon of this
//! machine by a socket in its state directory: whoever may open that may do this.

use crate::args::{Common, NODE_TOML};
use crate::secret_file;
use clap::{Args, Subcommand};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use membership::records::Standing;
use membership::words::{ClusterView, Command, MadeToken, NodeView, Outcome};
use output::{Output, properties, table};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest token that is read, in bytes.
const TOKEN_BYTES_MAX: u64 = membership::token::TEXT_BYTES_MAX as u64;

/// Which daemon.
#[derive(Args, Debug)]
pub(crate) struct Here {
    /// The node's configuration
    #[arg(long, short, value_name = "FILE", default_value = NODE_TOML)]
    config: PathBuf,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ClusterVerb {
    /// Make a new cluster, of which this is the first node
    Init {
        /// Its name
        name: String,
        #[command(flatten)]
        here: Here,
    },
    /// Make a token, which lets one node join, once; it is shown once
    Token {
        /// For how many minutes it is good
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// Write it to this file, which nobody else may read, in place of the terminal
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        to: Option<PathBuf>,
        #[command(flatten)]
        here: Here,
    },
    /// Have this node join a cluster
    Join {
        /// File with a token of `causeway cluster token`; - is standard input
        #[arg(value_name = "TOKEN-FILE", value_hint = clap::ValueHint::FilePath)]
        token: PathBuf,
        #[command(flatten)]
        here: Here,
    },
    /// Show who is in the cluster, and who answers this node
    Status {
        #[command(flatten)]
        here: Here,
    },
    /// Have this node leave the cluster; refused while it has copies of LUNs, unless by --force
    Leave {
        /// Another node, which is gone for good: it is believed no more
        #[arg(long, value_name = "NAME")]
        node: Option<String>,
        #[command(flatten)]
        here: Here,
    },
}

impl ClusterVerb {
    const fn here(&self) -> &Here {
        match self {
            Self::Init { here, .. }
            | Self::Token { here, .. }
            | Self::Join { here, .. }
            | Self::Status { here }
            | Self::Leave { here, .. } => here,
        }
    }
}

pub(crate) fn run(common: &Common, verb: &ClusterVerb, output: &Output) -> Result<(), Problem> {
    let here = verb.here();
    if common.dry_run && !matches!(verb, ClusterVerb::Leave { .. }) {
        let detail =
            "--dry-run is of `cluster leave`: the others change nothing that could be lost";
        return Err(Problem::new(Code::CommandLine, detail));
    }
    match verb {
        ClusterVerb::Init { name, .. } => {
            let name = name.clone();
            let done: Outcome = ask(here, &Command::Init { name })?;
            output.show(&done, made);
        }
        ClusterVerb::Token { minutes, to, .. } => {
            let minutes = *minutes;
            let made: MadeToken = ask(here, &Command::Token { minutes })?;
            give(&made, to.as_deref(), output)?;
        }
        ClusterVerb::Join { token, .. } => {
            let token = read(token)?;
            let text = token.reveal_text().unwrap_or_default().to_owned();
            let done: Outcome = ask(here, &Command::Join { token: text })?;
            output.show(&done, joined);
        }
        ClusterVerb::Status { .. } => {
            let view: ClusterView = ask(here, &Command::Status)?;
            output.show(&view, page);
        }
        ClusterVerb::Leave { node, .. } => {
            let asked = Command::Leave {
                node: node.clone(),
                force: common.yes,
                dry_run: common.dry_run,
            };
            let done: Outcome = ask(here, &asked)?;
            output.show(&done, |done| left(done, common.dry_run));
        }
    }
    Ok(())
}

fn ask<T: DeserializeOwned>(here: &Here, command: &Command) -> Result<T, Problem> {
    let config = settings::read_config(&here.config)?;
    if config.cluster.is_none() {
        let detail = format!("{} has no [cluster]", here.config.display());
        return Err(Problem::new(Code::ClusterNotConfigured, detail));
    }
    let answer = membership::ask(&config.state_dir, command)?;
    let read = serde_json::from_value(answer);
    read.map_err(|error| Problem::new(Code::Internal, format!("the daemon's answer: {error}")))
}

/// A token, which never stands among the words of a command.
fn read(file: &Path) -> Result<Secret, Problem> {
    if file != Path::new("-") {
        if let Some(open) = secret_file::readable(file) {
            eprintln!("warning: {open}");
        }
        return secret_file::secret(file);
    }
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().take(TOKEN_BYTES_MAX);
    let read = input.read_to_end(&mut bytes);
    read.map_err(|error| Problem::new(Code::ConfigUnreadable, format!("standard input: {error}")))?;
    Ok(Secret::from_file(bytes))
}

fn give(made: &MadeToken, to: Option<&Path>, output: &Output) -> Result<(), Problem> {
    let Some(file) = to else {
        output.show(made, |made| format!("{}\n", made.token));
        return Ok(());
    };
    let text = format!("{}\n", made.token);
    support::save(file, text.as_bytes()).map_err(|error| {
        let detail = format!("{}: {error}", file.display());
        Problem::new(Code::BadRequest, detail).hint("name another file by --to")
    })?;
    let shown = file.display().to_string();
    let done = json!({ "file": shown, "expires": made.expires, "addresses": made.addresses });
    output.show(&done, |_| {
        format!(
            "{shown}: a token that lets one node join, once, until {}\n\
             On that node, after [cluster] was written into its node.toml: causeway cluster join {shown}\n",
            made.expires
        )
    });
    Ok(())
}

fn made(done: &Outcome) -> String {
    let Outcome {
        cluster,
        cluster_id,
        node,
        slot,
        authority,
        ..
    } = done;
    format!(
        "cluster {cluster} ({cluster_id}) is made; {node} is node {slot} of it\n\
         its authority: {authority}\n\
         For the next node: causeway cluster token --to FILE\n"
    )
}

fn joined(done: &Outcome) -> String {
    let Outcome {
        cluster,
        cluster_id,
        node,
        slot,
        ..
    } = done;
    format!("{node} is node {slot} of cluster {cluster} ({cluster_id})\n")
}

fn left(done: &Outcome, is_dry: bool) -> String {
    let word = if is_dry { "would leave" } else { "has left" };
    let mut out = format!(
        "node {} ({}) {word} cluster {}\n",
        done.slot, done.node, done.cluster
    );
    for notice in &done.notices {
        out.push_str(notice);
        out.push('\n');
    }
    out
}

fn page(view: &ClusterView) -> String {
    let mut out = properties(&[
        ("cluster", view.cluster.clone()),
        ("id", view.cluster_id.clone()),
        ("level", view.level.to_string()),
        ("authority", view.authority.to_string()),
    ]);
    out.push('\n');
    let head = [
        "NODE",
        "NAME",
        "STATE",
        "VERSION",
        "LAST SEEN",
        "CERTIFICATE ENDS",
        "ADDRESSES",
    ];
    let rows: Vec<Vec<String>> = view.nodes.iter().map(|it| row(it, view.slot)).collect();
    out.push_str(&table(&head, &rows));
    let troubles = view.nodes.iter().filter_map(|it| {
        let problem = it.problem.as_ref()?;
        Some(format!("node {} ({}): {problem}", it.slot, it.name))
    });
    for trouble in troubles.chain(view.problems.iter().cloned()) {
        out.push_str(&trouble);
        out.push('\n');
    }
    out
}

fn row(node: &NodeView, own: u8) -> Vec<String> {
    let state = match (node.standing, node.answers) {
        (Standing::Left, _) => "left",
        (Standing::Joined, _) if node.slot == own => "this node",
        (Standing::Joined, true) => "answers",
        (Standing::Joined, false) => "SILENT",
    };
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "never".to_owned());
    let addresses: Vec<String> = node.addresses.iter().map(ToString::to_string).collect();
    vec![
        node.slot.to_string(),
        node.name.clone(),
        state.to_owned(),
        node.version.clone(),
        or(&node.last_seen),
        or(&node.certificate_ends),
        addresses.join(" "),
    ]
}
