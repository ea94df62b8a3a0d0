//! The one binary: the daemon and its command line.
//!
//! The command line is a client of the daemon's API and shares nothing with it but the documents of
//! [`manifest::view`] and the wanted objects of [`manifest::objects`].

mod assign;
mod attach;
mod cli;
mod client;
mod commands;
mod complete;
mod log;
mod notify;
mod open;
mod output;
mod parse;
mod paths_api;
mod secret_file;
mod serve;

use cli::{Command, PoolVerb};
use manifest::code::{CATALOGUE, Code, Exit};
use manifest::problem::Problem;
use output::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    complete::answer();
    let given: Vec<OsString> = std::env::args_os().collect();
    // diskspd's options are not of the kind that clap reads.
    let words: Vec<String> = given
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let of_bench = match words.as_slice() {
        [_, first, rest @ ..] if first == "bench" => Some(rest.to_vec()),
        [_, help, first, rest @ ..] if help == "help" && first == "bench" => {
            let asked = rest.iter().cloned().chain(["--help".to_owned()]);
            Some(asked.collect())
        }
        _ => None,
    };
    if let Some(words) = of_bench {
        let code = commands::bench::run(&words);
        paths_api::end();
        return code;
    }
    let cli = match parse::parse(&given) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let output = Output::new(cli.output);
    let done = match &cli.command {
        Command::Serve { config } => return exit(serve::run(config, &output)),
        Command::Explain { code: Some(code) } => explain(&output, code),
        Command::Explain { code: None } => {
            codes(&output);
            Ok(())
        }
        Command::Completions { shell } => complete::script(*shell),
        Command::Man { dir } => cli::man_pages(dir),
        Command::Attach(flags) => return exit(attach::run(flags, &output)),
        Command::Status { check: true } => return commands::check_status(&cli, &output),
        Command::Bench { words } => Err(cli::bench_comes_first(words)),
        Command::Path { verb } => commands::path::run(verb, &output),
        Command::Pool {
            verb: PoolVerb::Check { paths, state },
        } => commands::pool_check::run(paths, state, &output),
        Command::Doctor(flags) => commands::doctor::run(&cli, flags, &output),
        Command::Lab { verb } => commands::lab::run(verb, &output),
        Command::Other(words) => {
            // Its options are among the words of the command that is none.
            Output::new(parse::asked_form(&given)).problem(&cli::no_command(words));
            return exit(Exit::Usage);
        }
        Command::Status { check: false }
        | Command::Lun { .. }
        | Command::Target { .. }
        | Command::Host { .. }
        | Command::Grant { .. }
        | Command::Session { .. }
        | Command::Top(_)
        | Command::Share { .. }
        | Command::Scrub { .. }
        | Command::Pool { .. }
        | Command::Journal { .. }
        | Command::State { .. }
        | Command::Apply { .. }
        | Command::Export => commands::run(&cli, &output),
    };
    match done {
        Ok(()) => exit(Exit::Done),
        Err(problem) => {
            output.problem(&problem);
            exit(problem.exit())
        }
    }
}

fn exit(code: Exit) -> ExitCode {
    paths_api::end();
    ExitCode::from(code as u8)
}

/// An error's code.
#[derive(Serialize)]
struct CodeView {
    code: Code,
    title: &'static str,
    exit: u8,
    #[serde(flatten)]
    why: Option<WhyView>,
}

/// What there is to say of it.
#[derive(Serialize)]
struct WhyView {
    cause: &'static str,
    next_step: &'static str,
    status: u16,
}

/// Every code with its title.
fn codes(output: &Output) {
    let view = |entry: &manifest::code::Entry| CodeView {
        code: entry.code,
        title: entry.title,
        exit: entry.exit as u8,
        why: None,
    };
    let all: Vec<CodeView> = CATALOGUE.iter().map(view).collect();
    output.show(&all, |_| {
        let row = |entry: &manifest::code::Entry| {
            let exit = (entry.exit as u8).to_string();
            vec![entry.code.to_string(), exit, entry.title.to_owned()]
        };
        let rows: Vec<Vec<String>> = CATALOGUE.iter().map(row).collect();
        let table = output::table(&["CODE", "EXIT", "WHAT"], &rows);
        format!("{table}\n`causeway explain CODE` says why, and what to do\n")
    });
}

fn explain(output: &Output, text: &str) -> Result<(), Problem> {
    let Some(code) = Code::parse(text) else {
        let detail = format!("there is no code \"{text}\"");
        return Err(Problem::new(Code::NotFound, detail)
            .hint("codes look like CWY2003; `causeway explain` lists them"));
    };
    let entry = code.entry();
    let document = CodeView {
        code,
        title: entry.title,
        exit: entry.exit as u8,
        why: Some(WhyView {
            cause: entry.cause,
            next_step: entry.next_step,
            status: entry.status,
        }),
    };
    output.show(&document, |_| {
        format!(
            "{code}: {}\n\nWhy:  {}\nNext: {}\n\nExit code {}.\n",
            entry.title, entry.cause, entry.next_step, entry.exit as u8
        )
    });
    Ok(())
}
