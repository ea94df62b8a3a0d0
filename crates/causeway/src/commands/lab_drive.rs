//! `causeway lab drive`: a bed with a load over its paths, which the daemon drives.
//!
//! **Contract.** It says a line a second on standard output, and takes orders, a line each, on
//! standard input. When that ends, as it does when whoever drives it is gone, or when the load is
//! over, everything that was built is removed.

use clap::Args;
use lab::{Harm, Known, LabError, Rate, Rig, SLOW, Side, Use};
use manifest::code::Code;
use manifest::problem::Problem;
use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::sync::mpsc;
use trials::BedFacts;
use trials::line::{self, BedLine, BenchLine, LinkOrder, LinkState};

/// What is driven.
#[derive(Args, Debug)]
pub(crate) struct Drive {
    /// The bed's name: `causeway api GET lab` lists them
    topology: String,
    /// Rate of every link
    #[arg(long, value_name = "RATE", default_value = "250M")]
    rate: Rate,
    /// Bytes of an operation of the load
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(4096..=1_048_576))]
    block: u32,
    /// Operations in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    outstanding: u32,
    /// Writes among a hundred operations
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    write_percent: u8,
    /// How long the load runs
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(10..=3600))]
    seconds: u32,
}

fn say(line: &BedLine) {
    let mut out = std::io::stdout().lock();
    // Where nobody reads any more, standard input has ended as well.
    let _gone = out.write_all(line::write(line).as_bytes());
    let _gone = out.flush();
}

/// Says what went wrong, where the daemon reads it.
pub(crate) fn failed(problem: &Problem) {
    say(&BedLine::Failed(problem.clone()));
}

/// Lines of standard input, until it ends.
fn orders() -> Result<mpsc::UnboundedReceiver<String>, LabError> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let reader = std::thread::Builder::new().name("orders".to_owned());
    let reader = reader.spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    reader.map_err(|error| LabError::system("the thread of orders", &error))?;
    Ok(receiver)
}

/// Builds it, and stays until it is over.
pub(crate) async fn run(program: &Path, drive: &Drive) -> Result<(), LabError> {
    let mut orders = orders()?;
    let known = lab::known(&drive.topology, drive.rate).ok_or_else(|| {
        let what = format!("there is no bed {}", drive.topology);
        LabError::usage(what, "`causeway api GET lab` lists them")
    })?;
    let rig = tokio::select! {
        rig = build(program, &known) => rig?,
        () = ended(&mut orders) => return Ok(()),
    };
    Bed::new(rig, known).go_on(drive, orders).await
}

/// Until standard input ends.
async fn ended(orders: &mut mpsc::UnboundedReceiver<String>) {
    while orders.recv().await.is_some() {}
}

async fn build(program: &Path, known: &Known) -> Result<Rig, LabError> {
    let disk = lab::Disk {
        mebibytes: 256,
        ..lab::Disk::default()
    };
    let rig = Rig::start(program, known.topology.clone(), &disk).await?;
    if known.is_team() {
        rig.bed().team().await?;
    }
    Ok(rig)
}

/// The words of the load.
fn load(drive: &Drive, known: &Known) -> Use {
    let all = [
        format!("-b{}", drive.block),
        format!("-o{}", drive.outstanding),
        format!("-w{}", drive.write_percent),
        format!("-d{}", drive.seconds),
    ];
    let fixed = ["-t1", "-r", "-f128M", "-W0", "-C0", "--verify", "--driven"];
    known.how.clone().with(&all).with(&fixed)
}

/// A bed that stands.
struct Bed {
    rig: Rig,
    known: Known,
    /// What is done to links, by name.
    harmed: BTreeMap<String, Harm>,
}

impl Bed {
    fn new(rig: Rig, known: Known) -> Self {
        Self {
            rig,
            known,
            harmed: BTreeMap::new(),
        }
    }

    async fn go_on(
        mut self,
        drive: &Drive,
        mut orders: mpsc::UnboundedReceiver<String>,
    ) -> Result<(), LabError> {
        let how = load(drive, &self.known);
        let mut child = self.rig.spawn_driven(&how)?;
        // It ends with this: the load ends with its standard input.
        let _driver = child.stdin.take();
        let output = child.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines();
        say(&BedLine::Built(self.facts(&how)));
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.obey(&order).await,
                    None => return Ok(()),
                },
                line = next(&mut lines) => match line {
                    Some(BenchLine::Second(second)) => say(&BedLine::Second(second)),
                    Some(BenchLine::Done(outcome)) => {
                        say(&BedLine::LoadEnded(outcome.problem));
                        return Ok(());
                    }
                    Some(BenchLine::Failed(problem)) => {
                        say(&BedLine::LoadEnded(Some(problem)));
                        return Ok(());
                    }
                    None => {
                        let problem = Problem::new(Code::LabFailed, "the load ended without a word");
                        say(&BedLine::LoadEnded(Some(problem)));
                        return Ok(());
                    }
                },
            }
        }
    }

    fn facts(&self, how: &Use) -> BedFacts {
        let bed = self.rig.bed();
        let host = bed.namespace(Side::Host);
        BedFacts {
            load: format!(
                "ip netns exec {host} causeway bench {} {}",
                how.words.join(" "),
                self.rig.url()
            ),
            namespaces: vec![host, bed.switch(), bed.namespace(Side::Target)],
            plan: lab::plan(bed.topology()),
        }
    }

    async fn obey(&mut self, order: &str) {
        let refuse = |why: String| {
            say(&BedLine::Refused(Problem::new(Code::LabUsage, why)));
        };
        let order: LinkOrder = match line::read(order.as_bytes()) {
            Ok(order) => order,
            Err(why) => return refuse(why),
        };
        match self.set(&order).await {
            Ok(()) => say(&BedLine::Link(order)),
            Err(error) => refuse(error.to_string()),
        }
    }

    async fn set(&mut self, order: &LinkOrder) -> Result<(), LabError> {
        let topology = self.rig.bed().topology();
        let found = [Side::Host, Side::Target]
            .into_iter()
            .find_map(|side| Some((side, topology.find(side, &order.link)?)));
        let (side, number) = found.ok_or_else(|| {
            let what = format!("there is no link {}", order.link);
            LabError::usage(what, "name a port of the bed")
        })?;
        if let Some(harm) = self.harmed.remove(&order.link) {
            self.rig.bed().mend(side, &[number], harm).await?;
        }
        let harm = match order.state {
            LinkState::Up => return Ok(()),
            LinkState::Cut => Harm::Cut,
            LinkState::BlackHole => Harm::BlackHole,
            LinkState::Slow => Harm::Slow(SLOW),
        };
        self.rig.bed().harm(side, &[number], harm).await?;
        self.harmed.insert(order.link.clone(), harm);
        Ok(())
    }
}

/// What the load says next that can be understood.
async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<BenchLine> {
    loop {
        let line = lines.next_line().await.ok()??;
        if let Ok(line) = line::read(line.as_bytes()) {
            return Some(line);
        }
    }
}
