//! LUNs with copies that this node owns go to other nodes, before its maintenance.

use super::Controller;
use engine::DrainView;

impl Controller {
    /// Gives LUNs with copies that this node owns to nodes that have all of them, or says what
    /// would become of each.
    pub async fn drain(&self, dry_run: bool) -> DrainView {
        let luns = self.engine.drain(dry_run).await;
        DrainView { luns }
    }
}
