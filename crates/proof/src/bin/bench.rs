//! Prints and writes figures: `bench waist`, `bench run CAUSEWAY WORK OUT`, and the null server,
//! `bench null ADDRESS BYTES BLOCK`, and what fills and opens a journal, `bench journal fill PATH
//! MIB` and `bench journal open PATH`. `bench page TABLE DOCUMENT` puts the tables of a run into
//! their place in a document.
//!
//! `waist` fails where a hop has become too dear. `run` reads the environment: `CASES` and
//! `PEERS` (names with commas), `ROUNDS`, `SECONDS_EACH`, `LUN_MIB`, and `BEFORE`, the path of an
//! older `causeway` binary, which is the server `before`.

use proof::bench::null_server;
use proof::bench::plan::Plan;
use proof::bench::replay;
use proof::bench::report;
use proof::bench::rounds::Effort;
use proof::bench::run::run;
use proof::bench::servers::Place;
use proof::bench::waist;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

fn variable<T: FromStr>(name: &str, otherwise: T) -> Result<T, String> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => text
            .parse()
            .map_err(|_| format!("{name}: {text} is no number")),
        Ok(_) | Err(_) => Ok(otherwise),
    }
}

fn list(name: &str, otherwise: &str) -> Vec<String> {
    let text = std::env::var(name).unwrap_or_default();
    let text = if text.is_empty() { otherwise } else { &text };
    text.split(',')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn plan(causeway: &Path, work: &Path, out: &Path) -> Result<Plan, String> {
    let bench = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(Plan {
        place: Place {
            causeway: causeway.to_owned(),
            bench,
            work: work.to_owned(),
        },
        out: out.to_owned(),
        effort: Effort {
            rounds: variable("ROUNDS", 5)?,
            time: Duration::from_secs_f64(variable("SECONDS_EACH", 1.0)?),
            again: variable("NICE", 0)? == 0,
        },
        bytes: variable::<u64>("LUN_MIB", 1024)? << 20,
        cases: list("CASES", ""),
        peers: list("PEERS", "null,causeway,tgt,istgt"),
        before: std::env::var_os("BEFORE")
            .filter(|it| !it.is_empty())
            .map(PathBuf::from),
    })
}

fn work(words: &[&str]) -> Result<bool, String> {
    let number = |word: &str| {
        let number = word.parse::<usize>();
        number.map_err(|_| format!("{word} is no number"))
    };
    match words {
        ["waist"] => {
            let (table, pass) = waist::measure();
            print!("{table}");
            Ok(pass)
        }
        ["null", address, bytes, block] => {
            let address = address
                .parse()
                .map_err(|_| format!("{address} is no address"))?;
            let served = null_server::serve(address, number(bytes)?, number(block)?);
            served.map_err(|error| error.to_string())?;
            Ok(true)
        }
        ["journal", "fill", path, mib] => {
            let mib = mib.parse().map_err(|_| format!("{mib} is no number"))?;
            replay::fill(Path::new(path), mib)?;
            Ok(true)
        }
        ["journal", "open", path] => {
            replay::open(Path::new(path))?;
            Ok(true)
        }
        ["run", causeway, work, out] => {
            run(&plan(Path::new(causeway), Path::new(work), Path::new(out))?)?;
            Ok(true)
        }
        ["page", table, document] => {
            report::publish(Path::new(table), Path::new(document))?;
            Ok(true)
        }
        _ => {
            Err("usage: bench waist | run CAUSEWAY WORK OUT | page TABLE DOCUMENT | null ADDRESS BYTES BLOCK".to_owned())
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match work(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}
