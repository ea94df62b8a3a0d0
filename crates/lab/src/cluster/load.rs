//! A verified load that says what it does each second, until it is ended.

use super::site::Site;
use crate::error::LabError;
use crate::figures::Figures;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use trials::line::{self, BenchLine, Outcome, Second};

/// What the last pass of the verification takes at most, and what a host waits at most.
const END_MAX: Duration = Duration::from_secs(180);
/// How many bytes of what it writes to standard error are kept.
const ERRORS_MAX: usize = 2_000;
/// What it takes to begin.
const BEGIN_MAX: Duration = Duration::from_secs(30);

/// What it has said.
#[derive(Default)]
struct Said {
    seconds: Vec<Second>,
    outcome: Option<Result<Box<Outcome>, String>>,
    /// What it wrote to standard error, where it ended without a result.
    errors: Vec<u8>,
}

/// Keeps the last that it wrote to standard error.
async fn keep(mut from: ChildStderr, said: Rc<RefCell<Said>>) {
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let kept = &mut said.borrow_mut().errors;
        kept.extend(bytes.iter().take(read));
        let over = kept.len().saturating_sub(ERRORS_MAX);
        kept.drain(..over);
    }
}

/// A load under way.
pub(super) struct Load {
    child: Child,
    said: Rc<RefCell<Said>>,
    hears: JoinHandle<()>,
}

impl Load {
    /// Begins, and waits until the host works.
    pub(super) async fn begin(site: &Site, words: &[&str]) -> Result<Self, LabError> {
        let mut all: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        all.push("--driven".to_owned());
        let mut child = site.spawn_load(&all)?;
        let output = child.stdout.take().expect("it is piped");
        let errors = child.stderr.take().expect("it is piped");
        let said: Rc<RefCell<Said>> = Rc::default();
        let hears = Rc::clone(&said);
        tokio::task::spawn_local(keep(errors, Rc::clone(&said)));
        let hears = tokio::task::spawn_local(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(text)) = lines.next_line().await {
                match line::read(text.as_bytes()) {
                    Ok(BenchLine::Second(second)) => hears.borrow_mut().seconds.push(second),
                    Ok(BenchLine::Done(outcome)) => hears.borrow_mut().outcome = Some(Ok(outcome)),
                    Ok(BenchLine::Failed(problem)) => {
                        hears.borrow_mut().outcome = Some(Err(problem.to_string()));
                    }
                    Err(_) => {}
                }
            }
        });
        let load = Self { child, said, hears };
        let until = Instant::now() + BEGIN_MAX;
        while load.last().is_none_or(|it| it.iops == 0.0) {
            if load.is_over() || Instant::now() > until {
                return Err(LabError::new(
                    format!("the load does not begin{}", load.why()),
                    "see the cause in the message",
                ));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(load)
    }

    fn why(&self) -> String {
        match &self.said.borrow().outcome {
            Some(Err(why)) => format!(": {why}"),
            Some(Ok(_)) | None => String::new(),
        }
    }

    /// The last second.
    pub(super) fn last(&self) -> Option<Second> {
        self.said.borrow().seconds.last().cloned()
    }

    /// How many seconds it has said.
    pub(super) fn seconds(&self) -> usize {
        self.said.borrow().seconds.len()
    }

    /// The longest of all operations that ended from this second on, in milliseconds.
    pub(super) fn longest_ms(&self, from: usize) -> f64 {
        let said = self.said.borrow();
        let longest = said.seconds.iter().skip(from).filter_map(|it| it.max_us);
        longest.fold(0.0, f64::max) / 1e3
    }

    /// Each second from this one on, with the states of the paths.
    pub(super) fn account(&self, from: usize) -> String {
        let said = self.said.borrow();
        let seconds = said.seconds.iter().skip(from).map(|it| {
            let longest = it.max_us.unwrap_or(0.0) / 1e3;
            let paths = it.paths.iter().map(|path| {
                let (at, iops) = (&path.portal, path.iops);
                format!("{at} {} {iops:.0} {}", path.state, path.why)
            });
            let paths: Vec<String> = paths.collect();
            format!(
                "      second {}: {:.0} operations, longest {longest:.0} ms; {}\n",
                it.second,
                it.iops,
                paths.join(", ")
            )
        });
        seconds.collect()
    }

    /// It has ended by itself.
    pub(super) fn is_over(&self) -> bool {
        self.said.borrow().outcome.is_some() || self.hears.is_finished()
    }

    /// Ends it; what it has measured.
    pub(super) async fn end(mut self) -> Result<Figures, LabError> {
        drop(self.child.stdin.take());
        let heard = timeout(END_MAX, &mut self.hears).await;
        if heard.is_err() {
            return Err(LabError::new(
                "the load did not end",
                "check the initiator: a run must end",
            ));
        }
        let why = self.why();
        let outcome = self.said.borrow_mut().outcome.take();
        let Some(Ok(outcome)) = outcome else {
            let status = timeout(BEGIN_MAX, self.child.wait()).await;
            let status = status.map_or_else(
                |_| "still there".to_owned(),
                |it| it.map_or_else(|error| error.to_string(), |it| it.to_string()),
            );
            let said = self.said.borrow();
            let errors = String::from_utf8_lossy(&said.errors);
            let what = format!(
                "the load gave no document ({status}){why}: {}",
                errors.trim()
            );
            return Err(LabError::new(what, "see the cause in the message"));
        };
        serde_json::from_value(outcome.result).map_err(|error| {
            let what = format!("the load's document: {error}");
            LabError::new(what, "use a program of this version")
        })
    }
}
