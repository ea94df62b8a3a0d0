//! `causeway bench sweep`: every combination of lists of options, on one or several workers that
//! begin together.
//!
//! As VMFleet's Start-FleetSweep: a combination whose results are there is skipped, so that a sweep
//! that was cut off goes on where it was; workers begin when all are ready; one that ends early or
//! fails ends the sweep.

use super::problem::usage;
use super::show;
use bench::Mistake;
use bench::report::view::{Document, RunView};
use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const HELP: &str = "\
Run every combination of lists of options, and keep each result.

Usage: causeway bench sweep [LISTS] [OPTIONS] TARGET...

  -b 4,64        KiB of an operation, or sizes with units [default: 4]
  -t 1,8         threads for each target; 0 is one for each processor of this machine [default: 1]
  -o 1,32        outstanding operations of each thread [default: 32]
  -w 0,30        writes of a hundred operations [default: 0]
  -p r,s,si      random, sequential, or sequential with one position for all threads [default: r]
  --iops N,N     at most so many operations a second of each thread on each target, one run for each
  --results DIR  where results go, and where those that are there are skipped [default: .]
  --spec NAME    a part of the names of the results, to tell sweeps apart
  --worker CMD   repeatable: run there too, such as 'ssh root@host2' or 'ip netns exec h2'; `local` is this machine
                 [default: local]
  -Rjson         print the table as JSON

All other options are those of `causeway bench`, the same for every run [-d30 -W60 -C30 unless said otherwise].
A result is called result-b4t8o32w30pr[iopsN]-SPEC-WORKER.json.
";

/// One combination.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    /// As VMFleet names it: b4t8o32w30pr.
    name: String,
    /// The options that differ.
    words: Vec<String>,
}

#[derive(Debug)]
struct Sweep {
    runs: Vec<Run>,
    /// Options and targets of every run.
    common: Vec<String>,
    results: PathBuf,
    spec: String,
    workers: Vec<String>,
    json: bool,
}

fn mistake(cause: impl Into<String>, next_step: &str) -> Problem {
    let (cause, next_step) = (cause.into(), next_step.to_owned());
    usage(Mistake { cause, next_step })
}

/// A list behind its letter, or as the next word.
fn list(
    word: &str,
    letter: &str,
    rest: &mut std::slice::Iter<'_, String>,
) -> Result<Vec<String>, Problem> {
    let attached = word
        .strip_prefix(letter)
        .unwrap_or_default()
        .trim_start_matches('=');
    let next = if attached.is_empty() {
        rest.next().map(String::as_str)
    } else {
        Some(attached)
    };
    let all: Vec<String> = next
        .unwrap_or_default()
        .split(',')
        .map(str::to_owned)
        .collect();
    if all.iter().any(String::is_empty) {
        return Err(mistake(
            format!("{letter} has an empty list"),
            "such as -b 4,64",
        ));
    }
    Ok(all)
}

/// Lists as they were written, and everything else.
struct Lists {
    blocks: Vec<String>,
    threads: Vec<String>,
    outstanding: Vec<String>,
    writes: Vec<String>,
    patterns: Vec<String>,
    rates: Vec<String>,
}

impl Default for Lists {
    fn default() -> Self {
        let one = |text: &str| vec![text.to_owned()];
        Self {
            blocks: one("4"),
            threads: one("1"),
            outstanding: one("32"),
            writes: one("0"),
            patterns: one("r"),
            rates: Vec::new(),
        }
    }
}

fn parse(words: &[String]) -> Result<Sweep, Problem> {
    let mut lists = Lists::default();
    let mut sweep = Sweep {
        runs: Vec::new(),
        common: Vec::new(),
        results: PathBuf::from("."),
        spec: String::new(),
        workers: Vec::new(),
        json: false,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.get(..2).unwrap_or(word) {
            "-b" => lists.blocks = list(word, "-b", &mut rest)?,
            "-t" => lists.threads = list(word, "-t", &mut rest)?,
            "-o" => lists.outstanding = list(word, "-o", &mut rest)?,
            "-w" => lists.writes = list(word, "-w", &mut rest)?,
            "-p" => lists.patterns = list(word, "-p", &mut rest)?,
            "-R" => {
                sweep.json = word == "-Rjson"
                    || (word == "-R" && rest.next().is_some_and(|next| next == "json"));
            }
            "--" => long(word, &mut rest, &mut lists, &mut sweep)?,
            _ => sweep.common.push(word.clone()),
        }
    }
    if sweep.workers.is_empty() {
        sweep.workers.push("local".to_owned());
    }
    sweep.runs = combinations(&lists)?;
    // Mistakes are found before the first run.
    for run in &sweep.runs {
        let words = sweep.words(run);
        let options = bench::options::parse(&words).map_err(usage)?;
        if options.targets.is_empty() {
            return Err(mistake(
                "no target",
                "causeway bench sweep -b 4,64 ... TARGET",
            ));
        }
    }
    Ok(sweep)
}

