//! How the node is: what the front, the units and the pools report, in the API's words.

use crate::inner::Inner;
use crate::journal::journals;
use crate::lun::stalls;
use crate::lun::unit::Unit;
use iscsi::Parameters;
use iscsi::extension_keys::nic::NicRecord;
use iscsi_target::{RefusedLogin, SessionInfo};
use layers::{Counters, Meter};
use logical_unit::{Ending, Figures, Times};
use manifest::code::Code;
use manifest::facts::{
    CoreFacts, LoginFacts, LunCondition, LunFacts, LunState, OpFacts, PortalFacts, RefusalFacts,
    SessionFacts, SessionLun, SessionNic,
};
use manifest::latency::Latency;
use manifest::objects::{LayerFacts, Objects};
use manifest::time::rfc3339;
use scsi::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use volume::OpKind;

/// Of so many units facts are made in one go, and then whatever else is ready on the core has its
/// turn.
const AT_ONCE: usize = 16;

/// All of them, or those of these identifiers.
pub(crate) async fn luns(
    node: &Rc<Inner>,
    only: Option<&BTreeSet<String>>,
) -> BTreeMap<String, LunFacts> {
    crate::pool::usage::refresh(node).await;
    let units: Vec<(String, Rc<Unit>)> = {
        let units = node.units.borrow();
        let known = |(naa, unit): (&String, &Rc<Unit>)| (naa.clone(), Rc::clone(unit));
        match only {
            Some(only) => {
                let found = only.iter().filter_map(|naa| units.get_key_value(naa));
                found.map(known).collect()
            }
            None => units.iter().map(known).collect(),
        }
    };
    let pending = journals::pending(node).await;
    let mut out = BTreeMap::new();
    for some in units.chunks(AT_ONCE) {
        facts_of(node, some, &mut out).await;
        env::yield_now().await;
    }
    for (naa, unit) in &units {
        if let (Some(facts), Some(volume)) = (out.get_mut(naa), unit.journaled()) {
            let bytes = pending.get(&volume).copied();
            facts.layers.pending_bytes = Some(bytes.unwrap_or(0));
        }
    }
    out
}

/// Those of some of the units.
async fn facts_of(node: &Inner, some: &[(String, Rc<Unit>)], out: &mut BTreeMap<String, LunFacts>) {
    let ids = some.iter().map(|(_, unit)| unit.id).collect();
    let figures = logical_unit::figures(&node.core, ids).await;
    let meters = some.iter().map(|(_, unit)| unit.parts().meter).collect();
    let counters = Meter::read_all(&node.core, meters).await;
    for ((naa, unit), counters) in some.iter().zip(&counters) {
        let figures = figures.get(&unit.id);
        let mut facts = lun(unit, counters, figures);
        if unit.is_in_pool() {
            facts.allocated = node.usage.of(naa);
        }
        facts.bad = unit.checksums().and_then(|it| it.problem());
        facts.scrub = node.scrubs.facts(naa);
        facts.stalled = stalls::of(node, naa);
        let endings = figures.iter().flat_map(|figures| &figures.endings);
        let endings = endings.map(|(ending, count)| (ending_name(ending), *count));
        facts.statuses = endings.collect();
        out.insert(naa.clone(), facts);
    }
}

/// Whether they are well.
pub(crate) fn conditions(node: &Inner) -> BTreeMap<String, LunCondition> {
    let units = node.units.borrow();
    let of = |(naa, unit): (&String, &Rc<Unit>)| {
        let condition = LunCondition {
            state: state(unit),
            checksums: unit.checksums().and_then(|it| it.problem()),
            scrub: node.scrubs.facts(naa),
            copies: of_copies(node, naa),
        };
        (naa.clone(), condition)
    };
    units.iter().map(of).collect()
}

/// What is not as it should be of a LUN's copies.
fn of_copies(node: &Inner, naa: &str) -> Option<String> {
    let facts = node.mirrors.get()?.facts(naa)?;
    facts.problem().map(str::to_owned)
}

/// Whether it serves, and why not.
pub(crate) fn state(unit: &Unit) -> LunState {
    match unit.offline() {
        Some(why) => LunState::Offline(why.to_string()),
        None if let Some(why) = unit.lost() => LunState::Offline(why.to_string()),
        None if unit.lacked_space().is_some() => LunState::Offline(
            "a sync found no space, so what was not synced before may be lost; make room where it lies: on files it is opened \
             anew by itself then, on a device restart the daemon"
                .to_owned(),
        ),
        None if unit.is_broken() => LunState::Offline(
            "a sync failed, so nothing is known of what was not synced before; \
             check the disk, then restart the daemon"
                .to_owned(),
        ),
        None => LunState::Online,
    }
}

