//! Best practice for storage over several paths, point by point: what is well here, what is not,
//! why, and what to do.
//!
//! ```text
//!   look()  reads the host      \
//!   roads() tries the portals    >--  Scene  --- examine() --->  findings, each with its points
//!   a plan of the planner       /
//! ```
//!
//! **Contract.** Nothing is changed. A check is a pure function of the [`Scene`]; each point of
//! best practice has a finding, and a point that no program can see from here says what to look at.
//! Works without a URL (then every port of the host counts as a storage port) and without a daemon.

mod host_checks;
mod open_iscsi;
mod path_checks;
mod points;
mod scene;

pub use open_iscsi::{OpenIscsi, PathDisk, Record, Session};
pub use scene::{Disk, Pools, Road, Scene, Space, look, road, used};

use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// How a point stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It costs data, access or most of the speed.
    Problem,
    /// It could be better.
    Advice,
    /// It is well.
    Good,
    /// A program cannot see it from here.
    NotCheckable,
}

/// What was found about some points.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// A word for programs, stable.
    pub check: &'static str,
    /// The points of best practice that it is about, by number; empty: one of those without a
    /// number.
    pub points: Vec<u8>,
    /// How they stand.
    pub verdict: Verdict,
    /// What was seen.
    pub what: String,
    /// Why that matters.
    pub cause: String,
    /// What to do, or to look at.
    pub remedy: String,
}

impl Finding {
    pub(crate) fn new(check: &'static str, points: &[u8], verdict: Verdict, what: String) -> Self {
        Self {
            check,
            points: points.to_vec(),
            verdict,
            what,
            cause: String::new(),
            remedy: String::new(),
        }
    }

    pub(crate) fn good(check: &'static str, points: &[u8], what: impl Into<String>) -> Self {
        Self::new(check, points, Verdict::Good, what.into())
    }

    pub(crate) fn because(mut self, cause: &str) -> Self {
        cause.clone_into(&mut self.cause);
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// All findings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The ports that were looked at.
    pub ports: Vec<String>,
    /// The portals that were looked at.
    pub portals: Vec<String>,
    /// How many findings are problems.
    pub problems: usize,
    /// How many are advice.
    pub advice: usize,
    /// The findings, problems first.
    pub findings: Vec<Finding>,
}

/// Looks at every point.
#[must_use]
pub fn examine(scene: &Scene) -> Report {
    let mut findings = host_checks::all(scene);
    findings.extend(path_checks::all(scene));
    findings.extend(open_iscsi::all(scene));
    findings.extend(points::not_checkable());
    findings.sort_by_key(|finding| finding.verdict);
    let portals: BTreeSet<SocketAddr> = scene.roads.iter().map(|it| it.portal).collect();
    let count = |verdict| {
        let of = findings.iter().filter(|it| it.verdict == verdict);
        of.count()
    };
    Report {
        ports: scene.ports.iter().map(|it| it.name.clone()).collect(),
        portals: portals.iter().map(ToString::to_string).collect(),
        problems: count(Verdict::Problem),
        advice: count(Verdict::Advice),
        findings,
    }
}

impl Report {
    /// The report as lines for people: problems first, then advice. What is well, and what cannot
    /// be seen from here, is named in one line each; `all` tells of it as of the others.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut out = String::new();
        let mut last = None;
        for finding in &self.findings {
            if !all && !matches!(finding.verdict, Verdict::Problem | Verdict::Advice) {
                continue;
            }
            if last != Some(finding.verdict) {
                let head = match finding.verdict {
                    Verdict::Problem => "PROBLEMS",
                    Verdict::Advice => "ADVICE",
                    Verdict::Good => "GOOD",
                    Verdict::NotCheckable => "NOT CHECKABLE HERE: look at",
                };
                let gap = if last.is_some() { "\n" } else { "" };
                let _fits = writeln!(out, "{gap}{head}");
                last = Some(finding.verdict);
            }
            let points: Vec<String> = finding.points.iter().map(u8::to_string).collect();
            let _fits = writeln!(
                out,
                "  {:<22} {:<8} {}",
                finding.check,
                points.join(","),
                finding.what
            );
            for (name, text) in [("why", &finding.cause), ("do", &finding.remedy)] {
                let shown = finding.verdict != Verdict::Good && !text.is_empty();
                if shown {
                    let _fits = writeln!(out, "  {:<22} {:<8} {name}: {text}", "", "");
                }
            }
        }
        if last.is_none() {
            out.push_str("no problem, and no advice\n");
        }
        if !all {
            out.push('\n');
            for (verdict, head) in [
                (Verdict::Good, "good"),
                (Verdict::NotCheckable, "not checkable from here"),
            ] {
                let of = self.findings.iter().filter(|it| it.verdict == verdict);
                let _fits = writeln!(out, "{head}: {} (--all tells)", of.count());
            }
        }
        let _fits = writeln!(
            out,
            "\nports: {}\nportals: {}",
            list(&self.ports),
            list(&self.portals)
        );
        out
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod test;
