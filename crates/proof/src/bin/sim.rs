//! Runs the simulator over seeds: `cargo run -p proof --bin sim -- [--scene NAME] [--from S] [--seeds N] [--seed S]`.
//!
//! Prints what was run and which faults were met; on a failure the last events go to standard error, then
//! what went wrong and the command that repeats it.

use env::sim::{Fault, Hits};
use proof::sim::disk::Disk;
use proof::sim::raw::{Bug, Raw};
use proof::sim::target::Target;
use proof::sim::{Counts, Failure, Scene, run};
use std::process::ExitCode;

/// Events that are printed when one seed is repeated.
const TRACE_LINES: usize = 2000;

struct Wish {
    scenes: Vec<Box<dyn Scene>>,
    first: u64,
    count: u64,
}

fn scenes() -> Vec<Box<dyn Scene>> {
    vec![
        Box::new(Raw::with(Bug::None)),
        Box::<Disk>::default(),
        Box::<Target>::default(),
    ]
}

fn wish(mut words: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut wish = Wish {
        scenes: scenes(),
        first: 0,
        count: 1000,
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{value} is no number"))
        };
        match word.as_str() {
            "--seeds" => wish.count = number()?,
            "--from" => wish.first = number()?,
            "--seed" => (wish.first, wish.count) = (number()?, 1),
            "--scene" => {
                wish.scenes.retain(|scene| scene.name() == value);
                if wish.scenes.is_empty() {
                    let all = scenes();
                    let names: Vec<&str> = all.iter().map(|scene| scene.name()).collect();
                    return Err(format!("no scene {value}; there are {}", names.join(", ")));
                }
            }
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(wish)
}

fn simulate(scene: &dyn Scene, wish: &Wish) -> Result<(), Box<Failure>> {
    let (mut hits, mut counts, mut steps) = (Hits::default(), Counts::default(), 0);
    let trace_lines = if wish.count == 1 { TRACE_LINES } else { 0 };
    for seed in wish.first..wish.first + wish.count {
        let report = run(scene, seed, trace_lines)?;
        hits.add(&report.hits);
        counts += report.counts;
        steps += report.steps;
        if wish.count == 1 {
            println!("hash {:016x}", report.hash);
        }
    }
    println!(
        "scene {}: {} seeds, {steps} steps, {counts:?}",
        scene.name(),
        wish.count
    );
    for fault in Fault::ALL {
        println!("  {:<20} {}", fault.name(), hits.of(*fault));
    }
    Ok(())
}

fn main() -> ExitCode {
    let wish = match wish(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(error) => {
            eprintln!("sim: {error}");
            return ExitCode::from(2);
        }
    };
    for scene in &wish.scenes {
        if let Err(failure) = simulate(&**scene, &wish) {
            eprint!("{}", failure.trace);
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