fn lun(unit: &Unit, counters: &Counters, figures: Option<&Figures>) -> LunFacts {
    let state = state(unit);
    let mut ops: BTreeMap<String, OpFacts> = BTreeMap::new();
    let mut in_flight = 0_u64;
    for kind in OpKind::ALL {
        let of_kind = counters.of(kind);
        let ended = of_kind.done + of_kind.failed + of_kind.abandoned;
        let op = ops.entry(op_name(kind).to_owned()).or_default();
        let under_way = of_kind.started.saturating_sub(ended);
        (in_flight, op.in_flight) = (in_flight + under_way, op.in_flight + under_way);
        op.ops += of_kind.done + of_kind.failed;
        op.bytes += of_kind.blocks.saturating_mul(unit.block_bytes);
        op.latency.backend.add(&Latency::of(&of_kind.latency));
        if kind == OpKind::Write {
            op.latency.journal = Latency::of(&counters.journal);
        }
        if let Some(sizes) = counters.sizes_of(kind) {
            let pairs = (0..).zip(sizes).filter(|(_, count)| **count > 0);
            op.sizes = pairs
                .map(|(power, count)| (unit.block_bytes << power, *count))
                .collect();
        }
    }
    if let Some(Figures { times, .. }) = figures {
        staged(&mut ops, OpKind::Read, &times.read);
        staged(&mut ops, OpKind::Write, &times.write);
    }
    let mut facts = LunFacts {
        state,
        ops,
        in_flight,
        bytes_in_flight: figures.map_or(0, |figures| figures.bytes_in_flight),
        statuses: BTreeMap::new(),
        allocated: unit.allocated(),
        layers: LayerFacts::default(),
        bad: None,
        scrub: None,
        stalled: None,
    };
    unit.report(&mut facts.layers);
    facts
}

fn staged(ops: &mut BTreeMap<String, OpFacts>, kind: OpKind, times: &Times) {
    let latency = &mut ops.entry(op_name(kind).to_owned()).or_default().latency;
    latency.total = Latency::of(&times.total);
    latency.network = Latency::of(&times.network);
    latency.queue = Latency::of(&times.queue);
}

/// Such as `check 3/11/00`, or `busy`.
fn ending_name(ending: &Ending) -> String {
    let status = match ending.status {
        Status::Good => "good",
        Status::CheckCondition => "check",
        Status::ConditionMet => "condition_met",
        Status::Busy => "busy",
        Status::ReservationConflict => "reservation_conflict",
        Status::TaskSetFull => "task_set_full",
        Status::AcaActive => "aca_active",
        Status::TaskAborted => "task_aborted",
    };
    match ending.sense {
        Some((key, asc, ascq)) => format!("{status} {key:x}/{asc:02x}/{ascq:02x}"),
        None => status.to_owned(),
    }
}

fn op_name(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "read",
        OpKind::Write => "write",
        OpKind::WriteZeroes => "write_same",
        OpKind::Discard => "unmap",
        OpKind::CompareAndWrite => "caw",
        OpKind::Extents => "other",
        OpKind::Flush => "flush",
    }
}

pub(crate) async fn sessions(node: &Inner) -> Vec<SessionFacts> {
    let Some(server) = node.server() else {
        return Vec::new();
    };
    let sessions = server.sessions(&node.core).await;
    sessions.iter().map(|info| session(node, info)).collect()
}

pub(crate) async fn cores(node: &Inner) -> Vec<CoreFacts> {
    let Some(server) = node.server() else {
        return Vec::new();
    };
    let cores = server.cores(&node.core).await;
    let engines = env::call_all(&node.core, |core| {
        let engine = core.files().engine();
        Box::pin(async move { engine })
    });
    // Both are in the order of the cores.
    let said = cores.into_iter().zip(engines.await);
    let said = said.map(|(one, engine)| CoreFacts {
        core: one.core.0,
        busy_us: u64::try_from(one.busy.as_micros()).unwrap_or(u64::MAX),
        load_permille: one.load.0,
        connections: one.connections,
        disk_engine: match engine.kind {
            env::EngineKind::Uring => "io_uring".to_owned(),
            env::EngineKind::Threads => "threads".to_owned(),
        },
        registered_files: engine.registered_files,
        registered_bytes: engine.registered_bytes,
    });
    said.collect()
}

