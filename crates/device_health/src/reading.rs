//! What a document of `smartctl --json` says, whatever it says.

use crate::exit::ExitBits;
use crate::fields::{at, celsius, clean, number, text};
use crate::{ata, nvme, scsi};
use manifest::disks::{DiskFacts, DiskIdentity, SmartState};
use serde_json::Value;

/// The largest document that is read, in bytes; those of real disks have 40,000 at most.
pub const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// The exit status that smartctl is asked to end with where the disk sleeps: `-n standby,3`. Of
/// itself it never sets these two bits together.
pub const ASLEEP_STATUS: u64 = 3;

/// The most characters of smartctl's own messages that are shown.
const MESSAGE_MAX: usize = 200;

/// What a disk said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Facts of its health.
    Read(Box<Reading>),
    /// Nothing, and why.
    Not {
        /// In a word.
        state: SmartState,
        /// In a sentence without its end.
        why: String,
    },
}

/// A document, understood.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// Which disk answered.
    pub identity: DiskIdentity,
    /// What it reports.
    pub facts: DiskFacts,
}

impl Answer {
    /// No facts, for this reason.
    #[must_use]
    pub fn not(state: SmartState, why: &str) -> Self {
        Self::Not {
            state,
            why: clean(why, MESSAGE_MAX),
        }
    }
}

/// Reads what smartctl printed.
#[must_use]
pub fn read(bytes: &[u8]) -> Answer {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Answer::not(SmartState::Failed, "what smartctl printed is too long");
    }
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(error) => {
            let why = format!("what smartctl printed is no JSON: {error}");
            return Answer::not(SmartState::Failed, &why);
        }
    };
    let is_ours = ["/smartctl", "/device"];
    if is_ours.iter().all(|it| at(&document, it).is_none()) {
        let why = "what smartctl printed is no document of smartctl 7 or later";
        return Answer::not(SmartState::Failed, why);
    }
    let exit = ExitBits(number(&document, "/smartctl/exit_status").unwrap_or_default());
    let messages = messages(&document);
    if exit.0 == ASLEEP_STATUS || sleeps(&messages) {
        return Answer::not(SmartState::Asleep, "it sleeps, and is not woken");
    }
    let reading = Reading {
        identity: identity(&document),
        facts: facts(&document, exit),
    };
    if has_health(&reading.facts) {
        return Answer::Read(Box::new(reading));
    }
    refused(&document, exit, &messages)
}

/// smartctl's own messages in one line.
fn messages(document: &Value) -> String {
    let all = at(document, "/smartctl/messages").and_then(Value::as_array);
    let texts = all.into_iter().flatten().take(8);
    let texts: Vec<&str> = texts.filter_map(|it| it["string"].as_str()).collect();
    clean(&texts.join("; "), MESSAGE_MAX)
}

/// `Device is in STANDBY mode, exit(2)`, and the other modes in which it rests.
fn sleeps(messages: &str) -> bool {
    let modes = ["STANDBY", "SLEEP", "IDLE"];
    let rest = messages.split("Device is in ").nth(1);
    rest.is_some_and(|rest| modes.iter().any(|mode| rest.starts_with(mode)))
}

/// Why a document has no facts of health.
fn refused(document: &Value, exit: ExitBits, messages: &str) -> Answer {
    let says = |words: &[&str]| words.iter().any(|word| messages.contains(word));
    if says(&["Permission denied", "Operation not permitted"]) {
        return Answer::not(SmartState::NotPermitted, messages);
    }
    let support = at(document, "/smart_support/available").and_then(Value::as_bool);
    let unknown = [
        "Unable to detect device type",
        "Unknown USB bridge",
        "lacks SMART capability",
        "not supported",
        "Unsupported",
    ];
    if support == Some(false) || says(&unknown) {
        let why = if messages.is_empty() {
            "it has no SMART"
        } else {
            messages
        };
        return Answer::not(SmartState::Unsupported, why);
    }
    if exit.not_opened() || exit.not_understood() {
        let why = if messages.is_empty() {
            "smartctl could not open it"
        } else {
            messages
        };
        return Answer::not(SmartState::Failed, why);
    }
    Answer::not(
        SmartState::Unsupported,
        "it identifies itself and reports no health, as volumes of RAID controllers do",
    )
}

