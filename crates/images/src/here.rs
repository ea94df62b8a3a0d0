//! A core of one's own, and the words for what failed.

use backends::image::{Failure, plain_sync};
use env::real::{Driver, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture, OpenHow};
use manifest::code::Code;
use manifest::problem::Problem;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use volume::{OpenError, OpenErrorKind};

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
    // The backend's next step for what is missing is for the LUN of a daemon.
    let next_step = if error.kind == OpenErrorKind::Missing {
        "check the path".to_owned()
    } else {
        error.next_step
    };
    Problem::new(Code::ImageUnusable, error.cause).hint(next_step)
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

/// Gives a whole file its name, for good, unless something else has it by now.
pub(crate) async fn finish(core: &CoreHandle, part: &Path, path: &Path) -> Result<(), Problem> {
    let named = match renameat_with(CWD, part, CWD, path, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => return Err(taken(part, path)),
        // The file system does not know it: what comes between the two is replaced there.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if core.files().kind(path).await.is_ok() {
                return Err(taken(part, path));
            }
            core.files().rename(part, path).await
        }
        done => done.map_err(io::Error::from),
    };
    named.map_err(|error| of_io(path, &error))?;
    let synced = core.files().sync_dir(directory_of(path)).await;
    synced.map_err(|error| of_io(path, &error))
}

fn taken(part: &Path, path: &Path) -> Problem {
    let (part, path) = (part.display(), path.display());
    let detail = format!("{path} came to be meanwhile; what was made is whole, and is in {part}");
    Problem::new(Code::AlreadyExists, detail)
        .hint(format!("give {part} another name, or remove it"))
}

/// What another program wrote is on the disk before it has its name.
pub(crate) async fn stable(core: &CoreHandle, path: &Path) -> Result<(), Problem> {
    let synced = async {
        let file = core.files().open(path, OpenHow::READ).await?;
        plain_sync(&file).await
    };
    synced.await.map_err(|error| of_io(path, &error))
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

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_got_the_name_meanwhile_stays_and_so_does_what_was_made() {
        let name = format!("causeway-finish-{}.vhdx", std::process::id());
        let path = std::env::temp_dir().join(name);
        let part = part_of(&path, "");
        let finished = || {
            let (part, path) = (part.clone(), path.clone());
            on_a_core(move |core| {
                Box::pin(async move {
                    stable(&core, &part).await?;
                    finish(&core, &part, &path).await
                })
            })
        };
        std::fs::write(&part, "first").unwrap();
        finished().unwrap();
        assert!(!part.exists());
        std::fs::write(&part, "second").unwrap();
        let refused = finished().unwrap_err();
        assert_eq!(refused.code, Code::AlreadyExists);
        assert!(refused.detail.contains(".vhdx.part"), "{refused:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read(&part).unwrap(), b"second");
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&part).unwrap();
    }
}
