//! `init`, `token`, `join`, `status`, `leave`: what an administrator has a node do.

use crate::authority::{Authority, Identity, PublicKey, SecretKey};
use crate::client;
use crate::fingerprint::Fingerprint;
use crate::listener::take;
use crate::node::{MemberState, Node};
use crate::records::{NodeRecord, Standing, TokenRecord, Written, random_hex};
use crate::refusal::{Refusal, RefusalKind};
use crate::register::{CopyHere, Register, first};
use crate::roster::Roster;
use crate::store::{Member, Pending};
use crate::token::{SECRET_BYTES, Token};
use crate::words::{Command, JoinAnswer, MadeToken, Outcome};
use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;
use serde_json::Value;
use std::rc::Rc;
use units::WallClock;
use units::rfc3339::rfc3339;

/// How long a token may be used at most: a week.
const MINUTES_MAX: u64 = 7 * 24 * 60;

/// Does it.
///
/// # Errors
/// Why not, and what to do about it.
pub(crate) async fn run(node: &Rc<Node>, command: Command) -> Result<Value, Problem> {
    if let Some(damage) = node.damage.borrow().as_ref() {
        return Err(damage.clone());
    }
    match command {
        Command::Init { name } => value(&init(node, &name).await?),
        Command::Token { minutes } => value(&token(node, minutes).await?),
        Command::Join { token } => value(&join(node, &token).await?),
        Command::Status => value(&crate::upkeep::status(node).await?),
        Command::Leave {
            node: name,
            force,
            dry_run,
        } => value(&leave(node, name.as_deref(), (force, dry_run)).await?),
    }
}

