//! Passwords that somebody types, or that stand in a file. None is ever in the arguments.

use crate::secret_file;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{IsTerminal as _, Write as _, stderr, stdin};
use std::path::Path;

/// The password in `file`, where one is named (- is standard input); else somebody types it twice.
pub(crate) fn new_password(user: &str, file: Option<&Path>) -> Result<Secret, Problem> {
    match file {
        Some(file) if file == Path::new("-") => line(),
        Some(file) => secret_file::secret(file),
        None => typed_twice(user),
    }
}

fn typed_twice(user: &str) -> Result<Secret, Problem> {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        let detail = "there is no terminal to ask for the password";
        return Err(Problem::new(Code::CommandLine, detail).hint(
            "name a file that only you can read: --password-file FILE, or - for standard input",
        ));
    }
    let first = unseen(&format!("New password of {user}: "))?;
    let second = unseen("The same again: ")?;
    if first != second {
        let detail = "the two passwords are different";
        return Err(Problem::new(Code::CommandLine, detail).hint("type the same one twice"));
    }
    Ok(first)
}

/// A line of standard input.
fn line() -> Result<Secret, Problem> {
    let mut text = String::new();
    let read = stdin().read_line(&mut text);
    read.map_err(|error| Problem::new(Code::ConfigUnreadable, error.to_string()))?;
    Ok(Secret::from_file(text.into_bytes()))
}

/// A line that the terminal does not show.
fn unseen(question: &str) -> Result<Secret, Problem> {
    let failed = |why: String| Problem::new(Code::ConfigUnreadable, why);
    let before = tcgetattr(stdin()).map_err(|error| failed(error.to_string()))?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    let _ = stderr().write_all(question.as_bytes());
    tcsetattr(stdin(), OptionalActions::Flush, &quiet)
        .map_err(|error| failed(error.to_string()))?;
    let typed = line();
    let restored = tcsetattr(stdin(), OptionalActions::Flush, &before);
    let _ = stderr().write_all(b"\n");
    restored.map_err(|error| failed(error.to_string()))?;
    typed
}
