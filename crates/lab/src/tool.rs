//! Runs `ip` and `tc`, many words at a time, and reports which one was refused.

use crate::error::LabError;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// A program and words for it, line by line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tool {
    /// Links, addresses, routes, namespaces.
    Ip,
    /// Queueing disciplines.
    Tc,
}

impl Tool {
    fn program(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
        }
    }
}

/// Runs `lines` one after the other in the namespace `inside`, or in the caller's, and stops at the
/// first that is refused.
pub(crate) async fn batch(
    tool: Tool,
    inside: Option<&str>,
    lines: &[String],
) -> Result<(), LabError> {
    if lines.is_empty() {
        return Ok(());
    }
    let program = tool.program();
    let mut command = Command::new(program);
    if let Some(namespace) = inside {
        command.args(["-n", namespace]);
    }
    command
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| missing(program, &error))?;
    let mut input = child.stdin.take().expect("it is piped");
    let text = lines.join("\n") + "\n";
    // Where the program ends early, what it says on standard error says more than the broken pipe.
    let _written = input.write_all(text.as_bytes()).await;
    drop(input);
    let output = child.wait_with_output().await;
    let output = output.map_err(|error| LabError::system(program, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refused(program, lines, said.trim()))
}

/// `Command failed -:3` names the line.
fn refused(program: &str, lines: &[String], said: &str) -> LabError {
    let at = said.rsplit_once("-:").and_then(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    });
    let line = at.and_then(|at| lines.get(at.checked_sub(1)?));
    let line = line.map_or("", String::as_str);
    let why = said.lines().next().unwrap_or("no reason given");
    LabError::not_here(
        format!("`{program} {line}` was refused: {why}"),
        "a lab needs network namespaces, veth, bridges and the tbf queueing discipline in the kernel",
    )
}

/// Runs a program in a namespace and answers what it prints.
pub(crate) async fn inside(namespace: &str, words: &[&str]) -> Result<String, LabError> {
    let output = Command::new("ip")
        .args(["netns", "exec", namespace])
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| missing("ip", &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::new(
        format!("`{}` in {namespace}: {}", words.join(" "), said.trim()),
        "see the cause in the message",
    ))
}

/// Gives kernel settings of a namespace their values; those that this kernel does not have are
/// left.
pub(crate) async fn settings(namespace: &str, settings: &[(String, &str)]) -> Result<(), LabError> {
    let mut script = String::new();
    for (path, value) in settings {
        script.push_str(&format!(
            "[ ! -e /proc/sys/{path} ] || echo {value} > /proc/sys/{path} || exit 1\n"
        ));
    }
    inside(namespace, &["sh", "-c", &script]).await.map(drop)
}

pub(crate) fn missing(program: &str, error: &std::io::Error) -> LabError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return LabError::not_here(
            format!("there is no program `{program}` here"),
            "install iproute2",
        );
    }
    LabError::system(program, error)
}

/// Whether this machine can have a lab at all, and why not.
///
/// # Errors
/// Why not.
pub fn can_have_one() -> Result<(), LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::not_here(
            "a lab makes network namespaces, which takes root",
            "run it as root, or in a container that has CAP_NET_ADMIN and CAP_SYS_ADMIN",
        ));
    }
    for program in ["ip", "tc"] {
        let found = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|dir| Path::new(&dir).join(program).exists())
        });
        if !found {
            return Err(LabError::not_here(
                format!("there is no program `{program}` here"),
                "install iproute2",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_line_that_was_refused_is_named_with_the_reason() {
        let lines = ["link set a up".to_owned(), "link set b up".to_owned()];
        let error = refused("ip", &lines, "Cannot find device \"b\"\nCommand failed -:2");
        assert!(error.what.contains("`ip link set b up`"), "{error}");
        assert!(error.what.contains("Cannot find device"), "{error}");
        assert!(refused("tc", &[], "").what.contains("no reason given"));
    }
}
