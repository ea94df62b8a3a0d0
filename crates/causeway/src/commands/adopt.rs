//! `causeway lun adopt` and `lun ls --orphans`: storage of LUNs that no object names.

use super::context::{Context, Step, Tolerate};
use clap::Args;
use hyper::Method;
use manifest::orphan::{AdoptRequest, Orphan};
use manifest::problem::Problem;
use output::{Columns, Table, rounded};

/// Which of the LUNs that no object names.
#[derive(Args, Debug)]
pub(crate) struct Adopted {
    /// The LUN's name, its NAA identifier, or its file
    #[arg(
        value_name = "FILE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) files: Vec<String>,
    /// All that can be
    #[arg(long)]
    pub(crate) all: bool,
    /// Only of this pool
    #[arg(long)]
    pub(crate) pool: Option<String>,
    /// The name that it gets [default: the one that it had]
    #[arg(long, conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// Bytes in its logical blocks, where no record of it says so: 512 or 4096
    #[arg(long, conflicts_with = "all")]
    pub(crate) block_size: Option<u32>,
    /// Bytes in its physical blocks, where no record of it says so [default: those of its logical
    /// ones]
    #[arg(long, conflicts_with = "all", requires = "block_size")]
    pub(crate) physical_block_size: Option<u32>,
}

pub(super) fn ls(context: &Context<'_>) -> Result<(), Problem> {
    let orphans: Vec<Orphan> = context.client.get("/api/v1/orphans")?;
    context.output.list(&orphans, |orphans| list(orphans));
    Ok(())
}

pub(crate) fn run(context: &Context<'_>, adopted: &Adopted) -> Result<(), Problem> {
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

/// Of the LUNs that no object names.
pub(super) const COLUMNS: Columns =
    Columns::new(&["NAME", "NAA", "POOL", "SIZE", "BLOCKS", "STATE"]);

fn list(orphans: &[Orphan]) -> Table {
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
    Table::new(COLUMNS, rows)
}
