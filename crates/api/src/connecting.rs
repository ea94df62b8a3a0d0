//! What somebody types on a host to connect to a LUN.

use crate::describe::Paths;
use crate::edit::ask;
use crate::listing::{Listed, Listing, rows};
use crate::parts::Named;
use axum::extract::State;
use connect::{Block, Export, platforms};
use controller::{Controller, Handle};
use manifest::problem::Problem;
use manifest::view::{GrantView, LunView};
use schemars::JsonSchema;
use serde::Serialize;

/// A LUN as one host connects to it.
#[derive(Serialize, JsonSchema)]
struct ConnectView {
    /// The host's name.
    host: String,
    /// The target's name.
    target: String,
    /// The target's iSCSI name.
    iqn: String,
    /// The number by which the host knows the LUN.
    lun_id: u16,
    /// What each kind of client pastes; empty where the target does not listen.
    blocks: Vec<Block>,
}

rows!(ConnectView: "" in ["host", "target", "iqn", "lun_id"], by "";);

pub(super) fn paths(paths: Paths) -> Paths {
    paths.get(
        "/api/v1/luns/{name}/connect",
        "for each host that may use it, what each kind of client pastes: `share show`",
        connecting,
    )
}

async fn connecting(
    State(handle): State<Handle>,
    Named(name): Named,
    listing: Listing<ConnectView>,
) -> Listed<ConnectView> {
    let views = ask!(handle, |controller| {
        let lun = controller.lun(&name).await?;
        Ok::<_, Problem>(views(&controller, &lun).await)
    });
    listing.show(views.and_then(|views| views))
}

async fn views(controller: &Controller, lun: &LunView) -> Vec<ConnectView> {
    let (targets, hosts) = (controller.targets().await, controller.hosts().await);
    let view = |grant: &GrantView| {
        let export = Export {
            lun,
            grant,
            target: targets.iter().find(|known| known.name == grant.target)?,
            host: hosts.iter().find(|known| known.name == grant.host)?,
        };
        Some(ConnectView {
            host: grant.host.clone(),
            target: grant.target.clone(),
            iqn: export.target.iqn.clone(),
            lun_id: grant.lun_id,
            blocks: platforms(&export),
        })
    };
    let grants = controller.grants();
    let mine = grants.iter().filter(|grant| grant.lun == lun.name);
    mine.filter_map(view).collect()
}
