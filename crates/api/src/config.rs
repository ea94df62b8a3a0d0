//! The path of the node's settings.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::ask;
use axum::extract::{Extension, State};
use controller::Handle;
use manifest::config::{Config, ConfigView, parse, text};
use manifest::problem::Problem;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// A file that is longer is nobody's settings, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// What the daemon was started with.
pub(crate) type Running = Arc<Config>;

pub(super) fn paths(paths: Paths) -> Paths {
    paths.get(
        "/api/v1/config",
        "the settings of `node.toml`, and what the file says by now: `config show`, `config diff`",
        config,
    )
}

async fn config(
    State(handle): State<Handle>,
    Extension(running): Extension<Running>,
) -> Answer<ConfigView> {
    let sessions = ask!(handle, |controller| controller.sessions().await.len());
    let file = running.file.clone();
    // A disk that hangs holds up nobody else.
    let now = spawn_blocking(move || now(&file)).await;
    let (changes, mistakes) = match now.unwrap_or_else(|error| Err(vec![error.to_string()])) {
        Ok(now) => (running.changes_to(&now), Vec::new()),
        Err(mistakes) => (Vec::new(), mistakes),
    };
    Answer(sessions.map(|sessions| ConfigView {
        file: running.file.display().to_string(),
        settings: running.settings(),
        changes,
        mistakes,
        sessions: u64::try_from(sessions).unwrap_or(u64::MAX),
        ..ConfigView::default()
    }))
}

/// What the file says by now, or why it cannot be used.
fn now(file: &Path) -> Result<Config, Vec<String>> {
    let unreadable = |error: &dyn std::fmt::Display| vec![format!("{}: {error}", file.display())];
    let mut bytes = Vec::new();
    let opened = File::open(file);
    let read = opened.and_then(|opened| opened.take(FILE_MAX + 1).read_to_end(&mut bytes));
    let length = read.map_err(|error| unreadable(&error))?;
    if u64::try_from(length).is_ok_and(|length| length > FILE_MAX) {
        return Err(unreadable(&"it is longer than 1 MiB"));
    }
    let text = text(file, bytes).map_err(|problem: Problem| vec![problem.detail.clone()])?;
    parse(file, &text).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}
