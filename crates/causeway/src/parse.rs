//! Reading the command line, and reporting what is wrong with it in the form that was asked for.

use crate::asked;
use crate::cli::Cli;
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, ValueEnum as _};
use manifest::code::{Code, Exit};
use manifest::problem::Problem;
use output::{Format, Output};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// The commands, ready to be asked.
pub(crate) fn command() -> clap::Command {
    // `causeway help lun resize` does for all; each list of verbs needs no line for it.
    let verbs = |noun: clap::Command| noun.disable_help_subcommand(true);
    let mut command = Cli::command().mut_subcommands(verbs);
    command.build();
    with_plain_usage(command)
}

/// Lines of usage name what a command takes. Clap's own ones in messages repeat whatever was given,
/// so that --api, which the environment may set, seemed to be required.
fn with_plain_usage(mut command: clap::Command) -> clap::Command {
    for verb in command.get_subcommands_mut() {
        *verb = with_plain_usage(std::mem::take(verb));
    }
    let usage = command.render_usage().to_string();
    match usage.strip_prefix("Usage: ") {
        Some(plain) => command.override_usage(plain.to_owned()),
        None => command,
    }
}

/// Reads the words: the command, and where its answers go.
///
/// # Errors
/// Help was printed, or what is wrong; the process ends with this code.
pub(crate) fn parse(words: &[OsString]) -> Result<(Cli, Output), ExitCode> {
    let matches = command().try_get_matches_from(words);
    let read = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = read.map_err(|error| report(&error, asked_form(words)))?;
    let line: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    match asked::output(&cli.common, &matches, &line.join(" ")) {
        Ok(output) => Ok((cli, output)),
        Err(problem) => {
            Output::new(cli.common.output).problem(&problem);
            Err(ExitCode::from(problem.exit() as u8))
        }
    }
}

/// The form that the words ask for, although they cannot be understood as a whole.
pub(crate) fn asked_form(words: &[OsString]) -> Format {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    let mut form = Format::Table;
    while let Some(word) = words.next() {
        let value = match word.as_ref() {
            "--" => break,
            "-o" | "--output" => words.next().map(|next| next.into_owned()),
            one => one
                .strip_prefix("--output=")
                .or_else(|| one.strip_prefix("-o").filter(|_| !one.starts_with("--")))
                .map(|value| value.trim_start_matches('=').to_owned()),
        };
        form = match value.as_deref() {
            Some(name) => Format::from_str(name, false).unwrap_or(form),
            None => form,
        };
    }
    form
}

fn report(error: &clap::Error, form: Format) -> ExitCode {
    if !error.use_stderr() {
        // Help and version. A reader that has gone away is no error.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    match form {
        Format::Json | Format::Yaml => Output::new(form).problem(&problem(error)),
        Format::Table | Format::Wide | Format::Name => eprint!("{}", text(error)),
    }
    ExitCode::from(Exit::Usage as u8)
}

/// As clap writes it, with the code.
fn text(error: &clap::Error) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let shown = if std::io::stderr().is_terminal() && !plain {
        error.render().ansi().to_string()
    } else {
        error.to_string()
    };
    shown.replacen("error:", &format!("error[{}]:", Code::CommandLine), 1)
}

fn problem(error: &clap::Error) -> Problem {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Problem::new(Code::CommandLine, "a command is missing")
            .hint("`causeway help` lists the commands");
    }
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    let (detail, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    // Tips and usage, without the line that names --help.
    let hint: Vec<&str> = rest
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let problem = Problem::new(Code::CommandLine, detail.trim());
    if hint.is_empty() {
        return problem;
    }
    problem.hint(hint.join("; "))
}

#[cfg(test)]
mod test {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn refused(line: &str) -> Problem {
        let matches = command().try_get_matches_from(words(line));
        let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
        problem(&read.expect_err(line))
    }

    #[test]
    fn usage_names_what_is_required_and_not_what_was_given() {
        let problem = refused("causeway --api unix:x lun create --block-size 512");
        assert!(problem.detail.contains("--size <SIZE>"), "{problem}");
        assert!(
            problem
                .hint
                .contains("Usage: causeway lun create [OPTIONS] --size <SIZE> <NAME>"),
            "{problem}"
        );
        let problem = refused("causeway --api unix:x lun show");
        assert!(
            problem
                .hint
                .ends_with("Usage: causeway lun show [OPTIONS] <NAME>"),
            "{problem}"
        );
        assert!(
            refused("causeway lun create a --size 1X")
                .detail
                .contains("is not a size")
        );
        assert_eq!(refused("causeway lun").detail, "a command is missing");
    }

    #[test]
    fn the_form_is_known_although_the_words_are_wrong() {
        let json = |line: &str| asked_form(&words(line)) == Format::Json;
        for line in [
            "-o json lun",
            "lun ls -ojson",
            "--output=json x",
            "x --output json",
            "-o=json",
        ] {
            assert!(json(line), "{line}");
        }
        for line in [
            "lun ls",
            "-o table x",
            "-- -o json",
            "-o json -o table",
            "-o",
        ] {
            assert!(!json(line), "{line}");
        }
    }
}
