//! Puts the built page of `web/dist` into the program: a table of its files, each as it is and
//! compressed. Where nobody has built the page, the table is empty.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::Hasher as _;
use std::io;
use std::path::{Path, PathBuf};

/// Compressed forms lie beside a file, with these endings.
const COMPRESSED: [&str; 2] = ["br", "gz"];

fn main() -> io::Result<()> {
    let crate_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let dist = crate_dir.join("../../web/dist");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist, &mut files)?;
    }
    files.sort();
    let mut table = String::from("pub(crate) static FILES: &[File] = &[\n");
    for file in &files {
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{},", entry(&dist, file)?);
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("files.rs"), table)
}

/// All files below `dir`, without hidden ones and compressed forms.
fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let compressed = path
            .extension()
            .is_some_and(|ending| COMPRESSED.iter().any(|known| ending == *known));
        if path.is_dir() {
            collect(&path, files)?;
        } else if !hidden && !compressed {
            files.push(path);
        }
    }
    Ok(())
}

fn entry(dist: &Path, file: &Path) -> io::Result<String> {
    let bytes = fs::read(file)?;
    let path = file.strip_prefix(dist).expect("was found there");
    let path = path.to_string_lossy().replace('\\', "/");
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    let form = |ending: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{ending}"));
        let name = PathBuf::from(name);
        if name.is_file() {
            format!("Some(include_bytes!({name:?}))")
        } else {
            "None".to_owned()
        }
    };
    Ok(format!(
        "    File {{ path: {path:?}, tag: \"\\\"{:016x}\\\"\", plain: include_bytes!({file:?}), br: {}, gzip: {} }}",
        hasher.finish(),
        form("br"),
        form("gz"),
    ))
}
