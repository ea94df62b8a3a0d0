//! What changed since a cut, for whoever copies it.

use super::file::{HistoryFile, bytes_of};
use crate::addresses::{blocks, chunks, sectors};
use env::Answer;
use journal::SECTOR;
use std::ops::Range;
use std::rc::Rc;
use units::{BlockSize, LbaRange};
use volume::{Cut, Done, Extent, ExtentKind, ExtentList, IoError, IoFuture};

/// What one answer covers at most: that many entries are searched in well under a millisecond.
const COVERED_BYTES: u64 = 1 << 30;

/// What of these blocks changed after a cut: [`ExtentKind::Mapped`], whatever is there now; all of
/// them, where no history is kept.
pub(crate) fn changed(
    history: Option<Rc<HistoryFile>>,
    block_size: BlockSize,
    range: LbaRange,
    since: Cut,
) -> IoFuture {
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
