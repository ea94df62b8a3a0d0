//! What ends with a session of a host, a login, a user or a token, and whom that hits: pure.

use crate::code::Code;
use crate::facts::SessionFacts;
use crate::problem::Problem;
use crate::redundancy::address;
use crate::size::rounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What is hit.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Hit {
    /// A host that loses a path, or its last one.
    Host,
    /// A LUN that the host uses by it.
    Lun,
    /// Somebody's login with a password.
    Login,
    /// What a program sends instead of one.
    Token,
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Lun => "LUN",
            Self::Login => "login",
            Self::Token => "token",
        })
    }
}

/// A host, LUN, login or token that loses something by it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct HitView {
    /// By which `name` is read: hosts, LUNs, logins and tokens have names of their own.
    pub kind: Hit,
    /// Its name; of a login since when it is open (RFC 3339).
    pub name: String,
    /// What that means for it.
    pub detail: String,
}

impl fmt::Display for HitView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.name, self.detail)
    }
}

/// What ended, or would; what that hits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Ending {
    /// It was done; `false` for a dry run.
    pub changed: bool,
    /// What ends.
    pub ends: String,
    /// What that hits.
    pub hits: Vec<HitView>,
    /// A dry run: why it would be refused unless forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// A session as it was, which was ended or would be.
#[derive(Serialize)]
pub struct Dropped {
    /// Before its end.
    #[serde(flatten)]
    pub session: SessionFacts,
    /// Whom that hits.
    pub ending: Ending,
}

impl Ending {
    /// The end of something that hits nothing yet.
    #[must_use]
    pub fn of(ends: impl Into<String>) -> Self {
        Self {
            changed: false,
            ends: ends.into(),
            hits: Vec::new(),
            refusal: None,
        }
    }

    /// With something that is hit.
    pub fn hit(&mut self, kind: Hit, name: impl Into<String>, detail: impl Into<String>) {
        self.hits.push(HitView {
            kind,
            name: name.into(),
            detail: detail.into(),
        });
    }

    /// The end of `session`, one of `all`, over which so many bytes go a second now, where that is
    /// known. It would be refused where it is the last path of its host to a LUN.
    #[must_use]
    pub fn of_session(
        session: &SessionFacts,
        all: &[SessionFacts],
        bytes_per_second: Option<u64>,
    ) -> Self {
        let (id, host, from) = (session.id, &session.host, &session.from);
        let mut ending = Self::of(format!("session {id} of host {host} from {from}"));
        let now = bytes_per_second.map_or_else(String::new, |bytes| {
            format!(", {}/s go over it now", rounded(bytes))
        });
        let target = session.target.as_deref().unwrap_or("(discovery)");
        ending.hit(
            Hit::Host,
            host,
            format!("{} to {target}{now}", session.initiator),
        );
        let mut lost = Vec::new();
        for lun in &session.luns {
            let left = paths_left(session, all, &lun.lun);
            if left == 0 {
                lost.push(lun.lun.clone());
            }
            ending.hit(Hit::Lun, &lun.lun, left_in_words(left));
        }
        if !lost.is_empty() {
            let luns = lost.join(", ");
            ending.refusal = Some(format!(
                "it is the last path of host {host} ({}) to {luns}: until it has logged in again, what it has in flight there waits or fails",
                session.initiator
            ));
        }
        ending
    }

    /// Why it is not done without `force`; `typed`: what somebody types instead.
    #[must_use]
    pub fn refused(&self, typed: &str) -> Option<Problem> {
        let why = self.refusal.as_ref()?;
        let detail = format!("{}: {why}", self.ends);
        let hits = self.hits.iter().map(ToString::to_string).collect();
        let problem = Problem::new(Code::InUse, detail).hits(hits);
        Some(problem.confirm(typed, Vec::new()).hint(
            "give the host another path first, or repeat with --yes (REST: ?force=true); in a terminal the command asks for the host's name",
        ))
    }
}

/// By how many other paths the initiator of a session reaches a LUN: pairs of its address and a
/// portal, to each target.
fn paths_left(session: &SessionFacts, all: &[SessionFacts], lun: &str) -> usize {
    let serves = |it: &&SessionFacts| {
        it.id != session.id
            && it.initiator == session.initiator
            && it.luns.iter().any(|other| other.lun == lun)
    };
    let paths = all.iter().filter(serves);
    let paths: BTreeSet<_> = paths
        .map(|it| (&it.target, address(&it.from), &it.portal))
        .collect();
    paths.len()
}

fn left_in_words(paths: usize) -> String {
    match paths {
        0 => "its last path to it".to_owned(),
        1 => "1 path to it is left".to_owned(),
        more => format!("{more} paths to it are left"),
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.changed { "ended" } else { "would end" };
        writeln!(f, "{verb} {}", self.ends)?;
        for hit in &self.hits {
            writeln!(f, "  hits {hit}")?;
        }
        if let Some(why) = &self.refusal {
            writeln!(f, "without --yes it would be refused: {why}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    fn session(id: u64, from: &str, target: &str, luns: &[&str]) -> SessionFacts {
        let luns: Vec<_> = luns
            .iter()
            .enumerate()
            .map(|(at, lun)| json!({ "lun_id": at, "lun": lun, "read_only": false }))
            .collect();
        serde_json::from_value(json!({
            "id": id, "host": "esx01", "initiator": "iqn.a", "target": target, "from": from, "portal": "10.0.0.1:3260",
            "core": 0, "since": "", "bytes_in": 0, "bytes_out": 0, "in_flight": 0, "luns": luns, "keys": {},
        }))
        .expect("a session")
    }

    #[test]
    fn the_last_path_to_a_lun_is_refused_and_any_other_is_not() {
        let one = session(1, "10.0.0.9:1", "t", &["a", "b"]);
        let other = session(2, "10.0.1.9:2", "t", &["a"]);
        let all = [one.clone(), other.clone()];
        let ending = Ending::of_session(&one, &all, Some(5 << 20));
        let hits: Vec<String> = ending.hits.iter().map(ToString::to_string).collect();
        assert_eq!(
            hits,
            [
                "host esx01: iqn.a to t, 5 MiB/s go over it now",
                "LUN a: 1 path to it is left",
                "LUN b: its last path to it"
            ]
        );
        let problem = ending.refused("esx01").expect("it is the last path to b");
        assert_eq!(problem.code, Code::InUse);
        assert_eq!(problem.confirm.as_deref(), Some("esx01"));
        assert!(problem.detail.contains("to b: "), "{}", problem.detail);
        assert_eq!(problem.hits, hits);
        let ending = Ending::of_session(&other, &all, None);
        assert_eq!(ending.refused("esx01"), None, "{ending}");
    }

    #[test]
    fn a_second_session_of_another_machine_is_no_path_and_one_through_another_target_is() {
        let one = session(1, "10.0.0.9:1", "t", &["a"]);
        let mut stranger = session(2, "10.0.1.9:2", "t", &["a"]);
        stranger.initiator = "iqn.b".to_owned();
        let through = session(3, "10.0.0.9:3", "u", &["a"]);
        let left = |all: &[SessionFacts]| paths_left(&one, all, "a");
        assert_eq!(left(&[one.clone(), stranger]), 0);
        assert_eq!(left(&[one.clone(), through]), 1);
        let discovery = session(4, "10.0.0.9:4", "t", &[]);
        assert_eq!(
            Ending::of_session(&discovery, std::slice::from_ref(&discovery), None).refusal,
            None
        );
    }
}
