//! A cluster that stays, and is asked and broken from other terminals through a socket in its
//! directory: a line of JSON, and one as the answer.

use super::load::Load;
use super::net::NODES;
use super::order::Order;
use super::seen::Mirror;
use super::site::Site;
use crate::claim;
use crate::error::{Kind, LabError};
use crate::rate::Rate;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// What a lab is asked at.
const SOCKET: &str = "cluster.sock";
/// An order takes no longer: a daemon may have to start.
const ANSWER_MAX: Duration = Duration::from_secs(60);

const LOAD: &[&str] = &[
    "-b16K", "-t1", "-o4", "-r", "-w50", "-f64M", "-d86400", "-W0", "-C0", "-L", "-g250i",
    "--verify",
];

/// What a lab is asked.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    /// How it is.
    Status,
    /// An order.
    Order(String),
    /// Its end.
    Down,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Status(Box<ClusterStatus>),
    Refused { what: String, next: String },
}

/// A cluster that stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The lab's name, which its namespaces begin with.
    pub lab: String,
    /// Where its files are, with the logs of all programs.
    pub dir: PathBuf,
    /// Both, in the order of their numbers.
    pub nodes: Vec<NodeStatus>,
    /// Members of etcd.
    pub etcd: Vec<MemberStatus>,
    /// Wires that are harmed, in words.
    pub harmed: Vec<String>,
    /// What the load does, where there is one.
    pub load: Option<LoadStatus>,
}

/// What is known of one of both daemons.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    /// As the cluster has it: `san-a`.
    pub name: String,
    /// Its daemon runs, is down, or is paused.
    pub program: String,
    /// What its copy does; none: it does not answer.
    pub state: Option<String>,
    /// That in a sentence.
    pub text: Option<String>,
}

/// A member of etcd.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    /// `etcd-1` and so on.
    pub name: String,
    /// It runs, is down, or is paused.
    pub program: String,
    /// The others take what it says.
    pub leads: bool,
}

/// What the host does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoadStatus {
    /// Seconds from its begin.
    pub seconds: u64,
    /// Operations in the last second.
    pub iops: f64,
    /// The longest operation of the last second that had one, in milliseconds.
    pub longest_ms: Option<f64>,
    /// Operations that failed.
    pub errors: u64,
}

/// Builds a cluster, and stays until it is ended; `said` is called once it stands.
///
/// # Errors
/// Where it cannot be built, or its load ends by itself.
pub async fn up(
    program: &Path,
    (rate, buffer_kib): (Rate, u32),
    with_load: bool,
    said: impl FnOnce(&str),
) -> Result<(), LabError> {
    let mut site = Site::start(program, rate, buffer_kib).await?;
    let failed = |error| LabError::system("the lab's socket", &error);
    let listener = UnixListener::bind(site.dir().join(SOCKET)).map_err(failed)?;
    let load = match with_load {
        true => Some(Load::begin(&site, LOAD).await?),
        false => None,
    };
    said(&words(&site));
    loop {
        let (stream, _) = listener.accept().await.map_err(failed)?;
        // Whoever asked and went away is answered by nobody.
        let asked = converse(&mut site, load.as_ref(), stream).await;
        if matches!(asked, Some(Asked::Down)) {
            break;
        }
    }
    if let Some(load) = load {
        let figures = load.end().await?;
        let verified = figures.verify.unwrap_or_default();
        said_at_the_end(figures.errors + figures.never_returned, verified.bad)?;
    }
    Ok(())
}

fn said_at_the_end(errors: u64, bad: u64) -> Result<(), LabError> {
    if errors + bad == 0 {
        return Ok(());
    }
    Err(LabError::new(
        format!("the load had {errors} errors, and {bad} blocks were wrong"),
        "see what was done to the cluster",
    ))
}

/// How to use it.
fn words(site: &Site) -> String {
    let load: Vec<String> = ["-b16K", "-o4", "-w50", "-d10"].map(str::to_owned).into();
    let nodes = NODES.map(|part| {
        let socket = site.dir().join(part).join("api.sock");
        format!("  causeway --api unix:{} status\n", socket.display())
    });
    format!(
        "Two nodes, three members of etcd, and a host, in {}.\n\n  \
         ip netns exec {} {}\n{}  \
         causeway lab cluster status\n  \
         causeway lab cluster order kill owner\n  \
         causeway lab cluster order start all\n  \
         causeway lab cluster order hole link\n  \
         causeway lab cluster order mend all\n  \
         causeway lab cluster down\n",
        site.dir().display(),
        site.host(),
        site.load_words(&load).join(" "),
        nodes.concat()
    )
}

async fn converse(site: &mut Site, load: Option<&Load>, stream: UnixStream) -> Option<Asked> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    timeout(Duration::from_secs(5), stream.read_line(&mut line))
        .await
        .ok()?
        .ok()?;
    let asked: Asked = serde_json::from_str(&line).ok()?;
    let done = match &asked {
        Asked::Status | Asked::Down => Ok(()),
        Asked::Order(text) => match Order::parse(text) {
            Ok(order) => site.obey(&order).await,
            Err(error) => Err(error),
        },
    };
    let answer = match done {
        Ok(()) => Answered::Status(Box::new(status(site, load).await)),
        Err(error) => Answered::Refused {
            what: error.what,
            next: error.next,
        },
    };
    let mut text = serde_json::to_string(&answer).ok()?;
    text.push('\n');
    stream.write_all(text.as_bytes()).await.ok()?;
    Some(asked)
}

