//! Asking the programs that run.

use bench_command::paths_api::directory;
use client::{Client, Proofs};
use host::view::{
    ExplainedView, PlannedVolume, PolicyAnswer, PolicyRequest, ProcessView, ReleaseAnswer,
    ReleaseRequest, VolumeView,
};
use host::{Status, Url};
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use paths::{PathName, Policy};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;

/// The sockets, one for each program.
fn sockets() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory()) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "sock"))
        .collect();
    found.sort();
    found
}

/// Asks every program; one that is gone is passed over, and its socket removed.
fn ask<T: DeserializeOwned>(
    method: &Method,
    path: &str,
    document: &impl Serialize,
) -> Result<Vec<T>, Problem> {
    let mut answers = Vec::new();
    for socket in sockets() {
        let client = Client::new(&format!("unix:{}", socket.display()), Proofs::default())?;
        match client.send(method.clone(), path, document) {
            Ok(answer) => answers.push(answer),
            Err(problem) if problem.code == Code::Unreachable => {
                // Nobody listens there any more: it was killed.
                if std::os::unix::net::UnixStream::connect(&socket).is_err() {
                    let _gone = std::fs::remove_file(&socket);
                }
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(answers)
}

/// Those of the documents that can be read: a program may be of another version.
pub(crate) fn readable<V: DeserializeOwned>(documents: Vec<Value>) -> impl Iterator<Item = V> {
    let read = |document| serde_json::from_value(document).ok();
    documents.into_iter().filter_map(read)
}

/// Documents of all volumes, each with the number of its process.
fn all<V: DeserializeOwned>(path: &str) -> Result<Vec<(u32, V)>, Problem> {
    let answers: Vec<ProcessView<Value>> = ask(&Method::GET, path, &())?;
    let of_process = |answer: ProcessView<Value>| {
        let pid = answer.pid;
        readable(answer.volumes).map(move |volume| (pid, volume))
    };
    Ok(answers.into_iter().flat_map(of_process).collect())
}

fn is_of(volume: &Status, url: Option<&Url>) -> bool {
    url.is_none_or(|url| volume.unit_path == url.unit())
}

/// The volumes that programs have open.
pub(crate) fn volumes(url: Option<&Url>) -> Result<Vec<VolumeView>, Problem> {
    let found: Vec<(u32, Status)> = all("/v1/volumes")?;
    let ours = found.into_iter().filter(|(_, status)| is_of(status, url));
    Ok(ours
        .map(|(pid, status)| VolumeView { pid, status })
        .collect())
}

/// What the first program that has the path says of it.
pub(super) fn explained(
    path: &PathName,
    url: Option<&Url>,
) -> Result<Option<ExplainedView>, Problem> {
    let found: Vec<(u32, PlannedVolume)> = all("/v1/plans")?;
    let mut ours = found.iter().filter(|(_, it)| is_of(&it.volume, url));
    Ok(ours.find_map(|(pid, volume)| ExplainedView::running(*pid, volume, path)))
}

/// Lets a path out of quarantine in every program; answers in how many volumes.
pub(super) fn release(path: &PathName, url: Option<&Url>) -> Result<u64, Problem> {
    let request = ReleaseRequest {
        path: path.to_string(),
        unit: url.map(Url::unit),
    };
    let answers: Vec<ReleaseAnswer> = ask(&Method::POST, "/v1/release", &request)?;
    Ok(answers.iter().map(|it| it.released).sum())
}

/// Sets a policy in every program that has the LUN open; answers in how many volumes.
pub(super) fn set_policy(url: &Url, policy: Policy) -> Result<u64, Problem> {
    let request = PolicyRequest {
        unit: url.unit(),
        policy: policy.to_string(),
    };
    let answers: Vec<PolicyAnswer> = ask(&Method::POST, "/v1/policy", &request)?;
    Ok(answers.iter().map(|it| it.volumes).sum())
}
