//! `node.toml` and the changes that were made through the API, as a start reads them.

use manifest::code::Code;
use manifest::config::{
    Config, Cores, OwnSettings, SETTINGS_FILE, code_of, parse, parse_with, text,
};
use manifest::problem::Problem;
use manifest::toml_table::Mistake;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// A file that is longer is nobody's settings, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// What a start would read now.
pub struct Now {
    /// Of `node.toml`.
    pub text: String,
    /// What was changed; nothing where that is not allowed any more.
    pub own: OwnSettings,
    /// Both together.
    pub config: Config,
}

/// Reads the settings as a start does.
///
/// # Errors
/// What is wrong in a file, or is not there on this machine.
pub fn read_config(file: &Path) -> Result<Config, Problem> {
    now(file).map(|now| now.config)
}

/// The same, with what it was read from.
///
/// # Errors
/// As [`read_config`].
pub fn now(file: &Path) -> Result<Now, Problem> {
    let bytes = bytes(file).map_err(|why| unreadable(file, &why))?;
    let text = text(file, bytes)?;
    let alone = parse(file, &text).map_err(|all| mistakes(&all))?;
    let own_file = alone.state_dir.join(SETTINGS_FILE);
    let own = match bytes_of_own(&own_file)? {
        Some(bytes) => OwnSettings::read(&bytes).map_err(|why| damaged(&own_file, &why))?,
        None => OwnSettings::default(),
    };
    // What was changed while that was allowed holds no longer.
    let own = if alone.api_settings.fixed_settings {
        OwnSettings::default()
    } else {
        own
    };
    let config = with(file, &text, &own_file, &own)?;
    Ok(Now { text, own, config })
}

/// Reads the text of `file` with changes that may not be kept yet.
///
/// # Errors
/// What is wrong in either, or is not there on this machine.
pub fn with(
    file: &Path,
    text: &str,
    own_file: &Path,
    own: &OwnSettings,
) -> Result<Config, Problem> {
    let config = parse_with(file, text, own_file, own).map_err(|all| mistakes(&all))?;
    check_cores(&config)?;
    Ok(config)
}

fn bytes(file: &Path) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    let length = File::open(file)?
        .take(FILE_MAX + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(length).is_ok_and(|length| length > FILE_MAX) {
        let why = "it is longer than 1 MiB";
        return Err(std::io::Error::new(ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

fn bytes_of_own(file: &Path) -> Result<Option<Vec<u8>>, Problem> {
    match bytes(file) {
        Ok(bytes) => Ok(Some(bytes)),
        // A state directory that is none is named where it is checked.
        Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(why) => Err(unreadable(file, &why)),
    }
}

fn unreadable(file: &Path, why: &std::io::Error) -> Problem {
    Problem::new(Code::ConfigUnreadable, format!("{}: {why}", file.display()))
}

fn damaged(file: &Path, why: &str) -> Problem {
    let shown = file.display();
    let detail = format!("{shown}: {why}");
    Problem::new(Code::ConfigSyntax, detail).hint(format!(
        "the daemon writes this file itself: bring it back from {shown}.before, or move it away; then what node.toml says holds"
    ))
}

fn mistakes(all: &[Mistake]) -> Problem {
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    Problem::new(code_of(all), lines.join("\n  "))
}

/// A processor that is not there would leave its core to share another one, unseen.
fn check_cores(config: &Config) -> Result<(), Problem> {
    let Cores::List(wanted) = &config.cores else {
        return Ok(());
    };
    let Ok(allowed) = sched_getaffinity(None) else {
        return Ok(());
    };
    let may = |number: &usize| *number < CpuSet::MAX_CPU && allowed.is_set(*number);
    let Some(missing) = wanted.iter().find(|number| !may(number)) else {
        return Ok(());
    };
    let all: Vec<String> = (0..CpuSet::MAX_CPU)
        .filter(may)
        .map(|number| number.to_string())
        .collect();
    let place = config.place("runtime.cores");
    let detail = format!(
        "{place}: this process cannot run on processor {missing} (it may use {})",
        all.join(", ")
    );
    Err(Problem::new(Code::ConfigEnvironment, detail)
        .hint("name processors that are there, or write cores = \"auto\" for all of them"))
}
