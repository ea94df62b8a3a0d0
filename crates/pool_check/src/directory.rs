//! A pool that is a directory: it has one member, the file system, and keeps no events.

use super::sidecar;
use super::view::{LunView, MemberView, PoolView};
use env::CoreHandle;
use manifest::code::Code;
use manifest::problem::Problem;
use state::pool_file::{FILE, PoolFile};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// How the names of a LUN's files end.
const LUN: &str = "lun";
const SIDECARS: [&str; 2] = ["checksums", "changes"];

/// Its file, its LUNs, and their sidecars.
pub(crate) async fn inspect(core: &CoreHandle, path: &Path) -> Result<PoolView, Problem> {
    let file = path.join(FILE);
    let read = match PoolFile::read(core, &file).await {
        Ok(Some(says)) => says
            .number(&file)
            .map(|number| Some((number, says.journal))),
        // A pool that never had a journal needs none.
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    let refused = read.as_ref().err().map(|error| {
        Problem::new(Code::PoolUnreadable, error.cause.clone()).hint(error.next_step.clone())
    });
    let failed = |error: io::Error| {
        Problem::new(Code::PoolUnreadable, format!("{}: {error}", path.display()))
    };
    let mut luns = luns(path).map_err(failed)?;
    for lun in &mut luns {
        let sidecar = sidecar::in_directory(core, path, &lun.naa).await;
        sidecar::inspect(core, sidecar, lun).await;
    }
    let space = core.files().space(path).await.ok();
    let number = read.as_ref().ok().copied().flatten();
    let is_good = luns.iter().all(|lun| lun.problem.is_none());
    Ok(PoolView {
        pool: number.map(|(number, _)| units::hex(&number)),
        layout: "directory",
        event: None,
        journal: read
            .as_ref()
            .ok()
            .map(|says| says.is_some_and(|(_, has)| has)),
        complete: refused.is_none(),
        good: refused.is_none() && is_good,
        luns,
        room: space.map(|space| space.total),
        free: space.map(|space| space.available),
        members: vec![MemberView {
            member: Some(0),
            id: None,
            path: path.display().to_string(),
            serial: None,
            event: None,
            last_event: None,
            size: space.map(|space| space.total),
            state: match &read {
                Ok(_) => "present".to_owned(),
                Err(error) => format!("refused: {}", error.cause),
            },
            is_present: refused.is_none(),
        }],
        refused,
    })
}

/// All that are named by a file here.
fn luns(path: &Path) -> io::Result<Vec<LunView>> {
    let mut found: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((naa, what)) = name.rsplit_once('.') else {
            continue;
        };
        if what == LUN {
            found.insert(naa.to_owned(), Some(entry.metadata()?.len()));
        } else if SIDECARS.contains(&what) {
            found.entry(naa.to_owned()).or_default();
        }
    }
    let luns = found.into_iter().map(|(naa, bytes)| {
        let missing = || format!("its data is missing: {naa}.{LUN} is not there");
        let problem = bytes.is_none().then(missing);
        LunView {
            bytes: bytes.unwrap_or(0),
            served: bytes.is_some(),
            state: problem
                .clone()
                .unwrap_or_else(|| "can be served".to_owned()),
            checksums: None,
            history: None,
            problem,
            naa,
        }
    });
    Ok(luns.collect())
}
