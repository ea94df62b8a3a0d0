//! Looks after the pools' journals while the node serves.

use super::Inner;
use env::CoreHandle;
use std::rc::Weak;
use std::time::Duration;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// Runs for as long as the node does.
pub(super) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    loop {
        core.sleep_until(core.now().after(LOOK)).await;
        let Some(node) = node.upgrade() else { return };
        node.journals.sample(&core).await;
    }
}
