//! On which disks a path lies: through partitions, mappings, arrays and mounted file systems.

use crate::roots::{Roots, names};
use rustix::fs::{major, minor};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Devices over devices: more than these are a circle.
const DEPTH_MAX: usize = 8;

/// The names of the disks below what stands at `path`; of what is not there yet, below the
/// directory that it will be made in.
pub(crate) fn disks_below(roots: &Roots, path: &Path) -> Vec<String> {
    let Some((at, facts)) = path
        .ancestors()
        .find_map(|at| Some((at, fs::metadata(at).ok()?)))
    else {
        return Vec::new();
    };
    let device = if facts.file_type().is_block_device() {
        facts.rdev()
    } else {
        facts.dev()
    };
    let number = format!("{}:{}", major(device), minor(device));
    let found = below_number(roots, &number);
    if !found.is_empty() || major(device) != 0 {
        return found;
    }
    // btrfs and others have numbers of their own, which no device has.
    let source = mounted_from(roots, at);
    let facts = source.and_then(|source| fs::metadata(source).ok());
    let device = facts.filter(|it| it.file_type().is_block_device());
    device.map_or_else(Vec::new, |it| {
        let device = it.rdev();
        below_number(roots, &format!("{}:{}", major(device), minor(device)))
    })
}

/// The disks below the block device of this number.
pub(crate) fn below_number(roots: &Roots, number: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(at) = fs::canonicalize(roots.sys.join("dev/block").join(number)) {
        below(&at, 0, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn below(at: &Path, depth: usize, found: &mut Vec<String>) {
    if depth > DEPTH_MAX {
        return;
    }
    if at.join("partition").exists() {
        if let Some(parent) = at.parent() {
            below(parent, depth + 1, found);
        }
        return;
    }
    let slaves = at.join("slaves");
    let lower = names(&slaves);
    for name in &lower {
        if let Ok(lower) = fs::canonicalize(slaves.join(name)) {
            below(&lower, depth + 1, found);
        }
    }
    if lower.is_empty()
        && let Some(name) = at.file_name().and_then(|name| name.to_str())
    {
        found.push(name.to_owned());
    }
}

/// The device that the file system at `path` was mounted from. proc_pid_mountinfo(5).
fn mounted_from(roots: &Roots, path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let table = fs::read_to_string(roots.proc.join("self/mountinfo")).ok()?;
    let rows = table.lines().filter_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        let source = rest.split(' ').nth(1)?;
        Some((point.to_owned(), source.to_owned()))
    });
    let above = rows.filter(|(point, _)| path.starts_with(point));
    let nearest = above.max_by_key(|(point, _)| point.len());
    nearest.map(|(_, source)| source)
}
