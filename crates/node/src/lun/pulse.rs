//! What somebody needs who samples every second. Every core is asked for many LUNs at once, and
//! numbers are read where they are counted. Documents are made for whoever watches, and only then.

use crate::inner::Inner;
use crate::lun::facts::{host_and_target, state};
use crate::lun::seen::{Mark, Seen};
use crate::lun::stalls;
use crate::lun::unit::Unit;
use crate::lun::units::Listed;
use iscsi_target::SessionInfo;
use layers::{Brief, KindBrief, Meter};
use logical_unit::{Did, StageBrief, TimesBrief, UnitId};
use manifest::activity::{LunActivity, OpActivity, SessionActivity};
use manifest::facts::LunState;
use manifest::latency::{Latency, Stages};
use manifest::objects::{LayerFacts, MirrorFacts};
use manifest::pulse::{
    Asked, Ended, EndedSession, LunFigures, LunPulse, OpFigures, Pulse, SessionStages,
    StageFigures, Transfers,
};
use std::rc::Rc;
use std::sync::Arc;
use units::histogram::{quantiles_of, together};

/// So many LUNs are read in one go, and then whatever else is ready on the core has its turn.
const AT_ONCE: usize = 32;

/// The pulse of the node.
pub(crate) async fn pulse(node: &Inner, asked: Asked) -> Pulse {
    let (ended_since, stages) = (asked.ended_since, asked.stages);
    let mut pulse = luns(node, asked).await;
    let Some(server) = node.server() else {
        return pulse;
    };
    let sessions = server.sessions(&node.core).await;
    pulse.sessions = sessions.iter().map(|info| session(node, info)).collect();
    pulse.transfers = sessions.iter().map(transfers).collect();
    if stages {
        let sampled = server.session_stages(&node.core).await;
        let sampled = sampled.into_iter();
        pulse.session_stages = sampled.map(|it| session_stages(node, it)).collect();
    }
    // Asked after the list: it has whatever is missing there.
    pulse.ended = ended(node, ended_since);
    pulse
}

/// Sessions that ended since that place.
pub(crate) fn ended(node: &Inner, since: u64) -> Ended {
    let Some(server) = node.server() else {
        return Ended::default();
    };
    let ended = server.ended(since);
    Ended {
        sessions: ended.sessions.iter().map(|it| over(node, it)).collect(),
        next: ended.next,
        lost: ended.lost,
    }
}

/// A LUN in service, before the cores are asked.
struct Found<'a> {
    lun: &'a Listed,
    unit: Rc<Unit>,
}