fn identity(document: &Value) -> DiskIdentity {
    let first = |pointers: &[&str]| pointers.iter().find_map(|it| text(document, it));
    let model = first(&["/model_name", "/scsi_model_name"]).or_else(|| {
        let vendor = first(&["/scsi_vendor", "/vendor"])?;
        let product = first(&["/scsi_product", "/product"])?;
        Some(format!("{vendor} {product}"))
    });
    let sizes = [
        "/user_capacity/bytes",
        "/nvme_total_capacity",
        "/nvme_namespaces/0/size/bytes",
    ];
    DiskIdentity {
        model: model.unwrap_or_default(),
        serial: first(&["/serial_number"]).unwrap_or_default(),
        firmware: first(&["/firmware_version", "/scsi_revision", "/revision"]).unwrap_or_default(),
        wwn: wwn(document).unwrap_or_default(),
        capacity_bytes: sizes
            .iter()
            .find_map(|it| number(document, it).filter(|size| *size > 0)),
        rotation_rpm: number(document, "/rotation_rate").filter(|rpm| *rpm <= 100_000),
    }
}

/// As the system writes it: `naa.` and 16 hexadecimal digits, or `eui.`.
fn wwn(document: &Value) -> Option<String> {
    let part = |name: &str, most: u64| number(document, name).filter(|it| *it <= most);
    let naa = part("/wwn/naa", 0xF).zip(part("/wwn/oui", 0xFF_FFFF));
    if let Some(((naa, oui), id)) = naa.zip(part("/wwn/id", 0xF_FFFF_FFFF)) {
        return Some(format!("naa.{naa:x}{oui:06x}{id:09x}"));
    }
    if let Some(id) = text(document, "/logical_unit_id") {
        let digits = id.strip_prefix("0x")?.to_ascii_lowercase();
        let is_name = digits.len() >= 16 && digits.chars().all(|c| c.is_ascii_hexdigit());
        return is_name.then(|| format!("naa.{digits}"));
    }
    let eui = "/nvme_namespaces/0/eui64";
    let oui = part(&format!("{eui}/oui"), 0xFF_FFFF)?;
    let id = part(&format!("{eui}/ext_id"), 0xFF_FFFF_FFFF)?;
    Some(format!("eui.{oui:06x}{id:010x}"))
}

fn facts(document: &Value, exit: ExitBits) -> DiskFacts {
    let passed = at(document, "/smart_status/passed").and_then(Value::as_bool);
    let first = |pointers: &[&str]| pointers.iter().find_map(|it| celsius(document, it));
    let mut facts = DiskFacts {
        protocol: text(document, "/device/protocol").unwrap_or_default(),
        // The status counts also where the document was cut short of it.
        passed: passed.or_else(|| exit.failing().then_some(false)),
        temperature_celsius: first(&["/temperature/current"]),
        temperature_warning_celsius: first(&[
            "/temperature/op_limit_max",
            "/nvme_composite_temperature_threshold/warning",
        ]),
        temperature_critical_celsius: first(&[
            "/temperature/critical_limit_max",
            "/temperature/limit_max",
            "/temperature/drive_trip",
            "/nvme_composite_temperature_threshold/critical",
        ]),
        power_on_hours: number(document, "/power_on_time/hours"),
        power_cycles: number(document, "/power_cycle_count"),
        ..DiskFacts::default()
    };
    match facts.protocol.as_str() {
        "NVMe" => nvme::read(document, &mut facts),
        "SCSI" => scsi::read(document, &mut facts),
        _ => ata::read(document, &mut facts),
    }
    facts
}

/// Something was said that health can be judged by.
fn has_health(facts: &DiskFacts) -> bool {
    let figures = [
        facts.wear_percent,
        facts.spare_percent,
        facts.reallocated_sectors,
        facts.grown_defects,
        facts.media_errors,
        facts.critical_warning,
    ];
    facts.passed.is_some() || figures.iter().any(Option::is_some)
}
