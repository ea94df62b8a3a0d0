//! What is converted: a raw disk, a VHDX or a VHD, with its parents.

use crate::create::usage;
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

impl Format {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Vhdx => "vhdx",
            Self::Vhd => "vhd",
            Self::Foreign(name) => name,
            Self::Raw => "raw",
        }
    }

    /// What a file's name says; `None`: nothing.
    pub(crate) fn named(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "raw" | "img" => Some(Self::Raw),
            "vhdx" | "avhdx" => Some(Self::Vhdx),
            "vhd" => Some(Self::Vhd),
            "qcow2" => Some(Self::Foreign("qcow2")),
            "vmdk" => Some(Self::Foreign("vmdk")),
            "vdi" => Some(Self::Foreign("vdi")),
            _ => None,
        }
    }

    /// Whether a file that begins and ends so may have it. Any may be a raw disk.
    fn fits(self, (first, end): (&[u8], &[u8])) -> bool {
        match self {
            Self::Raw => true,
            Self::Vhd => first.starts_with(VHD) || end.starts_with(VHD),
            Self::Vhdx | Self::Foreign(_) => MAGICS
                .iter()
                .any(|(magic, of)| *of == self && first.starts_with(magic)),
        }
    }
}

/// What formats begin with.
const MAGICS: [(&[u8], Format); 4] = [
    (b"vhdxfile", Format::Vhdx),
    (b"QFI\xfb", Format::Foreign("qcow2")),
    (b"KDMV", Format::Foreign("vmdk")),
    (b"<<< ", Format::Foreign("vdi")),
];

/// What a VHD ends with, or begins with.
const VHD: &[u8] = b"conectix";

/// As a command line names what is read.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Debug)]
pub enum SourceFormat {
    /// A disk as it is
    Raw,
    /// A VHDX image, with its parents
    Vhdx,
    /// A VHD image, with its parents
    Vhd,
    /// An image of QEMU (by qemu-img)
    Qcow2,
    /// An image of VMware (by qemu-img)
    Vmdk,
    /// An image of VirtualBox (by qemu-img)
    Vdi,
}

impl From<SourceFormat> for Format {
    fn from(said: SourceFormat) -> Self {
        match said {
            SourceFormat::Raw => Self::Raw,
            SourceFormat::Vhdx => Self::Vhdx,
            SourceFormat::Vhd => Self::Vhd,
            SourceFormat::Qcow2 => Self::Foreign("qcow2"),
            SourceFormat::Vmdk => Self::Foreign("vmdk"),
            SourceFormat::Vdi => Self::Foreign("vdi"),
        }
    }
}

/// A file's first and last sector.
async fn edges(core: &CoreHandle, path: &Path) -> Result<(Vec<u8>, Vec<u8>), Problem> {
    let found = async {
        let file = core.files().open(path, OpenHow::READ).await?;
        let bytes = length(&file).await?;
        let first = read(&file, 0, small(bytes.min(512))).await?;
        let last = bytes.saturating_sub(511) & !511;
        let end = read(&file, last, small((bytes - last).min(512))).await?;
        Ok((first, end))
    };
    found.await.map_err(|error| of_io(path, &error))
}

/// What an image's own bytes say: to be shown, and never to decide what is read. A guest writes
/// the bytes of a raw disk; ones that look like another format's name files of this machine.
pub(crate) async fn format_of(core: &CoreHandle, path: &Path) -> Result<Format, Problem> {
    let (first, end) = edges(core, path).await?;
    let begun = MAGICS.iter().find(|(magic, _)| first.starts_with(magic));
    Ok(match begun {
        Some((_, format)) => *format,
        None if Format::Vhd.fits((&first, &end)) => Format::Vhd,
        None => Format::Raw,
    })
}

/// What a conversion reads a file as: what was said, else what its name says.
pub(crate) async fn format_said(
    core: &CoreHandle,
    path: &Path,
    said: Option<SourceFormat>,
) -> Result<Format, Problem> {
    let said = said.map(Format::from);
    let Some(format) = said.or_else(|| Format::named(path)) else {
        let detail = format!(
            "{}: its name does not say which format it has",
            path.display()
        );
        let hint = "say it: --from-format raw, vhdx, vhd, qcow2, vmdk or vdi";
        return Err(usage(detail).hint(hint));
    };
    let (first, end) = edges(core, path).await?;
    let cause = if format.fits((&first, &end)) {
        needed(format, &first)
    } else {
        Some("it does not begin, or end, as one does")
    };
    match cause {
        None => Ok(format),
        Some(cause) => {
            let path = path.display();
            let detail = format!("{path} is not read as {}: {cause}", format.name());
            let hint = "say what it is with --from-format; an image that needs other files is \
                        made whole first, where it comes from";
            Err(Problem::new(Code::ImageUnusable, detail).hint(hint))
        }
    }
}

