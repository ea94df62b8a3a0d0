//! The paths of orphans and kept generations.

use crate::answer::{Answer, Switches, read};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::routing::{get, post};
use controller::{Handle, How};
use manifest::code::Code;
use manifest::objects::ObjectSet;
use manifest::orphan::{AdoptRequest, Orphan};
use manifest::problem::Problem;
use manifest::view::{Kept, Outcome};

pub(super) fn paths() -> Router<Handle> {
    Router::new()
        .route("/api/v1/orphans", get(orphans))
        .route("/api/v1/orphans/adopt", post(adopt))
        .route("/api/v1/generations", get(generations))
        .route("/api/v1/generations/accept", post(accept))
        .route("/api/v1/generations/{number}", get(generation))
        .route("/api/v1/generations/{number}/rollback", post(roll_back))
}

async fn orphans(State(handle): State<Handle>) -> Answer<Vec<Orphan>> {
    let asked = handle.call(|controller| Box::pin(async move { controller.orphans().await }));
    Answer(asked.await)
}

fn how(query: Option<&str>) -> Result<How, Problem> {
    let switches = Switches::read(query, &["dry_run", "force"])?;
    Ok(How {
        force: switches.on("force"),
        dry_run: switches.on("dry_run"),
    })
}

async fn adopt(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Answer<Outcome> {
    let run = async {
        let how = how(query.as_deref())?;
        let request: AdoptRequest = read(body).await?;
        let adopted = handle
            .call(move |controller| Box::pin(async move { controller.adopt(&request, how).await }));
        adopted.await?
    };
    Answer(run.await)
}

async fn generations(State(handle): State<Handle>) -> Answer<Vec<Kept>> {
    let asked = handle.call(|controller| Box::pin(async move { controller.generations().await }));
    Answer(asked.await.and_then(|kept| kept))
}

/// The number of a generation, as it stands in a path.
fn numbered(text: &str) -> Result<u64, Problem> {
    text.parse()
        .map_err(|_| Problem::new(Code::BadRequest, "a generation is named by its number"))
}

async fn generation(State(handle): State<Handle>, Path(number): Path<String>) -> Answer<ObjectSet> {
    let run = async {
        let number = numbered(&number)?;
        let asked = handle
            .call(move |controller| Box::pin(async move { controller.objects_of(number).await }));
        asked.await?
    };
    Answer(run.await)
}

async fn accept(State(handle): State<Handle>, RawQuery(query): RawQuery) -> Answer<Outcome> {
    let run = async {
        let how = how(query.as_deref())?;
        let done =
            handle.call(move |controller| Box::pin(async move { controller.accept(how).await }));
        done.await?
    };
    Answer(run.await)
}

async fn roll_back(
    State(handle): State<Handle>,
    Path(number): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<Outcome> {
    let run = async {
        let how = how(query.as_deref())?;
        let number = numbered(&number)?;
        let done = handle.call(move |controller| {
            Box::pin(async move { controller.roll_back(number, how).await })
        });
        done.await?
    };
    Answer(run.await)
}