fn value(what: &impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(what).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

fn of(refusal: &Refusal) -> Problem {
    refusal.problem()
}

fn library(error: &rcgen::Error) -> Problem {
    Problem::new(Code::Internal, format!("a certificate: {error}"))
}

fn is_free(node: &Node) -> Result<(), Problem> {
    let Some(state) = node.state() else {
        return Ok(());
    };
    let Member {
        cluster,
        name,
        slot,
        ..
    } = &state.member;
    let detail = format!("this node is node {slot} of cluster {name} ({cluster}) already");
    Err(Problem::new(Code::ClusterMember, detail))
}

fn has_address(node: &Node) -> Result<(), Problem> {
    if node.settings.listen.is_empty() {
        let detail = "other nodes cannot reach this one: node.toml has no `cluster.listen`";
        let next = "write listen = [\"ADDRESS:7420\"] below [cluster] of node.toml and restart";
        return Err(Problem::new(Code::ClusterNotConfigured, detail).hint(next));
    }
    Ok(())
}

fn outcome(state: &MemberState, node: &str, slot: u8) -> Outcome {
    Outcome {
        cluster: state.member.name.clone(),
        cluster_id: state.member.cluster.clone(),
        node: node.to_owned(),
        slot,
        authority: Fingerprint::of(&state.member.authority.0),
        notices: Vec::new(),
    }
}

/// This node is one of the cluster from now on.
async fn become_member(
    node: &Rc<Node>,
    member: Member,
    roster: Roster,
) -> Result<Rc<MemberState>, Problem> {
    let state = MemberState::new(member, roster.clone(), &node.clock)?;
    node.store.keep_roster(&roster).await?;
    node.store.keep_member(&state.member).await?;
    Ok(take(node, state))
}

async fn init(node: &Rc<Node>, name: &str) -> Result<Outcome, Problem> {
    let _turn = node.turn.lock().await;
    is_free(node)?;
    has_address(node)?;
    if let Err(rule) = manifest::name::check_object_name(name) {
        let detail = format!("\"{name}\" cannot be a cluster's name: {rule}");
        return Err(Problem::new(Code::CommandLine, detail));
    }
    let profile = node.candidate().await.profile;
    let pending = match node.store.pending().await? {
        Some(Pending::Init {
            member,
            cluster,
            node: record,
        }) if cluster.name == name && record.profile == profile => (member, cluster, record),
        Some(Pending::Init { .. } | Pending::Join { .. }) | None => {
            let id = random_hex::<16>(&node.core);
            let authority = SecretKey::make().map_err(|error| library(&error))?;
            let authority = Authority::new(&id, authority);
            let key = SecretKey::make().map_err(|error| library(&error))?;
            let keys = (&authority, &key.public());
            let made = first(&node.core, keys, (&id, name), (&profile, node.now()));
            let (cluster, record) = made.map_err(|it| of(&it))?;
            let member = Member {
                cluster: id,
                name: name.to_owned(),
                slot: 0,
                authority: cluster.authority.clone(),
                authority_key: authority.key().pem(),
                certificate: record.certificate.clone(),
                key: key.pem(),
            };
            (Box::new(member), Box::new(cluster), Box::new(record))
        }
    };
    let register = node.register().await?;
    let (member, cluster, record) = pending;
    node.store
        .begin(&Pending::Init {
            member: member.clone(),
            cluster: cluster.clone(),
            node: record.clone(),
        })
        .await?;
    let roster = register.found(&cluster, &record).await;
    let state = become_member(node, *member, roster.map_err(|it| of(&it))?).await?;
    Ok(outcome(&state, &profile.name, 0))
}

async fn token(node: &Rc<Node>, minutes: u64) -> Result<MadeToken, Problem> {
    let state = node.member()?;
    has_address(node)?;
    if !(1..=MINUTES_MAX).contains(&minutes) {
        let detail = format!("a token of {minutes} minutes: 1 to {MINUTES_MAX} are possible");
        return Err(Problem::new(Code::CommandLine, detail));
    }
    node.follow(&state).await?;
    let register = node.register().await?;
    let mut addresses = node.settings.listen.clone();
    for (_, other) in state.roster.borrow().joined() {
        let more = other.profile.addresses.iter();
        let more: Vec<_> = more.filter(|it| !addresses.contains(it)).copied().collect();
        addresses.extend(more);
    }
    let now = node.now();
    let expires = crate::authority::seconds(now) + minutes * 60;
    let made = Token {
        cluster: state.member.cluster.clone(),
        name: state.member.name.clone(),
        addresses: addresses.clone(),
        authority: Fingerprint::of(&state.member.authority.0),
        id: random_hex::<8>(&node.core),
        secret: random_hex::<SECRET_BYTES>(&node.core),
        expires,
    };
    let by = node.own.id.clone();
    let record = TokenRecord {
        secret: Fingerprint::of(made.secret.as_bytes()),
        expires,
        used_by: None,
        written: Written::by(&node.core, &by),
    };
    let kept = register.keep_token(&made.id, &record).await;
    kept.map_err(|it| of(&it))?;
    tracing::info!(id = made.id, "a token was made: it lets one node join");
    Ok(MadeToken {
        token: made.text(),
        expires: rfc3339(WallClock(expires.saturating_mul(1_000_000_000))),
        addresses,
    })
}

async fn join(node: &Rc<Node>, text: &str) -> Result<Outcome, Problem> {
    let _turn = node.turn.lock().await;
    is_free(node)?;
    has_address(node)?;
    let token = Token::parse(text).map_err(|it| of(&it))?;
    let register = node.register().await?;
    sees_it(&register, &token).await.map_err(|it| of(&it))?;
    let key = match node.store.pending().await? {
        Some(Pending::Join { token: id, key }) if id == token.id => {
            SecretKey::from_pem(&key).map_err(|error| library(&error))?
        }
        Some(Pending::Init { .. } | Pending::Join { .. }) | None => {
            SecretKey::make().map_err(|error| library(&error))?
        }
    };
    node.store
        .begin(&Pending::Join {
            token: token.id.clone(),
            key: key.pem(),
        })
        .await?;
    let candidate = node.candidate().await;
    let answer = client::join(&node.core, &token, &key, &candidate, &node.clock).await;
    let answer = answer.map_err(|it| of(&it))?;
    is_ours(&answer, &token, &key, &candidate.profile.id).map_err(|it| of(&it))?;
    // What etcd says to this node counts, and not what the other node has heard.
    let roster = register.roster().await.map_err(|it| of(&it))?;
    is_in(&roster, &answer).map_err(|it| of(&it))?;
    let member = Member {
        cluster: token.cluster.clone(),
        name: roster.cluster.record.name.clone(),
        slot: answer.slot,
        authority: roster.cluster.record.authority.clone(),
        authority_key: answer.authority_key,
        certificate: answer.certificate,
        key: key.pem(),
    };
    let state = become_member(node, member, roster).await?;
    tracing::info!(cluster = state.member.cluster, "this node has joined");
    Ok(outcome(&state, &candidate.profile.name, answer.slot))
}

/// This node's etcd has the cluster of the token: else the two nodes would not have one arbiter.
async fn sees_it(register: &Register, token: &Token) -> Result<(), Refusal> {
    let there = register.cluster().await?;
    let found = there.as_ref().map(|it| &it.record);
    let is_it = found.is_some_and(|it| {
        it.id == token.cluster && Fingerprint::of(&it.authority.0) == token.authority
    });
    if is_it {
        return Ok(());
    }
    let what = found.map_or_else(
        || "no cluster".to_owned(),
        |it| format!("cluster {} ({})", it.name, it.id),
    );
    Err(Refusal::new(
        RefusalKind::Token,
        format!(
            "the token is of cluster {} ({}), and etcd, as this node reaches it, has {what} below its prefix",
            token.name, token.cluster
        ),
        "write the same etcd and prefix into [cluster] of both nodes, and take a token of the cluster that is meant",
    ))
}

/// What came is for this node and its key, by the authority that the token names.
fn is_ours(answer: &JoinAnswer, token: &Token, key: &SecretKey, node: &str) -> Result<(), Refusal> {
    let certificate = &answer.certificate.0;
    let cluster = &answer.roster.cluster.record;
    let identity = Identity {
        cluster: token.cluster.clone(),
        slot: answer.slot,
        node: node.to_owned(),
    };
    let authority = SecretKey::from_pem(&answer.authority_key);
    let has_key =
        authority.is_ok_and(|it| PublicKey::of(&cluster.authority.0) == Some(it.public()));
    let fits = Identity::of(certificate) == Some(identity)
        && PublicKey::of(certificate) == Some(key.public())
        && Fingerprint::of(&cluster.authority.0) == token.authority
        && has_key;
    if fits {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalKind::Garbled,
        "the node that was asked has sent a certificate that is not for this node",
        "install the same version of Causeway on both nodes, and have another token made",
    ))
}

