//! `causeway lun adopt` and `lun ls --orphans`: storage of LUNs that no object names.

use super::{Context, Step, Tolerate};
use crate::cli::Adopted;
use crate::output::{rounded, table};
use hyper::Method;
use manifest::orphan::{AdoptRequest, Orphan};
use manifest::problem::Problem;

pub(super) fn ls(context: &Context<'_>) -> Result<(), Problem> {
    let orphans: Vec<Orphan> = context.client.get("/api/v1/orphans")?;
    context.output.show(&orphans, |orphans| list(orphans));
    Ok(())
}

pub(super) fn run(context: &Context<'_>, adopted: &Adopted) -> Result<(), Problem> {
    let request = AdoptRequest {
        all: adopted.all,
        files: adopted.files.clone(),
        pool: adopted.pool.clone(),
        name: adopted.name.clone(),
        block_size: adopted.block_size,
        physical_block_size: adopted.physical_block_size,
    };
    let step = Step::new(Method::POST, "/api/v1/orphans/adopt", &request);
    context.change(Tolerate::Nothing, &step)
}

fn list(orphans: &[Orphan]) -> String {
    let row = |it: &Orphan| {
        vec![
            it.name.clone().unwrap_or_default(),
            it.naa.clone(),
            it.pool.clone(),
            rounded(it.size_bytes),
            it.block_size.map(|it| it.to_string()).unwrap_or_default(),
            match (&it.problem, it.removed) {
                (Some(problem), _) => problem.clone(),
                (None, true) => "was deleted".to_owned(),
                (None, false) => "can be adopted".to_owned(),
            },
        ]
    };
    let rows: Vec<Vec<String>> = orphans.iter().map(row).collect();
    table(&["NAME", "NAA", "POOL", "SIZE", "BLOCKS", "STATE"], &rows)
}
