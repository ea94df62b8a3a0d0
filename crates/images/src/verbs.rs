//! The arguments, and what runs each.

use crate::create::Wanted;
use crate::here::on_a_core;
use crate::source::{Format, SourceFormat};
use crate::target::Target;
use crate::{change, convert, create, facts};
use clap::{Args, Subcommand};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::size::Size;
use output::{Output, rounded};
use serde_json::json;
use std::path::PathBuf;

/// What is done with images: no daemon is asked.
#[derive(Subcommand, Clone, Debug)]
pub enum ImageVerb {
    /// Make a VHDX image: dynamic, fixed, or the child of another one
    #[command(
        alias = "add",
        after_help = "A fixed image takes its space in steps. A run that was stopped is repeated, and goes on where it \
                      was; the image has its name when it is whole."
    )]
    Create {
        /// The new file
        file: PathBuf,
        /// Bytes of the disk; a child has its parent's
        #[arg(
            long,
            value_name = "SIZE",
            conflicts_with = "parent",
            required_unless_present = "parent"
        )]
        size: Option<Size>,
        /// All blocks get their space now
        #[arg(long, conflicts_with = "parent")]
        fixed: bool,
        /// Make the child of this image: what is not written stays there
        #[arg(long, value_name = "FILE")]
        parent: Option<PathBuf>,
        /// Bytes of a sector, 512 or 4096 [default: 512]
        #[arg(long, value_name = "BYTES", conflicts_with = "parent")]
        sector_size: Option<u64>,
        /// Fine where the file is there already, whatever it is
        #[arg(long)]
        if_not_exists: bool,
        /// How large its blocks are
        #[command(flatten)]
        blocks: Blocks,
    },
    /// What an image is: its kind, sizes and parents
    Info {
        /// The image
        file: PathBuf,
    },
    /// Whether a VHDX image is whole; exit code 1 where something is not as it should be
    Check {
        /// The image
        file: PathBuf,
        /// Mend what can be mended without losing anything, and empty the log
        #[arg(long)]
        repair: bool,
    },
    /// Make a raw disk or a VHDX image of a raw disk, a VHD or a VHDX; of and into others where
    /// qemu-img is installed
    Convert {
        /// What is read: raw, VHD or VHDX, with its parents; others by qemu-img
        from: PathBuf,
        /// The new file
        to: PathBuf,
        /// What is read has this format [default: as its name ends; else it is refused]
        #[arg(long, value_name = "FORMAT")]
        from_format: Option<SourceFormat>,
        /// Into what [default: as the new file's name ends; else raw]
        #[arg(long, value_name = "FORMAT")]
        format: Option<Target>,
        /// A VHDX image whose blocks have their space
        #[arg(long)]
        fixed: bool,
        /// How large its blocks are
        #[command(flatten)]
        blocks: Blocks,
    },
    /// Make an image's file shorter: blocks at its end move to where nothing is
    Compact {
        /// The image; nobody uses it meanwhile
        file: PathBuf,
    },
    /// Write what a child has into its parent; the child is not needed after that
    #[command(
        after_help = "A run that was stopped is repeated. Other children of the parent are worth nothing after it."
    )]
    Merge {
        /// The child
        file: PathBuf,
    },
    /// Make an image's disk larger, or smaller where nothing is at its end
    Resize {
        /// The image; a LUN's is resized by `lun resize`
        file: PathBuf,
        /// Bytes of the disk
        #[arg(long, value_name = "SIZE")]
        size: Size,
    },
}

/// Sizes of blocks.
#[derive(Args, Clone, Debug)]
pub struct Blocks {
    /// Bytes of a block, 1MiB to 256MiB [default: 32MiB, of a child 2MiB]
    #[arg(long, value_name = "SIZE")]
    block_size: Option<Size>,
}

impl ImageVerb {
    /// Does it, and prints what became of it.
    ///
    /// # Errors
    /// Why it could not be done.
    pub fn run(&self, output: &Output) -> Result<(), Problem> {
        match self.clone() {
            Self::Create {
                file,
                size,
                fixed,
                parent,
                sector_size,
                if_not_exists,
                blocks,
            } => {
                let wanted = Wanted {
                    path: file.clone(),
                    bytes: size.map(Size::bytes),
                    is_fixed: fixed,
                    parent,
                    block_bytes: blocks.block_size.map(Size::bytes),
                    sector_bytes: sector_size.unwrap_or(512),
                };
                let made = on_a_core(move |core| {
                    Box::pin(async move { create::create(&core, &wanted).await })
                });
                made.or_else(|problem| {
                    let is_there = problem.code == Code::AlreadyExists;
                    (is_there && if_not_exists).then_some(()).ok_or(problem)
                })?;
                info(file, None, output)
            }
            Self::Info { file } => info(file, None, output),
            Self::Check { file, repair } => check(file, repair, output),
            Self::Convert {
                from,
                to,
                from_format,
                format,
                fixed,
                blocks,
            } => {
                let wanted = Wanted {
                    path: to.clone(),
                    bytes: None,
                    is_fixed: fixed,
                    parent: None,
                    block_bytes: blocks.block_size.map(Size::bytes),
                    sector_bytes: 512,
                };
                let target = format.unwrap_or_else(|| Target::of(&to));
                let formats = (from_format, target);
                on_a_core(move |core| {
                    Box::pin(async move { convert::convert(&core, &from, &wanted, formats).await })
                })?;
                info(to, Some(target.format()), output)
            }
            Self::Compact { file } => compact(file, output),
            Self::Merge { file } => merge(file, output),
            Self::Resize { file, size } => {
                let path = file.clone();
                on_a_core(move |core| {
                    Box::pin(async move { change::resize(&core, &path, size.bytes()).await })
                })?;
                info(file, None, output)
            }
        }
    }
}

fn info(file: PathBuf, known: Option<Format>, output: &Output) -> Result<(), Problem> {
    let info =
        on_a_core(move |core| Box::pin(async move { facts::info(&core, &file, known).await }))?;
    output.show(&info, facts::show_info);
    Ok(())
}

fn check(file: PathBuf, is_repair: bool, output: &Output) -> Result<(), Problem> {
    let checked = on_a_core(move |core| {
        Box::pin(async move { facts::check(&core, &file, is_repair).await })
    })?;
    output.show(&checked, facts::show_check);
    checked.problem().map_or(Ok(()), Err)
}

fn compact(file: PathBuf, output: &Output) -> Result<(), Problem> {
    let name = file.display().to_string();
    let (before, after) =
        on_a_core(move |core| Box::pin(async move { change::compact(&core, &file).await }))?;
    let done = json!({ "file": name, "file_bytes_before": before, "file_bytes": after });
    output.show(&done, |_| {
        format!("{name}: {} -> {}\n", rounded(before), rounded(after))
    });
    Ok(())
}

fn merge(file: PathBuf, output: &Output) -> Result<(), Problem> {
    let name = file.display().to_string();
    let parent = on_a_core(move |core| Box::pin(async move { change::merge(&core, &file).await }))?;
    let done = json!({ "file": name, "parent": parent });
    output.show(&done, |_| format!("all of {name} is in {parent} now\n"));
    Ok(())
}
