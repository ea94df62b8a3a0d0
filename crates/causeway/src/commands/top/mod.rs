//! `causeway top`: what the node does now.
//!
//! ```text
//!   daemon --GET /api/v1/activity--> figures that only grow --top_view--> lines, a document
//!                                                            --top_view--> the terminal
//! ```
//!
//! In a terminal it shows a live view; where its output goes elsewhere, or where `--once` or
//! `--batch` asks for it, it prints. A daemon that is away or was started anew is waited for: old
//! figures are kept and marked.

mod paths;
mod terminal;

use crate::args::Common;
use clap::Args;
use client::Client;
use manifest::activity::ActivityView;
use manifest::problem::Problem;
use output::Output;
use ratatui::crossterm::event::Event;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use terminal::{FIRST, Message, begin, failed, keys, wait_for_signals};
use top_view::{Frame, Next, Order, Screen, SortKey};

/// What `top` shows, and how often.
#[derive(Args, Debug)]
pub(crate) struct TopFlags {
    /// Paths and NICs of this host, as `attach` and `bench` use them; needs no daemon
    #[arg(long)]
    pub(crate) paths: bool,
    /// Print what happens within one interval, and end; so it is where the output is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print again and again instead of showing a live view
    #[arg(long, conflicts_with = "once")]
    pub(crate) batch: bool,
    /// Print so many times, and end
    #[arg(short = 'n', long, value_name = "TIMES", conflicts_with = "once", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Seconds between two samples, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: Duration,
    /// What stands first
    #[arg(long, value_enum, value_name = "KEY", default_value_t = SortKey::Iops)]
    pub(crate) sort: SortKey,
    /// What stands first stands last
    #[arg(long)]
    pub(crate) reverse: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.1..=3600.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err("an interval has 0.1 to 3600 seconds".to_owned())
}

/// Shows or prints what the node does.
pub(crate) fn run(common: &Common, flags: &TopFlags, output: &Output) -> Result<(), Problem> {
    let client = common.client()?;
    let live = is_live(flags, output);
    if flags.paths {
        return if live {
            paths::show(flags.interval)
        } else {
            paths::print(&client, rounds(flags), flags.interval, output)
        };
    }
    // A daemon that is not there at the beginning is an error in every mode.
    let first = ask(&client)?;
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
    terminal && !flags.once && !flags.batch && flags.count.is_none() && !output.is_document()
}

fn ask(client: &Client) -> Result<ActivityView, Problem> {
    client.get("/api/v1/activity")
}

/// How many samples to print; `None`: until it is ended.
fn rounds(flags: &TopFlags) -> Option<u64> {
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
    let rounds = rounds(flags);
    let order = Order {
        key: flags.sort,
        reverse: flags.reverse,
    };
    let mut printed = 0;
    while rounds.is_none_or(|rounds| printed < rounds) {
        client.pause(flags.interval);
        let after = match ask(client) {
            Ok(after) => after,
            Err(problem) if rounds == Some(1) => return Err(problem),
            Err(problem) => {
                eprintln!("{}; trying again", problem.detail);
                continue;
            }
        };
        if let Some(mut frame) = Frame::between(&before, &after) {
            frame.sort(order, order);
            if printed > 0 && !output.is_document() {
                output::print("\n");
            }
            output.show(&frame, top_view::page);
            printed += 1;
        }
        before = after;
    }
    Ok(())
}

fn show(client: Client, flags: &TopFlags, first: ActivityView) -> Result<(), Problem> {
    // https://no-color.org: set to anything but nothing.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut screen = Screen::new(flags.sort, flags.interval, !plain);
    let (send, messages) = channel();
    let (rhythm, changes) = channel();
    let interval = flags.interval;
    begin("activity", {
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

/// Samples the daemon again and again.
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
                if send.send(Message::Activity(Box::new(ask(client)))).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        pause = interval;
    }
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
            Message::Activity(activity) => match *activity {
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
                    // The thread that samples lives as long as this one.
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
