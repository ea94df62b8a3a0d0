//! `causeway bench`: a workload against volumes, in diskspd's words; and what a TARGET on the
//! command line names, for all commands that use a volume in their own process.

mod driven;
mod machine;
pub mod open;
pub mod paths_api;
mod problem;
mod profile;
mod run;
mod seconds;
mod show;
mod sweep;
mod targets;

use bench::Options;
use manifest::problem::Problem;
use output::Format;
use output::Output;
use problem::{usage, verdict};
use std::process::ExitCode;
use trials::line::BenchLine;

/// Runs the command with the words behind `bench`; its exit code.
pub fn run(words: &[String]) -> ExitCode {
    let done = start(words);
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) if driven::is_wanted(words) => {
            seconds::say(&BenchLine::Failed(problem.clone()));
            ExitCode::from(problem.exit() as u8)
        }
        Err(problem) => {
            Output::new(form(words)).problem(&problem);
            ExitCode::from(problem.exit() as u8)
        }
    }
}

/// What reads JSON reads errors as JSON, too.
fn form(words: &[String]) -> Format {
    let apart = |pair: &[String]| pair[0] == "-R" && pair[1] == "json";
    if words.iter().any(|word| word == "-Rjson") || words.windows(2).any(apart) {
        return Format::Json;
    }
    Format::Table
}

fn start(words: &[String]) -> Result<(), Problem> {
    if words.first().is_some_and(|word| word == "sweep") {
        return sweep::run(&words[1..]);
    }
    if asks_for_help(words) {
        output::print(bench::options::HELP);
        return Ok(());
    }
    if words.iter().any(|word| word == "--compare") {
        return show::comparison(words);
    }
    let is_profile = words.iter().any(|word| word.starts_with("--profile"));
    let defaults = if is_profile {
        bench::profile::defaults()
    } else {
        Options::default()
    };
    let options = bench::options::parse_over(defaults, words).map_err(usage)?;
    for warning in &options.warnings {
        eprintln!("note: {warning}");
    }
    if options.driven {
        return driven::run(&options);
    }
    if is_profile {
        return profile::run(&options);
    }
    one(&options)
}

/// `-h` alone asks for help; beside anything else it is diskspd's old word for `-Sh`.
fn asks_for_help(words: &[String]) -> bool {
    match words {
        [] => true,
        [word] if matches!(word.as_str(), "-h" | "-?" | "/?" | "help") => true,
        all => all.iter().any(|word| word == "--help"),
    }
}

/// One run and its report.
fn one(options: &Options) -> Result<(), Problem> {
    let bed = run::Bed::start(options)?;
    bed.prepare(options)?;
    let result = bed.run(options);
    bed.finish()?;
    let result = result?;
    show::result(options, &result, &machine::this())?;
    verdict(&result)
}
