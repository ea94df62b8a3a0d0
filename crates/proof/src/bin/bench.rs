//! Prints figures: `bench waist`, `bench fill LUN_BYTES NAME,ADDRESS,TARGET,LUN,PROCESS ...`, or
//! `bench compare LUN_BYTES ROUNDS SECONDS NAME,ADDRESS,TARGET,LUN,PROCESS NAME,ADDRESS,TARGET,LUN,PROCESS`.
//!
//! `waist` fails where a hop has become too dear.

use proof::bench::client;
use proof::bench::compare::{Server, compare};
use proof::bench::waist;
use std::process::ExitCode;
use std::time::Duration;

fn server(text: &str) -> Result<Server, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let [name, address, target, lun, process] = parts.as_slice() else {
        return Err(format!("{text} is not NAME,ADDRESS,TARGET,LUN,PROCESS"));
    };
    Ok(Server {
        name: (*name).to_owned(),
        address: (*address).to_owned(),
        target: (*target).to_owned(),
        lun: lun.parse().map_err(|_| format!("{lun} is no unit"))?,
        process: process
            .parse()
            .map_err(|_| format!("{process} is no process"))?,
    })
}

fn work(words: &[&str]) -> Result<bool, String> {
    let number = |word: &str| {
        let number = word.parse::<u32>();
        number.map_err(|_| format!("{word} is no number"))
    };
    match words {
        ["waist"] => {
            let (table, pass) = waist::measure();
            print!("{table}");
            Ok(pass)
        }
        ["compare", bytes, rounds, seconds, ours, theirs] => {
            let (ours, theirs) = (server(ours)?, server(theirs)?);
            let rounds = usize::try_from(number(rounds)?).map_err(|error| error.to_string())?;
            let time = Duration::from_secs(number(seconds)?.into());
            let table = compare([&ours, &theirs], number(bytes)?.into(), rounds.max(1), time);
            print!("{}", table.map_err(|error| error.to_string())?);
            Ok(true)
        }
        ["fill", bytes, servers @ ..] => {
            let bytes = number(bytes)?.into();
            for text in servers {
                let server = server(text)?;
                let filled = client::fill(&server.address, &server.target, server.lun, bytes);
                filled.map_err(|error| format!("{}: {error}", server.name))?;
            }
            Ok(true)
        }
        _ => Err("usage: bench waist | compare ...".to_owned()),
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
