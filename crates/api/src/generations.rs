//! The paths of orphans and kept generations.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::{Outcome, ask};
use crate::listing::{Listed, Listing};
use crate::parts::{Change, Named, Wanted};
use axum::extract::State;
use controller::{Controller, Handle};
use manifest::code::Code;
use manifest::objects::ObjectSet;
use manifest::orphan::{AdoptRequest, Orphan};
use manifest::problem::Problem;
use manifest::tag::{Expected, Tagged};
use manifest::view::Kept;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/orphans",
            "LUNs in the pools that no object names: `lun ls --orphans`",
            orphans,
        )
        .post(
            "/api/v1/orphans/adopt",
            "takes them into service: `lun adopt`",
            adopt,
        )
        .get(
            "/api/v1/generations",
            "kept generations of the objects: `state ls`",
            generations,
        )
        .or(&[Code::StateDamaged])
        .post(
            "/api/v1/generations/accept",
            "the older objects are meant: `state accept`",
            accept,
        )
        .get(
            "/api/v1/generations/{number}",
            "the objects of one, as `export` has them: `state show`",
            generation,
        )
        .or(&[Code::StateDamaged])
        .post(
            "/api/v1/generations/{number}/rollback",
            "back to a kept one: `state rollback`",
            roll_back,
        )
}

/// All objects are what whoever asks has seen.
fn expected(controller: &Controller, tags: Option<Vec<String>>) -> Result<(), Problem> {
    let of = Tagged::All;
    tags.map_or(Ok(()), |tags| controller.expect(&Expected { of, tags }))
}

async fn orphans(State(handle): State<Handle>, listing: Listing<Orphan>) -> Listed<Orphan> {
    listing.show(ask!(handle, |controller| controller.orphans().await))
}

async fn adopt(
    State(handle): State<Handle>,
    change: Change,
    Wanted(request): Wanted<AdoptRequest>,
) -> Outcome {
    let done = ask!(handle, |controller| {
        expected(&controller, change.tags)?;
        controller.adopt(&request, change.how).await
    });
    Answer(done.and_then(|done| done))
}

async fn generations(State(handle): State<Handle>, listing: Listing<Kept>) -> Listed<Kept> {
    let kept = ask!(handle, |controller| controller.generations().await);
    listing.show(kept.and_then(|kept| kept))
}

/// The number of a generation, as it stands in a path.
fn numbered(text: &str) -> Result<u64, Problem> {
    text.parse()
        .map_err(|_| Problem::new(Code::BadRequest, "a generation is named by its number"))
}

async fn generation(State(handle): State<Handle>, Named(number): Named) -> Answer<ObjectSet> {
    let run = async {
        let number = numbered(&number)?;
        ask!(handle, |controller| controller.objects_of(number).await)?
    };
    Answer(run.await)
}

async fn accept(State(handle): State<Handle>, change: Change) -> Outcome {
    let done = ask!(handle, |controller| {
        expected(&controller, change.tags)?;
        controller.accept(change.how).await
    });
    Answer(done.and_then(|done| done))
}

async fn roll_back(State(handle): State<Handle>, Named(number): Named, change: Change) -> Outcome {
    let run = async {
        let number = numbered(&number)?;
        ask!(handle, |controller| {
            expected(&controller, change.tags)?;
            controller.roll_back(number, change.how).await
        })?
    };
    Answer(run.await)
}
