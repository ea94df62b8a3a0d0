//! What a TARGET on the command line is: `memory:SIZE`, a file, a block device, or an iscsi:// URL.

use backends::{FileSpec, MemoryVolume, Provisioning, open_block, open_file};
use control::code::Code;
use control::problem::Problem;
use control::size::Size;
use env::CoreHandle;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{BlockCount, BlockSize};
use volume::{Fences, OpenError, Volume};

/// A volume that this process uses.
pub(crate) struct Opened {
    /// As it was written.
    pub(crate) name: String,
    /// The volume.
    pub(crate) volume: Arc<dyn Volume>,
    /// Nobody else can have data on it.
    pub(crate) private: bool,
}

fn cannot(name: &str, error: &OpenError) -> Problem {
    let detail = if error.cause.contains(name) {
        error.cause.clone()
    } else {
        format!("{name}: {}", error.cause)
    };
    Problem::new(Code::TargetCannotBeOpened, detail).hint(error.next_step.clone())
}

/// Opens what `name` names.
pub(crate) async fn open(core: &CoreHandle, name: &str) -> Result<Opened, Problem> {
    if let Some(size) = name.strip_prefix("memory:") {
        return memory(name, size);
    }
    if name.contains("://") {
        let detail = format!("{name}: volumes by URL are not in this version yet");
        return Err(Problem::new(Code::ConfigNotYet, detail));
    }
    let path = Path::new(name);
    let is_block = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let volume: Arc<dyn Volume> = if is_block {
        let opened = match open_block(core, path, BlockSize::B512, Fences::new(1)).await {
            Err(_) => open_block(core, path, BlockSize::B4096, Fences::new(1)).await,
            opened => opened,
        };
        opened.map_err(|error| cannot(name, &error))?
    } else {
        let opened = open_file(core, spec(path), Fences::new(1)).await;
        opened.map_err(|error| cannot(name, &not_a_lun(error)))?
    };
    Ok(Opened {
        name: name.to_owned(),
        volume,
        private: false,
    })
}

/// The backends' words are for LUNs of a daemon.
fn not_a_lun(error: OpenError) -> OpenError {
    if error.next_step.contains("LUN") {
        let next_step = "check the path; `causeway bench -c<size>` makes a file".to_owned();
        return OpenError { next_step, ..error };
    }
    error
}

fn spec(path: &Path) -> FileSpec {
    FileSpec {
        path: PathBuf::from(path),
        block_size: BlockSize::B512,
        physical_block_exponent: 3,
        provisioning: Provisioning::Thin,
    }
}

fn memory(name: &str, size: &str) -> Result<Opened, Problem> {
    let bad = |why: String| Problem::new(Code::TargetCannotBeOpened, why).hint("such as memory:1G");
    let size: Size = size.parse().map_err(|why| bad(format!("{name}: {why}")))?;
    let blocks = size.bytes() / 512;
    if blocks == 0 {
        return Err(bad(format!("{name}: not one block")));
    }
    let volume = MemoryVolume::new(BlockSize::B512, BlockCount(blocks), 3, Fences::new(1));
    Ok(Opened {
        name: name.to_owned(),
        volume,
        private: true,
    })
}
