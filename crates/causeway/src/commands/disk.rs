//! `causeway disk ...`: the disks of the machine, and the bays of its enclosures.

use super::context::Context;
use super::user::if_there;
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use client::segment;
use disks::Roots;
use hyper::Method;
use manifest::code::Code;
use manifest::disks::{
    BayState, BayView, DiskReport, DiskTrend, DiskVerdict, DiskView, SmartState,
};
use manifest::problem::Problem;
use output::{Columns, Output, Table, properties, rounded, table};
use std::path::{Path, PathBuf};

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["disk", "show"], "name", Kind::Name("disk")),
    (&["disk", "forget"], "name", Kind::Name("disk")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["disk", "ls"], When::Always, COLUMNS)];

#[derive(Subcommand, Debug)]
pub(crate) enum DiskVerb {
    /// List the disks of the machine with their health, and the bays of its enclosures
    #[command(alias = "list")]
    Ls,
    /// Show all that is known of a disk: figures, what speaks against it, where it is heading
    Show {
        /// Identifier, serial number or device, such as sda
        name: String,
    },
    /// Ask all disks of this machine now, and print how they are; needs no daemon, and root where
    /// disks answer nobody else
    Scan {
        /// Leave what they said in this file for a daemon that may not ask them
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// The smartctl to run instead of the one of the PATH
        #[arg(long, value_name = "FILE")]
        smartctl: Option<PathBuf>,
    },
    /// Forget a disk that was taken out on purpose, so that nobody misses it
    #[command(aliases = ["delete", "rm"])]
    Forget {
        /// Its identifier or serial number
        name: String,
        /// Succeed where there is none
        #[arg(long)]
        if_exists: bool,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &DiskVerb) -> Result<(), Problem> {
    match verb {
        DiskVerb::Ls => {
            let report: DiskReport = context.client.get("/api/v1/disk_report")?;
            // As the list of the API.
            context.output.list(&report.disks, |_| table_of(&report));
        }
        DiskVerb::Show { name } => {
            let disk: DiskView = context.client.get(&path_of(name))?;
            context.output.show(&disk, one);
        }
        DiskVerb::Forget { name, if_exists } => {
            let asked = context.client.get(&path_of(name));
            let Some(disk) = if_there::<DiskView>(context, *if_exists, asked)? else {
                return Ok(());
            };
            let dry_run = context.is_dry_run();
            let path = format!("{}?dry_run={dry_run}", path_of(name));
            let () = context.client.send(Method::DELETE, &path, &())?;
            let done = if dry_run { "would forget" } else { "forgot" };
            context
                .output
                .show(&disk, |disk| format!("{done} disk {}\n", disk.called()));
        }
        DiskVerb::Scan { .. } => unreachable!("needs no daemon, and was answered before"),
    }
    Ok(())
}

fn path_of(name: &str) -> String {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    format!("/api/v1/disks/{}", segment(name))
}

/// `disk scan`.
pub(crate) fn scan(
    to: Option<&Path>,
    smartctl: Option<&Path>,
    output: &Output,
) -> Result<(), Problem> {
    let failed = |why: std::io::Error, what: String| {
        Problem::new(Code::ConfigEnvironment, format!("{what}: {why}"))
    };
    let scanned = disks::scan(&Roots::default(), smartctl);
    let (report, documents) = scanned.map_err(|why| failed(why, "smartctl".to_owned()))?;
    if let Some(to) = to {
        let written = documents.write(to);
        written.map_err(|why| failed(why, to.display().to_string()))?;
        let read = documents.disks.len();
        let all = report.disks.len();
        output.show(&report, |_| {
            format!("{read} of {all} disks answered: {}\n", to.display())
        });
        return Ok(());
    }
    output.show(&report, page);
    Ok(())
}

/// How it is, and why nobody knows where nobody does.
fn health(disk: &DiskView) -> String {
    let word = match disk.health {
        DiskVerdict::Failing => "FAILING",
        DiskVerdict::ReplaceSoon => "REPLACE SOON",
        DiskVerdict::Watch => "watch",
        DiskVerdict::Well => "well",
        DiskVerdict::Unknown => "unknown",
    };
    let why = match disk.smart {
        SmartState::Read => "",
        SmartState::Waiting => "not asked yet",
        SmartState::Asleep => "asleep",
        SmartState::Unsupported => "no SMART",
        SmartState::NotPermitted => "not permitted",
        SmartState::NoSmartctl => "no smartctl",
        SmartState::TimedOut => "does not answer",
        SmartState::Failed => "cannot be read",
        SmartState::Missing => "missing",
    };
    if why.is_empty() {
        return word.to_owned();
    }
    format!("{word} ({why})")
}

fn percent(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |it| format!("{it} %"))
}

fn celsius(value: Option<i64>) -> String {
    value.map_or_else(|| "-".to_owned(), |it| format!("{it} °C"))
}

fn or_dash(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.to_owned()
}

const COLUMNS: Columns = Columns::new(&[
    "DISK", "MODEL", "SERIAL", "SIZE", "BAY", "WEAR", "TEMP", "USED BY", "HEALTH",
]);

fn list(disks: &[DiskView]) -> Table {
    let row = |disk: &DiskView| {
        let identity = &disk.identity;
        vec![
            disk.names
                .first()
                .cloned()
                .unwrap_or_else(|| "-".to_owned()),
            or_dash(&identity.model),
            or_dash(&identity.serial),
            identity
                .capacity_bytes
                .map_or_else(|| "?".to_owned(), rounded),
            disk.bay.clone().unwrap_or_else(|| "-".to_owned()),
            percent(disk.facts.wear_percent),
            celsius(disk.facts.temperature_celsius),
            or_dash(&disk.used_by.join(", ")),
            health(disk),
        ]
    };
    let rows: Vec<Vec<String>> = disks.iter().map(row).collect();
    Table::new(COLUMNS, rows)
}

