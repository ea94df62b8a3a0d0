//! The sidecars of a LUN: its map of checksums and its history, as far as they are read
//! when it goes online.

use super::view::LunView;
use env::{CoreHandle, File, OpenHow};
use layers::integrity;
use std::io;
use std::path::Path;
use std::rc::Rc;
use units::hex;

/// What is there, or why it cannot be read.
pub(crate) type Opened = io::Result<Rc<dyn File>>;

/// What stands in a directory, under these names.
pub(crate) async fn in_directory(core: &CoreHandle, directory: &Path, naa: &str) -> [Opened; 2] {
    let files = core.files();
    let open = |ending: &str| {
        let path = directory.join(format!("{naa}.{ending}"));
        files.open(&path, OpenHow::READ)
    };
    [open("checksums").await, open("changes").await]
}

/// Fills in how its checksums and its history are.
pub(crate) async fn inspect(core: &CoreHandle, [map, changes]: [Opened; 2], lun: &mut LunView) {
    let checksums = checksums(core, map, &lun.naa).await;
    let history = history(changes, &lun.naa).await;
    take(lun, "its checksums", checksums.as_ref());
    take(lun, "its history", history.as_ref());
    lun.checksums = checksums.map(|it| it.words);
    lun.history = history.map(|it| it.words);
}

/// How one of them is.
struct Found {
    words: String,
    /// Less is known than should be.
    is_damaged: bool,
    /// The daemon leaves the LUN offline for it.
    is_refused: bool,
}

impl Found {
    fn refused(words: String) -> Self {
        Self {
            words,
            is_damaged: true,
            is_refused: true,
        }
    }
}

fn take(lun: &mut LunView, what: &str, found: Option<&Found>) {
    let Some(found) = found.filter(|it| it.is_damaged) else {
        return;
    };
    let problem = format!("{what}: {}", found.words);
    let all = lun.problem.take();
    lun.problem = Some(all.map_or_else(|| problem.clone(), |all| format!("{all}; {problem}")));
    if found.is_refused && lun.served {
        lun.served = false;
        lun.state = format!("{what} cannot be used");
    }
}

async fn checksums(core: &CoreHandle, map: Opened, naa: &str) -> Option<Found> {
    let survey = match map {
        Ok(file) => integrity::survey(core, &file).await,
        Err(error) => Err(error),
    };
    let survey = match there(survey)? {
        Ok(survey) => survey,
        Err(unreadable) => return Some(unreadable),
    };
    let is_another = survey.volume.is_some_and(|volume| hex(&volume) != naa);
    if is_another {
        return Some(Found::refused("they are another LUN's".to_owned()));
    }
    // One that was made has a superblock.
    if !survey.state.is_usable() || survey.volume.is_none() {
        return Some(Found::refused(survey.state.to_string()));
    }
    let mut words = survey.state.to_string();
    if survey.weak > 0 {
        let pages = survey.weak;
        words = format!(
            "{words}, but {pages} pages that say which are the newest are damaged: lost writes of those below go unnoticed"
        );
    }
    Some(Found {
        words,
        is_damaged: survey.weak > 0,
        is_refused: false,
    })
}

async fn history(changes: Opened, naa: &str) -> Option<Found> {
    let survey = match changes {
        Ok(file) => write_back::survey_history(&file).await,
        Err(error) => Err(error),
    };
    let survey = match there(survey)? {
        Ok(survey) => survey,
        Err(unreadable) => return Some(unreadable),
    };
    let is_of = |volume: write_back::VolumeId| naa.ends_with(&format!("{:016x}", volume.0));
    let anew = "everything counts as changed when the LUN goes online";
    if survey.volume.is_some_and(|volume| !is_of(volume)) {
        return Some(Found {
            words: format!("DAMAGED: it is another LUN's; {anew}"),
            is_damaged: true,
            is_refused: false,
        });
    }
    let words = survey.state.to_string();
    Some(match survey.state {
        write_back::CopiesState::Version(_) => Found::refused(words),
        write_back::CopiesState::Damaged(_) => Found {
            words: format!("{words}; {anew}"),
            is_damaged: true,
            is_refused: false,
        },
        write_back::CopiesState::Blank
        | write_back::CopiesState::Good
        | write_back::CopiesState::OneDamaged(_) => Found {
            words,
            is_damaged: false,
            is_refused: false,
        },
    })
}

/// `None`: there is none.
fn there<T>(surveyed: io::Result<T>) -> Option<Result<T, Found>> {
    match surveyed {
        Ok(survey) => Some(Ok(survey)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(Found::refused(format!("cannot be read: {error}")))),
    }
}
