//! `jobs`: work that takes long.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::ask;
use crate::listing::{Listed, Listing, rows};
use crate::parts::{DryRun, Named};
use accounts::Principal;
use axum::extract::{Extension, State};
use controller::Handle;
use manifest::code::Code;
use manifest::job::JobView;
use manifest::problem::Problem;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/jobs",
            "work that takes long, the newest first: `job ls`",
            list_jobs,
        )
        .get(
            "/api/v1/jobs/{id}",
            "one job: how far it is, and what became of it",
            job,
        )
        .post(
            "/api/v1/jobs/{id}/cancel",
            "has it stop where it is; what was made of a LUN is undone",
            cancel_job,
        )
        .or(&[Code::JobOver, Code::LunOffline])
}

rows!(
    JobView: "id" in [
        "id", "kind", "object", "state", "percent", "started", "ended", "by",
    ], by "-id";
);

fn number(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| {
        let detail = format!("there is no job {id}");
        Problem::new(Code::NotFound, detail).hint("`causeway job ls` lists those that are known")
    })
}

async fn list_jobs(State(handle): State<Handle>, listing: Listing<JobView>) -> Listed<JobView> {
    listing.show(ask!(handle, |controller| controller.jobs()))
}

async fn job(State(handle): State<Handle>, Named(id): Named) -> Answer<JobView> {
    let run = async {
        let id = number(&id)?;
        ask!(handle, |controller| controller.job(id))?
    };
    Answer(run.await)
}

async fn cancel_job(
    State(handle): State<Handle>,
    Extension(principal): Extension<Principal>,
    Named(id): Named,
    DryRun(dry_run, _): DryRun,
) -> Answer<JobView> {
    let run = async {
        let id = number(&id)?;
        if dry_run {
            return ask!(handle, |controller| controller.may_cancel(id))?;
        }
        ask!(handle, |controller| controller
            .cancel_job(id, &principal.name)
            .await)?
    };
    Answer(run.await)
}