fn bays(bays: &[BayView]) -> String {
    let row = |bay: &BayView| {
        let state = match bay.state {
            BayState::Empty => "empty",
            BayState::Disk => "disk",
            BayState::Dark => "DARK",
            BayState::NoStart => "DOES NOT START",
        };
        let held = bay.held.as_ref();
        let held = held.map(|held| format!("{} until {}", held.serial, day(&held.last_seen)));
        vec![
            bay.name.clone(),
            state.to_owned(),
            bay.disk.clone().or(held).unwrap_or_else(|| "-".to_owned()),
            or_dash(&bay.status),
        ]
    };
    let rows: Vec<Vec<String>> = bays.iter().map(row).collect();
    table(&["BAY", "STATE", "DISK", "ENCLOSURE SAYS"], &rows)
}

fn day(moment: &str) -> String {
    moment.chars().take("2027-02-10".len()).collect()
}

fn page(report: &DiskReport) -> String {
    table_of(report).to_string()
}

/// Its disks, with all else that is to be said below them.
fn table_of(report: &DiskReport) -> Table {
    let mut out = String::new();
    if !report.bays.is_empty() {
        out.push_str(&format!("\n{}", bays(&report.bays)));
    }
    let findings = report.findings();
    if !findings.is_empty() {
        out.push('\n');
    }
    for it in findings {
        out.push_str(&format!("{}\n", it.sentence()));
    }
    let notes = report.notes.iter().chain(&report.no_smart);
    for note in notes {
        out.push_str(&format!("note: {note}\n"));
    }
    list(&report.disks).above(out)
}

fn one(disk: &DiskView) -> String {
    let identity = &disk.identity;
    let mut rows = vec![
        ("disk", disk.id.clone()),
        ("device", disk.names.join(", ")),
        ("health", health(disk)),
    ];
    let mut text = |name: &'static str, value: Option<String>| {
        rows.extend(value.filter(|it| !it.is_empty()).map(|value| (name, value)));
    };
    text("why not", disk.smart_detail.clone());
    text("model", Some(identity.model.clone()));
    text("serial number", Some(identity.serial.clone()));
    text("firmware", Some(identity.firmware.clone()));
    text("world-wide name", Some(identity.wwn.clone()));
    text("size", identity.capacity_bytes.map(rounded));
    text("rotation", identity.rotation_rpm.map(rotation));
    text("bay", disk.bay.clone());
    text("used by", Some(disk.used_by.join("\n")));
    text("missing since", disk.missing_since.clone());
    text("asked", disk.read_at.clone());
    rows.extend(disk.facts.named());
    let forecasts = disk.forecasts.iter().map(|it| it.text.clone());
    let forecasts: Vec<String> = forecasts.chain(disk.no_forecast.clone()).collect();
    if !forecasts.is_empty() {
        rows.push(("forecast", forecasts.join("\n")));
    }
    let trends: Vec<String> = disk.trends.iter().filter_map(DiskTrend::words).collect();
    if !trends.is_empty() {
        rows.push(("in a week", trends.join("\n")));
    }
    let mut out = properties(&rows);
    for it in &disk.findings {
        out.push_str(&format!(
            "\n{}: {}\n  next: {}\n",
            it.verdict.words(),
            it.cause,
            it.next_step
        ));
    }
    out
}

fn rotation(rpm: u64) -> String {
    match rpm {
        0 => "none".to_owned(),
        rpm => format!("{rpm} a minute"),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::disks::{BayHeld, DiskFinding};

    #[test]
    fn the_list_names_dark_bays_and_what_to_do() {
        let finding = DiskFinding {
            verdict: DiskVerdict::Failing,
            cause:
                "bay 3 holds no disk that the system sees; ST12 serial ZC1 was there on 2026-11-25"
                    .to_owned(),
            next_step: "push the disk in again".to_owned(),
        };
        let bay = BayView {
            name: "3".to_owned(),
            state: BayState::Dark,
            status: "OK".to_owned(),
            held: Some(BayHeld {
                serial: "ZC1".to_owned(),
                model: "ST12".to_owned(),
                last_seen: "2026-11-25T00:00:00.000Z".to_owned(),
            }),
            finding: Some(finding),
            ..BayView::default()
        };
        let report = DiskReport {
            bays: vec![bay],
            ..DiskReport::default()
        };
        let page = page(&report);
        let lines: Vec<String> = page
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert!(
            lines.contains(&"3 DARK ZC1 until 2026-11-25 OK".to_owned()),
            "{page}"
        );
        assert!(
            page.contains(
                "\nbay 3 holds no disk that the system sees; ST12 serial ZC1 was there on 2026-11-25: push"
            ),
            "{page}"
        );
    }

    #[test]
    fn a_machine_without_smart_says_so() {
        let report = DiskReport {
            disks: vec![DiskView {
                id: "vda".to_owned(),
                names: vec!["vda".to_owned()],
                smart: SmartState::Unsupported,
                ..DiskView::default()
            }],
            no_smart: Some("this machine's disks are virtual".to_owned()),
            ..DiskReport::default()
        };
        let page = page(&report);
        assert!(page.contains("unknown (no SMART)"), "{page}");
        assert!(
            page.contains("note: this machine's disks are virtual"),
            "{page}"
        );
    }
}
