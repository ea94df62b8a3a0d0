//! The tables of `docs/metrics.md`, and that the text has what they say.

use super::*;
use controller::test_support::{FakeEngine, config, lab, session};
use controller::{Controller, How};
use env::sim::{World, WorldConfig};
use manifest::facts::{HealthFacts, LunFacts, OpFacts, StallFacts};
use manifest::golden;
use manifest::journal::{JournalFacts, JournalState};
use manifest::objects::{
    CacheMode, ChecksumFacts, LayerFacts, Metric, MirrorFacts, WaitFacts, layer_metrics,
};
use manifest::scrub::ScrubFacts;
use markdown::{MarkdownTable, with_block};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// A row of a table.
struct Row {
    name: &'static str,
    kind: &'static str,
    labels: Vec<&'static str>,
    help: &'static str,
}

fn row<const LABELS: usize>(family: &Family<LABELS>) -> Row {
    Row {
        name: family.name,
        kind: family.kind,
        labels: family.labels.to_vec(),
        help: family.help,
    }
}

fn rows<const LABELS: usize, Value>(
    families: &[(Family<LABELS>, Value)],
) -> impl Iterator<Item = Row> {
    families.iter().map(|(family, _)| row(family))
}

fn layer_rows() -> Vec<Row> {
    let all: Vec<&Metric> = layer_metrics().collect();
    let families = all.chunk_by(|one, next| one.name == next.name);
    let heads = families.filter_map(|family| family.first());
    let rows = heads.map(|metric| Row {
        name: metric.name,
        kind: metric.kind,
        labels: metric.label_names().collect(),
        help: metric.help,
    });
    rows.collect()
}

fn machine_rows() -> Vec<Row> {
    vec![
        row(&machine::NIC_BYTES),
        row(&machine::NIC_SPEED),
        row(&machine::CERTIFICATE),
        row(&machine::RELOADED),
        row(&machine::BAD_PROOFS),
    ]
}

fn scrub_rows() -> Vec<Row> {
    let more = [row(&scrubs::ERRORS), row(&scrubs::VERIFIED)];
    rows(&scrubs::FAMILIES).chain(more).collect()
}

