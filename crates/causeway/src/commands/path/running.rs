//! Asking the programs that run.

use crate::client::Client;
use crate::paths_api::directory;
use host::Url;
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use paths::{PathName, Policy};
use serde_json::{Value, json};
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
fn ask(method: &Method, path: &str, document: &Value) -> Result<Vec<Value>, Problem> {
    let mut answers = Vec::new();
    for socket in sockets() {
        let client = Client::new(&format!("unix:{}", socket.display()), None)?;
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

/// Documents of all volumes, each with the number of its process.
fn all(path: &str) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    for answer in ask(&Method::GET, path, &Value::Null)? {
        let volumes = answer["volumes"].as_array().cloned().unwrap_or_default();
        for mut volume in volumes {
            volume["pid"] = answer["pid"].clone();
            found.push(volume);
        }
    }
    Ok(found)
}

fn is_of(volume: &Value, url: Option<&Url>) -> bool {
    url.is_none_or(|url| volume["unit_path"].as_str() == Some(&url.unit()))
}

/// The volumes that programs have open.
pub(super) fn volumes(url: Option<&Url>) -> Result<Value, Problem> {
    let found = all("/v1/volumes")?.into_iter();
    Ok(found.filter(|volume| is_of(volume, url)).collect())
}

/// What the first program that has the path says of it.
pub(super) fn explained(path: &PathName, url: Option<&Url>) -> Result<Option<Value>, Problem> {
    let name = path.to_string();
    let find = |list: &Value| {
        let all = list.as_array()?;
        all.iter()
            .find(|it| it["path"].as_str() == Some(&name))
            .cloned()
    };
    for answer in all("/v1/plans")? {
        let volume = &answer["volume"];
        let Some(now) = find(&volume["paths"]).filter(|_| is_of(volume, url)) else {
            continue;
        };
        let planned = find(&answer["plan"]["paths"]);
        return Ok(Some(json!({
            "url": volume["url"], "running": true, "pid": answer["pid"], "policy": volume["policy"],
            "now": now, "planned": planned,
        })));
    }
    Ok(None)
}

/// Lets a path out of quarantine in every program; answers in how many volumes.
pub(super) fn release(path: &PathName, url: Option<&Url>) -> Result<u64, Problem> {
    let document = json!({ "path": path.to_string(), "unit": url.map(Url::unit) });
    let answers = ask(&Method::POST, "/v1/release", &document)?;
    Ok(answers
        .iter()
        .filter_map(|it| it["released"].as_u64())
        .sum())
}

/// Sets a policy in every program that has the LUN open; answers in how many volumes.
pub(super) fn set_policy(url: &Url, policy: Policy) -> Result<u64, Problem> {
    let document = json!({ "unit": url.unit(), "policy": policy });
    let answers = ask(&Method::POST, "/v1/policy", &document)?;
    Ok(answers.iter().filter_map(|it| it["volumes"].as_u64()).sum())
}
