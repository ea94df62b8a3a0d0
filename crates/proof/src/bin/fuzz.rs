//! Fuzzes on stable Rust: `cargo run --release -p proof --bin fuzz -- [--target NAME] [--seconds N]
//! [--seed S]`.
//!
//! `--executions N` runs a fixed number instead of a time, `--input FILE` runs one file,
//! `--seeds-to DIR` writes the seeds of every target there, as a corpus for another fuzzer.

use proof::fuzz::{FuzzTarget, TARGETS, run, run_one, seeds_of};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Wish {
    target: Option<String>,
    seconds: Option<u64>,
    executions: Option<u64>,
    seed: u64,
    input: Option<PathBuf>,
    seeds_to: Option<PathBuf>,
}

fn wish(mut words: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut wish = Wish {
        seed: 1,
        ..Wish::default()
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let number = || {
            let number = value.parse::<u64>();
            number.map_err(|_| format!("{value} is no number"))
        };
        match word.as_str() {
            "--target" => wish.target = Some(value),
            "--seconds" => wish.seconds = Some(number()?),
            "--executions" => wish.executions = Some(number()?),
            "--seed" => wish.seed = number()?,
            "--input" => wish.input = Some(value.into()),
            "--seeds-to" => wish.seeds_to = Some(value.into()),
            other => return Err(format!("{other} is not known")),
        }
    }
    let known = |name: &String| TARGETS.iter().any(|target| target.name == name);
    match &wish.target {
        Some(name) if !known(name) => {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            Err(format!("no target {name}; there are {}", names.join(", ")))
        }
        None if wish.input.is_some() => Err("--input needs --target".to_owned()),
        Some(_) | None => Ok(wish),
    }
}

fn write_seeds(targets: &[&FuzzTarget], directory: &Path) -> Result<(), String> {
    for target in targets {
        let directory = directory.join(target.name);
        let failed = |error| format!("{}: {error}", directory.display());
        std::fs::create_dir_all(&directory).map_err(failed)?;
        for (number, bytes) in seeds_of(target).iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{number}")), bytes).map_err(failed)?;
        }
    }
    Ok(())
}

/// The real clock: how long a fuzzer runs decides nothing but how much it tries.
#[expect(
    clippy::disallowed_methods,
    reason = "a tool that runs for a time that its user names"
)]
fn clock() -> Instant {
    Instant::now()
}

fn fuzz(target: &FuzzTarget, wish: &Wish) -> Result<(), String> {
    let start = clock();
    let time = Duration::from_secs(wish.seconds.unwrap_or(10));
    let mut go_on = |tried: u64| match wish.executions {
        Some(executions) => tried < executions,
        None => !tried.is_multiple_of(64) || start.elapsed() < time,
    };
    let tried = run(target, wish.seed, &mut go_on).map_err(|finding| {
        let place = finding.write(Path::new("fuzz/artifacts"));
        let place = place.map_or_else(|error| error.to_string(), |path| path.display().to_string());
        format!(
            "{finding}\n  written to {place}; repeat it with --target {} --input {place}",
            target.name
        )
    })?;
    let (seconds, name) = (start.elapsed().as_secs_f64(), target.name);
    println!(
        "{name:<20} {tried:>9} executions {seconds:>6.1} s, seed {}",
        wish.seed
    );
    Ok(())
}

fn work(wish: &Wish) -> Result<(), String> {
    let wanted = |target: &&FuzzTarget| wish.target.as_ref().is_none_or(|name| target.name == name);
    let targets: Vec<&FuzzTarget> = TARGETS.iter().filter(wanted).collect();
    if let Some(directory) = &wish.seeds_to {
        return write_seeds(&targets, directory);
    }
    if let Some(path) = &wish.input {
        let input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        return targets
            .iter()
            .try_for_each(|target| run_one(target, &input));
    }
    targets.iter().try_for_each(|target| fuzz(target, wish))
}

fn main() -> ExitCode {
    match wish(std::env::args().skip(1)).and_then(|wish| work(&wish)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}
