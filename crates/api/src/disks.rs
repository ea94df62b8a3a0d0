//! The paths of disks and bays.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::ask;
use crate::listing::{Listed, Listing};
use crate::parts::{DryRun, Named};
use axum::extract::State;
use controller::Handle;
use manifest::code::Code;
use manifest::disks::{BayView, DiskReport, DiskView};

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/disks",
            "the disks of the machine: `disk ls`",
            disks,
        )
        .get(
            "/api/v1/disks/{id}",
            "one disk, by identifier, serial number or device: `disk show`",
            disk,
        )
        .delete(
            "/api/v1/disks/{id}",
            "forgets one that was taken out: `disk forget`",
            forget_disk,
        )
        .or(&[Code::InUse])
        .get("/api/v1/bays", "the bays of its enclosures", bays)
        .get(
            "/api/v1/disk_report",
            "disks and bays, with what keeps disks from being read",
            disk_report,
        )
}

async fn disks(State(handle): State<Handle>, listing: Listing<DiskView>) -> Listed<DiskView> {
    listing.show(ask!(handle, |controller| controller.disks().disks.clone()))
}

async fn disk(State(handle): State<Handle>, Named(id): Named) -> Answer<DiskView> {
    Answer(ask!(handle, |controller| controller.disk(&id)).and_then(|disk| disk))
}

async fn forget_disk(
    State(handle): State<Handle>,
    Named(id): Named,
    DryRun(dry_run, _): DryRun,
) -> Answer<()> {
    let done = ask!(handle, |controller| controller
        .forget_disk(&id, dry_run)
        .await);
    Answer(done.and_then(|done| done))
}

async fn bays(State(handle): State<Handle>, listing: Listing<BayView>) -> Listed<BayView> {
    listing.show(ask!(handle, |controller| controller.disks().bays.clone()))
}

async fn disk_report(State(handle): State<Handle>) -> Answer<DiskReport> {
    Answer(ask!(handle, |controller| (*controller.disks()).clone()))
}
