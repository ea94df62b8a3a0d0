//! `causeway apply` and `causeway export`.

use super::context::Context;
use client::segment;
use hyper::Method;
use manifest::code::Code;
use manifest::config::{code_of, text};
use manifest::objects::{FileObjects, ObjectSet, parse, to_toml};
use manifest::problem::Problem;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) fn apply(
    context: &Context<'_>,
    file: &Path,
    prune: bool,
    only: &[String],
) -> Result<(), Problem> {
    let objects = read(file)?;
    let path = format!("/api/v1/apply?prune={prune}{}", parameters(only));
    let outcome = context.request(Method::POST, &path, &objects.set);
    let outcome = outcome.map_err(|problem| locate(&objects, problem))?;
    context.print(&outcome);
    Ok(())
}

/// What stands behind the path for each object that is meant.
fn parameters(only: &[String]) -> String {
    let all = only.iter().map(|it| format!("&only={}", segment(it)));
    all.collect()
}

pub(crate) fn export(context: &Context<'_>, only: &[String]) -> Result<(), Problem> {
    let parameters = parameters(only).replacen('&', "?", 1);
    let path = format!("/api/v1/export{parameters}");
    let set: ObjectSet = context.client.get(&path)?;
    context.output.show(&set, to_toml);
    Ok(())
}

fn read(file: &Path) -> Result<FileObjects, Problem> {
    let unreadable = |error: std::io::Error| {
        Problem::new(
            Code::ConfigUnreadable,
            format!("{}: {error}", file.display()),
        )
    };
    let from_stdin = file == Path::new("-");
    let (name, bytes) = if from_stdin {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        (PathBuf::from("<standard input>"), bytes)
    } else {
        (file.to_owned(), std::fs::read(file).map_err(unreadable)?)
    };
    let text = text(&name, bytes)?;
    // Relative paths in the file start where it stands; the daemon has another working directory.
    let parent = if from_stdin { None } else { file.parent() };
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
    let base = std::path::absolute(parent.unwrap_or(Path::new("."))).map_err(unreadable)?;
    parse(&name, &base, &text, &crate::secret_file::read).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let problem = Problem::new(code_of(&mistakes), lines.join("\n  "));
        problem.hint("nothing was sent to the daemon; correct the file and apply again")
    })
}

/// Says of each fault on which line of the file the object stands.
fn locate(objects: &FileObjects, problem: Problem) -> Problem {
    if problem.faults.is_empty() {
        return problem;
    }
    let lines: Vec<String> = problem
        .faults
        .iter()
        .map(|fault| objects.locate(fault))
        .collect();
    let detail = format!("{}\n  {}", problem.detail, lines.join("\n  "));
    Problem::new(problem.code, detail).hint(problem.hint.clone())
}
