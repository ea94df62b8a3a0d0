//! What an image is, and what a check finds in it.

use crate::here::{of_failure, of_io, unusable};
use crate::source::{Format, Source, format_of};
use backends::image::{Drive, Purpose, open_chain};
use env::file::length;
use env::{CoreHandle, OpenHow};
use manifest::code::Code;
use manifest::problem::Problem;
use output::{properties, rounded};
use serde::Serialize;
use std::path::Path;
use vhdx::Severity;

/// What an image is.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct Info {
    file: String,
    format: &'static str,
    /// `dynamic`, `fixed`, `differencing`; of others than VHDX nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    size_bytes: u64,
    file_bytes: u64,
    sector_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_id: Option<String>,
    /// The identifier of its content, which a child has of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_write_id: Option<String>,
    /// Changes stand in its log that are not in their places: it was not closed, or is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_log: Option<bool>,
    parents: Vec<String>,
}

/// Its format is the one that is known, else what its name says, else what stands in it.
pub(crate) async fn info(
    core: &CoreHandle,
    path: &Path,
    known: Option<Format>,
) -> Result<Info, Problem> {
    let format = match known.or_else(|| Format::named(path)) {
        Some(format) => format,
        None => format_of(core, path).await?,
    };
    let opened = core.files().open(path, OpenHow::READ).await;
    let file = opened.map_err(|error| of_io(path, &error))?;
    let file_bytes = length(&file).await.map_err(|error| of_io(path, &error))?;
    let mut info = Info {
        file: path.display().to_string(),
        format: format.name(),
        kind: None,
        size_bytes: 0,
        file_bytes,
        sector_bytes: 512,
        block_bytes: None,
        disk_id: None,
        data_write_id: None,
        has_log: None,
        parents: Vec::new(),
    };
    if format != Format::Vhdx {
        info.size_bytes = Source::open(core, path, format).await?.bytes;
        return Ok(info);
    }
    let opened = open_chain(core, path, (Purpose::Read, None), None).await;
    let opened = opened.map_err(unusable)?;
    let image = opened.chain.image();
    let (metadata, header) = (image.metadata(), image.header());
    info.kind = Some(match (&metadata.locator, metadata.is_fixed) {
        (Some(_), _) => "differencing",
        (None, true) => "fixed",
        (None, false) => "dynamic",
    });
    info.size_bytes = metadata.geometry.disk_bytes;
    info.sector_bytes = metadata.geometry.sector_bytes;
    info.block_bytes = Some(metadata.geometry.block_bytes);
    info.disk_id = Some(metadata.disk_id.to_string());
    info.data_write_id = Some(header.data_write.to_string());
    info.has_log = Some(!header.log.is_none());
    let parents = opened.paths().skip(1);
    info.parents = parents.map(|path| path.display().to_string()).collect();
    Ok(info)
}

pub(crate) fn show_info(info: &Info) -> String {
    let mut pairs = vec![
        ("file", info.file.clone()),
        ("format", info.format.to_owned()),
        ("kind", info.kind.unwrap_or("-").to_owned()),
        ("size", rounded(info.size_bytes)),
        ("file size", rounded(info.file_bytes)),
        ("sector", info.sector_bytes.to_string()),
    ];
    pairs.extend(info.block_bytes.map(|bytes| ("block", rounded(bytes))));
    if info.has_log == Some(true) {
        let log = "has changes: it was not closed, or is in use".to_owned();
        pairs.push(("log", log));
    }
    for parent in &info.parents {
        pairs.push(("parent", parent.clone()));
    }
    properties(&pairs)
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct Checked {
    file: String,
    /// `well`, `note`, `mendable` or `damaged`.
    verdict: &'static str,
    is_repaired: bool,
    blocks: u64,
    used_bytes: u64,
    count: u64,
    findings: Vec<Found>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
struct Found {
    severity: &'static str,
    text: String,
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Mendable => "mendable",
        Severity::Damage => "damaged",
    }
}

pub(crate) async fn check(
    core: &CoreHandle,
    path: &Path,
    is_repair: bool,
) -> Result<Checked, Problem> {
    let purpose = if is_repair {
        Purpose::Change
    } else {
        Purpose::Read
    };
    // Of its parents nothing is asked.
    let opened = backends::image::open_alone(core, path, purpose).await;
    let (image, files) = opened.map_err(unusable)?;
    let drive = Drive::of(&files);
    let report = if is_repair {
        let mended = drive.run(image.repair()).await;
        let mended = mended.map_err(|failure| of_failure(path, &failure))?;
        let closed = drive.run(image.close()).await;
        closed.map_err(|failure| of_failure(path, &failure))?;
        mended
    } else {
        let checked = drive.run(image.check()).await;
        checked.map_err(|failure| of_failure(path, &failure))?
    };
    let findings = report.findings.iter().map(|finding| Found {
        severity: word(finding.severity()),
        text: finding.to_string(),
    });
    Ok(Checked {
        file: path.display().to_string(),
        verdict: report.worst().map_or("well", word),
        is_repaired: is_repair,
        blocks: report.blocks,
        used_bytes: report.used_bytes,
        count: report.count,
        findings: findings.collect(),
    })
}

pub(crate) fn show_check(checked: &Checked) -> String {
    let head = format!(
        "{}: {}; {} blocks, {} in use\n",
        checked.file,
        checked.verdict,
        checked.blocks,
        rounded(checked.used_bytes)
    );
    let findings = checked.findings.iter();
    let lines = findings.map(|found| format!("  {}: {}\n", found.severity, found.text));
    std::iter::once(head).chain(lines).collect()
}

impl Checked {
    /// What is not as it should be is the command's failure.
    pub(crate) fn problem(&self) -> Option<Problem> {
        let detail = format!("{}: {} findings", self.file, self.count);
        let problem = Problem::new(Code::ImageUnusable, detail);
        match (self.verdict, self.is_repaired) {
            ("damaged", _) => Some(problem.hint(
                "data is lost or not known: restore the image from a backup, or copy what can be read",
            )),
            ("mendable", false) => Some(problem.hint("repeat with --repair, which loses nothing")),
            _ => None,
        }
    }
}
