//! What somebody needs who samples every second. Every core is asked once for all LUNs, and numbers
//! are read where they are counted: no document is made.

use crate::inner::Inner;
use crate::lun::facts::{host_and_target, state};
use crate::lun::unit::Unit;
use iscsi_target::SessionInfo;
use layers::{Brief, KindBrief, Meter};
use logical_unit::{StageBrief, Times, TimesBrief};
use manifest::activity::{LunActivity, OpActivity, SessionActivity};
use manifest::facts::LunState;
use manifest::latency::{Latency, Stages};
use manifest::objects::LayerFacts;
use manifest::pulse::{
    Asked, Ended, EndedSession, LunPulse, LunStages, Pulse, StageTimes, Transfers,
};
use manifest::scrub::ScrubFacts;
use std::rc::Rc;
use units::Histogram;

/// The pulse of the node.
pub(crate) async fn pulse(node: &Inner, asked: Asked) -> Pulse {
    let (luns, stages) = luns(node, asked.stages).await;
    let Some(server) = node.server() else {
        return Pulse {
            luns,
            stages,
            ..Pulse::default()
        };
    };
    let sessions = server.sessions(&node.core).await;
    // Asked after the list: it has whatever is missing there.
    let ended = server.ended(asked.ended_since);
    Pulse {
        luns,
        stages,
        sessions: sessions.iter().map(|info| session(node, info)).collect(),
        transfers: sessions.iter().map(transfers).collect(),
        ended: Ended {
            sessions: ended.sessions.iter().map(|it| over(node, it)).collect(),
            next: ended.next,
            lost: ended.lost,
        },
    }
}

/// A LUN in service, as it is found before the cores are asked.
struct Found {
    name: String,
    unit: Rc<Unit>,
    scrub: Option<ScrubFacts>,
    is_cached: bool,
}

fn found(node: &Inner) -> Vec<Found> {
    let (objects, units) = (node.objects.borrow(), node.units.borrow());
    let luns = objects.luns.iter();
    let in_service = luns.filter_map(|(name, lun)| {
        let unit = units.get(&lun.naa)?;
        Some(Found {
            name: name.clone(),
            unit: Rc::clone(unit),
            scrub: node.scrubs.facts(&lun.naa),
            is_cached: lun.storage.read_cache.is_some(),
        })
    });
    in_service.collect()
}

async fn luns(node: &Inner, with_stages: bool) -> (Vec<LunPulse>, Vec<LunStages>) {
    let all = found(node);
    let meters: Vec<Meter> = all.iter().map(|lun| lun.unit.parts().meter).collect();
    let stages = match with_stages {
        true => stages(node, &all, meters.clone()).await,
        false => Vec::new(),
    };
    let counts = Meter::briefs(&node.core, meters).await;
    let ids = all.iter().map(|lun| lun.unit.id).collect();
    let times = logical_unit::briefs(&node.core, ids).await;
    let all = all.into_iter().zip(counts.iter().zip(times));
    let luns = all.map(|(lun, (count, times))| pulse_of(lun, count, &times));
    (luns.collect(), stages)
}

/// How long the stages of these LUNs' commands took, in their order.
async fn stages(node: &Inner, all: &[Found], meters: Vec<Meter>) -> Vec<LunStages> {
    let backend = Meter::latencies(&node.core, meters).await;
    let ids = all.iter().map(|lun| lun.unit.id).collect();
    let times = logical_unit::stage_times(&node.core, ids).await;
    let stages = |times: Times, backend: Histogram| StageTimes {
        total: times.total,
        network: times.network,
        queue: times.queue,
        backend,
    };
    let of = |([read, write], times): ([Histogram; 2], logical_unit::StageTimes)| {
        [stages(times.read, read), stages(times.write, write)]
    };
    backend.into_iter().zip(times).map(of).collect()
}

fn pulse_of(lun: Found, count: &Brief, times: &StageBrief) -> LunPulse {
    let Found {
        name,
        unit,
        scrub,
        is_cached,
    } = lun;
    let state = state(&unit);
    // The only one of its layers that has figures here: the others are not asked.
    let mut layers = LayerFacts::default();
    if is_cached {
        unit.report(&mut layers);
    }
    LunPulse {
        activity: LunActivity {
            name,
            online: state == LunState::Online,
            in_flight: count.progress.under_way(),
            read: op(&count.read, unit.block_bytes, &times.read),
            write: op(&count.write, unit.block_bytes, &times.write),
            other_ops: count.other_ops,
        },
        state,
        scrub,
        cached: layers.cached,
    }
}

fn op(count: &KindBrief, block_bytes: u64, times: &TimesBrief) -> OpActivity {
    let total = Latency::of(&times.total);
    let summary = |count, nanos| Latency {
        count,
        us_sum: nanos / 1_000,
        buckets: Vec::new(),
    };
    OpActivity {
        ops: count.ops,
        bytes: count.blocks.saturating_mul(block_bytes),
        latency: Stages {
            network: summary(total.count, times.network_nanos),
            queue: summary(total.count, times.queue_nanos),
            backend: summary(count.ops, count.nanos),
            total,
        },
    }
}

fn session(node: &Inner, info: &SessionInfo) -> SessionActivity {
    let (host, target) = host_and_target(
        node,
        &info.initiator,
        info.host.as_deref(),
        info.target.as_deref(),
    );
    SessionActivity {
        id: info.number.0,
        host: host.unwrap_or_default(),
        initiator: info.initiator.clone(),
        target,
        from: info.peer.to_string(),
        core: info.core.0,
        load_permille: info.load.0,
        in_flight: info.in_progress,
        commands: info.commands,
        bytes_in: info.bytes_written,
        bytes_out: info.bytes_read,
        latency: Latency::of(&info.latency()),
    }
}

fn transfers(info: &SessionInfo) -> (u64, Transfers) {
    let transfers = Transfers {
        read: Latency::of(&info.reads),
        write: Latency::of(&info.writes),
    };
    (info.number.0, transfers)
}

fn over(node: &Inner, session: &iscsi_target::EndedSession) -> EndedSession {
    let iscsi_target::EndedSession {
        number,
        host,
        initiator,
        target,
        peer,
        reason,
    } = session;
    let (host, target) = host_and_target(node, initiator, host.as_deref(), target.as_deref());
    EndedSession {
        id: number.0,
        host: host.unwrap_or_default(),
        initiator: initiator.clone(),
        target,
        from: peer.to_string(),
        reason: reason.clone(),
    }
}
