//! `lab`: which beds there are, those that stand or stood, their links.

use crate::answer::Answer;
use crate::bench::Since;
use crate::describe::Paths;
use crate::listing::{Listed, Listing, rows};
use crate::parts::{DryRun, Named, Wanted};
use accounts::Principal;
use axum::extract::Extension;
use manifest::code::Code;
use serde_json::{Value, json};
use std::sync::Arc;
use trial_runner::Beds;
use trials::line::LinkOrder;
use trials::{BedView, LabView, WantedBed};

type The = Extension<Arc<Beds>>;
type Who = Extension<Principal>;

pub(crate) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/lab",
            "whether a bed for paths can be started here, and which there are",
            lab_overview,
        )
        .post(
            "/api/v1/lab/beds",
            "builds a bed of network namespaces with a load over its paths",
            start_bed,
        )
        .or(&[
            Code::BenchUsage,
            Code::LabNotHere,
            Code::LabFailed,
            Code::InUse,
            Code::Stopping,
            Code::NotFound,
            Code::StateNotSaved,
        ])
        .get("/api/v1/lab/beds", "beds of this daemon's life", beds)
        .get(
            "/api/v1/lab/beds/{id}",
            "one bed: machines, links, paths and what the load does over them",
            bed,
        )
        .post(
            "/api/v1/lab/beds/{id}/links",
            "cuts a link, or mends it, while the load goes on",
            set_link,
        )
        .or(&[Code::InUse, Code::LabUsage, Code::LabFailed])
        .delete("/api/v1/lab/beds/{id}", "tears it down", end_bed)
}

rows!(BedView: "id" in ["id", "topology", "state", "by", "started", "ended"], by "";);

async fn lab_overview(Extension(beds): The) -> Answer<LabView> {
    Answer(Ok(beds.overview()))
}

async fn start_bed(
    Extension(beds): The,
    Extension(principal): Who,
    DryRun(dry_run, _): DryRun,
    Wanted(wanted): Wanted<WantedBed>,
) -> Answer<BedView> {
    Answer(beds.start(&wanted, &principal.name, dry_run).await)
}

async fn beds(Extension(beds): The, listing: Listing<BedView>) -> Listed<BedView> {
    listing.show(Ok(beds.views()))
}

async fn bed(Extension(beds): The, Named(id): Named, Since(since): Since) -> Answer<BedView> {
    Answer(beds.detail(&id, since))
}

async fn set_link(
    Extension(beds): The,
    Named(id): Named,
    DryRun(dry_run, note): DryRun,
    Wanted(order): Wanted<LinkOrder>,
) -> Answer<BedView> {
    let before = shown(&beds, &id);
    let after = beds.link(&id, order, dry_run).await;
    note.seen(before, json!(after.as_ref().ok()));
    Answer(after)
}

async fn end_bed(
    Extension(beds): The,
    Named(id): Named,
    DryRun(dry_run, note): DryRun,
) -> Answer<BedView> {
    let before = shown(&beds, &id);
    let after = beds.end(&id, dry_run);
    note.seen(before, json!(after.as_ref().ok()));
    Answer(after)
}

/// As the audit log has a bed.
fn shown(beds: &Beds, id: &str) -> Value {
    json!(beds.detail(id, u64::MAX).ok())
}
