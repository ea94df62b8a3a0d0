//! The page of the command line, `docs/reference/command-line.md`, made from what the program
//! itself says.

use crate::cli::Cli;
use clap::{Arg, Command, CommandFactory};
use manifest::golden;
use markdown::{MarkdownTable, paragraph};
use std::fmt::Write as _;

const BEGIN: &str = "# Command line\n\n\
    Made from the program; a test keeps both equal. `causeway help COMMAND` prints the same, and `causeway man DIR` writes\n\
    it as manual pages. What scripts may rely on is in [the promised interface](../interface.md#commands-that-scripts-use).\n";

/// The whole page.
fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut out = BEGIN.to_owned();
    let mut all = MarkdownTable::new(&["Command", "What it does"]);
    for command in seen(&root) {
        let name = format!("[`{0}`](#causeway-{0})", command.get_name());
        all.row(&[&name, &about(command)]);
    }
    let _ = write!(out, "\n{}", all.into_text());
    out.push_str("\n## Options of every command\n\n");
    out.push_str(&options(root.get_arguments().filter(|arg| !is_common(arg))));
    for command in seen(&root) {
        section(&mut out, command, "causeway", 2);
    }
    out
}

/// Commands that people are shown.
fn seen(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|it| !it.is_hide_set() && it.get_name() != "help")
}

fn section(out: &mut String, command: &Command, before: &str, level: usize) {
    let name = format!("{before} {}", command.get_name());
    // Writing to a String cannot fail, here and below.
    let _ = write!(out, "\n{} {name}\n\n", "#".repeat(level.min(4)));
    let text = command.get_long_about().or(command.get_about());
    for part in text
        .map(ToString::to_string)
        .unwrap_or_default()
        .split("\n\n")
    {
        let _ = writeln!(out, "{}", paragraph(&ended(part), ""));
    }
    if level > 1
        && let Some(after) = command.get_after_help()
    {
        let _ = writeln!(out, "{}", paragraph(&after.to_string(), ""));
    }
    let mut usage = command.clone();
    let usage = usage.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = writeln!(out, "```\n{usage}\n```");
    let own = command.get_arguments();
    let own: Vec<&Arg> = own
        .filter(|arg| !arg.is_global_set() && !is_common(arg))
        .collect();
    if !own.is_empty() {
        let _ = write!(out, "\n{}", options(own.into_iter()));
    }
    for below in seen(command) {
        section(out, below, &name, level + 1);
    }
}

/// What is said of a command in one line.
fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// `help` and `version`.
fn is_common(arg: &Arg) -> bool {
    arg.is_hide_set() || ["help", "version"].contains(&arg.get_id().as_str())
}

/// A text as a sentence.
fn ended(text: &str) -> String {
    let text = text.trim();
    let end = if text.is_empty() || text.ends_with(['.', ':', '?']) {
        ""
    } else {
        "."
    };
    format!("{text}{end}")
}

fn options<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut table = MarkdownTable::new(&["Option", "Meaning"]);
    for arg in args {
        table.row(&[&format!("`{}`", name_of(arg)), &meaning_of(arg)]);
    }
    table.into_text()
}

/// How an argument is written.
fn name_of(arg: &Arg) -> String {
    let takes = arg.get_action().takes_values();
    let values = arg.get_value_names().unwrap_or_default();
    let value = values
        .iter()
        .map(|it| it.to_string())
        .collect::<Vec<_>>()
        .join(" ");
    let words: Vec<String> = arg
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(arg.get_long().map(|long| format!("--{long}")))
        .collect();
    let name = match (words.is_empty(), takes) {
        (true, _) => value,
        (false, true) => format!("{} {value}", words.join(", ")),
        (false, false) => words.join(", "),
    };
    name.replace('|', "\\|")
}

/// What is said of an argument, with its values and its default.
fn meaning_of(arg: &Arg) -> String {
    let text = arg.get_long_help().or(arg.get_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let mut out = ended(&text.split_whitespace().collect::<Vec<_>>().join(" ")).replace('|', "\\|");
    let values = arg.get_possible_values();
    let values: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() && arg.get_action().takes_values() {
        let _ = write!(out, " One of {}.", values.join(", "));
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|it| it.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(out, " Default: `{}`.", defaults.join(" "));
    }
    out.trim_start().to_owned()
}

#[test]
fn the_page_of_the_command_line_is_what_the_program_says() {
    golden::assert_page("docs/reference/command-line.md", &page());
}