/// The arbiter, as this node reaches it, has this node's record.
fn is_in(roster: &Roster, answer: &JoinAnswer) -> Result<(), Refusal> {
    let known = roster.nodes.get(&answer.slot).map(|it| &it.record);
    let counts =
        |it: &NodeRecord| it.standing == Standing::Joined && it.certificate == answer.certificate;
    if known.is_some_and(counts) {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalKind::Arbiter,
        format!(
            "etcd, as this node reaches it, has no record of node {}",
            answer.slot
        ),
        "write the same etcd and prefix into [cluster] of both nodes, then join again with this token",
    ))
}

/// A node that is to leave.
struct Leaver {
    slot: u8,
    name: String,
    /// It is the one that is asked.
    is_own: bool,
}

async fn leave(
    node: &Rc<Node>,
    name: Option<&str>,
    (force, dry_run): (bool, bool),
) -> Result<Outcome, Problem> {
    let _turn = node.turn.lock().await;
    let state = node.member()?;
    let followed = node.follow(&state).await;
    let leaver = leaver(node, &state, name)?;
    if let Err(problem) = followed {
        if !(leaver.is_own && force && !dry_run) {
            return Err(problem);
        }
        let notice = unsaid(&leaver, &problem);
        let done = forget(node, &state, &leaver.name).await?;
        let notices = vec![notice];
        return Ok(Outcome { notices, ..done });
    }
    // Others may have removed it, or this node, meanwhile.
    let counts = state.roster.borrow().joined().any(|it| it.0 == leaver.slot);
    match (counts, leaver.is_own) {
        (true, _) => {}
        (false, true) if dry_run => return Ok(outcome(&state, &leaver.name, leaver.slot)),
        (false, true) => return forget(node, &state, &leaver.name).await,
        (false, false) => return Err(Problem::not_found("node", &leaver.name)),
    }
    let copies = node.register().await?.copies_on(leaver.slot).await;
    let copies = copies.map_err(|it| of(&it))?;
    let mut notices: Vec<String> = copies.iter().map(notice).collect();
    let is_last = state.roster.borrow().joined().count() == 1;
    if is_last {
        notices.push(end_of_cluster(node, &state));
    }
    if dry_run {
        return Ok(Outcome {
            notices,
            ..outcome(&state, &leaver.name, leaver.slot)
        });
    }
    if !force {
        is_not_needed(node, &state, &leaver, (&copies, is_last)).await?;
    }
    let by = node.own.id.clone();
    let register = node.register().await?;
    register
        .leaves(leaver.slot, &by)
        .await
        .map_err(|it| of(&it))?;
    tracing::info!(
        "node {} ({}) has left the cluster",
        leaver.slot,
        leaver.name
    );
    let done = if leaver.is_own {
        forget(node, &state, &leaver.name).await?
    } else {
        node.follow(&state).await?;
        outcome(&state, &leaver.name, leaver.slot)
    };
    Ok(Outcome { notices, ..done })
}

