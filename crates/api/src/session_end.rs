//! `session drop`: a host's session ends, where that is no harm or is meant.

use crate::answer::Answer;
use crate::edit::ask;
use crate::parts::Named;
use crate::plain_change::{PlainChange, Refusals};
use axum::extract::State;
use controller::Handle;
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

/// What its end hits, with what goes over it now.
async fn ending(handle: &Handle, id: u64) -> Result<(Ending, String), Problem> {
    let before = all(handle).await?;
    let bytes = |it: &SessionFacts| it.bytes_in.saturating_add(it.bytes_out);
    let then = bytes(find(&before, id)?);
    tokio::time::sleep(COUNTED).await;
    let now = all(handle).await?;
    let session = find(&now, id)?;
    let rate = bytes(session).saturating_sub(then).saturating_mul(PART);
    let ending = Ending::of_session(session, &now, Some(rate));
    Ok((ending, session.host.clone()))
}

pub(crate) async fn drop_session(
    State(handle): State<Handle>,
    Named(id): Named,
    change: PlainChange<OfSessions>,
) -> Answer<Ending> {
    let run = async {
        let id = session_id(&id)?;
        let (mut ending, host) = ending(&handle, id).await?;
        if change.dry_run {
            return Ok(ending);
        }
        if let Some(problem) = ending.refused(&host).filter(|_| !change.force) {
            return Err(problem);
        }
        ask!(handle, |controller| controller.drop_session(id).await)??;
        ending.changed = true;
        ending.refusal = None;
        Ok(ending)
    };
    Answer(run.await)
}
