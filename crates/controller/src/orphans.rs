//! LUNs that no object names: reported, and adopted.

use super::{Asked, Controller, How};
use manifest::code::Code;
use manifest::objects::{Adoption, Backing, Lun, Objects, PoolBrief, Storage};
use manifest::orphan::{AdoptRequest, Orphan};
use manifest::plan::{Adopted, Edit};
use manifest::problem::Problem;
use manifest::size::Size;
use manifest::view::Outcome;

/// How many are named.
const NAMED_MAX: usize = 5;

/// That there are some, for `status`.
pub(super) fn problem(orphans: &[Orphan]) -> Option<String> {
    let orphans: Vec<&Orphan> = orphans.iter().filter(|it| !it.is_foreign).collect();
    let named = orphans.iter().take(NAMED_MAX).map(|it| it.shown());
    let named = named.collect::<Vec<&str>>().join(", ");
    let more = match orphans.len().checked_sub(NAMED_MAX) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    (!orphans.is_empty()).then(|| {
        format!(
            "pools hold LUNs that no object names: {named}{more}; `causeway lun ls --orphans` lists them, `causeway lun adopt NAME` or \
             `lun adopt --all` takes them into service"
        )
    })
}

impl Controller {
    /// The LUNs that no object names, as they are now.
    pub async fn orphans(&self) -> Vec<Orphan> {
        self.engine.orphans(true).await
    }

    /// Takes LUNs into service that no object names, with identity, size, block size, storage
    /// fields and contents.
    ///
    /// # Errors
    /// There is no such one, it cannot be known what it is, or its storage cannot be opened;
    /// nothing has changed then.
    pub async fn adopt(
        &self,
        request: &AdoptRequest,
        how: How,
        asked: Asked,
    ) -> Result<Outcome, Problem> {
        // Once more when it is this change's turn; here so that the reason is the right one.
        self.expect(asked.expected.as_ref())?;
        let objects = self.objects();
        let mut all = self.orphans().await;
        all.retain(|orphan| {
            request
                .pool
                .as_ref()
                .is_none_or(|pool| *pool == orphan.pool)
        });
        let chosen = chosen(&all, request, &objects)?;
        let mut notices = Vec::new();
        let mut adopted = Vec::new();
        for orphan in &chosen {
            match self.adopted(orphan, request, &mut notices) {
                Ok(one) => adopted.push(one),
                // One that cannot be known keeps none of the others away.
                Err(problem) if request.all => {
                    notices.push(format!("{} is left: {}", orphan.shown(), problem.detail));
                }
                Err(problem) => return Err(problem),
            }
        }
        let edit = Edit::Adopt { adopted, notices };
        self.edit_if(&edit, how, asked).await
    }

    fn adopted(
        &self,
        orphan: &Orphan,
        request: &AdoptRequest,
        notices: &mut Vec<String>,
    ) -> Result<Adopted, Problem> {
        let known = orphan.record.as_ref();
        let mut lun = match (known, request.block_size) {
            (Some(record), _) => record.lun.clone(),
            (None, Some(block_size)) => self.unknown(orphan, block_size, request)?,
            (None, None) => {
                let why = orphan.problem.as_deref().unwrap_or("it has no record");
                let detail = format!("nobody knows what LUN {} is: {why}", orphan.naa);
                return Err(Problem::new(Code::BadRequest, detail).hint(
                    "say which blocks hosts saw: --block-size 512 or 4096 (with --physical-block-size); a wrong size shows hosts no partition",
                ));
            }
        };
        let name = match (&request.name, known) {
            (Some(name), _) => name.clone(),
            (None, Some(record)) => record.name.clone(),
            (None, None) => format!("adopted-{}", orphan.naa.get(24..).unwrap_or("lun")),
        };
        if orphan.file.is_some()
            && let Some(size) = Size::from_bytes(orphan.size_bytes)
        {
            // A LUN's file is as long as the LUN, also where its record is older.
            lun.size = size;
        }
        lun.backing = Backing::Pool(orphan.pool.clone());
        let pools = &self.config.pools;
        let pool = pools.iter().find(|pool| pool.name == orphan.pool);
        let pool = PoolBrief {
            name: &orphan.pool,
            has_journal: pool.is_some_and(|pool| pool.journal.is_some()),
            is_stable: pool.is_some_and(|pool| pool.place.is_stable()),
        };
        notices.extend(lun.storage.adopt(&Adoption {
            name: &name,
            has_checksums: orphan.has_checksums,
            pool,
        }));
        if known.is_some_and(|record| record.removed) {
            notices.push(format!(
                "LUN {name} had been deleted, and waited for `lun purge`"
            ));
        }
        Ok(Adopted { name, lun })
    }

    /// One of which only its storage is there.
    fn unknown(
        &self,
        orphan: &Orphan,
        block_size: u32,
        request: &AdoptRequest,
    ) -> Result<Lun, Problem> {
        let physical = request.physical_block_size.unwrap_or(block_size);
        let good = [512, 4096].contains(&block_size)
            && [512, 4096].contains(&physical)
            && physical >= block_size;
        if !good {
            let detail = "a logical block has 512 or 4096 bytes, a physical one the same or 4096";
            return Err(Problem::new(Code::BadRequest, detail));
        }
        let size = Size::from_bytes(orphan.size_bytes);
        let size = size.ok_or_else(|| {
            let detail = format!("{} bytes are more than a LUN may have", orphan.size_bytes);
            Problem::new(Code::BadRequest, detail)
        })?;
        let mut serial = [0; 8];
        self.core.fill_random(&mut serial);
        Ok(Lun {
            naa: orphan.naa.clone(),
            serial: units::hex(&serial),
            size,
            block_size,
            physical_block_size: physical,
            thin: true,
            backing: Backing::Pool(orphan.pool.clone()),
            bytes_in_flight_max: None,
            storage: Storage::default(),
        })
    }
}

/// Those that a request names.
fn chosen<'a>(
    all: &'a [Orphan],
    request: &AdoptRequest,
    objects: &Objects,
) -> Result<Vec<&'a Orphan>, Problem> {
    if request.all != request.files.is_empty() {
        let detail = "name what to adopt, or say that all is meant";
        return Err(Problem::new(Code::BadRequest, detail));
    }
    if request.all {
        // What was never a LUN is adopted where it is named.
        return Ok(all.iter().filter(|it| !it.is_foreign).collect());
    }
    if request.name.is_some() && request.files.len() > 1 {
        let detail = "one name is for one LUN";
        return Err(Problem::new(Code::BadRequest, detail));
    }
    let mut out: Vec<&Orphan> = Vec::new();
    for what in &request.files {
        let found: Vec<&Orphan> = all.iter().filter(|orphan| orphan.is(what)).collect();
        match found.as_slice() {
            [one] if out.iter().all(|known| known.naa != one.naa) => out.push(one),
            [_] => {}
            [] => {
                let problem = Problem::new(
                    Code::NotFound,
                    format!("no pool holds \"{what}\" without an object that names it"),
                );
                return Err(problem.hint(if objects.luns.contains_key(what) {
                    "it is in service: `causeway lun show` shows how"
                } else if objects.removed.contains_key(what) {
                    "it was deleted: `causeway lun restore` brings it back"
                } else {
                    "`causeway lun ls --orphans` shows what there is"
                }));
            }
            [_, ..] => {
                let detail =
                    format!("several are called \"{what}\": say which, by its NAA identifier");
                return Err(Problem::new(Code::BadRequest, detail));
            }
        }
    }
    Ok(out)
}
