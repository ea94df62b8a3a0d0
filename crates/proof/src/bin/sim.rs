//! Runs the simulator over seeds: `cargo run -p proof --bin sim -- [--scene NAME] [--from S]
//! [--seeds N] [--seed S]`.
//!
//! Each processor runs seeds of its own: a seed is a world by itself, and what it does depends on
//! nothing else.
//!
//! Prints what was run and which faults were met. Where one seed is repeated, the log of the daemon
//! in it goes to standard error. On a failure the last events go to standard
//! error, then what went wrong and the command that repeats it.

use env::sim::{Fault, Hits};
use proof::sim::copy::ExtendedCopy;
use proof::sim::disk::Disk;
use proof::sim::journal::{Journal, Lies, Rot};
use proof::sim::layers::Layers;
use proof::sim::multipath::Paths;
use proof::sim::node::WholeNode;
use proof::sim::order::Order;
use proof::sim::raw::{Bug, Raw};
use proof::sim::reservations::Reservations;
use proof::sim::resets::Resets;
use proof::sim::target::Target;
use proof::sim::{Counts, Failure, Marks, Report, Scene, Story, play, run};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events that are printed when one seed is repeated.
const TRACE_LINES: usize = 2000;

/// Seeds after which progress is reported.
const REPORTED_EVERY: u64 = 50_000;

struct Wish {
    /// Names of scenes.
    scenes: Vec<&'static str>,
    first: u64,
    count: u64,
}

/// A scene with one lane, or a story, which plays itself.
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
            Self::Story(story) => play(&**story, seed, trace_lines),
        }
    }
}

fn scenes() -> Vec<Kind> {
    vec![
        Kind::Scene(Box::new(Raw::with(Bug::None))),
        Kind::Scene(Box::<Disk>::default()),
        Kind::Scene(Box::<Layers>::default()),
        Kind::Scene(Box::new(Layers::on_full_disks())),
        Kind::Scene(Box::<Target>::default()),
        Kind::Story(Box::<Order>::default()),
        Kind::Story(Box::<Resets>::default()),
        Kind::Story(Box::<ExtendedCopy>::default()),
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
        scenes: scenes().iter().map(Kind::name).collect(),
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
                wish.scenes.retain(|name| *name == value);
                if wish.scenes.is_empty() {
                    let names: Vec<&str> = scenes().iter().map(Kind::name).collect();
                    return Err(format!("no scene {value}; there are {}", names.join(", ")));
                }
            }
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(wish)
}

/// What seeds came to.
#[derive(Default)]
struct Sum {
    hits: Hits,
    marks: Marks,
    counts: Counts,
    steps: u64,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.hits.add(&other.hits);
        self.marks.add(&other.marks);
        self.counts += other.counts;
        self.steps += other.steps;
    }
}

/// Seeds that nobody has begun, until one fails.
struct Seeds {
    next: AtomicU64,
    end: u64,
    failed: AtomicBool,
}

impl Seeds {
    fn next(&self) -> Option<u64> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        (seed < self.end).then_some(seed)
    }
}

/// Runs seeds of a scene on this thread as long as there are some.
fn some(name: &str, seeds: &Seeds, wish: &Wish) -> Result<Sum, Box<Failure>> {
    let scene = scenes().into_iter().find(|scene| scene.name() == name);
    let scene = scene.expect("names of scenes were taken from them");
    let trace_lines = if wish.count == 1 { TRACE_LINES } else { 0 };
    let mut sum = Sum::default();
    while let Some(seed) = seeds.next() {
        let report = scene.run(seed, trace_lines);
        let report = report.inspect_err(|_| seeds.failed.store(true, Ordering::Relaxed))?;
        sum.add(&Sum {
            hits: report.hits,
            marks: report.marks,
            counts: report.counts,
            steps: report.steps,
        });
        let done = seed + 1 - wish.first;
        if wish.count == 1 {
            println!("hash {:016x}", report.hash);
        } else if done.is_multiple_of(REPORTED_EVERY) && done < wish.count {
            eprintln!("scene {name}: {done} of {} seeds", wish.count);
        }
    }
    Ok(sum)
}

fn simulate(name: &'static str, wish: &Wish) -> Result<(), Box<Failure>> {
    let seeds = Seeds {
        next: AtomicU64::new(wish.first),
        end: wish.first + wish.count,
        failed: AtomicBool::new(false),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Sum::default();
    std::thread::scope(|scope| {
        let run = || scope.spawn(|| some(name, &seeds, wish));
        let running: Vec<_> = (0..threads).map(|_| run()).collect();
        let ended: Vec<_> = running
            .into_iter()
            .map(|it| it.join().expect("panics are caught with their seed"))
            .collect();
        ended.into_iter().try_for_each(|ended| {
            sum.add(&ended?);
            Ok::<(), Box<Failure>>(())
        })
    })?;
    println!(
        "scene {name}: {} seeds, {} steps, {:?}",
        wish.count, sum.steps, sum.counts
    );
    println!("  {:?}", sum.marks);
    for fault in Fault::ALL {
        println!("  {:<20} {}", fault.name(), sum.hits.of(*fault));
    }
    Ok(())
}

/// What the daemon in the world says goes to standard error while one seed is repeated. Its own
/// clock would say when this ran, which nobody asks.
fn log() {
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr);
    lines
        .without_time()
        .with_max_level(tracing::Level::INFO)
        .init();
}

fn main() -> ExitCode {
    let wish = match wish(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(error) => {
            eprintln!("sim: {error}");
            return ExitCode::from(2);
        }
    };
    if wish.count == 1 {
        log();
    }
    for scene in &wish.scenes {
        if let Err(failure) = simulate(scene, &wish) {
            eprint!("{}", failure.trace);
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
