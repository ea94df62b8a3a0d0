//! Inspects a map of checksums without opening it: nothing is written, and nobody is kept from it.

use super::map_file::{read_at, read_pair};
use checksums::{CopiesState, PAGE, Superblock, Tree};
use env::{CoreHandle, File};
use std::io;
use std::rc::Rc;

/// How a map is, as far as it is read when it is opened: its superblock, and the pages above
/// checksums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapSurvey {
    /// Whose it says that it is.
    pub volume: Option<[u8; 16]>,
    /// How its superblock is; of another version also if one of the pages above checksums is.
    pub state: CopiesState,
    /// Pages above checksums that cannot be used: lost writes of what is below them go unnoticed.
    pub weak: u64,
}

/// How a map is.
///
/// # Errors
/// It cannot be read.
pub async fn survey(core: &CoreHandle, file: &Rc<dyn File>) -> io::Result<MapSurvey> {
    let slots = read_at(core, file, 0, 2 * PAGE).await?;
    let slots = [&slots[..PAGE], &slots[PAGE..]];
    let mut survey = MapSurvey {
        volume: None,
        state: Superblock::copies_state(slots),
        weak: 0,
    };
    let Ok(superblock) = Superblock::newest(slots) else {
        return Ok(survey);
    };
    survey.volume = Some(superblock.volume);
    let mut tree = Tree::new(&superblock);
    for node in tree.nodes() {
        if tree.recorded(node).is_absent() {
            continue;
        }
        let pair = read_pair(core, file, node).await?;
        let Err(unfit) = tree.load(node, [&pair[..PAGE], &pair[PAGE..]]) else {
            continue;
        };
        survey.weak += 1;
        if let version @ checksums::Damage::Version { .. } = unfit.why {
            survey.state = survey.state.and(CopiesState::Version(version));
        }
    }
    Ok(survey)
}
