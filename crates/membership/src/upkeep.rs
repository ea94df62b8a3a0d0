//! What a node of a cluster does by itself: it follows the other nodes, asks each whether it is
//! there, says what changed of itself, and gets another certificate before its own ends.

use crate::admission::clocks;
use crate::authority::{CLOCK_TOLERANCE, EARLY, PublicKey, seconds};
use crate::client;
use crate::fingerprint::Fingerprint;
use crate::node::{MemberState, Node, Seen};
use crate::records::{Der, NodeRecord, Standing};
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Roster;
use crate::store::Member;
use crate::words::{ClusterView, NodeView};
use futures_util::future::join_all;
use manifest::code::Code;
use manifest::problem::Problem;
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::WallClock;
use units::rfc3339::{parse, rfc3339};

/// How often.
const EVERY: Duration = Duration::from_secs(15);

/// How often the arbiter is asked who is in the cluster, while there are streams: those with a node
/// that was removed elsewhere end by it.
const FOLLOWED_EVERY: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });

/// How long a node's certificate before is believed beside its new one.
const BOTH_FOR: Duration = Duration::from_secs(3600);

/// As long as the node is there.
pub(crate) async fn run(node: Weak<Node>) {
    loop {
        let Some(here) = node.upgrade() else { return };
        let core = Rc::clone(&here.core);
        if let Some(state) = here.state() {
            round(&here, &state).await;
        }
        let again = core.now().after(EVERY);
        drop(here);
        while core.now() < again {
            let soon = core.now().after(FOLLOWED_EVERY);
            core.sleep_until(soon.min(again)).await;
            let Some(here) = node.upgrade() else { return };
            if core.now() < again {
                follow_streams(&here).await;
            }
        }
    }
}

/// What the arbiter does not say now, the next round names.
async fn follow_streams(node: &Node) {
    if let Some(state) = node.state().filter(|_| !node.streams.is_empty()) {
        let _named = node.follow(&state).await;
    }
}

pub(crate) async fn round(node: &Rc<Node>, state: &Rc<MemberState>) {
    let kept = async {
        node.follow(state).await?;
        describe(node, state).await
    };
    let trouble = kept
        .await
        .err()
        .map(|problem| Refusal::new(RefusalKind::Arbiter, &problem.detail, &problem.hint));
    let is_new = *node.trouble.borrow() != trouble;
    if let Some(trouble) = trouble.as_ref().filter(|_| is_new) {
        tracing::warn!("the cluster: {trouble}");
    }
    *node.trouble.borrow_mut() = trouble;
    ask_nodes(node, state).await;
    let stays = renew(node, state).await.err();
    if let Some(problem) = &stays
        && *node.not_renewed.borrow() != stays
    {
        tracing::error!("the node's certificate stays: {problem}");
    }
    *node.not_renewed.borrow_mut() = stays;
}

/// Has the arbiter know what changed of this node: its version, name, addresses, ring counts.
async fn describe(node: &Rc<Node>, state: &MemberState) -> Result<(), Problem> {
    let profile = node.candidate().await.profile;
    let slot = state.member.slot;
    let known = state.roster.borrow().nodes.get(&slot).cloned();
    let differs = |it: &NodeRecord| it.standing == Standing::Joined && it.profile != profile;
    if !known.is_some_and(|it| differs(&it.record)) {
        return Ok(());
    }
    let register = node.register().await?;
    let changed = |it: &NodeRecord| {
        differs(it).then(|| NodeRecord {
            profile: profile.clone(),
            ..it.clone()
        })
    };
    let known = register.change_node(slot, &profile.id, changed).await;
    let known = known.map_err(|it| it.problem())?;
    let mut roster = state.roster.borrow().clone();
    roster.knows(slot, known);
    node.keep(state, roster).await
}

/// Asks the other nodes, all at once.
async fn ask_nodes(node: &Rc<Node>, state: &MemberState) {
    let roster = state.roster.borrow().clone();
    let own = state.member.slot;
    let others = roster.joined().filter(|(slot, _)| *slot != own);
    let asked = others.map(async |(slot, _)| {
        let heard = client::hello(node, &state.to_node, &roster, (own, slot)).await;
        (slot, heard)
    });
    for (slot, heard) in join_all(asked).await {
        let mut seen = node.seen.borrow_mut();
        let seen = seen.entry(slot).or_default();
        seen.answers = heard.is_ok();
        let now = node.now();
        if seen.answers {
            seen.at = Some(rfc3339(now));
        }
        let problem = heard.map_or_else(Some, |it| clocks(it.clock, now).err());
        if let Some(problem) = problem.as_ref().filter(|_| seen.problem != problem) {
            tracing::warn!("node {slot}: {problem}");
        }
        seen.problem = problem;
    }
}

