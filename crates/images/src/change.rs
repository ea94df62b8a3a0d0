//! Images that become larger, smaller or shorter, and a child that goes into its parent.

use crate::here::{of_failure, unusable};
use backends::image::{Drive, Purpose, open_alone, open_chain};
use env::CoreHandle;
use manifest::code::Code;
use manifest::problem::Problem;
use std::path::Path;
use vhdx::Error;

pub(crate) async fn resize(core: &CoreHandle, path: &Path, bytes: u64) -> Result<(), Problem> {
    let opened = open_alone(core, path, Purpose::Change).await;
    let (image, files) = opened.map_err(unusable)?;
    let drive = Drive::of(&files);
    let resized = drive.run(image.resize(bytes)).await;
    resized.map_err(|failure| {
        let problem = of_failure(path, &failure);
        if matches!(failure.error, Error::InUse { .. }) {
            return problem.hint("make the file system and partitions in it smaller and give the rest back (UNMAP) first");
        }
        problem
    })?;
    let closed = drive.run(image.close()).await;
    closed.map_err(|failure| of_failure(path, &failure))
}

/// Answers the file's length before and after.
pub(crate) async fn compact(core: &CoreHandle, path: &Path) -> Result<(u64, u64), Problem> {
    let opened = open_alone(core, path, Purpose::Change).await;
    let (image, files) = opened.map_err(unusable)?;
    let before = image.file_bytes();
    let drive = Drive::of(&files);
    let after = drive.run(image.compact()).await;
    let after = after.map_err(|failure| of_failure(path, &failure))?;
    let closed = drive.run(image.close()).await;
    closed.map_err(|failure| of_failure(path, &failure))?;
    Ok((before, after))
}

/// Answers the parent's path.
pub(crate) async fn merge(core: &CoreHandle, path: &Path) -> Result<String, Problem> {
    let opened = open_chain(core, path, (Purpose::Merge, None), None).await;
    let opened = opened.map_err(unusable)?;
    let Some(parent) = opened.paths().nth(1).map(|path| path.display().to_string()) else {
        let detail = format!("{} has no parent", path.display());
        return Err(Problem::new(Code::ImageUnusable, detail)
            .hint("only a differencing image can be merged"));
    };
    let merged = Drive::of(&opened.files).run(opened.chain.merge()).await;
    merged.map_err(|failure| of_failure(path, &failure))?;
    Ok(parent)
}
