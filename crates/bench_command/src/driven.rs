//! A bench that a program drives: the daemon, or a lab.
//!
//! **Contract.** It says a line a second and a last one with the result, all on standard output. It
//! has a low priority, and the kernel takes its memory before that of others. It stops when
//! standard input ends, as it does when whoever drives it is gone, however that ended. Who still
//! reads its standard output gets the result, however long the last verification takes.

use crate::{machine, problem::verdict, run::Bed, seconds::say};
use bench::Options;
use bench::report::{self, view::RunView};
use manifest::code::Code;
use manifest::problem::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid, kill_process, setpriority_process};
use std::io::Read as _;
use std::time::Duration;
use trials::line::{BenchLine, Outcome};

/// The share of a processor that it takes from others: a fifth or so of what they have.
const NICENESS: i32 = 10;

/// How long it may take to end when nobody drives or hears it any more.
const LAST: Duration = Duration::from_secs(5);

/// It is driven.
pub(crate) fn is_wanted(words: &[String]) -> bool {
    words.iter().any(|word| word == "--driven")
}

/// Runs it once.
pub(crate) fn run(options: &Options) -> Result<(), Problem> {
    if options.profile.is_some() {
        let detail = "--driven: only a single run can be driven";
        return Err(Problem::new(Code::BenchUsage, detail).hint("leave --profile out"));
    }
    begin()?;
    let bed = Bed::start(options)?;
    bed.prepare(options)?;
    let result = bed.run(options);
    bed.finish()?;
    let result = result?;
    say(&BenchLine::Done(Box::new(Outcome {
        result: serde_json::to_value(RunView::new(options, &result)).unwrap_or_default(),
        csv: report::csv(&result),
        svg: report::iops_chart(&result),
        text: report::text(options, &result, &machine::this()),
        problem: verdict(&result).err(),
    })));
    Ok(())
}

/// Takes the last place, and waits for the end of standard input.
fn begin() -> Result<(), Problem> {
    // Neither is refused to anybody, and the run goes without them.
    let _kept = setpriority_process(None, NICENESS);
    let _kept = std::fs::write("/proc/self/oom_score_adj", "1000");
    let failed = |error: std::io::Error| Problem::new(Code::Internal, error.to_string());
    let waits = std::thread::Builder::new().name("driver".to_owned());
    let waits = waits.spawn(|| {
        let mut bytes = [0; 256];
        while std::io::stdin()
            .lock()
            .read(&mut bytes)
            .is_ok_and(|read| read > 0)
        {}
        stop(getpid());
        wait_while_heard();
        // Where the target is gone as well, nothing that waits for it comes back.
        std::thread::park_timeout(LAST);
        std::process::exit(130);
    });
    waits.map(drop).map_err(failed)
}

/// Returns when nobody reads standard output any more: whoever does waits for the result, and ends
/// this process where that takes too long.
fn wait_while_heard() {
    let output = std::io::stdout();
    let often = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    loop {
        // A pipe whose reader is gone is in error, which is reported without being asked for.
        let mut only = [PollFd::new(&output, PollFlags::empty())];
        match poll(&mut only, Some(&often)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// As Ctrl-C does: what was measured until now is the result.
fn stop(own: Pid) {
    let _gone = kill_process(own, Signal::TERM);
}