/// By the names that they have now: the host of an initiator that was `host` at its login, and the
/// target of this iSCSI name.
pub(crate) fn host_and_target(
    node: &Inner,
    initiator: &str,
    host: Option<&str>,
    iqn: Option<&str>,
) -> (Option<String>, Option<String>) {
    let objects = node.objects.borrow();
    let target = iqn.map(|iqn| {
        let found = objects
            .targets
            .iter()
            .find(|(_, target)| target.iqn.eq_ignore_ascii_case(iqn));
        found.map_or_else(|| iqn.to_owned(), |(name, _)| name.clone())
    });
    // The name that it had at login may have changed since.
    let known = host.filter(|host| objects.hosts.contains_key(*host));
    let known = known.map(ToOwned::to_owned);
    let host = known.or_else(|| {
        let initiator = initiator.to_ascii_lowercase();
        objects.host_of(&initiator).map(ToOwned::to_owned)
    });
    (host, target)
}

fn session(node: &Inner, info: &SessionInfo) -> SessionFacts {
    let (host, target) = host_and_target(
        node,
        &info.initiator,
        info.host.as_deref(),
        info.target.as_deref(),
    );
    let objects = node.objects.borrow();
    let luns = session_luns(&objects, host.as_deref(), target.as_deref(), &info.luns);
    let mut keys = negotiated(&info.parameters);
    keys.insert("ISID".to_owned(), info.isid.clone());
    keys.insert("TSIH".to_owned(), info.tsih.to_string());
    if let Some(user) = &info.chap_user {
        let mutual = if info.mutual_chap { ", mutual" } else { "" };
        keys.insert(
            "AuthMethod".to_owned(),
            format!("CHAP (user {user}{mutual})"),
        );
    }
    SessionFacts {
        id: info.number.0,
        host: host.unwrap_or_default(),
        initiator: info.initiator.clone(),
        target,
        from: info.peer.to_string(),
        portal: info.portal.to_string(),
        core: info.core.0,
        load_permille: info.load.0,
        pinned: info.pinned,
        since: rfc3339(info.since),
        bytes_in: info.bytes_written,
        bytes_out: info.bytes_read,
        pdus_received: info.received.pdus,
        receives: info.received.receives,
        receives_waited: info.received.waited,
        in_flight: info.in_progress,
        bytes_in_flight: info.bytes_in_flight,
        bytes_in_flight_max: info.bytes_in_flight_max,
        commands: info.commands,
        latency: Latency::of(&info.latency()),
        chap_user: info.chap_user.clone(),
        mutual_chap: info.mutual_chap,
        luns,
        nic: info.nic.as_ref().map(nic),
        keys,
    }
}

fn nic(reported: &NicRecord) -> SessionNic {
    SessionNic {
        name: reported.name.clone(),
        card: reported.card.clone(),
        fabric: reported.fabric.clone(),
        bits_per_second: reported.speed,
        links: reported.links,
        mtu: reported.mtu,
        planned: reported.planned,
    }
}

/// What the session sees, by the names that the LUNs have now.
fn session_luns(
    objects: &Objects,
    host: Option<&str>,
    target: Option<&str>,
    numbers: &[u16],
) -> Vec<SessionLun> {
    let granted = objects.grants.iter().filter(|(key, grant)| {
        Some(key.host.as_str()) == host
            && Some(key.target.as_str()) == target
            && numbers.contains(&grant.lun_id)
    });
    let mut luns: Vec<SessionLun> = granted
        .map(|(key, grant)| SessionLun {
            lun_id: grant.lun_id,
            lun: key.lun.clone(),
            read_only: grant.read_only,
        })
        .collect();
    luns.sort_by_key(|lun| lun.lun_id);
    luns
}

