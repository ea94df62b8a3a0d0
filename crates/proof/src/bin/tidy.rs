//! Checks the laws of the source tree: `cargo run -q -p proof --no-default-features --bin tidy`.
//! With the word `write` it first writes the pages that are made from the sources.

use std::path::PathBuf;
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
    if std::env::args().nth(1).is_some_and(|word| word == "write")
        && let Err(error) = proof::tidy::clauses::write(&root)
    {
        eprintln!("tidy: {error}");
        return ExitCode::from(2);
    }
    match proof::tidy::check(&root) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("tidy: {complaint}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::from(2)
        }
    }
}
