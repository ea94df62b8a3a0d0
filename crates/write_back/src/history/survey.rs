//! Inspects the history of a volume without opening it: nothing is written, and nobody is kept from
//! it.

use env::File;
use env::file::{length, read};
use journal::{BLOCK, CopiesState, History, RINGS_MAX, VolumeId};
use std::io;
use std::rc::Rc;

/// How a history is, by the headers of its rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistorySurvey {
    /// Whose it says that it is.
    pub volume: Option<VolumeId>,
    /// How its headers are, of all rings together.
    pub state: CopiesState,
}

/// How a history is.
///
/// # Errors
/// It cannot be read.
pub async fn survey_history(file: &Rc<dyn File>) -> io::Result<HistorySurvey> {
    let bytes = length(file).await?;
    let (mut all, mut volume, mut rings) = (Vec::new(), None, RINGS_MAX);
    // Only a header says how many there are; pages follow them, and are none.
    for ring in 0..RINGS_MAX {
        let there = header(file, bytes, ring).await?;
        let Some(header) = there.filter(|_| ring < rings) else {
            break;
        };
        let (places, id) = History::copies_state(&header);
        if let Some(id) = id.filter(|_| volume.is_none()) {
            (volume, rings) = (Some(id.volume), id.rings);
        }
        all.push(places);
    }
    let of_rings = all.into_iter().take(rings as usize);
    let state = of_rings.fold(CopiesState::Blank, CopiesState::and);
    Ok(HistorySurvey { volume, state })
}

/// The bytes of a ring's header, as far as the file goes.
async fn header(file: &Rc<dyn File>, bytes: u64, ring: u32) -> io::Result<Option<Vec<u8>>> {
    let (at, len) = History::header_at(ring);
    let there = bytes.saturating_sub(at).min(len as u64) / BLOCK as u64 * BLOCK as u64;
    if there == 0 {
        return Ok(None);
    }
    let there = usize::try_from(there).expect("a header is small");
    let mut header = read(file, at, there).await?;
    header.resize(len, 0);
    Ok(Some(header))
}
