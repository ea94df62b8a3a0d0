//! `causeway api`: any path of the API, for scripts.

use super::context::Context;
use crate::completion::{CompletedArgument, Kind};
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest body that is read, in bytes: what the daemon takes.
const BODY_BYTES_MAX: u64 = 16 << 20;

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

pub(crate) const COMPLETED: &[CompletedArgument] = &[(&["api"], "method", Kind::Words(METHODS))];

#[derive(clap::Args, Debug)]
pub(crate) struct ApiFlags {
    /// GET, POST, PUT, PATCH or DELETE
    method: String,
    /// Such as /api/v1/luns/vm01, or luns/vm01 for short; `causeway api GET openapi.json` describes
    /// them all
    path: String,
    /// A file with the body; - is standard input
    body: Option<PathBuf>,
}

pub(crate) fn run(context: &Context<'_>, flags: &ApiFlags) -> Result<(), Problem> {
    let method = method(&flags.method)?;
    let path = whole_path(&flags.path, &context.switches(&method));
    let body = flags.body.as_deref().map(read).transpose()?;
    let answer = context
        .client
        .send_text(method, &path, body.unwrap_or_default())?;
    // As it came: the daemon writes documents for people to read, too.
    crate::output::print(&String::from_utf8_lossy(&answer));
    Ok(())
}

fn method(word: &str) -> Result<Method, Problem> {
    let upper = word.to_ascii_uppercase();
    let known = METHODS.contains(&upper.as_str());
    let method = known.then(|| Method::from_bytes(upper.as_bytes()).ok());
    method.flatten().ok_or_else(|| {
        let detail = format!("\"{word}\" is no method of the API");
        Problem::new(Code::CommandLine, detail).hint("write GET, POST, PUT, PATCH or DELETE")
    })
}

/// The path with all that stands before it, and `switches` behind.
fn whole_path(path: &str, switches: &[&str]) -> String {
    let mut whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/api/v1/{path}")
    };
    for switch in switches {
        whole.push(if whole.contains('?') { '&' } else { '?' });
        whole.push_str(&format!("{switch}=true"));
    }
    whole
}

fn read(file: &Path) -> Result<String, Problem> {
    let is_input = file == Path::new("-");
    let shown = if is_input {
        Path::new("standard input")
    } else {
        file
    };
    let failed = |why: &dyn std::fmt::Display| {
        Problem::new(
            Code::ConfigUnreadable,
            format!("{}: {why}", shown.display()),
        )
    };
    let mut text = String::new();
    let source: Box<dyn Read> = if is_input {
        Box::new(std::io::stdin())
    } else {
        let opened = std::fs::File::open(file);
        Box::new(opened.map_err(|error| failed(&error))?)
    };
    let taken = source.take(BODY_BYTES_MAX + 1).read_to_string(&mut text);
    if taken.map_err(|error| failed(&error))? as u64 > BODY_BYTES_MAX {
        return Err(failed(&"more than 16 MiB, which the daemon does not take"));
    }
    Ok(text)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_short_path_is_below_the_version_and_switches_stand_behind_others() {
        assert_eq!(whole_path("luns/a", &[]), "/api/v1/luns/a");
        assert_eq!(whole_path("/metrics", &[]), "/metrics");
        assert_eq!(
            whole_path("apply?prune=true", &["dry_run", "force"]),
            "/api/v1/apply?prune=true&dry_run=true&force=true"
        );
    }

    #[test]
    fn methods_are_those_of_the_api() {
        assert_eq!(method("get").unwrap(), Method::GET);
        assert_eq!(method("TRACE").unwrap_err().code, Code::CommandLine);
    }
}
