//! What `qemu-img` converts, where it is installed: one file, of the format that was said.

use crate::create::usage;
use crate::here::of_io;
use crate::source::Format;
use crate::target::Target;
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From a file into another one, which is not stable yet.
pub(crate) fn by_qemu(
    from: &Path,
    format: Format,
    part: &Path,
    (target, is_fixed): (Target, bool),
) -> Result<(), Problem> {
    let qemu_name = match format {
        Format::Vhd => "vpc",
        Format::Vhdx | Format::Raw | Format::Foreign(_) => format.name(),
    };
    let (from, part) = (absolute(from)?, absolute(part)?);
    if let Format::Foreign(_) = format {
        let mut command = Command::new("qemu-img");
        command.args(["info", "--output=json", "-f", qemu_name]);
        let said = run(command.arg(&from), &from, qemu_name)?;
        stands_alone(&said, &from)?;
    }
    let mut command = Command::new("qemu-img");
    command.args(["convert", "-f", qemu_name, "-O"]);
    match (target, is_fixed) {
        (Target::Raw, _) => command.arg("raw"),
        (Target::Qcow2, _) => command.arg("qcow2"),
        (Target::Vhdx, false) => command.args(["vhdx", "-o", "subformat=dynamic"]),
        (Target::Vhdx, true) => {
            command.args(["vhdx", "-o", "subformat=fixed,block_state_zero=off"])
        }
    };
    run(command.arg(&from).arg(&part), &from, qemu_name).map(drop)
}

/// `qemu-img` takes what stands before a colon for a protocol, unless a slash is before it.
fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    std::path::absolute(path).map_err(|error| of_io(path, &error))
}

fn run(command: &mut Command, from: &Path, qemu_name: &str) -> Result<Vec<u8>, Problem> {
    let output = command.output().map_err(|error| {
        usage(format!(
            "{} is {qemu_name}, which qemu-img converts: {error}",
            from.display()
        ))
        .hint("install qemu-img (Debian: qemu-utils), or convert it elsewhere")
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let detail = format!("qemu-img, of {}: {}", from.display(), said.trim());
    Err(Problem::new(Code::ImageUnusable, detail))
}

/// No other file is read than the one that was named: `said` is what `qemu-img info` says.
fn stands_alone(said: &[u8], from: &Path) -> Result<(), Problem> {
    let unusable = |what: String| {
        let detail = format!("{}: {what}", from.display());
        Problem::new(Code::ImageUnusable, detail)
    };
    let info: Value = serde_json::from_slice(said)
        .map_err(|error| unusable(format!("what qemu-img says of it: {error}")))?;
    let own = from.to_string_lossy();
    let extents = info.pointer("/format-specific/data/extents");
    let extents = extents.and_then(Value::as_array).into_iter().flatten();
    let extents = extents.filter_map(|extent| extent.get("filename"));
    let named = [
        "/backing-filename",
        "/full-backing-filename",
        "/data-file",
        "/format-specific/data/data-file",
    ];
    let named = named.iter().filter_map(|at| info.pointer(at));
    let mut others = named.chain(extents.filter(|name| name.as_str() != Some(&*own)));
    others.next().map_or(Ok(()), |other| {
        let problem = unusable(format!("it needs another file, {other}, which is not read"));
        Err(problem.hint("make it whole first, where it comes from"))
    })
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn an_image_that_needs_another_file_is_refused_and_the_file_is_named() {
        let from = Path::new("/d/a.vmdk");
        for alone in [
            r#"{"format": "vdi"}"#,
            r#"{"format-specific": {"data": {"extents": [{"filename": "/d/a.vmdk"}]}}}"#,
        ] {
            stands_alone(alone.as_bytes(), from).unwrap();
        }
        for other in [
            r#"{"backing-filename": "/etc/shadow"}"#,
            r#"{"format-specific": {"data": {"data-file": "/etc/shadow"}}}"#,
            r#"{"format-specific": {"data": {"extents": [{"filename": "/etc/shadow"}]}}}"#,
        ] {
            let refused = stands_alone(other.as_bytes(), from).unwrap_err();
            assert!(refused.detail.contains("/etc/shadow"), "{refused:?}");
        }
        assert!(stands_alone(b"", from).is_err());
    }
}