/// Whether a node answers now.
pub(crate) async fn answers(node: &Rc<Node>, state: &MemberState, slot: u8) -> bool {
    ask_nodes(node, state).await;
    let seen = node.seen.borrow();
    seen.get(&slot).is_some_and(|it| it.answers)
}

/// When a certificate begins and ends.
fn times(certificate: &[u8]) -> Option<(u64, u64)> {
    let facts = x509::facts(certificate)?;
    Some((seconds(parse(&facts.begins)?), seconds(parse(&facts.ends)?)))
}

/// A certificate is of this time, and will be for long.
fn is_fresh(certificate: &[u8], now: WallClock) -> bool {
    let (now, tolerance) = (seconds(now), CLOCK_TOLERANCE.as_secs());
    times(certificate)
        .is_some_and(|(begins, ends)| begins <= now + tolerance && ends > now + EARLY.as_secs())
}

/// Why this node's clock may be the wrong one: by it another node's certificate is not of this
/// time, or another node has said another time. Who signed by such a clock would be believed by
/// nobody.
fn contradiction(node: &Node, state: &MemberState, now: WallClock) -> Option<String> {
    let (now, tolerance) = (seconds(now), CLOCK_TOLERANCE.as_secs());
    let (own, roster) = (state.member.slot, state.roster.borrow());
    let seen = node.seen.borrow();
    roster.joined().find_map(|(slot, it)| {
        let (begins, ends) = times(&it.certificate.0)?;
        let is_of_now = begins <= now + tolerance && now <= ends + tolerance;
        let said = seen.get(&slot).filter(|it| it.answers);
        let said = said.and_then(|it| it.problem.as_ref());
        let differs = said.is_some_and(|it| it.kind == RefusalKind::Clock);
        (slot != own && (differs || !is_of_now)).then(|| {
            format!(
                "this node's clock has {}, and that of node {slot} ({}), or its certificate, is far from it",
                rfc3339(WallClock(now * 1_000_000_000)),
                it.profile.name
            )
        })
    })
}

/// Signs for itself anew, before its certificate ends. The key stays; others believe both until
/// they know of the new one.
pub(crate) async fn renew(node: &Rc<Node>, state: &Rc<MemberState>) -> Result<(), Problem> {
    let now = node.now();
    if is_fresh(&state.member.certificate.0, now) {
        return forget_before(node, state, now).await;
    }
    if let Some(cause) = contradiction(node, state, now) {
        let next = "set the clock that is wrong: a time server keeps it right";
        return Err(Problem::new(Code::ClusterPeer, cause).hint(next));
    }
    let _turn = node.turn.lock().await;
    let known = own_record(state).filter(|_| node.is_still(state));
    let Some(known) = known.filter(|it| it.standing == Standing::Joined) else {
        return Ok(());
    };
    // What the arbiter has for this key was signed before a crash.
    let kept = &known.certificate.0;
    let is_ours = PublicKey::of(kept) == Some(state.key.public());
    let certificate = if is_ours && is_fresh(kept, now) {
        kept.clone()
    } else {
        signed_anew(node, state, now).await?
    };
    node.follow(state).await?;
    let member = Member {
        certificate: Der(certificate),
        ..state.member.clone()
    };
    let roster = state.roster.borrow().clone();
    let next = MemberState::new(member, roster, &node.clock)?;
    node.store.keep_member(&next.member).await?;
    tracing::info!("this node has another certificate");
    node.becomes(Some(Rc::new(next)));
    Ok(())
}

fn own_record(state: &MemberState) -> Option<NodeRecord> {
    let roster = state.roster.borrow();
    let known = roster.nodes.get(&state.member.slot);
    known.map(|it| it.record.clone())
}

/// A certificate for this node's key, which the arbiter has by now.
async fn signed_anew(
    node: &Rc<Node>,
    state: &MemberState,
    now: WallClock,
) -> Result<Vec<u8>, Problem> {
    let (slot, id) = (state.member.slot, node.own.id.clone());
    let signed = state.authority.signs(slot, &id, &state.key.public(), now);
    let signed = signed.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let changed = |it: &NodeRecord| {
        (it.standing == Standing::Joined && it.certificate.0 != signed).then(|| NodeRecord {
            fingerprint: Fingerprint::of(&signed),
            certificate: Der(signed.clone()),
            fingerprint_before: Some(it.fingerprint),
            ..it.clone()
        })
    };
    let register = node.register().await?;
    let changed = register.change_node(slot, &id, changed).await;
    changed.map_err(|it| it.problem())?;
    Ok(signed)
}

