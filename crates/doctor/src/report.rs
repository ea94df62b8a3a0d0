//! All that was found, and how it is reported.

use crate::finding::{Finding, Verdict};
use crate::scene::Scene;
use crate::{host_checks, open_iscsi_checks, path_checks, points};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// All findings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DoctorReport")]
pub struct Report {
    /// The ports that were inspected.
    pub ports: Vec<String>,
    /// The portals that were inspected.
    pub portals: Vec<String>,
    /// How many findings are problems.
    pub problems: usize,
    /// How many are advice.
    pub advice: usize,
    /// The findings, problems first.
    pub findings: Vec<Finding>,
}

/// Checks every point.
#[must_use]
pub fn examine(scene: &Scene) -> Report {
    let mut findings = host_checks::all(scene);
    findings.extend(path_checks::all(scene));
    findings.extend(open_iscsi_checks::all(scene));
    findings.extend(points::not_checkable());
    let portals: BTreeSet<SocketAddr> = scene.routes.iter().map(|it| it.portal).collect();
    let report = Report {
        ports: scene.ports.iter().map(|it| it.name.clone()).collect(),
        portals: portals.iter().map(ToString::to_string).collect(),
        problems: 0,
        advice: 0,
        findings: Vec::new(),
    };
    report.with(findings)
}

impl Report {
    /// With these findings, too.
    #[must_use]
    pub(crate) fn with(mut self, findings: Vec<Finding>) -> Self {
        self.findings.extend(findings);
        self.findings.sort_by_key(|finding| finding.verdict);
        let count = |verdict| {
            let of = self.findings.iter().filter(|it| it.verdict == verdict);
            of.count()
        };
        (self.problems, self.advice) = (count(Verdict::Problem), count(Verdict::Advice));
        self
    }

    /// The report as lines for people: problems first, then advice. What is well, and what cannot
    /// be seen from here, is named in one line each; `all` reports it as the others.
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
                    Verdict::NotCheckable => "NOT CHECKABLE HERE: check",
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
                let _fits = writeln!(out, "{head}: {} (--all shows)", of.count());
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
