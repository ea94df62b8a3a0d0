//! Checks the laws of the source tree: `cargo run -q -p proof --no-default-features --bin tidy`.
//!
//! * `tidy circles`: every circle of imports, with all imports in it.
//! * `tidy CHECK`: all that one check finds, also what `crates/proof/tidy.allow` still allows.
//! * `tidy lower`: brings `crates/proof/tidy.allow` down to what the tree needs.
//! * `tidy write`: first writes the pages that are made from the sources.

use proof::tidy::{self, allow, circles, tree::Tree};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut root = PathBuf::from(".");
    while !root.join("floors.toml").exists() {
        if root
            .canonicalize()
            .is_ok_and(|path| path.parent().is_none())
        {
            eprintln!("tidy: no floors.toml here or above");
            return ExitCode::from(2);
        }
        root.push("..");
    }
    let verb = std::env::args().nth(1);
    let result = match verb.as_deref() {
        None => check(&root),
        Some("circles") => print_circles(&root),
        Some("lower") => lower(&root),
        Some("write") => tidy::clauses::write(&root).and_then(|()| check(&root)),
        Some(name) => print_findings(&root, name),
    };
    result.unwrap_or_else(|error| {
        eprintln!("tidy: {error}");
        ExitCode::from(2)
    })
}

fn check(root: &Path) -> io::Result<ExitCode> {
    let complaints = tidy::check(root)?;
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    Ok(if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_circles(root: &Path) -> io::Result<ExitCode> {
    let all = circles::circles(&Tree::read(root)?);
    for circle in &all {
        println!("crates/{}: {} files", circle.krate, circle.files.len());
        println!("  shortest: {}", circle.route());
        println!("{}", circle.imports());
    }
    let files: usize = all.iter().map(|it| it.files.len()).sum();
    println!("{} circles of {files} files", all.len());
    Ok(ExitCode::SUCCESS)
}

fn print_findings(root: &Path, name: &str) -> io::Result<ExitCode> {
    let Some(findings) = tidy::findings(&Tree::read(root)?, name) else {
        return Err(io::Error::other(format!("there is no check {name}")));
    };
    for finding in &findings {
        println!("{}", finding.complaint);
    }
    let count: usize = findings.iter().map(|it| it.count).sum();
    println!("{count} in all");
    Ok(ExitCode::SUCCESS)
}

fn lower(root: &Path) -> io::Result<ExitCode> {
    let list = tidy::lowered(&Tree::read(root)?);
    fs::write(root.join(allow::PATH), list)?;
    Ok(ExitCode::SUCCESS)
}