/// The standard's names with their results.
fn negotiated(parameters: &Parameters) -> BTreeMap<String, String> {
    let digest = |on: bool| if on { "CRC32C" } else { "None" }.to_owned();
    let yes = |on: bool| if on { "Yes" } else { "No" }.to_owned();
    let number = |value: u32| value.to_string();
    let keys = [
        ("HeaderDigest", digest(parameters.header_digest)),
        ("DataDigest", digest(parameters.data_digest)),
        (
            "MaxRecvDataSegmentLength(target)",
            number(parameters.own_max_recv_data_segment_length),
        ),
        (
            "MaxRecvDataSegmentLength(initiator)",
            number(parameters.peer_max_recv_data_segment_length),
        ),
        ("MaxBurstLength", number(parameters.max_burst_length)),
        ("FirstBurstLength", number(parameters.first_burst_length)),
        ("InitialR2T", yes(parameters.initial_r2t)),
        ("ImmediateData", yes(parameters.immediate_data)),
        (
            "MaxOutstandingR2T",
            number(parameters.max_outstanding_r2t.into()),
        ),
        ("DataPDUInOrder", yes(parameters.data_pdu_in_order)),
        (
            "DataSequenceInOrder",
            yes(parameters.data_sequence_in_order),
        ),
        (
            "DefaultTime2Wait",
            number(parameters.default_time2wait.into()),
        ),
        (
            "DefaultTime2Retain",
            number(parameters.default_time2retain.into()),
        ),
        ("MaxConnections", number(parameters.max_connections.into())),
        (
            "ErrorRecoveryLevel",
            number(parameters.error_recovery_level.into()),
        ),
    ];
    keys.into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

pub(crate) fn refusals(node: &Inner) -> Vec<RefusalFacts> {
    let server = node.server();
    let list = server
        .map(|server| server.refusals().list())
        .unwrap_or_default();
    let refused = list.iter().filter(|login| !login.is_redirect());
    refused.map(refusal).collect()
}

/// Class and detail of such as `0201h authentication failure`, with the catalogue's code.
fn status_and_code(said: &str) -> (String, Code) {
    let status: String = said.chars().take(4).collect();
    let part = |from: usize| u8::from_str_radix(status.get(from..from + 2).unwrap_or("0"), 16);
    let code = match (part(0), part(2)) {
        // A discovery that found nothing, because nothing is granted.
        (Ok(0), Ok(0)) => Code::LoginNotGranted,
        (Ok(class), Ok(detail)) => Code::of_login_status(class, detail),
        _ => Code::LoginProtocol,
    };
    (status, code)
}

pub(crate) fn logins(node: &Inner) -> Vec<LoginFacts> {
    let Some(server) = node.server() else {
        return Vec::new();
    };
    let counts = server.refusals().counts();
    let mut by_code: BTreeMap<Code, u64> = BTreeMap::new();
    for (said, count) in &counts.refused {
        *by_code.entry(status_and_code(said).1).or_default() += count;
    }
    let mut out = vec![LoginFacts {
        result: "accepted",
        code: None,
        count: counts.accepted,
    }];
    out.extend(by_code.into_iter().map(|(code, count)| LoginFacts {
        result: if code == Code::LoginRedirected {
            "redirected"
        } else {
            "refused"
        },
        code: Some(code),
        count,
    }));
    out
}

fn refusal(refused: &RefusedLogin) -> RefusalFacts {
    let (status, code) = status_and_code(&refused.status);
    RefusalFacts {
        at: rfc3339(refused.at),
        times: refused.times,
        initiator: refused.initiator.clone().unwrap_or_default(),
        from: refused.peer.to_string(),
        target: refused.target.clone().unwrap_or_default(),
        portal: refused.portal.to_string(),
        code,
        status,
        reason: refused.reason.clone(),
    }
}

pub(crate) fn portals(node: &Inner) -> Vec<PortalFacts> {
    let server = node.server();
    let portals = server.map(|server| server.portals()).unwrap_or_default();
    let facts = portals.into_iter().map(|portal| PortalFacts {
        group: portal.portal_group,
        tag: portal.portal_group_tag,
        address: portal.address.to_string(),
        interface: portal.interface,
        problem: portal.error,
    });
    facts.collect()
}

#[cfg(test)]
mod test {
    use super::*;

    /// What the list of refusals says of a status is what was answered, and its code leads to the
    /// right page.
    #[test]
    fn a_refusal_is_listed_with_the_status_that_was_answered_and_the_code_of_its_cause() {
        let known = [
            ("0201", Code::LoginAuthentication),
            ("0202", Code::LoginNotGranted),
            ("0203", Code::LoginNoTarget),
            ("0204", Code::LoginTargetRemoved),
            ("0206", Code::LoginOutOfResources),
            ("0302", Code::LoginOutOfResources),
            // A discovery that found nothing.
            ("0000", Code::LoginNotGranted),
        ];
        let known = BTreeMap::from(known);
        for class in 0..4 {
            for detail in 0..=255 {
                let answered = iscsi::LoginStatus::from_code(class, detail).to_string();
                let (status, code) = status_and_code(&answered);
                assert_eq!(status, format!("{class:02X}{detail:02X}"));
                let of_class = match class {
                    1 => Code::LoginRedirected,
                    3 => Code::LoginUnavailable,
                    _ => Code::LoginProtocol,
                };
                let wanted = known.get(status.as_str()).unwrap_or(&of_class);
                assert_eq!(code, *wanted, "{answered}");
            }
        }
    }
}