/// The certificate before is believed no more, once others have had the time to hear of this one.
async fn forget_before(
    node: &Rc<Node>,
    state: &Rc<MemberState>,
    now: WallClock,
) -> Result<(), Problem> {
    let own = &state.member.certificate.0;
    let begins = times(own).map_or(u64::MAX, |it| it.0);
    let is_old = seconds(now).saturating_sub(begins) >= BOTH_FOR.as_secs();
    let own = Fingerprint::of(own);
    let is_left = |it: &NodeRecord| it.fingerprint == own && it.fingerprint_before.is_some();
    if !is_old || !own_record(state).is_some_and(|it| is_left(&it)) {
        return Ok(());
    }
    let without = |it: &NodeRecord| {
        is_left(it).then(|| NodeRecord {
            fingerprint_before: None,
            ..it.clone()
        })
    };
    let register = node.register().await?;
    let slot = state.member.slot;
    let known = register.change_node(slot, &node.own.id, without).await;
    let mut roster = state.roster.borrow().clone();
    roster.knows(slot, known.map_err(|it| it.problem())?);
    node.keep(state, roster).await
}

/// Who is in the cluster.
///
/// # Errors
/// This node is in none.
pub(crate) async fn status(node: &Rc<Node>) -> Result<ClusterView, Problem> {
    let state = node.member()?;
    let followed = node.follow(&state).await;
    ask_nodes(node, &state).await;
    let roster = state.roster.borrow().clone();
    let mut problems = Vec::new();
    if let Err(problem) = followed {
        let last = "what is shown was known before";
        problems.push(format!(
            "{} ({last}); next step: {}",
            problem.detail, problem.hint
        ));
    }
    let not_listening = node.not_listening.borrow();
    problems.extend(not_listening.iter().map(|(at, why)| {
        format!("no node is heard at {at}: {why}; next step: check `cluster.listen` of node.toml")
    }));
    let not_renewed = node.not_renewed.borrow();
    problems.extend(not_renewed.iter().map(|it| {
        let next = &it.hint;
        format!(
            "this node's certificate cannot be renewed: {}; next step: {next}",
            it.detail
        )
    }));
    let own = state.member.slot;
    let counts = roster.joined().any(|(slot, _)| slot == own);
    if !counts {
        problems.push(
            "this node was removed from the cluster; next step: `causeway cluster leave` here, then join anew"
                .to_owned(),
        );
    }
    let now = rfc3339(node.now());
    let seen = node.seen.borrow();
    let nodes = views(&roster, |slot| {
        let is_own = slot == own;
        let mine = || Seen {
            at: Some(now.clone()),
            answers: true,
            problem: None,
        };
        if is_own {
            mine()
        } else {
            seen.get(&slot).cloned().unwrap_or_default()
        }
    });
    let record = &roster.cluster.record;
    Ok(ClusterView {
        cluster: record.name.clone(),
        cluster_id: record.id.clone(),
        level: record.level,
        authority: Fingerprint::of(&record.authority.0),
        slot: own,
        nodes,
        problems,
    })
}

fn ends(certificate: &[u8]) -> Option<String> {
    Some(x509::facts(certificate)?.ends)
}

fn views(roster: &Roster, seen: impl Fn(u8) -> Seen) -> Vec<NodeView> {
    let view = |(slot, known): (&u8, &crate::roster::Known<NodeRecord>)| {
        let NodeRecord {
            profile,
            fingerprint,
            certificate,
            standing,
            ..
        } = &known.record;
        let seen = seen(*slot);
        let is_in = *standing == Standing::Joined;
        NodeView {
            slot: *slot,
            name: profile.name.clone(),
            id: profile.id.clone(),
            standing: *standing,
            addresses: profile.addresses.clone(),
            version: profile.version.clone(),
            rings: profile.rings.clone(),
            answers: is_in && seen.answers,
            last_seen: seen.at,
            certificate_ends: ends(&certificate.0),
            fingerprint: *fingerprint,
            problem: seen.problem.filter(|_| is_in).map(|it| it.to_string()),
        }
    };
    roster.nodes.iter().map(view).collect()
}
