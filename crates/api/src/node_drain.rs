//! `POST /node/drain`: what the node owns of LUNs with copies goes to other nodes.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::ask;
use crate::parts::DryRun;
use axum::extract::State;
use controller::Handle;
use engine::DrainView;
use serde_json::{Value, json};

pub(crate) fn paths(paths: Paths) -> Paths {
    paths.post(
        "/api/v1/node/drain",
        "gives LUNs with copies to nodes that have all of them: `node drain`",
        drain,
    )
}

async fn drain(State(handle): State<Handle>, DryRun(dry_run, note): DryRun) -> Answer<DrainView> {
    let drained = ask!(handle, |controller| controller.drain(dry_run).await);
    if let Ok(view) = &drained {
        // What was owned here, and where each is now.
        note.seen(Value::Null, json!(view));
    }
    Answer(drained)
}
