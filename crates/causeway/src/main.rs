//! The one binary: the daemon and its command line.
//!
//! The command line is a client of the daemon's API and shares nothing with it but the documents of
//! [`control::view`] and the wanted objects of [`control::objects`].

mod assign;
mod attach;
mod cli;
mod client;
mod commands;
mod connect;
mod log;
mod open;
mod output;
mod paths_api;
mod secret_file;
mod serve;

use clap::Parser;
use cli::{Cli, Command, PoolVerb};
use control::code::{Code, Exit};
use control::problem::Problem;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    // diskspd's options are not of the kind that clap reads.
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let [_, first, rest @ ..] = words.as_slice()
        && first == "bench"
    {
        let code = commands::bench::run(rest);
        paths_api::end();
        return code;
    }
    let cli = Cli::parse();
    let output = Output::new(cli.output);
    let done = match &cli.command {
        Command::Serve { config } => return exit(serve::run(config)),
        Command::Explain { code } => explain(&output, code),
        Command::Completions { shell } => {
            cli::completions(*shell);
            Ok(())
        }
        Command::Man { dir } => cli::man_pages(dir),
        Command::Attach(flags) => return exit(attach::run(flags)),
        Command::Bench { words } => Err(cli::bench_comes_first(words)),
        Command::Path { verb } => commands::path::run(verb, &output),
        Command::Pool {
            verb: PoolVerb::Check { paths, state },
        } => commands::pool_check::run(paths, state, &output),
        Command::Doctor(flags) => commands::doctor::run(&cli, flags, &output),
        Command::Lab { verb } => commands::lab::run(verb, &output),
        Command::Other(words) => Err(cli::no_command(words)),
        Command::Status
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

fn explain(output: &Output, text: &str) -> Result<(), Problem> {
    let Some(code) = Code::parse(text) else {
        let detail = format!("there is no code \"{text}\"");
        return Err(Problem::new(Code::NotFound, detail).hint("codes look like CWY2003"));
    };
    let entry = code.entry();
    let document = serde_json::json!({
        "code": code, "title": entry.title, "cause": entry.cause, "next_step": entry.next_step,
        "exit": entry.exit as u8, "status": entry.status,
    });
    output.show(&document, |_| {
        format!(
            "{code}: {}\n\nWhy:  {}\nNext: {}\n\nExit code {}.\n",
            entry.title, entry.cause, entry.next_step, entry.exit as u8
        )
    });
    Ok(())
}
