//! A core of one's own, and the words for what failed.

use backends::image::Failure;
use env::real::{Driver, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use manifest::code::Code;
use manifest::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};
use volume::OpenError;

/// Runs `work` on a core that is there for it alone.
pub(crate) fn on_a_core<T: Send + 'static>(
    work: impl FnOnce(CoreHandle) -> LocalFuture<Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let runtime = Runtime::start(&RuntimeConfig {
        driver: Driver::Auto,
        ..RuntimeConfig::default()
    });
    let runtime = runtime.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    runtime.run(CoreId(0), work)
}

pub(crate) fn unusable(error: OpenError) -> Problem {
    Problem::new(Code::ImageUnusable, error.cause).hint(error.next_step)
}

/// The system's error on a file.
pub(crate) fn of_io(path: &Path, error: &io::Error) -> Problem {
    let problem = Problem::new(Code::ImageUnusable, format!("{}: {error}", path.display()));
    if env::file::is_no_space(error) {
        return problem.hint("make room there, and run the command again");
    }
    problem.hint("check the path, its permissions, and the kernel's log")
}

/// An operation that failed.
pub(crate) fn of_failure(path: &Path, failure: &Failure) -> Problem {
    match &failure.io {
        Some(error) => of_io(path, error),
        None => Problem::new(
            Code::ImageUnusable,
            format!("{}: {}", path.display(), failure.error),
        ),
    }
}

/// The name that a file has until it is whole.
pub(crate) fn part_of(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{what}.part"));
    path.with_file_name(name)
}

/// The directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Gives a whole file its name, for good.
pub(crate) async fn finish(core: &CoreHandle, part: &Path, path: &Path) -> Result<(), Problem> {
    let renamed = async {
        core.files().rename(part, path).await?;
        core.files().sync_dir(directory_of(path)).await
    };
    renamed.await.map_err(|error| of_io(path, &error))
}

/// Nothing has this name yet.
pub(crate) async fn is_new(core: &CoreHandle, path: &Path) -> Result<(), Problem> {
    match core.files().kind(path).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(of_io(path, &error)),
        Ok(_) => {
            let detail = format!("{} is there already", path.display());
            Err(Problem::new(Code::AlreadyExists, detail).hint("name another file, or remove it"))
        }
    }
}
