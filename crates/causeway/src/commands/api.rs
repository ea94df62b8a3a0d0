//! `causeway api`: any path of the API, for scripts.

use super::context::Context;
use crate::completion::{CompletedArgument, Kind};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, header};
use manifest::code::Code;
use manifest::problem::Problem;
use std::io::{Read, Write};
use std::ops::ControlFlow;
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
    /// A header of the request, such as 'If-Match: "TAG"'; may stand several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Print the answer's status and headers before it
    #[arg(short, long)]
    include: bool,
}

pub(crate) fn run(context: &Context<'_>, flags: &ApiFlags) -> Result<(), Problem> {
    let method = method(&flags.method)?;
    let path = whole_path(&flags.path, &context.switches(&method));
    let body = flags.body.as_deref().map(read).transpose()?;
    let headers = flags.headers.iter().map(|text| parsed(text));
    let headers = headers.collect::<Result<HeaderMap, Problem>>()?;
    let head = |answer: &Response<Incoming>| {
        if flags.include {
            output::print(&head_of(answer));
        }
    };
    // As it comes: the daemon writes documents for people to read, too, and some never end.
    let each = |piece: &[u8]| {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(piece).and_then(|()| out.flush());
        // Whoever read it has gone away.
        written.map_or(ControlFlow::Break(()), ControlFlow::Continue)
    };
    let asked = (headers, body.unwrap_or_default());
    context.client.pass((method, &path), asked, head, each)
}

/// A header as it is written: a name, a colon, a value.
fn parsed(text: &str) -> Result<(HeaderName, HeaderValue), Problem> {
    let pair = text.split_once(':').and_then(|(name, value)| {
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value.trim()).ok()?))
    });
    let proofs = [header::AUTHORIZATION, header::COOKIE];
    if let Some((name, _)) = pair.as_ref().filter(|(name, _)| proofs.contains(name)) {
        let detail =
            format!("-H {name}: what stands on a command line everybody on this machine reads");
        let hint = "write the token into a file, and name it with --token-file";
        return Err(Problem::new(Code::CommandLine, detail).hint(hint));
    }
    pair.ok_or_else(|| {
        // It may be a secret.
        let name = text.split(':').next().unwrap_or_default();
        let detail = format!("-H \"{name}...\" is no header");
        Problem::new(Code::CommandLine, detail).hint("write -H 'NAME: VALUE'")
    })
}

/// Status and headers of an answer, and an empty line, as HTTP/1.1 has them.
fn head_of(answer: &Response<Incoming>) -> String {
    let mut text = format!("HTTP/1.1 {}\n", answer.status());
    for (name, value) in answer.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        text.push_str(&format!("{name}: {value}\n"));
    }
    text + "\n"
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
    fn a_header_is_a_name_and_a_value_and_what_is_none_is_not_repeated() {
        let (name, value) = parsed("If-Match: \"a:b\"").unwrap();
        assert_eq!(
            (name.as_str(), value.to_str().unwrap()),
            ("if-match", "\"a:b\"")
        );
        let secrets = [
            "authorization: Bearer s3cret",
            "Cookie: causeway-session=s3cret",
        ];
        for wrong in ["If-Match", "a b: s3cret", "x: s3cret\u{1}x"]
            .iter()
            .chain(&secrets)
        {
            let problem = parsed(wrong).unwrap_err();
            assert_eq!(problem.code, Code::CommandLine);
            assert!(!problem.to_string().contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn methods_are_those_of_the_api() {
        assert_eq!(method("get").unwrap(), Method::GET);
        assert_eq!(method("TRACE").unwrap_err().code, Code::CommandLine);
    }
}
