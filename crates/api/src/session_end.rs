//! `session drop`: a host's session ends, where that is no harm or is meant.

use crate::answer::Answer;
use crate::edit::ask;
use crate::parts::Named;
use crate::plain_change::{PlainChange, Refusals};
use axum::extract::State;
use controller::{Handle, How};
use manifest::code::Code;
use manifest::ending::Ending;
use manifest::facts::SessionFacts;
use manifest::problem::Problem;
use std::time::Duration;

/// What goes over a session is counted for this part of a second.
const PART: u64 = 4;
const COUNTED: Duration = Duration::from_millis(1000 / PART);

/// What the end of a session may be refused for.
pub(crate) struct OfSessions;

impl Refusals for OfSessions {
    const CODES: &'static [Code] = &[Code::BadRequest, Code::NotFound, Code::InUse];
    const FORCE: &'static str = "End it although it is its host's last path to a LUN.";
}

pub(crate) fn session_id(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| Problem::not_found("session", id))
}

async fn all(handle: &Handle) -> Result<Vec<SessionFacts>, Problem> {
    ask!(handle, |controller| controller.sessions().await)
}

fn find(all: &[SessionFacts], id: u64) -> Result<&SessionFacts, Problem> {
    let found = all.iter().find(|session| session.id == id);
    found.ok_or_else(|| Problem::not_found("session", &id.to_string()))
}

/// How many bytes go over a session in a second now.
async fn rate(handle: &Handle, id: u64) -> Result<u64, Problem> {
    let bytes = |it: &SessionFacts| it.bytes_in.saturating_add(it.bytes_out);
    let before = bytes(find(&all(handle).await?, id)?);
    tokio::time::sleep(COUNTED).await;
    let now = bytes(find(&all(handle).await?, id)?);
    Ok(now.saturating_sub(before).saturating_mul(PART))
}

pub(crate) async fn drop_session(
    State(handle): State<Handle>,
    Named(id): Named,
    change: PlainChange<OfSessions>,
) -> Answer<Ending> {
    let run = async {
        let id = session_id(&id)?;
        let rate = rate(&handle, id).await?;
        let how = How {
            force: change.force,
            dry_run: change.dry_run,
        };
        // What it would hit is found out and done in one step there.
        ask!(handle, |controller| controller
            .end_session(id, rate, how)
            .await)?
    };
    Answer(run.await)
}
