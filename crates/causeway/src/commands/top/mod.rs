//! `causeway top`: what the node does now.
//!
//! ```text
//!   daemon --GET /api/v1/activity--> figures that only grow --frame--> rates --text--> lines, a document
//!                                                                        \---screen--> the terminal
//! ```
//!
//! In a terminal it shows a live view; where its output goes elsewhere, or where `--once` or
//! `--batch` asks for it, it prints. A daemon that is away or was started anew is waited for: old
//! figures are kept and marked.

mod columns;
mod frame;
mod paths;
mod screen;
#[cfg(test)]
mod test;
mod text;

use crate::cli::{Cli, TopFlags};
use crate::client::Client;
use crate::output::Output;
pub(crate) use frame::SortKey;
use frame::{Frame, Order};
use manifest::activity::ActivityView;
use manifest::code::Code;
use manifest::problem::Problem;
use ratatui::crossterm::event::{self, Event};
use screen::{Next, Screen};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The first interval, so that there is soon something to see.
const FIRST: Duration = Duration::from_millis(250);

/// Shows or prints what the node does.
pub(super) fn run(cli: &Cli, flags: &TopFlags, output: &Output) -> Result<(), Problem> {
    let client = Client::new(&cli.api, cli.token_file.as_deref())?;
    let live = is_live(flags, output);
    if flags.paths {
        return if live {
            paths::show(flags.interval)
        } else {
            paths::print(&client, looks(flags), flags.interval, output)
        };
    }
    // A daemon that is not there at the beginning is an error in every mode.
    let first = look(&client)?;
    if live {
        return show(client, flags, first);
    }
    print(&client, flags, output, first)
}

/// There is a terminal to show a view in, and nobody asks for lines.
fn is_live(flags: &TopFlags, output: &Output) -> bool {
    let terminal = std::io::stdout().is_terminal()
        && std::io::stdin().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    terminal && !flags.once && !flags.batch && flags.count.is_none() && !output.is_json()
}

fn look(client: &Client) -> Result<ActivityView, Problem> {
    client.get("/api/v1/activity")
}

/// How many looks to print; `None`: until it is ended.
fn looks(flags: &TopFlags) -> Option<u64> {
    match (flags.once, flags.batch, flags.count) {
        (_, _, Some(count)) => Some(count),
        (false, true, None) => None,
        (true, _, None) | (_, false, None) => Some(1),
    }
}

fn print(
    client: &Client,
    flags: &TopFlags,
    output: &Output,
    mut before: ActivityView,
) -> Result<(), Problem> {
    let looks = looks(flags);
    let order = Order {
        key: flags.sort,
        reverse: flags.reverse,
    };
    let mut printed = 0;
    while looks.is_none_or(|looks| printed < looks) {
        client.pause(flags.interval);
        let after = match look(client) {
            Ok(after) => after,
            Err(problem) if looks == Some(1) => return Err(problem),
            Err(problem) => {
                eprintln!("{}; trying again", problem.detail);
                continue;
            }
        };
        if let Some(mut frame) = Frame::between(&before, &after) {
            frame.sort(order, order);
            if printed > 0 && !output.is_json() {
                crate::output::print("\n");
            }
            output.show(&frame, text::page);
            printed += 1;
        }
        before = after;
    }
    Ok(())
}

/// What the view waits for.
enum Message {
    Look(Box<Result<ActivityView, Problem>>),
    Input(Event),
    /// A signal asks it to end, or the terminal is gone.
    End,
}

fn show(client: Client, flags: &TopFlags, first: ActivityView) -> Result<(), Problem> {
    // https://no-color.org: set to anything but nothing.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut screen = Screen::new(flags.sort, flags.interval, !plain);
    let (send, messages) = channel();
    let (rhythm, changes) = channel();
    let interval = flags.interval;
    begin("looks", {
        let send = send.clone();
        move || watch(&client, interval, &changes, &send)
    })?;
    begin("signals", {
        let send = send.clone();
        move || wait_for_signals(&send)
    })?;
    // This also sees to it that a panic leaves the terminal as it was.
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    begin("keys", move || keys(&send))?;
    let shown = follow(&mut screen, &mut terminal, &messages, &rhythm, first);
    ratatui::restore();
    shown.map_err(|error| failed(&error))
}

/// Tells of every key until nobody listens.
fn keys(send: &Sender<Message>) {
    while let Ok(event) = event::read() {
        if send.send(Message::Input(event)).is_err() {
            return;
        }
    }
    // Nobody may listen any more.
    let _ended = send.send(Message::End);
}

fn failed(error: &std::io::Error) -> Problem {
    Problem::new(Code::Internal, format!("the terminal: {error}"))
        .hint("`causeway top --once` needs no terminal")
}

/// Starts a thread that ends with the program.
fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Problem> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let begun = thread.spawn(work);
    begun.map(drop).map_err(|error| failed(&error))
}

/// Looks at the daemon again and again.
fn watch(
    client: &Client,
    mut interval: Duration,
    changes: &Receiver<Duration>,
    send: &Sender<Message>,
) {
    let mut pause = FIRST.min(interval);
    loop {
        match changes.recv_timeout(pause) {
            Ok(changed) => interval = changed,
            Err(RecvTimeoutError::Timeout) => {
                if send.send(Message::Look(Box::new(look(client)))).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        pause = interval;
    }
}

/// SIGTERM, SIGHUP and SIGINT leave the terminal as it was.
fn wait_for_signals(send: &Sender<Message>) {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
        ];
        let mut signals: Vec<_> = kinds
            .into_iter()
            .filter_map(|kind| signal(kind).ok())
            .collect();
        std::future::poll_fn(|cx| {
            if signals
                .iter_mut()
                .any(|signal| signal.poll_recv(cx).is_ready())
            {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
    });
    // The view may have ended by itself.
    let _ended = send.send(Message::End);
}

fn follow(
    screen: &mut Screen,
    terminal: &mut ratatui::DefaultTerminal,
    messages: &Receiver<Message>,
    rhythm: &Sender<Duration>,
    mut before: ActivityView,
) -> std::io::Result<()> {
    loop {
        terminal.draw(|canvas| screen.draw(canvas))?;
        let Ok(message) = messages.recv() else {
            return Ok(());
        };
        match message {
            Message::End => return Ok(()),
            Message::Look(looked) => match *looked {
                Ok(after) => {
                    match Frame::between(&before, &after) {
                        Some(frame) => screen.show(frame),
                        None => screen.restarted(),
                    }
                    before = after;
                }
                Err(problem) => screen.trouble(problem.detail.clone()),
            },
            Message::Input(Event::Key(key)) => match screen.key(key) {
                Next::Draw => {}
                Next::Quit => return Ok(()),
                Next::Interval(interval) => {
                    // The thread that looks lives as long as this one.
                    let _taken = rhythm.send(interval);
                }
            },
            Message::Input(
                Event::Resize(..)
                | Event::FocusGained
                | Event::FocusLost
                | Event::Mouse(_)
                | Event::Paste(_),
            ) => {}
        }
    }
}
