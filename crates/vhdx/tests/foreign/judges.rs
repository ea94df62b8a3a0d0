//! Programs that nobody here wrote, and what they find in an image.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;

/// Reads parts of a disk through libvhdi: image, parent or `-`, then offset and length of each.
const LIBVHDI: &str = "
import pyvhdi, sys
def opened(path):
    file = pyvhdi.file()
    file.open(path)
    return file
image = opened(sys.argv[1])
if sys.argv[2] != '-':
    parent = opened(sys.argv[2])
    image.set_parent(parent)
for at, length in zip(sys.argv[3::2], sys.argv[4::2]):
    image.seek(int(at))
    left = int(length)
    while left:
        some = image.read(min(left, 1 << 20))
        sys.stdout.buffer.write(some)
        left -= len(some)
";

fn run(program: &str, arguments: &[&str]) -> (bool, Vec<u8>, String) {
    let output = Command::new("timeout")
        .args(["-k", "5", "120", program])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let missing = "is missing and this test cannot do without it; next step: scripts/install test";
    assert_ne!(output.status.code(), Some(127), "`{program}` {missing}");
    (output.status.success(), output.stdout, said)
}

/// Runs a program that must end well.
pub(crate) fn must(program: &str, arguments: &[&str]) -> Vec<u8> {
    let (is_well, output, said) = run(program, arguments);
    let text = String::from_utf8_lossy(&output);
    assert!(is_well, "{program} {arguments:?}: {said} {text}");
    output
}

/// Runs a program that must not end well.
pub(crate) fn must_fail(program: &str, arguments: &[&str]) -> String {
    let (is_well, _, said) = run(program, arguments);
    assert!(!is_well, "{program} {arguments:?}: {said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// qemu-img finds nothing wrong.
pub(crate) fn qemu_check(path: &Path) {
    must("qemu-img", &["check", "-f", "vhdx", text(path)]);
}

/// The whole disk, as qemu reads it.
pub(crate) fn qemu(path: &Path) -> Vec<u8> {
    let raw = path.with_extension("raw");
    must(
        "qemu-img",
        &["convert", "-f", "vhdx", "-O", "raw", text(path), text(&raw)],
    );
    let read = std::fs::read(&raw).unwrap();
    std::fs::remove_file(&raw).unwrap();
    read
}

/// The whole disk, as 7-Zip reads it; it finds parents by itself.
pub(crate) fn seven_zip(path: &Path) -> Vec<u8> {
    must("7zz", &["x", "-so", "-tvhdx", text(path)])
}

/// Parts of the disk, as libvhdi reads them.
pub(crate) fn libvhdi(path: &Path, parent: Option<&Path>, parts: &[(u64, u64)]) -> Vec<u8> {
    let numbers = parts
        .iter()
        .flat_map(|(at, bytes)| [at.to_string(), bytes.to_string()]);
    let numbers: Vec<String> = numbers.collect();
    let mut arguments = vec!["-c", LIBVHDI, text(path), parent.map_or("-", text)];
    arguments.extend(numbers.iter().map(String::as_str));
    // Debian's, which sees Debian's modules.
    must("/usr/bin/python3", &arguments)
}

/// Parts of the disk, as `vhdx-core` reads them.
pub(crate) fn vhdx_core(path: &Path, parent: Option<&Path>, parts: &[(u64, u64)]) -> Vec<u8> {
    let read = |path: &Path| std::fs::read(path).unwrap();
    let mut reader = match parent {
        None => vhdx_core::VhdxReader::open(path).unwrap(),
        Some(parent) => {
            let parent = vhdx_core::VhdxReader::from_bytes(read(parent)).unwrap();
            vhdx_core::VhdxReader::from_bytes_with_parent(read(path), parent).unwrap()
        }
    };
    let mut all = Vec::new();
    for (at, bytes) in parts {
        reader.seek(SeekFrom::Start(*at)).unwrap();
        let mut part = vec![0; usize::try_from(*bytes).unwrap()];
        reader.read_exact(&mut part).unwrap();
        all.extend(part);
    }
    all
}

/// All of them read this disk, which has no parent.
pub(crate) fn agree(path: &Path, disk: &[u8], sector_bytes: u64) {
    let all = [(0, u64::try_from(disk.len()).unwrap())];
    // qemu reads no logical sectors of 4096 bytes.
    if sector_bytes == 512 {
        qemu_check(path);
        same("qemu", &qemu(path), disk);
    }
    same("7-Zip", &seven_zip(path), disk);
    same("libvhdi", &libvhdi(path, None, &all), disk);
    same("vhdx-core", &vhdx_core(path, None, &all), disk);
}

pub(crate) fn same(who: &str, found: &[u8], wanted: &[u8]) {
    assert_eq!(found.len(), wanted.len(), "{who}: bytes of the disk");
    let differs = found.iter().zip(wanted).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{who}: the first byte that differs");
}
