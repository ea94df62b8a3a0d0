//! What changed since a cut, for whoever copies it.

use super::file::bytes_of;
use crate::addresses::{blocks, chunks, sectors};
use crate::ring::Ring;
use env::Answer;
use journal::{SECTOR, Slot};
use std::ops::Range;
use units::LbaRange;
use volume::{Cut, Done, Extent, ExtentKind, ExtentList, IoError, IoFuture};

/// What one answer covers at most: that many entries are looked at in well under a millisecond.
const COVERED_BYTES: u64 = 1 << 30;

impl Ring {
    /// What of these blocks changed after a cut: [`ExtentKind::Mapped`], whatever is there now.
    pub(crate) fn changed(&self, slot: Slot, range: LbaRange, since: Cut) -> IoFuture {
        let (history, block_size) = {
            let backings = self.backings();
            let block_size = backings.opened(slot).shape.block_size;
            (backings.of(slot).history.clone(), block_size)
        };
        let most = COVERED_BYTES / u64::from(block_size.bytes());
        let range = chunks(range, most).next();
        let range = range.expect("a request has blocks");
        let bytes = sectors(range, block_size);
        let bytes = bytes_of(&bytes);
        let Some(history) = history else {
            let kind = ExtentKind::Mapped;
            let all = std::iter::once(Extent { range, kind }).collect();
            return Answer::ready(Ok(Done::Extents(all)));
        };
        Answer::wait(async move {
            let unknown = history.history.borrow().unknown(Some(bytes.clone()));
            let learnt = history.learn(unknown).await;
            let lba = range.start();
            learnt.map_err(|_| IoError::MediumError { lba })?;
            let changed = history.history.borrow().changed_since(since.0, &bytes);
            let mut extents = ExtentList::new();
            let mut at = bytes.start;
            let mut add = |bytes: Range<u64>, kind| {
                if !bytes.is_empty() {
                    let range = blocks(&(bytes.start / SECTOR..bytes.end / SECTOR), block_size);
                    extents.push(Extent { range, kind });
                }
            };
            for part in changed {
                add(at..part.start, ExtentKind::Deallocated);
                at = part.end;
                add(part, ExtentKind::Mapped);
            }
            add(at..bytes.end, ExtentKind::Deallocated);
            Ok(Done::Extents(extents))
        })
    }
}
