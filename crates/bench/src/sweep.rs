//! A sweep: every combination of lists of options, each a run of its own, as VMFleet's
//! Start-FleetSweep has it. Who runs them and keeps their results is the caller's business.

use crate::options::{self, Mistake};
use crate::report::view::RunView;
use serde::Serialize;
use std::path::PathBuf;

/// How to use it.
pub const HELP: &str = "\
Run every combination of lists of options, and keep each result.

Usage: causeway bench sweep [LISTS] [OPTIONS] TARGET...

  -b 4,64        KiB of an operation, or sizes with units [default: 4]
  -t 1,8         threads for each target; 0 is one for each processor of this machine [default: 1]
  -o 1,32        outstanding operations of each thread [default: 32]
  -w 0,30        writes of a hundred operations [default: 0]
  -p r,s,si      random, sequential, or sequential with one position for all threads [default: r]
  --iops N,N     at most so many operations a second of each thread on each target, one run for each
  --results DIR  where results go, and where those that are there are skipped [default: .]
  --spec NAME    a part of the names of the results, to distinguish sweeps
  --worker CMD   repeatable: run there too, such as 'ssh root@host2' or 'ip netns exec h2'; `local` is this machine
                 [default: local]
  -Rjson         print the table as JSON

All other options are those of `causeway bench`, the same for every run [-d30 -W60 -C30 unless said otherwise].
A result is called result-b4t8o32w30pr[iopsN]-SPEC-WORKER.json.
";

/// One combination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SweepRun {
    /// As VMFleet names it: b4t8o32w30pr.
    pub name: String,
    /// The options that differ.
    pub words: Vec<String>,
}

/// What a sweep shall do.
#[derive(Debug)]
pub struct Sweep {
    /// The combinations, in the order of the lists.
    pub runs: Vec<SweepRun>,
    /// Options and targets of every run.
    pub common: Vec<String>,
    /// Where results go.
    pub results: PathBuf,
    /// A part of the names of the results; empty: none.
    pub spec: String,
    /// Where each combination runs at the same time.
    pub workers: Vec<String>,
    /// The table is wanted as JSON.
    pub json: bool,
}

fn mistake(cause: impl Into<String>, next_step: &str) -> Mistake {
    let (cause, next_step) = (cause.into(), next_step.to_owned());
    Mistake { cause, next_step }
}

/// A list behind its letter, or as the next word.
fn list(
    word: &str,
    letter: &str,
    rest: &mut std::slice::Iter<'_, String>,
) -> Result<Vec<String>, Mistake> {
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

/// Reads the words behind `bench sweep`, all of them: mistakes are found before the first run.
/// `processors`: how many this machine has.
///
/// # Errors
/// A word or a combination is wrong.
pub fn parse(words: &[String], processors: usize) -> Result<Sweep, Mistake> {
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
    sweep.runs = combinations(&lists, processors)?;
    // Mistakes are found before the first run.
    for run in &sweep.runs {
        let words = sweep.words(run);
        let read = options::parse(&words)?;
        if read.targets.is_empty() {
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
) -> Result<(), Mistake> {
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

fn combinations(lists: &Lists, processors: usize) -> Result<Vec<SweepRun>, Mistake> {
    let mut runs = Vec::new();
    for block in &lists.blocks {
        let size = if block.chars().all(|c| c.is_ascii_digit()) {
            format!("{block}K")
        } else {
            block.clone()
        };
        for threads in &lists.threads {
            let count = if threads == "0" {
                processors.to_string()
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
    runs: &mut Vec<SweepRun>,
) -> Result<(), Mistake> {
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
            runs.push(SweepRun {
                name,
                words: words.to_vec(),
            });
            continue;
        }
        for rate in &lists.rates {
            let name = format!("{name}iops{rate}");
            let words = [&words[..], &[format!("-g{rate}i")]].concat();
            runs.push(SweepRun { name, words });
        }
    }
    Ok(())
}

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// One combination, its workers together.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct SweepRow {
    /// The combination.
    pub name: String,
    /// How many workers ran it.
    pub workers: usize,
    /// Operations a second, of all together.
    pub iops: f64,
    /// MiB a second, of all together.
    pub mib_per_second: f64,
    /// Mean latency of their operations.
    pub mean_us: f64,
    /// The 99th percentile of the worker that has the worst.
    pub p99_us_worst: f64,
    /// Operations that failed.
    pub errors: f64,
}

impl SweepRow {
    /// The names of its columns.
    pub const HEAD: [&str; 6] = ["RUN", "IOPS", "MiB/s", "MEAN us", "WORST 99% us", "ERRORS"];

    /// The figures of all workers together.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    #[must_use]
    pub fn of(name: &str, results: &[RunView]) -> Self {
        let mut row = Self {
            name: name.to_owned(),
            workers: results.len(),
            ..Self::default()
        };
        let mut weighted = 0.0;
        for result in results {
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
        row
    }

    /// As a row of a table, under [`Self::HEAD`].
    #[must_use]
    pub fn cells(self) -> Vec<String> {
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
    #[must_use]
    pub fn words(&self, run: &SweepRun) -> Vec<String> {
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

    /// Where the result of a worker goes.
    #[must_use]
    pub fn file(&self, run: &SweepRun, worker: &str) -> PathBuf {
        let spec = if self.spec.is_empty() {
            String::new()
        } else {
            format!("-{}", self.spec)
        };
        self.results
            .join(format!("result-{}{spec}-{}.json", run.name, short(worker)))
    }
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

#[cfg(test)]
mod test {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_sweep_is_every_combination_named_as_vmfleet_does() {
        let line = "-b 4,64 -t1,8 -o 32 -w 0,30 -p r,si --iops 100,200 -d5 --spec x memory:1G";
        let sweep = parse(&words(line), 2).unwrap();
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
            PathBuf::from("./result-b4t1o32w0priops100-x-root_host-2.json")
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
            let wrong = parse(&words(line), 2).unwrap_err();
            assert!(
                wrong.cause.contains(says) || wrong.next_step.contains(says),
                "{line}: {wrong:?}"
            );
        }
    }
}
