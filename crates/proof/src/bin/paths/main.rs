//! Instructions of the hot paths, which do not depend on what else the machine does.
//!
//! `paths run NAME COUNT` does one path COUNT times. `paths check BOUNDS OUT` lets valgrind count
//! two runs of each and compares the difference, a command's share of it, with the bounds; the
//! profiles stay in OUT.

mod dispatch;
mod hop;
mod multipath;
mod protocol;
mod write_back;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Commands of the shorter run; the longer one has twice as many.
const COUNT: u64 = 2000;

/// Above its bound by this part, a path has become too dear.
const SLACK: f64 = 0.05;
/// Below it by this part, the bound should be lowered.
const GAIN: f64 = 0.10;

type Run = fn(u64);

/// Every path, by the name that the bounds use.
const PATHS: [(&str, Run); 10] = [
    ("protocol_read", protocol::read),
    ("protocol_write", protocol::write),
    ("protocol_write_at_hand", protocol::write_at_hand),
    ("hop_ready", hop::ready),
    ("hop_waits", hop::waits),
    ("multipath_read", multipath::read),
    ("multipath_write", multipath::write),
    ("dispatch_read", dispatch::read),
    ("dispatch_write", dispatch::write),
    ("write_back_write", write_back::write),
];

fn run(name: &str, count: u64) -> Result<(), String> {
    let found = PATHS.iter().find(|(path, _)| *path == name);
    let (_, run) = found.ok_or(format!("there is no path {name}"))?;
    run(count);
    Ok(())
}

/// Instructions of a run, as callgrind counts them.
fn count(name: &str, commands: u64, out: &Path) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let profile = out.join(format!("callgrind.{name}"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--error-exitcode=3"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(this)
        .args(["run", name, &commands.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}; install it with `scripts/install test`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("Collected :"));
    let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number
        .filter(|_| output.status.success())
        .ok_or(format!("valgrind: {said}"))
}

/// The bound of a path: `name = number` stands in the file, with its reason above.
fn bound(bounds: &str, name: &str) -> Result<f64, String> {
    let lines = bounds.lines().filter_map(|line| line.split_once('='));
    let found = lines.filter(|(key, _)| key.trim() == name);
    let mut numbers = found.map(|(_, number)| number.trim().parse::<f64>());
    match numbers.next() {
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) | None => Err(format!("the bounds have no number for {name}")),
    }
}

fn check(bounds: &Path, out: &Path) -> Result<bool, String> {
    let text = fs::read_to_string(bounds);
    let text = text.map_err(|error| format!("{}: {error}", bounds.display()))?;
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut passed = true;
    for (name, _) in PATHS {
        let (once, twice) = (count(name, COUNT, out)?, count(name, COUNT * 2, out)?);
        #[expect(clippy::cast_precision_loss, reason = "millions of instructions")]
        let each = twice.saturating_sub(once) as f64 / COUNT as f64;
        let bound = bound(&text, name)?;
        let over = each > bound * (1.0 + SLACK);
        passed &= !over;
        let verdict = match each {
            _ if over => "FAIL",
            each if each < bound * (1.0 - GAIN) => "ok; lower the bound",
            _ => "ok",
        };
        println!("{name:22} {each:9.1} instructions, bound {bound:7.0}: {verdict}");
        if over {
            println!(
                "  where they go: callgrind_annotate {}/callgrind.{name} | head -60\n  \
                 to see what changed, do the same on the commit before; a dearer path that is worth it gets a \
                 higher bound and its reason in {}",
                out.display(),
                bounds.display()
            );
        }
    }
    Ok(passed)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["run", name, count] => match count.parse() {
            Ok(count) => run(name, count).map(|()| true),
            Err(_) => Err(format!("{count} is no number")),
        },
        ["check", bounds, out] => check(Path::new(bounds), Path::new(out)),
        _ => Err("usage: paths run NAME COUNT | check BOUNDS OUT".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("paths: {error}");
            ExitCode::from(2)
        }
    }
}
