//! The paths of orphans and kept generations.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::{Outcome, ask, carry_out};
use crate::listing::{Listed, Listing};
use crate::parts::{Change, Named, Wanted};
use axum::extract::State;
use controller::Handle;
use manifest::code::Code;
use manifest::objects::ObjectSet;
use manifest::orphan::{AdoptRequest, Orphan};
use manifest::problem::Problem;
use manifest::tag::Tagged;
use manifest::view::Kept;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/orphans",
            "LUNs in the pools that no object names: `lun ls --orphans`",
            orphans,
        )
        .at_once(|paths| {
            paths.post(
                "/api/v1/orphans/adopt",
                "takes them into service: `lun adopt`",
                adopt,
            )
        })
        .get(
            "/api/v1/generations",
            "kept generations of the objects: `state ls`",
            generations,
        )
        .or(&[Code::StateDamaged])
        .at_once(|paths| {
            paths.but(&[Code::NotFound], |paths| {
                paths.post(
                    "/api/v1/generations/accept",
                    "the older objects are meant: `state accept`",
                    accept,
                )
            })
        })
        .get(
            "/api/v1/generations/{number}",
            "the objects of one, as `export` has them: `state show`",
            generation,
        )
        .or(&[Code::StateDamaged])
        .at_once(roll_back_path)
}

/// What was purged stays so, and no size changes: there is no storage to make.
fn roll_back_path(paths: Paths) -> Paths {
    paths.post(
        "/api/v1/generations/{number}/rollback",
        "back to a kept one: `state rollback`",
        roll_back,
    )
}

async fn orphans(State(handle): State<Handle>, listing: Listing<Orphan>) -> Listed<Orphan> {
    listing.show(ask!(handle, |controller| controller.orphans().await))
}

async fn adopt(
    State(handle): State<Handle>,
    change: Change,
    Wanted(request): Wanted<AdoptRequest>,
) -> Outcome {
    carry_out(&handle, change, Tagged::All, |controller, how, asked| {
        Box::pin(async move { controller.adopt(&request, how, asked).await })
    })
    .await
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
    carry_out(&handle, change, Tagged::All, |controller, how, asked| {
        Box::pin(async move { controller.accept(how, asked).await })
    })
    .await
}

async fn roll_back(State(handle): State<Handle>, Named(number): Named, change: Change) -> Outcome {
    let number = match numbered(&number) {
        Ok(number) => number,
        Err(problem) => return Outcome::Done(Err(problem)),
    };
    carry_out(
        &handle,
        change,
        Tagged::All,
        move |controller, how, asked| {
            Box::pin(async move { controller.roll_back(number, how, asked).await })
        },
    )
    .await
}