async fn luns(node: &Inner, asked: Asked) -> Pulse {
    let objects = Rc::clone(&node.objects.borrow());
    let listing = node.units.listing(objects).await;
    let mut pulse = Pulse::default();
    for some in listing.luns.chunks(AT_ONCE) {
        let found = |lun| {
            let unit = node.units.of(lun)?;
            Some(Found { lun, unit })
        };
        let some: Vec<Found<'_>> = some.iter().filter_map(found).collect();
        let meters: Vec<Meter> = some.iter().map(|lun| lun.unit.parts().meter).collect();
        if asked.stages {
            stages(node, &some, meters.clone(), &mut pulse).await;
        }
        let counts = Meter::briefs(&node.core, meters).await;
        let each = some.iter().zip(&counts);
        let watched = each.filter(|(found, _)| asked.documents.has(&found.lun.name));
        let watched: Vec<(&Found<'_>, Brief)> = watched.map(|(lun, it)| (lun, *it)).collect();
        if !watched.is_empty() {
            let documents = documents(node, watched).await;
            pulse.documents.extend(documents);
        }
        if asked.figures {
            figures(node, some, counts, &mut pulse).await;
        }
        env::yield_now().await;
    }
    pulse
}

/// Puts what these LUNs did into a pulse.
async fn figures(node: &Inner, some: Vec<Found<'_>>, counts: Vec<Brief>, pulse: &mut Pulse) {
    let marked = some.iter().zip(&counts).map(|(lun, count)| {
        let counted = lun.unit.counted.replace(Some(*count));
        (lun.unit.id, counted != Some(*count))
    });
    let news = logical_unit::news(&node.core, marked.collect()).await;
    for (sum, new) in pulse.together.iter_mut().zip(&news.together) {
        sum.add(new);
    }
    let each = some.into_iter().zip(counts).zip(news.units);
    let each = each.map(|((lun, count), [read, write])| {
        let block_bytes = lun.unit.block_bytes;
        let figures = LunFigures {
            in_flight: count.progress.under_way(),
            read: op_figures(&count.read, block_bytes, &read),
            write: op_figures(&count.write, block_bytes, &write),
            other_ops: count.other_ops,
        };
        pulse_of(node, &lun, figures)
    });
    pulse.luns.extend(each);
}

/// As [`op`] has it.
fn op_figures(count: &KindBrief, block_bytes: u64, did: &Did) -> OpFigures {
    OpFigures {
        ops: count.ops,
        bytes: count.blocks.saturating_mul(block_bytes),
        backend_us: count.nanos / 1_000,
        journal_us: count.journal_nanos / 1_000,
        commands: did.count,
        network_us: did.network_nanos / 1_000,
        queue_us: did.queue_nanos / 1_000,
        took: did.took,
    }
}

/// What these LUNs do, as a document has it.
async fn documents(node: &Inner, some: Vec<(&Found<'_>, Brief)>) -> Vec<Arc<LunActivity>> {
    let ids: Vec<UnitId> = some.iter().map(|(lun, _)| lun.unit.id).collect();
    let nanos = logical_unit::nanos(&node.core, ids.clone()).await;
    let marks = some.iter().zip(nanos);
    let marks: Vec<Mark> = marks
        .map(|((_, count), nanos)| Mark {
            count: *count,
            nanos,
        })
        .collect();
    // Most LUNs of a node do nothing in most seconds: what is known of them is true still.
    let known: Vec<Option<Arc<LunActivity>>> = some
        .iter()
        .zip(&marks)
        .map(|((lun, _), mark)| {
            let seen = lun.unit.seen.borrow();
            let online = is_online(&lun.unit);
            seen.as_ref()?.still(&lun.lun.name, online, mark)
        })
        .collect();
    let news = ids.into_iter().zip(&known).filter(|(_, it)| it.is_none());
    let times = logical_unit::briefs(&node.core, news.map(|(id, _)| id).collect()).await;
    let mut times = times.into_iter();
    let each = some.iter().zip(marks).zip(known);
    let each = each.map(|(((lun, _), mark), known)| {
        known.unwrap_or_else(|| {
            let times = times.next().unwrap_or_default();
            seen(lun, mark, &times)
        })
    });
    each.collect()
}

fn is_online(unit: &Unit) -> bool {
    state(unit) == LunState::Online
}

/// What it did, kept for the next pulse.
fn seen(lun: &Found<'_>, mark: Mark, times: &StageBrief) -> Arc<LunActivity> {
    let (count, block_bytes) = (&mark.count, lun.unit.block_bytes);
    let activity = Arc::new(LunActivity {
        name: lun.lun.name.to_string(),
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

/// Puts into a pulse how long the stages of these LUNs' commands took that came since this was
/// asked last.
async fn stages(node: &Inner, some: &[Found<'_>], meters: Vec<Meter>, pulse: &mut Pulse) {
    let ids: Vec<UnitId> = some.iter().map(|lun| lun.unit.id).collect();
    let backend = Meter::latency_news(&node.core, meters).await;
    let front = logical_unit::stage_news(&node.core, ids).await;
    for (backend, front) in together(&backend).into_iter().zip(together(&front)) {
        let [read, write, journal] = backend;
        let [r_total, r_network, r_queue, w_total, w_network, w_queue] = front;
        let both = [
            [r_total, r_network, r_queue, Vec::new(), read],
            [w_total, w_network, w_queue, journal, write],
        ];
        let totals = pulse.stages_together.iter_mut().flatten();
        for (sum, new) in totals.zip(both.iter().flatten()) {
            sum.add_counts(new);
        }
        pulse
            .stages
            .push(both.map(|[total, network, queue, journal, backend]| {
                let percentiles = |counts: &[(u8, u32)]| quantiles_of(counts, [500, 990]);
                StageFigures {
                    network: percentiles(&network),
                    queue: percentiles(&queue),
                    journal: percentiles(&journal),
                    backend: percentiles(&backend),
                    total,
                }
            }));
    }
}

fn pulse_of(node: &Inner, found: &Found<'_>, figures: LunFigures) -> LunPulse {
    // The only one of its layers that has figures here: the others are not asked.
    let mut layers = LayerFacts::default();
    if found.lun.is_cached {
        found.unit.report(&mut layers);
    }
    LunPulse {
        name: Arc::clone(&found.lun.name),
        naa: Arc::clone(&found.lun.naa),
        figures,
        state: state(&found.unit),
        scrub: node.scrubs.facts(&found.lun.naa).map(Box::new),
        cached: layers.cached,
        stalled: stalls::of(node, &found.lun.naa),
        mirror: mirror_of(node, &found.lun.naa),
    }
}

/// How the copies of a LUN are.
fn mirror_of(node: &Inner, naa: &str) -> Option<Box<MirrorFacts>> {
    node.mirrors.get()?.facts(naa).map(Box::new)
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
            journal: summary(count.journaled, count.journal_nanos),
            backend: summary(count.ops.saturating_sub(count.journaled), count.nanos),
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
        portal: info.portal.to_string(),
        core: info.core.0,
        load_permille: info.load.0,
        in_flight: info.in_progress,
        commands: info.commands,
        bytes_in: info.bytes_written,
        bytes_out: info.bytes_read,
        latency: Latency::of(&info.latency()),
    }
}

fn session_stages(node: &Inner, sampled: iscsi_target::SessionStages) -> SessionStages {
    let (host, target) = host_and_target(
        node,
        &sampled.initiator,
        sampled.host.as_deref(),
        sampled.target.as_deref(),
    );
    SessionStages {
        host: host.unwrap_or_default(),
        target,
        stages: sampled.stages,
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
