//! The one binary: the daemon and its command line.
//!
//! The command line is a client of the daemon's API and shares nothing with it but the documents of
//! [`manifest::view`] and the wanted objects of [`manifest::objects`].
//!
//! ```text
//!   main, complete, parse      the words that were typed, and in which form (asked)
//!     cli                      the commands, and what runs each
//!       commands/NOUN          its arguments, its work, what may stand where
//!         commands/context     a change is asked for and reported
//!           args, completion, listed
//! ```

mod args;
mod asked;
mod attach;
mod cli;
mod commands;
mod complete;
mod completion;
mod listed;
mod man;
mod parse;
mod password;
#[cfg(test)]
mod reference;
mod secret_file;
mod serve;
mod storage_args;
#[cfg(test)]
mod verbs_test;
mod version;

use cli::Command;
use manifest::code::Exit;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    complete::answer();
    let given: Vec<OsString> = std::env::args_os().collect();
    let code = run(&given);
    bench_command::paths_api::end();
    code
}

/// The words of `bench`, where they are for it: diskspd's options are not of the kind that clap
/// reads.
fn of_bench(given: &[OsString]) -> Option<Vec<String>> {
    let words = given.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    match words.as_slice() {
        [_, first, rest @ ..] if first == "bench" => Some(rest.to_vec()),
        [_, help, first, rest @ ..] if help == "help" && first == "bench" => {
            let asked = rest.iter().cloned().chain(["--help".to_owned()]);
            Some(asked.collect())
        }
        _ => None,
    }
}

fn run(given: &[OsString]) -> ExitCode {
    if let Some(words) = of_bench(given) {
        return bench_command::run(&words);
    }
    let (cli, output) = match parse::parse(given) {
        Ok(read) => read,
        Err(code) => return code,
    };
    // What has to know all commands is answered here, above them.
    let done = if let Command::Completions { shell } = &cli.command {
        complete::script(*shell).map(|()| ExitCode::SUCCESS)
    } else if let Command::Man { dir } = &cli.command {
        man::write(dir).map(|()| ExitCode::SUCCESS)
    } else if let Command::Other(words) = &cli.command {
        // Its options are among the words of the command that is none.
        Output::new(parse::asked_form(given)).problem(&cli::no_command(words));
        return ExitCode::from(Exit::Usage as u8);
    } else if let Some(every) = cli.common.watch {
        output::again(every, &output, || cli.command.run(&cli.common, &output))
    } else {
        cli.command.run(&cli.common, &output)
    };
    done.unwrap_or_else(|problem| {
        output.problem(&problem);
        ExitCode::from(problem.exit() as u8)
    })
}
