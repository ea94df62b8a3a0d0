//! What a TARGET on the command line is: `memory:SIZE`, a file, a block device, or an iscsi:// URL.

use backends::{FileSpec, MemoryVolume, Provisioning, open_block, open_file};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use env::CoreHandle;
use layers::Emulate;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::size::Size;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{BlockCount, BlockSize};
use volume::{Fences, OpenError, OpenErrorKind, Volume, over};

/// A volume that this process uses.
pub struct Opened {
    /// As it was written.
    pub name: String,
    /// What operations go to.
    pub volume: Arc<dyn Volume>,
    /// Nobody else can have data on it.
    pub private: bool,
    /// Its paths, where it has some.
    pub attached: Option<Arc<host::Attached>>,
}

/// The initiator's options among the words of a command that clap does not read.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    options: host::Options,
}

/// Reads the initiator's options.
///
/// # Errors
/// Words that are none.
pub fn initiator_options(words: &[String]) -> Result<host::Options, Problem> {
    let read = Words::command().try_get_matches_from(words);
    let read = read.and_then(|matches| Words::from_arg_matches(&matches));
    read.map(|words| words.options).map_err(|error| {
        let text = error.to_string();
        let cause = text.lines().next().unwrap_or_default();
        let cause = cause.strip_prefix("error: ").unwrap_or(cause);
        Problem::new(Code::BenchUsage, cause).hint("`causeway attach --help` says what they mean")
    })
}

/// What an administrator reads where a host's volume cannot be opened.
#[must_use]
pub fn of_host(name: &str, error: host::HostError) -> Problem {
    let code = match error.kind {
        host::Kind::Usage => Code::VolumeUsage,
        host::Kind::NotFound => Code::TargetCannotBeOpened,
        host::Kind::Refused => Code::ProofNotTaken,
        host::Kind::Failed => Code::VolumeUnreachable,
    };
    Problem::new(code, format!("{name}: {}", error.cause)).hint(error.next_step)
}

async fn by_url(core: &CoreHandle, name: &str, options: &host::Options) -> Result<Opened, Problem> {
    let url: host::Url = name.parse().map_err(|error: host::UrlError| {
        Problem::new(Code::VolumeUsage, error.to_string())
            .hint("such as iscsi://10.0.0.1/iqn.2026-11.io.causeway:vm01/0")
    })?;
    let attached = host::open(core, &url, options).await;
    let attached = attached.map_err(|error| of_host(name, error))?;
    if let Err(problem) = crate::paths_api::show(core, &attached) {
        // The volume works all the same.
        eprintln!("`causeway path ls` will not show {name}: {problem}");
    }
    Ok(Opened {
        name: name.to_owned(),
        // Units without WRITE SAME have zeroes written.
        volume: over(Emulate, Arc::clone(&attached) as Arc<dyn Volume>),
        private: false,
        attached: Some(attached),
    })
}

/// The cause names the file or device.
fn cannot(error: &OpenError) -> Problem {
    Problem::new(Code::TargetCannotBeOpened, error.cause.clone()).hint(error.next_step.clone())
}

/// Opens what `name` names.
///
/// # Errors
/// It is not there, cannot be reached, or its name is none.
pub async fn open(
    core: &CoreHandle,
    name: &str,
    options: &host::Options,
) -> Result<Opened, Problem> {
    if let Some(size) = name.strip_prefix("memory:") {
        return memory(name, size);
    }
    if name.contains("://") {
        return by_url(core, name, options).await;
    }
    let path = Path::new(name);
    let is_block = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let volume: Arc<dyn Volume> = if is_block {
        let opened = match open_block(core, path, BlockSize::B512, Fences::new(1)).await {
            Err(_) => open_block(core, path, BlockSize::B4096, Fences::new(1)).await,
            opened => opened,
        };
        opened.map_err(|error| cannot(&error))?
    } else {
        let opened = open_file(core, spec(path), Fences::new(1)).await;
        opened.map_err(|error| cannot(&not_a_lun(error)))?
    };
    Ok(Opened {
        name: name.to_owned(),
        volume,
        private: false,
        attached: None,
    })
}

/// The backends' words are for LUNs of a daemon.
fn not_a_lun(error: OpenError) -> OpenError {
    if [OpenErrorKind::Missing, OpenErrorKind::Damaged].contains(&error.kind) {
        let next_step = "check the path; `causeway bench -c<size>` makes a file".to_owned();
        return OpenError { next_step, ..error };
    }
    error
}

fn spec(path: &Path) -> FileSpec {
    FileSpec {
        path: PathBuf::from(path),
        block_size: BlockSize::B512,
        physical_block_exponent: 3,
        provisioning: Provisioning::Thin,
    }
}

fn memory(name: &str, size: &str) -> Result<Opened, Problem> {
    let bad = |why: String| Problem::new(Code::TargetCannotBeOpened, why).hint("such as memory:1G");
    let size: Size = size.parse().map_err(|why| bad(format!("{name}: {why}")))?;
    let blocks = size.bytes() / 512;
    if blocks == 0 {
        return Err(bad(format!("{name}: not one block")));
    }
    let volume = MemoryVolume::new(BlockSize::B512, BlockCount(blocks), 3, Fences::new(1));
    Ok(Opened {
        name: name.to_owned(),
        volume,
        private: true,
        attached: None,
    })
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_bench_knows_every_option_of_the_initiator() {
        let command = Words::command();
        let (mut values, mut flags): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for argument in command.get_arguments() {
            let name = format!("--{}", argument.get_long().expect("all are long"));
            let takes = argument.get_action().takes_values();
            if takes { &mut values } else { &mut flags }.push(name);
        }
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        let known = |all: &[&str]| sorted(all.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(sorted(values), known(&bench::options::INITIATOR_VALUES));
        assert_eq!(sorted(flags), known(&bench::options::INITIATOR_FLAGS));
    }

    #[test]
    fn a_wrong_option_of_the_initiator_is_reported_in_one_line() {
        let words = ["--policy", "fastest"].map(str::to_owned);
        let problem = initiator_options(&words).unwrap_err();
        assert!(problem.detail.contains("fastest"), "{problem}");
        let words = ["--from", "eth0", "--no-plan"].map(str::to_owned);
        assert!(initiator_options(&words).unwrap().no_plan);
    }
}
