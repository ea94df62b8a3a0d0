//! Asking in a terminal before data or a host's last path is lost.

use manifest::problem::Problem;
use std::io::{IsTerminal as _, Write as _, stderr, stdin};

/// Whether what was refused for the data that it loses is to be done all the same: in a terminal
/// somebody reads what is lost, and types its name. Elsewhere nobody is asked, and nothing is
/// lost.
pub(super) fn typed(problem: &Problem) -> bool {
    let Some(wanted) = &problem.confirm else {
        return false;
    };
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return false;
    }
    let mut text = String::from(match problem.losses.as_slice() {
        [] => "it is in use:\n",
        [..] => "this loses data, and cannot be taken back:\n",
    });
    for line in problem.losses.iter().chain(&problem.hits) {
        text.push_str(&format!("  {line}\n"));
    }
    text.push_str(&format!("Type \"{wanted}\" to do it: "));
    let mut shown = stderr().lock();
    if shown
        .write_all(text.as_bytes())
        .and_then(|()| shown.flush())
        .is_err()
    {
        return false;
    }
    let mut line = String::new();
    stdin().read_line(&mut line).is_ok() && line.trim() == wanted
}
