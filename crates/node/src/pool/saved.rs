//! What each pool says of the newest objects that were stored: a state directory that was restored
//! from an older copy is known by it.

use crate::inner::Inner;
use crate::pool::late;
use state::saved::{SavedText, parse};

impl Inner {
    /// The newest generation of this node's objects that a pool has seen, and the pool.
    pub(crate) async fn newest_saved(&self, node_id: &str) -> Option<(u64, String)> {
        let mut all = Vec::new();
        for (name, pool) in self.pools().iter() {
            let saved = pool.saved().await;
            all.push((name.clone(), saved.as_deref().and_then(parse)));
        }
        let of_node = all.into_iter().filter_map(|(pool, saved)| {
            let saved = saved.filter(|saved| saved.node_id == node_id)?;
            Some((saved.generation, pool))
        });
        of_node.max()
    }

    /// Objects of this generation are stored: the pools say so from now on.
    pub(crate) async fn write_saved(&self, node_id: &str, generation: u64) {
        let saved = SavedText::new(node_id, generation);
        let mut kept = Ok(());
        for pool in self.pools().values() {
            if let Err(why) = pool.write_saved(saved.clone()).await {
                kept = Err(why);
            }
        }
        let record = late::Late::Saved {
            node_id: node_id.to_owned(),
            generation,
        };
        let what = "a pool does not say which objects were stored last, which only matters where state_dir is restored";
        self.unsaved.note(record, what, kept);
    }
}
