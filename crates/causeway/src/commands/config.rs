//! `causeway config ...`: the settings of `node.toml`, in force and as the file says by now.

use super::context::Context;
use crate::output::{Output, table};
use crate::serve;
use clap::Subcommand;
use manifest::code::Code;
use manifest::config::{ConfigView, SettingChange, SettingView};
use manifest::problem::Problem;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use units::text::counted;

#[derive(Subcommand, Debug)]
pub(crate) enum ConfigVerb {
    /// Read a node.toml as the daemon would at its start, and say every mistake in it; needs no
    /// daemon
    Check {
        /// The file
        #[arg(
            long,
            short,
            value_name = "FILE",
            default_value = "/etc/causeway/node.toml"
        )]
        config: PathBuf,
    },
    /// Show what the daemon runs with: each setting, its value, and where it is written
    Show {
        /// Also those that are not written, with their defaults
        #[arg(long)]
        all: bool,
    },
    /// Show what the daemon's file says by now and is not in force, and what a restart would end
    Diff,
}

/// Reads the file as a start would.
fn check(file: &Path, output: &Output) -> Result<(), Problem> {
    #[derive(Serialize)]
    struct Checked {
        file: String,
        settings: Vec<SettingView>,
    }
    let config = serve::read(file)?;
    let checked = Checked {
        file: file.display().to_string(),
        settings: config.settings(),
    };
    output.show(&checked, |checked| {
        let is_written = |it: &&SettingView| it.value.is_some();
        let many = checked.settings.iter().filter(is_written).count();
        let many = counted(many as u64, "setting");
        format!(
            "{}: no mistakes, {many} written; whether disks and addresses are there is found out by the start\n",
            checked.file
        )
    });
    Ok(())
}

/// Carries it out; `context`: how the daemon is asked, where it has to be.
pub(crate) fn run<'a>(
    context: &dyn Fn() -> Result<Context<'a>, Problem>,
    verb: &ConfigVerb,
    output: &Output,
) -> Result<(), Problem> {
    let view = || context()?.client.get::<ConfigView>("/api/v1/config");
    match verb {
        ConfigVerb::Check { config } => check(config, output),
        ConfigVerb::Show { all } => {
            output.show(&view()?, |view| settings(view, *all));
            Ok(())
        }
        ConfigVerb::Diff => diff(&view()?, output),
    }
}

fn diff(view: &ConfigView, output: &Output) -> Result<(), Problem> {
    output.show(view, changes);
    if view.mistakes.is_empty() {
        return Ok(());
    }
    let mistakes = view.mistakes.join("\n  ");
    let detail = format!("the daemon could not start with what the file says: {mistakes}");
    let hint = "it runs on with what it has; correct the file before a restart";
    Err(Problem::new(Code::ConfigValue, detail).hint(hint))
}

fn settings(view: &ConfigView, all: bool) -> String {
    let wanted = view.settings.iter().filter(|it| all || it.value.is_some());
    let rows: Vec<Vec<String>> = wanted
        .map(|it| {
            let (value, place) = match (&it.value, it.line) {
                (Some(value), Some(line)) => (value.clone(), format!("line {line}")),
                (Some(value), None) => (value.clone(), String::new()),
                (None, _) => (it.default.replace('`', ""), "default".to_owned()),
            };
            vec![it.key.clone(), value, place]
        })
        .collect();
    format!(
        "{}\n{}",
        view.file,
        table(&["KEY", "VALUE", "WRITTEN"], &rows)
    )
}

fn changes(view: &ConfigView) -> String {
    if view.changes.is_empty() {
        return if view.mistakes.is_empty() {
            format!("what {} says is in force\n", view.file)
        } else {
            String::new()
        };
    }
    let mut out = String::new();
    for SettingChange {
        key,
        in_force,
        in_file,
        takes_effect: _,
    } in &view.changes
    {
        let word = |value: &Option<String>| value.as_deref().unwrap_or("default").to_owned();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{key}: {} in force, {} in the file [restart]",
            word(in_force),
            word(in_file)
        );
    }
    let sessions = counted(view.sessions, "session");
    let _ = writeln!(
        out,
        "a restart brings it into force and ends {sessions}; hosts log in again: systemctl restart causeway"
    );
    out
}
