//! Foreign programs: found or complained about, and never waited for without end.

use std::path::Path;
use std::process::{Command, Output};

/// What a program said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) text: String,
}

/// Fails the test where one of `programs` is missing.
pub(crate) fn need(programs: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
    for program in programs {
        let found = path
            .split(':')
            .any(|dir| Path::new(dir).join(program).exists());
        assert!(
            found,
            "`{program}` is missing and this test cannot do without it; next step: scripts/install test"
        );
    }
}

/// Runs a program for at most `seconds`; code 124 says that it took longer.
pub(crate) fn run(seconds: u32, program: &str, arguments: &[&str]) -> Said {
    let output: Output = Command::new("timeout")
        .args(["-k", "5", &seconds.to_string(), program])
        .args(arguments)
        .env(
            "PATH",
            std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin",
        )
        .output()
        .unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Said {
        code: output.status.code(),
        text,
    }
}

/// Runs a program that must end well, and gives what it said.
pub(crate) fn must(program: &str, arguments: &[&str]) -> String {
    let said = run(120, program, arguments);
    assert_eq!(said.code, Some(0), "{program} {arguments:?}\n{}", said.text);
    said.text
}

/// Runs a program that must not end well, and gives what it said.
pub(crate) fn must_fail(program: &str, arguments: &[&str]) -> String {
    let said = run(60, program, arguments);
    let failed = !matches!(said.code, Some(0 | 124) | None);
    assert!(
        failed,
        "{:?}: {program} {arguments:?}\n{}",
        said.code, said.text
    );
    said.text
}