/// The tables by what they speak of, as the page has them.
fn tables() -> [(&'static str, Vec<Row>); 11] {
    let luns = [row(&luns::OPS), row(&luns::BYTES), row(&luns::LATENCY)];
    let more = [row(&luns::STATUSES), row(&luns::VOLATILE)];
    let sessions = [row(&sessions::SESSIONS), row(&sessions::BYTES)];
    let received = [row(&sessions::PDUS), row(&sessions::RECEIVES)];
    let outcomes = [row(&sessions::OF_HOST), row(&sessions::MOVES)];
    let refusals = [row(&sessions::DIGESTS), row(&sessions::LOGINS)];
    let paths = [row(&paths::STATE), row(&paths::COUNTS)];
    let memory = [row(&pools::MEMORY_PROVISIONED), row(&pools::MEMORY_SIZE)];
    let journals = [row(&journals::STATE), row(&journals::DESTAGE_ERRORS)];
    [
        (
            "the daemon",
            vec![row(&BUILD), row(&GENERATION), row(&DROPPED)],
        ),
        (
            "LUNs",
            rows(&luns::OF_LUN).chain(luns).chain(more).collect(),
        ),
        ("layers", layer_rows()),
        ("scrubs", scrub_rows()),
        (
            "sessions",
            [sessions, received, outcomes, refusals, paths]
                .into_iter()
                .flatten()
                .collect(),
        ),
        ("the machine", machine_rows()),
        (
            "cores",
            rows(&cores::FAMILIES)
                .chain([row(&cores::DISK_ENGINE)])
                .collect(),
        ),
        ("pools", rows(&pools::FAMILIES).chain(memory).collect()),
        (
            "journals",
            journals
                .into_iter()
                .chain(rows(&journals::FAMILIES))
                .collect(),
        ),
        (
            "disks",
            [
                row(&disks::INFO),
                row(&disks::HEALTH),
                row(&disks::TEMPERATURE),
            ]
            .into_iter()
            .chain(rows(&disks::FAMILIES))
            .chain([row(&disks::BAY)])
            .collect(),
        ),
        (
            "alerts",
            vec![
                row(&alerts::ALERTS),
                row(&alerts::OF_RULE),
                row(&alerts::DELIVERIES),
                row(&alerts::WAITING),
            ],
        ),
    ]
}

fn table(rows: &[Row]) -> String {
    let mut table = MarkdownTable::new(&["Metric", "Kind", "Labels", "What it is"]);
    for row in rows {
        let labels: Vec<String> = row.labels.iter().map(|it| format!("`{it}`")).collect();
        let name = format!("`{}`", row.name);
        table.row(&[&name, row.kind, &labels.join(", "), row.help]);
    }
    table.into_text()
}

#[test]
fn the_tables_of_the_metrics_are_these() {
    let mut page = golden::on_disk("docs/metrics.md");
    for (of, rows) in tables() {
        let name = format!("metrics of {of}");
        page = with_block(&page, &name, &table(&rows)).expect("a place for the table");
    }
    golden::assert_page("docs/metrics.md", &page);
}

/// One of everything that metrics report.
fn everything() -> Sample {
    let world = World::new(1, WorldConfig::default());
    let machine = world.node("a");
    let core = machine.core(0);
    let sample = async move {
        let engine = Rc::new(FakeEngine::default());
        engine.sessions.borrow_mut().push(session(4));
        let controller = Controller::start(core, config(), engine).await.unwrap();
        let mut set = lab();
        for lun in &mut set.lun {
            lun.storage.cache = Some(CacheMode::WriteThrough);
        }
        let apply = manifest::plan::Edit::Apply { set, prune: false };
        controller.edit(&apply, How::default()).await.unwrap();
        controller.sample().await
    };
    let minute = Duration::from_secs(60);
    let mut sample = world.block_on(&machine, minute, sample).unwrap();
    sample.memory.total_bytes = Some(1 << 30);
    sample.luns.values_mut().for_each(fill);
    sample.disks = std::sync::Arc::new(controller::test_support::disk_report());
    for pool in &mut sample.pools {
        pool.health = Some(HealthFacts::default());
        pool.full_in_seconds = Some(1);
        let mut journal = JournalFacts::missing("/journal".to_owned(), String::new());
        journal.state = JournalState::Open;
        pool.journal = Some(journal);
    }
    sample
}

/// All that may be known of a LUN.
fn fill(lun: &mut LunFacts) {
    lun.ops.insert("read".to_owned(), OpFacts::default());
    lun.statuses.insert("check 3/11/00".to_owned(), 1);
    lun.layers = LayerFacts {
        limited: Some(WaitFacts::default()),
        shared: Some(WaitFacts::default()),
        cached: Some(manifest::objects::ReadCacheFacts::default()),
        checksums: Some(ChecksumFacts::default()),
        mirror: Some(MirrorFacts::default()),
        pending_bytes: Some(4096),
    };
    lun.stalled = Some(StallFacts {
        seconds: 12,
        operations: 1,
    });
    lun.scrub = Some(ScrubFacts {
        verified: Some("2026-11-27T00:00:00.000Z".to_owned()),
        ..ScrubFacts::begun(String::new(), 1)
    });
}

/// The names of the labels of a line of the text, and the name before them.
fn labels_of(line: &str) -> (&str, Vec<&str>) {
    let (series, _) = line.rsplit_once(' ').expect("a value");
    let Some((name, labels)) = series.split_once('{') else {
        return (series, Vec::new());
    };
    let names = labels
        .split("\",")
        .filter_map(|label| label.split_once('='));
    (name, names.map(|(label, _)| label).collect())
}

#[test]
fn the_text_has_each_family_of_the_page_with_its_kind_its_labels_and_no_other() {
    let receiver = Receiver {
        delivered: 1,
        failed: 0,
        waiting: 0,
    };
    let figures = AlertFigures {
        alerts: vec![("critical", "firing", 1)],
        rules: vec![("lun_offline", 1)],
        receivers: vec![("r".to_owned(), receiver)],
    };
    let nic = NicFigures {
        name: "eth0".to_owned(),
        bytes_in: 1,
        bytes_out: 2,
        bits_per_second: Some(10_000_000_000),
    };
    let of_machine = MachineFigures {
        commit: "0123456789ab",
        nics: vec![nic],
        certificates: vec![("api".to_owned(), 1_800_000_000)],
        reloaded: true,
        bad_proofs: [1, 2],
    };
    let text = text(&everything(), &figures, &of_machine);
    let all = tables().into_iter().flat_map(|(_, rows)| rows);
    let described: BTreeMap<&str, Row> = all.map(|row| (row.name, row)).collect();
    let mut shown = BTreeSet::new();
    for block in text.split("# HELP ").skip(1) {
        let mut lines = block.lines();
        let (name, help) = lines.next().unwrap().split_once(' ').unwrap();
        let row = described.get(name).expect(name);
        assert_eq!(help, format!("{}.", row.help.replace('`', "")));
        let kind = lines.next().unwrap();
        assert_eq!(kind, format!("# TYPE {name} {}", row.kind));
        for line in lines {
            shown.insert(name);
            let (series, mut labels) = labels_of(line);
            if row.kind == "histogram" {
                labels.retain(|label| *label != "le");
                assert!(series.starts_with(name), "{line}");
            } else {
                assert_eq!(series, name);
            }
            assert_eq!(labels, row.labels, "{line}");
        }
    }
    assert_eq!(shown, described.keys().copied().collect());
}
