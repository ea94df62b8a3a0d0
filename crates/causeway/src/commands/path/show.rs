//! The documents of `causeway path` for people.

use crate::output::{properties, rounded, table};
use serde_json::Value;
use std::fmt::Write as _;

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn bytes(value: &Value) -> String {
    rounded(value.as_u64().unwrap_or(0))
}

fn speed(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(|| "-".to_owned(), |bits| paths::Speed(bits).to_string())
}

/// `path ls`.
pub(super) fn volumes(volumes: &Value) -> String {
    let empty = Vec::new();
    let all = volumes.as_array().unwrap_or(&empty);
    if all.is_empty() {
        return "no running program has a volume over paths open\n".to_owned();
    }
    let mut out = String::new();
    for volume in all {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{}  {}  {}  policy {}  process {}",
            text(&volume["url"]),
            text(&volume["unit"]),
            bytes(&volume["bytes"]),
            text(&volume["policy"]),
            text(&volume["pid"])
        );
        for notice in volume["notices"].as_array().unwrap_or(&empty) {
            let _ = writeln!(out, "note: {}", text(notice));
        }
        let rows = volume["paths"].as_array().unwrap_or(&empty).iter();
        let rows: Vec<Vec<String>> = rows
            .map(|path| {
                vec![
                    text(&path["path"]),
                    text(&path["from"]),
                    text(&path["state"]),
                    text(&path["ios"]),
                    bytes(&path["bytes"]),
                    text(&path["in_flight"]),
                    text(&path["retransmits"]),
                    text(&path["why"]),
                ]
            })
            .collect();
        let head = [
            "PATH",
            "FROM",
            "STATE",
            "IOS",
            "BYTES",
            "IN FLIGHT",
            "RETRANSMITS",
            "WHY",
        ];
        out.push_str(&table(&head, &rows));
        out.push('\n');
    }
    out
}

/// `path plan`.
pub(super) fn plan(document: &Value) -> String {
    let empty = Vec::new();
    let list = |key: &str| document[key].as_array().unwrap_or(&empty);
    let mut out = format!(
        "{}  initiator {}\n",
        text(&document["url"]),
        text(&document["initiator"])
    );
    let lost: Vec<String> = list("what_if").iter().map(element).collect();
    if !lost.is_empty() {
        let _ = writeln!(out, "after the loss of {}", lost.join(", "));
    }
    for notice in list("notices") {
        let _ = writeln!(out, "note: {}", text(notice));
    }
    out.push_str(&ports(document));
    let rows = list("paths").iter().map(|path| {
        vec![
            text(&path["path"]),
            text(&path["role"]),
            text(&path["source"]),
            text(&path["portal"]),
            speed(&path["stream"]["speed"]),
            text(&path["why"]),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    out.push_str(&table(
        &["PATH", "ROLE", "FROM", "PORTAL", "STREAM", "WHY"],
        &rows,
    ));
    let _ = writeln!(
        out,
        "bandwidth of the active paths: {}",
        speed(&document["bandwidth"])
    );
    let failed = document["login"]["failed"].as_array();
    for path in failed.into_iter().flatten() {
        let _ = writeln!(
            out,
            "no login by {}: {}",
            text(&path["path"]),
            text(&path["why"])
        );
    }
    let names = |value: &Value| {
        let all = value.as_array().unwrap_or(&empty).iter().map(text);
        let all: Vec<String> = all.collect();
        if all.is_empty() {
            "-".to_owned()
        } else {
            all.join(", ")
        }
    };
    let rows = list("contingencies").iter().map(|it| {
        vec![
            element(&it["lost"]),
            names(&it["dies"]),
            names(&it["promote"]),
            speed(&it["bandwidth"]),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table(
            &["IF THIS IS LOST", "DIES", "BECOMES ACTIVE", "BANDWIDTH"],
            &rows,
        ));
    }
    out
}

/// What is known of the ports of both sides: what the plan is made from.
fn ports(document: &Value) -> String {
    let empty = Vec::new();
    let list = |key: &str| document[key].as_array().unwrap_or(&empty);
    let links = |port: &Value| match port["links"].as_u64() {
        Some(links) if links > 1 => format!(" ({links} links)"),
        _ => String::new(),
    };
    let rows = list("host_ports").iter().map(|port| {
        vec![
            text(&port["name"]),
            "this host".to_owned(),
            text(&port["card"]),
            format!("{}{}", speed(&port["speed"]), links(port)),
            "-".to_owned(),
            text(&port["mtu"]),
        ]
    });
    let targets = list("target_ports").iter().map(|port| {
        let controller = match port["controller"].as_str() {
            Some(name) => name.to_owned(),
            None => format!("portal group {}", text(&port["portal_group"])),
        };
        vec![
            text(&port["name"]),
            controller,
            text(&port["card"]),
            format!("{}{}", speed(&port["speed"]), links(port)),
            // To the megabit: nobody knows it better.
            match port["free"].as_u64() {
                Some(bits) => paths::Speed::megabits(bits / 1_000_000).to_string(),
                None => "-".to_owned(),
            },
            text(&port["mtu"]),
        ]
    });
    let rows: Vec<Vec<String>> = rows.chain(targets).collect();
    let head = ["PORT", "CONTROLLER", "CARD", "SPEED", "FREE", "MTU"];
    let mut out = table(&head, &rows);
    out.push('\n');
    out
}

fn element(value: &Value) -> String {
    format!(
        "{}:{}",
        text(&value["kind"]).replace('_', "-"),
        text(&value["name"])
    )
}

/// `path explain`.
pub(super) fn explained(document: &Value) -> String {
    let (now, planned) = (&document["now"], &document["planned"]);
    let mut pairs = vec![("volume", text(&document["url"]))];
    if now.is_object() {
        pairs.extend([
            ("path", text(&now["path"])),
            ("state", text(&now["state"])),
            ("why", text(&now["why"])),
            ("policy", text(&document["policy"])),
            (
                "carried",
                format!("{} operations, {}", text(&now["ios"]), bytes(&now["bytes"])),
            ),
            ("retransmits", text(&now["retransmits"])),
        ]);
        if let Some(us) = now["round_trip_us"].as_u64() {
            pairs.push(("round trip", format!("{us} us")));
        }
    } else {
        pairs.push(("path", text(&planned["path"])));
        pairs.push(("state", "no running program has it open".to_owned()));
        pairs.push(("why", text(&planned["why"])));
    }
    if planned.is_object() {
        pairs.push(("plan", text(&planned["role"])));
        let stream = &planned["stream"];
        if stream.is_object() {
            let by = match stream["by"].as_str() {
                Some("team_member") => "one link of a team",
                _ => "the port's speed",
            };
            let end = match stream["end"].as_str() {
                Some("host") => "the host's end",
                Some("target") => "the target's end",
                _ => "both ends",
            };
            let limit = format!("{}, by {by} at {end}", speed(&stream["speed"]));
            pairs.push(("one stream gets", limit));
        }
        if planned["routed"].as_bool() == Some(true) {
            pairs.push(("route", "through a router".to_owned()));
        }
        if planned["shares"].as_u64().is_some_and(|it| it > 0) {
            let shares = format!("{} parts with active paths", text(&planned["shares"]));
            pairs.push(("shares", shares));
        }
    }
    properties(&pairs)
}
