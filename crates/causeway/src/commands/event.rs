//! `causeway event ...`: what happened.

use super::context::Context;
use super::recorded::{Asked, ORDERS, Order, object};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use events::Event;
use manifest::code::Code;
use manifest::problem::Problem;
use output::{Columns, Table, print};
use std::ops::ControlFlow;
use std::time::Duration;

const SEVERITIES: &[&str] = &["info", "warning", "error"];

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["event", "ls"], "least", Kind::Words(SEVERITIES)),
    (&["event", "ls"], "sort", Kind::Words(ORDERS)),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["event", "ls"], When::Always, COLUMNS)];

/// How soon a daemon that went away is tried again.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Subcommand, Debug)]
pub(crate) enum EventVerb {
    /// List events, the newest last
    #[command(alias = "list")]
    Ls {
        /// At most so many
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: u64,
        /// Only these or worse: info, warning, error
        #[arg(long, value_name = "SEVERITY")]
        least: Option<String>,
        /// Only of this object: lun:vm01, host:esx01, pool:default
        #[arg(long, value_name = "KIND:NAME")]
        object: Option<String>,
        /// Only of this code
        #[arg(long, value_name = "CODE")]
        code: Option<String>,
        /// Only from this time on, or since so long: 2026-11-26T10:00:00Z, 2h, 3d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Order: time (the oldest first), -time (the newest first)
        #[arg(
            long,
            value_name = "ORDER",
            allow_hyphen_values = true,
            conflicts_with = "follow"
        )]
        sort: Option<Order>,
        /// Go on with what happens, until it is interrupted
        #[arg(long, short)]
        follow: bool,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &EventVerb) -> Result<(), Problem> {
    let EventVerb::Ls {
        limit,
        least,
        object: of,
        code,
        since,
        sort,
        follow,
    } = verb;
    let mut asked = Asked::new("/api/v1/events/log");
    asked.add("limit", &limit.to_string());
    asked.maybe("least", least.as_deref());
    if let Some(of) = of {
        let (kind, name) = object(of)?;
        asked.add("filter", &format!("kind:{kind}"));
        asked.add("filter", &format!("name:{name}"));
    }
    if let Some(code) = code {
        asked.add("filter", &format!("code:{code}"));
    }
    asked.since(since.as_deref());
    asked.sort(*sort);
    let mut events: Vec<Event> = context.client.get(asked.path())?;
    Order::arrange(*sort, &mut events);
    if !follow {
        context.output.list(&events, |events| list(events));
        return Ok(());
    }
    let wanted = Wanted {
        least: least.as_deref(),
        of: of.as_deref(),
        code: code.as_deref(),
    };
    follow_on(context, &events, &wanted)
}

/// What is shown of the stream, which has all events.
struct Wanted<'a> {
    least: Option<&'a str>,
    of: Option<&'a str>,
    code: Option<&'a str>,
}

impl Wanted<'_> {
    fn fits(&self, event: &Event) -> bool {
        let place = |name: &str| SEVERITIES.iter().position(|known| *known == name);
        let is = place(event.severity.name());
        let object = format!("{}:{}", event.object.kind, event.object.name);
        self.least.is_none_or(|least| is >= place(least))
            && self.of.is_none_or(|of| of == object)
            && self.code.is_none_or(|code| code == event.code)
    }
}

fn follow_on(context: &Context<'_>, events: &[Event], wanted: &Wanted<'_>) -> Result<(), Problem> {
    let line = |event: &Event| context.output.line(event, for_people);
    for event in events {
        print(&line(event));
    }
    let newest: Vec<Event> = context.client.get("/api/v1/events/log?limit=1")?;
    let shown = events.last().map(|event| event.id);
    // What came between the two questions comes first.
    let mut last = shown
        .or_else(|| newest.first().map(|event| event.id))
        .unwrap_or(0);
    let mut is_said = false;
    loop {
        let path = format!("/api/v1/events?since={last}");
        let ended = context.client.lines(&path, |text| {
            is_said = false;
            let Some(document) = text.strip_prefix("data: ") else {
                return ControlFlow::Continue(());
            };
            if let Ok(event) = serde_json::from_str::<Event>(document) {
                last = event.id;
                if wanted.fits(&event) {
                    print(&line(&event));
                }
            }
            ControlFlow::Continue(())
        });
        match ended {
            Err(problem) if problem.code != Code::Unreachable => return Err(problem),
            Err(problem) if !is_said => {
                is_said = true;
                eprintln!("{}; it is tried again every {AGAIN:?}", problem.detail);
            }
            Ok(()) | Err(_) => {}
        }
        context.client.pause(AGAIN);
    }
}

fn cells(event: &Event) -> Vec<String> {
    let Event {
        time,
        severity,
        code,
        object,
        message,
        ..
    } = event;
    vec![
        time.clone(),
        severity.name().to_owned(),
        code.clone(),
        message.clone(),
        format!("{} {}", object.kind, object.name),
    ]
}

const COLUMNS: Columns =
    Columns::new(&["TIME", "SEVERITY", "CODE", "WHAT HAPPENED"]).wide(&["OBJECT"]);

fn list(events: &[Event]) -> Table {
    let rows: Vec<Vec<String>> = events.iter().map(cells).collect();
    Table::new(COLUMNS, rows)
}

/// A line of a list that goes on.
fn for_people(event: &Event) -> String {
    let [time, severity, code, message, ..] = &cells(event)[..] else {
        return String::new();
    };
    format!("{time}  {severity:8}  {code:16}  {message}\n")
}
