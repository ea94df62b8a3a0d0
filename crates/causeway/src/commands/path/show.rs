//! The documents of `causeway path` for people.

use host::view::{ExplainedView, PlanView, VolumeView};
use output::{Columns, Table, properties, rounded, table};
use paths::plan::{Ends, Limit, Role, StreamLimit};
use paths::{Element, PathName, Speed};
use std::fmt::Write as _;

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |it| it.to_string())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Active => "active",
        Role::Hot => "hot",
        Role::Cold => "cold",
        Role::Unusable => "unusable",
    }
}

/// Of `path ls`.
pub(super) const COLUMNS: Columns = Columns::new(&[
    "PATH",
    "FROM",
    "STATE",
    "IOS",
    "BYTES",
    "IN FLIGHT",
    "RETRANSMITS",
    "WHY",
])
.wide(&["VOLUME", "PROCESS"]);

/// `path ls`: a table for each volume, unless somebody chooses what of all of them is shown.
pub(super) fn volumes(volumes: &[VolumeView]) -> Table {
    let all = volumes.iter().flat_map(rows);
    let table = Table::new(COLUMNS, all.collect());
    if volumes.is_empty() {
        return table.instead("no running program has a volume over paths open\n".to_owned());
    }
    let each = volumes.iter().map(|volume| {
        let VolumeView { pid, status } = volume;
        let mut out = format!(
            "{}  {}  {}  policy {}  process {pid}\n",
            status.url,
            status.unit,
            rounded(status.bytes),
            status.policy,
        );
        for notice in &status.notices {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "note: {notice}");
        }
        let _ = writeln!(out, "{}", Table::new(COLUMNS, rows(volume).collect()));
        out
    });
    let text = each.collect();
    table.instead(text)
}

fn rows(volume: &VolumeView) -> impl Iterator<Item = Vec<String>> {
    volume.status.paths.iter().map(|path| {
        vec![
            path.path.clone(),
            path.from.to_string(),
            path.state.to_owned(),
            path.ios.to_string(),
            rounded(path.bytes),
            path.in_flight.to_string(),
            path.retransmits.to_string(),
            path.why.clone(),
            volume.status.url.to_string(),
            volume.pid.to_string(),
        ]
    })
}

/// `path plan`.
pub(super) fn plan(view: &PlanView) -> String {
    let mut out = format!("{}  initiator {}\n", view.url, view.initiator);
    let lost: Vec<String> = view.what_if.iter().map(Element::to_string).collect();
    if !lost.is_empty() {
        let _ = writeln!(out, "after the loss of {}", lost.join(", "));
    }
    for notice in &view.notices {
        let _ = writeln!(out, "note: {notice}");
    }
    out.push_str(&ports(view));
    out.push_str(&paths(view));
    let _ = writeln!(out, "bandwidth of the active paths: {}", view.bandwidth);
    let failed = view.login.iter().flat_map(|login| &login.failed);
    for path in failed {
        let _ = writeln!(out, "no login by {}: {}", path.path, path.why);
    }
    out.push_str(&contingencies(view));
    out
}

fn paths(view: &PlanView) -> String {
    let rows = view.paths.iter().map(|path| {
        let it = &path.planned;
        vec![
            it.path.to_string(),
            role(it.role).to_owned(),
            text(it.source),
            text(it.portal),
            text(it.stream.map(|stream| stream.speed)),
            text(path.why.as_ref()),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    table(&["PATH", "ROLE", "FROM", "PORTAL", "STREAM", "WHY"], &rows)
}

fn contingencies(view: &PlanView) -> String {
    let names = |all: &[PathName]| {
        let all: Vec<String> = all.iter().map(PathName::to_string).collect();
        text((!all.is_empty()).then(|| all.join(", ")))
    };
    let rows = view.contingencies.iter().map(|it| {
        vec![
            it.lost.to_string(),
            names(&it.dies),
            names(&it.promote),
            Speed(it.bandwidth).to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["IF THIS IS LOST", "DIES", "BECOMES ACTIVE", "BANDWIDTH"];
    format!("\n{}", table(&head, &rows))
}

/// What is known of the ports of both sides: what the plan is made from.
fn ports(view: &PlanView) -> String {
    let speed = |speed: Option<Speed>, links: u16| match links {
        0 | 1 => text(speed),
        links => format!("{} ({links} links)", text(speed)),
    };
    let hosts = view.host_ports.iter().map(|port| {
        vec![
            port.name.clone(),
            "this host".to_owned(),
            port.card.clone(),
            speed(port.speed, port.links),
            "-".to_owned(),
            port.mtu.to_string(),
        ]
    });
    let targets = view.target_ports.iter().map(|port| {
        let of_group = || format!("portal group {}", port.portal_group);
        // To the megabit: nobody knows it better.
        let free = port.free.map(|it| Speed::megabits(it.0 / 1_000_000));
        vec![
            port.name.clone(),
            port.controller.clone().unwrap_or_else(of_group),
            text(port.card.as_ref()),
            speed(port.speed, port.links),
            text(free),
            text(port.mtu),
        ]
    });
    let rows: Vec<Vec<String>> = hosts.chain(targets).collect();
    let head = ["PORT", "CONTROLLER", "CARD", "SPEED", "FREE", "MTU"];
    let mut out = table(&head, &rows);
    out.push('\n');
    out
}

fn limit(stream: &StreamLimit) -> String {
    let by = match stream.by {
        Limit::TeamMember => "one link of a team",
        Limit::Port => "the port's speed",
    };
    let end = match stream.end {
        Ends::Host => "the host's end",
        Ends::Target => "the target's end",
        Ends::Both => "both ends",
    };
    format!("{}, by {by} at {end}", stream.speed)
}

/// `path explain`.
pub(super) fn explained(view: &ExplainedView) -> String {
    let mut pairs = vec![("volume", view.url.clone())];
    if let Some(now) = &view.now {
        pairs.extend([
            ("path", now.path.clone()),
            ("state", now.state.to_owned()),
            ("why", now.why.clone()),
            ("policy", text(view.policy.as_ref())),
            (
                "carried",
                format!("{} operations, {}", now.ios, rounded(now.bytes)),
            ),
            ("retransmits", now.retransmits.to_string()),
        ]);
        if let Some(us) = now.round_trip_us {
            pairs.push(("round trip", format!("{us} us")));
        }
    } else if let Some(path) = &view.planned {
        pairs.push(("path", path.planned.path.to_string()));
        pairs.push(("state", "no running program has it open".to_owned()));
        pairs.push(("why", text(path.why.as_ref())));
    }
    if let Some(path) = &view.planned {
        let planned = &path.planned;
        pairs.push(("plan", role(planned.role).to_owned()));
        if let Some(stream) = &planned.stream {
            pairs.push(("one stream gets", limit(stream)));
        }
        if planned.routed {
            pairs.push(("route", "through a router".to_owned()));
        }
        if planned.shares > 0 {
            let shares = format!("{} parts with active paths", planned.shares);
            pairs.push(("shares", shares));
        }
    }
    properties(&pairs)
}
