//! What a view in the terminal waits for.

use manifest::activity::ActivityView;
use manifest::code::Code;
use manifest::problem::Problem;
use ratatui::crossterm::event::{self, Event};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The first interval, so that there is soon something to see.
pub(super) const FIRST: Duration = Duration::from_millis(250);

/// What the view waits for.
pub(super) enum Message {
    Activity(Box<Result<ActivityView, Problem>>),
    Input(Event),
    /// A signal asks it to end, or the terminal is gone.
    End,
}

/// Sends every key until nobody listens.
pub(super) fn keys(send: &Sender<Message>) {
    while let Ok(event) = event::read() {
        if send.send(Message::Input(event)).is_err() {
            return;
        }
    }
    // Nobody may listen any more.
    let _ended = send.send(Message::End);
}

pub(super) fn failed(error: &std::io::Error) -> Problem {
    Problem::new(Code::Internal, format!("the terminal: {error}"))
        .hint("`causeway top --once` needs no terminal")
}

/// Starts a thread that ends with the program.
pub(super) fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Problem> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let begun = thread.spawn(work);
    begun.map(drop).map_err(|error| failed(&error))
}

/// SIGTERM, SIGHUP and SIGINT leave the terminal as it was.
pub(super) fn wait_for_signals(send: &Sender<Message>) {
    if !output::wait_for_end() {
        return;
    }
    // The view may have ended by itself.
    let _ended = send.send(Message::End);
}