fn long(
    word: &str,
    rest: &mut std::slice::Iter<'_, String>,
    lists: &mut Lists,
    sweep: &mut Sweep,
) -> Result<(), Problem> {
    let name = word.split('=').next().unwrap_or(word);
    let mut value = || {
        let attached = word.split_once('=').map(|(_, value)| value.to_owned());
        let next = attached.or_else(|| rest.next().cloned());
        next.ok_or_else(|| {
            mistake(
                format!("{name} has no value"),
                "causeway bench sweep --help",
            )
        })
    };
    match name {
        "--iops" => lists.rates = value()?.split(',').map(str::to_owned).collect(),
        "--results" => sweep.results = value()?.into(),
        "--spec" => sweep.spec = value()?,
        "--worker" => sweep.workers.push(value()?),
        _ => sweep.common.push(word.to_owned()),
    }
    Ok(())
}

fn combinations(lists: &Lists) -> Result<Vec<Run>, Problem> {
    let mut runs = Vec::new();
    for block in &lists.blocks {
        let size = if block.chars().all(|c| c.is_ascii_digit()) {
            format!("{block}K")
        } else {
            block.clone()
        };
        for threads in &lists.threads {
            let count = if threads == "0" {
                processors().to_string()
            } else {
                threads.clone()
            };
            for outstanding in &lists.outstanding {
                for writes in &lists.writes {
                    let fixed = (
                        block.as_str(),
                        size.as_str(),
                        threads.as_str(),
                        count.as_str(),
                    );
                    patterns(lists, fixed, (outstanding, writes), &mut runs)?;
                }
            }
        }
    }
    Ok(runs)
}

