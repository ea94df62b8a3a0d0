//! `POST /luns/{name}/mirror`: the copies that a LUN has on several nodes are changed.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::ask;
use crate::parts::{DryRun, Named, Wanted};
use axum::extract::State;
use controller::Handle;
use engine::{MirrorRequest, MirrorView};
use manifest::code::Code;
use serde_json::{Value, json};

/// Why copies are not changed so.
const REFUSALS: [Code; 6] = [
    Code::ChangedMeanwhile,
    Code::ClusterNotConfigured,
    Code::ClusterNone,
    Code::ClusterArbiter,
    Code::MirrorRefused,
    Code::PartlyDone,
];

pub(crate) fn paths(paths: Paths) -> Paths {
    let change = |paths: Paths| {
        paths.post(
            "/api/v1/luns/{name}/mirror",
            "adds or removes a copy, or has this node go on without the others: `lun mirror`",
            change_mirror,
        )
    };
    change(paths).or(&REFUSALS)
}

async fn change_mirror(
    State(handle): State<Handle>,
    Named(name): Named,
    DryRun(dry_run, note): DryRun,
    Wanted(request): Wanted<MirrorRequest>,
) -> Answer<MirrorView> {
    let changed = ask!(handle, |controller| {
        controller.mirror(&name, request, dry_run).await
    });
    let changed = changed.and_then(|it| it);
    if let Ok(view) = &changed {
        note.seen(Value::Null, json!(view));
    }
    Answer(changed)
}
