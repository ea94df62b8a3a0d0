//! What somebody needs who samples every second. Every core is asked once for all LUNs, and numbers
//! are read where they are counted: no document is made.

use crate::inner::Inner;
use crate::lun::facts::{host_and_target, state};
use crate::lun::seen::{Mark, Seen};
use crate::lun::unit::Unit;
use iscsi_target::SessionInfo;
use layers::{KindBrief, Meter};
use logical_unit::{StageBrief, Times, TimesBrief, UnitId};
use manifest::activity::{LunActivity, OpActivity, SessionActivity};
use manifest::facts::LunState;
use manifest::latency::{Latency, Stages};
use manifest::objects::{LayerFacts, Objects};
use manifest::pulse::{
    Asked, Ended, EndedSession, LunPulse, LunStages, Pulse, StageTimes, Transfers,
};
use manifest::scrub::ScrubFacts;
use std::rc::Rc;
use std::sync::Arc;
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
struct Found<'a> {
    name: &'a str,
    unit: Rc<Unit>,
    scrub: Option<ScrubFacts>,
    is_cached: bool,
}

fn found<'a>(node: &Inner, objects: &'a Objects) -> Vec<Found<'a>> {
    let units = node.units.borrow();
    let luns = objects.luns.iter();
    let in_service = luns.filter_map(|(name, lun)| {
        let unit = units.get(&lun.naa)?;
        Some(Found {
            name,
            unit: Rc::clone(unit),
            scrub: node.scrubs.facts(&lun.naa),
            is_cached: lun.storage.read_cache.is_some(),
        })
    });
    in_service.collect()
}

async fn luns(node: &Inner, with_stages: bool) -> (Vec<LunPulse>, Vec<LunStages>) {
    let objects = Rc::clone(&node.objects.borrow());
    let all = found(node, &objects);
    let meters: Vec<Meter> = all.iter().map(|lun| lun.unit.parts().meter).collect();
    let ids: Vec<UnitId> = all.iter().map(|lun| lun.unit.id).collect();
    let stages = match with_stages {
        true => stages(node, ids.clone(), meters.clone()).await,
        false => Vec::new(),
    };
    let counts = Meter::briefs(&node.core, meters).await;
    let nanos = logical_unit::nanos(&node.core, ids.clone()).await;
    let marks = counts.into_iter().zip(nanos);
    let marks: Vec<Mark> = marks.map(|(count, nanos)| Mark { count, nanos }).collect();
    // Most LUNs of a node do nothing in most seconds: what is known of them is true still.
    let known: Vec<Option<Arc<LunActivity>>> = all
        .iter()
        .zip(&marks)
        .map(|(lun, mark)| {
            let seen = lun.unit.seen.borrow();
            let online = is_online(&lun.unit);
            seen.as_ref()?.still(lun.name, online, mark)
        })
        .collect();
    let news = ids.into_iter().zip(&known).filter(|(_, it)| it.is_none());
    let times = logical_unit::briefs(&node.core, news.map(|(id, _)| id).collect()).await;
    let mut times = times.into_iter();
    let each = all.into_iter().zip(marks).zip(known);
    let luns = each.map(|((lun, mark), known)| {
        let activity = known.unwrap_or_else(|| {
            let times = times.next().unwrap_or_default();
            seen(&lun, mark, &times)
        });
        pulse_of(lun, activity)
    });
    (luns.collect(), stages)
}

fn is_online(unit: &Unit) -> bool {
    state(unit) == LunState::Online
}

/// What it did, kept for the next pulse.
fn seen(lun: &Found<'_>, mark: Mark, times: &StageBrief) -> Arc<LunActivity> {
    let (count, block_bytes) = (&mark.count, lun.unit.block_bytes);
    let activity = Arc::new(LunActivity {
        name: lun.name.to_owned(),
        online: is_online(&lun.unit),
        in_flight: count.progress.under_way(),
        read: op(&count.read, block_bytes, &times.read),
        write: op(&count.write, block_bytes, &times.write),
        other_ops: count.other_ops,
    });
    let seen = Seen {
        mark,
        activity: Arc::clone(&activity),
    };
    lun.unit.seen.replace(Some(seen));
    activity
}

/// How long the stages of these LUNs' commands took, in their order.
async fn stages(node: &Inner, ids: Vec<UnitId>, meters: Vec<Meter>) -> Vec<LunStages> {
    let backend = Meter::latencies(&node.core, meters).await;
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

fn pulse_of(lun: Found<'_>, activity: Arc<LunActivity>) -> LunPulse {
    // The only one of its layers that has figures here: the others are not asked.
    let mut layers = LayerFacts::default();
    if lun.is_cached {
        lun.unit.report(&mut layers);
    }
    LunPulse {
        activity,
        state: state(&lun.unit),
        scrub: lun.scrub,
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