fn patterns(
    lists: &Lists,
    (block, size, threads, count): (&str, &str, &str, &str),
    (outstanding, writes): (&str, &str),
    runs: &mut Vec<Run>,
) -> Result<(), Problem> {
    for pattern in &lists.patterns {
        if !matches!(pattern.as_str(), "r" | "s" | "si") {
            return Err(mistake(
                format!("-p: {pattern} is no pattern"),
                "-p takes r, s and si",
            ));
        }
        let name = format!("b{block}t{threads}o{outstanding}w{writes}p{pattern}");
        let words = [
            format!("-b{size}"),
            format!("-t{count}"),
            format!("-o{outstanding}"),
            format!("-w{writes}"),
            format!("-{pattern}{size}"),
        ];
        if lists.rates.is_empty() {
            runs.push(Run {
                name,
                words: words.to_vec(),
            });
            continue;
        }
        for rate in &lists.rates {
            let name = format!("{name}iops{rate}");
            let words = [&words[..], &[format!("-g{rate}i")]].concat();
            runs.push(Run { name, words });
        }
    }
    Ok(())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A worker's name in the name of a result.
fn short(worker: &str) -> String {
    let last = worker.split_whitespace().last().unwrap_or("local");
    last.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect()
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

    /// Waits for its result, and answers it as it was told: a worker may be of another version.
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

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// One combination, its workers together.
#[derive(Default, Serialize)]
struct RowView {
    name: String,
    workers: usize,
    iops: f64,
    mib_per_second: f64,
    mean_us: f64,
    p99_us_worst: f64,
    errors: f64,
}

impl RowView {
    fn cells(self) -> Vec<String> {
        let numbers = [
            self.iops,
            self.mib_per_second,
            self.mean_us,
            self.p99_us_worst,
            self.errors,
        ];
        let numbers = numbers.map(|number| format!("{number:.1}"));
        std::iter::once(self.name).chain(numbers).collect()
    }
}

impl Sweep {
    /// The options of one run: VMFleet's where nothing else is said.
    fn words(&self, run: &Run) -> Vec<String> {
        let mut words = ["-d30", "-W60", "-C30", "-D", "-L", "-z", "-Sh"]
            .map(str::to_owned)
            .to_vec();
        if !self.common.iter().any(|word| word == "--verify") {
            // Verification has its own data.
            words.push("-Z20M".to_owned());
        }
        words.extend(run.words.iter().chain(&self.common).cloned());
        words
    }

    fn file(&self, run: &Run, worker: &str) -> PathBuf {
        let spec = if self.spec.is_empty() {
            String::new()
        } else {
            format!("-{}", self.spec)
        };
        self.results
            .join(format!("result-{}{spec}-{}.json", run.name, short(worker)))
    }

    fn is_done(&self, run: &Run) -> bool {
        self.workers
            .iter()
            .all(|worker| self.file(run, worker).exists())
    }

    /// All workers at the same time.
    fn one(&self, run: &Run) -> Result<(), Problem> {
        let words = self.words(run);
        let started: Result<Vec<Worker>, Problem> = self
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
            show::write(Some(&self.file(run, &worker)), &text)?;
        }
        Ok(())
    }

    /// The figures of all workers together.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn row(&self, run: &Run) -> Result<RowView, Problem> {
        let mut row = RowView {
            name: run.name.clone(),
            workers: self.workers.len(),
            ..RowView::default()
        };
        let mut weighted = 0.0;
        for worker in &self.workers {
            let file = self.file(run, worker);
            let Document::Run(result) = show::read(&file)? else {
                let detail = format!("{}: it is the result of a profile", file.display());
                return Err(mistake(detail, "name another --results, or remove it"));
            };
            let iops = result.total.iops.unwrap_or(0.0);
            let latency = &result.total.latency_us;
            row.iops += iops;
            row.mib_per_second += result.total.bytes_per_second.unwrap_or(0.0) / MIB;
            weighted += iops * latency.mean.unwrap_or(0.0);
            row.p99_us_worst = row.p99_us_worst.max(latency.p99.unwrap_or(0.0));
            row.errors += result.errors.unwrap_or(0) as f64;
        }
        row.mean_us = if row.iops > 0.0 {
            weighted / row.iops
        } else {
            0.0
        };
        Ok(row)
    }

    fn tell(&self) -> Result<(), Problem> {
        let rows: Result<Vec<RowView>, Problem> =
            self.runs.iter().map(|run| self.row(run)).collect();
        let rows = rows?;
        if self.json {
            crate::output::print(&show::json(&rows));
            return Ok(());
        }
        let rows: Vec<Vec<String>> = rows.into_iter().map(RowView::cells).collect();
        let head = ["RUN", "IOPS", "MiB/s", "MEAN us", "WORST 99% us", "ERRORS"];
        crate::output::print(&crate::output::table(&head, &rows));
        Ok(())
    }
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
pub(super) fn run(words: &[String]) -> Result<(), Problem> {
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        crate::output::print(HELP);
        return Ok(());
    }
    let sweep = parse(words)?;
    make_directory(&sweep.results)?;
    let count = sweep.runs.len();
    for (number, run) in sweep.runs.iter().enumerate() {
        let skip = sweep.is_done(run);
        let what = if skip { "is done already" } else { "runs" };
        eprintln!("{} of {count}: {} {what}", number + 1, run.name);
        if !skip {
            sweep.one(run)?;
        }
    }
    sweep.tell()
}

#[cfg(test)]
mod test {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_sweep_is_every_combination_named_as_vmfleet_does() {
        let sweep = parse(&words(
            "-b 4,64 -t1,8 -o 32 -w 0,30 -p r,si --iops 100,200 -d5 --spec x memory:1G",
        ))
        .unwrap();
        assert_eq!(sweep.runs.len(), 2 * 2 * 2 * 2 * 2);
        assert_eq!(sweep.runs[0].name, "b4t1o32w0priops100");
        assert_eq!(sweep.runs[0].words, words("-b4K -t1 -o32 -w0 -r4K -g100i"));
        let last = sweep.runs.last().unwrap();
        assert_eq!(last.name, "b64t8o32w30psiiops200");
        assert!(last.words.contains(&"-si64K".to_owned()));
        assert_eq!(sweep.common, ["-d5", "memory:1G"]);
        let file = sweep.file(&sweep.runs[0], "ssh root@host-2");
        assert_eq!(
            file,
            Path::new("./result-b4t1o32w0priops100-x-root_host-2.json")
        );
    }

    #[test]
    fn mistakes_are_found_before_the_first_run() {
        for (line, says) in [
            ("-b 4,,8 x", "empty list"),
            ("-p q x", "no pattern"),
            ("-w 0,300 x", "0 to 100"),
            ("-b 4", "no target"),
            ("--worker", "no value"),
            ("--qd 4 x", "no such option"),
        ] {
            let problem = parse(&words(line)).unwrap_err();
            assert!(
                problem.detail.contains(says) || problem.hint.contains(says),
                "{line}: {problem}"
            );
        }
    }
}
