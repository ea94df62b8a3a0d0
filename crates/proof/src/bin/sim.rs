//! Runs the simulator over seeds: `cargo run -p proof --bin sim -- [--scene NAME] [--from S] [--seeds N] [--seed S]`.
//!
//! Prints what was run and which faults were met; on a failure the last events go to standard error, then
//! what went wrong and the command that repeats it.

use env::sim::{Fault, Hits};
use proof::sim::copy::Copy;
use proof::sim::disk::Disk;
use proof::sim::journal::{Journal, Lies, Rot};
use proof::sim::layers::Layers;
use proof::sim::multipath::Paths;
use proof::sim::node::WholeNode;
use proof::sim::order::Order;
use proof::sim::raw::{Bug, Raw};
use proof::sim::reservations::Reservations;
use proof::sim::target::Target;
use proof::sim::{Counts, Failure, Marks, Report, Scene, Story, run, tell};
use std::process::ExitCode;

/// Events that are printed when one seed is repeated.
const TRACE_LINES: usize = 2000;

struct Wish {
    scenes: Vec<Kind>,
    first: u64,
    count: u64,
}

/// A scene with one lane, or one that tells itself.
enum Kind {
    Scene(Box<dyn Scene>),
    Story(Box<dyn Story>),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Scene(scene) => scene.name(),
            Self::Story(story) => story.name(),
        }
    }

    fn run(&self, seed: u64, trace_lines: usize) -> Result<Report, Box<Failure>> {
        match self {
            Self::Scene(scene) => run(&**scene, seed, trace_lines),
            Self::Story(story) => tell(&**story, seed, trace_lines),
        }
    }
}

fn scenes() -> Vec<Kind> {
    vec![
        Kind::Scene(Box::new(Raw::with(Bug::None))),
        Kind::Scene(Box::<Disk>::default()),
        Kind::Scene(Box::<Layers>::default()),
        Kind::Scene(Box::<Target>::default()),
        Kind::Story(Box::<Order>::default()),
        Kind::Story(Box::<Copy>::default()),
        Kind::Story(Box::<Journal>::default()),
        Kind::Story(Box::<Rot>::default()),
        Kind::Story(Box::<Lies>::default()),
        Kind::Story(Box::<Paths>::default()),
        Kind::Story(Box::<WholeNode>::default()),
        Kind::Story(Box::<Reservations>::default()),
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

fn simulate(scene: &Kind, wish: &Wish) -> Result<(), Box<Failure>> {
    let (mut hits, mut marks) = (Hits::default(), Marks::default());
    let (mut counts, mut steps) = (Counts::default(), 0);
    let trace_lines = if wish.count == 1 { TRACE_LINES } else { 0 };
    for seed in wish.first..wish.first + wish.count {
        let report = scene.run(seed, trace_lines)?;
        hits.add(&report.hits);
        counts += report.counts;
        marks.add(&report.marks);
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
    println!("  {marks:?}");
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
        if let Err(failure) = simulate(scene, &wish) {
            eprint!("{}", failure.trace);
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
