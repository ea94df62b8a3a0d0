//! What all labs of the command line share: options, progress, and how a report is shown.

use clap::Args;
use lab::{Kind, LabError, Rate};
use manifest::code::Code;
use manifest::problem::Problem;
use output::Output;
use serde::Serialize;
use std::path::PathBuf;

/// What every lab has.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Rate of every link: 1G, 250M [default: the test's own]
    #[arg(long, value_name = "RATE")]
    pub(super) rate: Option<Rate>,
    /// What a port of the switch queues before it drops, in KiB [default: 64]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub(super) buffer: Option<u32>,
    /// Seconds for each measurement [default: the test's own]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(super) seconds: Option<u32>,
    /// The causeway that runs in the lab [default: this one]
    #[arg(long, value_name = "FILE")]
    pub(super) program: Option<PathBuf>,
    /// Also write the report as a page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

pub(super) fn problem(error: LabError) -> Problem {
    let code = match error.kind {
        Kind::Usage => Code::LabUsage,
        Kind::NotHere => Code::LabNotHere,
        Kind::Failed => Code::LabFailed,
    };
    Problem::new(code, error.what).hint(error.next)
}

/// Progress goes to standard error, the report to standard output.
pub(super) fn progress(line: &str) {
    eprintln!("{line}");
}

pub(super) fn set<T>(option: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *option = given;
    }
}

/// Writes the page, where one is asked for, and prints the report.
pub(super) fn show<T: Serialize>(
    output: &Output,
    common: &Common,
    report: &T,
    page: String,
    text: String,
) -> Result<(), Problem> {
    if let Some(file) = &common.html {
        std::fs::write(file, page).map_err(|error| {
            let what = format!("{}: {error}", file.display());
            Problem::new(Code::LabFailed, what).hint("name a file that can be written")
        })?;
    }
    output.show(report, |_| text);
    Ok(())
}
