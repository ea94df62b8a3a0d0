//! The drills: each thing that can break in a cluster, under a verified load.

use super::drills::DRILLS;
use super::net::HOST;
use super::order::{Order, Step, steps};
use super::rows::{ClusterOptions, ClusterReport, ClusterRow, StepRow, attribute};
use super::seen;
use super::site::Site;
use crate::counters::{Counters, Samples, interrupt};
use crate::error::LabError;
use crate::rig::read_figures;
use std::path::Path;
use std::process::Output;
use std::rc::Rc;
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{sleep, sleep_until, timeout};

/// Half of it writes, all of it is verified. A rate that two nodes, etcd and a host carry on one
/// machine.
const LOAD: &str = "-b16K -t1 -o4 -r -w50 -f64M -W0 -C0 -D100 -L --verify -g250i";

/// How long copies may take to be equal again.
const WHOLE_MAX: Duration = Duration::from_secs(40);
/// What the last pass of the verification takes at most, and what a host waits at most.
const END_MAX: Duration = Duration::from_secs(120);

/// Names of the drills and what they are.
#[must_use]
pub fn drills() -> Vec<(&'static str, &'static str)> {
    DRILLS.iter().map(|it| (it.name, it.title)).collect()
}

/// What is to be run: name, title, steps.
fn chosen(options: &ClusterOptions) -> Result<Vec<(String, String, Vec<Step>)>, LabError> {
    for name in &options.drills {
        if !DRILLS.iter().any(|drill| drill.name == name) {
            let known: Vec<&str> = DRILLS.iter().map(|drill| drill.name).collect();
            return Err(LabError::usage(
                format!("there is no drill {name}"),
                format!("the drills are {}", known.join(", ")),
            ));
        }
    }
    if !options.list.is_empty() {
        let title = "the steps of the list".to_owned();
        return Ok(vec![("list".to_owned(), title, options.list.clone())]);
    }
    let wanted = DRILLS.iter().filter(|drill| {
        options.drills.is_empty() || options.drills.iter().any(|name| name == drill.name)
    });
    wanted
        .map(|drill| {
            Ok((
                drill.name.to_owned(),
                drill.title.to_owned(),
                steps(drill.steps)?,
            ))
        })
        .collect()
}

/// Runs the drills; `report` is called with what is done.
///
/// # Errors
/// Where the cluster cannot be built, or a load cannot run.
pub async fn run(
    program: &Path,
    options: ClusterOptions,
    mut report: impl FnMut(&str),
) -> Result<ClusterReport, LabError> {
    let mut rows = Vec::new();
    let mut stands: Option<Site> = None;
    for (name, title, steps) in chosen(&options)? {
        for round in 1..=options.rounds.max(1) {
            let mut site = match stands.take() {
                Some(site) => site,
                None => Site::start(program, options.rate, options.buffer_kib).await?,
            };
            let row = one(&mut site, &options, &steps).await?;
            let row = ClusterRow {
                drill: name.clone(),
                title: title.clone(),
                round,
                ..row
            };
            report(&row.line());
            // What is not as before is not built upon.
            stands = row.whole_seconds.map(|_| site);
            rows.push(row);
        }
    }
    Ok(ClusterReport {
        lab: "cluster",
        options,
        rows,
    })
}

async fn one(
    site: &mut Site,
    options: &ClusterOptions,
    steps: &[Step],
) -> Result<ClusterRow, LabError> {
    let before = Duration::from_secs(u64::from(options.before));
    let last = steps.last().map_or(Duration::ZERO, Step::time);
    let most = before * 2 + last + WHOLE_MAX + END_MAX;
    let length = format!("-d{}", most.as_secs());
    let load = LOAD.split(' ').chain([length.as_str()]);
    let load: Vec<String> = load.map(str::to_owned).collect();
    let child = site.spawn_load(&load)?;
    let process = child.id();
    let names = site.net.ports(HOST).into_iter().map(|port| port.name);
    let counters = Counters::of(&site.host(), process, names.collect());
    let began = counters.began().await?;
    let (nics, states) = (Samples::default(), seen::Samples::default());
    let carried = tokio::task::spawn_local(counters.follow(began, Rc::clone(&nics)));
    let watched = seen::follow(site.sockets(), began, Rc::clone(&states));
    let watched = tokio::task::spawn_local(watched);
    let mut done = Vec::new();
    for step in steps {
        sleep_until(began + before + step.time()).await;
        done.push(StepRow::new(began.elapsed().as_secs_f64(), step));
        site.obey(&Order::parse(&step.order)?).await?;
    }
    let whole = if site.is_well() {
        site.whole(WHOLE_MAX).await
    } else {
        None
    };
    sleep(before).await;
    let ends = began.elapsed().as_secs_f64();
    interrupt(process);
    let output = ended(child).await?;
    watched.abort();
    // It ends with the process.
    let _ended = carried.await;
    let figures = read_figures(&output.stdout, &output.stderr, output.status)?;
    attribute(&mut done, &figures.series);
    let mut nics = nics.take();
    // What follows the load only reads: the last pass of the verification.
    nics.retain(|(at, _)| *at <= ends);
    let verified = figures.verify.clone().unwrap_or_default();
    let total = figures.total.as_ref();
    let longest = total.map_or(0.0, |it| it.latency_us.max / 1e3);
    let is_right = figures.errors == 0
        && figures.never_returned == 0
        && verified.bad == 0
        && verified.checked > 0;
    Ok(ClusterRow {
        drill: String::new(),
        round: 1,
        title: String::new(),
        met: is_right && done.iter().all(StepRow::met) && (whole.is_some() || !site.is_well()),
        steps: done,
        stall_ms: figures.stall_ms_max,
        longest_ms: longest.max(figures.stall_ms_max),
        whole_seconds: whole.map(|it| it.as_secs_f64()),
        errors: figures.errors + figures.never_returned,
        checked: verified.checked,
        bad: verified.bad,
        nics,
        states: states.take(),
        figures,
    })
}

/// What the load has said when it has come to its end.
async fn ended(child: Child) -> Result<Output, LabError> {
    let output = timeout(END_MAX, child.wait_with_output()).await;
    let output = output.map_err(|_| {
        LabError::new(
            "the load did not end",
            "check the initiator: a run must end",
        )
    })?;
    output.map_err(|error| LabError::system("the bench", &error))
}

impl ClusterRow {
    /// It in a line.
    fn line(&self) -> String {
        let whole = self.whole_seconds;
        format!(
            "{:<16} longest operation {:6.0} ms, {} errors, {} of {} blocks wrong, both copies whole {}   {}",
            self.drill,
            self.longest_ms,
            self.errors,
            self.bad,
            self.checked,
            whole.map_or_else(|| "not seen".to_owned(), |it| format!("after {it:.1} s")),
            self.title
        )
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_drill_can_be_read_has_a_name_of_its_own_and_a_bar() {
        let all = chosen(&ClusterOptions::default()).unwrap();
        let names: std::collections::BTreeSet<&String> = all.iter().map(|it| &it.0).collect();
        assert_eq!(names.len(), all.len());
        for (name, _, steps) in &all {
            assert!(steps.iter().any(|it| it.bar_ms.is_some()), "{name}");
        }
        let options = ClusterOptions {
            drills: vec!["nothing".to_owned()],
            ..ClusterOptions::default()
        };
        assert!(
            chosen(&options)
                .unwrap_err()
                .what
                .contains("no drill nothing")
        );
    }
}
