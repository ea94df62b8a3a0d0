//! What is converted: a raw disk, a VHDX or a VHD, with its parents.

use crate::here::{of_failure, of_io, unusable};
use backends::image::{Drive, Opened, Purpose, open_chain};
use env::file::{length, read};
use env::{Answer, CoreHandle, File, FileDone, FileOp, OpenHow};
use manifest::code::Code;
use manifest::problem::Problem;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::{Buf, BufMut};
use vhdx::{Piece, Source as Place, Vhd, VhdChain};

/// What kind of file it is, by what stands in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Vhdx,
    Vhd,
    /// One that qemu-img reads: its name there.
    Foreign(&'static str),
    Raw,
}

pub(crate) async fn format_of(core: &CoreHandle, path: &Path) -> Result<Format, Problem> {
    let found = async {
        let file = core.files().open(path, OpenHow::READ).await?;
        let bytes = length(&file).await?;
        let first = read(&file, 0, 16).await?;
        if first.starts_with(b"vhdxfile") {
            return Ok(Format::Vhdx);
        }
        for (magic, name) in [
            (&b"QFI\xfb"[..], "qcow2"),
            (b"KDMV", "vmdk"),
            (b"<<< ", "vdi"),
        ] {
            if first.starts_with(magic) {
                return Ok(Format::Foreign(name));
            }
        }
        let end = read(&file, bytes.saturating_sub(512) & !511, 512).await?;
        let is_vhd = first.starts_with(b"conectix") || end.starts_with(b"conectix");
        Ok(if is_vhd { Format::Vhd } else { Format::Raw })
    };
    found.await.map_err(|error| of_io(path, &error))
}

enum Kind {
    Vhdx(Opened),
    Vhd(VhdChain, Vec<Rc<dyn File>>),
    Raw(Rc<dyn File>),
}

pub(crate) struct Source {
    path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sector_bytes: u64,
    kind: Kind,
}

impl Source {
    pub(crate) async fn open(
        core: &CoreHandle,
        path: &Path,
        format: Format,
    ) -> Result<Self, Problem> {
        let open = |kind, bytes, sector_bytes| Self {
            path: path.to_owned(),
            bytes,
            sector_bytes,
            kind,
        };
        match format {
            Format::Vhdx => {
                let how = (Purpose::Read, None);
                let opened = open_chain(core, path, how, None).await.map_err(unusable)?;
                let geometry = opened.chain.image().geometry();
                Ok(open(
                    Kind::Vhdx(opened),
                    geometry.disk_bytes,
                    geometry.sector_bytes,
                ))
            }
            Format::Vhd => {
                let (chain, files) = vhd(core, path).await?;
                let bytes = chain.disk_bytes();
                Ok(open(Kind::Vhd(chain, files), bytes, 512))
            }
            Format::Raw | Format::Foreign(_) => {
                let opened = core.files().open(path, OpenHow::READ).await;
                let file = opened.map_err(|error| of_io(path, &error))?;
                let bytes = length(&file).await.map_err(|error| of_io(path, &error))?;
                Ok(open(Kind::Raw(file), bytes.next_multiple_of(512), 512))
            }
        }
    }

    /// A part of the disk; `None`: it is zeroes.
    pub(crate) async fn read(&self, at: u64, bytes: u64) -> Result<Option<Buf>, Problem> {
        let (pieces, files) = match &self.kind {
            Kind::Vhdx(opened) => {
                let found = Drive::of(&opened.files)
                    .run(opened.chain.read(at, bytes))
                    .await;
                (found, &opened.files[..])
            }
            Kind::Vhd(chain, files) => {
                let found = Drive::of(files).run(chain.read(at, bytes)).await;
                (found, &files[..])
            }
            Kind::Raw(file) => {
                return Ok(self
                    .raw(file, at, bytes)
                    .await?
                    .filter(|data| !data.is_zero()));
            }
        };
        let pieces = pieces.map_err(|failure| of_failure(&self.path, &failure))?;
        if pieces.iter().all(|piece| piece.from == Place::Zero) {
            return Ok(None);
        }
        let mut all = Buf::empty();
        for Piece { bytes, from, .. } in pieces {
            let len = small(bytes);
            all.append_owned(match from {
                Place::Zero => Buf::zeroes(len),
                Place::File { file, place } => {
                    let read = read_at(&files[file], place, len).await;
                    read.map_err(|error| of_io(&self.path, &error))?
                }
            });
        }
        Ok(Some(all).filter(|data| !data.is_zero()))
    }

    /// Of a raw file holes are not read.
    async fn raw(&self, file: &Rc<dyn File>, at: u64, bytes: u64) -> Result<Option<Buf>, Problem> {
        let asked: Answer<_> = file.submit(FileOp::Extents {
            offset: at,
            len: bytes,
        });
        if let Ok(FileDone::Extents(found)) = asked.await
            && let [only] = &found[..]
            && !only.allocated
            && only.len >= bytes
        {
            return Ok(None);
        }
        let read = read_at(file, at, small(bytes)).await;
        read.map(Some).map_err(|error| of_io(&self.path, &error))
    }
}

pub(crate) fn small(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit machines only")
}

/// As the file's alignment wants it.
async fn read_at(file: &Rc<dyn File>, at: u64, bytes: usize) -> std::io::Result<Buf> {
    let alignment = u64::from(file.facts().alignment.max(1));
    let from = at - at % alignment;
    let len = (at + bytes as u64).next_multiple_of(alignment) - from;
    let op = FileOp::Read {
        offset: from,
        into: BufMut::zeroed(small(len)),
    };
    let FileDone::Read(read) = file.submit(op).await? else {
        unreachable!("a read answers data")
    };
    let skipped = small(at - from);
    Ok(read.freeze().slice(skipped..skipped + bytes))
}

/// A VHD with its parents.
async fn vhd(core: &CoreHandle, path: &Path) -> Result<(VhdChain, Vec<Rc<dyn File>>), Problem> {
    let (mut files, mut images, mut at) = (Vec::new(), Vec::<Vhd>::new(), path.to_owned());
    loop {
        let opened = core.files().open(&at, OpenHow::READ).await;
        files.push(opened.map_err(|error| of_io(&at, &error))?);
        let opening = Vhd::open_as(images.len());
        let image = Drive::of(&files).run(opening).await;
        let image = image.map_err(|failure| of_failure(&at, &failure))?;
        let parents: Vec<String> = image
            .parent_paths()
            .into_iter()
            .map(str::to_owned)
            .collect();
        images.push(image);
        if parents.is_empty() {
            break;
        }
        at = parent(core, &at, &parents).await?;
    }
    let chain = VhdChain::new(images).map_err(|error| {
        Problem::new(Code::ImageUnusable, format!("{}: {error}", path.display()))
    })?;
    Ok((chain, files))
}

async fn parent(core: &CoreHandle, child: &Path, names: &[String]) -> Result<PathBuf, Problem> {
    let directory = crate::here::directory_of(child);
    for name in names {
        let ours = name.replace('\\', "/");
        let last = ours.rsplit('/').next().unwrap_or_default();
        for path in [directory.join(&ours), directory.join(last)] {
            if core.files().kind(&path).await.is_ok() {
                return Ok(path);
            }
        }
    }
    let detail = format!(
        "the parent of {} is not there ({})",
        child.display(),
        names.join(", ")
    );
    Err(Problem::new(Code::ImageUnusable, detail).hint("bring the parent to the child's directory"))
}