/// Which other files an image of QEMU or VMware names in its first sector.
fn needed(format: Format, first: &[u8]) -> Option<&'static str> {
    let bytes = |at: usize| {
        let word = first.get(at..at + 8);
        word.and_then(|word| <[u8; 8]>::try_from(word).ok())
    };
    let word = |at| bytes(at).map_or(0, u64::from_be_bytes);
    match format.name() {
        "qcow2" if word(8) != 0 => Some("it has a backing file, which is not read"),
        // Bit 2 of the incompatible features, which version 3 has.
        "qcow2" if word(0) & 0xffff_ffff > 2 && word(72) & 4 != 0 => {
            Some("its data are in another file, which is not read")
        }
        // Without a capacity its descriptor counts, which names files.
        "vmdk" if bytes(12).map_or(0, u64::from_le_bytes) == 0 => {
            Some("its data are in other files, which are not read")
        }
        _ => None,
    }
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

#[cfg(test)]
mod test {
    use super::*;
    use crate::here::on_a_core;

    fn said_of(name: &str, content: &[u8], said: Option<SourceFormat>) -> Result<Format, Problem> {
        let name = format!("causeway-source-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        let asked = path.clone();
        let found =
            on_a_core(move |core| Box::pin(async move { format_said(&core, &asked, said).await }));
        std::fs::remove_file(path).unwrap();
        found
    }

    /// A sector that begins as QEMU's images do.
    fn qcow2(version: u8, backing: u8, features: u8) -> Vec<u8> {
        let mut sector = vec![0; 512];
        sector[..4].copy_from_slice(b"QFI\xfb");
        (sector[7], sector[15], sector[79]) = (version, backing, features);
        sector
    }

    #[test]
    fn a_source_is_what_is_said_and_never_what_its_bytes_say() {
        let evil = qcow2(3, 104, 0);
        assert_eq!(said_of("a.raw", &evil, None).unwrap(), Format::Raw);
        assert_eq!(said_of("a.IMG", &evil, None).unwrap(), Format::Raw);
        let raw = said_of("a.qcow2", &evil, Some(SourceFormat::Raw));
        assert_eq!(raw.unwrap(), Format::Raw);
        let unknown = said_of("disk", &evil, None).unwrap_err();
        assert_eq!(unknown.code, Code::ConfigValue);
        assert!(unknown.hint.contains("--from-format"), "{unknown:?}");
        for (name, content) in [
            ("a.vhdx", &evil[..]),
            ("a.vhd", b"vhdxfile"),
            ("a.vdi", b""),
        ] {
            let refused = said_of(name, content, None).unwrap_err();
            assert_eq!(refused.code, Code::ImageUnusable, "{name}");
        }
        // A fixed VHD whose guest has written what another format begins with.
        let fixed = [&evil[..], b"conectix", &[0; 504]].concat();
        // Old ones end with a byte less.
        for end in [fixed.len(), fixed.len() - 1] {
            let read = said_of("b.vhd", &fixed[..end], None).unwrap();
            assert_eq!(read, Format::Vhd);
        }
    }

    #[test]
    fn images_that_name_other_files_are_refused() {
        let found = Format::Foreign("qcow2");
        assert_eq!(said_of("c.qcow2", &qcow2(3, 0, 1), None).unwrap(), found);
        assert_eq!(said_of("c.qcow2", &qcow2(2, 0, 4), None).unwrap(), found);
        for (sector, cause) in [
            (qcow2(2, 72, 0), "a backing file"),
            (qcow2(3, 0, 4), "in another file"),
        ] {
            let refused = said_of("d.qcow2", &sector, None).unwrap_err();
            assert!(refused.detail.contains(cause), "{refused:?}");
        }
        let mut vmdk = vec![0; 512];
        vmdk[..4].copy_from_slice(b"KDMV");
        assert!(said_of("e.vmdk", &vmdk, None).is_err());
        vmdk[12] = 8;
        assert!(said_of("e.vmdk", &vmdk, None).is_ok());
    }
}
