//! `GET /doctor`: the node's machine against best practice.

use crate::answer::Answer;
use crate::describe::Paths;
use crate::edit::ask;
use axum::extract::State;
use controller::Handle;
use doctor::{NodeStorage, Report, examine_node, pool_space};
use manifest::code::Code;
use manifest::problem::Problem;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// It takes a core of its own: one after the other.
static TURN: Mutex<()> = Mutex::const_new(());

pub(crate) fn paths(paths: Paths) -> Paths {
    paths.get(
        "/api/v1/doctor",
        "the node's machine against best practice: `doctor --node`",
        node_doctor,
    )
}

async fn node_doctor(State(handle): State<Handle>) -> Answer<Report> {
    Answer(examined(&handle).await)
}

/// What is well at the node's machine and what is not.
async fn examined(handle: &Handle) -> Result<Report, Problem> {
    let pools = ask!(handle, |controller| controller.pools().await)?;
    let spaces = pools
        .iter()
        .filter_map(|pool| pool_space(&pool.name, pool.used, pool.available));
    let spaces = spaces.collect();
    let storage = ask!(handle, |controller| NodeStorage {
        places: controller.places(),
        engines: controller.disk_engines().await,
    })?;
    let turn = TURN.lock().await;
    let failed = |why: String| {
        Problem::new(Code::Internal, why)
            .hint("see that the daemon may ask the kernel for its interfaces (netlink)")
    };
    // It goes on when nobody waits for it any more, and keeps its turn for so long.
    let report = spawn_blocking(move || {
        let _turn = turn;
        examine_node(spaces, &storage)
    });
    let report = report.await;
    let report = report.map_err(|error| failed(error.to_string()))?;
    report.map_err(|error| failed(error.to_string()))
}
