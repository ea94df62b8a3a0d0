//! `causeway support ...`: what is sent to whoever helps.

use super::context::Context;
use clap::Subcommand;
use hyper::{HeaderMap, Method, Response, header};
use manifest::code::Code;
use manifest::problem::Problem;
use output::rounded;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;

const BUNDLE: &str = "/api/v1/support/bundle";

/// What to have for support.
#[derive(Subcommand, Debug)]
pub(crate) enum SupportVerb {
    /// Write one file that says how the node is, without passwords, secrets, tokens and keys
    Bundle {
        /// Where to; a file that is there stays. Without it, a name with the time, here
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        to: Option<PathBuf>,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &SupportVerb) -> Result<(), Problem> {
    let SupportVerb::Bundle { to } = verb;
    let (mut path, mut bytes) = (PathBuf::new(), Vec::new());
    let named = |head: &Response<_>| {
        let place = head.headers().get(header::CONTENT_DISPOSITION);
        let place = place.and_then(|it| it.to_str().ok()).unwrap_or_default();
        path = to.clone().unwrap_or_else(|| support::file_named(place));
    };
    let piece = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        ControlFlow::Continue(())
    };
    let asked = (HeaderMap::new(), String::new());
    context
        .client
        .pass((Method::GET, BUNDLE), asked, named, piece)?;
    support::save(&path, &bytes).map_err(|error| {
        let detail = format!("{}: {error}", path.display());
        Problem::new(Code::BadRequest, detail).hint("name another file by --to")
    })?;
    let done = json!({ "file": path, "bytes": bytes.len() });
    context.output.show(&done, |_| {
        let (file, size) = (path.display(), rounded(bytes.len() as u64));
        format!(
            "{file}: {size}. No password, CHAP secret, token or key is in it; names and addresses are.\n\
             Read it before you give it away: tar xzf {file}\n"
        )
    });
    Ok(())
}
