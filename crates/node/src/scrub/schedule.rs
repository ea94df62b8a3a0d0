//! Scrubs by the clock: each LUN so often, one after the other, those that have waited longest
//! first.

use crate::inner::Inner;
use env::CoreHandle;
use std::rc::Weak;
use std::time::Duration;

/// How often it checks whether one is due.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Runs for as long as the node does.
pub(crate) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    loop {
        core.sleep_until(core.now().after(PROBE_INTERVAL)).await;
        let Some(node) = node.upgrade() else { return };
        let Some(every) = node.scrubs.every() else {
            continue;
        };
        let now = core.wall_clock();
        let Some(naa) = node.scrub_due(every, now) else {
            continue;
        };
        let _turn = node.turn.lock().await;
        if let Err(problem) = node.begin_due(&naa).await {
            tracing::debug!("the scrub of {naa} is due and does not begin: {problem}");
        }
    }
}
