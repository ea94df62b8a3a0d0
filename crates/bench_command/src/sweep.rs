//! `causeway bench sweep`: every combination of lists of options, on one or several workers that
//! begin together.
//!
//! As VMFleet's Start-FleetSweep: a combination whose results are there is skipped, so that a sweep
//! that was cut off goes on where it was; workers begin when all are ready; one that ends early or
//! fails ends the sweep.

use crate::problem::usage;
use crate::show;
use bench::Mistake;
use bench::report::view::{Document, RunView};
use bench::sweep::{HELP, Sweep, SweepRow, SweepRun, parse};
use manifest::code::Code;
use manifest::problem::Problem;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

fn mistake(cause: impl Into<String>, next_step: &str) -> Problem {
    let (cause, next_step) = (cause.into(), next_step.to_owned());
    usage(Mistake { cause, next_step })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A worker that runs.
struct Worker {
    name: String,
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended cannot be ended any more.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Worker {
    fn start(worker: &str, words: &[String]) -> Result<Self, Problem> {
        let failed = |why: String| {
            let detail = format!("worker {worker}: {why}");
            Problem::new(Code::BenchFailed, detail)
                .hint("a worker is `local`, or a command that runs what follows it")
        };
        let here = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut prefix = worker.split_whitespace();
        let first = prefix.next().filter(|first| *first != "local");
        let mut command = match first {
            None => Command::new(here),
            Some(first) => {
                let mut command = Command::new(first);
                command.args(prefix);
                // Elsewhere it is wherever the shell finds it.
                if first == "ssh" {
                    command.arg("causeway")
                } else {
                    command.arg(here)
                };
                command
            }
        };
        let quote = |word: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=".contains(c);
            if first == Some("ssh") && !word.chars().all(plain) {
                return format!("'{}'", word.replace('\'', "'\\''"));
            }
            word.clone()
        };
        command
            .arg("bench")
            .args(words.iter().map(quote))
            .args(["--barrier", "--quiet", "-Rjson"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut worker = Self {
            name: worker.to_owned(),
            child,
            out,
        };
        let mut line = String::new();
        let read = worker.out.read_line(&mut line);
        if read.is_err() || line != "ready\n" {
            return Err(worker.failed("it did not become ready; what it said stands above"));
        }
        Ok(worker)
    }

    fn failed(&self, why: &str) -> Problem {
        Problem::new(Code::BenchFailed, format!("worker {}: {why}", self.name))
            .hint("mend that, then repeat: combinations that are done are skipped")
    }

    /// Lets it begin.
    fn go(&mut self) -> Result<(), Problem> {
        let gone = self
            .child
            .stdin
            .take()
            .map(|mut input| input.write_all(b"go\n"));
        match gone {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.failed("it ended before it could begin")),
        }
    }

    /// Waits for its result, and answers it as it was reported: a worker may be of another version.
    fn result(&mut self) -> Result<String, Problem> {
        let mut text = String::new();
        let read = self.out.read_to_string(&mut text);
        let ended = self.child.wait();
        let result: Option<RunView> = serde_json::from_str(&text).ok();
        let (Ok(_), Ok(status), Some(result)) = (read, ended, result) else {
            return Err(self.failed("it gave no result"));
        };
        if !status.success() {
            return Err(self.failed("its run did not go well; what it said stands above"));
        }
        if result.stopped_early {
            return Err(self.failed("it ended early, so the others were not loaded like it"));
        }
        Ok(text)
    }
}

fn is_done(sweep: &Sweep, run: &SweepRun) -> bool {
    let mut files = sweep.workers.iter().map(|worker| sweep.file(run, worker));
    files.all(|file| file.exists())
}

/// All workers at the same time.
fn one(sweep: &Sweep, run: &SweepRun) -> Result<(), Problem> {
    let words = sweep.words(run);
    let started: Result<Vec<Worker>, Problem> = sweep
        .workers
        .iter()
        .map(|worker| Worker::start(worker, &words))
        .collect();
    let mut workers = started?;
    for worker in &mut workers {
        worker.go()?;
    }
    let mut results = Vec::new();
    for worker in &mut workers {
        results.push((worker.name.clone(), worker.result()?));
    }
    // Only a whole set is kept: half of one would be skipped as if it were done.
    for (worker, text) in results {
        show::write(Some(&sweep.file(run, &worker)), &text)?;
    }
    Ok(())
}

/// The figures of all workers together, from their results.
fn row(sweep: &Sweep, run: &SweepRun) -> Result<SweepRow, Problem> {
    let mut results = Vec::new();
    for worker in &sweep.workers {
        let file = sweep.file(run, worker);
        let Document::Run(result) = show::read(&file)? else {
            let detail = format!("{}: it is the result of a profile", file.display());
            return Err(mistake(detail, "name another --results, or remove it"));
        };
        results.push(*result);
    }
    Ok(SweepRow::of(&run.name, &results))
}

fn report(sweep: &Sweep) -> Result<(), Problem> {
    let rows: Result<Vec<SweepRow>, Problem> =
        sweep.runs.iter().map(|run| row(sweep, run)).collect();
    let rows = rows?;
    if sweep.json {
        output::print(&show::json(&rows));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(SweepRow::cells).collect();
    output::print(&output::table(&SweepRow::HEAD, &rows));
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(path).map_err(|error| {
        mistake(
            format!("--results {}: {error}", path.display()),
            "name a directory",
        )
    })
}

/// Runs a sweep.
pub(crate) fn run(words: &[String]) -> Result<(), Problem> {
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        output::print(HELP);
        return Ok(());
    }
    let sweep = parse(words, processors()).map_err(usage)?;
    make_directory(&sweep.results)?;
    let count = sweep.runs.len();
    for (number, run) in sweep.runs.iter().enumerate() {
        let skip = is_done(&sweep, run);
        let what = if skip { "is done already" } else { "runs" };
        eprintln!("{} of {count}: {} {what}", number + 1, run.name);
        if !skip {
            one(&sweep, run)?;
        }
    }
    report(&sweep)
}