/// The node of this name, as far as it is known here; none: this one.
fn leaver(node: &Node, state: &MemberState, name: Option<&str>) -> Result<Leaver, Problem> {
    let own = state.member.slot;
    let roster = state.roster.borrow();
    let (slot, name) = match name {
        None => {
            let known = roster.nodes.get(&own).map(|it| &it.record.profile.name);
            (own, known.unwrap_or(&node.own.name).clone())
        }
        Some(name) => {
            let found = roster.joined().find(|it| it.1.profile.name == name);
            let (slot, _) = found.ok_or_else(|| Problem::not_found("node", name))?;
            (slot, name.to_owned())
        }
    };
    let is_own = slot == own;
    Ok(Leaver { slot, name, is_own })
}

/// Nothing is lost with it, and nothing is left behind.
async fn is_not_needed(
    node: &Rc<Node>,
    state: &MemberState,
    leaver: &Leaver,
    (copies, is_last): (&[CopyHere], bool),
) -> Result<(), Problem> {
    let Leaver { slot, name, is_own } = leaver;
    let needed = |detail: String| Problem::new(Code::ClusterNeeded, detail);
    if !copies.is_empty() {
        let last = copies.iter().filter(|it| it.is_last).count();
        return Err(needed(format!(
            "node {slot} ({name}) has copies of {} LUNs, and of {last} of them no other node has all",
            copies.len()
        ))
        .hits(copies.iter().map(notice).collect()));
    }
    if is_last {
        let detail = format!(
            "node {slot} ({name}) is the last one of cluster {}",
            state.member.name
        );
        let next = "let another node join first (`causeway cluster token`); or give --force: the cluster ends then";
        return Err(needed(detail)
            .hint(next)
            .hits(vec![end_of_cluster(node, state)]));
    }
    if !is_own && crate::upkeep::answers(node, state, *slot).await {
        let next =
            "run `causeway cluster leave` on it, which leaves nothing behind; or give --force";
        return Err(needed(format!("node {slot} ({name}) answers")).hint(next));
    }
    Ok(())
}

/// What leaving means for the last node.
fn end_of_cluster(node: &Node, state: &MemberState) -> String {
    format!(
        "the cluster {} ends, and the key of its authority is gone: nobody can join it any more. Its records stay in etcd \
         below {}/; a new cluster needs another `cluster.prefix`, or that these records are deleted there",
        state.member.name, node.settings.prefix
    )
}

/// What others do not know, of a node that has left without its arbiter.
fn unsaid(leaver: &Leaver, problem: &Problem) -> String {
    format!(
        "etcd was not notified ({}): for the others it is still a node. Run `causeway cluster leave --node {}` on one of them",
        problem.detail, leaver.name
    )
}

fn notice(copy: &CopyHere) -> String {
    let what = if copy.is_last {
        "the only copy that has all"
    } else {
        "a copy"
    };
    format!("LUN {}: {what} is on it", copy.naa)
}

/// This node is of no cluster from now on: its certificate and its keys are gone.
async fn forget(node: &Rc<Node>, state: &MemberState, name: &str) -> Result<Outcome, Problem> {
    let done = outcome(state, name, state.member.slot);
    node.forget_others().await;
    node.store.forget().await?;
    node.becomes(None);
    Ok(done)
}
