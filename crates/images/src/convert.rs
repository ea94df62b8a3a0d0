//! Raw, VHD and VHDX into raw and VHDX; other formats by qemu-img, where that is installed.

use crate::create::Wanted;
use crate::here::{finish, is_new, of_failure, of_io, part_of, stable};
use crate::progress::Progress;
use crate::qemu::by_qemu;
use crate::source::{Format, Source, SourceFormat, format_said, small};
use crate::target::Target;
use backends::image::{Drive, Purpose, open_alone};
use env::{Access, CoreHandle, Create, Durable, File, FileOp, OpenHow};
use manifest::problem::Problem;
use std::path::Path;
use std::rc::Rc;
use units::Buf;
use vhdx::Image;

/// Bytes that are read and written at once, and bytes between two syncs.
const AT_ONCE: u64 = 4 << 20;
const SYNC_BYTES: u64 = 256 << 20;
/// Zeroes of so many bytes take no space: the smallest block that there is.
const ZEROES: u64 = 1 << 20;

pub(crate) async fn convert(
    core: &CoreHandle,
    from: &Path,
    wanted: &Wanted,
    (said, target): (Option<SourceFormat>, Target),
) -> Result<(), Problem> {
    let to = &wanted.path;
    is_new(core, to).await?;
    let format = format_said(core, from, said).await?;
    if let (Format::Foreign(_), _) | (_, Target::Qcow2) = (format, target) {
        let part = part_of(to, "");
        drop(core.files().remove(&part).await);
        by_qemu(from, format, &part, (target, wanted.is_fixed))?;
        stable(core, &part).await?;
        return finish(core, &part, to).await;
    }
    let source = Source::open(core, from, format).await?;
    let part = part_of(to, "");
    // What an earlier run left is worth nothing: the source may be another one by now.
    drop(core.files().remove(&part).await);
    if target == Target::Raw {
        into_raw(core, &source, &part).await?;
    } else {
        let mut wanted = wanted.clone();
        (wanted.bytes, wanted.sector_bytes) = (Some(source.bytes), source.sector_bytes);
        into_vhdx(core, &source, &part, wanted).await?;
    }
    finish(core, &part, to).await
}

/// Parts of so many bytes, each of `most` but the last.
fn chunks(bytes: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes)
        .step_by(small(most))
        .map(move |at| (at, most.min(bytes - at)))
}

async fn into_raw(core: &CoreHandle, source: &Source, part: &Path) -> Result<(), Problem> {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::New,
        direct: false,
        lock: true,
    };
    let fail = |error: std::io::Error| of_io(part, &error);
    let file = core.files().open(part, how).await.map_err(fail)?;
    let length = FileOp::SetLen { len: source.bytes };
    file.submit(length).await.map_err(fail)?;
    let (mut progress, mut since) = (Progress::new(core, source.bytes), 0);
    for (at, bytes) in chunks(source.bytes, AT_ONCE) {
        if let Some(data) = source.read(at, bytes).await? {
            let write = FileOp::Write {
                offset: at,
                data,
                durable: Durable::No,
            };
            file.submit(write).await.map_err(fail)?;
            since += bytes;
        }
        if since >= SYNC_BYTES {
            file.submit(FileOp::Sync).await.map_err(fail)?;
            since = 0;
        }
        progress.add(bytes);
    }
    file.submit(FileOp::Sync).await.map(|_| ()).map_err(fail)
}

async fn into_vhdx(
    core: &CoreHandle,
    source: &Source,
    part: &Path,
    wanted: Wanted,
) -> Result<(), Problem> {
    let wanted = Wanted {
        path: part.to_owned(),
        ..wanted
    };
    crate::create::create(core, &wanted).await?;
    let opened = open_alone(core, part, Purpose::Change).await;
    let (image, files) = opened.map_err(crate::here::unusable)?;
    let fail = |failure| of_failure(part, &failure);
    let (mut progress, mut since) = (Progress::new(core, source.bytes), 0);
    for (at, bytes) in chunks(source.bytes, AT_ONCE) {
        if let Some(data) = source.read(at, bytes).await? {
            since += write(part, (&image, &files), at, &data).await?;
        }
        if since >= SYNC_BYTES {
            Drive::of(&files).run(image.flush()).await.map_err(fail)?;
            since = 0;
        }
        progress.add(bytes);
    }
    Drive::of(&files).run(image.close()).await.map_err(fail)
}

/// Writes what of a part is not zeroes; answers how many bytes.
async fn write(
    part: &Path,
    (image, files): (&Image, &[Rc<dyn File>]),
    at: u64,
    data: &Buf,
) -> Result<u64, Problem> {
    let mut written = 0;
    for (from, bytes) in chunks(data.len() as u64, ZEROES) {
        let payload = data.slice(small(from)..small(from + bytes));
        if payload.is_zero() {
            continue;
        }
        let drive = Drive {
            payload: Some(&payload),
            ..Drive::of(files)
        };
        let done = drive.run(image.write(at + from, bytes)).await;
        done.map_err(|failure| of_failure(part, &failure))?;
        written += bytes;
    }
    Ok(written)
}