async fn status(site: &mut Site, load: Option<&Load>) -> ClusterStatus {
    let mirrors = site.mirrors().await;
    let node = |(program, mirror): (&super::program::Program, Option<Mirror>)| NodeStatus {
        name: program.name.clone(),
        program: program.state().to_owned(),
        state: mirror.as_ref().map(|it| it.state.clone()),
        text: mirror.map(|it| it.text),
    };
    let nodes = site.nodes.iter().zip(mirrors).map(node).collect();
    let leader = site.etcd.leader().await;
    let members = site.etcd.members.iter().enumerate();
    let etcd = members.map(|(at, program)| MemberStatus {
        name: program.name.clone(),
        program: program.state().to_owned(),
        leads: leader == Some(at),
    });
    ClusterStatus {
        lab: site.net.claim().name().to_owned(),
        dir: site.dir(),
        nodes,
        etcd: etcd.collect(),
        harmed: site.net.harmed(),
        load: load.and_then(Load::last).map(|last| LoadStatus {
            seconds: last.second,
            iops: last.iops,
            longest_ms: last.max_us.map(|it| it / 1e3),
            errors: last.errors,
        }),
    }
}

/// How the cluster is that stands on this machine.
///
/// # Errors
/// There is none, or several.
pub async fn standing(name: Option<&str>) -> Result<ClusterStatus, LabError> {
    ask(name, &Asked::Status).await
}

/// Has an order done there; how it is then.
///
/// # Errors
/// There is none, or several; or why it was not done.
pub async fn order(name: Option<&str>, text: &str) -> Result<ClusterStatus, LabError> {
    Order::parse(text)?;
    ask(name, &Asked::Order(text.to_owned())).await
}

/// Ends it; how it was.
///
/// # Errors
/// There is none, or several.
pub async fn down(name: Option<&str>) -> Result<ClusterStatus, LabError> {
    ask(name, &Asked::Down).await
}

async fn ask(name: Option<&str>, asked: &Asked) -> Result<ClusterStatus, LabError> {
    let mut found: Vec<(String, PathBuf)> = claim::places();
    found.retain(|(it, dir)| dir.join(SOCKET).exists() && name.is_none_or(|name| name == it));
    let (_, dir) = match found.as_slice() {
        [one] => one,
        [] => {
            let what = "no cluster stands here";
            return Err(LabError::usage(what, "run `causeway lab cluster up`"));
        }
        several => {
            let names: Vec<&str> = several.iter().map(|it| it.0.as_str()).collect();
            let what = format!("several clusters stand here: {}", names.join(", "));
            return Err(LabError::usage(what, "name one with --lab"));
        }
    };
    let failed = |error| LabError::system("the lab's socket", &error);
    let talk = async {
        let stream = UnixStream::connect(dir.join(SOCKET)).await?;
        let mut stream = BufReader::new(stream);
        let mut text = serde_json::to_string(asked)?;
        text.push('\n');
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        Ok(serde_json::from_str(&answer)?)
    };
    let answer = timeout(ANSWER_MAX, talk).await;
    let silent = |_| LabError::new("the lab does not answer", "see its terminal");
    match answer.map_err(silent)?.map_err(failed)? {
        Answered::Status(status) => Ok(*status),
        Answered::Refused { what, next } => Err(LabError {
            what,
            next,
            kind: Kind::Failed,
        }),
    }
}

impl ClusterStatus {
    /// As lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{}, {}\n", self.lab, self.dir.display());
        for node in &self.nodes {
            let state = node.state.as_deref().unwrap_or("silent");
            let text = node.text.as_deref().unwrap_or("");
            out += &format!("{:<8}{:<8}{state:<12} {text}\n", node.name, node.program);
        }
        for member in &self.etcd {
            let leads = if member.leads { "leads" } else { "" };
            out += &format!("{:<8}{:<8}{leads}\n", member.name, member.program);
        }
        for wire in &self.harmed {
            out += &format!("{wire}\n");
        }
        if let Some(load) = &self.load {
            out += &format!(
                "the host: {:.0} operations in second {}, the longest {}, {} errors\n",
                load.iops,
                load.seconds,
                load.longest_ms
                    .map_or_else(|| "-".to_owned(), |it| format!("{it:.0} ms")),
                load.errors
            );
        }
        out
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_status_names_who_serves_who_leads_and_what_is_broken() {
        let status = ClusterStatus {
            lab: "causeway-lab-1".to_owned(),
            dir: "/tmp/causeway-lab-1".into(),
            nodes: vec![NodeStatus {
                name: "san-a".to_owned(),
                program: "paused".to_owned(),
                state: None,
                text: None,
            }],
            etcd: vec![MemberStatus {
                name: "etcd-2".to_owned(),
                program: "runs".to_owned(),
                leads: true,
            }],
            harmed: vec!["a.link is cut".to_owned()],
            load: Some(LoadStatus {
                seconds: 7,
                iops: 250.0,
                longest_ms: None,
                errors: 0,
            }),
        };
        let text = status.text();
        for words in [
            "san-a   paused  silent",
            "etcd-2  runs    leads",
            "a.link is cut",
            "250 operations in second 7, the longest -, 0 errors",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let line = serde_json::to_string(&Answered::Status(Box::new(status))).unwrap();
        assert!(serde_json::from_str::<Answered>(&line).is_ok());
    }
}
